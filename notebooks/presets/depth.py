"""Runs: depth without parameters (part 4): k layers looped L times beside k layers, and beside k L layers.

arithlib train "depth-hop-*"        a minute each on one core
arithlib train "depth-add-*"        two minutes each on one core
arithlib train "depth-gpu-*"        those of the published width, a minute or two each on a GPU
"""

from arithlib.experiments.depth import AdditionExperiment, HopExperiment
from arithlib.models.looped import LoopedConfig
from arithlib.tasks.hops import Hops
from arithlib.tasks.many import ManyOperands
from arithlib.training import ScheduledAdamW

SEEDS = range(3)


def shapes(depth: int) -> list[tuple[int, int]]:
    """Every (k, L) with k L = depth, and (k, 1) beside each: looped models and both their partners."""
    divisors = [k for k in range(1, depth + 1) if depth % k == 0]
    return sorted({(k, loops) for k in divisors for loops in (1, depth // k)})


def preset(kind, name, about, shape, steps, seed, *, lr, width, evaluations=20, **more):
    """An experiment whose rate warms up over a twentieth of its steps and falls to zero along a cosine."""
    (k, loops), (d_model, n_heads) = shape, width
    return kind(
        name=f"{name}-{k}x{loops}-s{seed}",
        about=about,
        steps=steps,
        evaluate_every=steps // evaluations,
        model_seed=seed,
        data_seed=seed,
        model=LoopedConfig(
            d_model=d_model, n_heads=n_heads, d_mlp=4 * d_model, n_layers=k, n_loops=loops,
            positions="rotary", injection="none",
        ),
        optimizer=ScheduledAdamW(lr=lr, steps=steps, warmup_steps=steps // 20),
        **more,
    )  # fmt: skip


def presets():
    """Every experiment of this family, in the order in which `arithlib list` prints them."""
    yield from _sums()
    yield from _hops()
    yield from _paper_sized()


def _sums():
    """Up to 4 numbers of two digits, least-significant digit first.

    Shapes of depth 4 have two more runs, for the spread. Four layers are also trained for twice the steps. These and
    three runs of one layer looped are looked into (chapter 40), so that their weights are kept.
    """
    small = dict(task=ManyOperands(2, reverse=True), lr=3e-3, width=(64, 4), batch_size=48)
    for k, loops in shapes(4):
        for seed in range(5) if k * loops == 4 else SEEDS:
            yield preset(
                AdditionExperiment, "depth-add", "up to 4 numbers (chapter 40)", (k, loops), 3000, seed,
                counts=(1, 2, 3, 4), further=(5, 6, 8), ships_weights=(k, loops) == (1, 4) and seed in SEEDS, **small,
            )  # fmt: skip
    for seed in SEEDS:
        for shape in ((3, 1), (3, 2), (6, 1), (4, 3), (6, 2), (12, 1), (3, 4), (2, 6), (1, 12)):
            yield preset(
                AdditionExperiment, "depth-add", "up to 4 numbers, larger blocks (chapter 40)", shape, 3000, seed,
                counts=(1, 2, 3, 4), further=(5, 6, 8), ships_weights=False, **small,
            )  # fmt: skip
        yield preset(
            AdditionExperiment, "depth-add-long", "the same, twice the steps (chapter 40)", (4, 1), 6000, seed,
            counts=(1, 2, 3, 4), further=(5, 6, 8), **small,
        )  # fmt: skip
        yield preset(
            AdditionExperiment, "depth-add-gap", "1, 2 and 4 numbers, never 3 (chapter 40)", (1, 4), 3000, seed,
            counts=(1, 2, 4), further=(3, 5, 6, 8), ships_weights=False, **small,
        )  # fmt: skip


def _hops():
    """Four hops among 32 tokens: the depth that corollary 2.3 asks for is 4."""
    small = dict(task=Hops(4, 32), everywhere=True, lr=3e-3, width=(64, 4), batch_size=32, ships_weights=False)
    for seed in SEEDS:
        for shape in shapes(4):
            yield preset(HopExperiment, "depth-hop", "4 hops in 32 tokens (chapter 41)", shape, 2400, seed, **small)
        for loops in (2, 3):
            about = "fewer loops than the corollary asks (chapter 41)"
            yield preset(HopExperiment, "depth-hop", about, (1, loops), 2400, seed, **small)


def _paper_sized():
    """Table 1 whole, missing rows included, at the published widths and batches; a fortieth of the steps."""
    sums = dict(lr=1e-3, width=(256, 8), batch_size=1020, scale="gpu", ships_weights=False)
    hops = dict(lr=1e-3, width=(128, 8), batch_size=256, scale="gpu", ships_weights=False)
    for seed in SEEDS:
        for k, loops in shapes(12):
            yield preset(
                AdditionExperiment, "depth-gpu-add", "2 to 32 numbers of three digits: 2 minutes", (k, loops), 5000,
                seed, **sums,
            )  # fmt: skip
    for seed in SEEDS:
        for k, loops in shapes(6):
            for p in (16, 32):
                yield preset(
                    HopExperiment, f"depth-gpu-hop{p}", f"{p} hops in 256 tokens: a minute", (k, loops), 5000, seed,
                    task=Hops(p), **hops,
                )  # fmt: skip
