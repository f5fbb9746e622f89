"""The picture that a link to a page brings along; `bookkit.sphinx.description` names it in the page's head."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import nbformat

from bookkit.build import sources

FOLDER = "book/_static/cards"
REFERRED = re.compile(r"\{numref\}`([\w-]+)`")


def cards(root: Path, build: Path, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Drawings by their place in the staging folder, whose other files are `files`.

    A chapter has its first figure, the page of a source its picture, and the front page, which stands for all other
    pages, the figure that its text refers to.
    """
    drawings = {path.stem: path for path in (build / "records").glob("*/figures/*.png")}
    return {
        f"{FOLDER}/{Path(page).stem}.png": drawings[key].read_bytes()
        for page, key in _chosen(root, files)
        if key in drawings
    }


def _chosen(root: Path, files: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    for page in files:
        if page.startswith("notebooks/"):
            cells = nbformat.reads(files[page].decode(), 4).cells
            figures = (cell.metadata.get("mystnb", {}).get("figure") for cell in cells)
            if first := next(filter(None, figures), None):
                yield page, first.name
    yield from ((f"source-{number}", source.picture) for number, source in sources.read_sources(root).items())
    if front := REFERRED.search(files.get("book/index.md", b"").decode()):
        yield "index", front[1]
