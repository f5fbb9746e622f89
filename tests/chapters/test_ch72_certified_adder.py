"""The certified adder: in the browser it computes what the library does, and proves what the checker proves."""

import base64
import json
import random
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pytest
import torch
from browsing import PHONE, fixtures_of, in_the_book

from arithlib import checkpoints
from arithlib.certify import addition, certificates, checker
from arithlib.streaming import WINDOW_DISTANCE, WINDOW_NUMBER, context_logits
from arithlib.tokenizer import ALPHABET
from bookkit.build.checks import check_site
from bookkit.web_components import whole_source
from chapters.ch72_certified_adder import NETWORK, CertifiedAdder, describe

MODULE = Path(__file__).resolve().parents[2] / "book" / "_static" / "certified-adder.mjs"
START = CertifiedAdder(99_995, 17)
FIRST_LOAD = 300_000  # bytes of script and weights
READ = """
  const m = await import('/_static/certified-adder.mjs');
  const element = document.querySelector('certified-adder');
  const bytes = Uint8Array.from(atob(element.getAttribute('weights')), letter => letter.charCodeAt(0));
  const certificate = JSON.parse(element.getAttribute('certificate'));
  const weights = m.read(bytes);
"""


@pytest.mark.parametrize("wrong", [(-1, 1), (1, -1), (1.5, 1), ("1", 1)])
def test_only_whole_numbers_of_0_or_more_are_taken(wrong):
    with pytest.raises(ValueError, match="adds integers of 0 or more"):
        CertifiedAdder(*wrong)


def test_words_tell_a_wrong_sum_from_a_right_one(monkeypatch):
    assert "= 100012. That is right. It met 6 different situations (what it sees" in describe(99_995, 17)
    monkeypatch.setattr("chapters.ch72_certified_adder.add", lambda *_: 100_022)
    assert "= 100022. That is wrong: the sum is 100012." in describe(99_995, 17)


def test_weights_and_script_stay_below_the_limit_of_a_first_load():
    given = in_the_book(START).partition("<script")[0]  # with its weights, its certificate and its words
    weights = checkpoints.find(NETWORK).joinpath(f"{NETWORK}.safetensors").read_bytes()
    assert base64.b64encode(weights).decode() in given
    assert len(given.encode()) + len(whole_source(MODULE.name).encode()) < FIRST_LOAD


# --- in a browser ---


folder, address, shown = fixtures_of(START, "adder.html", MODULE)


def compute(page, script, given=None):
    return page.evaluate(f"async given => {{ {READ} {script} }}", given)


def said(page, place, beginning):
    """What is told at this place, once it begins so."""
    found = page.locator(f"certified-adder #{place}")
    found.filter(has_text=beginning).wait_for()
    return found.inner_text()


@pytest.fixture(scope="module")
def situations():
    """(C, 5) tokens or ABSENT, and (C,) the right ones, as the stand-alone checker lists them."""
    found = sorted(checker.contexts().items())
    seen = np.array([[ALPHABET.find(token) for token in context] for context, _ in found])
    return seen, np.array([ALPHABET.index(token) for _, token in found])


def test_the_checks_of_the_site_accept_it(folder):
    assert check_site(folder) == []


@pytest.mark.browser
def test_every_situation_is_listed_with_a_sum_that_comes_to_it(shown):
    listed = compute(
        shown,
        """return m.situations().map(one => {
             const { a, b, i } = m.witness(one);
             return [m.text(one.context), m.ALPHABET[one.right], a, b, i];
           })""",
    )
    assert {context: right for context, right, *_ in listed} == checker.contexts()
    for context, right, a, b, i in random.Random(0).sample(listed, 500):
        lines = [f".{a[::-1]}", f"+{b[::-1]}", f"={str(int(a) + int(b))[::-1]}$"]
        before, after = list(zip_longest(*lines, fillvalue="."))[i : i + 2]
        assert ("".join((*before, *after[:2])), after[2]) == (context, right), (a, b)


