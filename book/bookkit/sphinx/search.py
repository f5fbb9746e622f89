"""A Sphinx extension: the index of the search is for its own page alone, MathJax for pages with formulas.

The theme loads the index on every page, for results that appear while one types; those are switched off (they are the
theme's `search_as_you_type`). It grows with the book, and would weigh on every page of it. Sphinx loads MathJax, 2.3
MB, also on a page that lists pages with formulas, as the first page of the book does.
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


MATHJAX = re.compile(r'\s*<script[^>]*(?:>window\.MathJax = |src="[^"]*\bmathjax/)[^<]*</script>')
FORMULA = re.compile(r'class="[^"]*\bmath\b')


def without_mathjax(page: str) -> str:
    """The HTML of a page, without the scripts of MathJax if it has no formula.

    >>> without_mathjax('<head><script defer src="vendor/mathjax/tex.js?v=1"></script></head><p>1 + 1</p>')
    '<head></head><p>1 + 1</p>'
    >>> formula = '<script src="mathjax/tex.js"></script><div class="amsmath math notranslate">x</div>'
    >>> without_mathjax(formula) == formula
    True
    """
    return page if FORMULA.search(page) else MATHJAX.sub("", page)


def lighten(app, problem: Exception | None) -> None:
    """Take the scripts from every page that was written but search.html."""
    if problem is None and app.builder.format == "html":
        for page in Path(app.outdir).rglob("*.html"):
            light = without_mathjax(page.read_text("utf8"))
            page.write_text(light if page.name == "search.html" else without_index(light), "utf8")


def setup(app) -> dict:
    app.connect("build-finished", lighten)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
