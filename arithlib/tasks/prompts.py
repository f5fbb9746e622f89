"""Questions about numbers that are single tokens: `a + b =` and the five others of source 001 (chapter 51).

Every prompt has four tokens, `a sign b =`, and its answer is one token from 0 to 198. In all questions but addition
b is fixed, and only a is asked about. Token n is the number n; the signs follow after 198.

The same sums can also be asked digit by digit (chapter 53): six tokens, two a number, and an answer of three.

Dimensions: B prompts, N questions of one kind.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from arithlib.settings import of_kind
from arithlib.tasks.pairs import SplitPairs

N_NUMBERS = 199
SIGNS = ("+", "-", "//", "*", "mod", "solve", "=")
D_VOCAB = N_NUMBERS + len(SIGNS)
D_VOCAB_DIGITS = 12  # token n is the digit n; then + and =


@dataclass(frozen=True)
class Question:
    """A question about a with a fixed second number b.

    answers: what a (N,) is turned into. numbers: the a that it is asked for.
    """

    sign: str
    b: int
    numbers: range
    answers: Callable[[Tensor], Tensor]


QUESTIONS = {
    "a - 23": Question("-", 23, range(23, 100), lambda a: a - 23),
    "a // 5": Question("//", 5, range(100), lambda a: a // 5),
    "a * 3/2": Question("*", 3, range(0, 100, 2), lambda a: a * 3 // 2),
    "a mod 2": Question("mod", 2, range(100), lambda a: a % 2),
    "x - a = 0": Question("solve", 0, range(100), lambda a: a),
}


def prompt(a: Tensor, b: Tensor | int, sign: str = "+") -> Tensor:
    """(B,) numbers a and b -> (B, 4) tokens `a sign b =`.

    Raises ValueError for a number that has no token.

    >>> prompt(torch.tensor([57]), torch.tensor([42]))
    tensor([[ 57, 199,  42, 205]])
    """
    b = torch.as_tensor(b).expand_as(a)
    if min(a.min(), b.min()) < 0 or max(a.max(), b.max()) >= N_NUMBERS:
        raise ValueError(f"numbers from 0 to {N_NUMBERS - 1} have a token; found {a.tolist()} and {b.tolist()}")
    signs = [torch.full_like(a, N_NUMBERS + SIGNS.index(s)) for s in (sign, "=")]
    return torch.stack([a, signs[0], b, signs[1]], -1)


def ask(name: str) -> tuple[Tensor, Tensor]:
    """All prompts (N, 4) of one of QUESTIONS, and their answers (N,)."""
    question = QUESTIONS[name]
    a = torch.tensor(question.numbers)
    return prompt(a, question.b, question.sign), question.answers(a)


def digit_prompt(a: Tensor, b: Tensor) -> Tensor:
    """(B,) numbers a and b -> (B, 6) tokens `a + b =`, each number as its tens and its units.

    Raises ValueError for a number that has not at most two digits.

    >>> digit_prompt(torch.tensor([57]), torch.tensor([4]))
    tensor([[ 5,  7, 10,  0,  4, 11]])
    """
    if min(a.min(), b.min()) < 0 or max(a.max(), b.max()) > 99:
        raise ValueError(f"numbers of two digits go from 0 to 99; found {a.tolist()} and {b.tolist()}")
    plus, equals = (torch.full_like(a, token) for token in (10, 11))
    return torch.stack([a // 10, a % 10, plus, b // 10, b % 10, equals], -1)


def digit_answer(c: Tensor) -> Tensor:
    """(B,) sums -> (B, 3) tokens: hundreds, tens, units.

    >>> digit_answer(torch.tensor([61]))
    tensor([[0, 6, 1]])
    """
    return torch.stack([c // 100, c // 10 % 10, c % 10], -1)


@of_kind("single-token-sums")
@dataclass(frozen=True)
class Sums(SplitPairs):
    """All sums of two numbers from 0 to 99, a random share of the pairs as training set.

    train_fraction: strictly between 0 and 1. data_seed: which pairs those are.
    """

    train_fraction: float = 0.6
    data_seed: int = 0

    @property
    def n_numbers(self) -> int:
        """100, the numbers 0 to 99."""
        return 100