@pytest.mark.browser
def test_the_logits_of_a_situation_are_those_of_torch(shown, situations):
    seen, right = (part[::5] for part in situations)  # to carry all into the page and back takes longest
    found = compute(
        shown,
        """const run = m.network(weights);
           return given.map(context => Array.from(run(context).logits))""",
        seen.tolist(),
    )
    model, keys, found = checkpoints.load(NETWORK).model, torch.tensor(seen), np.array(found)
    with torch.no_grad():
        logits = context_logits(model, keys[:, 2], keys, WINDOW_NUMBER, WINDOW_DISTANCE).numpy()
    # Logits reach 538, where neighbours in float32 are 6e-5 apart: not all of two programs agree to 1e-4.
    assert np.abs(found - logits).max() < 1e-6 * np.abs(logits).max()
    assert (found.argmax(1) == right).all()
    # The certificate is about all that a float32 program may compute: the page is such a program.
    covered = addition.logits(model, seen)
    assert (np.abs(found - covered.mid) <= covered.rad).all()


@pytest.mark.browser
def test_the_bounds_are_those_of_the_checker(shown, situations):
    seen, right = (part[::23] for part in situations)
    found = compute(
        shown,
        """return [m.EXACT, m.FLOAT32].map(arithmetic => {
             const bound = m.bounds(weights, arithmetic);
             return given.map(([context, right]) => bound(context, right));
           })""",
        list(zip(seen.tolist(), right.tolist(), strict=True)),
    )
    w, _ = checker.read(checkpoints.find(NETWORK) / f"{NETWORK}.safetensors")
    for leads, arithmetic in zip(found, (checker.EXACT, checker.FLOAT32), strict=True):
        assert np.allclose(leads, checker.leads(w, seen, right, *arithmetic), rtol=1e-9, atol=1e-12)


@pytest.mark.browser
def test_it_adds_numbers_of_any_length(shown):
    draw = random.Random(1)
    pairs = [[str(draw.randrange(10 ** draw.randint(1, 60))) for _ in range(2)] for _ in range(300)]
    pairs += [["0", "0"], ["9" * 2000, "1"], ["1", "9" * 2000], ["00012", " 1,000 "]]
    sums = compute(
        shown,
        """const run = m.network(weights);
           return given.map(([a, b]) => {
             let last;
             for (last of m.addition(run, m.digits(a), m.digits(b), 100));
             return [m.shown(last.written, 5000), last.stopped, m.shown(m.sum(m.digits(a), m.digits(b)), 5000)];
           })""",
        pairs,
    )
    numbers = [[int(number.replace(",", "")) for number in pair] for pair in pairs]
    assert sums == [[str(a + b), True, str(a + b)] for a, b in numbers]
    assert compute(shown, "return given.map(m.digits)", ["", "-5", "1.5", "1e9", "x"]) == [None] * 5


def forged(what):
    weights = bytearray((checkpoints.find(NETWORK) / f"{NETWORK}.safetensors").read_bytes())
    certificate = certificates.covering(NETWORK)
    if what == "checksum":
        weights[-4] ^= 1
    elif what == "contexts":
        certificate["contexts"]["count"] -= 1
    elif what in ("margin", "margin_float32"):
        certificate[what] += 0.5
    elif what == "margin_at":
        certificate[what] = "....."
    return [base64.b64encode(weights).decode(), json.dumps(certificate)]


@pytest.mark.browser
def test_what_the_checker_rejects_is_rejected(shown):
    answers = {
        "checksum": "the certificate is about other weights",
        "contexts": "these are not the contexts that occur",
        "margin": "margin is 8.39995, not as stated",
        "margin_float32": "margin_float32 is 7.67762, not as stated",
        "margin_at": "the smallest margin is at 80990, not where the certificate says",
        "": "",  # what nobody changed is accepted
    }
    found = compute(
        shown,
        """const answer = async ([text, certificate]) => {
             const forged = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
             try { for await (const _ of m.check(forged, JSON.parse(certificate))); return '' }
             catch (problem) { if (problem instanceof m.Rejected) return problem.message; throw problem }
           };
           const answers = [];
           for (const one of given) answers.push(await answer(one));
           return answers""",
        [*map(forged, answers)],
    )
    assert dict(zip(answers, found, strict=True)) == answers


