"""Adders whose weights all follow from a few trained numbers, found by damped Newton steps (chapter 73).

Ten digits lie on an arc of a circle, and ways of use that should be alike share their numbers: both operands, all
signs, reading and writing. Attention goes by place alone, and may rest on a sink. `expand` writes such numbers out as
the weights of a `ColumnTransformer`, which can then be decoded, certified and checked as any other.

Dimensions: S starts, n trained numbers, C contexts that there are, B of a batch, V vocabulary, D d_model, F d_mlp.
"""

import time
from dataclasses import dataclass
from math import prod

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call, jacfwd, vmap
from tqdm.auto import tqdm

from arithlib.certify import checker
from arithlib.certify.addition import examine, reachable
from arithlib.experiments.base import Experiment
from arithlib.models.column import ColumnConfig, ColumnTransformer
from arithlib.settings import of_kind
from arithlib.streaming import add
from arithlib.tokenizer import ABSENT, ALPHABET, END
from arithlib.training import Run, bar_options, subnormals_as_zero
from chapters.ch73_experiments import Answering, every_context

GAIN = 10.0  # of what attention reads: a constant, without which values would have to grow for long
LAST = 18  # the smallest sum of ten or more that is trained on at first
LEARNED, PATIENCE = 0.05, 60  # the next smaller one is admitted at this loss, or after so many steps
CUTS = {60: 10, 150: 8, 400: 6, 600: 4, 1000: 2}  # step -> how many starts go on, those that are furthest
LAST_PHASE, LARGER = 1000, 4  # from that step on batches are so many times as large, and of what is hard alone
REMEMBERED = 0.8  # of the running mean of a start's losses, at each step
FARTHEST = 2.0  # that one step may go
PENALTY = 1e-6  # on the square of the numbers: without it they grow until float32 cannot tell the leads


# ---- from the numbers to the weights -----------------------------------------------------------------------------


def shapes(config: ColumnConfig) -> dict[str, tuple[int, ...]]:
    """What the numbers are, in order. arc: its radius, the angle of digit 0, the angle between digits."""
    D, F = config.d_model, config.d_mlp
    return {
        "arc": (3,),
        "end": (D,),
        "signs": (D,),
        "numbers": (2, D),  # of an operand and of the answer
        "near": (3,),  # scores of the column asked for, of the one before in operands, and there in the answer
        "value": (D, D),
        "value_bias": (D,),
        "mlp_in": (F, D),
        "mlp_bias": (F,),
        "mlp_out": (D, F),
    }


def count(config: ColumnConfig) -> int:
    """n, how many numbers are trained."""
    return sum(map(prod, shapes(config).values()))


def named(numbers: Tensor, config: ColumnConfig) -> dict[str, Tensor]:
    """(n,) numbers by name, in their shapes."""
    parts = numbers.split([prod(shape) for shape in shapes(config).values()])
    return {name: part.view(shape) for part, (name, shape) in zip(parts, shapes(config).items(), strict=True)}


def expand(numbers: Tensor, config: ColumnConfig) -> dict[str, Tensor]:
    """(n,) numbers -> all weights of a `ColumnTransformer` of these sizes."""
    p, D = named(numbers, config), config.d_model
    radius, first, step = p["arc"]
    angle = first + step * torch.arange(10)
    digits = F.pad(radius * torch.stack([angle.cos(), angle.sin()], 1), (0, D - 2))
    embedding = torch.cat([digits, p["signs"].expand(4, D), p["end"][None]])
    operand, answer = p["numbers"]
    next_column, column, own = p["near"]
    unused, nothing = torch.zeros(()), torch.zeros(D)
    by_number = [torch.stack([next_column, column])] * 2 + [torch.stack([unused, own]), torch.stack([unused, unused])]
    return {
        "embedding.weight": embedding,
        "numbers.weight": torch.stack([operand, operand, answer, nothing]),
        "near": torch.stack(by_number)[None],
        "qkv.weight": torch.cat([torch.zeros(2 * D, D), p["value"]]),
        "qkv.bias": torch.cat([torch.zeros(2 * D), p["value_bias"]]),
        "out.weight": GAIN * torch.eye(D),
        "mlp_in.weight": p["mlp_in"],
        "mlp_in.bias": p["mlp_bias"],
        "mlp_out.weight": p["mlp_out"],
        "mlp_out.bias": nothing,
        "unembedding.weight": embedding,
        "unembedding.bias": torch.zeros(len(ALPHABET)),
        "sink": torch.zeros(1),
    }


