"""Sums of many numbers with running totals: `21+43+5=21=64=15=$` is 12 + 34 + 5, by way of 46 (chapter 74).

The question and the answer are two tables with a line for each number. A sign opens a line, and the answer's line r
is the total of numbers 0 to r. Numbers are written lowest digit first. Written by columns, both tables are turned
over: a line for each place, lowest place first, and in it a digit for each number, filled up with zeros to the digits
of the sum, so that the question in columns tells how many the answer has.

    rows       21+43+5=21=64=15=$
    columns    245+130=261=145=$        12 + 34 + 5 = 51
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from arithlib.settings import of_kind
from arithlib.tasks.operands import of_length

LAYOUTS = ("rows", "columns")
KINDS = (
    "all nines",
    "a carry through every column, and on",  # 99...9, then ones: 10...0, 10...1, ...
    "nines, then one, in turns",  # each second number fills the total up to nines, the next makes it carry
    "all zeros",
    "one number among zeros",
    "one number, the rest a digit each",
    "growing lengths",
    "shrinking lengths",
    "any lengths",
    "all of full length",
)


@of_kind("running-totals")
@dataclass(frozen=True)
class RunningTotals:
    """Sums of 1 to `max_count` numbers of 1 to `max_digits` digits each, all equally likely, as text.

    layout: "rows" (a number a line) or "columns" (a place a line).
    """

    max_digits: int = 5
    max_count: int = 4
    layout: str = "rows"

    def __post_init__(self):
        if self.max_digits < 1 or self.max_count < 1:
            raise ValueError(f"{self.max_count} numbers of up to {self.max_digits} digits: at least 1 of each")
        if self.layout not in LAYOUTS:
            raise ValueError(f"layout = {self.layout!r}: choose one of {', '.join(LAYOUTS)}")

    def sample(self, rng: random.Random) -> list[int]:
        """The numbers of one sum."""
        return [of_length(rng.randint(1, self.max_digits), rng) for _ in range(rng.randint(1, self.max_count))]

    def write(self, numbers: Sequence[int]) -> str:
        """The whole text, end token included.

        >>> RunningTotals().write([12, 34, 5]), RunningTotals(layout="columns").write([12, 34, 5])
        ('21+43+5=21=64=15=$', '245+130=261=145=$')
        """
        tables = [_lowest_first(numbers), _lowest_first(list(accumulate(numbers)))]
        if self.layout == "columns":
            width = max(map(len, tables[1]))
            tables = [["".join(column) for column in zip(*(line.ljust(width, "0") for line in table), strict=True)]
                      for table in tables]  # fmt: skip
        question, answer = tables
        return "+".join(question) + "=" + "=".join(answer) + "=$"

    def ask(self, numbers: Sequence[int]) -> str:
        """The text up to and including the sign of equality."""
        text = self.write(numbers)
        return text[: text.index("=") + 1]

    def read(self, text: str) -> int:
        """The sum that a whole text states. Raises ValueError where it does not end in `=$`, or states no number.

        >>> RunningTotals().read('21+43+5=21=64=15=$')
        51
        """
        if not text.endswith("=$"):
            raise ValueError(f"{text[-40:]!r} has no end")
        lines = text.split("=")[1:-1]
        digits = lines[-1] if self.layout == "rows" else "".join(line[-1:] for line in lines)
        return int(digits[::-1])


def _lowest_first(numbers):
    return [str(number)[::-1] for number in numbers]


def stress_totals(digits: int, count: int, sums: int, rng: random.Random) -> tuple[list[list[int]], list[str]]:
    """Sums of `count` numbers of up to `digits` digits: each of KINDS once, in that order, then random ones.

    Returns the numbers of `sums` sums and the kind of each. Raises ValueError for fewer sums than kinds.
    """
    if sums < len(KINDS):
        raise ValueError(f"{sums} sums: at least {len(KINDS)}, one of each kind")
    nines = 10**digits - 1

    def each(length):
        return [of_length(length(place), rng) for place in range(count)]

    full = each(lambda place: digits)
    turns, total = [], 0
    for place in range(count):
        turns.append(1 if place % 2 else (nines - total) % 10**digits)
        total += turns[-1]
    rest = [rng.randrange(10) for _ in range(count - 1)]
    made = [
        [nines] * count, [nines] + [1] * (count - 1), turns, [0] * count,
        [full[0] if place == count // 2 else 0 for place in range(count)], [full[0], *rest],
        each(lambda place: 1 + place * (digits - 1) // max(count - 1, 1)),
        each(lambda place: digits - place * (digits - 1) // max(count - 1, 1)),
        each(lambda place: rng.randint(1, digits)), full,
    ]  # fmt: skip
    made += [each(lambda place: rng.randint(1, digits)) for _ in range(sums - len(KINDS))]
    return made, [*KINDS, *["any lengths"] * (sums - len(KINDS))]
