"""The generated pages: every claim counted and shown, links that lead somewhere, nothing private."""

import getpass
import math
import platform
import re
from dataclasses import replace
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from bookkit.build import pages
from bookkit.build.comparison import distance, drawing, left_out
from bookkit.build.pages import (
    FILTER,
    NUMBER,
    SOURCES,
    environment_page,
    findings,
    machine,
    read_findings,
    readable,
    scaled_badge,
    scoreboard_page,
)  # fmt: skip
from bookkit.claims import Claim, ClaimError, Measurement, Scale, load_claims
from bookkit.judge import Verdict, badge

ROOT = Path(__file__).parents[2]


def a_row(id="M-08", verdict="reproduced", **changes) -> dict:
    row = {"id": id, "source": "004", "statement": "Loss < 1 & falls.", "published": "about 4,000 epochs"}
    row |= {"measured": "4,100 ± 141 epochs", "n": 2, "spread": "n = 2 seeds, 4,000 to 4,200", "verdict": verdict}
    row |= {
        "beside": [("value", 4000, 4100)],
        "scale": Scale("reduced", {"weights": 0.01}),
        "notebook": "10_grokking",
        "figure": "loss-curves",
    }
    return row | changes


def claims_of(rows: list[dict]) -> dict[str, Claim]:
    rule = {"because": "One run < two.", "reproduced": "2/3 * value <= median", "otherwise": "refuted"}
    common = {
        "value": 4000,
        "test": "Measured is a list & its median.",
        "tier": "C",
        "basis": "no setting given",
        "rule": rule,
    }
    return {row["id"]: Claim(row["id"], row["source"], row["statement"], **common) for row in rows}


def page_of(rows: list[dict]) -> str:
    return scoreboard_page(rows, claims_of(rows))


OPEN = dict.fromkeys(("measured", "n", "spread", "scale", "beside", "notebook", "figure"))
ROWS = [
    a_row("G-01", "not attempted", source="000", **OPEN),
    a_row("M-08"),
    a_row("M-09", "refuted", figure=None, published=None),
    a_row("M-10", "not attempted", **OPEN),
    a_row("N-01", "partly", source="smith1999", scale=Scale("proof", {})),
]


@pytest.fixture
def page() -> BeautifulSoup:
    return BeautifulSoup(page_of(ROWS), "html.parser")


def test_the_bars_say_in_words_what_they_show(page):
    bars = [bar["aria-label"] for bar in page.select(".score-bar[role=img]")]
    assert bars[0] == "1 reproduced, 1 partly, 1 refuted, 2 not attempted"
    assert bars[1:] == ["1 reproduced, 1 refuted, 1 not attempted", "1 partly", "1 not attempted"]
    styles = [span["style"] for span in page.select(".score-bar")[0].find_all("span")]
    assert [style.split(";")[0] for style in styles] == ["flex:1", "flex:1", "flex:1", "flex:2"]
    for bar, counts in zip(bars, page.select(".score-counts"), strict=True):
        assert ", ".join(item.text for item in counts.find_all("li")) == bar


def entries(list_) -> dict[str, str]:
    return dict(zip((dt.text for dt in list_.find_all("dt")), (dd.text for dd in list_.find_all("dd")), strict=True))


def test_a_measured_claim_says_all_that_was_found_and_links_to_where(page):
    card = page.find(id="claim-m-08")
    verdict = "✓\N{NO-BREAK SPACE}reproduced (much smaller: 1/100 of the weights)"
    assert card.find("p").text == f"{verdict} M-08 Loss < 1 & falls."
    assert entries(card.dl) == {
        "published": "about 4,000 epochs",
        "ours": "4,100 ± 141 epochs (n = 2 seeds, 4,000 to 4,200)",
        "compared": "4,000 published, 4,100 here",
        "scale": "much smaller: 1/100 of the weights",
        "measured in": "chapter 10, its figure",
    }
    assert [link["href"] for link in card.find_all("a")] == [
        "../notebooks/10_grokking.html#claim-m-08",
        "../notebooks/10_grokking.html#loss-curves",
    ]


def test_what_an_appendix_measures_is_said_to_stand_in_one():
    card = BeautifulSoup(page_of([a_row(notebook="90_sizes")]), "html.parser").find(id="claim-m-08")
    assert entries(card.dl)["measured in"] == "appendix 90, its figure"


