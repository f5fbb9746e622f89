"""The petal explorer, with a kernel and without one, against the Python function it shows."""

import base64
import io
import itertools
import re
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from browsing import PHONE, make_site, serving, with_sliders
from IPython.core.formatters import DisplayFormatter
from matplotlib.figure import Figure
from matplotlib.image import imread

import chapters.ch21_petal_explorer
from bookkit import style
from bookkit.build.checks import check_site
from chapters.ch21_petal_explorer import describe, draw_petal, family_phases, petal_explorer
from chapters.ch21_petals import Petal

ROOT = Path(__file__).resolve().parents[2]
MODULE = ROOT / "book" / "_static" / "petal-explorer.mjs"
START = {"embedding": 5, "attention": 3, "amplitude": 0.4, "phase": 1.0, "a": 20}


# --- the family and the words ---


def near(curve, other):
    """Largest distance from a point of one curve to the nearest point of the other."""
    return abs(curve[:, None] - other[None, :]).min(axis=1).max()


@pytest.mark.parametrize(("embedding", "attention"), [(4, 4), (4, 32), (32, 4), (6, 4), (5, 3)])
def test_a_family_shows_eight_different_curves_and_goes_round(embedding, attention):
    petal = Petal(embedding=embedding, attention=attention, phase=0.3, a=11)
    _, n = petal.ratio
    curves = [replace(petal, phase=phase).closed() for phase in family_phases(petal)]
    for one, other in itertools.combinations(curves, 2):
        assert near(one, other) > 0.05
    assert near(replace(petal, phase=0.3 + 2 * np.pi / n).closed(), curves[0]) < 1e-10


@pytest.mark.parametrize(
    ("petal", "family", "words"),
    [
        (
            Petal(4, 32),
            False,
            "^Attention to embedding frequency m/n = 8/1 in lowest.*has 9 lobes.*does not cross itself elsewhere",
        ),
        (Petal(32, 4), True, "m/n = 1/8 .*crosses itself 7 times elsewhere.*1/8 of a turn"),
        (Petal(4, 2), False, "m/n = 1/2 .*crosses itself once elsewhere"),
        (
            Petal(3, 2, amplitude=0.3),
            False,
            "passes the marked point 3 times.*crosses itself 4 times.*it has 5 lobes",
        ),
        (Petal(3, 2, amplitude=0), True, "^Amplitude 0: .*circle of half the size.$"),
    ],
)
def test_the_words_tell_ratio_lobes_and_crossings(petal, family, words):
    assert re.search(words, describe(petal, family))


# --- with a kernel ---


@pytest.fixture
def by_hand(monkeypatch):
    """The explorer beside a kernel: (its controls by description, the petals it has drawn)."""
    monkeypatch.delenv("BOOKKIT_RECORDS", raising=False)
    drawn = []

    def note(ax, petal, family):
        drawn.append((petal, family))
        draw_petal(ax, petal, family)

    monkeypatch.setattr(chapters.ch21_petal_explorer, "draw_petal", note)
    widget = petal_explorer(**START)

    def every(part):
        yield part
        for child in getattr(part, "children", ()):
            yield from every(child)

    parts = list(every(widget))
    controls = {part.description: part for part in parts if getattr(part, "description", "")}
    controls["picture"] = next(part for part in parts if isinstance(part, chapters.ch21_petal_explorer.widgets.Image))
    controls["words"] = next(part for part in parts if type(part) is chapters.ch21_petal_explorer.widgets.HTML)
    return controls, drawn


@pytest.mark.parametrize(
    ("control", "value", "change"),
    [
        ("Embedding frequency", 7, {"embedding": 7}),
        ("Attention frequency", 56, {"attention": 56}),
        ("Phase (multiples of π)", 1.5, {"phase": 1.5 * np.pi}),
        ("Amplitude", 0.0, {"amplitude": 0.0}),
        ("Fixed number a", 112, {"a": 112}),
        ("Play the phase", 50, {"phase": np.pi / 2}),
    ],
)
def test_a_control_redraws_the_right_curve(by_hand, control, value, change):
    controls, drawn = by_hand
    before = bytes(controls["picture"].value)
    controls[control].value = value
    petal, family = drawn[-1]
    expected = START | change
    assert {name: getattr(petal, name) for name in expected} == pytest.approx(expected) and not family
    assert bytes(controls["picture"].value) != before
    assert controls["words"].value == describe(petal)


def test_the_family_and_the_presets_of_the_widgets_work(by_hand):
    controls, drawn = by_hand
    controls["Family of curves"].value = True
    assert drawn[-1][1]
    controls["32, 4"].click()
    assert (drawn[-1][0].embedding, drawn[-1][0].attention) == (32, 4)


