"""The ledger itself: which claims it holds, and that each can be read, tested and judged."""

import json
import re
from collections import Counter
from collections.abc import Mapping

import pytest

from bookkit.build.pages import read_not_compared
from bookkit.claims import (
    BECAUSE,
    NOT_ATTEMPTED,
    REPRODUCED,
    STATISTICS,
    load_claims,
    names,
    read_records,
    repo_root,
)

CLAIMS = load_claims()
LEDGER = sorted((repo_root() / "book" / "claims").glob("*.yaml"))
OF_THE_SOURCES = [claim for claim in CLAIMS.values() if claim.source.isdigit()]
WITH_RULE = [claim for claim in CLAIMS.values() if claim.rule]
SOURCE_OF = {"G": "000", "P": "000", "Q": "000", "H": "001", "A": "002", "L": "003", "M": "004"}


def test_the_five_sources_have_263_claims_numbered_without_gaps():
    counts = {"G": 17, "P": 67, "Q": 12, "H": 35, "A": 35, "L": 53, "M": 44}
    expected = [f"{letter}-{i:02}" for letter, count in counts.items() for i in range(1, count + 1)]
    assert [claim.id for claim in OF_THE_SOURCES] == expected
    assert len(expected) == 263


def test_a_file_holds_the_claims_of_the_source_it_is_named_for():
    import yaml

    for path in LEDGER:
        assert {row["source"] for row in yaml.safe_load(path.read_text(encoding="utf-8"))} == {path.stem}


def test_every_claim_stands_under_its_own_source():
    assert all(claim.source == SOURCE_OF[claim.id[0]] for claim in OF_THE_SOURCES)


def test_claims_of_other_papers_come_last_and_have_ids_of_their_own():
    others, papers = list(CLAIMS.values())[263:], {}
    for claim in others:
        papers.setdefault(claim.source, []).append(claim.id)
    letters = {source: ids[0].partition("-")[0] for source, ids in papers.items()}
    assert len({*letters.values(), *SOURCE_OF}) == len(letters) + len(SOURCE_OF)
    for source, ids in papers.items():
        assert ids == [f"{letters[source]}-{i:02}" for i in range(1, len(ids) + 1)]


def test_a_paper_with_claims_of_its_own_is_in_the_bibliography_under_that_key():
    bibliography = (repo_root() / "book" / "references.bib").read_text(encoding="utf-8")
    keys = set(re.findall(r"^@\w+\{(\w+),", bibliography, flags=re.MULTILINE))
    assert {claim.source for claim in CLAIMS.values() if not claim.source.isdigit()} <= keys


def test_tiers_say_what_an_honest_test_needs():
    assert Counter(claim.tier for claim in OF_THE_SOURCES) == {"C": 181, "G": 51, "M": 31}
    assert {claim.tier for claim in CLAIMS.values()} == {"C", "G", "M"}


def test_a_question_has_an_answer_for_each_verdict_that_finds_one():
    """ "Reproduced" says nothing to a question."""
    asked = {claim.id for claim in CLAIMS.values() if claim.statement.endswith("?")}
    assert asked == {f"Q-{n:02}" for n in range(1, 13)} == {claim.id for claim in CLAIMS.values() if claim.answers}
    assert all({*CLAIMS[id].answers} == {"reproduced", "partly"} for id in asked)


@pytest.mark.parametrize("key", ["section", "published", "chapter"])
def test_every_claim_says_where_it_stands_even_if_the_answer_is_null(key):
    import yaml

    entries = [row for path in LEDGER for row in yaml.safe_load(path.read_text(encoding="utf-8"))]
    assert [entry["id"] for entry in entries if key not in entry] == []


def test_no_claim_waits_for_a_chapter_but_the_one_that_no_experiment_decides():
    waiting = [claim for claim in CLAIMS.values() if not claim.chapter]
    assert [claim.id for claim in waiting] == ["M-27"]
    assert "not testable" in waiting[0].test