@pytest.mark.parametrize(
    ("scale", "words", "chosen_by"),
    [
        (Scale("proof", {}), "proof", "proof"),
        (Scale("same setting", {"weights": 1.0}), "same setting", "same setting"),
        (Scale("reduced", {"weights": 1 / 75}), "reduced: 1/75 of the weights", "reduced"),
        (Scale("reduced", {"weights": 1 / 99}), "reduced: 1/99 of the weights", "reduced"),
        (Scale("reduced", {"weights": 1, "examples": 0.01}), "much smaller: 1/100 of the examples", "much smaller"),
        (Scale("reduced", {"weights": 0.002, "data": 0.01}), "much smaller: 1/500 of the weights", "much smaller"),
    ],
)
def test_a_badge_says_at_what_scale_and_by_how_much(scale, words, chosen_by):
    row = a_row(scale=scale)
    assert scaled_badge(row) == f"{badge('reproduced')} <small>({words})</small>"
    card = BeautifulSoup(page_of([row]), "html.parser").find(id="claim-m-08")
    assert card["data-scale"] == chosen_by and entries(card.dl)["scale"].startswith(chosen_by)


@pytest.mark.parametrize(
    "factor, words", [(1 / 75, "1/75 of the weights"), (0.01, "much smaller: 1/100 of the weights")]
)
def test_a_badge_does_not_say_twice_that_a_scale_is_reduced(factor, words):
    unseen = scaled_badge(a_row(verdict="not seen at reduced scale", scale=Scale("reduced", {"weights": factor})))
    assert unseen == f"{badge('not seen at reduced scale')} <small>({words})</small>"


def test_a_badge_without_a_measurement_says_no_scale():
    assert scaled_badge(a_row(verdict="not attempted", **OPEN)) == badge("not attempted")


def test_the_scoreboard_says_what_its_badges_mean_by_small():
    assert "*reduced* where ours has less than 1/2 of" in page_of(ROWS)
    assert "*much smaller* at 1/100 or less" in page_of(ROWS)


def test_a_remark_says_why_ours_differs():
    claims = claims_of([a_row()])
    card = scoreboard_page([a_row()], {"M-08": replace(claims["M-08"], remark="One run & no more.")})
    assert entries(BeautifulSoup(card, "html.parser").find(id="claim-m-08").dl)["remark"] == "One run & no more."


def test_a_question_has_its_answer_first():
    claims = claims_of([a_row()])
    asked = replace(claims["M-08"], answers={"reproduced": "Yes & no."})
    card = BeautifulSoup(scoreboard_page([a_row()], {"M-08": asked}), "html.parser").find(id="claim-m-08")
    assert next(iter(entries(card.dl).items())) == ("answer", "Yes & no.")
    said = str(Verdict(asked, Measurement.of([4000, 4200]), "reproduced", Scale("proof", {})))
    assert said.startswith("M-08 reproduced: Loss < 1 & falls. Yes & no. Source: ")


def test_a_measured_claim_says_how_it_is_decided(page):
    fold = page.find(id="claim-m-08").details
    assert fold.summary.text == "how it is decided" and not fold.has_attr("open")
    assert fold.p.text == "Measured is a list & its median."
    assert entries(fold.dl) == {
        "reproduced if": "2/3 × 4,000 ≤ median",
        "otherwise": "refuted",
        "because": "One run < two.",
    }


def test_a_rule_of_the_book_reads_without_names_of_published_numbers():
    rules = [claim for claim in load_claims(ROOT / "book" / "claims").values() if claim.rule]
    assert len(rules) > 200
    for claim in rules:
        for expression in claim.conditions().values():
            text = readable(expression, claim.published_names())
            assert not claim.published_names().keys() & set(re.findall(r"\w+", text)), claim.id
            assert not re.search(r"_(mean|min|max|median|sd|n)\b|[<>=!]=|[*]", text), claim.id


def test_a_number_that_was_measured_once_has_no_empty_brackets():
    text = page_of([a_row(measured="12,769 pairs", spread="")])
    assert "<dd>12,769 pairs</dd>" in text


def test_a_refuted_claim_is_shown_like_a_reproduced_one(page):
    confirmed, refuted = page.find(id="claim-m-08"), page.find(id="claim-m-09")
    assert refuted["class"] == confirmed["class"] and not refuted.find_parent("details")
    assert refuted.find("p").strong.text == "≠\N{NO-BREAK SPACE}refuted"
    assert "no number" in refuted.text


def test_open_claims_are_folded_below_their_source(page):
    folds = [fold for fold in page.find_all("details") if not fold.find_parent(class_="claim")]
    assert [fold.summary.text for fold in folds] == ["1 not attempted", "1 not attempted"]
    assert [fold.li.strong.text for fold in folds] == ["M-10", "G-01"]
    assert all("Measured is a list & its median." in fold.li.text for fold in folds)  # why, as the ledger says it


