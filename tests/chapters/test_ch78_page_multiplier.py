"""The multiplier in a page: its weights are the certified ones, and in the browser it computes what torch does."""

import base64
import re
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from browsing import PHONE, SEND, fixtures_of, floats, told

from arithlib import checkpoints
from arithlib.certify import certificates, multiplication
from arithlib.contexts import context_logits
from arithlib.tokenizer import ALPHABET
from bookkit.build.checks import check_site
from bookkit.web_components import whole_source
from chapters.ch78_long_multiplication import continued
from chapters.ch78_page_multiplier import DIGITS, NETWORK, PageMultiplier, describe

MODULE = Path(__file__).resolve().parents[2] / "book" / "_static" / "long-multiplication.mjs"
START = PageMultiplier(512, 439)
FIRST_LOAD = 300_000  # bytes of script and weights


def test_the_page_is_given_the_weights_that_are_certified():
    given = re.search('weights="([^"]*)"', START._repr_html_())[1]
    weights = safetensors.torch.load(base64.b64decode(given))
    model = checkpoints.load(NETWORK).model
    assert certificates.covering(NETWORK) is not None
    assert weights.keys() == model.state_dict().keys()
    assert all(torch.equal(weights[name], weight) for name, weight in model.state_dict().items())


def test_weights_and_script_stay_below_the_limit_of_a_first_load():
    given = START._repr_html_().partition("<script")[0]
    assert START.page_bytes() < FIRST_LOAD
    assert 0 < len(given) + len(whole_source(MODULE.name)) - START.page_bytes() < 1000  # the rest is markup and words


@pytest.mark.parametrize("wrong", [{"a": -1}, {"b": 10**DIGITS}, {"step": "1"}])
def test_only_what_the_page_can_show_is_taken(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} = .*an integer from"):
        PageMultiplier(**{"a": 1, "b": 2} | wrong)


# --- in a browser ---


folder, address, shown = fixtures_of(START, "page.html", MODULE)


def compute(page, script, given=None):
    return page.evaluate(
        f"""async given => {{
          const m = await import('/_static/long-multiplication.mjs');
          const {{ tensors }} = await import('/_static/tensors.mjs');
          const shown = document.querySelector('long-multiplication');
          const weights = Uint8Array.from(atob(shown.getAttribute('weights')), letter => letter.charCodeAt(0));
          const run = m.network(tensors(weights), Number(shown.getAttribute('heads')));
          {SEND}
          {script}
        }}""",
        given,
    )


def test_the_checks_of_the_site_accept_it(folder):
    assert check_site(folder) == []


@pytest.mark.browser
@torch.no_grad()
def test_the_logits_in_every_context_are_those_of_torch(shown):
    """All 12,640 that can occur, in double precision."""
    keys = torch.from_numpy(multiplication.reachable()[0])
    model = checkpoints.read(NETWORK).model.double()
    expected = context_logits(model, keys).float()
    sent = compute(shown, "return send(Float32Array.from(given.flatMap(keys => [...run(keys)])))", keys.tolist())
    assert (floats(sent, *expected.shape) - expected).abs().max() < 1e-4


@pytest.mark.browser
def test_the_pages_it_writes_are_those_of_the_library(shown):
    trained, generator = checkpoints.load(NETWORK), np.random.default_rng(0)
    for _ in range(20):
        a, b = (int(generator.integers(10 ** int(generator.integers(1, DIGITS + 1)))) for _ in range(2))
        question = trained.experiment.task.ask(a, b)
        expected = continued(trained.model, question, 10_000)[len(question) :]
        found = compute(shown, "return m.write(run, ...given)", [str(a), str(b)])
        assert "".join(ALPHABET[step["token"]] for step in found) == expected
        script = "return m.describe(...given.slice(0, 2), m.write(run, ...given.slice(0, 2)))"
        assert compute(shown, script, [str(a), str(b)]) == describe(a, b)


@pytest.mark.browser
def test_a_network_that_loses_its_way_ends_and_says_so(shown):
    """One that always writes the same token: digits without end, or a sign that no page has."""
    for token, length in ((7, 2 * (2 * 4 + 2) + 1), (ALPHABET.index("+"), 1)):
        always = f"const always = () => Array.from({{ length: 15 }}, (_, i) => Number(i === {token}))"
        said = compute(
            shown, f"{always}; const all = m.write(always, '12', '34'); return m.describe('12', '34', all)"
        )
        assert said == f"12 × 34: the network writes no end, in {length} tokens. That is wrong: it is 408."


@pytest.mark.browser
def test_a_reader_steps_through_the_page(shown):
    assert told(shown, "#told", "512 × 439") == describe(512, 439)
    steps = shown.get_by_role("slider")
    assert shown.locator("#step-value").inner_text() == "13 of 31"
    assert shown.locator("td.now").count() == 1 and shown.locator("td.seen").count() == 3
    why = shown.locator("#why")
    steps.press("Home")
    assert why.inner_text() == "Nothing yet." and shown.locator("td.now").count() == 0
    steps.press("ArrowRight")
    assert why.inner_text().startswith("It sees first factor 2, second factor 9, itself =, and writes 8 (a digit)")
    steps.press("ArrowRight")
    assert "before =, itself 8, and writes 1 (a carry)" in why.inner_text()
    steps.press("End")
    assert "and writes $ (the end)" in why.inner_text()
    shown.get_by_label("Second factor").fill("0 07")
    assert told(shown, "#told", "512 × 7") == describe(512, 7)
    assert shown.locator("#step-value").inner_text() == "9 of 9"


@pytest.mark.browser
def test_what_is_no_number_is_refused_and_hides_the_old_page(shown):
    field = shown.get_by_label("Second factor,")
    for wrong in ("", "-1", "1.5", "x", "9" * (DIGITS + 1)):
        field.fill(wrong)
        assert told(shown, "#told", f"Two whole numbers of at most {DIGITS} digits are taken."), wrong
        assert field.get_attribute("aria-invalid") == "true", wrong
        assert not shown.locator("table").is_visible()
    field.fill("9" * DIGITS)
    assert told(shown, "#told", "512 × 9") and field.get_attribute("aria-invalid") == "false"


@pytest.mark.browser
def test_it_fits_a_phone_and_gives_way_to_words_on_paper(shown):
    shown.set_viewport_size(PHONE)
    for label in ("First factor,", "Second factor,"):
        shown.get_by_label(label).fill("9" * DIGITS)
    assert shown.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    shown.emulate_media(media="print")
    assert shown.get_by_text("A network that multiplies on a page, for a screen").is_visible()
    assert not shown.get_by_role("slider").first.is_visible()
