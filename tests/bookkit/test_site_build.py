"""A tiny book goes through Jupyter Book without a warning, and the site that comes out passes every check."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup
from tiny_book import ALT, KEY, REPOSITORY, make_tiny_book

from bookkit.build import staging
from bookkit.build.checks import check_site
from bookkit.build.layers import ROOMS, files


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    root = tmp_path_factory.mktemp("book")
    build = make_tiny_book(root)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("scoreboard", "environment"):
            patch.setattr(staging.pages, f"{name}_markdown", lambda *_, name=name: f"# {name}\n")
        stage = staging.stage(root, build)
    command = [Path(sys.executable).with_name("jupyter-book"), "build", stage, "--path-output", root / "book"]
    result = subprocess.run([*command, "-n", "-W", "--keep-going"], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return build / "html"


def soup(site, name):
    return BeautifulSoup((site / name).read_text("utf8"), "html.parser")


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


def test_data_and_drawing_of_a_figure_are_one_click_away(site):
    links = soup(site, "notebooks/10_waves.html").find("figure").select("a.download")
    for link, suffix in zip(links, (".json", ".svg"), strict=True):
        target = (site / "notebooks" / link["href"]).resolve()
        assert target.is_file() and target.suffix == suffix


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
    assert "tex-svg-full.js" not in (site / "book/api.html").read_text()


def test_the_solution_of_an_exercise_is_folded(site):
    assert "dropdown" in soup(site, "notebooks/10_waves.html").select_one(".solution")["class"]


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
    generated = {"book/scoreboard", "book/environment"}

    def files(entry):
        yield from filter(None, [entry.get("file")])
        for child in entry.get("parts", []) + entry.get("chapters", []) + entry.get("sections", []):
            yield from files(child)

    toc = yaml.safe_load((REPOSITORY / "_toc.yml").read_text())
    for name in {toc["root"], *files(toc)} - generated:
        assert any((REPOSITORY / f"{name}{suffix}").is_file() for suffix in (".md", ".ipynb")), name