def test_the_drawing_holds_the_curve_and_every_residue():
    petal, ax = Petal(**START), Figure().add_subplot()
    draw_petal(ax, petal)
    _, curve, _ = ax.lines
    np.testing.assert_array_equal(curve.get_xdata() + 1j * curve.get_ydata(), np.append(petal.closed(), petal(20)))
    np.testing.assert_array_equal(ax.collections[0].get_offsets() @ [1, 1j], petal(np.arange(113)))
    np.testing.assert_array_equal(ax.collections[0].get_facecolors(), style.residue_colours(113))


def test_the_family_is_drawn_in_eight_colours():
    ax = Figure().add_subplot()
    draw_petal(ax, Petal(embedding=32, attention=4, phase=6.0), family=True)
    curves = ax.lines[1:-1]
    assert len({tuple(line.get_color()) for line in curves}) == 8
    assert [line.get_linewidth() for line in curves] == [3] + 7 * [1.2]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"embedding": 57}, "embedding=57 must be a whole number from 1 to 56"),
        ({"attention": 0.5}, "attention=0.5 must be a whole number from 1 to 56"),
        ({"amplitude": 0.6}, "amplitude=0.6 must be a number from 0 to 0.5"),
        ({"a": 113}, "a=113 must be a whole number from 0 to 112"),
        ({"phase": float("inf")}, "phase=inf must be a finite number of radians"),
    ],
)
def test_a_number_that_no_slider_reaches_is_refused(wrong, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        petal_explorer(**wrong)


# --- without a kernel: what is published ---


def published(monkeypatch, **arguments):
    monkeypatch.setenv("BOOKKIT_RECORDS", "anywhere")
    formats, _ = DisplayFormatter().format(petal_explorer(**arguments))
    return formats


def test_a_run_of_the_book_publishes_an_element_and_no_widget(monkeypatch):
    formats = published(monkeypatch, **START | {"phase": 1.0 - 2 * np.pi}, family=True)
    assert set(formats) == {"text/html", "text/plain"}
    assert 'embedding="5" attention="3" amplitude="0.4" phase="1.0" a="20" family="">' in re.sub(
        r"1\.0\d*|0\.9{8}\d*", "1.0", formats["text/html"]
    )
    assert describe(Petal(**START), family=True) in formats["text/plain"]


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A site of two pages, one of them with the explorer."""
    return make_site(tmp_path, "petals.html", published(monkeypatch, **START)["text/html"], MODULE)


def test_the_checks_of_the_site_accept_the_explorer(site):
    assert check_site(site) == []


def test_the_checks_of_the_site_still_refuse_what_they_should(site):
    with (site / "_static" / MODULE.name).open("a", encoding="utf8") as file:
        file.write('import "https://example.org/plot.mjs";\n')
    shutil.copy(site / "notebooks" / "petals.html", site / "index.html")  # whose address of the module is then wrong
    problems = "\n".join(map(str, check_site(site)))
    assert "petal-explorer.mjs: loads https://example.org/plot.mjs from another host" in problems
    assert "index.html: links to ../_static/petal-explorer.mjs, which is not there" in problems


# --- without a kernel: in a browser ---


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        html = published(patch, **START)["text/html"]
    with serving(make_site(tmp_path_factory.mktemp("site"), "petals.html", html, MODULE)) as address:
        yield address


@pytest.fixture
def shown(page):
    """The page with the explorer, at START."""
    yield from with_sliders(page, "notebooks/petals.html")


NAMES = {
    "embedding": "Embedding frequency",
    "attention": "Attention frequency",
    "phase": "Phase",
    "amplitude": "Amplitude",
    "a": "Fixed number",
}


def slider(page, name):
    return page.get_by_role("slider", name=NAMES[name])


def words(page):
    return page.get_by_role("status").inner_text()


def pixels(page):
    """(size, size, 4) what the canvas holds, once the drawing has settled."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    png = page.locator("canvas").evaluate("canvas => canvas.toDataURL().split(',')[1]")
    return np.round(imread(io.BytesIO(base64.b64decode(png))) * 255)


def at(image, z, reach=1.2):
    """Pixels of the drawing at complex points z."""
    size = len(image)
    column, row = (np.round(size / 2 + size / 2 / reach * part - 0.5).astype(int) for part in (z.real, -z.imag))
    return image[row, column]


def free_points(petal):
    """The residues whose points no later one covers, nor the mark at x_a."""
    z = petal(np.arange(113))
    covered = np.triu(abs(z[:, None] - z[None, :]) < 0.06, 1).any(axis=1) | (abs(z - petal.point(petal.a)) < 0.1)
    return np.flatnonzero(~covered)


def assert_drawn(page, petal):
    """Every point that lies free has the colour of its residue, at the place that Python gives it."""
    residues = free_points(petal)
    assert len(residues) > 30
    expected = np.round(style.residue_colours(113)[residues, :3] * 255)
    found = at(pixels(page), petal(residues))[:, :3]
    assert abs(found - expected).max() <= 2, petal


@pytest.mark.browser
def test_the_module_computes_what_python_computes(shown):
    grid = itertools.product([1, 4, 6, 32, 56], [1, 3, 4, 32, 56], [0, 0.17, 0.5], [0, 1.0, 5.9], [0, 70, 112])
    petals = [Petal(*values) for values in grid]
    b = [0, 1, 17, 56.5, 70, 112, 112.99]
    answers = shown.evaluate(
        """async ({curves, b}) => {
          const m = await import('/_static/petal-explorer.mjs')
          return curves.map(curve => ({
            z: b.map(number => m.petal(curve, number)), alpha: b.map(number => m.weight(curve, number)),
            crossings: m.crossings(curve), lobes: m.lobes(curve), ratio: m.ratio(curve), phases: m.family(curve),
            words: [m.describe(curve), m.describe(curve, true)],
          }))
        }""",
        {"curves": [asdict(petal) for petal in petals], "b": b},
    )
    for petal, answer in zip(petals, answers, strict=True):
        assert abs(np.array(answer["z"]) @ [1, 1j] - petal(b)).max() < 1e-12, petal
        assert abs(np.array(answer["alpha"]) - petal.weight(b)).max() < 1e-12, petal
        assert (answer["crossings"], answer["lobes"], tuple(answer["ratio"])) == (
            petal.crossings,
            petal.lobes,
            petal.ratio,
        )
        np.testing.assert_allclose(answer["phases"], family_phases(petal), rtol=0, atol=1e-12)
        assert answer["words"] == [describe(petal), describe(petal, family=True)]


@pytest.mark.browser
def test_the_drawn_line_is_the_closed_curve_finely_sampled(shown):
    for petal in (Petal(**START), Petal(4, 32, a=70), Petal(55, 56, phase=2.0, a=3)):
        line = shown.evaluate(
            "async curve => (await import('/_static/petal-explorer.mjs')).closed(curve)", asdict(petal)
        )
        line = np.array(line) @ [1, 1j]
        _, n = petal.ratio
        b = petal.a + petal.p * n / petal.embedding * np.arange(len(line)) / len(line)
        assert abs(line - petal(b)).max() < 1e-12
        halfway = petal(b + (b[1] - b[0]) / 2)
        half_a_pixel = 0.5 * 1.2 / 240  # of the largest drawing, 480 pixels wide
        assert abs((line + np.roll(line, -1)) / 2 - halfway).max() < half_a_pixel


@pytest.mark.browser
def test_the_points_stand_where_python_puts_them(shown):
    assert_drawn(shown, Petal(**START))
    assert words(shown) == describe(Petal(**START))


@pytest.mark.browser
@pytest.mark.parametrize(
    ("name", "key", "value", "told"),
    [
        ("embedding", "ArrowRight", 6, "6"),
        ("attention", "End", 56, "56"),
        ("phase", "ArrowLeft", 0.31 * np.pi, "0.31 π"),
        ("amplitude", "ArrowRight", 0.41, "0.41"),
        ("a", "Home", 0, "0"),
    ],
)
def test_a_key_moves_a_slider_and_drawing_and_words_follow(shown, name, key, value, told):
    slider(shown, name).press(key)
    petal = Petal(**START | {name: value})
    assert_drawn(shown, petal)
    assert words(shown) == describe(petal)
    assert slider(shown, name).get_attribute("aria-valuetext") == told
    assert shown.locator(f"#{name}-value").inner_text() == told


@pytest.mark.browser
def test_the_keyboard_reaches_every_control_and_shows_where_it_is(shown):
    order = []
    for _ in range(10):
        shown.keyboard.press("Tab")
        order += shown.evaluate(
            """() => {
              const focused = document.activeElement.shadowRoot.activeElement
              const {outlineStyle, outlineWidth} = getComputedStyle(focused)
              return [[focused.id || focused.textContent, outlineStyle, outlineWidth]]
            }"""
        )
    assert [name for name, *_ in order] == [*NAMES, "4, 4", "4, 32", "32, 4", "family", "play"]
    assert {tuple(outline) for _, *outline in order} == {("solid", "3px")}


@pytest.mark.browser
def test_a_preset_sets_both_frequencies(shown):
    button = shown.get_by_role("button", name="32, 4")
    assert button.get_attribute("aria-pressed") == "false"
    button.press("Enter")
    assert button.get_attribute("aria-pressed") == "true"
    assert words(shown) == describe(Petal(**START | {"embedding": 32, "attention": 4}))
    assert_drawn(shown, Petal(**START | {"embedding": 32, "attention": 4}))


@pytest.mark.browser
def test_the_family_is_eight_curves(shown):
    petal = Petal(**START)
    places = np.concatenate([replace(petal, phase=phase).closed()[::80] for phase in family_phases(petal)])

    def on_a_line():
        return (at(pixels(shown), places)[:, 3] > 0).mean()

    assert on_a_line() < 0.6
    shown.get_by_role("checkbox", name="Family of curves").press("Space")
    assert on_a_line() > 0.98
    assert words(shown) == describe(petal, family=True)
    assert shown.locator(".key").inner_text().split() == ["φ", "=", "0", "2π/5"]


def luminance(rgb):
    share = np.asarray(rgb)[..., :3] / 255
    linear = np.where(share <= 0.03928, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


@pytest.mark.browser
def test_the_switch_to_dark_brightens_points_and_words(shown):
    shown.evaluate("document.documentElement.dataset.theme = 'dark'")
    petal = Petal(**START)
    residues = free_points(petal)
    points = at(pixels(shown), petal(residues))[:, :3]
    dark = luminance([0x12, 0x12, 0x12])
    assert ((luminance(points) + 0.05) / (dark + 0.05)).min() > 3
    hues = np.unique(points, axis=0)
    assert len(hues) > 0.8 * len(residues)  # and they are still told apart
    colour = shown.get_by_role("status").evaluate("e => getComputedStyle(e).color")
    ink = luminance([int(value) for value in re.findall(r"\d+", colour)[:3]])
    assert (ink + 0.05) / (dark + 0.05) > 4.5


@pytest.mark.browser
@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_nothing_moves_before_play_is_pressed_nor_after_pause(shown, motion):
    shown.emulate_media(reduced_motion=motion)
    shown.reload()

    def moves(frames=24):
        """Whether the picture changes while the page draws so many frames: a slow machine takes longer over them."""
        before = pixels(shown)
        shown.evaluate("async n => { while (n--) await new Promise(requestAnimationFrame) }", frames)
        return (pixels(shown) != before).any()

    shown.get_by_role("status").evaluate(
        "words => { window.said = 0; new MutationObserver(() => window.said++).observe(words, {childList: true}) }"
    )
    assert not moves()
    play = shown.get_by_role("button", name="Play the phase")
    phase = float(slider(shown, "phase").input_value())
    play.press("Enter")
    assert moves()
    shown.get_by_role("button", name="Pause").press("Enter")
    assert play.is_visible() and not moves()
    assert float(slider(shown, "phase").input_value()) != phase
    assert shown.evaluate("window.said") == 0  # a screen reader is not flooded


@pytest.mark.browser
def test_moving_the_phase_by_hand_pauses_the_animation(shown):
    shown.get_by_role("button", name="Play the phase").press("Enter")
    slider(shown, "phase").press("Home")
    assert shown.get_by_role("button", name="Play the phase").is_visible()
    assert_drawn(shown, Petal(**START | {"phase": 0.0}))


@pytest.mark.browser
def test_it_fits_a_phone(shown):
    shown.set_viewport_size(PHONE)
    shown.get_by_role("checkbox").check()  # the longest sentence
    assert shown.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    inner = shown.locator("petal-explorer").evaluate(
        "e => Math.max(...[...e.shadowRoot.querySelectorAll('*')].map(p => p.getBoundingClientRect().right))"
    )
    assert inner <= PHONE["width"]
    box = shown.locator("canvas").bounding_box()
    assert box["width"] == pytest.approx(box["height"]) and box["width"] > 250


@pytest.mark.browser
def test_on_paper_words_stand_in_its_place(shown):
    shown.emulate_media(media="print")
    assert shown.get_by_text("An explorer of petal curves").is_visible()
    assert not shown.locator("canvas").is_visible()


@pytest.mark.browser
def test_without_scripts_words_stand_in_its_place(chromium, address):
    context = chromium.new_context(java_script_enabled=False, base_url=address)
    page = context.new_page()
    page.goto("notebooks/petals.html")
    assert page.get_by_text(describe(Petal(**START))).is_visible()
    context.close()
