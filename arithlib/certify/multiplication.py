"""What a page of long multiplication can show, of factors of every length (chapter 78).

A token of a page sees at most one key in each of `PAGE_SLOTS`, wherever it stands. So there are finitely many
*contexts*. Four numbers decide what is written at place m of row i: a and b, the digits m - i and i of the factors;
r, the digit above; and c, the carry that comes in. Where a digit or the row above does not reach, it counts as 0:

    digit   (a b + r + c) mod 10        carry   the tens of that sum

The carries of a row with the digit b are at most b, which `carries` finds by following them.

Dimensions: C contexts, R = 6 slots.
"""

from functools import lru_cache
from itertools import product

import numpy as np

from arithlib.tokenizer import ABSENT, END, EQUALS

DIGITS = range(10)


def carries(b: int, above: bool) -> set[int]:
    """Which carries can come into a place of a row with this digit, if digits stand above that row, or none.

    >>> [max(carries(b, above=True)) for b in range(10)]
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    found, waiting = {0}, [0]
    while waiting:
        carry = waiting.pop()
        sums = (a * b + r + carry for a in DIGITS for r in (DIGITS if above else [0]))
        new = {total // 10 for total in sums} - found
        found |= new
        waiting += new
    return found


@lru_cache
def reachable() -> tuple[np.ndarray, np.ndarray]:
    """(C, R) every context that a right page can show, in lexical order, and (C,) the token that has to come next."""
    follows = {(ABSENT, ABSENT, r, ABSENT, ABSENT, EQUALS): END for r in DIGITS}  # no further digit of b: the end

    def cell(a, b, r, before, last=False):
        """What follows before the digit of a place, and after it. before: the carry into it, or the row's sign."""
        carry = 0 if before == EQUALS else before
        tens, digit = divmod(max(a, 0) * b + max(r, 0) + carry, 10)
        follows[a, b, r, ABSENT, ABSENT, before] = digit
        follows[a, b, r, before, digit, ABSENT] = EQUALS if last else tens

    for b in DIGITS:
        for a in DIGITS:
            cell(a, b, ABSENT, EQUALS)  # the first place of all
        for r in DIGITS:
            cell(ABSENT, b, r, EQUALS)  # below the places of a, the digit above is copied
            cell(ABSENT, b, r, 0)
        for above in (False, True):
            for carry in carries(b, above):
                for a, r in product(DIGITS, DIGITS if above else [ABSENT]):
                    cell(a, b, r, carry)
                cell(ABSENT, b, ABSENT, carry, last=True)
    contexts = sorted(follows)
    return np.array(contexts), np.array([follows[context] for context in contexts])