def initial(config: ColumnConfig, starts: int, generator: torch.Generator) -> Tensor:
    """(S, n) normal numbers, except for the arc: it begins anywhere, short and with a radius of about one."""
    numbers = torch.randn(starts, count(config), generator=generator)
    numbers[:, 0] = 1 + 0.3 * numbers[:, 0]
    numbers[:, 2] *= 0.3
    spread = {"value": config.d_model, "mlp_in": config.d_model, "mlp_out": config.d_model}
    for row in numbers:
        for name, inputs in spread.items():
            named(row, config)[name].div_(inputs**0.5)
    return numbers


# ---- what is trained on ------------------------------------------------------------------------------------------


def column_sums() -> Tensor:
    """(C,) of every context, the sum of the column asked for, its carry included; 0 where the end is due."""
    contexts = every_context()
    keys, right = contexts[:, :-1], contexts[:, -1]
    digits = keys[:, [0, 2]].clamp(min=0).sum(1)  # the first and third slots of `Answering`: the next column
    carry = torch.where(right == END, 0, (right - digits) % 10)
    return digits + carry


def curriculum() -> Tensor:
    """(LAST + 1 - 10, C) how likely a context is drawn, by the smallest sum from ten on that is admitted, from 10 on.

    Half of a batch are sums below ten, half those admitted; the newest counts twice. So the step back by ten can be
    gentle at first, from 9 to 8 at 18, and grows steep as what lies between is filled in. Columns of two digits, one
    and none are a half, three tenths and a fifth.
    """
    sums, keys = column_sums(), every_context()[:, :-1]
    digits = (keys[:, [0, 2]] != ABSENT).sum(1)
    weights = torch.zeros(LAST + 1 - 10, len(sums))
    for row, smallest in zip(weights, range(10, LAST + 1), strict=True):
        for having, share in ((2, 0.5), (1, 0.3), (0, 0.2)):
            below, above = (part & (digits == having) for part in (sums < 10, sums >= smallest))
            for part in (below, above) if above.any() else (below,):
                row[part] = share / part.sum() * (0.5 if above.any() else 1.0)
        row[sums == smallest] *= 2
    return weights


# ---- training ----------------------------------------------------------------------------------------------------


