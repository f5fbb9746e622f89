"""Operations that are written out in full, step by step (chapters 78 and 79).

Dimensions: B texts, T tokens, N tokens that are written in all of them, R slots, C contexts.
"""

import random
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from arithlib.tasks.operands import of_length
from arithlib.tokenizer import CharacterTokenizer


@dataclass(frozen=True)
class WrittenOperation(ABC):
    """An operation on two numbers of 1 to `max_digits` digits, all lengths equally likely, as text.

    Each says how a text is written and read, and what decides a token of it: its *context*, the key in each of R
    slots that the token before it sees. sign: the one between the numbers. Raises ValueError for numbers without
    digits.
    """

    sign: ClassVar[str]
    max_digits: int = 4

    def __post_init__(self):
        if self.max_digits < 1:
            raise ValueError(f"numbers of up to {self.max_digits} digits: at least 1")

    def sample(self, rng: random.Random) -> tuple[int, int]:
        """The numbers of one text."""
        return of_length(rng.randint(1, self.max_digits), rng), of_length(rng.randint(1, self.max_digits), rng)

    def ask(self, a: int, b: int) -> str:
        """The text up to the first sign of equality: both numbers, their lowest digits first."""
        return f"{str(a)[::-1]}{self.sign}{str(b)[::-1]}="

    @abstractmethod
    def write(self, a: int, b: int) -> str:
        """The whole text, end token included."""

    @abstractmethod
    def read(self, text: str) -> int:
        """What a text says the result is. Raises ValueError where it ends without one."""

    def encode(self, pairs: list[tuple[int, int]]) -> Tensor:
        """(B, T) tokens of the whole texts of B pairs, filled up with end tokens."""
        return CharacterTokenizer().encode_batch([self.write(a, b) for a, b in pairs], end=False)

    @abstractmethod
    def contexts(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Of (B, T) whole texts: (N, R) contexts, ABSENT in empty slots, text by text, and (N,) tokens to write."""

    @abstractmethod
    def every_context(self) -> tuple[Tensor, Tensor]:
        """(C, R) the contexts that texts of numbers of any length can show, and (C,) the token to write in each."""
