"""The small adder in a page: packed it is still the network, and in the browser it computes what torch does."""

from pathlib import Path

import numpy as np
import pytest
import torch
from browsing import PHONE, SEND, fixtures_of, floats, told

from arithlib import checkpoints
from arithlib.models.positions import addresses
from arithlib.tasks.operands import OperandTask
from arithlib.tokenizer import ALPHABET
from bookkit.build.checks import check_site
from bookkit.web_components import whole_source
from chapters.ch32_abacus_adder import (
    DIGITS,
    LOOPS,
    NETWORK,
    OFFSETS,
    SHIFT,
    AbacusAdder,
    addresses_of,
    describe,
    logits_of,
    page_adder,
    page_grid,
    write,
)  # fmt: skip

MODULE = Path(__file__).resolve().parents[2] / "book" / "_static" / "abacus-adder.mjs"
START = AbacusAdder(987_654, 123_456)
FIRST_LOAD = 300_000  # bytes of script and weights
# Offset, loops and shift; rows beyond training, fewer and more loops, and addresses that do not fit, among them.
SETTINGS = [(6, 2, 0), (0, 2, 0), (15, 2, 0), (OFFSETS, 2, 0), (6, 1, 0), (6, LOOPS, 0), (12, 2, 1), (0, 3, -SHIFT)]


