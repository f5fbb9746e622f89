"""What was trained for a claim, there and here: the list, and the line that the pages make of it."""

import fnmatch
import json
import re
from pathlib import Path

import pytest

from bookkit.build.project import Project
from bookkit.build.runs import FIELDS, Ours, Runs, Theirs, in_words, known, where
from bookkit.claims import Claim, ClaimError, load_claims

ROOT = Path(__file__).resolve().parents[2]
CLAIMS = load_claims(ROOT / "book" / "claims")
RUNS = Runs.under(ROOT)
SETTING = {"weights": 100, "examples": 1000}
CLAIM = Claim("M-08", "004", "It learns.", "Train it.", "C", setting=SETTING)


def note(**changes):
    settings = {"batch_size": 10, "seed": 0, "model": {"d_model": 64, "n_layers": 1, "n_loops": 12}}
    settings |= changes.pop("settings", {})
    return {"steps": 20, "seconds": 5400.0, "device": "cpu", "stack": 1, "settings": settings} | changes


def runs(**notes):
    theirs = Theirs(
        "004", SETTING, {"width": (1024, "d = 1024"), "loops": (16, "16 loops"), "layers": (1, "1 layer")}
    )
    return Runs((theirs,), (Ours(("wave-s?",), ("M-08",)),), notes)


# --- the list ---


def test_a_published_number_stands_in_the_words_that_are_quoted_for_it():
    for row in RUNS.theirs:
        for name, (number, said) in row.run.items():
            words = re.sub(r"(?<=\d)k\b", "000", said.replace(",", ""))
            assert str(number) in re.findall(r"\d+(?:\.\d+)?", words), (row.source, name)


def test_the_run_of_a_source_is_that_of_some_of_its_claims():
    for row in RUNS.theirs:
        assert any(row.of(claim) for claim in CLAIMS.values()), (row.source, row.setting)
        assert all(CLAIMS[id].source == row.source and CLAIMS[id].setting == row.setting for id in row.claims)
        assert row.run.keys() <= {*FIELDS}


def test_a_chapter_loads_the_runs_that_are_said_to_stand_behind_its_claims():
    listed = [id for row in RUNS.ours for id in row.claims]
    assert len(listed) == len({*listed}) >= 90
    notebooks = Project(ROOT).notebooks
    for row in RUNS.ours:
        for glob in row.runs:
            names = fnmatch.filter(RUNS.notes, glob)
            assert names, f"{glob}: no such run"
            for id in row.claims:
                loads = notebooks[CLAIMS[id].chapter]["checkpoints"]
                missing = [name for name in names if not any(fnmatch.fnmatch(name, other) for other in loads)]
                assert not missing, (id, missing)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("theirs: []\n", "cannot be read: 'ours'"),
        ("theirs: [{run: {depth: [1, one]}}]\nours: []\n", "cannot be read"),
    ],
)
def test_a_list_of_another_form_is_refused(tmp_path, text, message):
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "runs.yaml").write_text(text)
    with pytest.raises(ClaimError, match=message):
        Runs.under(tmp_path)


def test_a_quantity_that_nobody_knows_is_refused(tmp_path):
    (tmp_path / "book").mkdir()
    row = {"source": "004", "setting": SETTING, "run": {"depth": [1, "one"]}}
    (tmp_path / "book" / "runs.yaml").write_text(json.dumps({"theirs": [row], "ours": []}))
    with pytest.raises(ClaimError, match=r"unknown \['depth'\]; known are width, layers"):
        Runs.under(tmp_path)


# --- the line ---


def test_a_line_has_the_run_of_the_source_and_ours():
    line = runs(**{"wave-s0": note(), "wave-s1": note(settings={"seed": 1})}).line(CLAIM, None)
    assert line == (
        "the source's: width 1,024, layers × loops 1 × 16; "
        "ours: width 64, layers × loops 1 × 12, 20 steps, 2 seeds, 3 hours of a processor core"
    )


def test_what_is_not_known_is_left_out():
    other = Claim("M-99", "004", "It learns.", "Train it.", "C", setting={"weights": 5})
    assert runs().line(other, None) == "" == Runs().line(CLAIM, None)
    assert in_words(known([note(settings={"model": {"d_model": 8}})])) == "width 8, 20 steps, 1 seed, 1.5 hours"


def test_a_run_with_other_examples_than_were_recorded_is_found():
    some = runs(**{"wave-s0": note()})
    assert some.line(CLAIM, {"weights": 100, "examples": 200})
    with pytest.raises(ClaimError, match=r"wave-s\? have \[200\] examples, and claim M-08 was measured on 300"):
        some.line(CLAIM, {"weights": 100, "examples": 300})


def test_a_run_that_is_not_shipped_is_found():
    with pytest.raises(ClaimError, match=r"there is no shipped run wave-s\?"):
        runs(**{"wave-long": note()}).line(CLAIM, None)


def test_models_trained_as_one_share_their_seconds_and_a_study_has_many_seeds():
    stack = [note(stack=2, settings={"seed": seed}) for seed in (0, 1)]
    assert known(stack)["seconds"] == [5400.0] and known(stack)["seeds"] == [2]
    assert known([note(settings={"seeds": [0, 1, 2]}), note(settings={"seeds": [2, 3]})])["seeds"] == [4]


def test_a_gpu_is_said_to_be_one():
    assert where([note(), note(device="NVIDIA H100 80GB HBM3")]) == "a GPU" and where([note()]) == "a processor core"
