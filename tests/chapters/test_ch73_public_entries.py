"""What was measured of public entries does not contradict itself, and its table says all of it."""

import pytest
from bs4 import BeautifulSoup

from chapters.ch73_public_entries import BOARD, ENTRIES, Entry, table

WRONG = Entry(True, 40, "somebody", 10_000, (500, 2), (700, 3), 900, -0.25, "1+2", "somebody/adder adder.py 0123abcd")


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
    page = BeautifulSoup(table((WRONG,)), "html.parser")
    [row] = [[cell.text for cell in row.find_all("td")] for row in page.tbody.find_all("tr")]
    assert row == [
        "somebody, trained", "40", "10,000 of 10,010", "2 of 500", "3 of 700", "900", "−0.25", "1+2",
        "somebody/adder adder.py 0123abcd",
    ]  # fmt: skip
    assert len(page.thead.find_all("th")) == len(row)
