"""Checks that the tools do not make: of the built site, and of what the repository publishes.

    python -m bookkit.build.checks [FOLDER]     the built site (default book/_build/html) and the repository

Every check returns problems instead of raising, so that one run shows them all.
"""

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag

from bookkit.build.glued import GLUED, glued_texts
from bookkit.build.notebook_ast import statements
from bookkit.build.project import Project
from bookkit.sphinx.spacing import joined

PAGE_BYTES = 6_000_000  # a page with everything it loads
CHECKPOINT_BYTES = 60_000_000  # all shipped weights together
ALT_AT_LEAST = 20  # characters, of a figure in the text

# Attributes whose target the browser fetches by itself; a link that waits for a click may lead anywhere.
LOADED = {
    "audio": ("src",),
    "embed": ("src",),
    "iframe": ("src",),
    "image": ("href", "xlink:href"),
    "img": ("src", "srcset"),
    "input": ("src",),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "track": ("src",),
    "use": ("href", "xlink:href"),
    "video": ("src", "poster"),
}
LOADED_LINKS = {
    "stylesheet",
    "icon",
    "preload",
    "modulepreload",
    "prefetch",
    "preconnect",
    "dns-prefetch",
    "manifest",
}
ELSEWHERE = re.compile(r"\s*(https?:)?//", re.IGNORECASE)
ADDRESS = re.compile(r"https?://(?!www\.w3\.org/)[^\s\"'<>)]+")
CSS_LOAD = re.compile(r"(?:url\(\s*|@import\s+)[\"']?((?:https?:)?//[^\"')\s]+)", re.IGNORECASE)
SCRIPT_LOAD = re.compile(
    r"(?:\bimport\s*\(?|\bfrom|fetch\(|importScripts\(|\.src\s*=)\s*[\"'`]((?:https?:)?//[^\"'`\s]+)"
)
SVG_LOAD = re.compile(r"<(?:image|use|script)\b[^>]*(?:href|src)=[\"']((?:https?:)?//[^\"']+)")

# Scripts of the theme and of the Sphinx extensions in _config.yml: the only ones every page may load.
EVERY_PAGE = {
    "_static/clipboard.min.js",
    "_static/copybutton.js",
    "_static/design-tabs.js",
    "_static/doctools.js",
    "_static/documentation_options.js",
    "_static/language_data.js",
    "_static/scripts/bootstrap.js",
    "_static/scripts/fontawesome.js",
    "_static/scripts/pydata-sphinx-theme.js",
    "_static/scripts/sphinx-book-theme.js",
    "_static/searchtools.js",
    "_static/sphinx_highlight.js",
    "_static/togglebutton.js",
    "searchindex.js",
}

# Where a user's files lie, on any system.
PLACE = re.compile(r"/(?:home|Users)/[\w.-]+|/(?:root|tmp)/\w+|[A-Za-z]:\\+Users\\+\w+")
PUBLISHED_TEXT = {".html", ".md", ".ipynb", ".svg", ".json", ".csv", ".txt", ".yml", ".yaml"}