class Stack:
    """S starts that are trained side by side, each on batches of its own."""

    def __init__(self, config: ColumnConfig, numbers: Tensor):
        self.config, self.numbers = config, numbers
        self.damping = torch.ones(len(numbers))
        self.answering = Answering(ColumnTransformer(config).eval().requires_grad_(False))
        self.contexts = every_context()
        self.logits_of = vmap(self.answer)
        self.slopes_of = vmap(jacfwd(self.answer))

    def answer(self, numbers: Tensor, contexts: Tensor) -> Tensor:
        """(n,) numbers and (B, 6) contexts with the token that is right -> (B, V) logits."""
        weights = {f"model.{name}": weight for name, weight in expand(numbers, self.config).items()}
        return functional_call(self.answering, weights, (contexts[:, :-1],))

    def losses(self) -> Tensor:
        """(S, C) cross-entropy of every context, in nats."""
        logits = vmap(self.answer, (0, None))(self.numbers, self.contexts)
        right = self.contexts[:, -1].repeat(len(self.numbers))
        return F.cross_entropy(logits.flatten(0, 1), right, reduction="none").view(len(self.numbers), -1)

    def wrong(self) -> Tensor:
        """(S,) in how many contexts the first choice is wrong."""
        logits = vmap(self.answer, (0, None))(self.numbers, self.contexts)
        return (logits.argmax(2) != self.contexts[:, -1]).sum(1)

    def step(self, batch: Tensor) -> Tensor:
        """One step on (S, B) contexts by number; returns the (S,) losses before it.

        The step of Gauss and Newton, which is that of the natural gradient, damped after Marquardt (1963): more until
        the loss on the batch falls, less once it did.
        """
        contexts = self.contexts[batch]
        logits, slopes = self.logits_of(self.numbers, contexts), self.slopes_of(self.numbers, contexts)
        p, right = logits.softmax(2), F.one_hot(contexts[..., -1], len(ALPHABET))
        B, before = batch.shape[1], self._objective(self.numbers, logits, contexts)
        gradient = torch.einsum("sbv,sbvn->sn", p - right, slopes) / B + 2 * PENALTY * self.numbers
        apart = slopes - torch.einsum("sbv,sbvn->sbn", p, slopes)[:, :, None]
        apart = (apart * p.sqrt()[..., None]).flatten(1, 2)
        curvature = apart.transpose(1, 2) @ apart / B + 2 * PENALTY * torch.eye(gradient.shape[1])
        scale = curvature.diagonal(dim1=1, dim2=2) + 1e-3
        fell = torch.zeros(len(self.numbers), dtype=torch.bool)
        moved = self.numbers.clone()
        for attempt in range(4):
            damped = curvature + torch.diag_embed(self.damping[:, None] * scale)
            step = torch.linalg.solve(damped, gradient)
            step = step * (FARTHEST / step.norm(dim=1, keepdim=True)).clamp(max=1)
            tried = self.numbers - step
            lower = self._objective(tried, self.logits_of(tried, contexts), contexts) < before
            now = lower & ~fell
            moved[now], fell = tried[now], fell | lower
            change = torch.where(now, 0.5 if attempt == 0 else 1.0, torch.where(fell, 1.0, 3.0))
            self.damping = (self.damping * change).clamp(1e-4, 1e4)
            if fell.all():
                break
        self.numbers = moved
        return before

    def keep(self, which: Tensor) -> None:
        """Go on with these starts alone."""
        self.numbers, self.damping = self.numbers[which], self.damping[which]

    def _objective(self, numbers, logits, contexts):
        right = contexts[..., -1].flatten()
        losses = F.cross_entropy(logits.flatten(0, 1), right, reduction="none").view(contexts.shape[:2])
        return losses.mean(1) + PENALTY * numbers.square().sum(1)


@of_kind("compact")
@dataclass(frozen=True, kw_only=True)
class CompactExperiment(Experiment):
    """An adder of few numbers: the best of several starts, which are trained side by side, few of them to the end."""

    model: ColumnConfig
    starts: int = 24
    batch_size: int = 512

    network = ColumnTransformer

    def size(self):
        return {"weights": count(self.model), "examples": self.steps * self.batch_size}

    def fit(self, model, device, *, label=None, progress=None, **sitting) -> Run:
        """Train all starts and load the best into the model, in one sitting: an interrupted run begins anew.

        The history says what became of each start.

        wrong: (1, S) contexts in which it was wrong when it was last trained. admitted: (1, S) the smallest sum from
        ten on that it was trained on. numbers: (1, n) those of the best.
        """
        bar = tqdm(range(self.steps), desc=label, unit="step", **bar_options(progress))
        started = time.perf_counter()
        numbers, wrong, admitted = self.search(bar)
        best = int(wrong.argmin())
        model.load_state_dict(expand(numbers[best], self.model))
        history = {
            "step": np.array([self.steps]),
            "wrong": wrong[None].numpy(),
            "admitted": admitted[None].numpy(),
            "numbers": numbers[best][None].numpy(),
        }
        return Run(history, {}, time.perf_counter() - started)

    @subnormals_as_zero()
    @torch.no_grad()
    def search(self, steps) -> tuple[Tensor, Tensor, Tensor]:
        """(S, n) numbers, (S,) wrong contexts, (S,) smallest admitted sum, of all starts."""
        draw = torch.Generator().manual_seed(self.seed)
        stack, likely, S = Stack(self.model, initial(self.model, self.starts, draw)), curriculum(), self.starts
        every, alive = stack.numbers.clone(), torch.arange(S)
        wrong, admitted, hardest = torch.zeros(S, dtype=torch.long), torch.full((S,), LAST), None
        smallest, loss, since = torch.full((S,), LAST), torch.full((S,), 3.0), torch.zeros(S)

        def note():
            every[alive], wrong[alive], admitted[alive] = stack.numbers, stack.wrong(), smallest

        for step in steps:
            if step in CUTS and len(alive) > CUTS[step]:
                note()
                going = (smallest + loss.clamp(max=5)).topk(CUTS[step], largest=False).indices
                stack.keep(going)
                hardest = None
                alive, smallest, loss, since = alive[going], smallest[going], loss[going], since[going]
            weights, size, half = likely[smallest - 10], self.batch_size, 0.5
            complete = (smallest == 10) & (since > 40)
            if step >= LAST_PHASE:
                complete, size, half = torch.ones_like(complete), LARGER * size, 0.8
            if complete.any():
                if step % 5 == 0 or hardest is None:
                    hardest = stack.losses().add(1e-4).sqrt()
                    hardest = hardest / hardest.sum(1, keepdim=True)
                mixed = (1 - half) * weights / weights.sum(1, keepdim=True) + half * hardest
                weights = torch.where(complete[:, None], mixed, weights)
            batch = torch.multinomial(weights, size, replacement=True, generator=draw)
            loss = REMEMBERED * loss + (1 - REMEMBERED) * stack.step(batch)
            since += 1
            ready = (smallest > 10) & (((loss < LEARNED) & (since > 5)) | ((since > PATIENCE) & (step > 150)))
            smallest, since = smallest - ready.long(), since.masked_fill(ready, 0)
            loss = loss.masked_fill(ready, 10 * LEARNED)
        note()
        return every, wrong, admitted

    def add(self, model, a, b):
        return add(model, a, b)


