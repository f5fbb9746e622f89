"""Long multiplication of short factors (chapter 78)."""

import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from arithlib.certify.multiplication import reachable
from arithlib.experiments.base import Experiment
from arithlib.models.column import ColumnConfig, ColumnTransformer
from arithlib.settings import of_kind
from chapters.ch78_long_multiplication import LongMultiplication, asking, contexts, continued, encode, margins


class ProductObjective:
    """Cross-entropy of the pages of fresh products at every step, seeded by the step.

    Computed on contexts: the same numbers as the model's forward, sooner.
    """

    def __init__(self, experiment: "ProductExperiment"):
        self.experiment = experiment
        self.held_out = self._draw(random.Random(2**31 + experiment.seed), experiment.evaluation_count)

    def _draw(self, rng, count) -> list[tuple[int, int]]:
        return [self.experiment.task.sample(rng) for _ in range(count)]

    def loss(self, model: ColumnTransformer, step: int) -> Tensor:
        e = self.experiment
        return self._loss(model, self._draw(random.Random(1_000_003 * e.seed + step), e.batch_size))

    def _loss(self, model, factors):
        keys, following = contexts(encode(self.experiment.task, factors))
        return F.cross_entropy(model.slot_logits(asking(keys), keys), following)

    @torch.no_grad()
    def evaluate(self, model: ColumnTransformer) -> dict[str, float]:
        """loss: on held-out pages, nats a token. exact_match: the share of them that greedy decoding gets right.

        wrong_contexts: in how many of those that can occur at any length another token leads.
        """
        pages = (encode(self.experiment.task, [factors]) for factors in self.held_out)
        right = [bool((margins(model, *contexts(page)) > 0).all()) for page in pages]
        return {
            "loss": float(self._loss(model, self.held_out)),
            "exact_match": float(np.mean(right)),
            "wrong_contexts": float((leads(model) <= 0).sum()),
        }


def leads(model: ColumnTransformer) -> Tensor:
    """(C,) by how much the right token leads in every context that `certify.multiplication` lists, logits."""
    return margins(model, *map(torch.from_numpy, reachable()))


@of_kind("long-product")
@dataclass(frozen=True, kw_only=True)
class ProductExperiment(Experiment):
    """A transformer that sees its neighbours on the page, on fresh products of short factors.

    evaluation_count: held-out products of the training distribution.
    """

    task: LongMultiplication = LongMultiplication()
    model: ColumnConfig = ColumnConfig("page", d_model=64, d_mlp=256)
    batch_size: int = 48
    evaluation_count: int = 200

    network = ColumnTransformer

    def objective(self, model, device):
        return ProductObjective(self)

    def multiply(self, model, a, b):
        n, m = len(str(a)), len(str(b))
        limit = m * (2 * (n + m) + 2) + 1
        return self.task.read(continued(model, self.task.ask(a, b), limit))

    def finish(self, model, run):
        """smallest_lead: (1,) of the right token in any context that can occur, logits."""
        return {"smallest_lead": leads(model).min()[None].numpy()}
