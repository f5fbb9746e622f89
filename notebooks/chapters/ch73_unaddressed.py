"""Adders that are given no addresses: attention by distance in the text alone (chapter 73).

Sums have a fixed layout, as on AdderBoard: ten digits of each operand, lowest first, and zeros for signs ::

    place     0   1 ... 10   11   12   13 ... 22   23   24 ... 34
    token     0   a_0..a_9    0    0   b_0..b_9     0   s_0..s_10

The token before s_k asks for it. From there b_k is 10 tokens back and a_k 22, and the column before is at 11 and 23:
equal modulo 12. So a score that goes round with the distance once in 12 tokens, as that of a rotary embedding does
(Su et al. 2021), can find the columns; where its peak is, and how high, are two of the trained numbers.

Dimensions: n trained numbers, C contexts, S = 34 distances from the token that asks (of `initial`: starts), V = 10
digits, D d_model, F d_mlp.
"""

from dataclasses import dataclass
from math import pi

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from arithlib.certify.ball_arithmetic import Ball, einsum, margin, relu, softmax
from arithlib.settings import of_kind
from arithlib.tasks.operands import carries
from arithlib.tokenizer import ABSENT
from chapters.ch73_compact import (
    EXPONENTIAL,
    LAST,
    NEURONS,
    ROOM,
    SHARPNESS,
    WRITES,
    CompactExperiment,
    D,
    SettledExperiment,
    Stack,
    arc,
    least_favourable,
)

DIGITS = 10
PERIOD = DIGITS + 2
ASKS = 2 * DIGITS + 3  # the place of the token that asks for the first digit of the sum
DISTANCES = ASKS + DIGITS + 1
SHAPES = {"arc": (3,), "place": (2,), "value": (1,), "bias": (D,), "mlp_in": (D,), "mlp_bias": (2,), "mlp_out": (D,)}
COUNT = sum(shape[0] for shape in SHAPES.values())

STEEP = 30.0  # a constant of the scores, so that steps of training are of one size for all numbers
STRENGTH = 20.0  # a constant: what is read counts so much more
SPREAD = {"place": 0.1, "bias": 10.0}  # standard deviations at the start; 1 where not listed
NOTHING = -1e9  # the score of a distance at which the text has not begun
TEXTS = 40_000  # sums that are trained on
CALM, GROWTH = 0.01, 1.05  # of the last phase: the loss, in nats, below which its room grows, and by what


# ---- from the numbers to the weights -----------------------------------------------------------------------------


def named(numbers: Tensor) -> dict[str, Tensor]:
    """(n,) numbers by name. place: the score is their product with cosine and sine of the angle of a distance."""
    return dict(zip(SHAPES, numbers.split([shape[0] for shape in SHAPES.values()]), strict=True))


def expand(numbers: Tensor, sharpness: float = SHARPNESS) -> dict[str, Tensor]:
    """(n,) numbers -> all weights of an `UnaddressedAdder`."""
    p = named(numbers)
    digits, middle = arc(*p["arc"])
    angle = 2 * pi / PERIOD * torch.arange(DISTANCES, device=numbers.device, dtype=numbers.dtype)
    return {
        "embedding.weight": digits,
        "score": STEEP * (p["place"][0] * angle.cos() + p["place"][1] * angle.sin()),
        "value": STRENGTH * p["value"],
        "bias": p["bias"],
        "mlp_in.weight": p["mlp_in"].expand(NEURONS, D),
        "mlp_in.bias": p["mlp_bias"],
        "mlp_out.weight": torch.stack([p["mlp_out"], -p["mlp_out"]], 1),
        "unembedding.weight": WRITES * sharpness * (digits - middle),
    }


def initial(starts: int, generator: torch.Generator) -> Tensor:
    """(S, n) normal numbers, except for the arc: it begins anywhere, short and with a radius of about one."""
    numbers = torch.randn(starts, COUNT, generator=generator)
    for row in numbers:
        for name, part in named(row).items():
            part.mul_(SPREAD.get(name, 1.0))
        named(row)["arc"].mul_(torch.tensor([0.2, 3.0, 0.3])).add_(torch.tensor([1.0, 0.0, 0.0]))
    return numbers


