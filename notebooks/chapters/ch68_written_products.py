"""Products as text, direct or with their steps, plain or reversed, padded or not, and sets of them (chapter 68).

    direct             34*12=408
    reversed           34*12=804
    padded             034*012=000408         operands with as many digits, the product with twice as many
    steps              34*12=68;340,408       for each digit of the second operand, lowest first, its product
    steps, reversed    34*12=86;043,804       with the first, and from the second on the total so far

The tokens are those of `ch61_written_sums`, with `*` in the place of `+`.

Dimensions: B products, T characters of the longest, D digits.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from arithlib.settings import of_kind
from chapters.ch61_written_sums import ALPHABET, Lines, as_lines

CHARACTERS = ALPHABET.replace("+", "*")


@of_kind("written-products")
@dataclass(frozen=True)
class ProductFormat:
    """How products are written.

    reverse: whether what follows `=` is written lowest digit first. steps: whether partial products and running
    totals come before the product. padded: digits of the operands, with leading zeros; 0 for as many as they have.
    """

    reverse: bool = False
    steps: bool = False
    padded: int = 0

    def question(self, a: int, b: int) -> str:
        return f"{a:0{self.padded}}*{b:0{self.padded}}="

    def answer(self, a: int, b: int) -> str:
        """What follows the question; the product is its last number.

        >>> ProductFormat(steps=True).answer(34, 12), ProductFormat(steps=True, reverse=True).answer(34, 12)
        ('68;340,408', '86;043,804')
        """
        if not self.steps:
            return self._number(a * b)
        parts = partial_products(a, b)
        lines = [self._number(parts[0])]
        lines += [f"{self._number(part)},{self._number(sum(parts[: i + 1]))}" for i, part in enumerate(parts) if i]
        return ";".join(lines)

    def _number(self, value: int) -> str:
        text = f"{value:0{2 * self.padded}}"
        return text[::-1] if self.reverse else text

    def width(self, left: int, right: int) -> int:
        """T of products of operands of so many digits: nothing is longer than nines."""
        nines = 10**left - 1, 10**right - 1
        return len(self.question(*nines) + self.answer(*nines)) + 2

    def write(self, pairs: np.ndarray, width: int) -> Lines:
        """(B, 2) operands -> their products as text, T = width. Raises ValueError for one that does not fit."""
        return as_lines(((self.question(a, b), self.answer(a, b)) for a, b in pairs.tolist()), width, CHARACTERS)


def partial_products(a: int, b: int) -> list[int]:
    """The product of a with each digit of b, lowest first, at its place; their sum is a b."""
    return [a * int(digit) * 10**place for place, digit in enumerate(reversed(str(b)))]


def times_seen(pairs: np.ndarray, pool: np.ndarray) -> np.ndarray:
    """(B,) how often the rarest partial product of each of (B, 2) was a partial product of a pool, (M, 2).

    The place does not count: 34 times 2 is one in 34 times 12 and in 34 times 23.
    """
    counts = Counter((a, digit) for a, b in pool.tolist() for digit in str(b))
    return np.array([min(counts[a, digit] for digit in str(b)) for a, b in pairs.tolist()])


def last_number(tokens: Tensor) -> str:
    """(T,) tokens of a product -> what is written after the last `=`, `;` or `,`, up to the first line end."""
    text = "".join(CHARACTERS[token] for token in tokens.tolist()).strip("\n")
    return text.replace(";", "=").replace(",", "=").rpartition("=")[2]


def of_lengths(left: int, right: int, size: int, generator: np.random.Generator) -> np.ndarray:
    """(size, 2) operands of exactly so many digits, all equally likely; 0 has one digit."""
    low = [10 ** (n - 1) if n > 1 else 0 for n in (left, right)]
    return generator.integers(low, [10**left, 10**right], size=(size, 2))


@of_kind("set-of-products")
@dataclass(frozen=True)
class Products:
    """Products of operands of 1 to `digits` digits, and those of a test.

    pool: how many different ones are trained on, drawn from all but those of the test, every pair of operands as
    likely. 0 for fresh ones at every step, every pair of lengths as likely.
    """

    digits: int
    pool: int = 0

    def test(self, left: int, right: int, size: int, seed: int) -> np.ndarray:
        """(size or fewer, 2) different products of these lengths: at most a fifth of those there are.

        The same for all models, and of one size always the same.
        """
        generator = np.random.default_rng([seed, left, right])
        drawn = np.unique(of_lengths(left, right, 4 * size, generator), axis=0)
        there = np.prod([10 if n == 1 else 9 * 10 ** (n - 1) for n in (left, right)])
        return generator.permutation(drawn)[: min(size, there // 5)]

    def tests(self, longest: tuple[int, int], size: int, seed: int) -> dict[tuple[int, int], np.ndarray]:
        """The test of each pair of lengths, up to the longest."""
        lengths = np.ndindex(*longest)
        return {(i + 1, j + 1): self.test(i + 1, j + 1, size, seed) for i, j in lengths}

    def pooled(self, seed: int, without: np.ndarray) -> np.ndarray:
        """(pool, 2) operands in random order, none a row of `without`, (M, 2)."""
        everything = np.stack(np.divmod(np.arange(100**self.digits), 10**self.digits), 1)
        pairs = np.random.default_rng([seed, 2]).permutation(everything)
        pairs = pairs[~self.among(pairs, without)]
        if len(pairs) < self.pool:
            raise ValueError(f"{self.pool:,} products wanted, and there are only {len(pairs):,}")
        return pairs[: self.pool]

    def fresh(self, size: int, generator: np.random.Generator, without: np.ndarray) -> np.ndarray:
        """(size, 2) operands, every pair of lengths as likely, none a row of `without` (M, 2)."""
        pairs = np.zeros((0, 2), int)
        while len(pairs) < size:
            lengths = generator.integers(1, self.digits + 1, size=(size, 2))
            low = np.where(lengths > 1, 10 ** (lengths - 1), 0)
            drawn = generator.integers(low, 10**lengths)
            pairs = np.concatenate([pairs, drawn[~self.among(drawn, without)]])
        return pairs[:size]

    def among(self, pairs: np.ndarray, others: np.ndarray) -> np.ndarray:
        """(B,) whether a pair (B, 2) is a row of the others, (M, 2)."""
        base = 10 ** (self.digits + 1)
        return np.isin(pairs @ [base, 1], others @ [base, 1])
