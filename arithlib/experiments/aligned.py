"""Experiments on what else needs digits brought together: sorting, and the OR of two vectors (chapter 36).

arithlib train "aligned-*"     a minute each on one core
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
    """Cross-entropy of the answers of problems drawn anew at every step, seeded by the step.

    The OR of vectors with a single one has so few problems that training comes to see all of them.
    """

    def __init__(self, experiment: "AlignedExperiment"):
        self.experiment, self.generator = experiment, torch.Generator()
        held_out = torch.Generator().manual_seed(2**31 + experiment.data_seed)
        self.held_out = experiment.task.sample(experiment.evaluation_count, held_out)

    def loss(self, model: LoopedTransformer, step: int) -> Tensor:
        e = self.experiment
        generator = self.generator.manual_seed((1_000_003 * e.data_seed + step) % 2**32)
        problems = e.task.sample(e.batch_size, generator).trimmed()
        offset, mask = e.offsets.draw(1, generator), problems.answer_mask
        return ProgressiveLoss()(model, problems, offset, (0, e.model.n_loops), mask) / mask.sum()

    def evaluate(self, model: LoopedTransformer) -> dict[str, float]:
        """exact_match: share of problems of the training distribution, drawn apart, with everything right."""
        return {"exact_match": float(score(model, self.held_out).exact.double().mean())}


@dataclass(frozen=True, kw_only=True)
class AlignedExperiment(Experiment):
    """A (k x L) model on fresh problems of a task that has two sizes.

    offsets: how addresses are moved in training, one draw a batch. sizes: of either kind at which `finish` tests.
    evaluation_count: problems of the training distribution, drawn apart but not kept out of training.
    """

    task: Sorting | Or
    model: LoopedConfig
    offsets: Offsets
    sizes: tuple[tuple[int, ...], tuple[int, ...]]
    batch_size: int
    data_seed: int = 0
    evaluation_count: int = 200

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
        """As for all, place_grid: (1, R, C, M) share of answers right at each place, given those before it, and
        length_grid: (1, R, C, M) share of answers of 0 to M - 1 letters among those that greedy decoding writes.

        The first place is the smallest number's; M is one more than the longest list, for its end token. Behind an
        answer's end token stands 0. An end that comes too early counts as a wrong letter.
        """
        M = max(self.sizes[0]) + 1

        def measure(problems: Problems, scores: Scores) -> Tensor:
            right = scores.right & scores.mask
            letters = torch.zeros_like(problems.start)
            for start in problems.start.unique():  # prompts of one width at a time
                alike = problems.start == start
                letters[alike] = (greedy(model, problems[alike].prompts(), M - 1) != END).sum(1)
            placed = F.pad(right, (0, M - right.shape[1]))
            return torch.cat([scores.exact[:, None], placed, F.one_hot(letters, M)], 1)

        exact, places, lengths = np.split(self._grid(model, measure), [1, 1 + M], axis=-1)
        return {"exact_match_grid": exact[..., 0], "place_grid": places, "length_grid": lengths}


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
SMALL = dict(d_model=64, n_heads=4, d_mlp=256, n_rows=64)
LISTS = Sorting(max_numbers=3, max_digits=2)
# Layers and loops of equal depth; what is looped gets its input again before each loop.
STANDARD, LOOPED = (2, 1), (1, 2)


def presets():
    """Every experiment of this family, in the order in which `arithlib list` prints them."""
    sorters = {"both": ("abacus+fire", STANDARD), "looped": ("abacus+fire", LOOPED)}
    sorters |= {positions: (positions, STANDARD) for positions in ("abacus", "fire")}
    for label, (positions, (n_layers, n_loops)) in sorters.items():
        for seed in SEEDS:
            yield _preset(
                SortingExperiment, f"sort-{label}",
                f"sorting, {n_layers} x {n_loops}, positions: {positions} (chapter 36)", 1500, seed,
                task=LISTS, offsets=Offsets("per batch", k=4),
                model=WordConfig(
                    n_layers=n_layers, n_loops=n_loops, positions=positions, offset=1, d_vocab=len(WORDS), **SMALL
                ),
                sizes=(tuple(range(1, 2 * LISTS.max_numbers + 1)), tuple(range(1, 2 * LISTS.max_digits + 1))),
            )  # fmt: skip
    for positions in ("abacus", "fire", "none"):
        for seed in SEEDS:
            yield _preset(
                OrExperiment, f"or-one-{positions}", f"OR of two vectors, positions: {positions} (chapter 36)", 1200,
                seed, task=Or(8, "one"), offsets=Offsets("per batch", k=24), sizes=(tuple(range(4, 25, 4)),) * 2,
                model=LoopedConfig(n_layers=2, n_loops=1, positions=positions, offset=4, **SMALL),
            )  # fmt: skip


def _preset(kind, label, about, steps, seed, **more):
    """An experiment whose rate warms up over a twentieth of its steps and falls to zero along a cosine."""
    return kind(
        name=f"aligned-{label}-s{seed}",
        about=about,
        steps=steps,
        evaluate_every=steps // 10,
        model_seed=seed,
        data_seed=seed,
        optimizer=ScheduledAdamW(lr=3e-3, steps=steps, warmup_steps=steps // 20),
        batch_size=32,
        ships_weights=False,
        **more,
    )
