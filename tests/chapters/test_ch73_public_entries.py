"""What was measured of public entries does not contradict itself, and its table says it."""

import pytest

from chapters.ch73_public_entries import BOARD, ENTRIES, Entry, table, with_power

WRONG = Entry(True, 40, "somebody", 10_000, (5000, 2), (70_000, 0), 925_000, -0.25, "1+2", "somebody/adder")


@pytest.mark.parametrize("one", ENTRIES, ids=lambda one: one.source)
def test_an_entry_fails_exactly_where_its_least_lead_is_not_positive(one):
    wrong = one.random[1] + one.hard[1] + BOARD - one.board
    assert (one.fails is None) == (wrong == 0) == (one.lead > 0)
    if one.fails:
        assert all(0 <= int(number) < 10**10 for number in one.fails.split("+"))


def test_no_entry_is_listed_twice_and_the_smallest_come_first():
    assert len({one.source for one in ENTRIES}) == len(ENTRIES)
    order = [(one.trained, one.parameters) for one in ENTRIES]
    assert order == sorted(order)


def test_the_table_shows_what_was_measured():
    assert table((WRONG,)).rows == (("somebody", "40", "trained", "0.1", "0.04", "0", "1.00", "−0.25", "1 + 2"),)


def test_its_entries_that_fail_come_first_and_the_smallest_of_either_kind():
    rows = table(ENTRIES).rows
    failing = ["+" in row[-1] for row in rows]
    assert failing == sorted(failing, reverse=True) and any(failing) and len(rows) == len(ENTRIES)
    listed = [(one.fails is None, one.trained, one.parameters) for one in ENTRIES]
    assert [int(row[1]) for row in rows] == [parameters for *_, parameters in sorted(listed)]


@pytest.mark.parametrize("number, shown", [("-4e+10", "−4 · 10¹⁰"), ("9e-08", "9 · 10⁻⁸"), ("-0.37", "−0.37")])
def test_a_number_is_shown_with_a_power_of_ten(number, shown):
    assert with_power(number) == shown
