"""Experiments with column transformers (part 7): trained on sums of at most ten digits, meant for any length.

arithlib train adder-live             a quarter of a minute on one core
arithlib train "adder-windowed-s*"   a minute each on one core
arithlib train "adder-wide-s*"       a minute each on one core
arithlib train "adder-unwindowed-s*" 2 minutes each on one core
arithlib train "adder-flat-s*"       2 minutes each on one core
arithlib train "adder-scaled-s*"     2 minutes each on one core
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from arithlib.experiments.base import Experiment
from arithlib.models.column import ColumnConfig, ColumnTransformer
from arithlib.settings import of_kind
from arithlib.streaming import add, columns, context_logits, contexts, margins, slots
from arithlib.tasks.operands import OperandTask
from arithlib.training import ScheduledAdamW


class AdderObjective:
    """Cross-entropy of the answers of fresh sums at every step, seeded by the step.

    Computed on the answer's tokens alone, with the keys that each can see: the same numbers as the model's forward,
    sooner (`arithlib.streaming`).
    """

    def __init__(self, experiment: "AdderExperiment", model: ColumnTransformer):
        self.experiment, self.generator = experiment, torch.Generator()
        self.slots = slots(model, experiment.task.max_digits + 2)
        held_out = torch.Generator().manual_seed(2**31 + experiment.data_seed)
        self.held_out = experiment.task.sample(experiment.evaluation_count, held_out)

    def loss(self, model: ColumnTransformer, step: int) -> Tensor:
        e = self.experiment
        problems = e.task.sample(e.batch_size, self.generator.manual_seed((1_000_003 * e.data_seed + step) % 2**32))
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
    data_seed: int = 0
    evaluation_count: int = 1000

    def build(self):
        return ColumnTransformer(self.model, self.model_seed)

    def objective(self, model, device):
        return AdderObjective(self, model)

    def add(self, model, a, b):
        return add(model, a, b)


# ---- presets -----------------------------------------------------------------------------------------------------


def preset(name, about, steps, seed, *, lr=1e-2, **more):
    """An experiment whose rate warms up over a twentieth of its steps and falls to zero along a cosine."""
    return AdderExperiment(
        name=name,
        about=about,
        steps=steps,
        evaluate_every=steps // 25,
        model_seed=seed,
        data_seed=seed,
        optimizer=ScheduledAdamW(lr=lr, steps=steps, warmup_steps=steps // 20, weight_decay=0.0),
        **more,
    )


def presets():
    """Every experiment of part 7, in the order in which `arithlib list` prints them."""
    yield preset("adder-live", "windowed, trained while the book is built (chapter 70)", 2000, 0)
    for seed in range(5):
        yield preset(f"adder-short-s{seed}", "windowed, half as long: half a minute (chapter 70)", 3000, seed)
    for seed in range(5):
        yield preset(f"adder-windowed-s{seed}", "attention within one column: a minute (part 7)", 6000, seed)
    yield preset("adder-certified", "a windowed one to use: `arithlib add adder-certified A B` (part 7)", 3000, 5)
    for seed in range(5):
        yield preset(
            f"adder-wide-s{seed}", "the same with twice the neurons: a minute (part 7)", 6000, seed,
            model=ColumnConfig(d_mlp=128),
        )  # fmt: skip
    for seed in range(3):
        yield preset(
            f"adder-unwindowed-s{seed}", "softmax over every token, with a learned decay: 2 minutes (part 7)", 3000,
            seed, model=ColumnConfig("alibi"),
        )  # fmt: skip
    for seed in range(3):
        yield preset(
            f"adder-flat-s{seed}", "softmax over every token, and nothing that fades: 2 minutes (chapter 71)", 3000,
            seed, model=ColumnConfig("full"),
        )  # fmt: skip
    for seed in range(3):
        yield preset(
            f"adder-scaled-s{seed}", "flat, with all scores times log n: 2 minutes (chapter 71)", 3000,
            seed, model=ColumnConfig("log-scaled"),
        )  # fmt: skip
