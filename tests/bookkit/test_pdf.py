"""The PDF of the book: what a browser prints, joined, with an outline and with links that lead inside it."""

import sys
from contextlib import nullcontext
from io import BytesIO

import pytest

from bookkit.__main__ import main as bookkit
from bookkit.build.project import Project

pypdf = pytest.importorskip("pypdf", reason="make pdf needs it: python -m pip install -r requirements-pdf.txt")

from pypdf.annotations import Link  # noqa: E402
from pypdf.generic import ArrayObject, DictionaryObject, FloatObject, NameObject, NullObject  # noqa: E402

from bookkit.build import pdf  # noqa: E402

A, B = "file:///site/a.html", "file:///site/b.html"
ELSEWHERE = "https://an.example/paper.pdf#page=2"


def paper(anchors: dict[str, tuple[int, float]], links: list[str]) -> bytes:
    """Two blank sheets as a browser makes them: anchors -> which sheet, how high; links, all on the first sheet."""
    writer = pypdf.PdfWriter()
    sheets = [writer.add_blank_page(100, 200) for _ in range(2)]
    for goal in links:
        link = Link(rect=(0, 0, 9, 9), url=goal)
        if goal.startswith("#"):
            del link["/A"]
            link[NameObject("/Dest")] = NameObject(f"/{goal[1:]}")
        writer.add_annotation(sheets[0], link)
    places = DictionaryObject()
    for name, (number, top) in anchors.items():
        to = [sheets[number].indirect_reference, NameObject("/XYZ"), FloatObject(5), FloatObject(top), NullObject()]
        places[NameObject(f"/{name}")] = ArrayObject(to)
    writer.root_object[NameObject("/Dests")] = places
    content = BytesIO()
    writer.write(content)
    return content.getvalue()


def outline(document, entries=None, depth=0) -> list[tuple[int, str, int]]:
    """Depth, title and sheet of each entry."""
    found = []
    for entry in document.outline if entries is None else entries:
        if isinstance(entry, list):
            found += outline(document, entry, depth + 1)
        else:
            found.append((depth, entry.title, document.get_destination_page_number(entry)))
    return found


def links(document, number: int) -> list:
    """Of each link on a sheet: the sheet and the height that it leads to, or the address."""
    found = []
    numbers = {page.indirect_reference.idnum: number for number, page in enumerate(document.pages)}
    for annotation in document.pages[number].get("/Annots", []):
        link = annotation.get_object()
        if "/Dest" in link:
            sheet, _, _, top, *_ = link["/Dest"]
            found.append((numbers[sheet.idnum], None if isinstance(top, NullObject) else float(top)))
        else:
            found.append(link["/A"]["/URI"])
    return found


def written(writer) -> "pypdf.PdfReader":
    content = BytesIO()
    writer.write(content)
    return pypdf.PdfReader(content)


def test_links_lead_inside_and_names_that_two_chapters_share_do_not_meet():
    first = paper({"there": (1, 150)}, ["#there", f"{B}#there", f"{B}#two%20words", f"{B}#gone", B, ELSEWHERE])
    second = paper({"there": (0, 70), "two%20words": (1, 30)}, [A, "file:///site/_downloads/a.csv", "#there"])
    chapters = [
        pdf.Chapter(None, "Front", A, [("There", "there")], first),
        pdf.Chapter("Part 1", "10 · Next", B, [("Two", "two words")], second),
    ]
    document = written(pdf.join(chapters, "The book", "Its authors"))
    assert outline(document) == [
        (0, "Front", 0),
        (1, "There", 1),
        (0, "Part 1", 2),
        (1, "10 · Next", 2),
        (2, "Two", 3),
    ]
    assert links(document, 0) == [(1, 150), (2, 70), (3, 30), (2, None), (2, None), ELSEWHERE]
    assert links(document, 2) == [(0, None), (2, 70)]
    assert (document.metadata.title, document.metadata.author) == ("The book", "Its authors")
    assert document.root_object["/Lang"] == "en"


PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>@page {{ margin: 16mm 15mm }}</style></head>
<body><article><section id="top"><h1>{title}<a class="headerlink" href="#top">#</a></h1>{body}</section></article>
<script>customElements.define('wave-line', class extends HTMLElement {{
    connectedCallback() {{ this.textContent = 'Drawn.' }} }})</script></body></html>"""
SQUARE = (
    "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' width='90' height='90'><text y='50'>seen</text></svg>"
)
BODIES = {
    "book/index": f'<a href="../notebooks/10_waves.html#in-words">words</a>, <a href="{ELSEWHERE}">a paper</a>',
    "notebooks/10_waves": f"""<wave-line>In words.</wave-line><p style="break-after: page; height: 3000px">Long.</p>
        <section id="in-words"><h2>“In \\ words”</h2><img loading="lazy" src="{SQUARE}"></section>
        <a href="../_downloads/data.csv">data</a>""",
    "book/glossary": '<p><a href="../notebooks/10_waves.html">Waves</a></p>',
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    project = Project(tmp_path / "a book")
    for name, body in BODIES.items():
        path = project.site / f"{name}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PAGE.format(title=name.partition("/")[2], body=body), "utf8")
    (project.root / "_config.yml").write_text("title: Waves\nauthor: Somebody\n")
    (project.root / "_toc.yml").write_text(
        "root: book/index\nparts:\n- caption: Part 1\n  chapters:\n  - file: notebooks/10_waves\n"
        "- caption: Reference\n  chapters:\n  - file: book/glossary\n"
    )
    monkeypatch.setattr(Project, "find", lambda: project)
    return project


@pytest.mark.browser
def test_three_pages_become_a_book(project, chromium, monkeypatch, capsys):
    monkeypatch.setattr(pdf.browser, "chromium", lambda: nullcontext(chromium))
    assert bookkit(["pdf"]) == 0
    assert "arithmetic-book.pdf" in capsys.readouterr().out
    document = pypdf.PdfReader(project.build / pdf.FILE)
    texts = [page.extract_text() for page in document.pages]
    last = len(texts) - 1
    assert last >= 5
    (section,) = (number for number, text in enumerate(texts) if "seen" in text)
    assert outline(document) == [
        (0, "index", 0),
        (0, "Part 1", 1),
        (1, "10 · 10_waves", 1),
        (2, "“In \\ words”", section),
        (0, "Reference", last),
        (1, "glossary", last),
    ]
    titles = ["index", *["10 · 10_waves"] * (last - 1), "glossary"]
    for number, (title, text) in enumerate(zip(titles, texts, strict=True), start=1):
        assert text.startswith(f"{number}{title}")  # the foot is written first
    assert "In words." in texts[1] and "Drawn." not in "".join(texts)
    _, (goal, top), outside = links(document, 0)  # after the title's own
    assert goal == section and top > 700 and outside == ELSEWHERE
    assert [sheet for sheet, _ in links(document, last)] == [last, 1]
    assert all(isinstance(link, tuple) for number in range(1, last) for link in links(document, number))


def test_without_a_page_it_says_what_to_do_and_leaves_what_was_there(project, capsys):
    (project.build / pdf.FILE).write_text("an older one")
    (project.site / "book" / "glossary.html").unlink()
    assert bookkit(["pdf"]) == 1
    assert "lacks book/glossary" in (said := capsys.readouterr().err) and "make book" in said
    assert (project.build / pdf.FILE).read_text() == "an older one"


def test_without_a_browser_it_names_those_that_would_do(project, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    assert bookkit(["pdf"]) == 1
    assert "chromium" in capsys.readouterr().err


def test_without_the_library_it_says_how_to_install_it(project, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "bookkit.build.pdf")
    monkeypatch.delattr("bookkit.build.pdf", raising=False)
    monkeypatch.setitem(sys.modules, "pypdf", None)
    assert bookkit(["pdf"]) == 1
    assert "requirements-pdf.txt" in capsys.readouterr().err
