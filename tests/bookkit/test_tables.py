"""Tables of numbers: what is written in a cell, in both forms; and what a table refuses."""

import numpy as np
import pytest
import torch

from bookkit import table
from bookkit.records import ChapterError


def test_cells_are_written_by_their_kind():
    shown = table(
        ("what", "ours"), [("text", "a < b"), ("share", 0.5), ("steps", 12_000), ("seeds", [1.25, -2.0])], ".1f"
    )
    assert shown.rows == (("text", "a < b"), ("share", "0.5"), ("steps", "12,000"), ("seeds", "1.2, −2.0"))
    assert table(("n", "steps"), [("each", [1000, 20_000]), ("mean", [1234.5, 0.5])], ",.0f").rows == (
        ("each", "1000, 20000"),
        ("mean", "1234, 0"),
    )
    assert table(("n", "loss"), [(1000, torch.tensor(0.25)), (np.int64(20), np.float32(1))], ".2f").rows == (
        ("1,000", "0.25"),
        ("20", "1.00"),
    )


def test_the_text_is_aligned_and_names_its_caption():
    lines = repr(table(("digits", "right, %"), [(10, 99.3), (100, 7)], ".1f", caption="one seed")).splitlines()
    assert lines == ["one seed", "digits  right, %", "10          99.3", "100            7"]


def test_columns_of_words_stand_left_and_those_with_a_number_right():
    shown = table(
        ("task", "learned", "from", "far, %"),
        [("add", "yes", "12 examples", "—"), ("sort", "not once", "< 5", 7), ("copy", "", "none", "± 2")],
    )
    assert shown.left == [True, True, False, False]
    assert repr(shown).splitlines()[1:3] == [
        "add   yes       12 examples       —",
        "sort  not once          < 5       7",
    ]
    page = shown._repr_html_()
    assert '<th scope="col" class="words">learned</th><th scope="col">from</th>' in page
    assert '<td class="words">yes</td><td>12 examples</td>' in page


def test_a_page_gets_headings_for_rows_and_columns_and_nothing_unescaped():
    page = table(("a<b", "n"), [("<script>", 1)], caption="x & y")._repr_html_()
    assert '<th scope="col" class="words">a&lt;b</th><th scope="col">n</th>' in page
    assert '<th scope="row" class="words">&lt;script&gt;</th><td>1</td>' in page
    assert "<caption>x &amp; y</caption>" in page


@pytest.mark.parametrize("rows", [[], [()], [("only a name",)], [("one", 1), ("more", 1, 2)]])
def test_rows_that_fit_no_heading_are_refused(rows):
    with pytest.raises(ChapterError, match="row"):
        table(("what", "ours"), rows)


def test_true_and_false_are_no_cells():
    with pytest.raises(ChapterError, match="in words"):
        table(("what", "ours"), [("proven", np.bool_(True))])
