"""The filter of the scoreboard and of the sources' pages, in a browser, on planted pages."""

import shutil
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from browsing import DESK, serving

MODULE = Path(__file__).resolve().parents[2] / "book" / "_static" / "claim-filter.mjs"
CLAIM = '<div class="claim" id="{id}" data-source="{source}" data-verdict="{verdict}" {more}>{words}</div>'
FILTER = '<claim-filter></claim-filter><script type="module" src="claim-filter.mjs"></script>'
HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page</title><link rel="icon" href="data:,">'
)
PAGE = f"""{HEAD}</head><body><section><h1>Scoreboard</h1>{FILTER}
<section id="one"><h2>One</h2>
{CLAIM.format(id="a", source="One", verdict="partly", more='data-scale="less" data-distance="0.5"', words="Petals")}
{CLAIM.format(id="b", source="One", verdict="refuted", more='data-scale="proof" data-distance="9"', words="Clocks")}
<details id="open"><summary>1 not attempted</summary><ul>
<li id="c" data-source="One" data-verdict="not attempted">Petals of a clock</li></ul></details></section>
<section id="two"><h2>Two</h2>
{CLAIM.format(id="d", source="Two", verdict="partly", more='data-scale="proof" data-distance="99"', words="Carry")}
</section></section></body></html>"""
SOURCE = f"""{HEAD}</head><body><section><h1>A source</h1>
<section id="holds"><h2>What holds</h2><a href="#b">B</a></section>
<section><h2>Section by section</h2>{FILTER}</section>
<section id="three"><h2>3</h2>
<section id="figure"><h3>Figure 1</h3><img alt="Waves" src="data:,"></section>
<section id="table"><h3>Table 1</h3>
{CLAIM.format(id="a", source="One", verdict="partly", more="", words="Petals")}</section></section>
<section id="four"><h2>4</h2>
{CLAIM.format(id="b", source="One", verdict="refuted", more='data-distance="2"', words="Clocks")}
</section></section></body></html>"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    (folder / "page.html").write_text(PAGE, "utf8")
    (folder / "source.html").write_text(SOURCE, "utf8")
    shutil.copy(MODULE, folder)
    with serving(folder) as address:
        yield address


def opened(page, name):
    page.set_viewport_size(DESK)
    page.goto(name)
    page.get_by_role("search").wait_for()
    yield page
    assert page.faults == []


@pytest.fixture
def filtered(page):
    yield from opened(page, "page.html")


@pytest.fixture
def source(page):
    yield from opened(page, "source.html")


def seen(page):
    """Ids of the claims that are shown, from top to bottom."""
    return page.evaluate(
        "() => [...document.querySelectorAll('[data-verdict]')].filter(e => e.checkVisibility()).map(e => e.id)"
    )


def counted(page):
    return page.locator("claim-filter output").inner_text()


@pytest.mark.browser
def test_everything_is_shown_at_first_and_what_is_open_is_folded(filtered):
    assert seen(filtered) == ["a", "b", "d"] and counted(filtered) == "4 of 4 claims"
    assert filtered.get_by_label("Verdict").locator("option").all_inner_texts() == [
        "all",
        "partly (2)",
        "refuted (1)",
        "not attempted (1)",
    ]


@pytest.mark.browser
def test_choices_and_words_narrow_together_and_empty_parts_go(filtered):
    filtered.get_by_label("Verdict").select_option("partly")
    assert seen(filtered) == ["a", "d"] and counted(filtered) == "2 of 4 claims"
    filtered.get_by_label("Setting").select_option("proof")
    assert seen(filtered) == ["d"] and not filtered.locator("#one").is_visible()
    filtered.get_by_role("button", name="Show all").click()
    filtered.get_by_text("4 of 4 claims").wait_for()
    assert seen(filtered) == ["a", "b", "d"]
    filtered.get_by_label("Words").fill("clock PETAL")
    assert seen(filtered) == ["c"], "a claim that is open is unfolded"
    assert not filtered.locator("#two").is_visible()
    filtered.get_by_label("Words").fill("")
    assert seen(filtered) == ["a", "b", "d"], "and folded again"


@pytest.mark.browser
def test_sorted_by_distance_those_that_are_not_compared_come_last(filtered):
    filtered.get_by_label("Order").select_option("far")
    assert seen(filtered) == ["d", "b", "a", "c"] and not filtered.locator("#two").is_visible()
    filtered.get_by_label("Order").select_option("near")
    assert seen(filtered) == ["a", "b", "d", "c"]
    filtered.get_by_label("Order").select_option("ledger")
    assert seen(filtered) == ["a", "b", "d"] and filtered.locator("#two").is_visible()


@pytest.mark.browser
def test_where_no_claim_fits_that_is_said_in_place_of_a_count(filtered):
    filtered.get_by_label("Words").fill("petals of nonsense")
    assert seen(filtered) == []
    assert filtered.get_by_role("status").inner_text() == "No claim matches."
    filtered.get_by_label("Words").fill("petals")
    assert filtered.get_by_role("status").inner_text() == "2 of 4 claims"


@pytest.mark.browser
def test_how_a_distance_is_measured_stands_beside_the_order(filtered):
    order, said = filtered.get_by_label("Order"), filtered.get_by_text("the largest factor between a published")
    assert said.is_visible() and order.get_attribute("aria-describedby") == said.get_attribute("id") is not None


def parts(page):
    """Ids of the parts of the page that are shown."""
    return page.locator("section[id]:visible").evaluate_all("all => all.map(e => e.id)")


@pytest.mark.browser
def test_what_all_claims_have_alike_is_no_choice(source):
    names = "all => all.map(e => e.name)"
    assert source.locator("claim-filter select").evaluate_all(names) == ["verdict", "order"]


@pytest.mark.browser
def test_what_stands_above_stays_and_a_part_below_without_a_claim_goes(source):
    every = ["holds", "three", "figure", "table", "four"]
    assert parts(source) == every
    source.get_by_label("Verdict").select_option("partly")
    assert seen(source) == ["a"] and parts(source) == ["holds", "three", "table"]
    source.get_by_label("Verdict").select_option("all")
    assert parts(source) == every
    source.get_by_label("Order").select_option("far")
    assert seen(source) == ["b", "a"] and parts(source) == ["holds"]


@pytest.mark.browser
def test_a_link_to_a_claim_that_is_not_shown_shows_all(source):
    source.get_by_label("Words").fill("petals")
    assert seen(source) == ["a"]
    source.get_by_role("link", name="B").focus()
    source.keyboard.press("Enter")
    assert seen(source) == ["a", "b"] and source.get_by_label("Words").input_value() == ""
    assert source.evaluate("document.querySelector(':target').id") == "b"
    source.get_by_label("Verdict").select_option("refuted")
    source.get_by_role("link", name="B").click()
    assert seen(source) == ["b"], "nothing is changed for what is there"


@pytest.mark.browser
def test_a_view_stands_in_the_address_and_comes_back_from_it(filtered):
    filtered.get_by_label("Verdict").select_option("partly")
    filtered.get_by_label("Words").fill("carry")
    filtered.get_by_label("Order").select_option("far")
    assert parse_qs(urlsplit(filtered.url).query) == {"verdict": ["partly"], "words": ["carry"], "order": ["far"]}
    filtered.reload()
    filtered.get_by_text("1 of 4 claims").wait_for()
    assert seen(filtered) == ["d"] and filtered.get_by_label("Verdict").input_value() == "partly"
    filtered.get_by_role("button", name="Show all").click()
    filtered.get_by_text("4 of 4 claims").wait_for()
    assert filtered.url.endswith("page.html")


@pytest.mark.browser
def test_an_address_that_asks_for_what_there_is_not_shows_all(filtered):
    filtered.goto("page.html?verdict=never&order=never")
    filtered.get_by_text("4 of 4 claims").wait_for()
    assert seen(filtered) == ["a", "b", "d"]
