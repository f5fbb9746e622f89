"""What stands in the head of a page about it."""

from types import SimpleNamespace

from docutils import nodes
from docutils.core import publish_doctree

from bookkit.sphinx.description import CARDS, MOST, add_openings, card, describe, opening


def read(text):
    """As Sphinx reads a page: its title belongs to a section."""
    return publish_doctree(text, settings_overrides={"doctitle_xform": False})


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


def test_a_chapter_opens_with_its_question_and_another_page_with_a_sentence():
    page = "Waves\n=====\n\n{}\n\n.. note::\n   :class: in-short\n\n   It is one."
    assert opening(read(page.format("**It moves. What is it?**"))) == "It moves. What is it?"
    assert opening(read(page.format("It moves, by 1.5 m. It is one."))) == "It moves, by 1.5 m."
    assert opening(read(page.format("Of waves there are:"))) == "Of waves there are"


def test_what_stands_further_down_does_not_open_a_page():
    assert opening(read("Waves\n=====\n\nHigh\n----\n\nOf water.\n\nLow\n---\n\nOf air.")) == ""
    assert opening(read("")) == ""


def test_a_page_says_how_those_beside_it_open():
    app = SimpleNamespace(
        builder=SimpleNamespace(relations={"b": ("top", "a", "c")}),
        env=SimpleNamespace(metadata={"a": {"opening": "Is 1 < 2?"}, "c": {"opening": ""}}),
    )
    context = {"prev": {"title": "A <em>wave</em>"}, "next": {"title": "C"}}
    add_openings(app, "b", "page.html", context, None)
    assert context.pop("prev_title") == 'A <em>wave</em><span class="opens">Is 1 &lt; 2?</span>'
    assert "next_title" not in context
    add_openings(app, "search", "search.html", context, None)
    assert [*context] == ["prev", "next"]


def test_a_formula_is_read_as_text():
    page = read(r"Among :math:`n` in :math:`\log_2 n` loops, :math:`\frac12 \sin\theta\,\cos(\dots)`.")
    assert describe(page) == opening(page) == "Among n in log₂ n loops, 1/2 sinθ cos(…)."


def test_a_page_without_a_picture_of_its_own_has_that_of_the_front_page(tmp_path):
    assert card(tmp_path, "notebooks/10_waves") is None
    (tmp_path / CARDS).mkdir(parents=True)
    for name in ("index", "10_waves"):
        (tmp_path / CARDS / f"{name}.png").touch()
    assert card(tmp_path, "notebooks/10_waves") == f"{CARDS}/10_waves.png"
    assert card(tmp_path, "book/glossary") == f"{CARDS}/index.png"