# ---- the model ---------------------------------------------------------------------------------------------------


def respond(w: dict[str, Tensor], contexts: Tensor) -> Tensor:
    """Weights and (..., S) tokens by distance from the one that asks, ABSENT before the text -> (..., V) logits."""
    pattern = w["score"].masked_fill(contexts == ABSENT, NOTHING).softmax(-1)
    digits = w["embedding.weight"]
    read = torch.einsum("...s,...sd->...d", pattern, (w["value"] * digits)[contexts.clamp(min=0)])
    stream = digits[contexts[..., 0]] + read + w["bias"]
    neurons = (stream @ w["mlp_in.weight"].T + w["mlp_in.bias"]).relu()
    return (stream + neurons @ w["mlp_out.weight"].T) @ w["unembedding.weight"].T


@of_kind("unaddressed-model")
@dataclass(frozen=True)
class UnaddressedConfig:
    """The size of an `UnaddressedAdder`: it has but one."""


class UnaddressedAdder(nn.Module):
    """One causal layer with one head, on digits alone: (B, T) tokens -> (B, T, V) logits, T <= 34."""

    def __init__(self, config: UnaddressedConfig, seed: int = 0):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(10, D)
        self.score = nn.Parameter(torch.empty(DISTANCES))
        self.value = nn.Parameter(torch.empty(1))
        self.bias = nn.Parameter(torch.empty(D))
        self.mlp_in = nn.Linear(D, NEURONS)
        self.mlp_out = nn.Linear(NEURONS, D, bias=False)
        self.unembedding = nn.Linear(D, 10, bias=False)
        [numbers] = initial(1, torch.Generator().manual_seed(seed))
        self.load_state_dict(expand(numbers))

    def forward(self, tokens: Tensor) -> Tensor:
        """Raises ValueError for a text that is longer than the layout."""
        if tokens.shape[1] > DISTANCES:
            raise ValueError(
                f"{tokens.shape[1]} tokens, and a sum of {DIGITS} digits has {DISTANCES} before its last"
            )
        before = F.pad(tokens, (DISTANCES - 1, 0), value=ABSENT)
        return respond(dict(self.named_parameters()), before.unfold(1, DISTANCES, 1).flip(-1))


