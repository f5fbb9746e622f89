"""Every situation of a decoder that adds line by line and sees one line up and one place back (chapter 74).

Whatever the sum, an answer token of running totals in rows sees at most seven tokens. Which seven can occur,
and what has to be written then, follows from three numbers at two places: u, the last total but one, which is out of
sight; x, the number that was added to it; y, the number being added now; and a carry into either sum. All occurs
in sums of at most three numbers of at most four digits; `witness` finds one.

Dimensions: S states, M situations, R = 8 slots in the order of `chapters.ch74_grid.contexts`: the next and the
last place of y and of x, the cell to be written (never there), the token itself, the next and last place of u + x.
"""

from functools import lru_cache
from itertools import product

import torch
from torch import Tensor

from arithlib.tokenizer import ABSENT, END, EQUALS, PLUS


def _states(first: bool) -> Tensor:
    """(S, 2) digits that a number can have at two neighbouring places, ABSENT beyond its end.

    first: the lower of the places is the lowest of all, where every number has a digit and 0 alone is a number.
    """
    both = torch.cartesian_prod(torch.arange(10), torch.arange(10))
    ends = torch.tensor([[digit, ABSENT] for digit in range(0 if first else 1, 10)])
    gone = torch.full((0 if first else 1, 2), ABSENT)
    return torch.cat([both, ends, gone])


def _added(a: Tensor, b: Tensor, carry: Tensor) -> Tensor:
    """(..., 2) digits of two numbers and (...) the carry into the lower place -> (..., 2) digits of their sum."""
    places = []
    for place in range(2):
        column = a[..., place].clamp(min=0) + b[..., place].clamp(min=0) + carry
        there = (a[..., place] >= 0) | (b[..., place] >= 0) | (carry > 0)
        places.append(torch.where(there, column % 10, ABSENT))
        carry = column // 10
    return torch.stack(places, -1)


@lru_cache
def every_context() -> tuple[Tensor, Tensor]:
    """(M, R) keys and (M,) tokens to write, without repetition; the query is the key at slot 5."""
    parts = [_starts()]
    for first in (True, False):
        states, carries = _states(first), torch.arange(1 if first else 2)
        u, x, carry = _all(states, states, carries)
        seen = torch.cat([x, _added(u, x, carry)], 1).unique(dim=0)  # u is out of sight
        seen, y, carry = _all(seen, states, carries)
        written = _added(seen[:, 2:], y, carry)
        reached = written[:, 0] != ABSENT
        parts.append(_rows(y, seen[:, :2], written[:, :1], seen[:, 2:], written[:, 1:])[reached])
        first_number = states[states[:, 0] != ABSENT]  # which is the first total
        nothing = torch.full_like(first_number, ABSENT)
        parts.append(_rows(first_number, nothing, first_number[:, :1], nothing, first_number[:, 1:]))
    found = torch.cat(parts)
    found[:, -1] = torch.where(found[:, -1] == ABSENT, EQUALS, found[:, -1])
    code = ((found + 1) * 16 ** torch.arange(found.shape[1])).sum(1)
    order = code.argsort()
    keep = torch.cat([torch.ones(1, dtype=torch.bool), code[order].diff() != 0])
    found = found[order[keep]]
    return found[:, :-1], found[:, -1]


def _all(first, second, third):
    """Every row of the first with every row of the second and of the third."""
    at = torch.cartesian_prod(*(torch.arange(len(table)) for table in (first, second, third)))
    return first[at[:, 0]], second[at[:, 1]], third[at[:, 2]]


def _rows(y, x, own, before, following):
    """Keys in the order of the slots, and what follows. Numbers are (M, 2), the lower place first."""
    return torch.cat([y.flip(1), x.flip(1), torch.full_like(own, ABSENT), own, before.flip(1), following], 1)


def _starts() -> Tensor:
    """Those after a sign of equality, where a line begins or the text ends."""
    rows = [[y, ABSENT, ABSENT, ABSENT, ABSENT, EQUALS, ABSENT, ABSENT, y] for y in range(10)]
    for y, x, before, sign in product([ABSENT, *range(10)], range(10), range(10), (ABSENT, PLUS)):
        if sign == PLUS or x == before:  # no sign stands before the first number, and its total is itself
            following, opened = (END, ABSENT) if y == ABSENT else ((before + y) % 10, PLUS)
            rows.append([y, opened, x, sign, ABSENT, EQUALS, before, EQUALS, following])
    return torch.tensor(rows)


def witness(keys: list[int]) -> list[int]:
    """At most three numbers in whose sum the (R,) keys occur. Raises ValueError where there are none."""
    y, x, own, before = (keys[1], keys[0]), (keys[3], keys[2]), keys[5], (keys[7], keys[6])
    if own == EQUALS:
        if before[0] == ABSENT:
            return [y[1]]
        numbers = [x[1]] if x[0] == ABSENT else [(before[1] - x[1]) % 10, x[1]]
        return numbers if y[1] == ABSENT else [*numbers, y[1]]
    if before == x == (ABSENT, ABSENT) and own == y[0]:
        return [_number(y, "")]
    for first in (True, False):
        if first and min(x[0], y[0]) < 0:
            continue  # at the lowest place every number has a digit
        carries = torch.arange(1 if first else 2)
        u, one, two = _all(_states(first), carries, carries)
        total = _added(u, torch.tensor(x), one)
        written = _added(total, torch.tensor(y), two)
        fits = ((total == torch.tensor(before)).all(1) & (written[:, 0] == own)).nonzero()[:, 0]
        if len(fits):
            row = int(fits[0])
            lowest = {(0, 0): "000", (1, 0): "990", (0, 1): "505", (1, 1): "999"}[int(one[row]), int(two[row])]
            lowest = ("", "", "") if first else lowest  # digits of u, x and y below, which carry so
            return [_number(n, low) for n, low in zip((u[row].tolist(), x, y), lowest, strict=True)]
    raise ValueError(f"no sum has {keys} around one of its answer's tokens")


def _number(places, low):
    """The number with this lowest digit, or none, and these above it; a zero on top has a one above it."""
    top = "1" if places[1] == 0 else ""
    return int(top + "".join(str(digit) for digit in reversed(places) if digit >= 0) + low)
