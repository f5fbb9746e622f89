"""Every live element in the shape that anywidget asks for: drawn where it is told to, at work, tied to the model of a
notebook, and gone without a trace at the end."""

import re
from dataclasses import dataclass

import pytest
import torch
from browsing import DESK, in_the_book, serving, told
from bs4 import BeautifulSoup

from arithlib.analysis.helix import helix_columns
from bookkit.claims import repo_root
from bookkit.sphinx.classic import classic, without_modules
from bookkit.web_components import whole_source
from chapters import (
    ch11_grokked_network,
    ch21_petal_explorer,
    ch32_abacus_adder,
    ch43_hop_stepper,
    ch50_helix_viewer,
    ch61_format_explorer,
    ch72_certified_adder,
    ch78_page_multiplier,
)
from chapters.ch21_petals import Petal

STATIC = repo_root() / "book" / "_static"
FIRST_LOAD = 300_000  # bytes of script and weights
# What book/_static/ has beside the elements that answer: parts of them, and the furniture of pages.
OTHERS = {"claim-filter", "enlarge", "fields", "grokking-training", "steps", "tensors", "widget"}
OF_ITS_OWN = {
    "grokking-here"
}  # nothing is entered in it: test_ch10_grokking_here.py draws and ends it as anywidget does
NUMBERS = torch.arange(100)
HELIX = ch50_helix_viewer.HelixViewer({"in order": (NUMBERS, helix_columns(NUMBERS))})


def helix(turn):
    return ch50_helix_viewer.describe(HELIX.places("in order", 100), 100, "in order", turn, 30)


@dataclass(frozen=True)
class Case:
    """What a reader enters in one input of an element, what it tells then, and what it tells of another value there.

    busy: what begins work that the end breaks off.
    """

    shown: object
    place: str
    name: str
    before: str
    enters: tuple[str, str]
    after: tuple[str, str]
    busy: str = ""


CASES = {
    "abacus-adder": Case(
        ch32_abacus_adder.AbacusAdder(987_654, 123_456), "#told", "offset",
        ch32_abacus_adder.describe("987654", "123456", 6, 2),
        ("7", ch32_abacus_adder.describe("987654", "123456", 7, 2)),
        ("24", ch32_abacus_adder.describe("987654", "123456", 24, 2)),
    ),
    "certified-adder": Case(
        ch72_certified_adder.CertifiedAdder(99_995, 17), "#seen", "b",
        ch72_certified_adder.describe(99_995, 17),
        ("4", ch72_certified_adder.describe(99_995, 4)), ("5", ch72_certified_adder.describe(99_995, 5)),
        "#million, #prove",
    ),
    "format-explorer": Case(
        ch61_format_explorer.FormatExplorer(128, 367), "#told", "a",
        "128 + 367 = 495", ("633", "633 + 367 = 1000"), ("0", "0 + 367 = 367"),
    ),
    "grokked-network": Case(
        ch11_grokked_network.GrokkedNetwork(70, 108), "#seen", "a",
        ch11_grokked_network.describe(70, 108),
        ("5", ch11_grokked_network.describe(5, 108)), ("112", ch11_grokked_network.describe(112, 108)),
        "#switches input",
    ),
    "helix-viewer": Case(HELIX, "#seen", "turn", helix(20), ("21", helix(21)), ("300", helix(300))),
    "hop-stepper": Case(
        ch43_hop_stepper.HopStepper("abcabdab", 7), "#seen", "text",
        ch43_hop_stepper.describe("abcabdab", 7, 1),
        ("ab", ch43_hop_stepper.describe("ab", 7, 1)), ("", "Type a text."),
    ),
    "long-multiplication": Case(
        ch78_page_multiplier.PageMultiplier(512, 439), "#told", "b",
        ch78_page_multiplier.describe(512, 439),
        ("7", ch78_page_multiplier.describe(512, 7)), ("99", ch78_page_multiplier.describe(512, 99)),
    ),
    "petal-explorer": Case(
        ch21_petal_explorer.PageExplorer(Petal(5, 3), False), "#seen", "embedding",
        ch21_petal_explorer.describe(Petal(5, 3)),
        ("32", ch21_petal_explorer.describe(Petal(32, 3))), ("3", ch21_petal_explorer.describe(Petal(3, 3))),
        "#play",
    ),
}  # fmt: skip


