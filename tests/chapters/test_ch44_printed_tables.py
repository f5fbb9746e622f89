"""The printed tables: nothing is lost in reading them, and what they share agrees."""

import numpy as np
import pytest

from bookkit.claims import load_claims
from chapters import ch44_printed_tables as loop_tables

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


def test_the_depths_of_the_primitives_are_means_of_the_columns_of_table_8():
    for row in loop_tables.task_rows():
        if row.group == "primitives":
            code_0, maths_0, code_1, maths_1 = row.tasks
            expected = [(code_0 + maths_0) / 2, (code_1 + maths_1) / 2]
            assert loop_tables.by_depth(row.model).tolist() == pytest.approx(expected)
    assert loop_tables.tasks("4x6", "maths").tolist() == [19.9, 49.1, 1.7, 29.3, 35.9, 12.6]


def test_a_possible_gap_holds_that_of_the_entries_and_is_narrower_in_perplexity_than_scores_would_make_it():
    few, looped, deep = loop_tables.gap_entries("8x3", "perplexity")
    low, high = loop_tables.possible_gap("8x3", "perplexity")
    assert (few, looped, deep) == (8.75, 8.19, 7.40)
    assert low < 100 * (looped - few) / (deep - few) < high and high - low < 2
    low, high = loop_tables.possible_gap("12x2", "maths")
    assert low < 100 * (34.3 - 26.7) / (29.3 - 26.7) < high and high - low > 20


def test_a_printed_gap_is_accounted_for_by_rounding_and_by_cutting_and_a_wrong_one_is_not():
    shown = loop_tables.printed_gaps()
    assert all(
        loop_tables.accounts(*loop_tables.possible_gap(model, "perplexity"), shown[model]["perplexity"])
        for model in loop_tables.LOOPED
    )
    assert not loop_tables.accounts(*loop_tables.possible_gap("12x2", "perplexity"), 43)  # 34 misread


def test_unlooped_models_are_on_their_own_curve_and_a_planted_lead_is_found():
    scores = {model: 10 - 3 * np.log(TABLES[model]["perplexity"]) for model in TABLES}  # one straight line
    for model in (*loop_tables.UNLOOPED, *loop_tables.LOOPED):
        assert loop_tables.above_unlooped(model, scores) == pytest.approx(0, abs=1e-9)
        assert loop_tables.above_unlooped(model, scores | {model: scores[model] + 2}) == pytest.approx(
            0 if model in loop_tables.UNLOOPED else 2, abs=1e-9
        )
    with pytest.raises(ValueError, match="apart"):
        loop_tables.above_unlooped("reg4", scores)  # its perplexity is below that of 24 layers
