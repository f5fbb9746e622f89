"""Coq accepts the proofs of chapter 72, without axioms, and its contexts are those of the certificates."""

import importlib.util
import json
import shutil
from pathlib import Path

import pytest

from arithlib.certify import checker

PROOFS = Path(__file__).parents[2] / "proofs"
SPECIFICATION = importlib.util.spec_from_file_location("check_proofs", PROOFS / "check.py")
check = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(check)

needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason="Coq is not installed")


def test_the_record_is_of_these_proofs_and_names_the_contexts_of_checker_and_certificates():
    record = json.loads(check.RECORD.read_text())
    assert record["sources"] == check.digest_of_sources(), "python3 proofs/check.py --record"
    lines = [context + token for context, token in checker.contexts().items()]
    assert record["contexts"] == {"count": len(lines), "sha256": checker.sha256_of(lines)}
    assert check.others(record["contexts"]) == []
    assert check.others(record["contexts"] | {"count": 1})


@needs_coq
def test_coq_accepts_the_proofs_and_they_rest_on_no_axiom():
    recorded = json.loads(check.RECORD.read_text())
    found = check.prove()
    assert {**found, "coq": ""} == {**recorded, "coq": ""}
    assert {"adds_all_numbers", "adds_if_masked", "table_is_what_occurs"} <= {*found["closed"]}


@needs_coq
@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        ("Model", "(j <=? S i).", "(j <=? S (S i)).", "does not accept Model.v"),  # a wider window
        ("Numbers", "Proof. destruct d, e; simpl; congruence. Qed.", "Admitted.", "rests on more"),  # a gap
    ],
)
def test_a_wider_window_and_a_gap_are_noticed(tmp_path, file, old, new, problem):
    for name in check.FILES:
        shutil.copy(PROOFS / f"{name}.v", tmp_path)
    changed = tmp_path / f"{file}.v"
    text = changed.read_text()
    assert text.count(old) == 1
    changed.write_text(text.replace(old, new))
    report, _, listing = (tmp_path / "Report.v").read_text().partition("Set Printing")
    assert listing  # of all contexts, for which nothing here waits
    (tmp_path / "Report.v").write_text(report)
    with pytest.raises(RuntimeError, match=problem):
        check.prove(tmp_path)
