"""What is wider than a phone fades at the edge behind which there is more, and nowhere else."""

from pathlib import Path

import pytest
from browsing import DESK, PHONE, serving

from bookkit import table

pytestmark = pytest.mark.browser
CSS = Path(__file__).resolve().parents[2] / "book" / "_static" / "book.css"
DRAWING = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' width='700' height='200'/%3E"
TABLE = (
    '<div class="pst-scrollable-table-container" id="{}"><table style="width: {}px"><tr><td>1</td></tr></table></div>'
)
# As the theme lays an equation out: in a row that begins at its end.
EQUATION = (
    '<style>div.math { display: flex; flex-direction: row-reverse }</style><div class="math" id="equation">'
    '<span class="eqno">(1)</span><div style="flex: 0 0 900px">a = b</div></div>'
)
NUMBERS = '<div class="cell_output"><div class="output text_html" id="{}">{}</div></div>'
LONG = table(("format", *(f"seed {seed}" for seed in range(9))), [("with a simplified scratchpad", *[1_234_567] * 9)])
SHORT = table(("digits", "right, %"), [(10, 99), (20, [71, 81])], caption="One network.")
PAGE = f"""<!doctype html><html data-theme="light"><meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,"><link rel="stylesheet" href="book.css"><body class="bd-content">
<figure id="figure"><img class="wide" alt="" src="{DRAWING}"><figcaption>A caption</figcaption></figure>
{EQUATION}{TABLE.format("wide", 900)}{TABLE.format("narrow", 200)}
{NUMBERS.format("long", LONG._repr_html_())}{NUMBERS.format("short", SHORT._repr_html_())}</body></html>"""
# Pixels that fade left and right of what scrolls once the element is scrolled to this part of its way.
FADES = """([id, part]) => {
    const all = document.getElementById(id), shown = all.querySelector('img') ?? all
    all.scrollLeft = part * (all.scrollWidth - all.clientWidth)
    return new Promise(tell => requestAnimationFrame(() => requestAnimationFrame(() => tell(
        ['left', 'right'].map(side => parseFloat(getComputedStyle(shown).getPropertyValue(`--more-${side}`)))))))
}"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    (folder / "book.css").write_bytes(CSS.read_bytes())
    (folder / "index.html").write_text(PAGE, "utf8")
    with serving(folder) as address:
        yield address


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
@pytest.mark.parametrize("id", ["figure", "wide", "equation", "long"])
def test_the_edge_behind_which_there_is_more_fades(page, id, motion):
    page.emulate_media(reduced_motion=motion)
    page.goto("index.html")
    fades = [page.evaluate(FADES, [id, part]) for part in (0, 0.5, 1)]
    assert [[pixels > 0 for pixels in sides] for sides in fades] == [[False, True], [True, True], [True, False]]
    assert page.faults == []


def test_what_fits_does_not_fade(page):
    page.goto("index.html")
    assert page.evaluate(FADES, ["narrow", 0]) == page.evaluate(FADES, ["short", 0]) == [0, 0]
    page.set_viewport_size(DESK)
    assert page.evaluate(FADES, ["figure", 0]) == page.evaluate(FADES, ["wide", 0]) == [0, 0]


def test_a_table_of_numbers_is_no_wider_than_it_must_and_the_page_never(page):
    page.goto("index.html")
    width = "e => e.getBoundingClientRect().width"
    for size in (PHONE, DESK):
        page.set_viewport_size(size)
        assert page.locator("#short table").evaluate(width) < 320
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    sides = page.locator("#short :is(th, td)").evaluate_all("all => all.map(e => getComputedStyle(e).textAlign)")
    assert sides == ["left", "right"] * 3
