"""Next-token programs in RASP-L for the tasks of chapter 63 (after Zhou et al. 2023, arXiv 2310.16028).

Each takes a text (`ch63_tasks`) and gives at every place, from EQUALS on, the token that comes next. `PROGRAMS` names
them like their tasks. They are our own; how the reversed sum sees a carry is the idea of theirs.
"""

from functools import partial

import numpy as np

from chapters.ch63_rasp_l import (
    NOTHING,
    aggr,
    full,
    indices,
    sel_width,
    select,
    seq_map,
    step,
    tok_map,
    tokens,
)
from chapters.ch63_tasks import END, EQUALS, NUMBERS, PLUS, START

HINT = NUMBERS  # the first of the hints


def lookup(keys, queries, values, how="max", default=NOTHING):
    """The value where the key equals the query: a head of attention."""
    return aggr(select(keys, queries, np.equal), values, how, default)


def at(x, place):
    """The token at each place."""
    return lookup(indices(x), place, x)


def before(x, n=1):
    """The token n places earlier."""
    place = indices(x)
    for _ in range(n):
        place = step(place, -1)
    return lookup(indices(x), place, x)


def first(x, token):
    """Where a token occurs first."""
    return lookup(x, token, indices(x), "min")


def seen(x, token):
    """Whether a token has occurred: 1 or 0."""
    return lookup(x, full(x, token), full(x, 1), default=0)


def where(condition, x, y):
    """x where the condition is not 0, else y."""
    chosen = seq_map(condition, x, lambda c, one: one if c else -128)
    return seq_map(chosen, y, lambda one, other: other if one == -128 else one)


def counted(flags):
    """How many flags so far, where there is a flag; elsewhere 0."""
    return sel_width(select(flags, flags, lambda k, q: k and q))


def here(x, token):
    """Whether this is a token: 1 or 0."""
    return tok_map(x, lambda t: t == token)


def count(x):
    """One more than this, until it is the second number of the question."""
    last = lookup(x, full(x, EQUALS), before(x))
    return where(here(x, EQUALS), before(x, 2), seq_map(x, last, lambda t, end: END if t == end else t + 1))


def mode(x):
    """The letter at the place where a letter has occurred most often so far."""
    occurs = sel_width(select(x, x, lambda k, q: k == q < NUMBERS))
    most = aggr(select(x, x, lambda k, q: True), occurs)
    letter = at(x, lookup(occurs, most, indices(x)))
    return seq_map(x, letter, lambda t, answer: answer if t == EQUALS else END)


def copy_unique(x):
    """What follows the first place where the same token stands: an induction head."""
    token = tok_map(x, lambda t: START if t == EQUALS else t)
    return tok_map(at(x, step(first(x, token), 1)), lambda t: END if t == EQUALS else t)


def copy_by_counting(x):
    """The token at the place that has the number of tokens since EQUALS."""
    return tok_map(at(x, counted(seen(x, EQUALS))), lambda t: END if t == EQUALS else t)


def sort(x):
    """The least number that is greater than this one."""
    key = tok_map(x, lambda t: t if t < NUMBERS else -2)
    query = tok_map(x, lambda t: t if t < NUMBERS else -1)
    return aggr(select(key, query, np.greater), x, "min", default=END)


def parity(x):
    """Refused: a count has no remainder."""
    ones = sel_width(select(x, x, lambda k, q: k == 1))
    return tok_map(ones, lambda number: number % 2)


def parity_unrolled(x, steps):
    """Right for up to so many bits: one bit more is a few primitives more."""
    bits = tok_map(x, lambda t: t if t < 2 else 0)
    odd, rest = bits, bits
    for _ in range(steps):
        rest = before(rest)
        odd = seq_map(odd, rest, lambda one, other: (one + (other == 1)) % 2)
    return seq_map(x, odd, lambda t, answer: answer if t == EQUALS else END)


def parity_steps(x):
    """After a hint its bit, added to what was written last; after a bit the hint that follows in the question."""
    last = before(x)
    name = seq_map(x, last, lambda t, one: START if t == EQUALS else t if t >= NUMBERS else one)
    place = step(first(x, name), 1)
    bit, following = at(x, place), at(x, step(place, 1))
    parity_so_far = seq_map(bit, last, lambda b, odd: (b + (odd == 1)) % 2 if b < 2 else b)
    following = tok_map(following, lambda t: END if t == EQUALS else t)
    return where(tok_map(x, lambda t: t >= NUMBERS), parity_so_far, following)


