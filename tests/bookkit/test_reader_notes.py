"""What staging tells the reader of a chapter."""

import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from bookkit.build.reader_notes import WORDS_A_MINUTE, add_reader_notes, minutes, words
from bookkit.claims import Claim, Measurement, Scale, load_claims
from bookkit.judge import Verdict

TITLE = "# Waves\n\n**What is one?**"


def shown(*texts):
    """A code cell that puts out these pieces of HTML."""
    return new_code_cell(outputs=[new_output("display_data", {"text/html": text}) for text in texts])


def test_markup_is_no_text():
    text = (
        "```{admonition} In short\n:class: in-short\nIt is {glue:text}`peak` high, 3 % &\nmore.\n```\n:::{note}\nSo."
    )
    assert words(text) == len("It is {glue:text}`peak` high, 3 more. So.".split())


def test_a_minute_that_has_begun_counts_and_exercises_do_not():
    text = new_markdown_cell("wave " * WORDS_A_MINUTE)
    assert minutes(new_notebook(cells=[text])) == 1
    assert minutes(new_notebook(cells=[new_markdown_cell(TITLE), text])) == 2
    exercises = new_markdown_cell("## What was not shown\n\n## Exercises\n\nDraw " + "waves " * 1000)
    assert minutes(new_notebook(cells=[text, new_code_cell("wave " * 1000), exercises])) == 2


def test_it_stands_below_the_title():
    notebook = new_notebook(cells=[new_markdown_cell(TITLE), new_markdown_cell("They come.")])
    add_reader_notes(notebook)
    assert [cell.source for cell in notebook.cells] == [
        TITLE,
        '<p class="reading-time">1 minute to read, without code and exercises</p>',
        "They come.",
    ]


def staged(*cells):
    """The HTML that these cells put out in a page."""
    notebook = new_notebook(cells=[new_markdown_cell(TITLE), *cells])
    add_reader_notes(notebook)
    return [output.data["text/html"] for cell in notebook.cells[2:] for output in cell.outputs]


def test_the_sign_is_explained_once_at_the_first_table_of_verdicts_that_has_it():
    sure, unsure = '<ul class="verdicts"><li>4</li></ul>', '<ul class="verdicts"><li>4 ± 1</li></ul>'
    other = '<p class="verdict">Ours: 4 ± 1.</p>'
    texts = staged(shown("<p>2 ± 1</p>", sure), shown(other), shown(unsure), shown(unsure))
    assert texts[:3] == ["<p>2 ± 1</p>", sure, other] and texts[4] == unsure
    assert texts[3].startswith(f'{unsure}<p class="plus-minus"><small>In a verdict, <em>n</em> counts')


@pytest.mark.parametrize("note", [None, "Source: a second look <so> & so."])
def test_a_verdict_in_place_is_folded_under_what_the_source_says_and_loses_nothing(note):
    claim = Claim(
        "M-08", "004", "Is it < 3 & odd?", "Count.", "C", published="2 <waves>", answers={"partly": "Once."}
    )
    verdict = Verdict(claim, Measurement.of([1.0, 2.0]), "partly", Scale("analogue", {}), note)
    before = verdict._repr_html_()
    (after,) = staged(shown(before))
    fold = BeautifulSoup(after, "html.parser").details
    assert fold["class"] == ["verdict"] and "open" not in fold.attrs
    assert fold.summary.get_text() == "◐\xa0partly M-08 Is it < 3 & odd? Once."
    assert fold.p.get_text().startswith("Source: 2 <waves>. Ours: 1.5 ± 0.707 (n = 2 values, 1 to 2; analogue)")
    whole = BeautifulSoup(before, "html.parser").get_text()
    assert fold.get_text(" ").split() == whole.split()


def test_no_statement_has_the_words_at_which_it_would_be_cut():
    said = [text for claim in load_claims().values() for text in (claim.statement, *(claim.answers or {}).values())]
    assert said and not [text for text in said if "Source: " in text]
