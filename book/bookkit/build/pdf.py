"""The whole book as one PDF: a browser prints every page of the built site, and what it printed is joined.

    python -m bookkit pdf       writes book/_build/arithmetic-book.pdf

Pages come in the order of _toc.yml, with their numbers beneath. The outline has parts, chapters and sections. A link
to another page of the book leads to its place in the PDF, one to another file of the site is plain text, and all
others stay. A live element is what it is without scripts: a picture and words.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from urllib.parse import unquote

import yaml
from playwright.sync_api import Page
from pypdf import PageObject, PdfReader, PdfWriter
from pypdf.generic import ArrayObject, Destination, Fit, IndirectObject, NameObject, TextStringObject
from tqdm import tqdm

from bookkit.build import browser
from bookkit.build.project import Project, files_in
from bookkit.files import write_atomic

FILE = "arithmetic-book.pdf"
# Before a page's own scripts: no live element comes to be.
NO_ELEMENTS = "customElements.define = () => {}"
# Once its scripts have run. The browser keeps a place for each id that a link of the same page leads to, seen or not.
PREPARE = """async () => {
    await window.MathJax?.startup?.promise
    for (const image of document.images) image.loading = 'eager'
    await Promise.all([...document.images].map(image => image.decode()))
    const links = document.createElement('nav')
    links.hidden = true
    for (const { id } of document.querySelectorAll('article [id]')) {
        links.append(Object.assign(document.createElement('a'), { href: `#${id}` }))
    }
    document.body.append(links)
    const words = heading => {
        const copy = heading.cloneNode(true)
        for (const link of copy.querySelectorAll('.headerlink, mjx-assistive-mml')) link.remove()
        return copy.textContent.trim()
    }
    const sections = document.querySelectorAll('article section > section[id]:has(> h2)')
    return {
        title: words(document.querySelector('article h1')),
        sections: [...sections].map(section => [words(section.querySelector('h2')), section.id]),
    }
}"""
FOOT = """@page {{
    @bottom-left {{ content: {title}; width: 80%; text-align: left; font: 7.5pt sans-serif }}
    @bottom-right {{ content: counter(page); width: 20%; text-align: right; font: 7.5pt sans-serif }}
}}
@page :first {{ counter-increment: page {first} }}"""

Place = tuple[PageObject, Fit]  # a sheet of the document, and where on it


class NotBuilt(RuntimeError):
    """A page is not in the site; the message says which, and what to do."""


@dataclass(frozen=True)
class Chapter:
    """One page of the site on paper.

    address: of the page, as links have it. sections: the title and the id of each.
    """

    part: str | None
    title: str
    address: str
    sections: list[tuple[str, str]]
    paper: bytes


def make(project: Project) -> Path:
    """Print the built site; returns where the PDF lies. Raises NotBuilt or NoBrowser."""
    settings = yaml.safe_load((project.root / "_config.yml").read_text(encoding="utf-8"))
    writer = join(printed(project), settings["title"], settings["author"])
    content = BytesIO()
    writer.write(content)
    write_atomic(project.build / FILE, content.getvalue())
    return project.build / FILE


def printed(project: Project) -> Iterator[Chapter]:
    """Each page of the built site in reading order, numbered through."""
    contents = project.contents
    files = [(None, contents["root"])]
    files += [(part["caption"], file) for part in contents["parts"] for file in files_in(part)]
    paths = {file: project.site / f"{file}.html" for _, file in files}
    if missing := [file for file, path in paths.items() if not path.is_file()]:
        raise NotBuilt(f"The built site lacks {', '.join(missing)}. Build it first: make book")
    with browser.chromium() as started:
        tab = started.new_page(color_scheme="light")
        tab.set_default_timeout(browser.PATIENCE)
        tab.emulate_media(media="print")
        tab.add_init_script(NO_ELEMENTS)
        before = 0
        for part, file in tqdm(files, "printing", unit="page", disable=None):  # seen on a terminal only
            chapter = print_page(tab, paths[file].as_uri(), part, before)
            before += len(PdfReader(BytesIO(chapter.paper)).pages)
            yield chapter


def print_page(tab: Page, address: str, part: str | None, before: int) -> Chapter:
    """One page of the site; before: how many sheets come before it."""
    tab.goto(address)
    seen = tab.evaluate(PREPARE)
    number = Path(address).name.partition("_")[0]
    title = f"{number} · {seen['title']}" if number.isdigit() else seen["title"]
    tab.add_style_tag(content=FOOT.format(title=json.dumps(title, ensure_ascii=False), first=before + 1))
    return Chapter(part, title, address, seen["sections"], tab.pdf(format="A4"))


def join(chapters: Iterable[Chapter], title: str, author: str, language: str = "en") -> PdfWriter:
    """All chapters in one document, with an outline, and with the links of each to places in the document."""
    writer = PdfWriter()
    origins, places = [], {}  # the address that each sheet comes from; where each address with an anchor is now
    part = above = None
    for chapter in chapters:
        reader = PdfReader(BytesIO(chapter.paper))
        sheets = [writer.add_page(page) for page in reader.pages]
        origins += [chapter.address] * len(sheets)
        own = {"": (sheets[0], Fit.xyz())}
        for name, to in reader.named_destinations.items():
            sheet = sheets[reader.get_destination_page_number(to)]
            own[unquote(name[1:])] = (sheet, Fit.xyz(to.left, to.top))
        places |= {(chapter.address, anchor): place for anchor, place in own.items()}
        if chapter.part != part:
            part, above = chapter.part, _entry(writer, chapter.part, own[""], None)
        entry = _entry(writer, chapter.title, own[""], above, is_open=False)
        for words, anchor in chapter.sections:
            _entry(writer, words, own[anchor], entry)
    for sheet, origin in zip(writer.pages, origins, strict=True):
        _lead_inside(sheet, origin, places)
    writer.add_metadata({"/Title": title, "/Author": author})
    writer.root_object[NameObject("/Lang")] = TextStringObject(language)
    writer.create_viewer_preferences().display_doctitle = True
    writer.page_mode = "/UseOutlines"
    writer.compress_identical_objects()
    return writer


def _entry(writer: PdfWriter, words: str, place: Place, above: "IndirectObject | None", **shown) -> IndirectObject:
    sheet, fit = place
    return writer.add_outline_item(title=words, page_number=sheet, parent=above, fit=fit, **shown)


def _lead_inside(sheet: PageObject, origin: str, places: dict[tuple[str, str], Place]) -> None:
    """Let links on a sheet lead to places of the document, and none to a file that its reader need not have."""
    kept = ArrayObject()
    for annotation in sheet.get("/Annots", []):
        link = annotation.get_object()
        goal = f"{origin}#{link['/Dest'][1:]}" if "/Dest" in link else link["/A"]["/URI"]
        address, _, anchor = goal.partition("#")
        place = places.get((address, unquote(anchor))) or places.get((address, ""))
        if place:
            link.pop("/A", None)
            to, fit = place
            link[NameObject("/Dest")] = Destination("", to.indirect_reference, fit).dest_array
        if place or not goal.startswith("file:"):
            kept.append(annotation)
    sheet[NameObject("/Annots")] = kept
