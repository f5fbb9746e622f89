"""The pictures that links to the pages bring along."""

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from bookkit.build import social_cards
from bookkit.build.social_cards import cards


def test_a_page_has_the_drawing_that_stands_for_it(tmp_path, monkeypatch):
    source = type("Source", (), {"picture": "tides"})
    monkeypatch.setattr(social_cards.sources, "read_sources", lambda root: {"004": source})
    figures = tmp_path / "records" / "10_waves" / "figures"
    figures.mkdir(parents=True)
    for key in ("one", "two", "tides"):
        (figures / f"{key}.png").write_bytes(key.encode())
    chapter = new_notebook(cells=[new_markdown_cell("# Waves"), new_code_cell(), new_code_cell()])
    for cell, key in zip(chapter.cells[1:], ("one", "two"), strict=True):
        cell.metadata["mystnb"] = {"figure": {"name": key}}
    files = {
        "notebooks/10_waves.ipynb": nbformat.writes(chapter).encode(),
        "notebooks/11_none.ipynb": nbformat.writes(new_notebook(cells=[new_markdown_cell("# None")])).encode(),
        "book/index.md": b"# Book\n\nSee {numref}`two`, not {numref}`one`.",
        "book/other.md": b"{numref}`one`",
    }
    assert cards(tmp_path, tmp_path, files) == {
        "book/_static/cards/10_waves.png": b"one",
        "book/_static/cards/source-004.png": b"tides",
        "book/_static/cards/index.png": b"two",
    }
    (figures / "two.png").unlink()  # a drawing that no notebook made is no card
    assert "book/_static/cards/index.png" not in cards(tmp_path, tmp_path, files)
