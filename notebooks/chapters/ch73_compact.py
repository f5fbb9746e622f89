"""Adders whose weights all follow from at most two dozen trained numbers, found by damped Newton steps (chapter 73).

Ten digits lie on an arc in the plane, and ways of use that should be alike share their numbers: both operands, all
signs, reading and writing. Attention goes by place alone, and may rest on a sink. `expand` writes such numbers out as
the weights of a `ColumnTransformer`, which can then be decoded, certified and checked as any other.

Dimensions: S starts, n trained numbers, C contexts that there are, B of a batch, V vocabulary, D = 2 d_model.
"""

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import prod

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call, jacfwd, vmap
from tqdm.auto import tqdm

from arithlib.certify.addition import examine, lead_with_sink, reachable
from arithlib.certify.ball_arithmetic import FUNCTION_ERROR
from arithlib.experiments.base import Experiment
from arithlib.models.column import ANSWER, ColumnConfig, ColumnTransformer
from arithlib.settings import of_kind
from arithlib.streaming import add
from arithlib.tokenizer import ABSENT, ALPHABET, END
from arithlib.training import Run, bar_options, subnormals_as_zero
from chapters.ch73_experiments import Answering

SIZE = ColumnConfig("window-sink", d_model=2, n_heads=1, d_mlp=2)
D, NEURONS = SIZE.d_model, SIZE.d_mlp
# What a size does without, by the number that its runs have for it.
SPARED = {
    1: (),
    2: ("a second direction of the neurons",),
    3: ("a second direction of the neurons", "a vector of signs"),
}
LARGEST = 1

# Constants. Where the sink's score is large, no weight depends on how many keys there are; the gain makes up for it.
SINK, GAIN = 7.0, 1000.0
SHARPNESS = 100.0  # of the logits
# A digit's own vector is part of the stream, so that the column's sum has its sign there; the logits turn it round.
WRITES = -1.0
SPREAD = {"answer": 3.0, "near": 1.5, "value": 2.0}  # of numbers at the start, where it is not one

LAST = 18  # the smallest sum of ten or more that is trained on at first
LEARNED, PATIENCE = 0.05, 60  # the next smaller one is admitted at this loss, or after so many steps
BLUNT, SHARP_AT = 5.0, 600  # sharpness of the logits at first, and the step at which it has its own value
CUTS = {60: 1 / 2, 150: 1 / 4, 400: 1 / 8, 800: 1 / 16, 1200: 1 / 32}  # step -> share of starts that go on
LAST_PHASE, LARGER = 1000, 4  # from that step on batches are so many times as large, and of what is hard alone
REMEMBERED = 0.8  # of the running mean of a start's losses, at each step
PENALTY = 1e-6  # on the square of the numbers: without it they grow until float32 cannot tell the leads
HOPELESS = 50.0  # instead of a loss that is no number
TOGETHER = 256  # starts whose slopes are computed at once: they need some gigabytes


# ---- from the numbers to the weights -----------------------------------------------------------------------------


def shapes(spared: int = LARGEST) -> dict[str, tuple[int, ...]]:
    """What the numbers are, in order, by what the size does without.

    arc: its radius, the angle of digit 0, the angle between digits. near: scores of the column asked for, and of the
    one before it. value: by which what is read is multiplied.
    """
    without = SPARED[spared]
    two = (D,) if "a second direction of the neurons" in without else (NEURONS, D)
    signs = {} if "a vector of signs" in without else {"signs": (D,)}
    return {
        "arc": (3,),
        "end": (D,),
        **signs,
        "operand": (D,),
        "answer": (D,),
        "near": (2,),
        "value": (1,),
        "mlp_in": two,
        "mlp_bias": (NEURONS,),
        "mlp_out": two,
    }


def count(spared: int = LARGEST) -> int:
    """n, how many numbers are trained."""
    return sum(map(prod, shapes(spared).values()))


def named(numbers: Tensor, spared: int = LARGEST) -> dict[str, Tensor]:
    """(n,) numbers by name, in their shapes."""
    parts = numbers.split([prod(shape) for shape in shapes(spared).values()])
    return {name: part.view(shape) for part, (name, shape) in zip(parts, shapes(spared).items(), strict=True)}


