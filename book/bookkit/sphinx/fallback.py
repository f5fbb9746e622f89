"""A Sphinx extension: on the page, a live element holds a picture of itself beside its words.

Both are seen where no script draws the element, and on paper (book/_static/book.css); elsewhere the picture is not
even asked for. `bookkit.build.fallbacks` takes the pictures; book/fallbacks.yaml says in words what is seen on them.
"""

import html
import re
from functools import cache
from pathlib import Path

import yaml
from PIL import Image

from bookkit.claims import repo_root

ELEMENT = re.compile(r"<(?P<tag>[a-z]+(?:-[a-z]+)+)(?: [^<>]*?)?(?P<brief> brief=\"\")?>(?=<p>)")
PICTURE = re.compile(r'<img class="fallback"[^>]*>')


@cache
def alternatives(root: Path) -> dict[str, str]:
    """Of each live element, and of its brief form, what is seen on its picture; empty in a book that has none."""
    path = root / "book" / "fallbacks.yaml"
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}


def picture(tag: str, page: str) -> str:
    """The name of the picture of an element on a page, which is given by the last part of its name."""
    return f"{tag}-{page}.webp"


def with_pictures(body: str, page: str, static: str) -> str:
    """The HTML of a page, with its picture at the beginning of each live element that has one.

    static: where book/_static lies from there.
    """
    root = repo_root()

    def beginning(element: re.Match) -> str:
        tag = element["tag"]
        name = f"fallback/{picture(tag, Path(page).name)}"
        path = root / "book" / "_static" / name
        if tag not in alternatives(root) or not path.is_file():
            return element[0]
        with Image.open(path) as taken:
            width, height = taken.size
        alt = html.escape(alternatives(root)[f"{tag} brief" if element["brief"] else tag])
        size = f'width="{width}" height="{height}"'
        return f'{element[0]}<img class="fallback" src="{static}/{name}" alt="{alt}" {size} loading="lazy">'

    return ELEMENT.sub(beginning, body)


def add_pictures(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    if "body" in context:
        context["body"] = with_pictures(context["body"], pagename, context["pathto"]("_static", resource=True))


def setup(app) -> dict:
    app.connect("html-page-context", add_pictures)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
