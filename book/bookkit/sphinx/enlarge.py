"""A Sphinx extension: what enlarges figures and says that wide tables scroll (book/_static/enlarge.mjs).

It is on pages that show a figure of a chapter or a table.
"""

from docutils import nodes


def shows(node: nodes.Node) -> bool:
    """Whether it is a figure's legend or a table, in Markdown or in what a cell printed."""
    return isinstance(node, nodes.legend | nodes.table) or (isinstance(node, nodes.raw) and "<table" in node.astext())


def add_script(app, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """What is added while a page is made is on that page alone. Such a figure has links under its caption."""
    if doctree is not None and any(map(shows, doctree.findall())):
        app.add_js_file("enlarge.mjs", loading_method="defer")


def setup(app) -> dict:
    app.connect("html-page-context", add_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