def arc(radius: Tensor, first: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
    """(10, D) vectors of the digits, from the angles of digit 0 and between digits, and (D,) the middle of them."""
    angle = first + step * torch.arange(10, device=radius.device)
    middle = angle.mean()
    around = torch.stack([angle.cos(), angle.sin()], 1)
    return radius * around, radius * torch.stack([middle.cos(), middle.sin()])


def expand(numbers: Tensor, spared: int = LARGEST, sharpness: float = SHARPNESS) -> dict[str, Tensor]:
    """(n,) numbers -> all weights of a `ColumnTransformer` of SIZE."""
    p, zeros = named(numbers, spared), numbers.new_zeros
    digits, middle = arc(*p["arc"])
    signs = p.get("signs", zeros(D))
    embedding = torch.cat([digits, signs.expand(4, D), p["end"][None]])
    next_column, column = p["near"]
    by_number = [torch.stack([next_column, column])] * 2 + [torch.stack([zeros(()), column]), zeros(2)]
    into, out = p["mlp_in"], p["mlp_out"]
    if into.dim() == 1:  # two neurons that read the same line: what the second adds is taken back
        into, out = into.expand(NEURONS, D), torch.stack([out, -out])
    return {
        "embedding.weight": embedding,
        "numbers.weight": torch.stack([p["operand"], p["operand"], p["answer"], zeros(D)]),
        "near": torch.stack(by_number)[None],
        "qkv.weight": torch.cat([zeros(2 * D, D), p["value"] * torch.eye(D, device=numbers.device)]),
        "qkv.bias": zeros(3 * D),
        "out.weight": GAIN * torch.eye(D, device=numbers.device),
        "mlp_in.weight": into,
        "mlp_in.bias": p["mlp_bias"],
        "mlp_out.weight": out.T,
        "mlp_out.bias": zeros(D),
        "unembedding.weight": WRITES * sharpness * (embedding - middle),
        "unembedding.bias": zeros(len(ALPHABET)),
        "sink": SINK + zeros(1),
    }


def initial(spared: int, starts: int, generator: torch.Generator) -> Tensor:
    """(S, n) normal numbers, except for the arc: it begins anywhere, short and with a radius of about one."""
    numbers = torch.randn(starts, count(spared), generator=generator)
    for row in numbers:
        parts = named(row, spared)
        for name, spread in SPREAD.items():
            parts[name].mul_(spread)
        parts["arc"].mul_(torch.tensor([0.2, 3.0, 0.3])).add_(torch.tensor([1.0, 0.0, 0.0]))
    return numbers


# ---- what is trained on ------------------------------------------------------------------------------------------


def alike() -> tuple[Tensor, Tensor]:
    """(C, 6) contexts with the token that is right, one of those in which digits of the operands are exchanged, and
    (24518,) which of them each reachable context is like.

    Both operands share their numbers, so that the order of a column's two digits is lost.
    """
    met = reachable()
    a, b, own, next_a, next_b = torch.from_numpy(met.contexts).T
    column, next_column = ((torch.minimum(*pair), torch.maximum(*pair)) for pair in ((a, b), (next_a, next_b)))
    slots = [next_column[0], column[0], next_column[1], column[1], own]  # as `Answering` has them
    return torch.stack([*slots, torch.from_numpy(met.right)], 1).unique(dim=0, return_inverse=True)


def column_sums(contexts: Tensor) -> Tensor:
    """(C, 6) contexts -> (C,) the sum of the column asked for, its carry included; 0 where the end is due."""
    right, digits = contexts[:, -1], contexts[:, [0, 2]].clamp(min=0).sum(1)
    return digits + torch.where(right == END, 0, (right - digits) % 10)


def curriculum(contexts: Tensor) -> Tensor:
    """(C, 6) contexts -> (LAST + 1 - 10, C) how likely each is drawn, by the smallest sum from ten on that is
    admitted, from 10 on.

    Half of a batch are sums below ten, half those admitted; the newest counts twice. So the step back by ten can be
    gentle at first, from 9 to 8 at 18, and grows steep as what lies between is filled in. Columns of two digits, one
    and none are a half, three tenths and a fifth.
    """
    sums, digits = column_sums(contexts), (contexts[:, [0, 2]] != ABSENT).sum(1)
    weights = torch.zeros(LAST + 1 - 10, len(sums))
    for row, smallest in zip(weights, range(10, LAST + 1), strict=True):
        for having, share in ((2, 0.5), (1, 0.3), (0, 0.2)):
            below, above = (part & (digits == having) for part in (sums < 10, sums >= smallest))
            for part in (below, above) if above.any() else (below,):
                row[part] = share / part.sum() * (0.5 if above.any() else 1.0)
        row[sums == smallest] *= 2
    return weights


# ---- training ----------------------------------------------------------------------------------------------------


class Stack(ABC):
    """S starts that are trained side by side, each on batches of its own, where their numbers are (CPU or GPU).

    contexts: (C, K) what is trained on, the token that is right last. times: (C,) how many each stands for.
    farthest: that one step may go.
    """

    farthest = 2.0

    def __init__(self, numbers: Tensor, contexts: Tensor, times: Tensor, sharpness: float = SHARPNESS):
        self.numbers, self.sharpness = numbers, sharpness
        self.damping = numbers.new_ones(len(numbers))
        self.contexts, self.times = contexts.to(numbers.device), times.to(numbers.device)
        self.logits_of = vmap(self.answer)
        self.every_logit = vmap(self.answer, (0, None), chunk_size=TOGETHER // 8)
        self.slopes_of = vmap(jacfwd(self.answer), chunk_size=TOGETHER)

    @abstractmethod
    def answer(self, numbers: Tensor, contexts: Tensor) -> Tensor:
        """(n,) numbers and (B, K) contexts with the token that is right -> (B, V) logits."""

    def losses(self) -> Tensor:
        """(S, C) cross-entropy of every context, in nats."""
        logits = self.every_logit(self.numbers, self.contexts)
        right = self.contexts[:, -1].expand(len(logits), -1)
        return F.cross_entropy(logits.transpose(1, 2), right, reduction="none")

    def wrong(self) -> Tensor:
        """(S,) in how many contexts the first choice is wrong, those that are alike counted each."""
        wrong = self.every_logit(self.numbers, self.contexts).argmax(2) != self.contexts[:, -1]
        return (wrong * self.times).sum(1)

    def step(self, batch: Tensor) -> Tensor:
        """One step on (S, B) contexts by number; returns the (S,) losses before it.

        The step of Gauss and Newton, which is that of the natural gradient, damped after Marquardt (1963): more until
        the loss on the batch falls, less once it did.
        """
        contexts = self.contexts[batch]
        logits, slopes = self.logits_of(self.numbers, contexts), self.slopes_of(self.numbers, contexts)
        p, right = logits.softmax(2), F.one_hot(contexts[..., -1], logits.shape[2])
        B, before = batch.shape[1], self._objective(self.numbers, logits, contexts)
        gradient = torch.einsum("sbv,sbvn->sn", p - right, slopes) / B + 2 * PENALTY * self.numbers
        apart = slopes - torch.einsum("sbv,sbvn->sbn", p, slopes)[:, :, None]
        apart = (apart * p.sqrt()[..., None]).flatten(1, 2)
        curvature = apart.transpose(1, 2) @ apart / B
        scale = curvature.diagonal(dim1=1, dim2=2) + 2 * PENALTY + 1e-3
        fell = torch.zeros_like(before, dtype=torch.bool)
        moved = self.numbers.clone()
        for attempt in range(4):
            damped = curvature + torch.diag_embed(self.damping[:, None] * scale + 2 * PENALTY)
            step = torch.linalg.solve_ex(damped, gradient)[0].nan_to_num()  # a start that overflows stays
            step = step * (self.farthest / step.norm(dim=1, keepdim=True)).clamp(max=1)
            tried = self.numbers - step
            lower = self._objective(tried, self.logits_of(tried, contexts), contexts) < before
            now = lower & ~fell
            moved, fell = torch.where(now[:, None], tried, moved), fell | lower
            change = torch.where(now, 0.5 if attempt == 0 else 1.0, torch.where(fell, 1.0, 3.0))
            self.damping = (self.damping * change).clamp(1e-5, 1e5)
            if fell.all():
                break
        self.numbers = moved
        return before.nan_to_num(HOPELESS, HOPELESS)

    def keep(self, which: Tensor) -> None:
        """Go on with these starts alone."""
        self.numbers, self.damping = self.numbers[which], self.damping[which]

    def _objective(self, numbers, logits, contexts):
        right = contexts[..., -1].flatten()
        losses = F.cross_entropy(logits.flatten(0, 1), right, reduction="none").view(contexts.shape[:2])
        return losses.mean(1) + PENALTY * numbers.square().sum(1)


class CompactStack(Stack):
    """Starts of adders that are given addresses, on all contexts."""

    def __init__(self, numbers: Tensor, spared: int = LARGEST, sharpness: float = SHARPNESS):
        self.spared = spared
        self.answering = Answering(ColumnTransformer(SIZE).eval().requires_grad_(False)).to(numbers.device)
        self.answering.slots = tuple(each.to(numbers.device) for each in self.answering.slots)
        contexts, belongs = alike()
        super().__init__(numbers, contexts, belongs.bincount(), sharpness)

    def answer(self, numbers, contexts):
        weights = expand(numbers, self.spared, self.sharpness)
        weights = {f"model.{name}": weight for name, weight in weights.items()}
        return functional_call(self.answering, weights, (contexts[:, :-1],))

    def likely(self) -> Tensor:
        """(LAST + 1 - 10, C) how likely each context is drawn, by the smallest sum from ten on that is admitted."""
        return curriculum(self.contexts.cpu())


@of_kind("compact")
@dataclass(frozen=True, kw_only=True)
class CompactExperiment(Experiment):
    """An adder of few numbers: the best of many starts, which are trained side by side, few of them to the end.

    spared: what it does without, a key of SPARED; 0 where that is no question.
    """

    model: ColumnConfig = SIZE
    spared: int = 0
    starts: int = 1024
    batch_size: int = 256

    network = ColumnTransformer

    def size(self):
        return {"weights": count(self.spared), "examples": self.steps * self.batch_size}

    def fit(self, model, device, *, label=None, progress=None, **sitting) -> Run:
        """Train all starts and load the best into the model, in one sitting: an interrupted run begins anew.

        The history says what became of each start.

        wrong: (1, S) contexts in which it was wrong when it was last looked at. admitted: (1, S) the smallest sum
        from ten on that it was trained on then. numbers: (1, n) those of the best.
        """
        bar = tqdm(range(self.steps), desc=label, unit="step", **bar_options(progress))
        started = time.perf_counter()
        numbers, wrong, admitted = (found.cpu() for found in self.search(bar, device))
        best = int(wrong.argmin())
        model.load_state_dict(self.written_out(numbers[best]))
        history = {
            "step": np.array([self.steps]),
            "wrong": wrong[None].numpy(),
            "admitted": admitted[None].numpy(),
            "numbers": numbers[best][None].numpy(),
        }
        return Run(history, {}, time.perf_counter() - started)

    @subnormals_as_zero()
    @torch.no_grad()
    def search(self, steps, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        """(S, n) numbers, (S,) wrong contexts, (S,) smallest admitted sum, of all starts."""
        S, draw = self.starts, torch.Generator(device).manual_seed(self.seed)
        stack = self.stack(device)
        likely = stack.likely().to(device)
        every, alive, hardest = stack.numbers.clone(), torch.arange(S, device=device), None
        wrong, admitted, smallest = (torch.full((S,), value, device=device) for value in (0, LAST, LAST))
        loss, since = torch.full((S,), 3.0, device=device), torch.zeros(S, device=device)

        def note():
            every[alive], wrong[alive], admitted[alive] = stack.numbers, stack.wrong(), smallest

        for step in steps:
            stack.sharpness = min(SHARPNESS, BLUNT * (SHARPNESS / BLUNT) ** (step / SHARP_AT))
            if step in CUTS and (going_on := max(1, int(CUTS[step] * S))) < len(alive):
                note()
                going = (smallest + loss.clamp(max=5)).topk(going_on, largest=False).indices
                stack.keep(going)
                hardest = None
                alive, smallest, loss, since = alive[going], smallest[going], loss[going], since[going]
            weights, size, half = likely[smallest - 10], self.batch_size, 0.5
            complete = (smallest == 10) & (since > 40)
            if step >= LAST_PHASE:
                complete, size, half = torch.ones_like(complete), LARGER * size, 0.8
            if complete.any():
                if step % 10 == 0 or hardest is None:
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

    def stack(self, device: torch.device) -> Stack:
        """All starts, as they begin."""
        numbers = initial(self.spared, self.starts, torch.Generator().manual_seed(self.seed))
        return CompactStack(numbers.to(device), self.spared)

    def written_out(self, numbers: Tensor) -> dict[str, Tensor]:
        """(n,) numbers -> the weights of the model."""
        return expand(numbers, self.spared)

    def add(self, model, a, b):
        return add(model, a, b)


# ---- leads that rounding cannot undo -----------------------------------------------------------------------------

EXPONENTIAL = 2 * FUNCTION_ERROR  # by how much a weight of attention can be off, relatively: most of the cost
ROOM, SOFTNESS = 2.0, 2.0  # that error is taken so many times as large, and logits are divided
AGAIN = 5  # steps after which the certifier and the checker are asked


def least_favourable(w: dict[str, Tensor], mid: Tensor, off: Tensor, right: Tensor) -> Tensor:
    """(B, D) stream before the neurons and by how much it can be off, (B, 1) token that is right -> (B, V) logits: of
    that token the least, of all others the largest, divided by SOFTNESS.

    Interval bounds, as Gowal et al. (2018, section 3) train on, with rounding in place of what an adversary changes.
    """
    into, out, unembedding = (w[f"{name}.weight"] for name in ("mlp_in", "mlp_out", "unembedding"))
    before = mid @ into.T + w["mlp_in.bias"]
    after = mid + before.relu() @ out.T
    off = off + ((before > 0) * (off @ into.abs().T)) @ out.abs().T
    against = torch.where(right == torch.arange(len(unembedding), device=right.device), -1.0, 1.0)
    return (after @ unembedding.T + against * (off @ unembedding.abs().T)) / SOFTNESS


class Settling(CompactStack):
    """One start, trained on what is left of its leads when rounding does its worst; all contexts at each step."""

    farthest = 1.0

    def __init__(self, numbers: Tensor, spared: int = LARGEST):
        super().__init__(numbers[None], spared)
        self.written_out = ColumnTransformer(SIZE)

    def answer(self, numbers, contexts):
        w, slots = expand(numbers, self.spared, self.sharpness), self.answering.slots
        keys, own, right = contexts[:, :-1], contexts[:, -2], contexts[:, -1:]
        x = w["embedding.weight"] + w["numbers.weight"][: ANSWER + 1, None]  # (N, V, D)
        share = w["near"][0][*slots].exp() * (keys != ABSENT)
        share = share / (share.sum(1, keepdim=True) + w["sink"].exp())
        read = GAIN * (x @ w["qkv.weight"][2 * D :].T)[slots[0], keys.clamp(min=0)]
        mid = x[ANSWER][own] + torch.einsum("bs,bsd->bd", share, read)
        off = ROOM * EXPONENTIAL * torch.einsum("bs,bsd->bd", share, read.abs())
        return least_favourable(w, mid, off, right)

    def measure(self) -> float:
        """The least lead in float32 that a certificate and its checker assure."""
        self.written_out.load_state_dict(expand(self.numbers[0], self.spared))
        return lead_with_sink(self.written_out, examine(self.written_out))


@of_kind("compact-settled")
@dataclass(frozen=True, kw_only=True)
class SettledExperiment(CompactExperiment):
    """A compact adder, trained on until rounding can undo none of its leads, or for all steps. start: its name."""

    start: str
    starts: int = 1

    @subnormals_as_zero()
    @torch.no_grad()
    def search(self, steps, device):
        from arithlib import checkpoints  # it imports the experiments

        stack = self.settling(torch.from_numpy(checkpoints.read(self.start).history["numbers"][-1]))
        best, kept = -torch.inf, stack.numbers
        for step in steps:
            if step % AGAIN == 0:
                room = stack.measure()
                if room > best:
                    best, kept = room, stack.numbers.clone()
                if room > 0:
                    break
            stack.step(torch.arange(len(stack.contexts))[None])
        kept = kept.float()
        return kept, self.settled(kept).wrong(), torch.tensor([10])

    def settling(self, numbers: Tensor) -> Stack:
        """(n,) numbers, as they are trained on."""
        return Settling(numbers, self.spared)

    def settled(self, numbers: Tensor) -> Stack:
        """(1, n) numbers, as they are looked at in the end."""
        return CompactStack(numbers, self.spared)
