"""A Sphinx extension: what each page is about, in its head, for search engines and for links sent to a friend.

Of a chapter that is the answer in its box *In short*, of any other page its first paragraph; and the picture that
`bookkit.build.social_cards` chose, or else that of the front page. Most of those who show a link want the picture's
whole address: it is whole where `baseurl` under `html` in _config.yml says where the site lies.
"""

import html
from pathlib import Path

from docutils import nodes

MOST = 200  # characters; what is longer is cut where others show it
CARDS = "_static/cards"


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


def card(folder: Path, page: str) -> str | None:
    """The place in the site of the page's picture, of those that lie in `folder`; None where there is none for it."""
    places = (f"{CARDS}/{name}.png" for name in (Path(page).name, "index"))
    return next((place for place in places if (folder / place).is_file()), None)


def add_description(app, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """Into the head of each page that has text."""
    if doctree is None or not (text := describe(doctree)):
        return
    title = html.unescape(context.get("title", ""))
    about = {"og:type": "article", "og:title": title, "og:description": text, "og:site_name": app.config.html_title}
    if picture := card(Path(app.srcdir) / "book", pagename):
        base = app.config.html_baseurl
        about["og:image"] = f"{base.rstrip('/')}/{picture}" if base else context["pathto"](picture, resource=True)
    tags = [f'<meta name="description" content="{html.escape(text)}" />']
    tags += ['<meta name="twitter:card" content="summary_large_image" />'] * ("og:image" in about)
    tags += [f'<meta property="{name}" content="{html.escape(value)}" />' for name, value in about.items()]
    context["metatags"] = "\n".join([context.get("metatags", ""), *tags])


def setup(app):
    app.connect("html-page-context", add_description)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