def sums(count, seed=0):
    """(count, T) tokens of sums of 1 to DIGITS digits."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, DIGITS + 1, (count, 2), generator=generator)
    return OperandTask().problems(lengths, generator).tokens


# --- what is packed ---


@torch.no_grad()
def test_what_packing_leaves_out_hardly_moves_a_logit():
    whole, packed, tokens = checkpoints.load(NETWORK).model, page_adder(), sums(200)
    for offset, loops, shift in SETTINGS:
        rows = addresses_of(tokens, offset, shift)
        gap = logits_of(packed, tokens, rows, loops) - logits_of(whole, tokens, rows, loops)
        assert gap.abs().max() < 0.05, (offset, loops, shift)


@torch.no_grad()
def test_without_a_shift_it_is_the_network_of_the_library():
    tokens = sums(50)
    model = page_adder()
    assert torch.equal(addresses_of(tokens, 7), addresses(tokens, torch.tensor([[7]])))
    expected = model(tokens, torch.tensor([[7]]), 2)
    torch.testing.assert_close(logits_of(model, tokens, addresses_of(tokens, 7), 2), expected)


def test_a_shift_moves_the_second_number_alone():
    tokens = torch.tensor([[ALPHABET.index(sign) for sign in "321+45=663$"]])
    assert addresses_of(tokens, 5, 2).tolist() == [[6, 7, 8, 0, 8, 9, 0, 6, 7, 8, 0]]
    assert addresses_of(tokens, 0, -3).tolist() == [[1, 2, 3, 0, 1, 1, 0, 1, 2, 3, 0]]


def test_it_writes_sums_and_says_so():
    right = str(987_654 + 123_456)
    written, chances = write("987654", "123456", 6, 2)
    assert written[::-1] == right and len(chances) == len(right) + 1 and min(chances) > 0.5
    assert describe("987654", "123456", 6, 2).endswith(f"writes {right}. That is right.")
    assert "That is wrong: it is 1111110." in describe("987654", "123456", 6, 1)


def test_the_map_is_right_within_the_lengths_of_training():
    grid, trained = page_grid(), checkpoints.read(NETWORK).experiment.task.max_digits
    assert grid.shape == (DIGITS, DIGITS)
    assert grid[:trained, :trained].mean() > 0.95


@pytest.mark.parametrize(
    "wrong", [{"a": -1}, {"b": 10**DIGITS}, {"offset": OFFSETS + 1}, {"loops": 0}, {"shift": "1"}]
)
def test_only_what_the_page_can_show_is_taken(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} = .*an integer from"):
        AbacusAdder(**{"a": 1, "b": 2} | wrong)


def test_weights_and_script_stay_below_the_limit_of_a_first_load():
    given = START._repr_html_().partition("<script")[0]
    assert START.page_bytes() < FIRST_LOAD
    assert (
        0 < len(given) + len(whole_source(MODULE.name)) - START.page_bytes() < 3000
    )  # the rest is the map, markup and words


# --- in a browser ---


folder, address, shown = fixtures_of(START, "adder.html", MODULE)


def compute(page, script, given=None):
    return page.evaluate(
        f"""async given => {{
          const m = await import('/_static/abacus-adder.mjs');
          const adder = document.querySelector('abacus-adder');
          const weights = Uint8Array.from(atob(adder.getAttribute('weights')), letter => letter.charCodeAt(0));
          const tables = m.read(weights);
          const run = m.network(tables, Number(adder.getAttribute('heads')));
          {SEND}
          {script}
        }}""",
        given,
    )


def test_the_checks_of_the_site_accept_it(folder):
    assert check_site(folder) == []


@pytest.mark.browser
@torch.no_grad()
def test_the_logits_of_a_thousand_sums_are_those_of_torch(shown):
    """125 sums in each of eight settings, every token of them: some 5,000 tokens a setting."""
    packed = page_adder()
    for setting, (offset, loops, shift) in enumerate(SETTINGS):
        tokens = sums(125, setting)
        rows = addresses_of(tokens, offset, shift)
        sent = compute(
            shown,
            """const [texts, rows, loops] = given;
               const all = new Float32Array(texts.length * texts[0].length * 15);
               texts.forEach((text, i) => {
                 const next = run(loops);
                 text.forEach((token, t) => all.set(next(token, rows[i][t]), 15 * (i * text.length + t)));
               });
               return send(all)""",
            [tokens.tolist(), rows.tolist(), loops],
        )
        expected = logits_of(packed, tokens, rows, loops)
        found = floats(sent, *expected.shape)
        assert (found - expected).abs().max() < 1e-4, SETTINGS[setting]
        best, second = expected.topk(2).values.unbind(-1)
        assert ((found.argmax(-1) == expected.argmax(-1)) | (best - second < 2e-4)).all(), SETTINGS[setting]


@pytest.mark.browser
def test_what_it_writes_and_how_sure_it_is_is_what_torch_says(shown):
    generator = np.random.default_rng(3)
    for offset, loops, shift in SETTINGS:
        for _ in range(3):
            a, b = (str(generator.integers(10 ** generator.integers(1, DIGITS))) for _ in range(2))
            text, chances = write(a, b, offset, loops, shift)
            found = compute(shown, "return m.write(run, ...given)", [a, b, offset, loops, shift])
            assert found["text"] == text, (a, b, offset, loops, shift)
            np.testing.assert_allclose(found["chance"], chances, atol=1e-4)
            assert compute(shown, "return m.describe(...given)", [a, b, text]) == describe(a, b, offset, loops, shift)


@pytest.mark.browser
def test_a_reader_moves_offset_addresses_and_loops(shown):
    assert told(shown, "#told", "987654 + 123456") == describe("987654", "123456", 6, 2)
    shown.get_by_label("Loops:").press("Home")
    assert told(shown, "#told", "987654") == describe("987654", "123456", 6, 1)
    shown.get_by_label("Loops:").press("ArrowRight")
    shown.get_by_label("moved by:").press("End")
    assert told(shown, "#told", "987654") == describe("987654", "123456", 6, 2, SHIFT)
    shown.get_by_label("moved by:").fill("0")
    shown.get_by_label("Offset of all").press("End")
    assert told(shown, "#told", "987654") == describe("987654", "123456", OFFSETS, 2)
    assert shown.locator("td.beyond").count() == 2 * (OFFSETS + 6 - 25)
    shown.get_by_label("First number").fill("007 5")
    assert told(shown, "#told", "75 + 123456") == describe("75", "123456", OFFSETS, 2)
    assert "in another setting" in told(shown, "#where", "Right sums")


@pytest.mark.browser
def test_a_typed_sum_is_marked_where_it_breaks_as_the_offset_moves(shown):
    """Right up to the largest offset of training, wrong from the next one on, in the columns that torch gets wrong."""
    largest = checkpoints.read(NETWORK).experiment.offsets.k - 1
    a, b = "271828", "314159"
    for label, number in (("First number", a), ("Second number", b)):
        shown.get_by_label(label).fill(number)
    right, breaks = str(int(a) + int(b)), {}
    for offset in (0, largest, largest + 1, OFFSETS):
        shown.get_by_label("Offset of all").fill(str(offset))
        assert told(shown, "#told", f"{a} + {b}") == describe(a, b, offset, 2)
        says = write(a, b, offset, 2)[0][::-1]
        width = max(len(right), len(says))
        wrong = [one != other for one, other in zip(says.rjust(width), right.rjust(width), strict=True)]
        marks = shown.locator("td.good, td.bad").evaluate_all("cells => cells.map(cell => cell.className)")
        assert marks == ["bad" if one else "good" for one in wrong], offset
        breaks[offset] = sum(wrong)
    assert breaks[0] == breaks[largest] == 0 < breaks[largest + 1] < breaks[OFFSETS], breaks


@pytest.mark.browser
def test_the_map_shows_these_numbers_only_in_the_setting_that_it_is_of(shown):
    at_its_setting = {"Offset of all": "6", "moved by:": "0", "Loops:": "2"}
    for label, another in {"Offset of all": "7", "moved by:": "1", "Loops:": "3"}.items():
        assert "6 and 6 digits" in told(shown, "#where", "Right sums")
        assert shown.locator("circle.here").count() == 1 and not shown.locator("svg.elsewhere").count()
        shown.get_by_label(label).fill(another)
        assert "in another setting" in told(shown, "#where", "Right sums")
        assert shown.locator("circle.here").count() == 0 and shown.locator("svg.elsewhere").count() == 1
        shown.get_by_label(label).fill(at_its_setting[label])
    shown.get_by_label("First number").fill("007 5")
    assert "2 and 6 digits" in told(shown, "#where", "Right sums")


@pytest.mark.browser
def test_what_is_no_number_is_refused_and_hides_the_old_sum(shown):
    field = shown.get_by_label("Second number,")
    for wrong in ("", "-1", "1.5", "x", "9" * (DIGITS + 1)):
        field.fill(wrong)
        assert told(shown, "#told", "Two whole numbers of at most 14 digits are taken."), wrong
        assert field.get_attribute("aria-invalid") == "true", wrong
        assert not shown.locator("table").is_visible()
    field.fill("9" * DIGITS)
    assert told(shown, "#told", "987654 + 9") and field.get_attribute("aria-invalid") == "false"


@pytest.mark.browser
def test_it_fits_a_phone_and_gives_way_to_words_on_paper(shown):
    shown.set_viewport_size(PHONE)
    for label in ("First number,", "Second number,"):
        shown.get_by_label(label).fill("9" * DIGITS)
    assert shown.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    shown.emulate_media(media="print")
    assert shown.get_by_text("A small adder with Abacus addresses, for a screen").is_visible()
    assert not shown.get_by_role("slider").first.is_visible()
