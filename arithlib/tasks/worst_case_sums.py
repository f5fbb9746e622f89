"""Sums that are hard for an adder: carries through every column, lengths far apart, an operand of zero (chapter 70).

Random sums hardly ever carry far: a chain of k columns has a chance of about 10^-k. So these are made on purpose.

Dimensions: B sums, N digits. Digits are 0 to 9, least significant first, zero beyond the number's length.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

KINDS = (
    "nines plus one",  # 999...9 + 1: one carry through every column
    "one plus nines",
    "nines twice",  # 999...9 + 999...9
    "chain through unequal digits",  # random digits, columns of nine, and a carry let in at the bottom
    "alternating, no carry",  # 9090... + 0909...
    "alternating, carried",  # the same, and one more
    "carry in every other column",  # 5050... + 5050...
    "short second operand",  # a hundredth as long, all nines
    "short first operand",
    "plus zero",
    "zero plus",
    "random",
)


def stress_sums(digits: int, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor, list[str]]:
    """(B, N) digits of two operands, the longer of N = `digits` digits, and the B = `count` kinds.

    Every kind of KINDS once, in that order; the rest are random sums, both operands of N digits.
    Raises ValueError for numbers of fewer than two digits, or fewer sums than kinds.
    """
    N = digits
    if N < 2 or count < len(KINDS):
        raise ValueError(f"{count} sums of {N} digits: at least {len(KINDS)} sums, of at least 2 digits")

    def random():
        drawn = torch.randint(0, 10, (N,), generator=generator)
        drawn[-1] = torch.randint(1, 10, (), generator=generator)
        return drawn

    zero, nines, upper = torch.zeros(N, dtype=torch.long), torch.full((N,), 9), random()
    one, short = zero.clone(), zero.clone()
    one[0], short[: max(N // 100, 1)] = 1, 9
    lower = 9 - upper
    lower[0] = 10 - upper[0].clamp(min=1)
    upper[0] = upper[0].clamp(min=1)
    even = (torch.arange(N) + N) % 2 * 9  # its leading digit is 9
    odd = 9 - even
    pairs = [
        (nines, one), (one, nines), (nines, nines), (upper, lower),
        (even, odd), (even + one * (even == 0), odd + one * (odd == 0)),
        (even.clamp(max=5), even.clamp(max=5)), (random(), short), (short, random()), (random(), zero),
        (zero, random()), (random(), random()),
    ]  # fmt: skip
    pairs += [(random(), random()) for _ in range(count - len(KINDS))]
    a, b = (torch.stack(operands) for operands in zip(*pairs, strict=True))
    return a, b, [*KINDS, *["random"] * (count - len(KINDS))]


def covering_sums() -> tuple[Tensor, Tensor]:
    """(B, 4) digits of two operands: 24,500 short sums with every situation of a window of one column.

    What a windowed answer token sees is the column just done, its digit of the answer and the next column. Here every
    pair of columns comes with and without a carry in, for operands that go on, end, or ended before; a 1 above lets
    zeros stand inside a number. The rest are the first column of all, and 0 + anything.
    """
    digit, low = torch.arange(10), torch.tensor([1, 5])  # 1 + 1 carries nothing into the second column, 5 + 5 one
    inside = torch.cartesian_prod(digit, digit, torch.tensor([1]))  # columns 2 and 3, and the 1 above
    ends, ended = F.pad(digit[1:, None], (0, 2)), torch.zeros(1, 3, dtype=torch.long)
    tails = torch.cat([inside, ends, ended])
    x, y = torch.cartesian_prod(torch.arange(len(tails)), torch.arange(len(tails))).unbind(1)
    parts = [(F.pad(tails[x], (1, 0), value=c), F.pad(tails[y], (1, 0), value=c)) for c in low.tolist()]
    pairs = F.pad(torch.cartesian_prod(digit, digit)[:, :, None], (0, 3))
    parts.append((pairs[:, 0], pairs[:, 1]))
    several, zero = F.pad(inside, (0, 1)), torch.zeros(100, 4, dtype=torch.long)
    parts += [(several, zero), (zero, several)]
    a, b = (torch.cat(operands) for operands in zip(*parts, strict=True))
    return a, b
