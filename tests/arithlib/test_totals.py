"""Sums of many numbers are written as their docstrings say, and the hard ones are as hard as their names."""

import random
from itertools import accumulate

import pytest

from arithlib.tasks.totals import KINDS, LAYOUTS, RunningTotals, stress_totals


def by_hand(numbers, layout):
    """The text, cell by cell."""
    totals = list(accumulate(numbers))
    if layout == "rows":
        return "+".join(str(n)[::-1] for n in numbers) + "".join(f"={str(n)[::-1]}" for n in totals) + "=$"
    places = [10**place for place in range(len(str(totals[-1])))]
    tables = [["".join(str(n // place % 10) for n in table) for place in places] for table in (numbers, totals)]
    return "+".join(tables[0]) + "=" + "=".join(tables[1]) + "=$"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_text_is_its_tables_cell_by_cell_and_states_the_sum(layout):
    rng, task = random.Random(0), RunningTotals(max_digits=6, max_count=5, layout=layout)
    sums = [task.sample(rng) for _ in range(300)] + [[0], [0, 0], [999, 1], [1, 999], [99] * 12]
    for numbers in sums:
        text = task.write(numbers)
        assert text == by_hand(numbers, layout) and task.read(text) == sum(numbers)
        assert text.startswith(task.ask(numbers)) and task.ask(numbers).count("=") == 1


def test_every_count_and_length_is_drawn_and_none_beyond():
    rng, task = random.Random(1), RunningTotals(max_digits=3, max_count=2)
    sums = [task.sample(rng) for _ in range(2000)]
    assert {len(numbers) for numbers in sums} == {1, 2}
    assert {len(str(n)) for numbers in sums for n in numbers} == {1, 2, 3}
    assert {n for numbers in sums for n in numbers if n < 10} == set(range(10))


@pytest.mark.parametrize(("digits", "count"), [(1, 1), (2, 3), (7, 5), (40, 30)])
def test_every_kind_is_what_it_says(digits, count):
    sums, kinds = stress_totals(digits, count, 14, random.Random(2))
    assert kinds == [*KINDS, *["any lengths"] * 4] and all(len(numbers) == count for numbers in sums)
    assert all(0 <= n < 10**digits for numbers in sums for n in numbers)
    by_kind, nines = dict(zip(kinds, sums, strict=True)), 10**digits - 1
    assert set(by_kind["all nines"]) == {nines} and set(by_kind["all zeros"]) == {0}
    assert list(accumulate(by_kind["a carry through every column, and on"])) == [nines + i for i in range(count)]
    totals = list(accumulate(by_kind["nines, then one, in turns"]))
    assert all(total % 10**digits == (nines, 0)[place % 2] for place, total in enumerate(totals))
    assert sum(n > 0 for n in by_kind["one number among zeros"]) <= 1
    assert all(n < 10 for n in by_kind["one number, the rest a digit each"][1:])
    lengths = [len(str(n)) for n in by_kind["growing lengths"]]
    assert lengths == sorted(lengths) and [len(str(n)) for n in by_kind["all of full length"]] == [digits] * count


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        RunningTotals(max_count=0)
    with pytest.raises(ValueError, match="rows, columns"):
        RunningTotals(layout="diagonals")
    with pytest.raises(ValueError, match="at least 10"):
        stress_totals(3, 3, 9, random.Random())
    for text in ("1+2=1=3", "1+2=1==$"):
        with pytest.raises(ValueError):
            RunningTotals().read(text)