def column_sums(x, partner):
    """At the digits of the second operand their sum with `partner`, the digits of the first; elsewhere NOTHING."""
    pair = seq_map(x, partner, lambda t, other: t + other if 0 <= other < 10 and t < 10 else NOTHING)
    return where(between(x), pair, full(x, NOTHING))


def between(x):
    """Whether a token is PLUS or of the second operand."""
    return seq_map(seen(x, PLUS), seen(x, EQUALS), lambda plus, equals: plus and not equals)


def carry_of_answer(previous_sum, previous_digit):
    """What the column written last hands on: a sum of 9 has its 0 from a carry."""
    return seq_map(previous_sum, previous_digit, lambda s, digit: s > 9 or (s == 9 and digit == 0))


class Search:
    """Carries from the sums alone: the next sum to the right that is not 9 decides.

    Sums other than 9 are counted from the left. Of the column with count c, that next sum is the first with count
    c + 1; after it come only nines.
    """

    def __init__(self, sums):
        self.place = counted_so_far(tok_map(sums, lambda s: s not in (9, NOTHING)))
        self.gives = tok_map(sums, lambda s: s > 9)

    def into(self, names, column):
        """The carry into the column that has this name."""
        return lookup(self.place, step(lookup(names, column, self.place), 1), self.gives, default=0)


def counted_so_far(flags):
    """How many flags so far, at every place."""
    return sel_width(select(flags, flags, lambda k, q: k))


def digit_of(column_sum, carry):
    """The digit of a column with its carry; END where there is no column."""
    return seq_map(column_sum, carry, lambda s, c: END if s == NOTHING else (s + c) % 10)


def add_with_hints(x, reverse):
    """After a hint the digit of its column, after a digit the hint of the next column."""
    last = before(x)
    names = where(between(x), last, full(x, NOTHING))  # at the digits of the second operand
    sums = column_sums(x, at(x, step(first(x, last), 1)))
    column_sum = lookup(names, x, sums)
    highest, lowest = at(x, first_place(x)), lookup(x, full(x, EQUALS), before(x, 2))
    if reverse:
        previous = tok_map(x, lambda t: t + 1)
        carry = carry_of_answer(lookup(names, previous, sums), last)
        begin, end, onward = lowest, highest, -1
    else:
        carry = Search(sums).into(names, x)
        begin, end, onward = highest, lowest, 1
    digit = digit_of(column_sum, carry)
    name = seq_map(last, end, lambda now, end: END if now == end else now + onward)
    answer = where(tok_map(x, lambda t: HINT <= t < PLUS), digit, name)
    return where(here(x, EQUALS), begin, answer)


def first_place(x):
    """The place after START."""
    return step(first(x, full(x, START)), 1)


def add_without_hints(x, reverse):
    """Columns by their number: a count of digits since PLUS in the question, since EQUALS in the answer.

    Reversed, the answer needs column n - c. No difference of indices is allowed, but the number of columns from c on
    can be counted, and is one.
    """
    names = counted(between(x))  # 1 at PLUS, then 2, 3, ... at the digits of the second operand; 0 elsewhere
    sums = column_sums(x, at(x, step(names, -1)))
    written = step(counted(seen(x, EQUALS)), 1)  # 2 at EQUALS
    if not reverse:
        return digit_of(lookup(names, written, sums), Search(sums).into(names, written))
    column = sel_width(select(names, written, np.greater_equal))
    previous = lookup(names, step(step(column, 1), 1), sums)
    return digit_of(lookup(names, step(column, 1), sums), carry_of_answer(previous, x))


PROGRAMS = {
    "count": count,
    "mode": mode,
    "copy-unique": copy_unique,
    "copy-repeated": copy_by_counting,
    "sort": sort,
    "parity-steps": parity_steps,
    "add-reversed-hints": partial(add_with_hints, reverse=True),
    "add-forward-hints": partial(add_with_hints, reverse=False),
    "add-reversed": partial(add_without_hints, reverse=True),
    "add-forward": partial(add_without_hints, reverse=False),
}


def run(program, texts, Q):
    """(B, T) texts whose answers begin at Q -> (B,) whether a program writes the answer, and the primitives it used.

    Up to a first mistake the program reads what it has written, so one pass over the right text decides.
    """
    x = tokens(texts)
    said = program(x).values
    return (said[:, Q - 1 : -1] == texts[:, Q:]).all(1), x.trace
