"""Sums of many numbers: addresses in the plane, and on a line for comparison (chapter 74)."""

import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from arithlib.experiments.base import Experiment
from arithlib.models.column import ColumnConfig, ColumnTransformer
from arithlib.settings import of_kind
from arithlib.tasks.operands import of_length
from arithlib.tokenizer import END, CharacterTokenizer
from chapters.ch74_contexts import every_context
from chapters.ch74_grid import answer_mask, context_margins, contexts, margins, right_by_line, total
from chapters.ch74_running_totals import RunningTotals


def encode(task: RunningTotals, sums: list[list[int]]) -> Tensor:
    """(B, T) tokens of the whole texts of B sums, filled up with end tokens."""
    return CharacterTokenizer().encode_batch([task.write(numbers) for numbers in sums], end=False)


class PlanarObjective:
    """Cross-entropy of the answers of fresh sums at every step, seeded by the step.

    Computed on contexts where addresses lie in the plane: the same numbers as the model's forward, sooner.
    """

    def __init__(self, experiment: "PlanarExperiment"):
        self.experiment = experiment
        rng = random.Random(2**31 + experiment.seed)
        self.held_out = self._draw(rng, experiment.evaluation_count)

    def _draw(self, rng, count):
        return encode(self.experiment.task, [self.experiment.task.sample(rng) for _ in range(count)])

    def loss(self, model: ColumnTransformer, step: int) -> Tensor:
        e = self.experiment
        return self._loss(model, self._draw(random.Random(1_000_003 * e.seed + step), e.batch_size))

    def _loss(self, model, tokens):
        if model.config.positions == "grid":
            query, keys, following = contexts(tokens, model.config.window)
            return F.cross_entropy(model.slot_logits(query, keys), following)
        by_length = (tokens != END).sum(1).argsort().chunk(4)  # less filling to compute on
        logits, following = zip(*(_asked(model, tokens[rows]) for rows in by_length), strict=True)
        return F.cross_entropy(torch.cat(logits), torch.cat(following))

    @torch.no_grad()
    def evaluate(self, model: ColumnTransformer) -> dict[str, float]:
        """On held-out sums: loss in nats a token, and exact_match, the share that greedy decoding gets right."""
        exact = margins(model, self.held_out) > 0
        return {"loss": float(self._loss(model, self.held_out)), "exact_match": float(exact.double().mean())}


def _asked(model, tokens):
    """Logits after each token after which an answer goes on, and what follows there."""
    tokens = tokens[:, : int((tokens != END).sum(1).max()) + 1]
    asks = answer_mask(tokens)[:, :-1]
    return model(tokens[:, :-1])[asks], tokens[:, 1:][asks]


def beyond(task: RunningTotals, sums: int = 100) -> dict[str, list[list[int]]]:
    """Sums of the largest size of training, of twice its digits, twice its numbers, and twice both; any lengths."""
    rng, d, n = random.Random(0), task.max_digits, task.max_count
    sizes = {
        "as trained": (d, n),
        "twice the digits": (2 * d, n),
        "twice the numbers": (d, 2 * n),
        "twice both": (2 * d, 2 * n),
    }
    return {
        name: [[of_length(rng.randint(1, digits), rng) for _ in range(count)] for _ in range(sums)]
        for name, (digits, count) in sizes.items()
    }  # fmt: skip


@of_kind("planar")
@dataclass(frozen=True, kw_only=True)
class PlanarExperiment(Experiment):
    """A transformer with addresses in the plane, or on a line, on fresh sums with running totals.

    evaluation_count: held-out sums of the training distribution.
    """

    task: RunningTotals = RunningTotals()
    model: ColumnConfig = ColumnConfig("grid", d_mlp=128)
    batch_size: int = 48
    evaluation_count: int = 500

    network = ColumnTransformer

    def objective(self, model, device):
        return PlanarObjective(self)

    def add(self, model, a, b):
        return total(model, self.task, [a, b])

    def finish(self, model, run):
        """What the weights of comparisons are not shipped for: `beyond_right`, the share of right sums of `beyond`;
        `line_right`, of right tokens by line with twice the numbers. Of rows in the plane also `wrong_situations` and
        `smallest_lead`, over every situation.
        """
        texts = {name: encode(self.task, sums) for name, sums in beyond(self.task).items()}
        right = [float((margins(model, tokens) > 0).double().mean()) for tokens in texts.values()]
        found = {
            "beyond_right": np.array(right), "line_right": right_by_line(model, texts["twice the numbers"]).numpy(),
        }  # fmt: skip
        if self.model.positions == "grid" and self.task.layout == "rows":
            keys, following = every_context()
            lead = context_margins(model, keys[:, 5], keys, following)
            found |= {"wrong_situations": (lead <= 0).sum()[None].numpy(), "smallest_lead": lead.min()[None].numpy()}
        return found