# ---- leads that rounding cannot undo -----------------------------------------------------------------------------

ROOM = 0.7  # of what rounding may cost: the unit in which leads are measured
AGAIN = 5  # steps after which that cost is computed again


class Settling(Stack):
    """One start, its leads in units of what rounding may cost them, context by context; all contexts at each step.

    Operands are alike, so one context stands for those in which their digits are exchanged.
    """

    def __init__(self, config: ColumnConfig, numbers: Tensor):
        super().__init__(config, numbers[None])
        self.written_out = ColumnTransformer(config)
        met = reachable()
        a, b, c, next_a, next_b = torch.from_numpy(met.contexts).T
        lower, upper = ((pick(next_a, next_b), pick(a, b)) for pick in (torch.minimum, torch.maximum))
        ordered = torch.stack([*lower, *upper, c, torch.from_numpy(met.right)], 1)
        alike, belongs = ordered.unique(dim=0, return_inverse=True)
        self.one_of_them = torch.zeros(len(alike), dtype=torch.long).scatter_(0, belongs, torch.arange(len(belongs)))
        self.contexts = torch.cat([alike[:, :-1], torch.arange(len(alike))[:, None], alike[:, -1:]], 1)
        self.unit = torch.ones(len(alike))

    def answer(self, numbers, contexts):
        plain = torch.cat([contexts[:, :-2], contexts[:, -1:]], 1)
        return super().answer(numbers, plain) / self.unit[contexts[:, -2], None]

    def measure(self) -> float:
        """Set the units anew. By how much each lead exceeds what a certificate and its checker ask for, at least."""
        self.written_out.load_state_dict(expand(self.numbers[0], self.config))
        found, met = examine(self.written_out), reachable()
        weights = {name: weight.double().numpy() for name, weight in self.written_out.state_dict().items()}
        checked = checker.leads(weights, met.contexts, met.right, *checker.FLOAT32)
        cost = np.maximum(1.25 * (found.lead - found.assured), found.lead - checked)
        self.unit = torch.from_numpy(ROOM * cost).float()[self.one_of_them].clamp(min=0.3)
        return float((found.lead - cost).min())


@of_kind("compact-settled")
@dataclass(frozen=True, kw_only=True)
class SettledExperiment(CompactExperiment):
    """A compact adder, trained on until rounding can undo none of its leads, or for all steps. start: its name."""

    start: str

    @subnormals_as_zero()
    @torch.no_grad()
    def search(self, steps):
        from arithlib import checkpoints  # it imports the experiments

        stack = Settling(self.model, torch.from_numpy(checkpoints.read(self.start).history["numbers"][-1]))
        best, kept = -torch.inf, stack.numbers
        for step in steps:
            if step % AGAIN == 0:
                room = stack.measure()
                if room > best:
                    best, kept = room, stack.numbers.clone()
                if room > 0:
                    break
            stack.step(torch.arange(len(stack.contexts))[None])
        return kept, Stack(self.model, kept).wrong(), torch.tensor([10])
