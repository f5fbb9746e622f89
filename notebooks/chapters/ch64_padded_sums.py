"""Sums of two numbers filled up with zeros to one width, plain or modulo m (chapter 64; Xu et al. 2024).

    plain         3200+5400=86000       23 + 45 = 68 is written 86000
    modulo 51     3200+5400=71          23 + 45 leaves a remainder of 17

All numbers are written lowest digit first. Every text has the same length, whatever the numbers, so a digit of a
certain worth always stands at the same place. In the source's code, too, numbers are filled up with zeros.

Dimensions: B sums, W width, T tokens of a text.
"""

from dataclasses import dataclass
from math import gcd

import torch
from torch import Tensor

from arithlib.settings import of_kind
from arithlib.tokenizer import EQUALS, PLUS


@of_kind("padded-sums")
@dataclass(frozen=True)
class PaddedSums:
    """How sums are written, and which are drawn.

    digits: of the longest operands in training. width: of every operand as it is written. modulus: None for
        plain sums.
    full: in training "one" operand at least has all `digits` digits and the other is any number below 10^digits
        (the source's sets), or "both" have them all.
    """

    digits: int
    width: int = 4
    modulus: int | None = None
    full: str = "one"

    def __post_init__(self):
        if not 1 <= self.digits <= self.width:
            raise ValueError(f"digits = {self.digits} of a width of {self.width}: 1 to {self.width}")
        if self.full not in ("one", "both"):
            raise ValueError(f"full = {self.full!r}: choose one or both")

    @property
    def question(self) -> int:
        """Tokens up to and including `=`."""
        return 2 * self.width + 2

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """(count, 2) operands of training."""
        least = 10 ** (self.digits - 1) if self.digits > 1 else 0
        pairs = torch.randint(10**self.digits, (count, 2), generator=generator)
        long = torch.randint(least, 10**self.digits, (count, 2), generator=generator)
        which = torch.randint(2, (count,), generator=generator)[:, None] == torch.arange(2)
        return torch.where(which | (self.full == "both"), long, pairs)

    def answers(self, pairs: Tensor) -> Tensor:
        """(B, 2) operands -> (B, A) digits: of the sum, W + 1, or of the remainder, as many as the largest has."""
        total = pairs.sum(1)
        if self.modulus is None:
            return digits_of(total, self.width + 1)
        return digits_of(total % self.modulus, len(str(self.modulus - 1)))

    def write(self, pairs: Tensor) -> Tensor:
        """(B, 2) operands -> (B, T) texts. Raises ValueError for an operand that is longer than the width."""
        if int(pairs.max()) >= 10**self.width:
            raise ValueError(f"{int(pairs.max())} has more than {self.width} digits")
        a, b = (digits_of(numbers, self.width) for numbers in pairs.unbind(1))
        plus, equals = (torch.full((len(pairs), 1), sign) for sign in (PLUS, EQUALS))
        return torch.cat([a, plus, b, equals, self.answers(pairs)], 1)

    def dropped(self, pairs: Tensor) -> Tensor:
        """(B, 2) operands without the digits that were 0 in all of training."""
        return pairs % 10**self.digits

    def predicted(self) -> float:
        """The share of longer sums that is right if the higher digits are dropped (section "Which digits the remainder depends on").

        Of a plain sum that is none. Modulo m it is right if the dropped parts, a multiple h of 10^digits, leave no
        remainder, which is so for h in the multiples of m / gcd(m, 10^digits).
        """
        if self.modulus is None:
            return 0.0
        return gcd(self.modulus, 10**self.digits) / self.modulus


def digits_of(numbers: Tensor, width: int) -> Tensor:
    """(B,) numbers -> (B, width) digits, lowest first.

    >>> digits_of(torch.tensor([120]), 4)
    tensor([[0, 2, 1, 0]])
    """
    return numbers[:, None] // 10 ** torch.arange(width) % 10


def of_length(length: int, count: int, generator: torch.Generator) -> Tensor:
    """(count, 2) operands, both of exactly so many digits; 0 has one."""
    return torch.randint(10 ** (length - 1) if length > 1 else 0, 10**length, (count, 2), generator=generator)
