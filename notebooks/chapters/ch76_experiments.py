"""What holds a small transformer back from adding: tokens, order, addresses, memory (chapter 76)."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from arithlib.experiments.base import Experiment
from arithlib.models.looped import GivenAddresses, LoopedConfig
from arithlib.settings import of_kind
from arithlib.tasks.operands import digits_of
from chapters.ch76_formats import Format, Written, draw_carrying, draw_sums

# Offsets are drawn below this in training, so that rows far beyond the longest text of training are trained.
OFFSETS = 30
# The offset of every test: the longest test at it needs no row that training did not show.
OFFSET = 8


class BarrierObjective:
    """Mean cross-entropy of the tokens of the answers of fresh sums, seeded by the step."""

    def __init__(self, experiment: "BarrierExperiment"):
        self.experiment = experiment

    def loss(self, model: GivenAddresses, step: int) -> Tensor:
        e = self.experiment
        generator = e.generator(step)
        lengths = torch.randint(1, e.max_digits + 1, (e.batch_size, 2), generator=generator)
        sums = e.format.write(*draw_sums(lengths, generator).unbind(1))
        logits = self._logits(model, sums, torch.randint(OFFSETS, (e.batch_size, 1), generator=generator))
        right = sums.tokens[:, sums.question :]
        return F.cross_entropy(logits[sums.answer], right[sums.answer])

    @torch.no_grad()
    def evaluate(self, model: GivenAddresses) -> dict[str, np.ndarray]:
        """exact_match: on sums of the longest operands of training."""
        generator = self.experiment.apart()
        lengths = torch.full((self.experiment.evaluation_count, 2), self.experiment.max_digits)
        return {"exact_match": self.share(model, draw_sums(lengths, generator))}

    def share(self, model: GivenAddresses, operands: Tensor) -> float:
        """(B, 2, N) digits -> share of sums with the whole answer right; the model reads the right one as it goes.

        That is the share that greedy decoding gets right, too: up to its first mistake it reads the same tokens.
        """
        return float(self.right(model, operands).all(1).double().mean())

    @torch.no_grad()
    def right(self, model: GivenAddresses, operands: Tensor, window: int | None = None) -> Tensor:
        """(B, 2, N) digits -> (B, A) whether each token of the answer is right; True on filling.

        window: how many tokens before itself a token sees, in every layer; None for all.
        """
        sums = self.experiment.format.write(*operands.unbind(1))
        said = self._logits(model, sums, torch.tensor([[OFFSET]]), window).argmax(-1)
        return (said == sums.tokens[:, sums.question :]) | ~sums.answer

    def _logits(self, model, sums: Written, offset, window=None):
        """(B, A, V) logits of the answer's tokens."""
        T, bias = sums.tokens.shape[1] - 1, None
        if window is not None:
            bias = torch.full((1, T, T), -torch.inf).tril(-window - 1)
        return model(sums.tokens[:, :-1], sums.moved(offset)[:, :-1], bias)[:, sums.question - 1 :]


@of_kind("formats")
@dataclass(frozen=True, kw_only=True)
class BarrierExperiment(Experiment):
    """A transformer on fresh sums of two numbers of 1 to `max_digits` digits each, written in one format.

    evaluation_count: sums of each kind in tests.
    """

    format: Format
    model: LoopedConfig
    max_digits: int = 4
    batch_size: int = 64
    evaluation_count: int = 200

    network = GivenAddresses

    def objective(self, model, device):
        return BarrierObjective(self)

    @torch.no_grad()
    def add(self, model, a, b):
        # A batch of training is as wide as its longest operand, so that shorter ones were always read with filling.
        width = max(self.max_digits, len(str(a)), len(str(b)))
        sums = self.format.write(digits_of([a], width), digits_of([b], width))
        tokens, address = sums.tokens.clone(), sums.moved(torch.tensor([[OFFSET]]))
        if int(address.max()) >= self.model.n_rows:
            raise ValueError(f"{width} digits are too many: the table of addresses ends at {self.model.n_rows - 1}")
        end = sums.question + int(sums.answer.sum())
        for place in range(sums.question, end):
            tokens[:, place] = model(tokens[:, :place], address[:, :place])[:, -1].argmax(-1)
        return self.format.read(tokens[0, sums.question : end])

    def finish(self, model, run):
        """by_length: (1, 2 D) share of right sums, both operands having 1 to 2 D digits, D = max_digits.

        by_carries: (1, 2 D, 2 D + 1) the same where exactly so many columns carry; nan where there are more than
        digits.
        """
        objective, longest = self.objective(model, None), 2 * self.max_digits
        generator = self.apart(1)
        by_length, by_carries = np.empty(longest), np.full((longest, longest + 1), np.nan)
        for length in range(1, longest + 1):
            lengths = torch.full((5 * self.evaluation_count, 2), length)
            by_length[length - 1] = objective.share(model, draw_sums(lengths, generator))
            for carried in range(length + 1):
                operands = draw_carrying(length, torch.full((self.evaluation_count,), carried), generator)
                by_carries[length - 1, carried] = objective.share(model, operands)
        return {"by_length": by_length[None], "by_carries": by_carries[None]}
