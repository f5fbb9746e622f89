"""Operations on short numbers, written out in full, by a model that reads slots (chapters 78 and 79)."""

import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from arithlib.contexts import context_logits, context_margins
from arithlib.experiments.base import Experiment
from arithlib.models.column import ColumnConfig, ColumnTransformer
from arithlib.tasks.written import WrittenOperation


class WrittenObjective:
    """Cross-entropy of what is written of fresh problems at every step, seeded by the step.

    Computed on contexts: the same numbers as the model's forward, sooner.
    """

    def __init__(self, experiment: "WrittenExperiment"):
        self.experiment = experiment
        self.held_out = self._draw(random.Random(2**31 + experiment.seed), experiment.evaluation_count)

    def _draw(self, rng, count) -> list[tuple[int, int]]:
        return [self.experiment.task.sample(rng) for _ in range(count)]

    def loss(self, model: ColumnTransformer, step: int) -> Tensor:
        e = self.experiment
        return self._loss(model, self._draw(random.Random(1_000_003 * e.seed + step), e.batch_size))

    def _loss(self, model, pairs):
        task = self.experiment.task
        keys, following = task.contexts(task.encode(pairs))
        return F.cross_entropy(context_logits(model, keys), following)

    @torch.no_grad()
    def evaluate(self, model: ColumnTransformer) -> dict[str, float]:
        """loss: on held-out texts, nats a token. exact_match: the share of them that greedy decoding gets right.

        wrong_contexts: in how many of those that can occur at any length another token leads.
        """
        task = self.experiment.task
        texts = (task.encode([pair]) for pair in self.held_out)
        right = [bool((context_margins(model, *task.contexts(text)) > 0).all()) for text in texts]
        wrong = context_margins(model, *task.every_context()) <= 0
        return {
            "loss": float(self._loss(model, self.held_out)),
            "exact_match": float(np.mean(right)),
            "wrong_contexts": float(wrong.sum()),
        }


@dataclass(frozen=True, kw_only=True)
class WrittenExperiment(Experiment):
    """A transformer that reads slots, on fresh problems of short numbers.

    evaluation_count: held-out problems of the training distribution.
    """

    task: WrittenOperation
    model: ColumnConfig
    batch_size: int
    evaluation_count: int

    network = ColumnTransformer

    def objective(self, model, device):
        return WrittenObjective(self)

    def finish(self, model, run):
        """smallest_lead: (1,) of the right token in any context that can occur, logits."""
        return {"smallest_lead": context_margins(model, *self.task.every_context()).min()[None].numpy()}
