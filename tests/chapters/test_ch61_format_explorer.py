"""The format explorer: its texts are those of the chapters, what a token is read from decides it, and in the browser
the module writes and measures the same."""

import json
import re
from collections import defaultdict
from itertools import product
from pathlib import Path
from string import ascii_letters

import numpy as np
import pytest
from browsing import PHONE, fixtures_of, told

from bookkit.build.checks import check_site
from bookkit.web_components import whole_source
from chapters.ch61_format_explorer import (
    DIGITS,
    DRAWS,
    WAYS,
    FormatExplorer,
    drawn,
    mean,
    written,
)
from chapters.ch65_working_memory import Line

MODULE = Path(__file__).resolve().parents[2] / "book" / "_static" / "format-explorer.mjs"
START = FormatExplorer(128, 367)
FIRST_LOAD = 300_000  # bytes of script
HARD = [(0, 0), (0, 5), (9, 1), (5, 5), (999, 1), (1, 999), (128, 367), (10**DIGITS - 1, 1), (45, 10**DIGITS - 1)]
HARD += [(10**DIGITS - 1, 10**DIGITS - 1), (123_456_789, 876_543_210), (500_500, 499_500), (1000, 999_999)]


def pairs(count, seed=0):
    """Numbers of all lengths, a third of them with columns that sum to nine, so that carries travel."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        a, b = (int(rng.integers(10 ** rng.integers(1, DIGITS + 1))) for _ in range(2))
        if rng.random() < 1 / 3:
            digits = [d if rng.random() < 0.3 else str(9 - int(d)) for d in str(a)]
            b = int("".join(digits))
        yield a, b


# --- the texts ---


def test_the_texts_are_those_that_people_would_write_by_hand():
    for a, b in [*HARD, *pairs(200)]:
        width = len(str(max(a, b)))
        text = {name: "".join(written(name, a, b).tokens) for name in WAYS}
        assert text["plain"] == f"{a}+{b}={a + b}"
        assert text["zero-padded"] == f"{a:0{width}}+{b:0{width}}={a + b:0{width + 1}}"
        assert text["answer reversed"] == f"{a}+{b}={str(a + b)[::-1]}"
        assert text["all reversed"] == f"{str(a)[::-1]}+{str(b)[::-1]}={str(a + b)[::-1]}"
        assert text["commas"] == f"{a:,}+{b:,}={a + b}"
        assert text["threes from the left"] == text["threes from the right"] == text["plain"]
        assert text["random spaces"].replace("␣", "") == text["answer reversed"]
        hinted = re.sub("[a-zA-Z]", "", text["index hints"])
        assert hinted == f"{a:0{width + 1}}+{b:0{width + 1}}={f'{a + b:0{width + 1}}'[::-1]}"
        for name in ("simplified scratchpad", "detailed scratchpad"):
            assert re.fullmatch(rf"{a}\+{b}=.*;{a + b}", text[name])
            assert text[name].count(";") == width + (name == "detailed scratchpad")


def test_threes_are_cut_as_their_names_say():
    assert written("threes from the left", 1234, 98766).tokens == ("123", "4", "+", "987", "66", "=", "100", "000")
    assert written("threes from the right", 1234, 98766).tokens == ("1", "234", "+", "98", "766", "=", "100", "000")


def test_every_token_holds_the_digit_that_it_says():
    """Digits of the numbers, of the sum, and carries, against arithmetic on integers."""
    for (a, b), name in product([*HARD, *pairs(60, seed=1)], WAYS):
        text = written(name, a, b)
        for token, names in zip(text.tokens, text.holds, strict=True):
            says = ""
            for kind, column in names:
                if kind == "hint":
                    continue
                below = 10**column
                carry = (a % below + b % below) // below
                says += str(carry if kind == "carry" else {"a": a, "b": b, "sum": a + b}[kind] // below % 10)
            if token.isdecimal():
                assert token == says, (name, a, b, text.tokens)
            elif names:
                assert token.isalpha() and names[0][0] == "hint" and len(names) == 1
        if name == "index hints":
            tokens = [(token, names[0][1]) for token, names in zip(text.tokens, text.holds, strict=True) if names]
            named = {(ascii_letters.index(token), column) for token, column in tokens if token.isalpha()}
            assert len({letter + column for letter, column in named}) == 1  # they count on, down the columns
            assert len(named) == len(str(max(a, b))) + 1


# --- what a token has to be read from ---

FEW, FOUR, FIVE = (
    [int("".join(digits)) for digits in product(*choice)]
    for choice in (("459", "0459", "0459"), ("45", "45", "059", "45"), ("5", "45", "45", "059", "45"))
)


def texts_of(name):
    """All sums of some numbers, by lengths, with many nines; hints begin elsewhere in every one."""
    numbers = [(FEW, FEW), (FEW, [4, 5, 9]), ([10, 45, 49, 54, 59, 90, 99], FEW)]
    for first, second in numbers if "threes" not in name else [(FIVE, FIVE), (FIVE, FOUR), (FEW, FOUR)]:
        sums = [(a, b) for a in first for b in second]
        yield [written(name, a, b, i % DRAWS if name == "index hints" else 0) for i, (a, b) in enumerate(sums)]


def layouts(texts):
    """By place of the answer, texts whose tokens stand for the same up to there: which column comes is known. Of the
    first place that is not taken as known, since the sum may have one digit more."""
    for place in range(texts[0].asked, max(len(text.tokens) for text in texts)):
        groups = defaultdict(list)
        for text in texts:
            if place < len(text.tokens):
                groups[text.holds[: place + (place > text.asked)]].append(text)
        for group in groups.values():
            yield place, group


@pytest.mark.parametrize("name", WAYS)
def test_what_a_token_is_read_from_decides_it(name):
    """Whatever all other tokens are: of all texts that agree there, none goes on in another way."""
    rng = np.random.default_rng(0)
    asked, compared = 60 if "threes" in name else 12, 0
    for texts in texts_of(name):
        for place, group in layouts(texts):
            tokens = np.array([text.tokens[: place + 1] for text in group])
            for i in rng.choice(len(group), min(asked, len(group)), replace=False):
                sources = list(group[i].sources[place])
                same = (tokens[:, sources] == tokens[i, sources]).all(1)
                assert len(set(tokens[same, place])) == 1, (group[i].tokens, place, sources)
                compared += int(same.sum()) - 1
    assert compared > 300


@pytest.mark.parametrize("name", ["plain", "answer reversed", "all reversed"])
def test_without_one_of_them_it_could_be_another(name):
    """Of nearly all: the partner of a 0 in the units carries nothing, and a number does not begin with 0."""
    rng = np.random.default_rng(0)
    texts = [written(name, a, b) for a in range(10, 100) for b in range(10, 100)]
    needed = []
    for place, group in layouts(texts):
        tokens = np.array([text.tokens[: place + 1] for text in group])
        for i in rng.choice(len(group), min(60, len(group)), replace=False):
            if group[i].holds[place] == (("sum", 2),) and place > group[i].asked:
                continue  # that there is such a digit says that it is 1
            for left_out in group[i].sources[place]:
                others = [source for source in group[i].sources[place] if source != left_out]
                same = (tokens[:, others] == tokens[i, others]).all(1)
                needed.append(len(set(tokens[same, place])) > 1)
    assert np.mean(needed) > 0.9 and len(needed) > 200, np.mean(needed)


def test_carries_are_looked_for_where_they_start():
    assert written("plain", 45_678, 54_321).sources[12] == (0, 1, 2, 3, 4, 6, 7, 8, 9, 10)  # nines all the way
    assert written("plain", 45_678, 54_221).sources[12] == (0, 1, 2, 6, 7, 8)  # 6 + 2 decides
    assert written("answer reversed", 45_678, 54_321).sources[14] == (2, 3, 8, 9, 13)  # the 9 before tells
    assert written("answer reversed", 45_678, 54_221).sources[15] == (1, 2, 7, 8)
    assert written("threes from the left", 999_999, 1).sources[5:] == ((0, 1, 3), (0, 1, 3), (1, 3))
    assert written("threes from the right", 999_999, 1).sources[5:] == ((0, 1, 3), (0, 1, 3), (1, 3))


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("zero-padded", Line()),
        ("answer reversed", Line(reversed_answer=True)),
        ("all reversed", Line(reversed_answer=True, reversed_numbers=True)),
    ],
)
@pytest.mark.parametrize("digits", [1, 2, 3, 8, 12])
def test_the_digits_of_a_column_are_as_far_as_chapter_65_has_them(name, line, digits):
    text = written(name, 10**digits - 1, 10**digits - 2)
    where = {names[0]: place for place, names in enumerate(text.holds) if names}
    for column, expected in enumerate(line.distances((digits, digits))):
        place = where["sum", column]
        own = [place - 1 - where[kind, column] for kind in "ab"]
        assert sorted(own) == expected.tolist()
        assert {where[kind, column] for kind in "ab"} <= set(text.sources[place])
        if name != "all reversed":  # where the column below stands farther away
            assert text.distance(place) == max(own)


def test_the_summary_is_counted_from_the_tokens():
    for (a, b), name in product([*HARD, *pairs(20, seed=2)], WAYS):
        text = written(name, a, b)
        far = [place - 1 - min(found) for place, found in enumerate(text.sources) if found]
        of = text.summary()
        assert (of["tokens"], of["longest"], of["sum"], of["number"]) == (
            len(text.tokens),
            max(far),
            sum(far),
            len(far),
        )
        assert of["most"] == max(len(found) for found in text.sources)
        assert abs(float(mean(of)) - np.mean(far)) <= 0.05 + 1e-9
        assert all(not found or max(found) < place for place, found in enumerate(text.sources))
    assert mean({"sum": 41, "number": 4}) == "10.3" and mean({"sum": 39, "number": 4}) == "9.8"


def test_draws_differ():
    assert len({one["spaces"] for one in drawn()}) == DRAWS
    assert len({tuple(one["hints"]) for one in drawn()}) == DRAWS


@pytest.mark.parametrize("wrong", [{"a": -1}, {"b": 10**DIGITS}, {"a": "1"}, {"shown": ("roman",)}, {"shown": ()}])
def test_only_what_the_page_can_show_is_taken(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} = "):
        FormatExplorer(**{"a": 1, "b": 2} | wrong)


def test_the_script_stays_below_the_limit_of_a_first_load():
    assert START.page_bytes() == len(whole_source(MODULE.name).encode()) < FIRST_LOAD
    assert len(START._repr_html_()) < FIRST_LOAD


# --- in a browser ---


folder, address, tab_with_fields = fixtures_of(START, "formats.html", MODULE)


@pytest.fixture
def shown(page):
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto("notebooks/formats.html")
    page.get_by_role("textbox").first.wait_for()
    yield page
    assert page.faults == []


def test_the_checks_of_the_site_accept_it(folder):
    assert check_site(folder) == []


WRITE = """async ({ pairs, draws, ways, worded }) => {
  const m = await import('/_static/format-explorer.mjs');
  return JSON.stringify(pairs.map(([a, b], i) => ways.map(way => {
    const text = m.written(way, a, b, draws[i % draws.length]);
    const of = m.summary(text);
    return {
      tokens: text.tokens, asked: text.asked, sources: text.sources, of, mean: m.mean(of),
      far: text.tokens.map((_, place) => m.distance(text, place) ?? null),
      words: text.tokens.map((_, place) => place < text.asked || !worded ? '' : m.describe(text, place)),
    };
  })));  // playwright takes thrice as long over the objects themselves
}"""


@pytest.mark.browser
def test_the_browser_writes_and_measures_every_token_as_python_does(shown):
    """1,300 pairs of numbers in all formats, with all draws; the first of them also in words."""
    golden = [*HARD, *pairs(1300 - len(HARD), seed=3)]
    assert shown.evaluate("async () => Object.keys((await import('/_static/format-explorer.mjs')).WAYS)") == list(
        WAYS
    )
    for begin in range(0, len(golden), 8 * 13):
        chunk = golden[begin : begin + 8 * 13]
        given = {"pairs": [[str(a), str(b)] for a, b in chunk], "draws": drawn(), "ways": list(WAYS)}
        given["worded"] = begin == 0
        for i, ((a, b), found) in enumerate(zip(chunk, json.loads(shown.evaluate(WRITE, given)), strict=True)):
            for name, page in zip(WAYS, found, strict=True):
                text = written(name, a, b, i % DRAWS)
                places = range(len(text.tokens))
                of = text.summary()
                expected = {
                    "tokens": list(text.tokens), "asked": text.asked, "sources": [*map(list, text.sources)], "of": of,
                    "mean": mean(of), "far": [text.distance(place) for place in places],
                    "words": [text.describe(place) if place >= text.asked and not begin else "" for place in places],
                }  # fmt: skip
                assert page == expected, (name, a, b)


def row_of(page, name):
    return page.locator(f"tr[data-way='{name}']").inner_text().split()


@pytest.mark.browser
def test_a_reader_types_two_numbers_and_sees_the_formats(shown):
    assert told(shown, "#told", "128 + 367") == "128 + 367 = 495"
    assert [shown.locator(".name").nth(i).inner_text() for i in range(len(START.shown))] == list(START.shown)
    shown.get_by_role("textbox", name="First number").fill("999 999")
    shown.get_by_role("textbox", name="Second number").fill("0001")
    assert told(shown, "#told", "999999") == "999999 + 1 = 1000000"
    for name in WAYS:
        of = written(name, 999_999, 1).summary()
        assert row_of(shown, name)[-4:] == [str(of["most"]), str(of["tokens"]), str(of["longest"]), mean(of)]
    for name in WAYS:
        shown.get_by_role("checkbox", name=name, exact=True).check()
    for name in WAYS:
        text = written(name, 999_999, 1)
        boxes = shown.locator(f".format[data-way='{name}'] [data-place]")
        assert tuple(boxes.locator("b").all_inner_texts()) == text.tokens


@pytest.mark.browser
def test_other_spaces_and_hints_come_round_again(shown):
    shown.get_by_role("checkbox", name="random spaces").check()
    seen = []
    for draw in [*range(DRAWS), 0]:
        found = shown.locator(".format[data-way='random spaces'] b").all_inner_texts()
        assert tuple(found) == written("random spaces", 128, 367, draw).tokens
        seen.append("".join(found))
        shown.get_by_role("button", name="Other spaces and hints").click()
    assert len(set(seen)) > 1


def marked(page, name):
    """What is marked: {place: number beneath}, and the place itself."""
    boxes = page.locator(f".format[data-way='{name}'] .seen")
    seen = {
        int(box.get_attribute("data-place")): int(box.locator("small").get_attribute("data-back"))
        for box in boxes.all()
    }
    return seen, int(page.locator(f".format[data-way='{name}'] .now").get_attribute("data-place"))


@pytest.mark.browser
def test_the_arrow_keys_and_the_pointer_show_what_a_token_is_read_from(shown):
    text = written("plain", 128, 367)
    assert marked(shown, "plain") == ({0: 7, 1: 6, 4: 3, 5: 2}, 8)
    answer = shown.locator(".format[data-way='plain'] button")
    answer.first.focus()
    for key, place in (
        ("ArrowRight", 9),
        ("ArrowRight", 10),
        ("ArrowRight", 10),
        ("Home", 8),
        ("End", 10),
        ("ArrowLeft", 9),
    ):
        shown.keyboard.press(key)
        seen, now = marked(shown, "plain")
        assert now == place and tuple(seen) == text.sources[place]
        assert max(seen.values()) == text.distance(place)
        assert shown.locator(".format[data-way='plain'] .why").inner_text() == text.describe(place)
        assert shown.evaluate("document.activeElement.shadowRoot.activeElement.ariaLabel") == text.describe(place)
    other = written("simplified scratchpad", 128, 367)
    shown.get_by_role("button", name=other.describe(12)).hover()
    seen, now = marked(shown, "simplified scratchpad")
    assert now == 12 and tuple(seen) == other.sources[12]
    assert shown.locator(".now").count() == 1  # the first format is as it was
    beneath = "all => all.map(small => small.dataset.back ?? '')"
    assert shown.locator(".format[data-way='plain'] button small").evaluate_all(beneath) == ["7", "7", "7"]
    assert "".join(shown.locator(".format[data-way='plain'] span small").evaluate_all(beneath)) == ""


@pytest.mark.browser
def test_the_tab_key_stops_once_in_every_format(shown):
    order = []
    for _ in range(3 + len(WAYS) + len(START.shown)):
        shown.keyboard.press("Tab")
        order.append(
            shown.evaluate(
                """() => {
                  const at = document.activeElement.shadowRoot.activeElement;
                  return at.closest('.format')?.dataset.way ?? at.id;
                }"""
            )
        )
    ticks = [name.replace(" ", "-") for name in WAYS]
    assert order == ["a", "b", *ticks, "again", *START.shown]


@pytest.mark.browser
def test_what_is_no_number_is_refused_and_hides_the_old_texts(shown):
    field = shown.get_by_role("textbox", name="Second number")
    for wrong in ("", "-1", "1.5", "x", "9" * (DIGITS + 1)):
        field.fill(wrong)
        assert told(shown, "#told", f"Two whole numbers of at most {DIGITS} digits are taken."), wrong
        assert field.get_attribute("aria-invalid") == "true", wrong
        assert not shown.locator("table").first.is_visible() and not shown.locator(".tokens").first.is_visible()
    field.fill("9" * DIGITS)
    assert told(shown, "#told", "128 + 9") and field.get_attribute("aria-invalid") == "false"


@pytest.mark.browser
def test_it_fits_a_phone_and_gives_way_to_a_table_on_paper(shown):
    shown.set_viewport_size(PHONE)
    for label in ("First number,", "Second number,"):
        shown.get_by_role("textbox", name=label).fill("9" * DIGITS)
    for name in WAYS:
        shown.get_by_role("checkbox", name=name, exact=True).check()
    assert shown.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    inner = shown.locator("format-explorer").evaluate(
        "e => Math.max(...[...e.shadowRoot.querySelectorAll('*')].map(p => p.getBoundingClientRect().right))"
    )
    assert inner <= PHONE["width"]
    shown.emulate_media(media="print")
    assert shown.get_by_text("An explorer of 11 formats").is_visible()
    assert shown.get_by_role("cell", name="1 2 8 + 3 6 7 = 4 9 5", exact=True).first.is_visible()
    assert not shown.get_by_role("textbox").first.is_visible()


@pytest.mark.browser
def test_without_scripts_a_table_of_all_formats_stands_in_its_place(chromium, address):
    context = chromium.new_context(java_script_enabled=False, base_url=address)
    page = context.new_page()
    page.goto("notebooks/formats.html")
    for name in WAYS:
        text = written(name, 128, 367)
        of = text.summary()
        cells = (
            page.get_by_role("row")
            .filter(has=page.get_by_role("rowheader", name=name, exact=True))
            .get_by_role("cell")
        )
        expected = [" ".join(text.tokens), str(of["most"]), str(of["tokens"]), str(of["longest"]), mean(of)]
        assert cells.all_inner_texts() == expected
    context.close()
