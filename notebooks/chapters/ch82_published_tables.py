"""The published tables, row by row, beside the runs of this book: small ones, and those of the published width."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache

import numpy as np
import torch
from IPython.display import display
from torch.utils.flop_counter import FlopCounterMode

from arithlib import checkpoints, experiments
from arithlib.checkpoints import Trained
from arithlib.exact_match import length_grid
from arithlib.experiments import Experiment, abacus
from arithlib.experiments.abacus import AbacusExperiment
from arithlib.models.looped import LoopedConfig
from bookkit import published, table
from bookkit.tables import Table


@dataclass(frozen=True)
class Row:
    """A model of a published table.

    published: percent right, None where the source prints none. small, large: patterns of names of the runs on a
    processor core and at the published width, all seeds; small is None where there is nothing like it.
    """

    label: str
    published: float | None
    small: str | None
    large: str


def tables() -> dict[str, list[Row]]:
    """By title, every model for which there are runs at the published width. Labels: layers x loops."""
    adders = "Sums, both numbers five times as long as in training (source 002 and McLeish et al.)"
    return {adders: list(_adders())} | sums() | hops(16) | hops(32) | problems()


def _adders() -> Iterable[Row]:
    yield Row("2 x 4", published("P-16")["accuracy"], "abacus-cpu-s*", "abacus-gpu-s?")
    yield Row("2 x 4, input enters once", None, None, "abacus-gpu-noinjection-s*")
    yield Row("8 x 1", published("P-16")["accuracy_before"], None, "abacus-gpu-8x1-s*")
    yield Row("2 x 4, offsets to 199", None, None, "abacus-gpu-k200-s*")
    yield Row("1 x 16", None, None, "abacus-gpu-1x16-s*")
    yield Row("8 x 2", None, None, "abacus-gpu-8x2-s*")
    yield Row(
        "1 x 16 as source 002 (small: 1 x 4, to 10 digits)", None, "abacus-source-ten-s*", "abacus-gpu-source-s*"
    )
    yield Row("2 x 4, sums and differences (small: 2 x 2)", None, "abacus-mixed-s*", "abacus-gpu-mixed-s*")
    yield Row("4 x 4, products (small: 2 x 2)", None, "abacus-times-s*", "abacus-gpu-times-s*")


def sums() -> dict[str, list[Row]]:
    """The table of multi-operand addition, by its title."""
    deep, single, looped, two, three = (published(id) for id in ("L-04", "L-05", "L-06", "L-07", "L-08"))
    right = {(12, 1): deep["n_32"], (1, 1): single["n_32"], (1, 12): looped["n_32"]}
    right |= {(2, 1): two["base_32"], (2, 6): two["loop_32"], (3, 1): three["base_32"], (3, 4): three["loop_32"]}
    rows = [_row("depth-add", "depth-gpu-add", shape, right) for shape in _shapes("depth-gpu-add")]
    return {"Sums of 32 numbers (source 003; small: of 4)": rows}


def hops(p: int) -> dict[str, list[Row]]:
    """The table of p-hop induction, by its title."""
    six, one, more = (published(id) for id in ("L-14", "L-15", "L-16"))
    right = {(6, 1): six[f"p_{p}"], (1, 1): one[f"base_{p}"], (1, 6): one[f"loop_{p}"]}
    right |= {(2, 1): more[f"two_{p}"], (2, 3): more[f"two_loop_{p}"]}
    right |= {(3, 1): more[f"three_{p}"], (3, 2): more[f"three_loop_{p}"]}
    of_depth_four = {(6, 1): (4, 1), (1, 6): (1, 4), (2, 3): (2, 2)}  # the same part in a table of another depth
    large = f"depth-gpu-hop{p}"
    rows = [_row("depth-hop-end", large, shape, right, of_depth_four.get(shape)) for shape in _shapes(large)]
    return {f"{p} hops among 256 tokens (source 003; small: 4 among 32)": rows}


def problems() -> dict[str, list[Row]]:
    """The table of i-GSM, by its title."""
    loops_of, layers_of = published("L-19"), published("L-20")
    right = {(8, 1): loops_of["layers_8"]} | {(1, n): loops_of[f"loops_{n}"] for n in (1, 2, 4, 8)}
    right |= {(2, 1): layers_of["two"], (2, 2): layers_of["two_loop_2"], (2, 4): layers_of["two_loop_4"]}
    right |= {(4, 1): layers_of["four"], (4, 2): layers_of["four_loop_2"]}
    rows = [_row("graphs", "graphs-gpu", shape, right) for shape in _shapes("graphs-gpu")]
    return {"Grade-school problems (source 003; small: of five parameters)": rows}


def _shapes(family: str) -> list[tuple[int, ...]]:
    """Layers and loops of the runs of a family, in the order of its table."""
    return [tuple(map(int, run.name.split("-")[-2].split("x"))) for run in experiments.match(f"{family}-*-s0")]


def _row(small, large, shape, right, small_shape=None):
    """A row of source 003, whose runs are named by shape; small_shape: that of the small ones, if another."""
    (k, loops), (small_k, small_loops) = shape, small_shape or shape
    label = f"{k} x {loops}" + (f" (small: {small_k} x {small_loops})" if small_shape else "")
    pattern = f"{small}-{small_k}x{small_loops}-s*"
    return Row(label, right.get(shape), pattern if _is_known(pattern) else None, f"{large}-{k}x{loops}-s*")


def _is_known(pattern: str) -> bool:
    try:
        return bool(experiments.match(pattern))
    except experiments.UnknownExperiment:
        return False


def here(pattern: str | None, train: str = "") -> list[Trained]:
    """The trained runs of that pattern; those that are missing are made if their names fit the pattern `train`."""
    if pattern is None:
        return []
    return [
        checkpoints.load_or_train(run.name)
        for run in experiments.match(pattern)
        if fnmatchcase(run.name, train) or checkpoints.is_here(run.name)
    ]


def side_by_side(
    title: str, rows: list[Row], train: str = "", minutes: Mapping[str, float] | None = None
) -> tuple[Table, list[Trained]]:
    """One of `tables`: percent right in the source, on a core and at the published width; and the runs of that width.

    train: as in `here`. minutes: of a card for all seeds of a row, by label; one more column.
    """
    head, lines, trained = ["model", "source", "on a core", "large", *(["minutes"] if minutes else [])], [], []
    for row in rows:
        large = here(row.large, train)
        trained += large
        cells = [row.label, "-" if row.published is None else f"{row.published:.1f}"]
        cells += [_mean(here(row.small), "-"), _mean(large, "not yet")]
        lines.append([*cells, *([minutes[row.label]] if minutes else [])])
    return table(head, lines, ".1f", caption=title), trained


def _mean(runs: list[Trained], missing: str) -> str:
    return f"{np.mean([percent(run) for run in runs]):.1f} ({len(runs)})" if runs else missing


def show_large(tables: Mapping[str, list[Row]], train: bool) -> list[Trained]:
    """Shows those of these tables that have a run of the published width, and returns these runs.

    train: make what is missing of them first, which takes a card.
    """
    trained = []
    for title, rows in tables.items():
        shown, runs = side_by_side(title, rows, "*" if train else "")
        trained += runs
        if runs:
            display(shown)
        else:
            print(f'{title.partition(" (")[0]}: none yet; preset = "gpu" trains them')
    return trained


def networks(train: str = "") -> tuple[Table, list[Trained]]:
    """Networks that grok, on a core and on a card: pairs they were not trained on, and the epoch that learns them.

    train: as in `here`. Returns the table, and the run on a card if there is one.
    """
    small, stack = here("grokking-s?"), here("grokking-gpu", train)
    curves = {"on a core": [(run.history["step"], run.history["test_accuracy"]) for run in small]}
    curves["large"] = [(run.history["step"], one) for run in stack for one in run.history["test_accuracy"].T]
    rows = [(where, *_grokked(of_one)) if of_one else (where, "not yet", "", "") for where, of_one in curves.items()]
    head = (
        "unseen pairs of modular addition",
        "networks",
        "right at the end, % (lowest)",
        "epochs until 99 %, median",
    )
    return table(head, rows, caption="Networks that grok (source 004)"), stack


def _grokked(curves: list[tuple[np.ndarray, np.ndarray]]) -> tuple[int, str, str]:
    """How many, their accuracy at the end, and when half of them are at 99 % for the first time."""
    ends = [100 * accuracy[-1] for _, accuracy in curves]
    first = [steps[np.argmax(accuracy >= 0.99)] if accuracy.max() >= 0.99 else np.inf for steps, accuracy in curves]
    return len(curves), f"{np.mean(ends):.2f} ({min(ends):.2f})", f"{np.median(first):,.0f}"


def percent(run: Trained) -> float:
    """Percent right at the end of training, of what the table of this run prints."""
    history, experiment = run.history, run.experiment
    if "accuracy_by_count" in history:  # sums of n numbers
        counts = sorted(experiment.counts + experiment.further)
        share = history["accuracy_by_count"][0, counts.index(max(experiment.counts))]
    elif "accuracy_by_loops" in history:  # hops; problems, all depths alike
        share = history["accuracy_by_loops"][0, experiment.model.n_loops - 1].mean()
    elif experiment.task.operations != "+":  # both operands at multiples of the longest in training
        share = history["exact_match_by_length"][-1, -1]
    elif "diagonal" in history:
        share = history["diagonal"][0, 5 * experiment.task.max_digits - 1]
    else:
        share = _five_times(run)
    return 100 * float(share)


def _five_times(run: Trained) -> float:
    """Share right of sums with both numbers five times as long as in training, as `diagonal` is measured."""
    task = run.experiment.task
    length = 5 * task.max_digits
    offsets = run.experiment.with_room(length)
    return length_grid(run.model, task, [length], [length], count=abacus.CELL, offsets=offsets).item()


def teraflops(run: Experiment, rates: dict[str, float]) -> float:
    """What a card sustains in this run, in 10^12 operations a second: what it did in the deepest measured run of its
    width, or of the widest that is narrower.

    rates: of measured runs, by name.
    """
    runs = sorted(map(experiments.get, rates), key=lambda known: (known.model.d_model, known.model.n_layers))
    return rates[[known.name for known in runs if known.model.d_model <= run.model.d_model][-1]]


def petaflops(run: Experiment) -> float:
    """Floating-point operations of a whole training, in units of 10^15, by PyTorch's count of its matrix products.

    Forward once, backward at twice the cost. Every layer of every loop costs the same, and what is read does not
    depend on what reads it: one layer and two are counted, for all models of a table at once.
    """
    one, two = (_operations(replace(run, name="", about="", seed=0, model=_of_depth(run.model, n))) for n in (1, 2))
    depth = run.model.n_layers * run.model.n_loops
    return 3 * (one + (depth - 1) * (two - one)) * run.steps / 1e15


def _of_depth(model: LoopedConfig, n_layers: int) -> LoopedConfig:
    return replace(model, n_layers=n_layers, n_loops=1)


@cache
def _operations(run: Experiment) -> int:
    """Of one pass over the texts of a step, on the device `meta`, which has shapes and no numbers."""
    generator = run.generator(0)
    if isinstance(run, AbacusExperiment):
        parts = run.task.sample(run.batch_size, generator).by_length(abacus.GROUPS["cuda"])
        texts = [part.tokens[:, :-1] for part in parts]
    else:
        texts = [tokens for tokens, _ in run.batch(generator)]
    with torch.device("meta"):
        model = run.build()
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        for tokens in texts:
            model(tokens.to("meta"))
    return counter.get_total_flops()
