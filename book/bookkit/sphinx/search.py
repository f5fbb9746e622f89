"""A Sphinx extension: the index of the search is loaded by the page of the search, and by no other.

The theme loads it on every page, for results that appear while one types; those are switched off (they are the
theme's `search_as_you_type`). The index grows with the book, and would weigh on every page of it.
"""

import re
from pathlib import Path

SCRIPTS = re.compile(r'\s*<script src="[^"]*\b(?:searchtools|language_data|searchindex)\.js[^"]*"></script>')


def without_index(page: str) -> str:
    """The HTML of a page, without the scripts of the search.

    >>> without_index('<head><script src="../searchindex.js"></script><script src="doctools.js"></script></head>')
    '<head><script src="doctools.js"></script></head>'
    """
    return SCRIPTS.sub("", page)


def lighten(app, problem: Exception | None) -> None:
    """Take the scripts from every page that was written but search.html."""
    if problem is None and app.builder.format == "html":
        for page in Path(app.outdir).rglob("*.html"):
            if page.name != "search.html":
                page.write_text(without_index(page.read_text("utf8")), "utf8")


def setup(app) -> dict:
    app.connect("build-finished", lighten)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
