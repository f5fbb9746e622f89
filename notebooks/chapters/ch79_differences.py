"""Differences in two passes: `21-43=11=-22$` is 12 - 34 = -22 (chapter 79).

The first pass says after each column, lowest first, which number is less so far: 0 neither, 1 the first, 2 the
second. Its last digit compares the numbers. The second pass writes the sign and the digits of the difference, as many
as the longer number has, those on top possibly zero. `arithlib.models.column` says what a token sees.

Dimensions: B texts, T tokens, N tokens of all texts, R slots, L columns.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from arithlib.certify.subtraction import reachable
from arithlib.contexts import remembered
from arithlib.models.column import DIFFERENCE_SLOTS, ColumnTransformer, difference_address, difference_slots
from arithlib.settings import of_kind
from arithlib.tasks.operands import of_length
from arithlib.tasks.written import WrittenOperation
from arithlib.tokenizer import ABSENT, END, EQUALS, MINUS, PLUS, CharacterTokenizer


@of_kind("two-pass-difference")
@dataclass(frozen=True)
class Differences(WrittenOperation):
    """Differences of two numbers of 1 to `max_digits` digits, all lengths equally likely, as text."""

    sign = "-"

    def write(self, a: int, b: int) -> str:
        """The whole text, end token included.

        >>> Differences().write(12, 34), Differences().write(100, 99)
        ('21-43=11=-22$', '001-99=112=+100$')
        """
        columns = max(len(str(a)), len(str(b)))
        lower = ((a % 10**n, b % 10**n) for n in range(1, columns + 1))
        first = "".join("1" if x < y else "2" if x > y else "0" for x, y in lower)
        digits = str(abs(a - b)).zfill(columns)[::-1]
        return f"{self.ask(a, b)}{first}={'-' if a < b else '+'}{digits}$"

    def read(self, text: str) -> int:
        """What a text says the difference is. Raises ValueError where it ends without one.

        >>> Differences().read("21-43=11=-22$")
        -22
        """
        *_, written = text.split("=")
        if written[:1] not in ("+", "-") or written[-1] != "$" or not written[1:-1].isdigit():
            raise ValueError(f"{text[-20:]!r} does not end in a sign, digits and the end token")
        return int(written[0] + written[-2:0:-1])

    def contexts(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """As in `WrittenOperation`, R being `DIFFERENCE_SLOTS`."""
        slots = difference_slots(tokens)
        held = tokens[:, None].expand_as(slots)
        which = torch.where(slots == ABSENT, len(DIFFERENCE_SLOTS), slots)  # a column of its own for what is not seen
        keys = tokens.new_full((*tokens.shape, len(DIFFERENCE_SLOTS) + 1), ABSENT).scatter(2, which, held)[..., :-1]
        written = ((difference_address(tokens)[0] >= 2) & (tokens != END))[:, :-1]
        return keys[:, :-1][written], tokens[:, 1:][written]

    def every_context(self) -> tuple[Tensor, Tensor]:
        contexts, right = reachable()
        return torch.from_numpy(contexts), torch.from_numpy(right)


@of_kind("two-pass-difference-chained")
@dataclass(frozen=True)
class ChainedDifferences(Differences):
    """The same, but every second pair has `max_digits` columns, half of them of nines and zeros: long borrows."""

    def sample(self, rng: random.Random) -> tuple[int, int]:
        """The numbers of one difference."""
        if rng.random() < 0.5:
            return super().sample(rng)
        columns = [(rng.choice("123456789"), rng.choice("123456789"))]
        columns += [(rng.choice("0123456789"), rng.choice("0123456789")) for _ in range(self.max_digits - 1)]
        columns = [(rng.choice("09"), rng.choice("09")) if rng.random() < 0.5 else column for column in columns]
        a, b = (int("".join(digits)) for digits in zip(*columns, strict=True))
        return a, b


def hard_pair(digits: int, rng: random.Random) -> tuple[int, int]:
    """Numbers of so many digits on which a borrow is long, or which differ late, one of five kinds, either first."""
    top, n = 10 ** (digits - 1), of_length(digits, rng)
    ones = (10**digits - 1) // 9
    pairs = ((top, rng.randrange(1, 10)), (n, n), (n, n // top * top), (ones * rng.randint(1, 9), n), (n, n ^ 1))
    pair = rng.choice(pairs)
    return pair if rng.random() < 0.5 else pair[::-1]


# ---- contexts ----------------------------------------------------------------------------------------------------


def contexts_by_column(a: str, b: str) -> tuple[np.ndarray, np.ndarray]:
    """The same of one difference, with time and memory linear in its length.

    a, b: digits, most significant first. Returns (2 L + 3, R) and (2 L + 3,).
    """
    L = max(len(a), len(b))
    first, second = (_columns(number, L) for number in (a, b))
    differs = np.sign(np.maximum(first, 0) - np.maximum(second, 0))
    last = np.maximum.accumulate(np.where(differs != 0, np.arange(L), -1))  # the highest that differs so far
    less = np.where(last < 0, 0, np.array([0, 2, 1])[differs[last]])  # +1, -1 -> 2, 1
    sign = MINUS if less[-1] == 1 else PLUS
    below = np.concatenate([[ABSENT], less])
    larger, smaller = (second, first) if sign == MINUS else (first, second)
    borrow = np.concatenate([[False], less[:-1] == (2 if sign == MINUS else 1)])
    digits = (np.maximum(larger, 0) - np.maximum(smaller, 0) - borrow) % 10
    ahead = [np.append(number, ABSENT) for number in (first, second)]
    nothing = np.full(L + 1, ABSENT)
    own = np.concatenate([[EQUALS], less])
    comparing = np.stack([*ahead, nothing, nothing, own], 1)
    signing = np.array([[ABSENT, ABSENT, less[-1], ABSENT, EQUALS]])
    writing = np.stack([*ahead, below, np.full(L + 1, sign), np.concatenate([[ABSENT], digits])], 1)
    right = np.concatenate([less, [EQUALS], [sign], digits, [END]])
    return np.concatenate([comparing, signing, writing]), right


def _columns(number, L):
    digits = np.frombuffer(number.encode(), np.uint8)[::-1].astype(np.int64) - ord("0")
    return np.pad(digits, (0, L - len(digits)), constant_values=ABSENT)


def written(model: ColumnTransformer, a: str, b: str) -> Iterator[str]:
    """What greedy decoding writes after `a-b=`, character by character, with memory linear in the length.

    a, b: digits, most significant first. It ends with the end token, or where a right text would have. Every answer
    is the model's; that of a context met before is remembered. Raises ValueError at a character that no right text
    has there, after which a token could see others than these.
    """
    tokenizer, answer = CharacterTokenizer(), remembered(model)
    question, L = [tokenizer.encode(number[::-1], end=False) for number in (a, b)], max(len(a), len(b))
    first, part, sign, own = [], 2, ABSENT, EQUALS

    def column(place):
        return [digits[place] if place < len(digits) else ABSENT for digits in question]

    place = 0
    for _ in range(2 * L + 3):
        if part == 2:
            token = answer(*column(place), ABSENT, ABSENT, own)
        elif part == 3:
            token = answer(ABSENT, ABSENT, first[-1] if first else ABSENT, ABSENT, EQUALS)
        else:
            below = first[place - 1] if 0 < place <= len(first) else ABSENT
            token = answer(*column(place), below, sign, own)
        yield tokenizer.decode([token])
        place += 1
        if token == END:
            return
        if token < 10 and part != 3:
            if part == 2:
                first.append(token)
            own = token
        elif part == 2 and token == EQUALS:
            part = 3
        elif part == 3 and token in (PLUS, MINUS):
            part, place, sign, own = 4, 0, token, ABSENT
        else:
            raise ValueError(f"{tokenizer.decode([token])!r} in part {part} of {a[:9]}... - {b[:9]}...")
