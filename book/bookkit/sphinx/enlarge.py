"""A Sphinx extension: what enlarges figures (book/_static/enlarge.mjs), on pages that show a figure of a chapter."""

from docutils import nodes


def add_script(app, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """What is added while a page is made is on that page alone. Such a figure has links under its caption."""
    if doctree is not None and any(doctree.findall(nodes.legend)):
        app.add_js_file("enlarge.mjs", loading_method="defer")


def setup(app) -> dict:
    app.connect("html-page-context", add_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
