"""Experiments with column transformers (part 7): trained on sums of at most ten digits, meant for any length."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from arithlib.experiments.base import Experiment
from arithlib.models.column import ColumnConfig, ColumnTransformer
from arithlib.settings import of_kind
from arithlib.streaming import add, columns, context_logits, contexts, margins, slots
from arithlib.tasks.operands import OperandTask


class AdderObjective:
    """Cross-entropy of the answers of fresh sums at every step, seeded by the step.

    Computed on the answer's tokens alone, with the keys that each can see: the same numbers as the model's forward,
    sooner (`arithlib.streaming`).
    """

    def __init__(self, experiment: "AdderExperiment", model: ColumnTransformer):
        self.experiment = experiment
        self.slots = slots(model, experiment.task.max_digits + 2)
        self.held_out = experiment.task.sample(experiment.evaluation_count, experiment.apart())

    def loss(self, model: ColumnTransformer, step: int) -> Tensor:
        e = self.experiment
        problems = e.task.sample(e.batch_size, e.generator(step))
        return self._loss(model, problems)

    def _loss(self, model, problems):
        lines = columns(problems.a, problems.b)
        query, keys, following = contexts(lines, *self.slots, 0, lines.shape[2] - 1)
        return F.cross_entropy(context_logits(model, query, keys, *self.slots), following)

    @torch.no_grad()
    def evaluate(self, model: ColumnTransformer) -> dict[str, float]:
        """On held-out sums: loss in nats a token, and exact_match, the share that greedy decoding gets right."""
        exact = margins(model, self.held_out.a, self.held_out.b) > 0
        return {"loss": float(self._loss(model, self.held_out)), "exact_match": float(exact.double().mean())}


@of_kind("adder")
@dataclass(frozen=True, kw_only=True)
class AdderExperiment(Experiment):
    """A column transformer on fresh sums; every pair of operand lengths is equally likely.

    evaluation_count: held-out sums of the training distribution.
    """

    task: OperandTask = OperandTask(max_digits=10)
    model: ColumnConfig = ColumnConfig()
    batch_size: int = 48
    evaluation_count: int = 1000

    network = ColumnTransformer

    def objective(self, model, device):
        return AdderObjective(self, model)

    def add(self, model, a, b):
        return add(model, a, b)
