"""The book speaks the field's language: no house word of book/words.yaml stands where a reader would see it."""

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ROWS = yaml.safe_load((ROOT / "book" / "words.yaml").read_text("utf8"))
# What is no text of ours: code, names of glued numbers and of objects, where a link leads, labels and options.
HEADS = re.compile(r"^[`:]{3,}(?:\{[\w:-]+\})?|^:\w[\w-]*:.*$", re.MULTILINE)
CODE = re.compile(r"(?:\{[\w:]+\})?`[^`]+`|\]\([^)]*\)")
TERM = re.compile(r"\{term\}`([^`<]*)(?:<[^>`]*>)?`")


def prose(markdown: str) -> str:
    """What a reader reads of it, on one line.

    >>> prose("A {term}`shelf <plateau>` of {glue:text}`shelf-long` steps, see [there](#shelf) and `shelf`.")
    'A shelf  of   steps, see [there  and  .'
    """
    return CODE.sub(" ", TERM.sub(r"\1", HEADS.sub("", markdown))).replace("\n", " ")


def texts_of_figures(code: str) -> Iterator[str]:
    """The strings that a cell gives as caption or alt text, pieces of f-strings among them."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.keyword) and node.arg in ("caption", "alt"):
            pieces = [piece.value for piece in ast.walk(node.value) if isinstance(piece, ast.Constant)]
            yield " ".join(piece for piece in pieces if isinstance(piece, str))


def strings(data) -> Iterator[str]:
    if isinstance(data, dict | list):
        for value in data.values() if isinstance(data, dict) else data:
            yield from strings(value)
    elif isinstance(data, str):
        yield data


@cache
def texts() -> list[tuple[str, str]]:
    return [*read_texts()]


def read_texts() -> Iterator[tuple[str, str]]:
    """What a reader sees, and where it stands."""
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text("utf8"))["cells"]:
            place, source = f"{path.stem}/{cell['id']}", "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                yield place, source
            else:
                yield place, " ".join(texts_of_figures(re.sub(r"^[%!].*$", "pass", source, flags=re.MULTILINE)))
    for path in sorted({*(ROOT / "book").glob("*.md"), *(ROOT / "book" / "api").glob("*.md")}):
        yield path.name, path.read_text("utf8")
    for path in [*(ROOT / "book").glob("*/*.yaml"), *(ROOT / "book").glob("*.yaml")]:
        if path.name != "words.yaml":
            yield path.name, "\n".join(strings(yaml.safe_load(path.read_text("utf8"))))
    for path in sorted((ROOT / "arithlib").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                name = getattr(node, "name", "")
                yield f"{path.relative_to(ROOT)} {name}".strip(), ast.get_docstring(node) or ""


def found(words: list[str], text: str) -> list[str]:
    """The words of a list that stand in a text, whole.

    >>> found(["shelf", "hop task"], "One Shelf, and the\\nhop  task of shelfless p-hops.")
    ['Shelf', 'hop task']
    """
    pattern = rf"(?<![\w-])(?:{'|'.join(words)})(?![\w-])".replace(" ", r"\s+")
    return [" ".join(hit.split()) for hit in re.findall(pattern, prose(text), re.IGNORECASE)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["term"])
def test_no_house_word_stands_for_a_term(row):
    allowed, used = row.get("except", {}), set()
    for place, text in texts():
        hits = found(row["not"], text)
        used |= {place} if hits else set()
        assert not hits or place in allowed, f"{place} says {', '.join(hits)}; the field says {row['term']}"
    assert used == set(allowed), "an exception that nothing needs"
    assert all(len(reason.split()) > 3 for reason in allowed.values())


def test_the_glossary_defines_every_term():
    entries = re.findall(r"^(\w.*)$", (ROOT / "book" / "glossary.md").read_text("utf8"), re.MULTILINE)
    assert [row["term"] for row in ROWS if row["term"] not in entries] == []
    assert len({row["term"] for row in ROWS}) == len(ROWS) >= 14


@pytest.mark.parametrize(
    ("text", "hits"),
    [
        ("# Learning on a Shelf", ["Shelf"]),
        ("it stays on\nthe {term}`shelf <plateau>`", ["shelf"]),
        ("{glue:text}`shelf-long` steps, [there](#shelf), `shelf`, a bookshelf, {py:func}`arithlib.shelf`", []),
        ("```{exercise} A shelf\n:label: ex-shelf\nWhich shelf?\n```", ["shelf", "shelf"]),
    ],
)
def test_a_word_is_found_in_what_is_read_and_nowhere_else(text, hits):
    assert found(["shelf", "shelves"], text) == hits


def test_texts_of_figures_are_read():
    cell = 'figure("a", fig, data=d, alt="A" + " shelf", caption=f"On {n} shelves")\ntable(rows, caption="none")'
    assert list(texts_of_figures(cell)) == ["A  shelf", "On   shelves", "none"]
