"""Elements of a page: their words stand where nothing draws them, and the module that does comes along."""

import pytest
from bs4 import BeautifulSoup

from bookkit.web_components import element


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
