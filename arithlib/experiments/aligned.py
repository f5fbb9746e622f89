"""Experiments on what else needs digits brought together: sorting, and the OR of two vectors (chapter 36).

arithlib train "aligned-sort-*"     a minute each on one core
arithlib train "aligned-or-*"       half a minute each on one core
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from arithlib.decoding import greedy
from arithlib.exact_match import Scores, score
from arithlib.experiments.base import Experiment
from arithlib.models.looped import LoopedConfig, LoopedTransformer, ProgressiveLoss, WordConfig
from arithlib.models.positions import Offsets
from arithlib.tasks.bitwise import FAULTS, Or, faults
from arithlib.tasks.operands import Problems
from arithlib.tasks.sorting import WORDS, Sorting
from arithlib.tokenizer import END
from arithlib.training import ScheduledAdamW

# Problems for each cell of the grids of `finish`.
CELL = 50


class AlignedObjective:
    """Cross-entropy of the answers of fresh problems at every step, seeded by the step; in two groups of similar length."""

    def __init__(self, experiment: "AlignedExperiment"):
        self.experiment, self.generator = experiment, torch.Generator()
        held_out = torch.Generator().manual_seed(2**31 + experiment.data_seed)
        self.held_out = experiment.task.sample(experiment.evaluation_count, held_out)

    def loss(self, model: LoopedTransformer, step: int) -> Tensor:
        e = self.experiment
        generator = self.generator.manual_seed((1_000_003 * e.data_seed + step) % 2**32)
        problems = e.task.sample(e.batch_size, generator)
        offset, loops = e.offsets.draw(1, generator), (0, e.model.n_loops)
        parts = problems.by_length(2)
        total = sum(ProgressiveLoss()(model, part, offset, loops, part.answer_mask) for part in parts)
        return total / problems.answer_mask.sum()

    def evaluate(self, model: LoopedTransformer) -> dict[str, float]:
        """exact_match: share of held-out problems of the training distribution with everything right."""
        return {"exact_match": float(score(model, self.held_out).exact.double().mean())}


@dataclass(frozen=True, kw_only=True)
class AlignedExperiment(Experiment):
    """A (k x L) model on fresh problems of a task that has two sizes.

    offsets: how addresses are moved in training, one draw a batch. sizes: of either kind at which `finish` tests.
    evaluation_count: held-out problems of the training distribution.
    """

    task: Sorting | Or
    model: LoopedConfig
    offsets: Offsets
    sizes: tuple[tuple[int, ...], tuple[int, ...]]
    batch_size: int
    data_seed: int = 0
    evaluation_count: int = 400

    def build(self):
        return LoopedTransformer(self.model, self.model_seed)

    def objective(self, model, device):
        return AlignedObjective(self)

    def finish(self, model, run):
        """exact_match_grid: (1, R, C) share of right answers at all pairs of `sizes`, CELL problems each."""
        return {"exact_match_grid": self._grid(model, lambda problems, scores: scores.exact)}

    def _grid(self, model, measure):
        """(1, R, C, ...) mean over the problems of a cell of what `measure` makes of (problems, scores)."""
        rows, columns = self.sizes
        generator = torch.Generator().manual_seed(2**31 + 1 + self.data_seed)
        cells = []
        for pair in torch.cartesian_prod(torch.tensor(rows), torch.tensor(columns)):
            problems = self.task.problems(pair.expand(CELL, 2), generator).trimmed()
            cells.append(measure(problems, score(model, problems)).double().mean(0).numpy())
        return np.array(cells).reshape(1, len(rows), len(columns), *cells[0].shape)


@dataclass(frozen=True, kw_only=True)
class SortingExperiment(AlignedExperiment):
    """Sorting; sizes are numbers of a list and most digits."""

    def finish(self, model, run):
        """As for all, and minimum_grid: (1, R, C) share of answers whose first letter is right."""
        both = self._grid(model, lambda problems, scores: torch.stack([scores.exact, scores.right[:, 0]], 1))
        return {"exact_match_grid": both[..., 0], "minimum_grid": both[..., 1]}


@dataclass(frozen=True, kw_only=True)
class OrExperiment(AlignedExperiment):
    """The OR of two vectors; sizes are their lengths."""

    def finish(self, model, run):
        """fault_grid: (1, R, C, 5) shares of `bitwise.FAULTS` among the answers that greedy decoding writes."""

        def kinds(problems: Problems, scores: Scores) -> Tensor:
            M = scores.mask.shape[1] + 2  # as long as to see two bits too many
            written = greedy(model, problems.prompts(), M)
            answers = problems.tokens[:, problems.prompts().shape[1] :]
            padded = [F.pad(tokens, (0, M - tokens.shape[1]), value=END) for tokens in (written, answers)]
            return F.one_hot(faults(*padded), len(FAULTS))

        return {"fault_grid": self._grid(model, kinds)}


# ---- presets -----------------------------------------------------------------------------------------------------

SEEDS = range(3)


def preset(kind, name, about, steps, seed, *, lr, **more):
    """An experiment whose rate warms up over a twentieth of its steps and falls to zero along a cosine."""
    return kind(
        name=f"aligned-{name}-s{seed}",
        about=about,
        steps=steps,
        evaluate_every=steps // 20,
        model_seed=seed,
        data_seed=seed,
        optimizer=ScheduledAdamW(lr=lr, steps=steps, warmup_steps=steps // 20),
        ships_weights=False,
        **more,
    )


def sorter(positions: str, shape: tuple[int, int], seed: int, *, steps: int = 2500, task: Sorting = Sorting(4, 3)):
    n_layers, n_loops = shape
    model = WordConfig(
        d_model=64, n_heads=4, d_mlp=256, n_layers=n_layers, n_loops=n_loops, positions=positions, n_rows=64,
        injection="loop", offset=4, d_vocab=len(WORDS),
    )  # fmt: skip
    return preset(
        SortingExperiment, f"sort-{positions.replace('+', '-')}-{n_layers}x{n_loops}",
        f"sorting, positions: {positions} (chapter 36)", steps, seed, lr=3e-3, task=task, model=model,
        offsets=Offsets("per batch", k=12), batch_size=64,
        sizes=(tuple(range(1, 2 * task.max_numbers + 1)), tuple(range(1, 2 * task.max_digits + 1))),
    )  # fmt: skip


def orer(positions: str, vectors: str, seed: int, *, steps: int = 1200, task_bits: int = 10):
    model = LoopedConfig(
        d_model=64, n_heads=4, d_mlp=256, n_layers=2, n_loops=2, positions=positions, n_rows=64, offset=4
    )
    return preset(
        OrExperiment, f"or-{vectors}-{positions.replace('+', '-')}",
        f"OR of two vectors, positions: {positions} (chapter 36)", steps, seed, lr=3e-3,
        task=Or(task_bits, vectors), model=model, offsets=Offsets("per batch", k=28), batch_size=64,
        sizes=(tuple(range(2, 31, 4)),) * 2,
    )  # fmt: skip


def presets():
    """Every experiment of this family, in the order in which `arithlib list` prints them."""
    for seed in SEEDS:
        for positions in ("abacus", "fire", "abacus+fire"):
            yield sorter(positions, (4, 1), seed)
        for vectors in ("one", "random"):
            for positions in ("abacus", "fire", "abacus+fire", "none"):
                yield orer(positions, vectors, seed)
