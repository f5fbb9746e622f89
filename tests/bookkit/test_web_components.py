"""Elements of a page: their words stand where nothing draws them, and the module that does comes along."""

import base64
from urllib.parse import unquote

import pytest
from bs4 import BeautifulSoup

from bookkit.web_components import asset, element


@pytest.fixture
def written(tmp_path, monkeypatch):
    (tmp_path / "book" / "_static").mkdir(parents=True)
    (tmp_path / "book" / "_static" / "wave.mjs").write_text("customElements.define('wave-line', Wave)\n", "utf8")
    monkeypatch.setattr("bookkit.web_components.repo_root", lambda: tmp_path)

    def written():
        return BeautifulSoup(
            element("wave-line", {"k": 5, "name": 'a "b" & <c>'}, "0 < k < 57", "wave.mjs"), "html.parser"
        )

    return written


def test_by_hand_the_module_comes_with_the_output(written, monkeypatch):
    monkeypatch.delenv("BOOKKIT_RECORDS", raising=False)
    script = written().script
    assert script["type"] == "module" and "define('wave-line'" in script.string and "src" not in script.attrs


def test_a_page_of_the_book_loads_it_from_beside_the_page(written, monkeypatch):
    monkeypatch.setenv("BOOKKIT_RECORDS", "anywhere")
    assert written().script["src"] == "../_static/wave.mjs"


def test_words_and_attributes_are_escaped(written):
    found = written().find("wave-line")
    assert (found["k"], found["name"], found.p.string) == ("5", 'a "b" & <c>', "0 < k < 57")


def test_markup_beneath_the_words_is_part_of_the_element(written):
    found = BeautifulSoup(element("wave-line", {}, "In words.", "wave.mjs", "<table></table>"), "html.parser")
    assert [child.name for child in found.find("wave-line").children] == ["p", "table"]


def test_what_is_loaded_later_is_recorded_in_the_book_and_in_the_address_by_hand(tmp_path, monkeypatch):
    data = bytes(range(256))
    script = f'document.currentScript.data = "{base64.b64encode(data).decode()}";\n'
    monkeypatch.delenv("BOOKKIT_RECORDS", raising=False)
    kind, _, written = asset("waves.mjs", data).partition(",")
    assert (kind, unquote(written)) == ("data:text/javascript", script)
    monkeypatch.setenv("BOOKKIT_RECORDS", str(tmp_path))
    assert asset("waves.mjs", data) == "../_static/waves.mjs"
    assert (tmp_path / "assets" / "waves.mjs").read_text("utf8") == script
