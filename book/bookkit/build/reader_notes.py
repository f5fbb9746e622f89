"""What staging tells the reader of a chapter: how long it takes to read, and what a sign in its verdicts means."""

import math
import re

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

WORDS_A_MINUTE = 200  # of prose with numbers in it
EXERCISES = re.compile(r"^## .*Exercises", re.MULTILINE)
WORD = re.compile(r"\S*\w\S*")
# The head of a directive and its options are no text.
MARKUP = re.compile(r"^(?:[`:]{3,}.*|:\w[\w-]*:.*)$", re.MULTILINE)
PLUS_MINUS = "In a verdict, *n* counts the seeds, or what it names, behind a mean; ± is their standard deviation."


def add_reader_notes(notebook: NotebookNode) -> None:
    """Below the title how long the text takes, and below the first verdict with a ± what that is; in place."""
    for output in (output for cell in notebook.cells for output in cell.get("outputs", [])):
        html = output.get("data", {}).get("text/html", "")
        if 'class="verdict' in html and "±" in html:
            note = re.sub(r"\*(\w+)\*", r"<em>\1</em>", PLUS_MINUS)
            output.data["text/html"] = f'{html}<p class="plus-minus"><small>{note}</small></p>'
            break
    long = minutes(notebook)
    text = f'<p class="reading-time">{long} minute{"s" * (long > 1)} to read, without code and exercises</p>'
    notebook.cells.insert(1, new_markdown_cell(text, id="reading-time"))


def minutes(notebook: NotebookNode) -> int:
    """For the text between the cells, up to the exercises."""
    text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return math.ceil(words(EXERCISES.split(text)[0]) / WORDS_A_MINUTE)


def words(text: str) -> int:
    """How many words a reader of this markdown sees; a formula counts as written."""
    return len(WORD.findall(MARKUP.sub("", text)))