@dataclass(frozen=True)
class Problem:
    """Something that must not be published: where it stands and what is wrong with it."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True)
class Page:
    """One HTML page of the site, parsed once."""

    site: Path
    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(self.site).as_posix()

    @cached_property
    def soup(self) -> BeautifulSoup:
        return BeautifulSoup(self.path.read_text("utf8"), "html.parser")

    @cached_property
    def tags(self) -> list[Tag]:
        """Every tag, in order: to go through this list is much faster than to ask Beautiful Soup again and again."""
        return self.soup.find_all(True)

    def named(self, *names: str) -> list[Tag]:
        return [tag for tag in self.tags if tag.name in names]

    def of_class(self, *classes: str) -> list[Tag]:
        return [tag for tag in self.tags if set(classes) <= set(tag.get("class", ()))]

    @cached_property
    def anchors(self) -> set[str]:
        return {tag["name"] for tag in self.named("a") if tag.get("name")} | {
            tag["id"] for tag in self.tags if tag.get("id")
        }

    def local(self, address: str) -> Path:
        """The file that an address on this page means."""
        path = unquote(urlsplit(address).path)
        return (self.path.parent / path).resolve() if path else self.path

    @cached_property
    def loaded(self) -> list[tuple[Tag, str]]:
        """Every (tag, address) that a browser fetches when it opens the page."""
        found = []
        for tag in self.named(*LOADED, "link"):
            if tag.name == "link":
                addresses = [tag.get("href")] if LOADED_LINKS & set(tag.get("rel", [])) else []
            else:
                addresses = [
                    part.split()[0]
                    for name in LOADED[tag.name]
                    for part in tag.get(name, "").split("," if name == "srcset" else "\0")
                    if part.strip()
                ]
            found += [(tag, address) for address in addresses if address and not address.startswith("data:")]
        return found

    @cached_property
    def links(self) -> list[str]:
        """Every address on this site or page that it leads to or loads, once."""
        addresses = [tag["href"] for tag in self.named("a") if tag.has_attr("href")]
        addresses += [address for _, address in self.loaded]
        return [a for a in dict.fromkeys(addresses) if not urlsplit(a).scheme and not urlsplit(a).netloc]


@dataclass(frozen=True)
class Facts:
    """What is known of a page after reading it: its own problems, and what can be judged with the others only.

    links: address and the file that it means. scripts: files that it loads; None where there is no body to load any.
    """

    page: str
    problems: list[Problem]
    anchors: set[str]
    links: list[tuple[str, Path]]
    scripts: set[Path] | None


def read_page(site: Path, path: Path) -> Facts:
    """Read one page, and check what needs no other."""
    page = Page(site, path)
    own = (_requests, _alternatives, _errors, _weight, _glued)
    return Facts(
        page=page.name,
        problems=[problem for check in own for problem in check(page)],
        anchors=page.anchors,
        links=[(address, page.local(address)) for address in page.links],
        # A redirect has none.
        scripts={page.local(a) for tag, a in page.loaded if tag.name == "script"} if page.soup.body else None,
    )


def check_site(html: Path) -> list[Problem]:
    """Everything wrong with the built site in the folder `html`; empty when it may be published."""
    site = html.resolve()
    paths = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    if not paths:
        return [Problem(str(html), "there is no page here; build the book first")]
    with ProcessPoolExecutor() as pool:
        pages = dict(zip(paths, pool.map(partial(read_page, site), paths), strict=True))
    problems = [problem for facts in pages.values() for problem in facts.problems]
    problems += [problem for facts in pages.values() for problem in _links(facts, pages)]
    problems += _common_scripts(site, [facts.scripts for facts in pages.values() if facts.scripts is not None])
    problems += _asset_requests(site)
    problems += _places(site, site.rglob("*"))
    return problems


def _requests(page: Page) -> Iterator[Problem]:
    for tag, address in page.loaded:
        if ELSEWHERE.match(address):
            yield Problem(page.name, f"<{tag.name}> loads {address} from another host; serve it from the book")
    for tag in page.named("script"):
        if tag.has_attr("src"):
            continue
        for address in ADDRESS.findall(tag.string or ""):
            yield Problem(page.name, f"a script names {address}; remove what would load it")
    styles = [tag.string or "" for tag in page.named("style")]
    styles += [tag["style"] for tag in page.tags if tag.get("style")]
    for address in CSS_LOAD.findall("\n".join(styles)):
        yield Problem(page.name, f"a style loads {address} from another host; serve it from the book")


def _asset_requests(site: Path) -> Iterator[Problem]:
    for suffix, pattern in ((".css", CSS_LOAD), (".js", SCRIPT_LOAD), (".mjs", SCRIPT_LOAD), (".svg", SVG_LOAD)):
        for path in sorted(site.rglob(f"*{suffix}")):
            for address in pattern.findall(path.read_text("utf8")):
                yield Problem(path.relative_to(site).as_posix(), f"loads {address} from another host")


def _alternatives(page: Page) -> Iterator[Problem]:
    for image in page.named("img"):
        alt = image.get("alt", "").strip()
        in_text = image.find_parent("article") is not None
        if not alt or re.fullmatch(r"\S+\.\w{3,4}", alt) or (in_text and len(alt) < ALT_AT_LEAST):
            yield Problem(page.name, f"image {image.get('src')} has no real alternative text, only {alt!r}")
    for drawing in page.named("svg"):
        if drawing.find_parent("article") and not (
            drawing.get("aria-label") or drawing.find("title") or drawing.get("aria-hidden") == "true"
        ):
            yield Problem(page.name, "a drawing (<svg>) has neither aria-label nor title")


def _errors(page: Page) -> Iterator[Problem]:
    for output in page.of_class("output", "traceback"):
        yield Problem(
            page.name, f"shows the traceback of a failed cell: {output.get_text().strip().splitlines()[-1]}"
        )


def _glued(page: Page) -> Iterator[Problem]:
    """Every number in the text of a chapter stands there as its notebook wrote it, character for character."""
    source = (page.site / "_sources" / page.name).with_suffix(".ipynb")
    if not source.is_file():
        return
    cells = json.loads(source.read_text("utf8"))["cells"]
    written = dict(glued_texts(cells))
    # In the order of the page: in prose and in the captions of figures.
    prose = [
        "".join(cell["source"])
        if cell["cell_type"] == "markdown"
        else cell["metadata"].get("mystnb", {}).get("figure", {}).get("caption", "")
        for cell in cells
    ]
    names = GLUED.findall("\n".join(prose))
    shown = [span.get_text() for span in page.of_class("pasted-text")]
    if len(names) != len(shown):
        yield Problem(page.name, f"shows {len(shown)} glued texts where the notebook has {len(names)}")
    for name, text in zip(names, shown, strict=False):
        if name not in written or text != joined(written[name]):
            yield Problem(page.name, f"shows {text!r} for the glued text {name!r}, which is {written.get(name)!r}")


def _weight(page: Page) -> Iterator[Problem]:
    files = {page.path} | {page.local(address) for _, address in page.loaded if not ELSEWHERE.match(address)}
    size = sum(path.stat().st_size for path in files if path.is_file())
    if size > PAGE_BYTES:
        yield Problem(page.name, f"weighs {size / 1e6:.1f} MB with all it loads; at most {PAGE_BYTES / 1e6:.0f} MB")


def _links(facts: Facts, pages: dict[Path, Facts]) -> Iterator[Problem]:
    for address, target in facts.links:
        anchor = unquote(urlsplit(address).fragment)
        # A page is there, for it was read; asking the disk for the target of every link takes seconds.
        if target not in pages and not target.is_file():
            yield Problem(facts.page, f"links to {address}, which is not there")
        elif anchor and target in pages and anchor not in pages[target].anchors:
            yield Problem(facts.page, f"links to {address}, where there is no such anchor")


def _common_scripts(site: Path, scripts: list[set[Path]]) -> Iterator[Problem]:
    """Jupyter Book puts every script it finds under _static on every page; it belongs on the pages that use it."""
    for path in sorted(set.intersection(*scripts)) if scripts else ():
        name = path.relative_to(site).as_posix() if site in path.parents else str(path)
        if name not in EVERY_PAGE:
            yield Problem(name, "this script loads on every page; load it where it is used")


def _places(top: Path, files) -> Iterator[Problem]:
    here = (Path.home(), Project.find().root)  # this machine's, whatever they look like
    for path in sorted(files):
        if path.suffix not in PUBLISHED_TEXT or "_static" in path.parts or not path.is_file():
            continue
        text = path.read_text("utf8")
        found = set(PLACE.findall(text)) or {str(place) for place in here if f"{place}/" in text}
        for place in sorted(found):
            yield Problem(path.relative_to(top).as_posix(), f"names a place on somebody's disk: {place}")


def check_repository(root: Path) -> list[Problem]:
    """Everything wrong with what the repository itself publishes: notebooks, prose, checkpoints."""
    root = root.resolve()
    problems = [problem for path in sorted((root / "notebooks").glob("*.ipynb")) for problem in _notebook(path)]
    size = sum(path.stat().st_size for path in (root / "checkpoints").rglob("*.*"))
    if size > CHECKPOINT_BYTES:
        limit = f"at most {CHECKPOINT_BYTES / 1e6:.0f} MB are shipped"
        problems.append(
            Problem("checkpoints", f"hold {size / 1e6:.1f} MB; {limit}; let readers train the larger ones")
        )
    texts = [*root.glob("*.md"), *root.glob("*.y*ml"), *root.glob("notebooks/*.ipynb")]
    texts += [path for path in root.glob("book/**/*") if "_build" not in path.parts]
    return problems + list(_places(root, texts))


def _notebook(path: Path) -> Iterator[Problem]:
    for number, cell in enumerate(json.loads(path.read_text("utf8"))["cells"]):
        if cell["cell_type"] != "code":
            continue
        where = f"notebooks/{path.name}, cell {number}"
        if cell["outputs"] or cell["execution_count"] is not None:
            yield Problem(where, "is committed with outputs; clear them, the build makes them anew")
        code = statements("".join(cell["source"]))
        for call in (node for statement in code for node in ast.walk(statement)):
            if isinstance(call, ast.Call) and getattr(call.func, "id", getattr(call.func, "attr", "")) == "figure":
                yield from _figure_call(where, call)


def _figure_call(where: str, call: ast.Call) -> Iterator[Problem]:
    if isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") == "plt":
        return
    alt = next((keyword.value for keyword in call.keywords if keyword.arg == "alt"), None)
    if alt is None or (isinstance(alt, ast.Constant) and len(str(alt.value)) < ALT_AT_LEAST):
        yield Problem(where, f"figure(...) needs alt text of at least {ALT_AT_LEAST} characters: what is to be seen")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bookkit.build.checks", description=__doc__.split("\n")[0])
    project = Project.find()
    parser.add_argument("site", nargs="?", type=Path, default=project.site, help="folder of the built site")
    problems = check_site(parser.parse_args(arguments).site) + check_repository(project.root)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        print(f"\n{len(problems)} problems; the book is not ready to be published.", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
