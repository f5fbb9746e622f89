"""What a comparison and a subtraction can show, of numbers of every length (chapter 79).

A token of a difference sees at most one key in each of `DIFFERENCE_SLOTS`, wherever it stands. So there are finitely
many *contexts*. The first pass writes column by column which number is less so far: the digits decide, and where they
are equal the column below does. The second pass writes the sign, which is the last word of the first, and the digits
of the larger number less the smaller. Of these a column borrows just if in the columns below it the larger number is
the less: what the first pass has written is the borrow.

Dimensions: C contexts, R = 5 slots.
"""

from functools import lru_cache
from itertools import product

import numpy as np

from arithlib.tokenizer import ABSENT, END, EQUALS, MINUS, PLUS

EQUAL, FIRST_LESS, SECOND_LESS = range(3)  # as the first pass writes it, in digits
DIGITS = range(10)


def compared(a: int, b: int, below: int) -> int:
    """Which number is less up to a column with these digits, ABSENT for none, by which is less below it."""
    a, b = max(a, 0), max(b, 0)
    return FIRST_LESS if a < b else SECOND_LESS if a > b else below


def subtracted(a: int, b: int, below: int, sign: int) -> int:
    """The digit of a column of the larger number less the smaller."""
    first, second, borrows = (b, a, SECOND_LESS) if sign == MINUS else (a, b, FIRST_LESS)
    return (max(first, 0) - max(second, 0) - (below == borrows)) % 10


@lru_cache
def reachable() -> tuple[np.ndarray, np.ndarray]:
    """(C, R) every context that a right text can show, in lexical order, and (C,) the token that has to come next."""
    follows = {}
    for a, b in product(DIGITS, DIGITS):
        follows[a, b, ABSENT, ABSENT, EQUALS] = compared(a, b, EQUAL)
        for sign in (PLUS, MINUS):
            follows[a, b, ABSENT, sign, ABSENT] = subtracted(a, b, EQUAL, sign)
    for below in (EQUAL, FIRST_LESS, SECOND_LESS):
        follows[ABSENT, ABSENT, below, ABSENT, EQUALS] = MINUS if below == FIRST_LESS else PLUS
        for a, b in product([ABSENT, *DIGITS], repeat=2):
            over = a == b == ABSENT
            follows[a, b, ABSENT, ABSENT, below] = EQUALS if over else compared(a, b, below)
            for sign in signs(a, b, below):
                for own in [0] if below == EQUAL else DIGITS:  # where all is equal so far, zeros were written
                    follows[a, b, below, sign, own] = END if over else subtracted(a, b, below, sign)
    contexts = sorted(follows)
    return np.array(contexts), np.array([follows[context] for context in contexts])


def signs(a: int, b: int, below: int) -> set[int]:
    """Which signs a difference can have with these digits in a column, by which number is less below it."""
    if a == b == ABSENT:
        return {MINUS if below == FIRST_LESS else PLUS}
    # No number begins with a zero, so the longer one is the larger.
    return {MINUS} if a == ABSENT else {PLUS} if b == ABSENT else {PLUS, MINUS}
