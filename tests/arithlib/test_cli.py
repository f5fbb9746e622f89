"""The command line says what it did, and what was wrong in one line."""

import subprocess
import sys

import pytest
import test_abacus_experiments

from arithlib import checkpoints, experiments
from arithlib.cli import main


def test_without_a_command_it_lists_the_commands(capsys):
    assert main([]) == 0
    shown = capsys.readouterr().out
    for command in ("list", "train", "add", "eval", "bench"):
        assert command in shown


def test_list_shows_experiments_and_where_their_weights_are(capsys):
    assert main(["list", "grokking-s*"]) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert len(lines) == 10 and lines[0].startswith("grokking-s0")
    # The heading is no experiment: programs that read the list do not get it.
    (heading,) = shown.err.splitlines()
    assert heading.index("what it is") == lines[0].index("the main model")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add", "nonsense", "1", "2"], "no experiment is called 'nonsense'"),
        (["train", "nonsense"], "no experiment is called 'nonsense'"),
        (["ship", "abacus-gpu-s0"], "runs/ holds no finished run of abacus-gpu-s0: train it first"),
        (["bench", "nonsense"], "no benchmark is called 'nonsense'"),
        (["add", "grokking-s0", "1", "113"], "adds residues 0 to 112"),
    ],
)
def test_a_problem_is_one_line_on_stderr(capsys, arguments, message):
    assert main(arguments) == 1
    shown = capsys.readouterr().err
    assert message in shown and shown.count("\n") == 1


def test_minutes_stop_a_run_which_the_same_command_continues(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(experiments.EXPERIMENTS, "abacus-tiny", test_abacus_experiments.TINY)
    monkeypatch.setattr(checkpoints, "local_folder", lambda: tmp_path)
    assert main(["train", "abacus-tiny", "--minutes", "1e-6", "--device", "cpu"]) == 0
    assert "abacus-tiny: 0 of 6 steps are done. The same command continues" in capsys.readouterr().out
    assert main(["train", "abacus-tiny", "--minutes", "5", "--device", "cpu"]) == 0
    assert capsys.readouterr().out.startswith("abacus-tiny: exact match")


def test_a_shipped_model_adds(capsys):
    assert main(["add", "grokking-s0", "45", "99"]) == 0
    assert capsys.readouterr().out == "31\n"


def test_an_answer_says_which_certificate_covers_it(capsys):
    longer_than_python_prints = "9" * 5000
    assert main(["add", "adder-certified", longer_than_python_prints, "1"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "1" + "0" * 5000 + "\n"
    assert "Covered by adder-certified.certificate.json" in shown.err


def test_a_number_that_is_none_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["add", "adder-certified", "1.5", "1"])
    assert "invalid integer value: '1.5'" in capsys.readouterr().err


def test_eval_measures_a_shipped_model_again(capsys):
    assert main(["eval", "grokking-s0"]) == 0
    assert "test_accuracy          1\n" in capsys.readouterr().out


def test_the_module_and_the_script_are_the_same_command():
    result = subprocess.run(
        [sys.executable, "-m", "arithlib", "list", "grokking-live"], capture_output=True, text=True
    )
    assert result.returncode == 0 and result.stdout.startswith("grokking-live")
