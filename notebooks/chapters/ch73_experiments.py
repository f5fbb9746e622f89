"""Adders of as few weights as we could train (chapter 73)."""

from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from arithlib.experiments.base import Experiment
from arithlib.models.column import ColumnConfig, ColumnTransformer, kept_weights, resize
from arithlib.settings import of_kind
from arithlib.streaming import add, columns, context_logits, contexts, slots
from arithlib.tasks.operands import OperandTask
from arithlib.tasks.worst_case_sums import covering_sums

LAST_SLOT = -1  # of `slots`: the answer token itself
HARDEST_EVERY = 100  # steps after which the hardest situations are looked for again


def situations(slots: tuple[Tensor, Tensor], a: Tensor, b: Tensor) -> Tensor:
    """(B, N) digits of operands -> (M, S + 1) the tokens that decide each answer token, and that token."""
    lines = columns(a, b)
    _, keys, following = contexts(lines, *slots, 0, lines.shape[2] - 1)
    return torch.cat([keys, following[:, None]], 1)


@lru_cache
def every_context() -> Tensor:
    """(24518, S + 1) all that can occur, found in sums of at most four digits."""
    model = ColumnTransformer(ColumnConfig(d_model=1, n_heads=1, d_mlp=1))
    return situations(slots(model, 1), *covering_sums()).unique(dim=0)


class Answering(nn.Module):
    """`context_logits` as a forward pass, which is what functional_call can call."""

    def __init__(self, model: ColumnTransformer):
        super().__init__()
        self.model, self.slots = model, slots(model, 1)

    def forward(self, keys: Tensor) -> Tensor:
        return context_logits(self.model, keys[:, LAST_SLOT], keys, *self.slots)


class TinyObjective:
    """Cross-entropy on situations as random sums bring them about, while the scaffold fades out.

    The scaffold is what the model has beyond the final size (`kept` is one on weights of that size, else zero), and
    `share` what is left of it: all during the first tenth of the steps, nothing after half of them, a straight line
    between. From then on half of each batch comes from the situations with the largest losses.
    """

    def __init__(self, experiment: "TinyExperiment", model: ColumnTransformer):
        e = self.experiment = experiment
        self.kept, self.share = kept_weights(model, e.model), 0.0
        self.answering = Answering(model)
        drawn = torch.Generator().manual_seed(e.seed)
        problems = e.task.sample(e.sums, drawn)
        self.pool, self.every = situations(self.answering.slots, problems.a, problems.b), every_context()
        self.hard = None

    def loss(self, model: ColumnTransformer, step: int) -> Tensor:
        situations = self.batch(step)
        return F.cross_entropy(self._logits(situations), situations[:, -1])

    def batch(self, step: int) -> Tensor:
        """(B, S + 1) what is trained on at this step; sets `share`."""
        e = self.experiment
        self.share = min(max((0.5 - step / e.steps) / 0.4, 0.0), 1.0)
        generator = e.generator(step)
        batch = self.pool[torch.randint(len(self.pool), (e.batch_size,), generator=generator)]
        if self.share == 0:
            if self.hard is None or step % HARDEST_EVERY == 0:
                self.hard = self._hardest()
            batch[::2] = self.hard[torch.randint(len(self.hard), (len(batch[::2]),), generator=generator)]
        return batch

    @torch.no_grad()
    def _hardest(self):
        losses = F.cross_entropy(self._logits(self.every), self.every[:, -1], reduction="none")
        return self.every[losses.topk(2 * self.experiment.batch_size).indices]

    def _logits(self, situations):
        weights = dict(self.answering.model.named_parameters())
        if self.share < 1:
            weights = {
                name: value * (self.share + (1 - self.share) * self.kept[name]) for name, value in weights.items()
            }
        return functional_call(self.answering, {f"model.{n}": w for n, w in weights.items()}, (situations[:, :-1],))

    @torch.no_grad()
    def evaluate(self, model: ColumnTransformer) -> dict[str, float]:
        """On every situation that there is: loss in nats, and in how many the first choice is wrong."""
        logits = self._logits(self.every)
        wrong = int((logits.argmax(1) != self.every[:, -1]).sum())
        return {"loss": float(F.cross_entropy(logits, self.every[:, -1])), "wrong": wrong}


@of_kind("tiny")
@dataclass(frozen=True, kw_only=True)
class TinyExperiment(Experiment):
    """A tiny adder, trained inside a wider one (`scaffold`) which fades out.

    sums: random sums whose situations are trained on; every pair of operand lengths is equally likely.
    """

    task: OperandTask = OperandTask(max_digits=10)
    model: ColumnConfig
    scaffold: ColumnConfig = ColumnConfig(d_model=8, n_heads=1, d_mlp=16, tied=True)
    batch_size: int = 256
    sums: int = 50_000

    def build(self):
        return resize(self.initial(), self.scaffold)

    def initial(self) -> ColumnTransformer:
        """The model of the final size, around which the scaffold is built."""
        return ColumnTransformer(self.model, self.seed)

    def objective(self, model, device):
        return TinyObjective(self, model)

    def add(self, model, a, b):
        return add(model, a, b)

    def kept_model(self, model):
        return resize(model, self.model)


@of_kind("tiny-polished")
@dataclass(frozen=True, kw_only=True)
class PolishExperiment(TinyExperiment):
    """The same once more without a scaffold, from where another experiment ended. start: its name."""

    start: str

    def initial(self):
        from arithlib import checkpoints  # it imports the experiments

        return checkpoints.read(self.start).model
