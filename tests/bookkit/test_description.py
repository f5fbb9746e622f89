"""What stands in the head of a page about it."""

from docutils import nodes
from docutils.core import publish_doctree

from bookkit.sphinx.description import CARDS, MOST, card, describe


def test_it_is_the_first_paragraph():
    page = publish_doctree("Waves\n=====\n\n.. note:: \n\n   A *note*,\n   first.\n\nThen text.")
    assert describe(page) == "A note, first."


def test_markup_that_passes_through_is_no_text():
    raw = nodes.raw("", "<a href='there'>", format="html")
    page = nodes.document(None, None)
    page += nodes.paragraph("", "", nodes.Text("All in "), raw, nodes.Text("a file."))
    assert describe(page) == "All in a file."


def test_a_chapter_says_what_its_box_says():
    page = publish_doctree(
        "Waves\n=====\n\nWhat is a wave?\n\n.. note::\n   :class: in-short\n\n   It is\n   one.\n\n   Why."
    )
    assert describe(page) == "It is one."


def test_what_is_long_is_cut_at_a_word():
    words = "wave, " * 100
    text = describe(publish_doctree(words))
    assert text.endswith("wave …") and MOST - 8 < len(text) <= MOST and words.startswith(text.removesuffix(" …"))


def test_a_page_without_text_has_none():
    assert describe(publish_doctree("")) == ""
    assert describe(nodes.document(None, None)) == ""


def test_a_page_without_a_picture_of_its_own_has_that_of_the_front_page(tmp_path):
    assert card(tmp_path, "notebooks/10_waves") is None
    (tmp_path / CARDS).mkdir(parents=True)
    for name in ("index", "10_waves"):
        (tmp_path / CARDS / f"{name}.png").touch()
    assert card(tmp_path, "notebooks/10_waves") == f"{CARDS}/10_waves.png"
    assert card(tmp_path, "book/glossary") == f"{CARDS}/index.png"
