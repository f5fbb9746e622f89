"""The printed tables: nothing is lost in reading them, and what they share agrees."""

import pytest

from arithlib.analysis import loop_tables
from bookkit.claims import load_claims

TABLES = loop_tables.summaries()


def test_four_tables_have_thirteen_models_each():
    rows = loop_tables.task_rows()
    assert [sum(row.group == group for row in rows) for group in loop_tables.GROUPS] == [13] * 4
    assert len({row.model for row in rows}) == 13


@pytest.mark.parametrize("row", loop_tables.task_rows(), ids=lambda row: f"{row.model}-{row.group}")
def test_an_average_is_the_same_in_both_tables_that_print_it(row):
    assert TABLES[row.model][row.group] == row.printed


def test_a_slip_in_a_task_would_show_in_its_average():
    assert all(row.agrees for row in loop_tables.task_rows())
    planted = loop_tables.TaskRow("24x1", "closed", (24.5, 16.0, 4.3, 5.6), 11.2)  # 10.6 with two digits changed
    assert not planted.agrees


def test_the_tables_hold_the_numbers_of_the_claims():
    claims = load_claims()
    value = claims["L-33"].value
    assert [TABLES[m]["perplexity"] for m in ("24x1", "12x1", "12x2", "4x6")] == [
        value[name] for name in ("layers_24", "base_12", "loop_12", "loop_4")
    ]
    gaps = loop_tables.printed_gaps()
    assert gaps["6x4"]["closed"] == claims["L-34"].value["closed_6"]
    assert TABLES["4x6"]["primitives"] == claims["L-37"].value["k_4"]
    assert TABLES["middle"] == {
        "perplexity": 7.81, "closed": 11.0, "open": 32.3, "maths": 28.3, "fifteen": 25.0, "primitives": 56.5
    }  # fmt: skip


def test_every_looped_model_has_its_partners():
    assert loop_tables.printed_gaps().keys() == loop_tables.FEW.keys()
    assert {*loop_tables.FEW, *loop_tables.FEW.values(), loop_tables.DEEP} <= TABLES.keys()
