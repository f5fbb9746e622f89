"""Experiments on what else needs digits brought together: sorting, and the OR of two vectors (chapter 36)."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from arithlib.decoding import greedy
from arithlib.exact_match import score
from arithlib.experiments.base import Experiment
from arithlib.models.looped import LoopedConfig, LoopedTransformer, ProgressiveLoss
from arithlib.models.positions import Offsets, spread_offsets
from arithlib.settings import of_kind
from arithlib.tasks.operands import Problems
from arithlib.tokenizer import END
from chapters.ch36_bitwise_or import FAULTS, Or, faults
from chapters.ch36_sorting import Sorting

# Lists for each cell of the grids of sorting.
CELL = 50
# Offsets at which an OR is tested: as many as the longest vectors of `presets` leave room for.
ENSEMBLE = 7
# So many bits too many may be written before decoding stops.
MORE_BITS = 3


class AlignedObjective:
    """Cross-entropy of the answers of problems drawn anew at every step, seeded by the step.

    The OR of vectors with a single one has so few problems that training comes to see all of them.
    """

    def __init__(self, experiment: "AlignedExperiment"):
        self.experiment = experiment
        self.held_out = experiment.task.sample(experiment.evaluation_count, experiment.apart())

    def loss(self, model: LoopedTransformer, step: int) -> Tensor:
        e = self.experiment
        generator = e.generator(step)
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
    evaluation_count: int = 200

    network = LoopedTransformer

    def objective(self, model, device):
        return AlignedObjective(self)


@of_kind("sorting")
@dataclass(frozen=True, kw_only=True)
class SortingExperiment(AlignedExperiment):
    """Sorting; sizes are numbers of a list and most digits."""

    def finish(self, model, run):
        """CELL lists of each size, under the model's own offset.

        exact_match_grid: (1, R, C) share of right answers. place_grid: (1, R, C, M) share of answers right at each
        place, given those before it, and length_grid: (1, R, C, M) share of answers of 0 to M - 1 letters among those
        that greedy decoding writes.

        The first place is the smallest number's; M is one more than the longest list, for its end token. Behind an
        answer's end token stands 0. An end that comes too early counts as a wrong letter.
        """
        M = max(self.sizes[0]) + 1

        def measure(problems: Problems) -> Tensor:
            scores = score(model, problems)
            letters = torch.zeros_like(problems.start)
            for start in problems.start.unique():  # prompts of one width at a time
                alike = problems.start == start
                letters[alike] = (greedy(model, problems[alike].prompts(), M - 1) != END).sum(1)
            right = scores.right & scores.mask
            placed = F.pad(right, (0, M - right.shape[1]))
            return torch.cat([scores.exact[:, None], placed, F.one_hot(letters, M)], 1)

        exact, places, lengths = np.split(self._grid(measure), [1, 1 + M], axis=-1)
        return {"exact_match_grid": exact[..., 0], "place_grid": places, "length_grid": lengths}

    def _grid(self, measure):
        """(1, R, C, ...) mean of what `measure` makes of the lists of each cell."""
        rows, columns = self.sizes
        generator = self.apart(1)
        cells = []
        for pair in torch.cartesian_prod(torch.tensor(rows), torch.tensor(columns)):
            problems = self.task.problems(pair.expand(CELL, 2), generator).trimmed()
            cells.append(measure(problems).double().mean(0).numpy())
        return np.array(cells).reshape(1, len(rows), len(columns), *cells[0].shape)


@of_kind("bitwise-or")
@dataclass(frozen=True, kw_only=True)
class OrExperiment(AlignedExperiment):
    """The OR of two vectors, one of which has a single one; sizes are their lengths."""

    def offset_ensemble(self, model: LoopedTransformer, bits: int) -> list[Offsets]:
        """ENSEMBLE offsets, evenly spread, with so many bits on trained rows; the model's own where it has none.

        One more row is kept free: the end is due where no bit has the next address.
        """
        if not model.positions.addressed:
            return [model.offsets]
        return spread_offsets(ENSEMBLE, bits, self.offsets.k + self.task.max_bits - 1)

    def finish(self, model, run):
        """Every problem of each pair of `sizes`, answered by greedy decoding; F are `bitwise.FAULTS`.

        fault_grid: (O, R, C, F) share of each fault, under one of O of the ensemble at a time, the lowest first.
        together_grid: (1, R, C, F) likewise, the whole ensemble deciding together; of models with addresses.
        length_grid: (1, L, M) share of answers of 0 to M - 1 bits, for each of L lengths of the longer vector, mean
        over its pairs and its offsets; what does not end is cut off at MORE_BITS bits too many.
        """
        rows, columns = self.sizes
        pairs = torch.cartesian_prod(torch.tensor(rows), torch.tensor(columns))
        longest, M = pairs.amax(1), int(pairs.max()) + MORE_BITS + 1
        alone, together, lengths = [], [], []
        for pair, bits in zip(pairs, longest.tolist(), strict=True):
            problems, ensemble = self.task.every(pair[None]).trimmed(), self.offset_ensemble(model, bits)
            written = [self._write(model, problems, [offset]) for offset in ensemble]
            alone.append([_shares(faults(*both), len(FAULTS)) for both in written])
            lengths.append(np.mean([_shares((texts != END).sum(1), M) for texts, _ in written], 0))
            if model.positions.addressed:
                both = self._write(model, problems, ensemble)
                together.append([_shares(faults(*both), len(FAULTS))])

        def grid(cells):
            return np.moveaxis(np.array(cells).reshape(len(rows), len(columns), -1, len(FAULTS)), 2, 0)

        by_length = np.array([[np.mean(np.array(lengths)[longest == bits], 0) for bits in longest.unique()]])
        measured = {"fault_grid": grid(alone), "length_grid": by_length}
        return measured | ({"together_grid": grid(together)} if together else {})

    def _write(self, model, problems, ensemble):
        """What is written and the right answers, (B, bits + MORE_BITS) tokens each."""
        answers = problems.tokens[:, problems.prompts().shape[1] :]
        steps = answers.shape[1] - 1 + MORE_BITS
        written = greedy(model, problems.prompts(), steps, offsets=ensemble)
        return [F.pad(tokens, (0, steps - tokens.shape[1]), value=END) for tokens in (written, answers)]


def _shares(values: Tensor, count: int) -> np.ndarray:
    """(B,) integers -> (count,) share of each from 0 on."""
    return (torch.bincount(values, minlength=count) / len(values)).numpy()
