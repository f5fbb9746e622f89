"""A tiny book goes through Jupyter Book without a warning, and the site that comes out passes every check.

A book that changed is built like a new one: no page is stale, and no warning is lost.
"""

import json
import multiprocessing
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pydata_sphinx_theme
import pytest
import yaml
from bs4 import BeautifulSoup
from tiny_book import ALT, HOSTILE, KEY, REPOSITORY, make_tiny_book

from bookkit.build import browser, provenance, staging
from bookkit.build.checks import check_site
from bookkit.build.layers import ROOMS, files
from bookkit.build.pages import source_numbers
from bookkit.build.project import Project
from bookkit.build.site import ICON, ICONS, build_site, name_icon, trim_icons

# Sphinx keeps much between two builds, so that each has a process of its own; they are forked from one that has
# imported what takes five times as long as to build the tiny book. Windows has no such processes, and starts anew.
PROCESSES = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
PROCESSES.set_forkserver_preload([
    "bookkit.build.site", "arithlib.tasks.modular", "matplotlib.pyplot", "myst_nb", "sphinx_book_theme",
])  # fmt: skip

ON_SCREEN = """part => {
    const { top, bottom } = part.getBoundingClientRect()
    return top >= 0 && bottom <= innerHeight
}"""


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The tiny book in a folder of its own, staged and built."""
    root = tmp_path_factory.mktemp("book")
    make_tiny_book(root)
    assert build(root) == ""
    return root


@pytest.fixture
def site(built) -> Path:
    return Project(built).site


@pytest.fixture(scope="module")
def workshop(tmp_path_factory) -> Path:
    """The same book once more, for changes: Sphinx forgets what it knows of one that was copied or moved."""
    root = tmp_path_factory.mktemp("workshop")
    make_tiny_book(root)
    return root


@pytest.fixture
def book(workshop) -> Iterator[Path]:
    """The book as it was built, to change; afterwards it is as it was."""
    assert build(workshop) == ""
    rooms = ("notebooks", "book", "book/_build/executed")
    kept = {path: path.read_bytes() for room in rooms for path in (workshop / room).glob("*.*") if path.is_file()}
    yield workshop
    for path, content in kept.items():
        path.write_bytes(content)


def build(root: Path) -> str:
    """Stage the book and build its site; returns what Sphinx complains of, or nothing where all went well."""
    project = Project(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staging.pages, "scoreboard_markdown", lambda *_: "# Scoreboard\n")
        staging.stage(root, project.build)
    said = root / "said"
    process = PROCESSES.Process(target=build_in_child, args=(root, said))
    process.start()
    process.join()
    text = said.read_text("utf8")
    assert (process.exitcode == 0) == ("WARNING" not in text), text
    return "" if process.exitcode == 0 else text


def build_in_child(root: Path, said: Path) -> None:
    """Build the site and end with its status. What is printed goes to the file `said`."""
    with said.open("w", encoding="utf8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.exit(build_site(Project(root)))


def edit(root: Path, name: str, old: str, new: str) -> None:
    path = root / name
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def pages(site: Path) -> dict[str, str]:
    """Every page, without the checksums that Sphinx adds to style sheets which are there before the page."""
    read = {path.relative_to(site).as_posix(): path.read_text("utf8") for path in site.rglob("*.html")}
    return {name: re.sub(r"\?v=\w+", "", text) for name, text in read.items()}


def read_again(root: Path) -> set[str]:
    """Pages that Sphinx read in the last build: those that it has written down anew."""
    doctrees = root / "book" / "_build" / ".doctrees"
    first = (root / "before").stat().st_mtime_ns
    found = {path for path in doctrees.rglob("*.doctree") if path.stat().st_mtime_ns > first}
    return {path.relative_to(doctrees).with_suffix("").as_posix() for path in found}


def test_each_page_says_in_its_head_what_it_is_about(site):
    page = BeautifulSoup((site / "notebooks/00_opening.html").read_text("utf8"), "html.parser")
    about = {
        meta.get("name") or meta.get("property"): meta["content"] for meta in page.head.find_all("meta", content=True)
    }
    assert about["description"] == about["og:description"] == "Before Waves."
    assert about["og:title"] == "Opening" and about["og:site_name"] != "Project name not set"


def test_a_changed_word_is_read_on_its_page_alone_and_the_site_is_what_a_first_build_makes(book):
    (book / "before").touch()
    edit(book, "notebooks/10_waves.ipynb", "A wave ", "One wave ")
    assert build(book) == ""
    assert read_again(book) == {"notebooks/10_waves"}
    after = pages(Project(book).site)
    assert "One wave " in after["notebooks/10_waves.html"]
    shutil.rmtree(book / "book" / "_build" / ".doctrees")
    assert build(book) == ""
    assert pages(Project(book).site) == after


def test_a_changed_title_reaches_every_side_bar(book):
    edit(book, "notebooks/10_waves.ipynb", "# Waves", "# Tides")
    assert build(book) == ""
    for name, page in pages(Project(book).site).items():
        assert ("10 · Tides" in page) == ("bd-links" in page) and "10 · Waves" not in page, name


def test_what_broke_is_said_until_it_is_mended_also_of_pages_that_are_as_they_were(book):
    """A directive that nobody knows is found when its page is read, a reference that another page broke later."""
    edit(
        book,
        "notebooks/00_opening.ipynb",
        "Before {doc}`/notebooks/10_waves`.",
        "Before [it](#the-end).\\n\\nSee {numref}`tiny-wave`.",
    )
    edit(book, "book/index.md", "# A tiny book", "(the-end)=\n# A tiny book")
    assert build(book) == ""
    edit(book, "book/index.md", "(the-end)=\n", "")
    edit(book, "book/index.md", "```{bibliography}\n```", "```{nothing}\n```")
    for _ in range(2):  # the second build reads no page that changed
        said = build(book)
        assert "the-end" in said and "nothing" in said


def test_what_pages_do_not_say_that_they_depend_on_lets_them_be_read_again(book):
    """A reference that changed, and that another chapter uses a part of the library."""
    (book / "before").touch()
    edit(book, "book/references.bib", "Joseph", "Jean")
    entry = "arithlib.tasks.modular.ModularAddition"
    for folder in ("notebooks", "book/_build/executed"):
        edit(book, f"{folder}/10_waves.ipynb", "task = ModularAddition()", "task = None")
    assert build(book) == ""
    assert "notebooks/00_opening" in read_again(book)
    assert "10_waves.html" not in str(soup(Project(book).site, "book/api.html").find(id=entry).find_parent("dl"))


def soup(site, name):
    return BeautifulSoup((site / name).read_text("utf8"), "html.parser")


def test_what_a_notebook_says_is_never_run(site):
    """Printed, returned as text, in a claim or in an alternative text, a script stays words."""
    page = soup(site, "notebooks/10_waves.html")
    assert page.find("figure", id=KEY).img["alt"] == ALT
    words = page.get_text()
    for before in ("printed ", "It rises. ", "\n"):
        assert f"{before}{HOSTILE}" in words, before
    assert not [script for script in page.find_all("script") if "alert" in (script.string or "")]
    assert not page.select("[onerror]")


def test_html_that_a_cell_returns_is_trusted_as_its_code_is(book):
    """As SECURITY.md says: an interactive model is such a piece of HTML, with its script."""
    path = Project(book).executed("10_waves")
    notebook = nbformat.read(path, as_version=4)
    (cell,) = [cell for cell in notebook.cells if cell.source == "words"]
    cell.outputs[0].data["text/html"] = "<script>here()</script>"
    nbformat.write(notebook, path)
    assert build(book) == ""
    assert "here()" in [script.string for script in soup(Project(book).site, "notebooks/10_waves.html")("script")]


def test_the_built_site_passes_every_check(site):
    assert check_site(site) == []


def test_a_figure_is_numbered_captioned_described_and_referred_to(site):
    page = soup(site, "notebooks/10_waves.html")
    figure = page.find("figure", id=KEY)
    assert figure.img["alt"] == ALT
    assert figure.select_one(".caption-number").get_text().strip() == "Fig. 1"
    assert page.find("a", href=f"#{KEY}", class_="reference").get_text() == "Fig. 1"


def test_a_number_in_prose_reads_as_the_notebook_wrote_it(site):
    assert [span.get_text() for span in soup(site, "notebooks/10_waves.html").select(".pasted-text")] == ["4,500"]


def test_the_side_bar_numbers_chapters_and_their_pages_do_not(site):
    page = soup(site, "notebooks/00_opening.html")
    listed = [link.get_text(strip=True) for link in page.select(".bd-sidebar-primary .bd-links a")]
    assert {"00 · Opening", "10 · Waves"} <= {*listed} and "Library" in listed
    assert (
        page.select_one("h1").get_text().startswith("Opening")
        and "10 ·" not in page.select_one(".prev-next-footer").get_text()
    )


def test_data_and_drawing_of_a_figure_are_one_click_away(site):
    links = soup(site, "notebooks/10_waves.html").find("figure").select("a.download")
    for link, suffix in zip(links, (".json", ".svg"), strict=True):
        target = (site / "notebooks" / link["href"]).resolve()
        assert target.is_file() and target.suffix == suffix


@pytest.mark.browser
@pytest.mark.parametrize("scripts", [True, False])
def test_under_a_figure_stands_first_the_way_to_its_code_which_unfolds(site, chromium, scripts):
    """On a page that is opened as a file, whether or not scripts run; and again once the reader has folded it."""
    assert soup(site, "notebooks/10_waves.html").select_one(".legend").a.get_text() == "code"
    context = chromium.new_context(java_script_enabled=scripts)
    context.set_default_timeout(browser.PATIENCE)
    page = context.new_page()
    page.goto((site / "notebooks" / "10_waves.html").as_uri())
    code = page.locator(f"details #code-{KEY} pre")
    for _ in range(2):
        assert not code.is_visible()
        page.locator("figcaption").get_by_role("link", name="code", exact=True).click()
        code.wait_for()
        assert code.inner_text().strip() == "figure(...)" and code.evaluate(ON_SCREEN)
        page.locator(f"details:has(#code-{KEY}) > summary").click()
    context.close()


def test_under_a_figure_stands_the_way_to_what_it_was_made_from(site):
    """Beside the other links, and to a file that knows the page it is on."""
    legend = soup(site, "notebooks/10_waves.html").find("figure").select_one(".legend")
    (link,) = legend.select('a[href="../provenance/10_waves.json"]')
    target = (site / "notebooks" / link["href"]).resolve()
    assert link.get_text() == "provenance" and link.find_parent("p").select("a.download")
    assert json.loads(target.read_text())["page"] == provenance.pages_of(site)["notebooks/10_waves.html"]


def test_only_the_page_of_the_search_loads_its_index(site):
    loading = {p.name for p in site.rglob("*.html") if "searchindex.js" in p.read_text("utf8")}
    assert loading == {"search.html"} and (site / "searchindex.js").is_file()


def test_chapter_and_library_link_to_each_other(site):
    name = "arithlib.tasks.modular.ModularAddition"
    assert soup(site, "notebooks/10_waves.html").find("a", href=f"../book/api.html#{name}")
    entry = soup(site, "book/api.html").find(id=name).find_parent("dl")
    assert entry.find("a", href="../notebooks/10_waves.html")


def test_only_pages_with_equations_load_mathjax(site):
    assert "tex-svg-full.js" in (site / "notebooks/10_waves.html").read_text()
    for name in ("book/api.html", "book/index.html"):  # the second lists the pages, and Sphinx would load it there
        assert "tex-svg-full.js" not in (site / name).read_text() and "MathJax" not in (site / name).read_text()


def test_the_solution_of_an_exercise_is_folded(site):
    assert "dropdown" in soup(site, "notebooks/10_waves.html").select_one(".solution")["class"]


def test_the_page_that_leads_to_the_first_names_an_icon_once(tmp_path):
    home = tmp_path / "index.html"
    home.write_text('\n<meta http-equiv="Refresh" content="0; url=book/index.html" />\n')
    name_icon(tmp_path)
    assert "icon" not in home.read_text(), "there is none"
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "favicon.svg").touch()
    for _ in range(2):
        name_icon(tmp_path)
        assert home.read_text().count('<link rel="icon" href="_static/favicon.svg" />') == 1
    home.write_text("<html>a page of its own</html>")
    name_icon(tmp_path)
    assert home.read_text() == "<html>a page of its own</html>"


def test_of_the_icons_of_the_theme_those_that_are_named_are_left(site, tmp_path):
    (whole,) = (Path(pydata_sphinx_theme.__file__).parent / "theme").rglob("fontawesome.js")
    trimmed = {found[1] for found in ICON.finditer((site / ICONS).read_text("utf8"))}
    assert {"magnifying-glass", "xmark"} < trimmed < {found[1] for found in ICON.finditer(whole.read_text("utf8"))}
    assert (site / ICONS).stat().st_size < whole.stat().st_size / 10 and not (site / f"{ICONS}.map").exists()
    (tmp_path / ICONS).parent.mkdir(parents=True)
    shutil.copy(whole, tmp_path / ICONS)
    (tmp_path / "page.html").write_text('<i class="fa-lg fa-search"></i> <i class="fas fa-hippo"></i>')
    (tmp_path / "_static" / "sheet.js").write_text("toggle('fa-house-user')")
    trim_icons(tmp_path)
    script = (tmp_path / ICONS).read_text("utf8")
    assert {found[1] for found in ICON.finditer(script)} == {"magnifying-glass", "hippo", "house-user"}


def test_every_module_of_the_library_is_in_the_reference():
    modules = {
        ".".join(path.relative_to(REPOSITORY / room).with_suffix("").parts).removesuffix(".__init__")
        for package, room in ROOMS.items()
        for path in files(REPOSITORY, package)
        if path.name != "__main__.py" and (path.name != "__init__.py" or path.read_text().strip())
        if path.parent.name != "presets" or path.name == "__init__.py"  # tables, whose docstrings are for `list`
    }
    text = "\n".join(path.read_text() for path in (REPOSITORY / "book" / "api").glob("*.md"))
    documented = [line.split("::")[1].strip() for line in text.splitlines() if line.startswith(".. automodule::")]
    assert sorted(documented) == sorted(modules)


def test_every_page_in_the_table_of_contents_exists():
    generated = {
        "book/scoreboard",
        "book/environment",
        "book/in-short",
        "book/errors",
        *(f"book/source-{n}" for n in source_numbers(REPOSITORY)),
    }

    def files(entry):
        yield from filter(None, [entry.get("file")])
        for child in entry.get("parts", []) + entry.get("chapters", []) + entry.get("sections", []):
            yield from files(child)

    toc = yaml.safe_load((REPOSITORY / "_toc.yml").read_text())
    for name in {toc["root"], *files(toc)} - generated:
        assert any((REPOSITORY / f"{name}{suffix}").is_file() for suffix in (".md", ".ipynb")), name