def test_a_claim_has_a_rule_exactly_if_a_chapter_tests_it():
    assert [claim.id for claim in CLAIMS.values() if bool(claim.rule) != bool(claim.chapter)] == []


# Nothing is trained for these, or they have one value for all that is.
UNTRAINED = {"G-03", "G-05", "P-13", "P-14", "P-35", "P-36", "P-61", "Q-05"}


@pytest.mark.built
@pytest.mark.parametrize(
    ("least", "ids"),
    [
        (3, [claim.id for claim in OF_THE_SOURCES if claim.source == "000"]),
        (10, ["P-01", "P-02", "P-03", "P-33", "P-34", "P-55"]),  # formats and thresholds that are compared
    ],
)
def test_a_claim_of_the_survey_is_judged_by_enough_trained_models(least, ids):
    records = read_records(repo_root() / "book" / "_build" / "records")
    few, counted = {}, set()
    for id in ids:
        for name, values in records[id]["measured"].items():
            per = CLAIMS[id].per
            noun = per.get(name) if isinstance(per, Mapping) else per
            if isinstance(values, list) and noun in {"adder", "model", "network", "run", "seed"}:
                counted.add(id)
                few |= {f"{id}, {name}": len(values)} if len(values) < least else {}
    assert few == {} and counted == {*ids} - UNTRAINED


def read_by(claim) -> set[str]:
    """The names in the rule of a claim."""
    return {name for expression in claim.conditions().values() for name in names(expression, claim.id)}


def words_of(sentence: str) -> set[str]:
    return set(re.findall(r"\w+", sentence))


def test_the_test_of_a_claim_names_every_measurement_its_rule_reads():
    unnamed = {}
    for claim in WITH_RULE:
        measured, words = (
            read_by(claim) - claim.published_names().keys() - {*STATISTICS, "values"},
            words_of(claim.test),
        )
        missing = {name for name in measured if not words & {name, name.rpartition("_")[0]}}
        unnamed |= {claim.id: missing} if missing else {}
    assert unnamed == {}


def test_what_labels_and_counts_are_given_for_is_named_by_the_test():
    unnamed = {}
    for claim in WITH_RULE:
        given = {name for names in (claim.labels, claim.per) if isinstance(names, Mapping) for name in names}
        unnamed |= {claim.id: given - words_of(claim.test)} if given - words_of(claim.test) else {}
    assert unnamed == {}


def test_every_rule_says_why_its_thresholds_are_what_they_are():
    assert [claim.id for claim in WITH_RULE if len(claim.rule.get(BECAUSE, "").split()) < 3] == []


def test_a_rule_does_not_mix_statistics_of_one_list_with_named_measurements():
    lists = {*STATISTICS, "values"}
    named = {claim.id: read_by(claim) - claim.published_names().keys() - lists for claim in WITH_RULE}
    assert [claim.id for claim in WITH_RULE if named[claim.id] and read_by(claim) & lists] == []


def test_a_verdict_that_falls_short_is_explained():
    path = repo_root() / "tests" / "baselines" / "verdicts.json"
    verdicts = {key.partition("/")[2]: verdict for key, verdict in json.loads(path.read_text("utf-8")).items()}
    short = [id for id, verdict in verdicts.items() if verdict not in (REPRODUCED, NOT_ATTEMPTED)]
    assert len(short) > 100
    assert [id for id in short if len((CLAIMS[id].remark or "").split()) < 8] == []


def test_a_published_number_is_compared_with_ours_or_says_why_not():
    reasons = read_not_compared(repo_root())
    excused = Counter(id for entry in reasons for id in entry["claims"])
    numbered = {claim.id for claim in CLAIMS.values() if claim.value is not None and claim.rule}
    compared = {claim.id for claim in CLAIMS.values() if claim.compare}
    assert numbered - compared == excused.keys() and set(excused.values()) == {1}
    assert len(compared) >= 100 and all(len(entry["reason"].split()) > 8 for entry in reasons)


def test_the_ledger_stays_readable_in_a_diff():
    lines = [line for path in LEDGER for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line for line in lines if len(line) > 110 or line != line.rstrip()] == []