def attributes(case):
    """What a page gives the element."""
    markup = BeautifulSoup(in_the_book(case.shown), "html.parser")
    return next(iter(markup.children)).attrs


def test_every_module_that_answers_is_among_them():
    assert {path.stem for path in STATIC.glob("*.mjs")} == CASES.keys() | OTHERS | OF_ITS_OWN


@pytest.mark.parametrize("name", CASES)
def test_script_and_weights_stay_below_the_limit_of_a_first_load(name):
    """Both are all that a page loads of it, with its words."""
    source = whole_source(f"{name}.mjs")
    assert len(source.encode()) + len(in_the_book(CASES[name].shown).encode()) < FIRST_LOAD
    assert len(re.findall("^import", source, re.MULTILINE)) == 0  # a notebook has nothing to import it from


# --- in a browser ---

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>A notebook</title><link rel="icon" href="data:,"></head>
<body></body></html>"""

# A model like anywidget's, and an account of what an element keeps: listeners, observers, timers and frames.
NOTEBOOK = """
  window.model = {
    values: {}, listeners: {}, saved: [], unsaved: {},
    get(name) { return this.values[name] },
    set(name, value) {
      if (this.values[name] === value) return;
      [this.values[name], this.unsaved[name]] = [value, value];
      for (const heard of [...this.listeners[`change:${name}`] ?? []]) heard();
    },
    save_changes() { this.saved.push(this.unsaved); this.unsaved = {} },
    on(event, heard) { (this.listeners[event] ??= []).push(heard) },
    off(event, heard) { this.listeners[event] = this.listeners[event].filter(one => one !== heard) },
  };
  window.kept = { observers: new Set(), asked: 0 };
  for (const kind of ['ResizeObserver', 'MutationObserver', 'IntersectionObserver'])
    window[kind] = class extends window[kind] {
      observe(...given) { super.observe(...given); kept.observers.add(this) }
      disconnect() { super.disconnect(); kept.observers.delete(this) }
    };
  for (const kind of ['setTimeout', 'setInterval', 'requestAnimationFrame']) {
    const ask = window[kind].bind(window);
    if (kind === 'setTimeout') window.later = ask;
    window[kind] = (...given) => { kept.asked++; return ask(...given) };
  }
