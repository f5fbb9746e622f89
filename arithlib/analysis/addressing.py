"""What a perfect adder gets wrong when it runs out of trained addresses: exact, no fitted parameter (chapter 33).

Under offset o the digits of column j stand at row o + j of the address table. Training on operands of up to N digits
with offsets from 0 to k - 1 never shows an operand's digit beyond row k - 1 + N, nor any digit beyond row k + N. An
adder that is right whenever the rows it needs are trained, and wrong otherwise, has an accuracy that follows from
lengths, offsets and the last trained row alone. So has the number of times that training visits each row, that is,
draws a sum with a digit whose address the row is.

The offset policies are those of `arithlib.models.positions`. A is the number of rows that digits can have as their
address, and row 0, which everything else has; L is the number of digits of the longer operand.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import comb, prod

import numpy as np

from arithlib.models.positions import Offsets

# Which rows a step of writing needs. A column with a digit of an operand needs the row of that digit in all readings.
READINGS = {
    "operands": "where an operand has a digit to read; the carry out and the end token read none",
    "columns": "every column of the sum, the carry out included",
    "standing": "the carry out and the end token need the row of the digit written last, where the model stands",
    "tokens": "every token: the end token needs the row of the column it leaves empty",
}


def last_rows(max_digits: int, k: int) -> dict[str, int]:
    """The last row that training on sums of up to `max_digits` digits shows on an operand, and on any digit.

    Any digit is one of the sum, which may have a column more than its operands.

    >>> last_rows(20, 100)
    {'operand': 119, 'any': 120}
    """
    return {"operand": k - 1 + max_digits, "any": k + max_digits}


# ---- sums --------------------------------------------------------------------------------------------------------


def carry_out(n: int, m: int) -> Fraction:
    """Probability that the sum of random numbers of n and m digits has a column more than the longer (chapter 30).

    Numbers do not begin with zero, except the number 0, which has one digit. With b the shorter and a any of the S
    numbers of L digits, a + b reaches 10^L for min(b, S) of them.

    >>> carry_out(1, 1), float(carry_out(20, 20))  # 45 of 100 pairs of digits add up to ten or more
    (Fraction(9, 20), 0.6049382716049383)
    """
    n, m = sorted((n, m))
    if n < 1:
        raise ValueError(f"numbers of {n} and {m} digits: each has at least one")
    first, last = (0 if n == 1 else 10 ** (n - 1)), 10**n - 1
    S = 10 if m == 1 else 9 * 10 ** (m - 1)
    turn = min(last, S)
    reaching = (first + turn) * (turn - first + 1) // 2 + (last - turn) * S
    return Fraction(reaching, S * (last - first + 1))


# ---- predictions -------------------------------------------------------------------------------------------------


def rows_needed(length: int, carry: bool, reading: str = "operands") -> list[int]:
    """For each step that needs a row, which one at offset 0; `length` digits in the longer operand.

    carry: whether the sum has a column more. reading: one of READINGS. Raises ValueError for any other.

    >>> rows_needed(3, True), rows_needed(3, True, "standing"), rows_needed(3, True, "tokens")
    ([1, 2, 3], [1, 2, 3, 3, 4], [1, 2, 3, 4, 5])
    """
    if reading not in READINGS:
        raise ValueError(f"reading {reading!r}: choose one of {', '.join(READINGS)}")
    digits = list(range(1, length + 1))
    more = {
        "operands": [],
        "columns": [length + 1] * carry,
        "standing": [length, length + 1] if carry else [length],
        "tokens": [length + 1, length + 2] if carry else [length + 1],
    }
    return digits + more[reading]


def exact_given_carry(
    length: int,
    carry: bool,
    offsets: Offsets,
    last_row: int,
    reading: str = "operands",
    guess: Fraction = Fraction(0),
) -> Fraction:
    """Probability that a perfect adder that can read rows 1 to `last_row` writes such a sum.

    length, carry, reading: as in `rows_needed`. guess: how often it is right at a step whose row it cannot read; one
    in ten if it names any digit. Under one offset for the whole sum all missing rows must be guessed at once; offsets
    redrawn at every step run the risk step by step, and the probabilities multiply.

    >>> round(float(exact_given_carry(40, False, Offsets("redrawn", k=100), last_row=119)), 3)
    0.104
    """
    needed = rows_needed(length, carry, reading)

    def right(offset, rows):
        return guess ** sum(offset + row > last_row for row in rows)

    if offsets.policy == "fixed":
        return Fraction(right(offsets.value, needed))
    if offsets.policy != "redrawn":
        return Fraction(sum(right(offset, needed) for offset in range(offsets.k)), offsets.k)
    trained = [min(max(last_row - row + 1, 0), offsets.k) for row in needed]  # of k offsets, those that leave it so
    return prod((n + guess * (offsets.k - n)) / Fraction(offsets.k) for n in trained)


def predicted_grid(
    rows: Sequence[int],
    columns: Sequence[int],
    offsets: Offsets,
    last_row: int,
    reading: str = "operands",
    carry: np.ndarray | None = None,
    guess: Fraction = Fraction(0),
) -> np.ndarray:
    """(rows, columns) probability that a perfect adder writes a random sum of so many digits in each operand.

    carry: (rows, columns) share of sums with a carry out, where it is known; `carry_out` by default. guess: as in
    `exact_given_carry`.
    """
    table = {
        (length, one): float(exact_given_carry(length, one, offsets, last_row, reading, guess))
        for length in {max(a, b) for a in rows for b in columns}
        for one in (False, True)
    }
    share = np.array([[float(carry_out(a, b)) for b in columns] for a in rows]) if carry is None else carry
    without, with_one = (np.array([[table[max(a, b), one] for b in columns] for a in rows]) for one in (False, True))
    return (1 - share) * without + share * with_one


def predicted_means(
    side: Sequence[int], max_digits: int, offsets: Offsets, carry: np.ndarray | None = None
) -> dict[tuple[str, int, Fraction], float]:
    """Mean accuracy of a perfect adder on all pairs of lengths in `side`, under every reading of what it needs.

    The key says what needs a row (READINGS), which row is the last that can be read (`last_rows`), and how often a
    digit that cannot be read is guessed: never, or one time in ten.
    """
    return {
        (reading, row, guess): float(predicted_grid(side, side, offsets, row, reading, carry, guess).mean())
        for reading in READINGS
        for row in last_rows(max_digits, offsets.k).values()
        for guess in (Fraction(0), Fraction(1, 10))
    }


def standard_error(grid: np.ndarray, count: int) -> float:
    """Of the mean of a grid of true accuracies, each cell measured on `count` independent sums.

    Where the accuracies are themselves shares of n measured sums, count = n - 1 makes its square unbiased.
    """
    return float(np.sqrt((grid * (1 - grid)).sum() / count) / grid.size)


def worst_cell(grid: np.ndarray, count: int) -> np.ndarray:
    """(count + 1,) probability that the worst cell has at most 0, 1, ... sums right, each measured on `count`.

    The worst of many measured cells is lower than the lowest true accuracy: it is the unluckiest of all that are low.
    """
    right = np.arange(count + 1)
    ways = np.array([float(comb(count, r)) for r in right])
    above = np.ones(count + 1)  # that no cell so far has at most so many right
    for p, cells in zip(*np.unique(grid, return_counts=True), strict=True):
        at_most = np.cumsum(ways * p**right * (1 - p) ** (count - right))
        above *= (1 - at_most).clip(0) ** cells
    return 1 - above


# ---- visits ------------------------------------------------------------------------------------------------------


def longest_number(max_digits: int, part: str = "any") -> np.ndarray:
    """(N + 2,) probability that the longest number of a training sum has 0, 1, ... N + 1 digits.

    part: "any" counts the sum, "operand" its operands only. Both lengths are uniform from 1 to N = max_digits.
    """
    if part not in ("any", "operand"):
        raise ValueError(f'part {part!r}: choose "any" or "operand"')
    share = [Fraction(0)] * (max_digits + 2)
    for n in range(1, max_digits + 1):
        for m in range(1, max_digits + 1):
            carry = carry_out(n, m) if part == "any" else Fraction(0)
            share[max(n, m)] += (1 - carry) / max_digits**2
            share[max(n, m) + 1] += carry / max_digits**2
    return np.array(share, dtype=float)


def row_visits(max_digits: int, k: int, part: str = "any") -> np.ndarray:
    """(A,) probability that a training sum has a digit at row 0, 1, ... k + max_digits (row 0 is never a digit's).

    Under offset o a sum has a digit at row r if r - o is from 1 to the length of its longest number: itself, or of
    its operands if part is "operand". Whether one draw serves a sum or a batch makes no difference to this mean;
    `rows_touched` tells them apart.
    """
    at_least = longest_number(max_digits, part)[::-1].cumsum()[::-1]  # (N + 2,) that it has so many digits or more
    visits = np.zeros(k + max_digits + 1)
    for offset in range(k):
        visits[offset + 1 : offset + max_digits + 2] += at_least[1:] / k
    return visits


def rows_touched(max_digits: int, offsets: Offsets, batch_size: int, part: str = "any") -> np.ndarray:
    """(A,) probability that an update moves row 0, 1, ...: that at least one sum of its batch has a digit there."""
    if offsets.policy == "per sample":
        return 1 - (1 - row_visits(max_digits, offsets.k, part)) ** batch_size
    at_least = longest_number(max_digits, part)[::-1].cumsum()[::-1]
    in_batch = 1 - (1 - at_least) ** batch_size  # one sum of the batch is long enough
    draws = range(offsets.k) if offsets.policy == "per batch" else [offsets.value]
    touched = np.zeros(offsets.largest + max_digits + 2)
    for offset in draws:
        touched[offset + 1 : offset + max_digits + 2] += in_batch[1:] / len(draws)
    return touched
