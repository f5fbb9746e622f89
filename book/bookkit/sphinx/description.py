"""A Sphinx extension: what each page is about, in its head and at the feet of the pages before and behind it.

In the head, for search engines and for links sent to a friend, that is of a chapter the answer in its box *In short*,
of any other page its first paragraph; and the picture that `bookkit.build.social_cards` chose, or else that of the
front page. Most of those who show a link want the picture's whole address: it is whole where `baseurl` under `html`
in _config.yml says where the site lies. At the feet it is how the page opens: of a chapter, its question.
"""

import html
import re
from pathlib import Path

from docutils import nodes

MOST = 200  # characters; what is longer is cut where others show it
CARDS = "_static/cards"
# What the first paragraphs have of TeX, as patterns, and what to write for it.
PLAIN = {
    r"\\frac(\d)(\d)": r"\1/\2",
    r"_2\b": "₂",
    r"\\(log|sin|cos)(?![a-z])": r"\1",
    r"\\theta": "θ",
    r"\\dots": "…",
    r"\\,": " ",
}


def describe(doctree: nodes.document) -> str:
    """Whole words of the page's first paragraph, or of that in its box *In short*; nothing for a page without one."""
    boxes = doctree.findall(lambda node: isinstance(node, nodes.Element) and "in-short" in node.get("classes", ()))
    text = _words(next(iter(next(boxes, doctree).findall(nodes.paragraph)), nodes.paragraph()))
    if len(text) <= MOST:
        return text
    return text[: MOST - 1].rpartition(" ")[0].rstrip(",;:") + " …"


def opening(doctree: nodes.document) -> str:
    """The question below the page's title, or else the first sentence there; nothing where no paragraph is."""
    below = next(iter(doctree.findall(nodes.section)), doctree).children
    text = _words(next((child for child in below if isinstance(child, nodes.paragraph)), nodes.paragraph()))
    return text if text.endswith("?") else re.split(r"(?<=[.!?])\s|:$", text, maxsplit=1)[0]


def _words(paragraph: nodes.paragraph) -> str:
    """On one line. What markup passes through is no text, and formulas are as in plain text: log₂ n."""
    texts = (text for text in paragraph.findall(nodes.Text) if not isinstance(text.parent, nodes.raw))
    words = (_plain(text) if isinstance(text.parent, nodes.math) else str(text) for text in texts)
    return " ".join("".join(words).split())


def _plain(formula: str) -> str:
    for tex, text in PLAIN.items():
        formula = re.sub(tex, text, formula)
    return formula


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


def keep_opening(app, doctree: nodes.document) -> None:
    """With what is known of each page that is read, for the pages beside it."""
    app.env.metadata[app.env.docname]["opening"] = opening(doctree)


def add_openings(app, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """Below the titles of the previous and the next page, how these open."""
    _, *beside = app.builder.relations.get(pagename) or (None, None, None)
    for place, page in zip(("prev", "next"), beside, strict=True):
        if page and (text := app.env.metadata[page].get("opening")):
            context[f"{place}_title"] = f'{context[place]["title"]}<span class="opens">{html.escape(text)}</span>'


def setup(app):
    app.connect("doctree-read", keep_opening)
    app.connect("html-page-context", add_description)
    app.connect("html-page-context", add_openings)
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