"""
RENDER = """async ({ module, values }) => {
  const { default: widget } = await import(`/${module}`);
  Object.assign(model.values, values);
  window.place = document.createElement('div');
  window.end = await widget.render({ model, el: place });
  document.body.append(place);
}"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """As a notebook has them: each module as one script, and no element on the page."""
    folder = tmp_path_factory.mktemp("notebook")
    (folder / "index.html").write_text(PAGE, "utf8")
    for name in CASES:
        (folder / f"{name}.mjs").write_text(whole_source(f"{name}.mjs"), "utf8")
    with serving(folder) as address:
        yield address


@pytest.fixture
def notebook(page):
    page.set_viewport_size(DESK)
    page.goto("index.html")
    page.evaluate(f"() => {{ {NOTEBOOK} }}")
    yield page
    assert page.faults == []


def ask(page, name):
    page.evaluate(RENDER, {"module": f"{name}.mjs", "values": attributes(CASES[name])})


@pytest.mark.browser
@pytest.mark.parametrize("name", CASES)
def test_it_draws_and_answers_in_a_notebook(notebook, name):
    case = CASES[name]
    ask(notebook, name)
    assert told(notebook, case.place, case.before) == case.before
    drawn = notebook.locator("svg, canvas, table").first.bounding_box()
    assert drawn["width"] > 100 and drawn["height"] > 20
    notebook.locator(f"#{case.name}").fill(case.enters[0])
    assert told(notebook, case.place, case.enters[1]) == case.enters[1]
    assert case.enters[0] in [saved.get(case.name) for saved in notebook.evaluate("model.saved")]
    notebook.evaluate("([name, value]) => model.set(name, value)", [case.name, case.after[0]])
    assert told(notebook, case.place, case.after[1]) == case.after[1]
    assert notebook.locator(f"#{case.name}").input_value() == case.after[0]


@pytest.mark.browser
@pytest.mark.parametrize("name", CASES)
def test_at_the_end_nothing_of_it_is_left_or_goes_on(notebook, name):
    case = CASES[name]
    before = notebook.evaluate("() => ({ asked: kept.asked, observers: kept.observers.size })")
    ask(notebook, name)
    told(notebook, case.place, case.before)
    assert notebook.evaluate("Object.values(model.listeners).flat().length") > 0
    work = """async busy => {
      for (const button of busy ? place.shadowRoot.querySelectorAll(busy) : []) button.click();
      await new Promise(done => later(done, 100));
      end();
      const asked = kept.asked;
      await new Promise(done => later(done, 300));
      return { worked: asked, asked: kept.asked - asked, left: place.shadowRoot.childNodes.length,
        listeners: Object.values(model.listeners).flat().length, observers: kept.observers.size };
    }"""
    found = notebook.evaluate(work, case.busy)
    assert found.pop("worked") > before["asked"] or not case.busy
    assert found == {"asked": 0, "left": 0, "listeners": 0, "observers": before["observers"]}
    ask(notebook, name)  # anew
    assert told(notebook, case.place, case.before) == case.before


@pytest.mark.browser
@pytest.mark.parametrize("name", CASES)
def test_two_cells_can_show_it_and_one_can_be_moved(notebook, name):
    """Each output brings the module along; what was entered stays with an element that is moved."""
    case = CASES[name]
    show = """async ({ name, markup }) => {
      for (let cell = 0; cell < 2; cell++) {
        document.body.insertAdjacentHTML('beforeend', markup);
        await import(`/${name}.mjs?${cell}`);
      }
    }"""
    notebook.evaluate(show, {"name": name, "markup": in_the_book(case.shown).partition("<script")[0]})
    first = notebook.locator(name).first
    first.locator(case.place).filter(has_text=case.before).wait_for()
    assert notebook.locator(f"{name} section").count() == 2
    first.locator(f"#{case.name}").fill(case.enters[0])
    first.locator(case.place).filter(has_text=case.enters[1]).wait_for()
    first.evaluate("element => document.body.append(element)")
    moved = notebook.locator(name).last
    moved.locator(case.place).filter(has_text=case.enters[1]).wait_for()
    assert notebook.locator(name).first.locator(f"#{case.name}").input_value() != case.enters[0]


@pytest.mark.browser
@pytest.mark.parametrize("name", CASES)
def test_a_page_that_is_opened_as_a_file_draws_it(page, tmp_path, name):
    """By its script of the older kind, in which nothing is exported."""
    for folder in ("_static", "notebooks"):
        (tmp_path / folder).mkdir()
    written = tmp_path / "notebooks" / "page.html"
    written.write_text(PAGE.replace("<body>", "<body>" + without_modules(in_the_book(CASES[name].shown))), "utf8")
    (tmp_path / "_static" / f"{name}.js").write_text(classic(f"{name}.mjs"), "utf8")
    page.goto(written.as_uri())
    assert told(page, CASES[name].place, CASES[name].before) == CASES[name].before
    page.locator(f"#{CASES[name].name}").fill(CASES[name].enters[0])
    assert told(page, CASES[name].place, CASES[name].enters[1]) == CASES[name].enters[1]
    assert [fault for fault in page.faults if not fault.startswith("asked for file:")] == []
