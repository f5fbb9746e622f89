"""A Sphinx extension: what the theme and other extensions write that a screen reader or a keyboard stumbles over.

tests/bookkit/test_site_browser.py holds every page against WCAG 2.1 AA; what was found in pages of our own is mended
where they are made, and what others wrote is mended here.
"""

import re
from pathlib import Path

SEARCH = '<i class="fa-solid fa-magnifying-glass"></i>'
FAULTS = {
    # For print the theme repeats title and contents above the article: on pages without a title an empty heading.
    r'<div id="jb-print-docs-body".*?(?=<div id="searchbox">|<article)': "",
    # A form that nothing sends: its magnifying glass is now what does.
    rf'{SEARCH}(?=\s*<input type="search")': f'<button type="submit" aria-label="Search">{SEARCH}</button>',
    # Every exercise and every solution of a page had the same id.
    r'<section id="(?:exercise|solution)-content">': "<section>",
    # Names that leave out what the eye reads there, by which those who speak to their browser call a button.
    r'(<button class="btn search-button-field[^>]*) title="Search" aria-label="Search"': r"\1",
    r'<summary aria-label="Toggle hidden content">': "<summary>",
    r'(<i class="theme-switch [^>]*data-mode="\w+")\s+title="[^"]*"': r"\1",
    # An arrow without a name.
    r'<summary>(?=<span class="toctree-toggle")': '<summary aria-label="Pages below this one">',
    # A role that is no longer one, and was none of a list.
    r' role="doc-biblioentry"': ' role="listitem"',
    # The logo stands in no part of the page that one can jump to.
    r'<div id="pst-primary-sidebar"(?! role)': '<div id="pst-primary-sidebar" role="navigation" aria-label="Book"',
    # What scrolls, the theme makes a stop of the Tab key while it does, if it has this class.
    r'<(div|figure) class="((?:amsmath )?math |align-)': r'<\1 class="jp-RenderedHTMLCommon \2',
}


def mended(page: str) -> str:
    """The HTML of a page without these faults; a page that is mended already stays as it is.

    >>> mended('<div><summary aria-label="Toggle hidden content">Show the source</summary></div>')
    '<div><summary>Show the source</summary></div>'
    """
    for fault, instead in FAULTS.items():
        page = re.sub(fault, instead, page, flags=re.DOTALL)
    return page


def mend(app, problem: Exception | None) -> None:
    """Mend every page that was written."""
    if problem is None and app.builder.format == "html":
        for page in Path(app.outdir).rglob("*.html"):
            page.write_text(mended(page.read_text("utf8")), "utf8")


def setup(app) -> dict:
    app.connect("build-finished", mend)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
