"""The hop stepper: the module in the browser shows what the weights compute."""

import random
from pathlib import Path

import pytest
from browsing import PHONE, fixtures_of, words

from bookkit.build.checks import check_site
from chapters.hop_stepper import HopStepper, describe, states

MODULE = Path(__file__).resolve().parents[2] / "book" / "_static" / "hop-stepper.mjs"
START = HopStepper("abdbacbdccaccbddbaddaadbba", 7)


def test_the_states_are_pointers_that_double():
    pointers, carried = states("abcab", 2)
    assert pointers == [[0, 0, 0, 0, 0], [0, 0, 0, 2, 3], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]]
    assert carried[-1] == ["", "", "", "", ""] and carried[0] == list("abcab")


@pytest.mark.parametrize("wrong", [("", 1), ("abe", 1), ("a" * 41, 1), ("ab", 0), ("ab", 32), ("ab", 1.5)])
def test_what_no_control_reaches_is_refused(wrong):
    with pytest.raises(ValueError, match="text = |hops = "):
        HopStepper(*wrong)


# --- in a browser ---


folder, address, shown = fixtures_of(START, "hops.html", MODULE)


def arcs(page):
    """{place: where its arc leads}"""
    found = page.evaluate(
        """() => [...document.querySelector('hop-stepper').shadowRoot.querySelectorAll('path')]
                 .map(path => [Number(path.dataset.from), Number(path.dataset.to)])"""
    )
    return dict(map(tuple, found))


def pointing(pointers):
    return {place: target for place, target in enumerate(pointers, 1) if target not in (0, place)}


def test_the_checks_of_the_site_accept_it(folder):
    assert check_site(folder) == []


@pytest.mark.browser
def test_the_module_computes_what_the_weights_compute(shown):
    draw = random.Random(0)
    cases = [("".join(draw.choices("abcd", k=draw.randint(1, 40))), draw.randint(1, 31)) for _ in range(40)]
    answers = shown.evaluate(
        """async cases => {
          const m = await import('/_static/hop-stepper.mjs')
          return cases.map(([text, p]) => ({
            states: m.states(text, p),
            words: Array.from({length: m.loops(p) + 1}, (_, loop) => m.describe(text, p, loop)),
          }))
        }""",
        cases,
    )
    for (text, p), answer in zip(cases, answers, strict=True):
        pointers, carried = states(text, p)
        assert [state["pointers"] for state in answer["states"]] == pointers, (text, p)
        assert [state["carried"] for state in answer["states"]] == carried, (text, p)
        assert answer["words"] == [describe(text, p, loop) for loop in range(len(pointers))]


@pytest.mark.browser
def test_keys_step_through_the_loops(shown):
    pointers, _ = states(START.text, START.hops)
    loop = shown.get_by_role("slider", name="Loop")
    for number in range(1, len(pointers)):
        assert arcs(shown) == pointing(pointers[number])
        assert words(shown) == describe(START.text, START.hops, number)
        loop.press("ArrowRight")
    assert words(shown).endswith("the answer.")
    shown.get_by_role("button", name="Next loop").press("Enter")
    assert words(shown).startswith("Before the first loop") and arcs(shown) == {}


@pytest.mark.browser
def test_text_and_hops_can_be_changed(shown):
    shown.get_by_role("textbox").fill("abc ABD x ab")
    shown.get_by_role("slider", name="Hops").press("Home")
    shown.get_by_role("slider", name="Loop").press("End")
    pointers, _ = states("abcabdab", 1)
    assert arcs(shown) == pointing(pointers[-1]) and words(shown) == describe("abcabdab", 1, 2)
    shown.get_by_role("textbox").fill("")
    assert words(shown) == "Type a text."


@pytest.mark.browser
def test_the_keyboard_reaches_every_control(shown):
    order = []
    for _ in range(4):
        shown.keyboard.press("Tab")
        order.append(shown.evaluate("document.activeElement.shadowRoot.activeElement.id"))
    assert order == ["loop", "next", "hops", "text"]


@pytest.mark.browser
def test_it_fits_a_phone_and_gives_way_to_words_on_paper(shown):
    shown.set_viewport_size(PHONE)
    assert shown.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    shown.emulate_media(media="print")
    assert shown.get_by_text("A stepper through the loops").is_visible()
    assert not shown.get_by_role("slider").first.is_visible()
