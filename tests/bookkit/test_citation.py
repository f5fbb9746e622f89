"""How a chapter says that it is cited."""

from nbformat.v4 import new_markdown_cell, new_notebook

from bookkit.build.citation import FILE, add_citation, bibtex

ABOUT = {
    "message": "Please cite it.",
    "title": "Waves & tides",
    "authors": [{"name": "The wave makers"}, {"family-names": "Fourier", "given-names": "Joseph"}],
    "version": "0.1.0",
    "date-released": "2026-11-23",
}


def test_an_entry_has_what_is_known_of_the_book_and_of_the_chapter():
    assert bibtex("10_waves", "Waves of 100 %", ABOUT, "https://github.com/ada/waves") == (
        "@incollection{arithlib-10,\n"
        "  author    = {{The wave makers} and Fourier, Joseph},\n"
        "  title     = {Waves of 100 \\%},\n"
        "  chapter   = {10},\n"
        "  booktitle = {Waves \\& tides},\n"
        "  year      = {2026},\n"
        "  note      = {Version 0.1.0},\n"
        "  url       = {https://github.com/ada/waves},\n"
        "}"
    )
    assert "url" not in bibtex("10_waves", "Waves", ABOUT, None)


def test_what_is_not_yet_released_has_no_year():
    entry = bibtex("10_waves", "Waves", {**ABOUT, "date-released": None}, None)
    assert "year" not in entry and "note      = {Version 0.1.0, not yet released}" in entry


def test_a_chapter_ends_with_it_where_the_book_says_how_it_is_cited(tmp_path):
    notebook = new_notebook(cells=[new_markdown_cell("# Waves\n\n**What is one?**")])
    add_citation(notebook, "10_waves", tmp_path, None)
    assert len(notebook.cells) == 1
    (tmp_path / FILE).write_text(
        "message: Please cite it.\ntitle: Tides\nauthors: [{name: Ada}]\nversion: 1.2.0\ndate-released: 2026-11-23\n"
    )
    add_citation(notebook, "10_waves", tmp_path, None)
    assert len(notebook.cells) == 2
    assert "Please cite it." in notebook.cells[1].source and "title     = {Waves}" in notebook.cells[1].source