@pytest.mark.browser
def test_a_reader_adds_looks_and_checks(shown):
    assert said(shown, "seen", "The network") == describe(START.a, START.b)
    assert said(shown, "at", "It sees").startswith("It sees .+=")
    assert shown.get_by_text("before the first stand the signs + and =").is_visible()
    shown.get_by_label("First number").fill("12345")
    shown.get_by_label("Second number").fill("67 890")
    assert said(shown, "seen", "The network writes 12345") == describe(12_345, 67_890)
    shown.get_by_role("slider", name="Column").press("End")
    assert said(shown, "at", "It sees").startswith("It sees 168.. and writes the end, ahead of ")
    shares = shown.evaluate(
        """() => [...document.querySelector('certified-adder').shadowRoot.querySelectorAll('[data-share]')]
                 .map(bar => Number(bar.dataset.share))"""
    )
    assert sum(shares) == pytest.approx(4, abs=1e-5)  # one for each head
    shown.get_by_role("button", name="Check the proof here").click()
    assert "In each of 24,518 situations the right token is ahead, by 8.39" in said(shown, "proof", "Accepted")
    shown.get_by_label("First number").fill("-1")
    assert said(shown, "seen", "Type") == "Type a whole number of 0 or more as first number."
    assert not shown.get_by_role("slider", name="Column").is_visible()


@pytest.mark.browser
def test_while_long_numbers_are_added_a_bar_rises_and_is_gone_at_the_end(shown):
    said(shown, "seen", "The network")
    shown.evaluate(
        """() => {
          let now = 0;
          performance.now = () => now += 1000;  // on a machine so slow that it shows each step
          window.reached = [];
          const within = document.querySelector('certified-adder').shadowRoot;
          const [bar, columns] = ['added', 'columns'].map(id => within.getElementById(id));
          const note = () => bar.checkVisibility() && window.reached.push([bar.value, columns.textContent]);
          new MutationObserver(note).observe(columns, { childList: true });
        }"""
    )
    draw = random.Random(2)
    a, b = ("".join(draw.choices("123456789", k=20_000)) for _ in range(2))
    shown.get_by_label("First number").fill(a)
    shown.get_by_label("Second number").fill(b)
    words = said(shown, "seen", f"The network writes {a[:30]} … {a[-30:]} (20,000 digits) + {b[:30]} … {b[-30:]}")
    assert "That is right" in words
    ending = " of 20,000 columns"
    told = [(share, words) for share, words in shown.evaluate("reached") if words.endswith(ending)][-15:]
    shares = [share for share, _ in told]
    assert len({*shares}) == 15 and shares == sorted(shares) and 0 < shares[0] < shares[-1] == 1
    assert [int(words.removesuffix(ending).replace(",", "")) / 20_000 for _, words in told] == shares
    bar = shown.get_by_role("progressbar", name="Share of the sum that is written", include_hidden=True)
    assert bar.count() == 1 and not bar.is_visible()
    columns = shown.locator("certified-adder #columns")
    assert not columns.is_visible() and columns.get_attribute("role") is None


@pytest.mark.browser
def test_the_button_adds_two_numbers_of_a_million_digits(shown):
    said(shown, "seen", "The network")
    shown.get_by_role("button", name="Two random numbers of 1,000,000 digits").click()
    shown.set_default_timeout(300_000)
    words = said(shown, "seen", "That is right")
    a, b = (shown.get_by_label(label).input_value() for label in ("First number", "Second number"))
    assert len(a) == len(b) == 1_000_000 and a != b
    end = f"{(int(a[-30:]) + int(b[-30:])) % 10**30:030}"
    begin = str(int(a[:50]) + int(b[:50]))[:30]  # a carry from further down would have to pass twenty columns
    assert f" = {begin} … {end} (1,000,00" in words


