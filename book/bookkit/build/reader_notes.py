"""What staging does for the reader of a chapter: how long it takes to read, what a sign in its verdicts means, and
verdicts in place folded to one line, since the table at the end has them whole.
"""

import math
import re

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

WORDS_A_MINUTE = 200  # of prose with numbers in it
EXERCISES = re.compile(r"^## .*Exercises", re.MULTILINE)
WORD = re.compile(r"\S*\w\S*")
# The head of a directive and its options are no text.
MARKUP = re.compile(r"^(?:[`:]{3,}.*|:\w[\w-]*:.*)$", re.MULTILINE)
# As `bookkit.judge.Verdict` writes it: badge, id and what the source says, then its number and ours.
VERDICT = re.compile(
    r'<p class="verdict">(?P<head><strong .*?</strong> <strong>.*?</strong> .*?) (?P<numbers>Source: .*?)</p>',
    re.DOTALL,
)
FOLDED = r'<details class="verdict"><summary>\g<head></summary><p>\g<numbers></p></details>'
PLUS_MINUS = "In a verdict, *n* counts the seeds, or what it names, behind a mean; ± is their standard deviation."
OBJECTED = (
    "A reader in a remark had no part in the work, read the verdict as an author of the source might, and objected."
)
SCALE = (
    " What stands last in its brackets, such as <em>reduced</em> or <em>analogue</em>, is the "
    '<a href="../book/glossary.html#term-scale">scale</a> of the test.'
)


def add_reader_notes(notebook: NotebookNode, glossary: bool = False) -> None:
    """Below the title how long the text takes, below the first table of verdicts with a ± what that is; in place.

    glossary: whether the book has one, which tells the scales of verdicts apart.

    A verdict where its claim is measured becomes a fold, whose head is one line until it is opened (book.css).
    """
    explained = False
    for data in (output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])):
        html = data.get("text/html", "")
        if 'class="verdict"' in html:
            data["text/html"] = VERDICT.sub(FOLDED, html)
        elif 'class="verdicts"' in html and "±" in html and not explained:
            note = re.sub(r"\*(\w+)\*", r"<em>\1</em>", PLUS_MINUS) + SCALE * glossary
            data["text/html"] = f'{html}<p class="plus-minus"><small>{note}</small></p>'
            explained = True
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
