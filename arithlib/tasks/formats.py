"""The same sums written in several ways: `123+4=0127`, in other tokens, orders and addresses (chapter 76).

A number is written from its highest digit on, as people do. Three things about the text may change: how many digits a
token holds, in which order the answer is written, and the address that a token has. The answer has one digit more
than the longer operand, leading zeros included, so that its length is known before it is written. All questions of a
batch end at the same token, with filling before them.

    tokens                   2 3 + 4 =   0 2 7       one digit a token
    address by place         1 2 3 4 5   6 7 8       0 on filling
    address by significance  2 1 0 1 0   3 2 1       0 on signs and filling

Dimensions: B problems, N decimal digits of an operand, Q tokens of a question, A of an answer, T = Q + A.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from arithlib.settings import of_kind
from arithlib.tasks.operands import add, carries, lengths_of

ADDRESSES = ("place", "significance")


@dataclass
class Written:
    """B written sums.

    tokens: (B, T), the question in the first `question` of them. address: (B, T), before any offset.
    answer: (B, A) True where a problem's answer goes on; what follows is filling.
    length, carried: (B,) digits of the longer operand, and columns into which a carry comes.
    """

    tokens: Tensor
    address: Tensor
    question: int
    answer: Tensor
    length: Tensor
    carried: Tensor

    def moved(self, offset: Tensor) -> Tensor:
        """(B, 1) or (1, 1) offsets -> (B, T) addresses moved by them; 0 stays 0."""
        return torch.where(self.address > 0, self.address + offset, 0)


@of_kind("format")
@dataclass(frozen=True)
class Format:
    """How sums are written.

    chunk: digits a token, cut from the lowest on: a token is a digit of base 10^chunk. reverse: the answer lowest
    digit first. addresses: "place" counts the tokens of a sum, "significance" gives digits of equal worth the same.
    """

    chunk: int = 1
    reverse: bool = False
    addresses: str = "place"

    def __post_init__(self):
        if self.chunk < 1:
            raise ValueError(f"chunk = {self.chunk}: a token holds at least 1 digit")
        if self.addresses not in ADDRESSES:
            raise ValueError(f"addresses = {self.addresses!r}: choose one of {', '.join(ADDRESSES)}")

    @property
    def base(self) -> int:
        """Tokens 0 to base - 1 are digits; `+`, `=` and filling follow."""
        return 10**self.chunk

    @property
    def vocabulary(self) -> int:
        return self.base + 3

    def write(self, a: Tensor, b: Tensor) -> Written:
        """(B, N) decimal digits of two operands, lowest first -> the written sums."""
        plus, equals, filling = range(self.base, self.base + 3)
        length = torch.maximum(lengths_of(a), lengths_of(b))
        first, second, total = (self._chunks(number) for number in (a, b, add(a, b)))
        sign = torch.zeros_like(length)[:, None]
        place = torch.arange(total.shape[1], device=a.device)
        own = place[: first.shape[1]].flip(0)
        digits = [first.flip(1), sign + plus, second.flip(1), sign + equals]
        worth = torch.cat([own + 1, sign[0], own + 1, sign[0]]).expand(len(a), -1)
        kept = torch.cat(
            [own < lengths_of(first)[:, None], sign == 0, own < lengths_of(second)[:, None], sign == 0], 1
        )
        order = kept.long().argsort(dim=1, stable=True)  # what is left out goes to the front, and becomes filling
        kept, worth = kept.gather(1, order), worth.gather(1, order)
        question = torch.where(kept, torch.cat(digits, 1).gather(1, order), filling)

        width = (length[:, None] + self.chunk) // self.chunk
        answer = place < width
        worth_of_answer = place.expand_as(answer) if self.reverse else (width - 1 - place).clamp(min=0)
        written = torch.where(answer, total.gather(1, worth_of_answer), filling)
        kept = torch.cat([kept, answer], 1)
        address = kept.cumsum(1) if self.addresses == "place" else torch.cat([worth, worth_of_answer + 1], 1)
        return Written(
            torch.cat([question, written], 1), address * kept, question.shape[1], answer, length,
            carries(a, b).sum(1),
        )  # fmt: skip

    def read(self, tokens: Tensor) -> int:
        """The number that (A,) tokens of an answer write. Raises ValueError where one is no digit."""
        if int(tokens.max()) >= self.base:
            raise ValueError(f"the model answers with the tokens {tokens.tolist()}: no number")
        lowest_first = tokens if self.reverse else tokens.flip(0)
        return sum(digit * self.base**place for place, digit in enumerate(lowest_first.tolist()))

    def _chunks(self, digits):
        """(B, N) decimal digits -> (B, N / chunk, rounded up) of base 10^chunk, both lowest first."""
        padded = F.pad(digits, (0, -digits.shape[1] % self.chunk)).unflatten(1, (-1, self.chunk))
        return (padded * 10 ** torch.arange(self.chunk, device=digits.device)).sum(2)


def draw_sums(lengths: Tensor, generator: torch.Generator) -> Tensor:
    """(B, 2) decimal lengths -> (B, 2, N) digits of two operands, lowest first; no leading zero but in 0 itself."""
    place = torch.arange(int(lengths.max()))
    lengths = lengths[..., None]
    digits = torch.randint(10, (*lengths.shape[:2], len(place)), generator=generator)
    leading = (place == lengths - 1) & (lengths > 1)
    return torch.where(leading, torch.randint(1, 10, digits.shape, generator=generator), digits) * (place < lengths)


def draw_carrying(length: int, carried: Tensor, generator: torch.Generator) -> Tensor:
    """(B,) how many columns hand on a carry, 0 to `length` -> (B, 2, length) digits of two operands.

    Both operands have `length` digits. Which columns carry is uniform, and so are the digits of a column among those
    that carry, or do not, after what the column below does.
    Raises ValueError for a count that no sum of that length has.
    """
    if int(carried.min()) < 0 or int(carried.max()) > length:
        raise ValueError(f"{carried.min()} to {carried.max()} carries in sums of {length} digits: 0 to {length}")
    carries_out = torch.rand(len(carried), length, generator=generator).argsort(1) < carried[:, None]
    carries_in = F.pad(carries_out, (1, 0))[:, :-1]
    pairs = torch.cartesian_prod(torch.arange(10), torch.arange(10))
    leading = (torch.arange(length) == length - 1) & (length > 1)
    fits = (pairs.sum(1) + carries_in[..., None].long() >= 10) == carries_out[..., None]
    fits &= (pairs > 0).all(1) | ~leading[:, None]
    chosen = torch.multinomial(fits.flatten(0, 1).double(), 1, generator=generator).view(carried.shape[0], length)
    return pairs[chosen].transpose(1, 2)