@pytest.mark.browser
def test_while_the_proof_runs_the_situations_are_counted(shown):
    """In both rounds, and not in a place whose every change a screen reader would say."""
    shown.evaluate(
        """() => {
          window.counts = [];
          const place = document.querySelector('certified-adder').shadowRoot.getElementById('looked');
          new MutationObserver(() => place.textContent && window.counts.push(place.textContent))
            .observe(place, { childList: true });
        }"""
    )
    shown.get_by_role("button", name="Check the proof here").click()
    said(shown, "proof", "Accepted")
    for arithmetic in ("exact arithmetic", "float32"):
        ending = f" of 24,518 situations, in {arithmetic}"
        told = [words for words in shown.evaluate("counts") if words.endswith(ending)]
        counts = [int(words.removesuffix(ending).replace(",", "")) for words in told]
        assert counts == sorted(counts) and 0 < counts[0] < counts[-1] <= 24_518
    looked = shown.locator("certified-adder #looked")
    assert not looked.is_visible() and looked.get_attribute("role") is None


@pytest.mark.browser
def test_a_changed_weight_is_found_out(shown, situations):
    shown.get_by_label("Tensor").select_option("out.weight")
    shown.get_by_role("slider", name="Change").press("End")
    words = said(shown, "changed", "Wrong in")
    seen, right = situations
    model = checkpoints.load(NETWORK).model
    with torch.no_grad():
        model.out.weight[0, 0] += 3
        keys = torch.tensor(seen)
        written = context_logits(model, keys[:, 2], keys, WINDOW_NUMBER, WINDOW_DISTANCE).argmax(1).numpy()
    assert f"Wrong in {(written != right).sum():,} of 24,518 situations" in words
    shown.get_by_role("button", name="Show that sum").click()
    assert "That is wrong" in said(shown, "seen", "The network")
    assert "goes wrong" in words and int(shown.get_by_role("slider", name="Column").input_value()) > 0
    shown.get_by_role("button", name="Check the proof here").click()
    assert "the right token may be" in said(shown, "proof", "Not proven")
    shown.get_by_role("spinbutton").fill("99999")
    assert said(shown, "changed", "There is") == "There is no such entry: out.weight has 1,024."
    shown.evaluate("document.querySelector('certified-adder').setAttribute('certificate', '{}')")
    shown.get_by_role("button", name="Check the proof here").click()
    assert said(shown, "proof", "Rejected")  # for no weight is changed: the certificate is asked, not the proof made


@pytest.mark.browser
def test_a_little_change_is_proven_anew(shown):
    shown.get_by_role("slider", name="Change").press("ArrowRight")
    assert "Right in all 24,518 situations" in said(shown, "changed", "Right")
    shown.get_by_role("button", name="Check the proof here").click()
    assert "the right token leads by" in said(shown, "proof", "Proven for the changed weights")


@pytest.mark.browser
def test_a_brief_one_shows_a_column_when_asked_and_leaves_out_the_proof(shown):
    assert 'brief=""' in in_the_book(CertifiedAdder(1, 2, proof=False)) and "brief" not in in_the_book(START)
    column = shown.get_by_role("slider", name="Column")
    assert column.is_visible()
    shown.evaluate("""() => {
        const whole = document.querySelector('certified-adder'), brief = whole.cloneNode(true);
        brief.setAttribute('brief', '');
        whole.replaceWith(brief);
    }""")
    shown.get_by_role("status").filter(has_text="That is right").wait_for()
    assert not column.is_visible() and not shown.get_by_text("Check the proof here").is_visible()
    shown.get_by_text("What each head reads").click()
    column.wait_for()


@pytest.mark.browser
def test_the_keyboard_reaches_every_control(shown):
    order = []
    for _ in range(9):
        shown.keyboard.press("Tab")
        order.append(shown.evaluate("document.activeElement.shadowRoot.activeElement.id"))
    assert order == ["a", "b", "million", "inside", "column", "prove", "tensor", "entry", "change"]


@pytest.mark.browser
def test_it_fits_a_phone_and_gives_way_to_words_on_paper(shown):
    shown.set_viewport_size(PHONE)
    assert shown.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    shown.emulate_media(media="print")
    assert shown.get_by_text("The certified adder, for a screen").is_visible()
    assert not shown.get_by_role("slider").first.is_visible()
