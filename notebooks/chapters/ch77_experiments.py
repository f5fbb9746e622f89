"""Adders with learned rows or rotary angles for addresses (chapter 77)."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from arithlib.decoding import complete
from arithlib.experiments.base import Experiment
from arithlib.models.column import ColumnConfig, ColumnTransformer
from arithlib.models.positions import Offsets
from arithlib.settings import of_kind
from arithlib.tasks.operands import OperandTask, Problems

# A batch in so many groups of similar length has less filling to compute on.
GROUPS = 3


class ContrastObjective:
    """Cross-entropy of the answers of fresh sums at every step, seeded by the step; one offset a batch.

    Held-out sums have an offset each.
    """

    def __init__(self, experiment: "ContrastExperiment"):
        e = self.experiment = experiment
        held_out = e.apart()
        self.held_out = e.task.sample(e.evaluation_count, held_out)
        self.held_out_offset = Offsets("per sample", k=e.k).draw(e.evaluation_count, held_out)

    def loss(self, model: ColumnTransformer, step: int) -> Tensor:
        e = self.experiment
        generator = e.generator(step)
        problems = e.task.sample(e.batch_size, generator)
        offset = Offsets("per batch", k=e.k).draw(e.batch_size, generator)
        parts = [answers(model, part, offset) for part in problems.by_length(GROUPS)]
        return F.cross_entropy(*map(torch.cat, zip(*parts, strict=True)))

    @torch.no_grad()
    def evaluate(self, model: ColumnTransformer) -> dict[str, float]:
        """On held-out sums: loss in nats a token, and exact_match, the share that greedy decoding gets right."""
        logits, following = answers(model, self.held_out, self.held_out_offset)
        row = self.held_out.answer_mask.nonzero()[:, 0]
        wrong = torch.zeros(len(self.held_out)).index_add_(0, row, (logits.argmax(1) != following).float())
        return {"loss": float(F.cross_entropy(logits, following)), "exact_match": float((wrong == 0).double().mean())}


def answers(model: ColumnTransformer, problems: Problems, offset: Tensor) -> tuple[Tensor, Tensor]:
    """(N, V) logits after every token that an answer goes on after, and (N,) what follows there."""
    asks = problems.answer_mask[:, 1:]
    return model(problems.tokens[:, :-1], offset)[asks], problems.tokens[:, 1:][asks]


@of_kind("contrast")
@dataclass(frozen=True, kw_only=True)
class ContrastExperiment(Experiment):
    """An adder on fresh sums; every pair of operand lengths is equally likely.

    k: offsets in training are from 0 to k - 1, one a batch; only tables feel them.
    evaluation_count: held-out sums of the training distribution.
    """

    task: OperandTask = OperandTask(max_digits=10)
    model: ColumnConfig
    k: int = 1
    batch_size: int = 48
    evaluation_count: int = 1000

    network = ColumnTransformer

    def objective(self, model, device):
        return ContrastObjective(self)

    def add(self, model, a, b):
        longest = max(len(str(a)), len(str(b)))
        return self.task.read(complete(model, self.task.ask(a, b), longest + 2))
