"""A Sphinx extension: what each page is about, in its head, for search engines and for links sent to a friend.

Of a chapter that is the answer in its box *In short*, of any other page its first paragraph.
"""

import html

from docutils import nodes

MOST = 200  # characters; what is longer is cut where others show it


def describe(doctree: nodes.document) -> str:
    """Whole words of the page's first paragraph, or of that in its box *In short*; nothing for a page without one."""
    boxes = doctree.findall(lambda node: isinstance(node, nodes.Element) and "in-short" in node.get("classes", ()))
    place = next(boxes, doctree)
    paragraph = next(iter(place.findall(nodes.paragraph)), nodes.paragraph())
    words = (str(text) for text in paragraph.findall(nodes.Text) if not isinstance(text.parent, nodes.raw))
    text = " ".join("".join(words).split())
    if len(text) <= MOST:
        return text
    return text[: MOST - 1].rpartition(" ")[0].rstrip(",;:") + " …"


def add_description(app, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """Into the head of each page that has text."""
    if doctree is None or not (text := describe(doctree)):
        return
    title = html.unescape(context.get("title", ""))
    about = {"og:type": "article", "og:title": title, "og:description": text, "og:site_name": app.config.project}
    tags = [f'<meta name="description" content="{html.escape(text)}" />']
    tags += [f'<meta property="{name}" content="{html.escape(value)}" />' for name, value in about.items()]
    context["metatags"] = "\n".join([context.get("metatags", ""), *tags])


def setup(app):
    app.connect("html-page-context", add_description)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
