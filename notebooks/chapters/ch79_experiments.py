"""Differences of short numbers, in two passes (chapter 79)."""

import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from arithlib.certify.subtraction import reachable
from arithlib.experiments.base import Experiment
from arithlib.models.column import ColumnConfig, ColumnTransformer
from arithlib.settings import of_kind
from chapters.ch79_differences import Differences, asking, contexts, encode, margins, written


class DifferenceObjective:
    """Cross-entropy of the answers of fresh differences at every step, seeded by the step.

    Computed on contexts: the same numbers as the model's forward, sooner.
    """

    def __init__(self, experiment: "DifferenceExperiment"):
        self.experiment = experiment
        self.held_out = self._draw(random.Random(2**31 + experiment.seed), experiment.evaluation_count)

    def _draw(self, rng, count) -> list[tuple[int, int]]:
        return [self.experiment.task.sample(rng) for _ in range(count)]

    def loss(self, model: ColumnTransformer, step: int) -> Tensor:
        e = self.experiment
        return self._loss(model, self._draw(random.Random(1_000_003 * e.seed + step), e.batch_size))

    def _loss(self, model, pairs):
        keys, following = contexts(encode(self.experiment.task, pairs))
        return F.cross_entropy(model.slot_logits(asking(keys), keys), following)

    @torch.no_grad()
    def evaluate(self, model: ColumnTransformer) -> dict[str, float]:
        """loss: on held-out texts, nats a token. exact_match: the share of them that greedy decoding gets right.

        wrong_contexts: in how many of those that can occur at any length another token leads.
        """
        texts = (encode(self.experiment.task, [pair]) for pair in self.held_out)
        right = [bool((margins(model, *contexts(text)) > 0).all()) for text in texts]
        return {
            "loss": float(self._loss(model, self.held_out)),
            "exact_match": float(np.mean(right)),
            "wrong_contexts": float((leads(model) <= 0).sum()),
        }


def leads(model: ColumnTransformer) -> Tensor:
    """(C,) by how much the right token leads in every context that `certify.subtraction` lists, logits."""
    return margins(model, *map(torch.from_numpy, reachable()))


@of_kind("difference")
@dataclass(frozen=True, kw_only=True)
class DifferenceExperiment(Experiment):
    """A transformer that sees a column at a time, on fresh differences of short numbers.

    evaluation_count: held-out differences of the training distribution.
    """

    task: Differences = Differences()
    model: ColumnConfig = ColumnConfig("difference", d_model=32, n_heads=4, d_mlp=128)
    batch_size: int = 64
    evaluation_count: int = 500

    network = ColumnTransformer

    def objective(self, model, device):
        return DifferenceObjective(self)

    def subtract(self, model, a, b):
        return self.task.read(self.task.ask(a, b) + "".join(written(model, str(a), str(b))))

    def finish(self, model, run):
        """smallest_lead: (1,) of the right token in any context that can occur, logits."""
        return {"smallest_lead": leads(model).min()[None].numpy()}