def question(a: int, b: int) -> list[int]:
    """The tokens before the sum. Raises ValueError for operands that the layout has no room for."""
    for number in (a, b):
        if not 0 <= number < 10**DIGITS:
            raise ValueError(f"{number}: these adders take numbers from 0 to {10**DIGITS - 1}")
    digits = [[number // 10**i % 10 for i in range(DIGITS)] for number in (a, b)]
    return [0, *digits[0], 0, 0, *digits[1], 0]


@torch.inference_mode()
def add(model: UnaddressedAdder, a: int, b: int) -> int:
    """a + b by greedy decoding. Raises ValueError as `question` does."""
    tokens = question(a, b)
    for _ in range(DIGITS + 1):
        tokens.append(int(model(torch.tensor([tokens]))[0, -1].argmax()))
    return sum(digit * 10**i for i, digit in enumerate(tokens[ASKS + 1 :]))


# ---- what is trained on ------------------------------------------------------------------------------------------


def written(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """(C, 10) digits of operands, lowest first -> (C, 34) texts up to the last digit but one, (C, 11) column sums."""
    sums, nothing = F.pad(a + b, (0, 1)) + carries(a, b), torch.zeros_like(a[:, :1])
    return torch.cat([nothing, a, nothing, nothing, b, nothing, sums[:, :-1] % 10], 1), sums


def texts(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """(C, S + 1) what a token that asks can see, by distance, and the digit that is right; (C,) its column's sum.

    Random sums, some of them of few digits, and a quarter of all columns nines, each asked for one of its digits.
    """

    def chance(share, *shape):
        return torch.rand(count, *shape, generator=generator) < share

    a, b = (torch.randint(10, (count, DIGITS), generator=generator) for _ in range(2))
    b = torch.where(chance(0.25, DIGITS), 9 - a, b)
    for number in (a, b):
        length = torch.randint(1, DIGITS + 1, (count, 1), generator=generator)
        number[chance(0.2, 1) & (torch.arange(DIGITS) >= length)] = 0
    text, sums = written(a, b)
    asked = torch.randint(DIGITS + 1, (count, 1), generator=generator)
    places = ASKS + asked - torch.arange(DISTANCES)
    seen = text.gather(1, places.clamp(min=0)).masked_fill(places < 0, ABSENT)
    due = sums.gather(1, asked)
    return torch.cat([seen, due % 10], 1), due[:, 0]


class UnaddressedStack(Stack):
    """Starts that are trained side by side on texts."""

    def __init__(self, numbers: Tensor, generator: torch.Generator):
        contexts, self.sums = texts(TEXTS, generator)
        super().__init__(numbers, contexts, torch.ones(TEXTS, dtype=torch.long))

    def answer(self, numbers, contexts):
        return respond(expand(numbers, self.sharpness), contexts[:, :-1])

    def likely(self):
        """(LAST + 1 - 10, C) how likely each text is drawn, as `curriculum` has it for columns of two digits."""
        weights = torch.zeros(LAST + 1 - 10, len(self.sums))
        for smallest, row in enumerate(weights, start=10):
            for part in (self.sums < 10, self.sums >= smallest):
                row[part] = 0.5 / part.sum()
            row[self.sums == smallest] *= 2
        return weights


@dataclass(frozen=True, kw_only=True)
class Unaddressed:
    """What both phases of training share."""

    model: UnaddressedConfig = UnaddressedConfig()

    network = UnaddressedAdder

    def size(self):
        return {"weights": COUNT, "examples": self.steps * self.batch_size}

    def written_out(self, numbers):
        return expand(numbers)

    def add(self, model, a, b):
        return add(model, a, b)


@of_kind("unaddressed")
@dataclass(frozen=True, kw_only=True)
class UnaddressedExperiment(Unaddressed, CompactExperiment):
    """An adder without addresses, searched for as `CompactExperiment` does."""

    starts: int = 128

    def stack(self, device):
        generator = torch.Generator().manual_seed(self.seed)
        return UnaddressedStack(initial(self.starts, generator).to(device), generator)


# ---- proof -------------------------------------------------------------------------------------------------------

COLUMN, BEFORE = (DIGITS, DIGITS + PERIOD), (DIGITS + 1, DIGITS + 1 + PERIOD)  # distances of their two digits


def columns() -> tuple[np.ndarray, np.ndarray]:
    """(20000, 5) digits of the column that is asked for, of the one before, and the one written under that; (20000,)
    the digit that is right.

    Every pair of columns with and without a carry into them. Before the first column there are zeros.
    """
    a, b, last_a, last_b, carry = np.indices((10, 10, 10, 10, 2)).reshape(5, -1)
    before = last_a + last_b + carry
    return np.stack([a, b, last_a, last_b, before % 10], 1), (a + b + before // 10) % 10


def logits(model: UnaddressedAdder, asked: int, seen: np.ndarray) -> Ball:
    """(C, 5) digits as in `columns` -> (C, V) logits of the token that asks for digit number `asked`, with every
    rounding of a float32 program enclosed, whatever all other tokens are.

    What they can add is bounded by their weight in attention, times the largest value. As in `ball_arithmetic`, an
    exponential may be off by FUNCTION_ERROR; that of a masked key is 0.
    """
    w = {name: Ball.exact(value.detach().cpu().double().numpy()) for name, value in model.named_parameters()}
    digits, keys = w["embedding.weight"], ASKS + asked + 1
    value = einsum("vd,x->vd", digits, w["value"])
    pattern = softmax(w["score"][:keys])
    known = [*COLUMN, *BEFORE, 0]
    strayed = np.delete(pattern.size, known).sum() * value.size.max(0)
    astray = Ball(np.zeros_like(strayed), strayed)
    own = digits[seen[:, -1]]
    stream = einsum("s,csd->cd", pattern[known], value[seen], own, w["bias"], astray, roundings=keys)
    neurons = relu(einsum("cd,fd->cf", stream, w["mlp_in.weight"], w["mlp_in.bias"]))
    return einsum("cd,vd->cv", einsum("cf,df->cd", neurons, w["mlp_out.weight"], stream), w["unembedding.weight"])


def examine(model: UnaddressedAdder) -> tuple[np.ndarray, np.ndarray]:
    """(11, 20000) by how much the right digit leads in exact arithmetic, up to the other tokens, and at least.

    Where all of the second are positive, every float32 program that `logits` covers adds any two numbers of up to ten
    digits: by induction over the digits of the sum, each column is one of `columns`, with the digit before it right.
    """
    seen, right = columns()
    leads = [margin(logits(model, asked, seen), right) for asked in range(DIGITS + 1)]
    return tuple(np.stack(each) for each in zip(*leads, strict=True))


# ---- leads that neither rounding nor other tokens can undo -------------------------------------------------------


class UnaddressedSettling(Stack):
    """One start, trained on what is left of its leads when rounding and all other tokens do their worst.

    room: by what the worst is multiplied. It is little at first, and grows as long as the loss is small.
    """

    farthest, room = 1.0, ROOM / 1000

    def __init__(self, numbers: Tensor):
        seen, right = columns()
        alike = (seen[:, 0] <= seen[:, 1]) & (seen[:, 2] <= seen[:, 3])  # exchanged digits weigh the same
        contexts = torch.from_numpy(np.column_stack([seen, right])[alike])
        # In float32 the loss is too rough to tell whether a small step helps.
        super().__init__(numbers[None].double(), contexts, torch.ones(len(contexts), dtype=torch.long))
        self.written_out = UnaddressedAdder(UnaddressedConfig())

    def answer(self, numbers, contexts):
        w, seen, right = expand(numbers, self.sharpness), contexts[:, :-1], contexts[:, -1:]
        pattern, known = w["score"].softmax(0), [*COLUMN, *BEFORE, 0]
        digits = w["embedding.weight"]
        value = w["value"] * digits
        mid = digits[seen[:, -1]] + torch.einsum("s,bsd->bd", pattern[known], value[seen]) + w["bias"]
        strayed = (1 - pattern[known].sum()) * value.abs().amax(0)
        off = self.room * (EXPONENTIAL * torch.einsum("s,bsd->bd", pattern[known], value[seen].abs()) + strayed)
        return least_favourable(w, mid, off, right)

    def step(self, batch):
        loss = super().step(batch)
        if self.room < ROOM and loss.max() < CALM:
            self.room = min(ROOM, GROWTH * self.room)
            self.damping.clamp_(max=1)  # it was that of another objective
        return loss

    def measure(self) -> float:
        """The least lead that is assured."""
        self.written_out.load_state_dict(expand(self.numbers[0].float()))
        return float(examine(self.written_out)[1].min())

    def wrong(self):
        """(1,) how often, of all columns in all places, the right digit does not lead by the midpoints."""
        self.written_out.load_state_dict(expand(self.numbers[0].float()))
        return torch.tensor([int((examine(self.written_out)[0] <= 0).sum())])


@of_kind("unaddressed-settled")
@dataclass(frozen=True, kw_only=True)
class UnaddressedSettledExperiment(Unaddressed, SettledExperiment):
    """An adder without addresses, trained on until its leads are assured, or for all steps."""

    def settling(self, numbers):
        return UnaddressedSettling(numbers)

    def settled(self, numbers):
        return UnaddressedSettling(numbers[0])
