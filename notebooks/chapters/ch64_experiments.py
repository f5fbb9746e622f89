"""One layer of attention on padded sums, plain and modulo m: does a model go on to longer numbers? (chapter 64)"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from arithlib.experiments.base import Experiment
from arithlib.models.looped import LoopedConfig, LoopedTransformer
from arithlib.models.positions import Offsets
from arithlib.settings import of_kind
from chapters.ch64_padded_sums import PaddedSums, of_length


class PaddedObjective:
    """Mean cross-entropy of the answers of fresh sums, seeded by the step; one offset of addresses a batch."""

    def __init__(self, experiment: "PaddedExperiment"):
        self.experiment = experiment
        self.test = experiment.task.sample(experiment.test_size, experiment.apart())

    def loss(self, model: LoopedTransformer, step: int) -> Tensor:
        e = self.experiment
        generator = e.generator(step)
        text = e.task.write(e.task.sample(e.batch_size, generator))
        offset = Offsets("per batch", k=e.k).draw(1, generator)
        return F.cross_entropy(_logits(model, e.task, text, offset).transpose(1, 2), text[:, e.task.question :])

    def evaluate(self, model: LoopedTransformer) -> dict[str, float]:
        """exact_match: of sums as in training."""
        return {
            "exact_match": agreement(model, self.experiment.task, self.test, self.experiment.task.answers(self.test))
        }


def _logits(model, task, text, offset=None):
    """(B, A, V) logits of the answer's tokens."""
    return model(text[:, :-1], offset, since=task.question - 1)


@torch.no_grad()
def agreement(model: LoopedTransformer, task: PaddedSums, pairs: Tensor, answers: Tensor) -> float:
    """Share of (B, 2) operands on which greedy decoding writes these (B, A) answers, right or not."""
    text = torch.cat([task.write(pairs)[:, : task.question], answers], 1)
    return float((_logits(model, task, text).argmax(-1) == answers).all(1).double().mean())


@of_kind("padded-sums-study")
@dataclass(frozen=True, kw_only=True)
class PaddedExperiment(Experiment):
    """A small transformer on fresh sums of one kind.

    k: offsets of addresses in training are from 0 to k - 1; tests have offset 0 (`model.offset`).
    test_size: sums of each length in tests.
    """

    task: PaddedSums
    model: LoopedConfig
    k: int = 1
    batch_size: int = 128
    test_size: int = 1000

    network = LoopedTransformer

    def build(self):
        """Embeddings begin at 0.3 of torch's size, which trials with another seed learned sooner from."""
        model = super().build()
        with torch.no_grad():
            for table in (model.embedding, *model.positions.children()):
                table.weight.mul_(0.3)
        return model

    def objective(self, model, device):
        return PaddedObjective(self)

    def finish(self, model, run):
        """Shares (1, W) of sums of two numbers with exactly 1 to W digits.

        right: answered right. as_dropped: answered with what is right without the digits that training never had.
        """
        generator, task = self.apart(1), self.task
        pairs = [of_length(length, self.test_size, generator) for length in range(1, task.width + 1)]
        asked = {"right": lambda x: x, "as_dropped": task.dropped}
        return {
            name: np.array([[agreement(model, task, x, task.answers(change(x))) for x in pairs]])
            for name, change in asked.items()
        }

    @torch.no_grad()
    def add(self, model, a, b):
        if self.task.modulus is not None:
            return super().add(model, a, b)
        text = self.task.write(torch.tensor([[a, b]]))
        for place in range(self.task.question, text.shape[1]):
            text[:, place] = model(text[:, :place])[:, -1].argmax(-1)
        written = text[0, self.task.question :].tolist()
        if max(written) > 9:
            raise ValueError(f"the model answers with the tokens {written}: no number")
        return sum(digit * 10**place for place, digit in enumerate(written))
