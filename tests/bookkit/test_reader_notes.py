"""What staging tells the reader of a chapter."""

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from bookkit.build.reader_notes import WORDS_A_MINUTE, add_reader_notes, minutes, words

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


def test_the_sign_is_explained_once_at_the_first_verdict_that_has_it():
    sure, unsure = '<p class="verdict">Ours: 4.</p>', '<p class="verdict">Ours: 4 ± 1.</p>'
    table = '<ul class="verdicts"><li>4 ± 1</li></ul>'
    notebook = new_notebook(
        cells=[new_markdown_cell(TITLE), shown("<p>2 ± 1</p>", sure), shown(unsure), shown(table)]
    )
    add_reader_notes(notebook)
    texts = [output.data["text/html"] for cell in notebook.cells[2:] for output in cell.outputs]
    assert texts[:2] == ["<p>2 ± 1</p>", sure] and texts[3] == table
    assert texts[2].startswith(f'{unsure}<p class="plus-minus"><small>In a verdict, <em>n</em> counts')
