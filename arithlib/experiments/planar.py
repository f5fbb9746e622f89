"""Sums of many numbers: addresses in the plane, and on a line for comparison (chapter 74).

arithlib train "planar-rows-s*"      half a minute each on one core
arithlib train "planar-columns-s*"   half a minute each on one core
arithlib train "planar-label-s*"     one to two minutes each on one core, as planar-index and planar-token
"""

import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from arithlib.experiments.base import Experiment
from arithlib.grid import answer_mask, context_logits, context_margins, contexts, margins, right_by_line, total
from arithlib.models.column import ColumnConfig, ColumnTransformer
from arithlib.settings import of_kind
from arithlib.tasks.situations import every_situation
from arithlib.tasks.totals import RunningTotals, of_length
from arithlib.tokenizer import END, CharacterTokenizer
from arithlib.training import ScheduledAdamW


def encode(task: RunningTotals, sums: list[list[int]]) -> Tensor:
    """(B, T) tokens of the whole texts of B sums, filled up with end tokens."""
    return CharacterTokenizer().encode_batch([task.write(numbers) for numbers in sums], end=False)


class PlanarObjective:
    """Cross-entropy of the answers of fresh sums at every step, seeded by the step.

    Computed on contexts where addresses lie in the plane: the same numbers as the model's forward, sooner.
    """

    def __init__(self, experiment: "PlanarExperiment"):
        self.experiment = experiment
        rng = random.Random(2**31 + experiment.data_seed)
        self.held_out = self._draw(rng, experiment.evaluation_count)

    def _draw(self, rng, count):
        return encode(self.experiment.task, [self.experiment.task.sample(rng) for _ in range(count)])

    def loss(self, model: ColumnTransformer, step: int) -> Tensor:
        e = self.experiment
        return self._loss(model, self._draw(random.Random(1_000_003 * e.data_seed + step), e.batch_size))

    def _loss(self, model, tokens):
        if model.config.positions == "grid":
            query, keys, following = contexts(tokens, model.config.window)
            return F.cross_entropy(context_logits(model, query, keys), following)
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
    data_seed: int = 0
    evaluation_count: int = 500

    def build(self):
        return ColumnTransformer(self.model, self.model_seed)

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
            keys, following = every_situation()
            lead = context_margins(model, keys[:, 5], keys, following)
            found |= {"wrong_situations": (lead <= 0).sum()[None].numpy(), "smallest_lead": lead.min()[None].numpy()}
        return found


# ---- presets -----------------------------------------------------------------------------------------------------


def preset(name, about, seed, steps=1500, evaluate_every=150, **more):
    """An experiment whose rate warms up over a twentieth of its steps and falls to zero along a cosine."""
    return PlanarExperiment(
        name=name, about=f"{about} (chapter 74)", steps=steps, evaluate_every=evaluate_every, model_seed=seed,
        data_seed=seed, optimizer=ScheduledAdamW(lr=1e-2, steps=steps, warmup_steps=steps // 20, weight_decay=0.0),
        **more,
    )  # fmt: skip


def presets():
    """Every experiment of chapter 74, in the order in which `arithlib list` prints them."""
    yield preset("planar-live", "addresses in the plane, trained while the book is built", 5)
    for seed in range(3):
        yield preset(
            f"planar-rows-s{seed}", "sums of many numbers, addresses in the plane", seed, steps=3000,
            evaluate_every=300,
        )  # fmt: skip
        yield preset(f"planar-short-s{seed}", "the same for half as long", seed, ships_weights=False)
        yield preset(
            f"planar-columns-s{seed}", "the same, written by columns", seed, steps=3000, evaluate_every=300,
            task=RunningTotals(layout="columns"),
        )  # fmt: skip
    for name, positions, about in (
        ("label", "line-label", "places, and a learned vector for each line"),
        ("index", "column-only", "places alone, lines look alike"),
        ("token", "distance", "distances in tokens, no table"),
    ):
        for seed in range(3):
            yield preset(
                f"planar-{name}-s{seed}", about, seed, model=ColumnConfig(positions, d_mlp=128),
                evaluate_every=500, ships_weights=False,
            )  # fmt: skip