def test_every_claim_has_one_anchor(page):
    anchors = [tag["id"] for tag in page.find_all(id=True)]
    assert anchors == ["claim-m-08", "claim-m-09", "claim-m-10", "claim-n-01", "claim-g-01"]


def test_sources_are_sections_those_with_results_first_and_unknown_ones_keep_their_key():
    text = page_of(ROWS)
    headings = re.findall(r"^## (.*)", text, re.MULTILINE)
    assert headings == ["Source 004: LLM arithmetic", "smith1999", f"Source 000: {SOURCES['000'][1]}"]
    assert re.findall(r"{cite:t}`(.*)`", text) == ["ryanrtjj2025", "smith1999", "loeber2024"]


def test_every_source_of_the_book_is_in_its_bibliography():
    bibliography = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")
    keys = {SOURCES.get(claim.source, (claim.source,))[0] for claim in load_claims(ROOT / "book" / "claims").values()}
    assert not [key for key in keys if f"{{{key}," not in bibliography]


def test_the_references_say_which_number_stands_for_which_source():
    text = (ROOT / "book" / "references.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \*\*(\d+)\*\* *(.*): {cite:t}`(\w+)`$", text, re.MULTILINE)
    assert listed == [(number, title, key) for number, (key, title) in SOURCES.items() if number.isdigit()]


def test_no_html_is_broken_by_a_blank_line_or_by_the_text_of_a_claim():
    text = page_of([a_row(statement="one\n\ntwo <b>|three</b>")])
    assert "one two &lt;b&gt;|three&lt;/b&gt;" in text


@pytest.mark.parametrize("text", [page_of(ROWS), environment_page([], {})])
def test_pages_need_no_script_and_no_other_host(text):
    """The filter is there for whoever runs scripts; every claim stands on the page itself."""
    script = f'<script type="module">\n{FILTER.read_text("utf8")}</script>'
    assert script.count("<script") == script.count("</script") == 1 and "import" not in script
    assert "<script" not in text.replace(script, "") and "http" not in text and "<table" not in text


def test_a_claim_carries_what_the_filter_chooses_by(page):
    data = {name: value for name, value in page.find(id="claim-m-08").attrs.items() if name.startswith("data-")}
    assert float(data.pop("data-distance")) == pytest.approx(math.log10(4100 / 4000))
    assert data == {
        "data-source": "Source 004",
        "data-verdict": "reproduced",
        "data-scale": "much smaller",
        "data-chapter": "10_grokking",
    }
    open_claim = page.find(id="claim-g-01")
    assert open_claim["data-verdict"] == "not attempted" and not open_claim.has_attr("data-chapter")


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([], None),
        (None, None),
        ([("value", 5, 5), ("other", 0, 0)], 0),
        ([("value", 5, 50), ("other", 5, 0.05)], 2),
        ([("value", -5, -50)], 1),
        ([("value", 5, 0)], math.inf),
        ([("value", 5, -5)], math.inf),
    ],
)
def test_the_distance_is_the_largest_factor(pairs, expected):
    assert distance(pairs) == (expected if expected is None else pytest.approx(expected))


def test_every_pair_is_a_mark_that_says_what_it_is_and_leads_to_its_claim():
    rows = [a_row(beside=[("value", 4000, 4100), ("p_<16", 1e-12, 0)]), a_row("N-01", "partly", beside=None)]
    svg = BeautifulSoup(drawing(rows), "html.parser").svg
    assert [mark["href"] for mark in svg.find_all("a")] == ["#claim-m-08"] * 2
    assert [mark.title.text for mark in svg.find_all("a")] == [
        "M-08: published 4,000, ours 4,100 (reproduced)",
        "M-08, p <16: published 1e−12, ours 0 (reproduced)",
    ]
    first, second = svg.select("a text")
    across = [float(mark["x"]) for mark in (first, second)]
    below = [float(mark["y"]) for mark in (first, second)]
    assert across[0] > across[1] and below[0] < below[1], "larger numbers are further right, and higher"
    assert svg["aria-label"].startswith("2 published numbers and ours on logarithmic axes: 1 pairs")


@pytest.mark.parametrize("pairs", [[], [("value", 1, 1)], [("value", 0, 0)]])
def test_a_drawing_of_few_pairs_has_a_mark_for_each_and_none_at_all_without(pairs):
    svg = BeautifulSoup(drawing([a_row(beside=pairs)]), "html.parser")
    assert len(svg.find_all("a")) == len(pairs) and bool(svg.find("svg")) == bool(pairs)


