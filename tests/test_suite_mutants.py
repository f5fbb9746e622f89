"""The list of deliberate faults: each can be committed, and what was measured of it is about this list."""

import ast
import json
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "benchmarks"))
import mutants as runner  # noqa: E402

MUTANTS = yaml.safe_load((ROOT / "benchmarks" / "mutants.yaml").read_text(encoding="utf-8"))
FOUND = json.loads((ROOT / "benchmarks" / "mutants.json").read_text(encoding="utf-8"))


def test_every_fault_can_be_committed_and_leaves_a_program():
    for mutant in MUTANTS:
        text = (ROOT / mutant["file"]).read_text(encoding="utf-8")
        assert text.count(mutant["old"]) == 1, mutant
        assert ast.dump(ast.parse(text.replace(mutant["old"], mutant["new"]))) != ast.dump(ast.parse(text)), mutant


def test_a_fault_that_is_not_there_is_refused(tmp_path):
    (tmp_path / "sums.py").write_text("total = one + one\n")
    with pytest.raises(ValueError, match="holds 'one' 2 times: once is needed"):
        runner.apply(tmp_path, {"file": "sums.py", "old": "one", "new": "two"})
    runner.apply(tmp_path, {"file": "sums.py", "old": "one +", "new": "two +"})
    assert (tmp_path / "sums.py").read_text() == "total = two + one\n"


def test_tests_of_the_faulty_module_come_first():
    first, others = runner.test_files(ROOT, {"file": "arithlib/tasks/operands.py"})
    assert "tests/arithlib/test_operands.py" in first and "tests/arithlib/test_helix.py" in others
    assert all(path.startswith(("tests/arithlib", "tests/chapters")) for path in first + others)
    assert runner.test_files(ROOT, {"file": "book/bookkit/build/digest.py"})[0] == ["tests/bookkit/test_digest.py"]


def test_what_was_measured_is_about_these_faults():
    assert {mutant["about"] for mutant in MUTANTS} == set(FOUND)
    assert len(MUTANTS) == len(FOUND) >= 60
