"""A Sphinx extension: a percent sign stays on the line of its number."""

import re

from docutils import nodes

# At the beginning of a text what goes before is the number of a run, which is a node of its own.
BETWEEN = re.compile(r"(?:(?<=\d)|^) (?=%(?!\w))")
AS_TYPED = nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw


def joined(text: str) -> str:
    """The text with a space at which no line ends between each number and its percent sign."""
    return BETWEEN.sub("\N{NO-BREAK SPACE}", text)


def join(app, doctree: nodes.document) -> None:
    """In the prose of each page that is read; code and formulas stay as they are."""
    for text in list(doctree.findall(nodes.Text)):
        if joined(text) != text and not isinstance(text.parent, AS_TYPED):
            text.parent.replace(text, nodes.Text(joined(text)))


def setup(app) -> dict:
    app.connect("doctree-read", join)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
