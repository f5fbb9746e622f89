"""Sums whose numbers are cut into tokens: single digits, or chunks from the left or from the right (chapter 60).

Each number of a question has a field of its own and stands at its end, with filling before it, so that a place means
the same in every sum. The answer follows, highest digit first. Filling is the token of a line end.

    digits                . 1 2 3 4 5 + . . . . 6 7 =   1 2 4 1 2
    chunks from the left      12 34 5 + . . 67 =        12 41 2
    chunks from the right     1 23 45 + . . 67 =        1 24 12

Dimensions: B sums, Q tokens of a question, A of an answer with its line end, T = Q + A.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from arithlib.settings import of_kind
from chapters.ch61_written_sums import ALPHABET, NEWLINE, Lines

PLUS, EQUALS, COMMA = (ALPHABET.index(sign) for sign in "+=,")
SIDES = ("left", "right")


def vocabulary(size: int) -> int:
    """Tokens of chunks of at most so many digits: the alphabet, then all chunks of two digits, of three, ..."""
    return len(ALPHABET) + sum(10**width for width in range(2, size + 1))


def token_text(token: int, size: int) -> str:
    """What a token spells. Raises ValueError for one that the vocabulary does not have."""
    if 0 <= token < len(ALPHABET):
        return ALPHABET[token]
    for width in range(2, size + 1):
        if (first := vocabulary(width - 1)) <= token < first + 10**width:
            return f"{token - first:0{width}}"
    raise ValueError(f"token {token}: chunks of {size} digits have {vocabulary(size)}")


def spelling(size: int) -> Tensor:
    """(V, 10 size) which digit each token has at which place, the last first, scaled to one vector of length 1.

    Signs spell no digit. Units come first, then tens: 12 has a 2 at column 2 and a 1 at column 11.
    """
    table = torch.zeros(vocabulary(size), 10 * size)
    for token, row in enumerate(table):
        if (text := token_text(token, size)).isdecimal():
            row[[10 * place + int(digit) for place, digit in enumerate(reversed(text))]] = len(text) ** -0.5
    return table


def lengths_of(numbers: np.ndarray) -> np.ndarray:
    """Decimal digits of each number; 0 has one."""
    return sum((numbers >= 10**power).astype(int) for power in range(1, 19)) + 1


@of_kind("cut")
@dataclass(frozen=True)
class Cut:
    """How numbers are cut.

    size: digits of a whole chunk. side: from which end; what is left is a shorter chunk at the other end.
    Raises ValueError for a side that there is not.
    """

    size: int = 1
    side: str = "right"

    def __post_init__(self):
        if self.side not in SIDES:
            raise ValueError(f"side = {self.side!r}: choose one of {', '.join(SIDES)}")

    def tokens(self, numbers: np.ndarray, digits: int, commas: np.ndarray | None = None) -> np.ndarray:
        """(B,) numbers of at most so many digits -> (B, W) tokens, the last chunk last; -1 where there is none.

        commas: (B,) whether commas part the digits by threes, from the right.
        Raises ValueError for commas between chunks.
        """
        length, columns = lengths_of(numbers), []
        base = np.array([0, 0, *(vocabulary(width - 1) for width in range(2, self.size + 1))])  # by width
        for chunk in range(-(-digits // self.size)):  # counted from the right
            if self.side == "right":
                low = np.full_like(length, self.size * chunk)
                high = np.minimum(low + self.size, length)
            else:
                high = length - self.size * (-(-length // self.size) - 1 - chunk)
                low = np.maximum(high - self.size, 0)
            there = (high > low) & (low < length) & (high <= length)
            width = np.where(there, high - low, 0)
            value = numbers // 10 ** np.where(there, low, 0) % 10**width
            columns.append(np.where(there, base[width] + value, -1))
            # Room for the first comma is always there, so that a question of three digits ends where it always did.
            if commas is not None and (chunk == 2 or (chunk % 3 == 2 and chunk + 1 < digits)):
                if self.size != 1:
                    raise ValueError("commas stand between single digits")
                columns.append(np.where(commas & (length > chunk + 1), COMMA, -1))
        return np.stack(columns[::-1], 1)

    def write(self, pairs: np.ndarray, digits: int, commas: np.ndarray | None = None, room: bool = False) -> Lines:
        """(B, 2) operands of at most so many digits -> lines; commas: (B,) in both operands, never in the answer.

        room: for commas, even where there are none, so that the question ends where it does with them.
        """
        if commas is None and room:
            commas = np.zeros(len(pairs), bool)
        sign = np.zeros((len(pairs), 1), int)
        first, second = (self.tokens(number, digits, commas) for number in pairs.T)
        question = np.concatenate([_packed(first, -1), sign + PLUS, _packed(second, -1), sign + EQUALS], 1)
        answer = _packed(np.concatenate([self.tokens(pairs.sum(1), digits + 1), sign + NEWLINE], 1), 0)
        tokens = torch.tensor(np.where((both := np.concatenate([question, answer], 1)) < 0, NEWLINE, both))
        written = np.concatenate([np.zeros_like(question, bool), answer >= 0], 1)
        return Lines(tokens, torch.tensor(written))

    def read(self, tokens: Tensor) -> int:
        """The number that an answer of (A,) tokens writes up to its line end; -1 where that is no number."""
        text = "".join(token_text(token, self.size) for token in tokens.tolist()).partition("\n")[0]
        return int(text) if text.isdecimal() else -1


def _packed(tokens: np.ndarray, side: int) -> np.ndarray:
    """(B, W) tokens with what is missing, -1, moved to the front (side -1) or to the end (side 0)."""
    order = np.argsort(tokens >= 0 if side else tokens < 0, axis=1, kind="stable")
    return np.take_along_axis(tokens, order, 1)


def draw_numbers(lengths: np.ndarray, generator: torch.Generator) -> np.ndarray:
    """Numbers of so many digits each, any one as likely; 0 has one digit."""
    share = torch.rand(lengths.shape, generator=generator, dtype=torch.double).numpy()
    least = np.where(lengths > 1, 10 ** (lengths - 1), 0)
    return least + (share * (10**lengths - least)).astype(int)
