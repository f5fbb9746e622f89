"""The helix viewer: places and words in Python, and the same in a browser that draws and turns them."""

from pathlib import Path

import numpy as np
import pytest
import torch
from browsing import PHONE, fixtures_of, words

from arithlib.analysis.helix import helix_columns
from bookkit.build.checks import check_site
from chapters.ch50_helix_viewer import HEIGHT, HelixViewer, describe

MODULE = Path(__file__).resolve().parents[2] / "book" / "_static" / "helix-viewer.mjs"
NUMBERS = torch.arange(100)
ORDER = torch.randperm(100, generator=torch.Generator().manual_seed(0))
NOISE = torch.randn(100, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
START = HelixViewer({"in order": (NUMBERS, helix_columns(NUMBERS)), "shuffled": (ORDER, 0.4 * NOISE)})


def project(places: np.ndarray, turn: float, tilt: float) -> np.ndarray:
    """(N, 3) places -> (N, 3) to the right, up and away, seen from `turn` degrees around and `tilt` above."""
    around, above = np.radians([turn, tilt])
    x, y, z = np.asarray(places).T
    right = x * np.cos(around) - y * np.sin(around)
    back = x * np.sin(around) + y * np.cos(around)
    return np.column_stack(
        [right, z * np.cos(above) + back * np.sin(above), back * np.cos(above) - z * np.sin(above)]
    )


def test_numbers_stand_on_their_helix():
    places = START.places("in order", 100)
    assert np.allclose(places[0], [1, 0, -HEIGHT]) and np.allclose(places[25], [0, 1, HEIGHT * (50 / 99 - 1)])
    assert np.allclose(START.places("in order", 10)[3, :2], [np.cos(0.6 * np.pi), np.sin(0.6 * np.pi)])
    assert START.data["circles"] == [100, 10, 5] and len(set(START.data["colours"])) == 100


def test_a_turn_and_a_tilt_move_what_they_should():
    places = np.eye(3)
    assert np.allclose(project(places, 0, 0), [[1, 0, 0], [0, 0, 1], [0, 1, 0]])  # right, away, up
    assert np.allclose(project(places, 90, 0)[:2], [[0, 0, 1], [-1, 0, 0]])
    assert np.allclose(project(places, 0, 90)[1:], [[0, 1, 0], [0, 0, -1]])  # from above the line is a point
    view = project(START.places("shuffled", 5), 37, -20)
    assert np.allclose(np.linalg.norm(view, axis=1), np.linalg.norm(START.places("shuffled", 5), axis=1))


def test_the_words_say_how_round_it_is():
    assert "varies by 0.00 of its mean" in describe(START.places("in order", 5), 5, "in order", 0, 0)
    assert ", shuffled, from 7 degrees around and 9 below." in describe(
        START.places("shuffled", 5), 5, "shuffled", 7, -9
    )


def test_numbers_without_coordinates_are_refused():
    with pytest.raises(ValueError, match=r"some: 9 numbers and 8 columns, found \(100, 8\)"):
        HelixViewer({"some": (range(9), NOISE)})


# --- in a browser ---


folder, address, shown = fixtures_of(START, "helix.html", MODULE)


def dots(page):
    """(100, 2) where the numbers are drawn, in radii, upwards."""
    found = page.evaluate(
        """() => [...document.querySelector('helix-viewer').shadowRoot.querySelectorAll('circle')]
                 .map(dot => [dot.dataset.number, dot.getAttribute('cx'), dot.getAttribute('cy')].map(Number))"""
    )
    return np.array([[x, -y] for _, x, y in sorted(found)]) / 100


def assert_shows(page, cloud, T, turn, tilt):
    numbers = np.asarray(START.clouds[cloud][0])
    places = START.places(cloud, T)
    assert np.abs(dots(page) - project(places, turn, tilt)[np.argsort(numbers), :2]).max() < 0.002
    assert words(page) == describe(places, T, cloud, turn, tilt)


def test_the_checks_of_the_site_accept_it(folder):
    assert check_site(folder) == []


@pytest.mark.browser
def test_the_module_computes_what_python_computes(shown):
    places = START.places("shuffled", 10)
    for turn, tilt in ((0, 0), (123, 45), (300, -90)):
        found = shown.evaluate(
            """async ([places, turn, tilt]) => {
              const m = await import('/_static/helix-viewer.mjs')
              return [places.map(place => m.project(place, turn, tilt)), m.describe(places, 10, 'so', turn, tilt)]
            }""",
            [places.tolist(), turn, tilt],
        )
        assert np.allclose(found[0], project(places, turn, tilt), atol=1e-12)
        assert found[1] == describe(places, 10, "so", turn, tilt)


@pytest.mark.browser
def test_keys_turn_and_tilt_it(shown):
    assert_shows(shown, "in order", 100, 20, 30)
    shown.get_by_role("slider", name="Turn").press("ArrowRight")
    shown.get_by_role("slider", name="Tilt").press("ArrowLeft")
    assert_shows(shown, "in order", 100, 21, 29)
    shown.get_by_role("slider", name="Tilt").press("Home")
    assert_shows(shown, "in order", 100, 21, -90)
    assert shown.get_by_role("slider", name="Tilt").get_attribute("aria-valuetext") == "90 degrees below"


@pytest.mark.browser
def test_circle_and_numbers_can_be_chosen(shown):
    shown.get_by_role("combobox", name="Circle").select_option("5")
    assert_shows(shown, "in order", 5, 20, 30)
    shown.get_by_role("combobox", name="Numbers").select_option("shuffled")
    assert_shows(shown, "shuffled", 5, 20, 30)


@pytest.mark.browser
@pytest.mark.parametrize("cloud", ["in order", "shuffled"])
def test_every_number_is_inside_the_picture_from_every_side(shown, cloud):
    shown.get_by_role("combobox", name="Numbers").select_option(cloud)
    for T in START.data["circles"]:
        shown.get_by_role("combobox", name="Circle").select_option(str(T))
        for key in ("Home", "PageUp", "PageUp", "End"):
            shown.get_by_role("slider", name="Tilt").press(key)
            picture = shown.get_by_role("img").evaluate("svg => svg.viewBox.baseVal.width / 200")
            assert np.abs(dots(shown)).max() < picture


@pytest.mark.browser
def test_dragging_turns_it_and_letting_go_stops(shown):
    box = shown.get_by_role("img").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    shown.mouse.move(x, y)
    shown.mouse.down()
    shown.mouse.move(x + 60, y + 20)
    assert_shows(shown, "in order", 100, 350, 40)
    shown.mouse.up()
    shown.mouse.move(x, y)
    assert_shows(shown, "in order", 100, 350, 40)


@pytest.mark.browser
def test_the_keyboard_reaches_every_control(shown):
    order = []
    for _ in range(4):
        shown.keyboard.press("Tab")
        order.append(shown.evaluate("document.activeElement.shadowRoot.activeElement.id"))
    assert order == ["turn", "tilt", "circle", "cloud"]


@pytest.mark.browser
def test_in_the_dark_lines_and_words_are_bright(shown):
    shown.evaluate("document.documentElement.dataset.theme = 'dark'")
    colours = shown.evaluate(
        """() => ['polyline', 'circle', 'text', 'p'].map(tag => {
          const found = getComputedStyle(document.querySelector('helix-viewer').shadowRoot.querySelector(tag))
          return [found.stroke, found.fill, found.color]
        })"""
    )
    for (stroke, fill, ink), used in zip(colours, (0, 0, 1, 2), strict=True):
        assert (stroke, fill, ink)[used] == "rgb(255, 255, 255)"


@pytest.mark.browser
def test_it_fits_a_phone_and_gives_way_to_words_on_paper(shown):
    shown.set_viewport_size(PHONE)
    assert shown.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    inner = shown.locator("helix-viewer").evaluate(
        "e => Math.max(...[...e.shadowRoot.querySelectorAll('*')].map(p => p.getBoundingClientRect().right))"
    )
    assert inner <= PHONE["width"]
    shown.emulate_media(media="print")
    assert shown.get_by_text("A viewer for a screen").is_visible()
    assert not shown.get_by_role("slider").first.is_visible()
