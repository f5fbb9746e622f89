"""The page of the chapters' boxes, and what every box of the book has."""

import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from tiny_book import glue_output

from bookkit.build.in_short import box, in_short_page
from bookkit.build.project import Project

REPOSITORY = Path(__file__).resolve().parents[2]
PROJECT = Project(REPOSITORY)
CONTENTS = {
    "root": "book/index",
    "parts": [
        {"caption": "Opening", "chapters": [{"file": "notebooks/00_none"}, {"file": "book/how_to_run"}]},
        {"caption": "Waves", "chapters": [{"file": "notebooks/10_waves"}]},
    ],
}


def a_chapter(*cells, number="'4_5'"):
    return new_notebook(
        cells=[new_markdown_cell("# Waves\n\n**How high?**"), *cells]
        + [new_code_cell("glue('height', 4)", outputs=[glue_output("height", number)])]
    )


def a_box(text):
    cell = new_markdown_cell(f"```{{admonition}} In short\n:class: in-short\n{text}\n```\n")
    cell.metadata["tags"] = ["in-short"]
    return cell


def test_a_chapter_has_its_question_and_its_box_with_the_numbers_of_its_run():
    waves = a_chapter(a_box("So high: {glue:text}`height`.\n\n**How sure:** very."))
    page = in_short_page(CONTENTS, {"10_waves": waves, "00_none": a_chapter()})
    assert page.split("\n\n")[2:] == [
        "## Waves",
        "### [10 · Waves](../notebooks/10_waves.ipynb)",
        "**How high?**",
        "So high: 4\\_5.",
        "**How sure:** very.\n",
    ], "a part without a box has no heading, and no number is taken for markup"


def test_a_link_to_the_chapter_beside_it_leads_there_from_the_page_of_boxes():
    waves = a_chapter(a_box("See [chapter 11](11_more.ipynb#deep), [the list](../book/list.md)."))
    page = in_short_page(CONTENTS, {"10_waves": waves})
    assert page.endswith("See [chapter 11](../notebooks/11_more.ipynb#deep), [the list](../book/list.md).\n")


def test_a_number_that_was_never_glued_is_an_error():
    with pytest.raises(LookupError, match=r"10_waves.ipynb says \['depth'\] in short"):
        in_short_page(CONTENTS, {"10_waves": a_chapter(a_box("{glue:text}`depth`"))})


@pytest.mark.parametrize("name", PROJECT.notebooks)
def test_every_chapter_asks_and_answers_in_short(name):
    notebook = nbformat.read(PROJECT.notebook(name), as_version=4)
    # The title names what one would search for; the line below it asks.
    assert re.fullmatch(r"# [^?\n]+\n\n\*\*[^*]+\?[^*]*\*\*", notebook.cells[0].source.strip())
    text = box(notebook)
    assert notebook.cells[1].metadata["tags"] == ["in-short"] and text is not None
    assert text.count("\n\n**How sure:** ") == text.count("\n\n**What it means:** ") == 1
    assert len(text.split()) <= 150


@pytest.mark.built
def test_every_chapter_is_on_the_page():
    page = (PROJECT.build / "stage" / "book" / "in-short.md").read_text(encoding="utf-8")
    found = re.findall(r"^### \[(\d\d) · .+\]\(\.\./notebooks/(\w+)\.ipynb\)$", page, re.MULTILINE)
    assert found == [(name[:2], name) for name in PROJECT.notebooks]
    assert "{glue" not in page
