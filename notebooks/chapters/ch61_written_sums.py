r"""Sums as text, in the four formats of Lee et al. 2023 (arXiv 2307.03381, figure 2), and sets of them (chapter 61).

    plain        128+367=495
    reversed     128+367=594
    simplified   128+367=5c1;9c0;4c0;495          digit and carry of every column, then the sum
    detailed     128+367=128+367,c0:8+7+0=15;12+36,5c1:2+6+1=09;1+3,95c0:1+3+0=04;+,495c0;495

The detailed one shows at each column what is left of the operands, the digits and the carry so far, and the sum of
the column in two digits. Theirs says the same in some four times as many characters.

Dimensions: B sums, T characters of the longest.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from arithlib.settings import of_kind

ALPHABET = "0123456789+=c;:,\n"
NEWLINE = ALPHABET.index("\n")
STYLES = ("plain", "reversed", "simplified", "detailed")
NOISES = ("sums", "carries")


@dataclass
class Lines:
    """B sums as text, each between two line ends and filled up with them.

    tokens: (B, T). written: (B, T) True where a model is to write: after `=`, to the first line end.
    """

    tokens: Tensor
    written: Tensor

    def __getitem__(self, chosen) -> "Lines":
        return Lines(self.tokens[chosen], self.written[chosen])

    def __len__(self) -> int:
        return len(self.tokens)


@of_kind("written-sums")
@dataclass(frozen=True)
class Format:
    """How sums are written.

    style: one of `STYLES`. padded: operands have at least so many digits and the sum one more, with leading zeros.
    """

    style: str = "plain"
    padded: int = 0

    def __post_init__(self):
        if self.style not in STYLES:
            raise ValueError(f"style = {self.style!r}: choose one of {', '.join(STYLES)}")

    def question(self, a: int, b: int) -> str:
        return f"{a:0{self.padded}}+{b:0{self.padded}}="

    def answer(self, a: int, b: int, wrong: np.random.Generator | None = None, noise: tuple[str, ...] = ()) -> str:
        """What follows the question.

        noise: which of `NOISES` are random in the steps of a scratchpad, drawn from `wrong`: the digits of the sum,
        the carries, or both; the sum at its end is right nevertheless.
        """
        total = f"{a + b:0{self.padded and self.padded + 1}}"
        if self.style in ("plain", "reversed"):
            return total if self.style == "plain" else total[::-1]
        left, right, carry, done, steps = str(a), str(b), 0, "", []
        while left or right:
            column = int(left[-1:] or 0) + int(right[-1:] or 0) + carry
            text = f"{left}+{right},{done}c{carry}:{left[-1:] or 0}+{right[-1:] or 0}+{carry}={column:02}"
            digit = wrong.integers(10) if "sums" in noise else column % 10
            carry = wrong.integers(2) if "carries" in noise else column // 10
            done = f"{digit}{done}"
            steps.append(f"{digit}c{carry}" if self.style == "simplified" else text)
            left, right = left[:-1], right[:-1]
        if self.style == "detailed":
            steps.append(f"+,{done}c{carry}")
        return ";".join([*steps, total])

    def width(self, digits: int) -> int:
        """T of sums of so many digits: nothing is longer than nines."""
        nines = 10**digits - 1
        return len(self.question(nines, nines) + self.answer(nines, nines)) + 2

    def write(self, pairs: np.ndarray, width: int, noise: tuple[str, ...] = (), seed: int = 0) -> Lines:
        """(B, 2) operands -> their sums as text, T = width. Raises ValueError for a sum that does not fit."""
        wrong = np.random.default_rng(seed)
        return as_lines(((self.question(a, b), self.answer(a, b, wrong, noise)) for a, b in pairs.tolist()), width)


def as_lines(texts: Iterable[tuple[str, str]], width: int, alphabet: str = ALPHABET) -> Lines:
    """B questions with their answers as tokens, T = width. Raises ValueError for a text that does not fit."""
    texts = list(texts)
    tokens, written = np.full((len(texts), width), NEWLINE), np.zeros((len(texts), width), bool)
    code = {character: token for token, character in enumerate(alphabet)}
    for row, (question, answer) in enumerate(texts):
        line = f"\n{question}{answer}\n"
        if len(line) > width:
            raise ValueError(f"{line.strip()} has {len(line)} characters with its line ends, more than {width}")
        tokens[row, : len(line)] = [code[character] for character in line]
        written[row, len(question) + 1 : len(line)] = True
    return Lines(torch.from_numpy(tokens), torch.from_numpy(written))


def last_number(tokens: Tensor) -> str:
    """(T,) tokens of a sum -> what is written after the last `=` or `;`."""
    text = "".join(ALPHABET[token] for token in tokens.tolist()).strip("\n")
    return text.rpartition(";")[2].rpartition("=")[2]


@of_kind("set-of-sums")
@dataclass(frozen=True)
class Sample:
    """A random set of different sums of two numbers, without those of a test.

    size: sums in it. shares: of sums whose longer operand has 1, 2, ... digits; a length that has fewer sums gives
        all it has, and the longest makes up for it. The default is the published mixture (section 3 of Lee et al.).
    left_out: so many of the numbers below 10^digits occur in none of the sums.
    noise: what is random in the steps of a scratchpad (`Format.answer`).
    """

    size: int
    shares: tuple[float, ...] = (0.01, 0.09, 0.9)
    left_out: int = 0
    noise: tuple[str, ...] = ()

    @property
    def digits(self) -> int:
        """Of the longest operands."""
        return len(self.shares)

    def missing(self, seed: int) -> np.ndarray:
        """(left_out,) numbers that do not occur."""
        return np.random.default_rng([seed, 1]).choice(10**self.digits, self.left_out, replace=False)

    def draw(self, seed: int, without: np.ndarray) -> np.ndarray:
        """(size, 2) operands in random order, none of them a row of `without`, (M, 2).

        Raises ValueError where there are not so many sums.
        """
        generator = np.random.default_rng([seed, 2])
        base = 10**self.digits
        allowed = np.ones((base, base), bool)
        missing = self.missing(seed)
        allowed[missing] = allowed[:, missing] = False
        allowed[tuple(without.T)] = False
        everything = np.stack(np.divmod(generator.permutation(np.flatnonzero(allowed)), base), 1)
        longer = everything.max(1)
        return generator.permutation(
            self.shared_out(lambda least, most, _: everything[(least <= longer) & (longer < most)])
        )

    def shared_out(self, of_length: Callable[[int, int, int], np.ndarray]) -> np.ndarray:
        """(size, 2) operands: of each length its share.

        of_length(least, most, number): the sums to take from whose longer operand is at least `least` and below
        `most`, of which `number` are wanted. Raises ValueError where the longest cannot make up for the others.
        """
        drawn = np.zeros((0, 2), int)
        for digits, share in enumerate(self.shares, start=1):
            least = 10 ** (digits - 1) if digits > 1 else 0
            number = round(share * self.size) if digits < self.digits else self.size - len(drawn)
            drawn = np.concatenate([drawn, of_length(least, 10**digits, number)[:number]])
        if len(drawn) < self.size:
            raise ValueError(f"{self.size:,} sums wanted, and only {len(drawn):,} were found")
        return drawn


@of_kind("set-of-sums-of-equal-lengths")
@dataclass(frozen=True)
class EqualLengths(Sample):
    """A random set of sums of which both operands have as many digits: 345 + 678, and not 12 + 345."""

    def draw(self, seed: int, without: np.ndarray) -> np.ndarray:
        """(size, 2) operands in random order. Sums of unequal lengths are left out as if a test had them."""
        lengths = np.char.str_len(np.arange(10**self.digits).astype(str))
        unequal = np.argwhere(lengths[:, None] != lengths)
        return super().draw(seed, np.concatenate([without, unequal]))


@of_kind("set-of-sums-without-a-digit")
@dataclass(frozen=True)
class WithoutDigit(Sample):
    """A random set of sums in which no operand has the digit `digit` at `place`: 0 for units, 1 for tens, ..."""

    place: int = 0
    digit: int = 5

    def missing(self, seed: int) -> np.ndarray:
        """A tenth of all numbers, the same for every seed."""
        numbers = np.arange(10**self.digits)
        return numbers[numbers // 10**self.place % 10 == self.digit]


@of_kind("set-of-long-sums")
@dataclass(frozen=True)
class LongSums(Sample):
    """A random set of different sums of so many digits that not all sums can be listed."""

    def draw(self, seed: int, without: np.ndarray) -> np.ndarray:
        """(size, 2) operands in random order, none of them a row of `without`, (M, 2).

        A length that has fewer sums than its share gives what was drawn of them, and the longest make up for it.
        Raises ValueError where they cannot (`shared_out`), and for numbers that are to be left out.
        """
        if self.left_out:
            raise ValueError("no numbers can be left out of a set of long sums")
        generator = np.random.default_rng([seed, 2])

        def of_length(least, most, number):
            pairs = generator.integers(most, size=(2 * number, 2))
            pairs = np.unique(pairs[pairs.max(1) >= least], axis=0)
            asked = (pairs[:, None] == without[without.max(1) < most]).all(2).any(1)
            return generator.permutation(pairs[~asked])

        return generator.permutation(self.shared_out(of_length))


def uniform_pairs(digits: int, size: int, seed: int) -> np.ndarray:
    """(size, 2) operands below 10^digits, all equally likely."""
    return np.random.default_rng([seed, 3]).integers(10**digits, size=(size, 2))
