"""A table of what a cell measured: HTML in the book, aligned text wherever there is no page."""

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bookkit.prose import written
from bookkit.records import ChapterError

BEGINS_AS_NUMBER = re.compile(r"[−+±~<>≤≥]?\s?\d")


@dataclass(frozen=True)
class Table:
    """Headings, and rows of cells as they are written; the first cell of a row names it.

    Names stand left, and so do columns of words, in which no cell begins as a number does; all others stand right.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""

    @property
    def left(self) -> list[bool]:
        """Which columns stand left."""
        _, *columns = zip(*self.rows, strict=True)
        return [True, *(not any(map(BEGINS_AS_NUMBER.match, cells)) for cells in columns)]

    def __repr__(self) -> str:
        lines = (self.columns, *self.rows)
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]

        def line(cells):
            places = zip(cells, widths, self.left, strict=True)
            return "  ".join(cell.ljust(n) if left else cell.rjust(n) for cell, n, left in places).rstrip()

        return "\n".join(([self.caption] if self.caption else []) + [line(cells) for cells in lines])

    def _repr_html_(self) -> str:
        of_words = [' class="words"' if left else "" for left in self.left]
        heads = zip(self.columns, of_words, strict=True)
        head = "".join(f'<th scope="col"{words}>{html.escape(name)}</th>' for name, words in heads)
        body = "".join(
            f'<tr><th scope="row" class="words">{html.escape(name)}</th>'
            + "".join(f"<td{words}>{html.escape(cell)}</td>" for cell, words in zip(cells, of_words[1:], strict=True))
            + "</tr>"
            for name, *cells in self.rows
        )
        caption = f"<caption>{html.escape(self.caption)}</caption>" if self.caption else ""
        return f'<table class="numbers">{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def table(columns: Sequence[str], rows: Iterable[Sequence], form: str = ".3g", caption: str = "") -> Table:
    """What a cell shows as a table; end the cell with it, or `display` it.

    columns: a heading with its unit for each column. rows: of as many cells, of which the first names the row. A cell
    is a text, shown as it is; a number, `written` in the format `form` (a whole one in full); or several numbers,
    written one after another, without separators of thousands.
    Raises ChapterError for a row of another length, for True or False in a cell, and where there is no row.

    >>> table(("digits", "right, %"), [(10, 99.31), (20, [71.2, 80.9])], ".0f")
    digits  right, %
    10            99
    20        71, 81
    """
    columns = tuple(columns)
    rows = [tuple(row) for row in rows]
    if not rows:
        raise ChapterError(f"a table of {', '.join(columns)} has no row")
    for row in rows:
        if len(row) != len(columns):
            raise ChapterError(f"a table of {len(columns)} columns has a row of {len(row)}: {row}")
    lines = tuple((_cell(name, ""), *(_cell(cell, form) for cell in cells)) for name, *cells in rows)
    return Table(columns, lines, caption)


def _cell(cell, form: str) -> str:
    if isinstance(cell, str):
        return written(cell)
    values = np.asarray(cell)
    if values.dtype.kind == "b":
        raise ChapterError(f"a cell of a table is {cell}: say in words what is so")
    form = "," if values.dtype.kind in "iu" else form
    if values.ndim == 0:
        return written(values.item(), form)
    # A comma between thousands would read as one between numbers.
    return ", ".join(written(value, form.replace(",", "")) for value in values.ravel().tolist())
