"""The lists of what the sources show, and the pages that are made of them."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from bookkit.build import sources
from bookkit.build.pages import source_numbers
from bookkit.build.sources import (
    HOW,
    Found,
    Item,
    Section,
    Slip,
    Source,
    cards_markdown,
    errors_page,
    read_source,
    source_page,
)  # fmt: skip
from bookkit.claims import ClaimError, Scale, load_claims

ROOT = Path(__file__).resolve().parents[2]
BASELINES = {path.stem: path for path in (ROOT / "tests" / "baselines").glob("**/*.json")}
CLAIMS = load_claims(ROOT / "book" / "claims")
CHAPTERS = {path.stem: path for path in (ROOT / "notebooks").glob("*.ipynb")}
GOOD = Source(
    picture="norms",
    says="Networks hold numbers on circles.",
    in_brief="Its circles are there.",
    ours="Networks of its size, trained here.",
    headline=("M-08",),
    sections=(Section("5 Circles", ("M-08",), (Item("Figure 5", "Norms & more.", ("norms",), ("M-12",)),)),),
    errors=(Slip("§2", "It is one more.", "arithmetic", "up to P < 113", ("M-08",), ("norms",)),),
)


def found(notebook=None):
    """What the records would say of two claims, M-08 measured in this notebook or in none, and of one figure."""
    verdicts = {"M-08": ("reproduced" if notebook else "not attempted", notebook), "M-12": ("not attempted", None)}
    empty = dict.fromkeys(("figure", "scale", "beside"))
    rows = {
        id: {"id": id, "source": "004", "verdict": verdict, "notebook": where} | empty
        for id, (verdict, where) in verdicts.items()
    }
    return Found({id: CLAIMS[id] for id in rows}, rows, {}, {"norms": ("11_circles", "Bars.")})


def problems(source):
    claims = {id: CLAIMS[id] for id in ("M-08", "M-12")}
    return source.problems("004", claims, {"norms": ...}, {"11_circles": ...})


# --- the lists ---


@pytest.mark.parametrize("number", source_numbers(ROOT))
def test_nothing_in_a_source_lacks_a_counterpart_or_a_reason(number):
    source = read_source(ROOT / "book" / "sources" / f"{number}.yaml")
    assert source.problems(number, CLAIMS, BASELINES, CHAPTERS) == []
    for slip in source.errors:
        assert slip.claims, f"{slip.where}: nothing shows it"


def test_a_list_without_a_fault_has_no_problems():
    assert problems(GOOD) == []


def test_a_source_without_a_heading_is_told_where_it_goes():
    first, *_ = GOOD.problems("lee2024", {}, {"norms": ...}, {"11_circles": ...})
    assert first == "book/sources/lee2024.yaml: SOURCES in book/bookkit/build/pages.py has no heading for it"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"headline": ("M-99",)}, "there is no claim M-99"),
        ({"picture": "waves"}, "there is no figure waves"),
        ({"errors": (replace(GOOD.errors[0], how="luck"),)}, "§2: how = 'luck' is none of arithmetic, code"),
        ({"errors": (replace(GOOD.errors[0], figures=("waves",)),)}, "there is no figure waves"),
        ({"sections": (*GOOD.sections, Section("6", items=(Item("Table 1", "Numbers."),)))}, "Table 1 has neither"),
        ({"sections": GOOD.sections * 2}, "Figure 5 stands twice"),
        ({"sections": (Section("5", ("M-08",)),)}, "claim M-12 is in no section"),
        (
            {"sections": (*GOOD.sections, Section("6", items=(Item("T", "x", chapters=("9",)),)))},
            "no chapter 9",
        ),
    ],
)
def test_what_is_missing_or_leads_nowhere_is_found(change, problem):
    (one,) = problems(replace(GOOD, **change))
    assert one.startswith("book/sources/004.yaml: ") and problem in one


def test_a_list_of_another_form_is_refused(tmp_path):
    path = tmp_path / "004.yaml"
    path.write_text(
        "picture: norms\nsays: So.\nin_brief: So.\nours: Ours.\nheadline: [M-08]\n"
        "sections: [{title: 5, colour: red}]\n"
    )
    with pytest.raises(ClaimError, match=r"book/sources/004\.yaml cannot be read: .*colour"):
        read_source(path)


# --- the pages ---


def test_an_error_stands_with_its_words_how_it_was_found_and_what_shows_it():
    page = errors_page({"004": GOOD}, [], found("10_grokking"))
    assert "we found 1 " in page
    assert f"| {HOW['arithmetic']} | 1 |" in page and HOW["code"] not in page
    assert "1. **§2.** It says: <q>up to P &lt; 113</q>. It is one more." in page
    assert "<small>Shown: {numref}`norms`, " in page
    assert '<a href="../notebooks/10_grokking.html#claim-m-08">M-08 in chapter 10</a>' in page


def test_what_was_only_read_leads_to_the_page_of_its_source():
    page = errors_page({"004": GOOD}, [], found())
    assert 'by reading alone, at <a href="source-004.html#claim-m-08">M-08</a>' in page


def test_our_own_mistakes_stand_at_the_end():
    page = errors_page({"004": GOOD}, [{"text": "**Ours.** We said so.", "claims": ["M-12"]}], found())
    head, _, foot = page.partition("## Where we were wrong")
    assert "1. **Ours.** We said so. <small>Shown: " in foot and "Ours" not in head


def test_the_page_of_a_source_has_its_parts_in_order():
    page = source_page("004", GOOD, found("10_grokking"), {})
    headings = re.findall(r"^#+ .*$", page, re.MULTILINE)
    assert headings[1:] == [
        "## Main claims that hold, in full or in part",
        "## What is wrong in it",
        "## Section by section",
        "## 5 Circles",
        "### Figure 5",
    ]
    assert page.index(GOOD.says) < page.index(GOOD.ours) < page.index("## ")
    assert "{image} /figures/norms.svg" in page and "Norms &amp; more." in page
    assert "It says: <q>up to P &lt; 113</q>. It is one more." in page  # an answer needs what it answers
    assert "[where we were wrong](errors.md#where-we-were-wrong)" in page


def test_a_claim_of_an_item_is_named_again_by_other_sections_alone():
    (section,) = GOOD.sections
    for sections, again in (
        ((replace(section, claims=("M-08", "M-12")),), 0),
        ((section, Section("6 Petals", ("M-12",))), 1),
    ):
        assert source_page("004", replace(GOOD, sections=sections), found(), {}).count("Above: ") == again


def test_the_claims_of_a_source_can_be_chosen_among_once_its_main_ones_were_listed():
    page = source_page("004", GOOD, found("10_grokking"), {})
    head, filtered, sections = page.partition("<claim-filter></claim-filter>")
    assert filtered and "that hold" in head and "## 5 Circles" in sections and "data-verdict" not in head
    chosen_by = 'data-source="Source 004" data-verdict="reproduced" data-chapter="10_grokking"'
    assert f'id="claim-m-08" {chosen_by}>' in sections


def test_the_front_page_has_a_card_of_each_source(monkeypatch, tmp_path):
    monkeypatch.setattr(sources, "read_sources", lambda root: {"004": GOOD})
    monkeypatch.setattr(sources.Found, "under", lambda *_: found("10_grokking"))
    cards = cards_markdown(tmp_path, tmp_path)
    assert cards.count("{grid-item-card}") == 1 and "{ref}`LLM arithmetic <paper-004>`" in cards
    assert "{image} /figures/norms.svg" in cards and "target: ../notebooks/11_circles.html#norms" in cards
    assert "Its circles are there. {cite:t}`ryanrtjj2025`, {ref}`2 claims <source-004>`:" in cards
    assert 'aria-label="1 reproduced, 1 not attempted"' in cards


def test_what_only_its_own_numbers_say_is_listed_apart():
    rows = found("10_grokking")
    rows.claims["M-12"] = replace(rows.claims["M-12"], setting=None, basis="arithmetic")
    rows.rows["M-12"]["verdict"] = "partly"
    page = source_page("004", replace(GOOD, headline=("M-08", "M-12")), rows, {})
    assert "**What *ours* is.** Networks of its size, trained here." in page
    apart = page.partition("## What holds in its own numbers, text or code")[2].partition("\n## ")[0]
    assert "#claim-m-12" in apart and "#claim-m-08" not in apart


def test_what_fails_in_its_own_numbers_is_listed_apart():
    rows = found("10_grokking")
    rows.claims["M-12"] = replace(rows.claims["M-12"], setting=None, basis="arithmetic")
    rows.rows["M-12"]["verdict"] = "refuted"
    page = source_page("004", GOOD, rows, {})
    assert "## What does not hold\n" not in page
    apart = page.partition("## What does not hold in its own numbers, text or code")[2].partition("\n## ")[0]
    assert "#claim-m-12" in apart


def test_a_question_has_its_answer_beside_the_verdict():
    rows = found("10_grokking")
    rows.claims["M-08"] = replace(
        rows.claims["M-08"], statement="Are there any?", answers={"reproduced": "Yes, five."}
    )
    assert "Are there any? Yes, five.</li>" in source_page("004", GOOD, rows, {})


def test_the_front_page_counts_all_verdicts(monkeypatch, tmp_path):
    monkeypatch.setattr(sources.Found, "under", lambda *_: found("10_grokking"))
    assert sources.tally_markdown(tmp_path, tmp_path) == ("The verdicts on [1 claims](scoreboard.md): 1 reproduced.")


@pytest.mark.parametrize(
    "scale, more", [(Scale("analogue", {}), " (1 of them smaller or in a stand-in)"), (Scale("same setting", {}), "")]
)
def test_what_holds_in_part_because_ours_is_smaller_is_counted_apart(monkeypatch, tmp_path, scale, more):
    rows = found("10_grokking")
    rows.rows["M-08"] |= {"verdict": "partly", "scale": scale}
    monkeypatch.setattr(sources.Found, "under", lambda *_: rows)
    assert f"1 partly{more}." in sources.tally_markdown(tmp_path, tmp_path)


def test_of_what_is_refuted_the_page_says_why_where_it_lists_it():
    refuted = found("10_grokking")
    refuted.rows["M-12"]["verdict"] = "refuted"
    refuted.claims["M-12"] = replace(refuted.claims["M-12"], remark="The other way round.")
    listed = source_page("004", GOOD, refuted, {}).partition("## What does not hold")[2].partition("##")[0]
    assert "<small>The other way round.</small>" in listed


def test_what_is_refuted_is_listed_though_the_source_does_not_put_it_first():
    refuted = found("10_grokking")
    refuted.rows["M-12"]["verdict"] = "refuted"
    held, _, rest = source_page("004", GOOD, refuted, {}).partition("## What does not hold")
    assert "#claim-m-12" not in held and "#claim-m-12" in rest.partition("## What is wrong in it")[0]


def test_every_correction_names_claims_that_there_are():
    corrections = yaml.safe_load((ROOT / "book" / "corrections.yaml").read_text("utf-8"))
    assert corrections and all(entry["claims"] and {*entry["claims"]} <= {*CLAIMS} for entry in corrections)
