"""Live elements of a page that is opened as a file: scripts of the older kind in the place of modules."""

from types import SimpleNamespace

import pytest
from browsing import DESK, serving

from bookkit.claims import repo_root
from bookkit.sphinx.classic import classic, load_scripts

MODULE = """import { twice, NAME } from "./parts.mjs";

export const P = 21;
export function* counted() {
  yield twice(P);
}

class WaveLine extends HTMLElement {
  connectedCallback() {
    this.textContent = `${NAME}: ${[...counted()]}`;
  }
}

export default { render: ({ el }) => el.append(document.createElement("wave-line")) };

customElements.define("wave-line", WaveLine);
"""
PARTS = """export const NAME = "wave";
export const twice = (n) => 2 * n;
"""
LOAD = '<script type="module" src="../_static/wave.mjs"></script>'
# A page whose other script has names of its own, and which shows the element twice.
PAGE = f"""<!doctype html><html lang="en"><head><title>A page</title><link rel="icon" href="data:,">
<script>const P = 2, NAME = 'another'</script></head><body><wave-line>In words.</wave-line>{LOAD}
<wave-line>Again.</wave-line>{LOAD}</body></html>"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """After a build: a page that loads a module, and one that loads none."""
    root = tmp_path_factory.mktemp("book")
    (root / "book" / "claims").mkdir(parents=True)
    (root / "book" / "_static").mkdir()
    (root / "book" / "_static" / "wave.mjs").write_text(MODULE, "utf8")
    (root / "book" / "_static" / "parts.mjs").write_text(PARTS, "utf8")
    site = root / "html"
    for folder in ("_static", "notebooks"):
        (site / folder).mkdir(parents=True)
    (site / "notebooks" / "page.html").write_text(PAGE, "utf8")
    (site / "plain.html").write_text("<p>1 + 1</p>", "utf8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        load_scripts(SimpleNamespace(outdir=site, builder=SimpleNamespace(format="html")), None)
    return site


@pytest.fixture(scope="module")
def address(site):
    with serving(site) as address:
        yield address


def test_a_page_loads_one_script_and_a_page_without_elements_none(site):
    page = (site / "notebooks" / "page.html").read_text("utf8")
    assert "module" not in page and page.count('<script defer src="../_static/wave.js"></script>') == 1
    assert [path.name for path in (site / "_static").iterdir()] == ["wave.js"]
    assert (site / "plain.html").read_text("utf8") == "<p>1 + 1</p>"


def test_a_module_that_changed_becomes_a_new_script_though_no_page_was_written_again(tmp_path, monkeypatch):
    for folder in ("book/claims", "book/_static", "html/_static"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    app = SimpleNamespace(outdir=tmp_path / "html", builder=SimpleNamespace(format="html"))
    (tmp_path / "html" / "page.html").write_text(LOAD, "utf8")
    for number in (1, 2):
        for folder in ("book", "html"):  # the build copies it
            (tmp_path / folder / "_static" / "wave.mjs").write_text(f"console.log({number});\n", "utf8")
            (tmp_path / folder / "_static" / "parts.mjs").write_text(PARTS, "utf8")
        load_scripts(app, None)
        assert f"console.log({number});" in (tmp_path / "html/_static/wave.js").read_text("utf8")
    assert not (tmp_path / "html/_static/parts.js").exists()


def test_a_build_that_failed_is_left_alone(tmp_path):
    (tmp_path / "page.html").write_text(LOAD, "utf8")
    load_scripts(SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(format="html")), ValueError())
    assert (tmp_path / "page.html").read_text("utf8") == LOAD


@pytest.mark.browser
@pytest.mark.parametrize("opened", ["file", "server"])
def test_the_element_draws_and_keeps_its_names_to_itself(page, site, opened):
    page.set_viewport_size(DESK)
    page.goto((site / "notebooks" / "page.html").as_uri() if opened == "file" else "notebooks/page.html")
    assert page.locator("wave-line").all_inner_texts() == ["wave: 42"] * 2
    assert page.evaluate("[P, NAME]") == [2, "another"]
    assert [fault for fault in page.faults if not fault.startswith("asked for file:")] == []


def test_what_a_module_of_the_book_exports_by_default_stands_in_one_line():
    """Which is left out as a line; what follows it would be left behind."""
    for path in (repo_root() / "book" / "_static").glob("*.mjs"):
        lines = [line for line in path.read_text("utf8").splitlines() if line.startswith("export default")]
        assert [line for line in lines if not line.endswith(";") or line.count("{") != line.count("}")] == []
        assert [line for line in classic(path.name).splitlines() if line.startswith("import ")] == []