def test_a_negative_number_stands_at_the_edge_where_zero_does():
    def height(ours):
        svg = BeautifulSoup(drawing([a_row(beside=[("value", 34, ours), ("value", 10, 10)])]), "html.parser")
        return svg.find("text", class_="mark")["y"]

    assert height(-92) == height(0) != height(92)


def test_what_is_not_drawn_says_why():
    page = scoreboard_page(ROWS, claims_of(ROWS), (), [{"reason": "Other & else.", "claims": ["M-08", "M-09"]}])
    fold = BeautifulSoup(page, "html.parser").find("details")
    assert fold.summary.text.startswith("2 more claims have a published number")
    assert fold.li.text == "Other & else. M-08, M-09" and fold.a["href"] == "#claim-m-08"
    assert left_out([]) == ""


RUN = {
    "notebook": "10_grokking",
    "status": "ok",
    "started": "2026-01-31T12:34:56+00:00",
    "seconds": 93.4,
    "peak_memory_mb": 1234.5,
    "parameters": {"retrain": False},
    "threads": 2,
    "versions": {"python": "3.11.7", "torch": "2.13.0"},
    "device": "cpu",
    "error": None,
}


def test_the_environment_page_says_time_memory_and_status_of_each_notebook():
    second = RUN | {"notebook": "11_circles", "versions": {"python": "3.13.1"}, "peak_memory_mb": None, "threads": 1}
    text = environment_page([RUN, second], {"processor": "A chip"})
    page = BeautifulSoup(text, "html.parser")
    first, other = page.select(".claim")
    assert [dd.text for dd in first.find_all("dd")] == [
        "ok",
        "1 min 33 s on 2 threads",
        "1,234 MB",
        "retrain = False",
        "2026-01-31 12:34 UTC",
    ]
    assert "(made-10_grokking)=\n### [10_grokking](../notebooks/10_grokking.ipynb)\n" in text
    assert "1 min 33 s on 1 thread" in other.text and "not known here" in other.text
    assert "2 notebooks, 3 min 7 s in all" in text
    assert "- **python:** 3.11.7, 3.13.1" in text and "- **processor:** A chip" in text


def test_the_machine_is_described_without_names_of_hosts_users_or_folders():
    facts = machine()
    assert facts.keys() >= {"processor", "cores", "system"} and all(facts.values())
    words = re.findall(r"\S+", " ".join(facts.values()))
    assert not {platform.node(), getpass.getuser(), str(Path.home()), str(Path.cwd())} & set(words)


MEASURED = {
    "M-08": {"measured": [4000, 4200]},
    "A-27": {"measured": {"as_source": [0.5, 0.7], "digits": 1_000_000}},
}


def a_finding(text):
    return findings([text], MEASURED, load_claims())


def test_the_numbers_of_a_finding_are_those_of_the_records():
    assert a_finding("from {M-08.min:,} to\n {M-08.max:,}") == "1. from 4,000 to 4,200"
    assert (
        a_finding("{A-27.as_source_mean:.2f}, said to be {A-27.published_mean_accuracy}")
        == "1. 0.60, said to be 0.613"
    )
    assert a_finding("{A-27.digits:,}") == "1. 1,000,000"


@pytest.mark.parametrize(
    "text, message",
    [
        ("{M-09.mean}", "M-09 was not measured"),
        ("{M-08.digits}", "M-08 has no digits, only published_value, "),
    ],
)
def test_a_finding_that_nothing_says_is_refused(text, message):
    with pytest.raises(ClaimError, match=message):
        a_finding(text)


def test_no_number_of_the_front_page_is_typed():
    found = read_findings(ROOT)
    assert len(found) == 10
    for text in (entry[part] for entry in found for part in ("line", "text")):
        assert NUMBER.search(text)
        assert not re.search(r"\d", re.sub(r"\]\(.*?\)", "", NUMBER.sub("", text))), text


def test_a_finding_is_told_in_a_line_and_in_full(monkeypatch, tmp_path):
    late = {"title": "Late", "line": "[after {M-08.max:,} steps](a.md)", "text": "It takes {M-08.max:,}."}
    monkeypatch.setattr(pages, "read_findings", lambda root: [late])
    monkeypatch.setattr(pages, "read_records", lambda folder: MEASURED)
    assert pages.headlines_markdown(ROOT, tmp_path) == "1. **Late:** [after 4,200 steps](a.md)."
    assert pages.findings_markdown(ROOT, tmp_path) == "1. **Late.** It takes 4,200."
