"""The command line says what it did, and what was wrong in one line."""

import dataclasses
import json
import re
import subprocess
import sys

import pytest
import test_abacus_experiments

import arithlib
from arithlib import checkpoints, experiments
from arithlib.certify import certificates
from arithlib.cli import main


def test_without_a_command_it_lists_the_commands(capsys):
    assert main([]) == 0
    shown = capsys.readouterr().out
    for command in ("list", "train", "add", "subtract", "multiply", "eval", "bench"):
        assert command in shown


def test_it_says_its_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0 and capsys.readouterr().out == f"arithlib {arithlib.__version__}\n"


def test_list_shows_experiments_and_where_their_weights_are(capsys):
    assert main(["list", "grokking-s*"]) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert len(lines) == 10 and lines[0].startswith("grokking-s0")
    # The heading is no experiment: programs that read the list do not get it.
    (heading,) = shown.err.splitlines()
    assert heading.index("what it is") == lines[0].index("the main model")


def test_list_tells_weights_from_measurements(monkeypatch, tmp_path, capsys):
    def here(name):
        assert main(["list", name]) == 0
        return capsys.readouterr().out.split(" steps  ")[1][:14].strip()

    assert here("grokking-s0") == "weights"
    assert here("words-Z60-1-s0") == "measured"
    monkeypatch.setitem(experiments.EXPERIMENTS, "abacus-tiny", test_abacus_experiments.TINY)
    monkeypatch.setattr(checkpoints, "local_folder", lambda: tmp_path)
    assert here("abacus-tiny") == "-"
    checkpoints.make("abacus-tiny", device="cpu", progress=False)
    assert here("abacus-tiny") == "weights, runs"


def test_a_run_that_nobody_registered_is_known_by_its_note(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(checkpoints, "local_folder", lambda: tmp_path)
    monkeypatch.setattr(experiments, "EXPERIMENTS", experiments.EXPERIMENTS.copy())
    mine = dataclasses.replace(test_abacus_experiments.TINY, name="mine")
    experiments.register([mine])
    checkpoints.make("mine", device="cpu", progress=False)
    (tmp_path / "damaged.json").write_text("{")
    note = json.loads((tmp_path / "mine.json").read_text())
    for stem, name in (("numbered", 5), ("kept", "mine"), ("older", "abacus-cpu-s0")):
        (tmp_path / f"{stem}.json").write_text(json.dumps(note | {"name": name}))
    del experiments.EXPERIMENTS["mine"]
    assert main(["train", "mine"]) == 0
    assert capsys.readouterr().out == "mine: matching weights are here already; --retrain makes them again.\n"
    assert main(["list", "min?"]) == 0
    assert "weights, runs  " + mine.about in capsys.readouterr().out
    assert main(["certify", "mine"]) == 1
    assert "mine is a LoopedTransformer: only" in capsys.readouterr().err


def test_list_without_a_pattern_counts_families_and_says_how_to_list_all(capsys):
    assert main(["list"]) == 0
    shown = capsys.readouterr()
    rows = {line.split()[0]: [int(number) for number in line.split()[1:]] for line in shown.out.splitlines()}
    assert len(rows) < 40 and sum(row[0] for row in rows.values()) == len(experiments.match("*"))
    several = [checkpoints.read(note.stem) for note in checkpoints.shipped() if note.stem.startswith("depth-")]
    weights = sum(trained.model is not None for trained in several)
    assert rows["depth-*"][1:] == [weights, len(several) - weights] and 0 < weights < len(several)
    assert "arithlib list '*' all of them" in shown.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add", "nonsense", "1", "2"], "no experiment is called 'nonsense'"),
        (["train", "nonsense"], "no experiment is called 'nonsense'"),
        (["ship", "abacus-gpu-s0"], "runs/ holds no finished run of abacus-gpu-s0: train it first"),
        (["bench", "nonsense"], "no benchmark is called 'nonsense'"),
        (["add", "grokking-s0", "1", "113"], "adds residues 0 to 112"),
        (["bench", "../tests/conftest"], "no benchmark is called '../tests/conftest'; there are: adder, build,"),
        (
            ["train", "adder-live", "--retrain", "--device", "tpu"],
            "'tpu' is none that torch can use here: choose cpu",
        ),
        (["certify", "abacus-cpu-s0"], "only a ColumnTransformer can be certified, such as those that `arithlib"),
        (["certify", "pages-s1"], "leads by -2.96: train it longer, or take another seed or model (`arithlib list"),
        (["subtract", "nback-2x4-s0", "2", "1"], "nback-2x4-s0 cannot be asked for a difference. What it is: a"),
    ],
)
def test_a_problem_is_one_line_on_stderr(capsys, arguments, message):
    assert main(arguments) == 1
    shown = capsys.readouterr().err
    assert message in shown and shown.count("\n") == 1


@pytest.mark.parametrize(
    ("operation", "name", "instead"),
    [
        ("multiply", "adder-certified", "it adds: use `arithlib add"),
        ("subtract", "adder-certified", "it adds: use `arithlib add"),
        ("subtract", "grokking-s0", "it adds: use `arithlib add"),
        ("add", "differences-s0", "it subtracts: use `arithlib subtract"),
        ("multiply", "differences-s0", "it subtracts: use `arithlib subtract"),
        ("add", "pages-s0", "it multiplies: use `arithlib multiply"),
    ],
)
def test_a_model_that_does_something_else_says_what_to_ask_it(capsys, operation, name, instead):
    assert main([operation, name, "2", "3"]) == 1
    shown = capsys.readouterr()
    assert shown.err == f"arithlib: {name} does not {operation}; {instead} {name} A B`\n" and shown.out == ""


def test_a_model_that_tries_and_writes_no_number_is_still_one_that_adds(monkeypatch, capsys):
    def silent(experiment, model, a, b):
        raise ValueError("the model wrote nothing")

    monkeypatch.setattr(experiments.GrokkingExperiment, "add", silent)
    assert main(["multiply", "grokking-s0", "2", "3"]) == 1
    assert "it adds: use" in capsys.readouterr().err


def test_benchmarks_need_a_clone(monkeypatch, tmp_path, capsys):
    """Where an installed arithlib looks for them, which is wherever it is called, there are none."""
    monkeypatch.setattr(checkpoints, "project_root", lambda: tmp_path)
    assert main(["bench", "how_fast"]) == 1
    assert capsys.readouterr().err.startswith("arithlib: benchmarks need a clone of the repository")


def test_minutes_stop_a_run_which_the_same_command_continues(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(experiments.EXPERIMENTS, "abacus-tiny", test_abacus_experiments.TINY)
    monkeypatch.setattr(checkpoints, "local_folder", lambda: tmp_path)
    assert main(["train", "abacus-tiny", "--minutes", "1e-6", "--device", "cpu"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Training abacus-tiny (a test): 6 steps. No time is known: no such run is recorded here.")
    assert "abacus-tiny: 0 of 6 steps are done. The same command continues" in shown
    assert main(["train", "abacus-tiny", "--minutes", "5", "--device", "cpu"]) == 0
    assert "\nabacus-tiny: exact match" in capsys.readouterr().out
    assert main(["train", "abacus-tiny", "--retrain", "--device", "cpu"]) == 0
    assert re.match(r"Training abacus-tiny .*: 6 steps. It took \d+ s once, on cpu", capsys.readouterr().out)


def test_a_shipped_model_adds(capsys):
    assert main(["add", "grokking-s0", "45", "99"]) == 0
    assert capsys.readouterr() == ("31\n", "Modulo 113.\n")


@pytest.mark.parametrize(
    ("name", "digits", "trained", "why"),
    [
        ("abacus-cpu-s0", 60, 20, "no end token"),  # which said 0 once
        ("abacus-cpu-s0", 300, 20, "the table ends at 255"),
        ("contrast-coupling-s0", 64, 10, "the table ends at 63"),
        ("barriers-digits-reversed-shared-s0", 200, 4, "the table of addresses ends at"),
        ("decoder-s0", 30, 2, "numbers from 0 to 198 have a token"),
        ("decoder-digits-s0", 30, 2, "from 0 to 99"),
        ("depth-add-1x4-s0", 200, 2, "999999999999... is too long"),
    ],
)
def test_numbers_that_a_model_cannot_add_are_no_sum_but_one_line(capsys, name, digits, trained, why):
    assert main(["add", name, "9" * digits, "1"]) == 1
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.count("\n") == 1 and len(shown.err) < 300
    assert f"{name} was trained on numbers of up to {trained} digits, the longest here has {digits}: " in shown.err
    assert why in shown.err


@pytest.mark.parametrize(("name", "longest"), [("contrast-rotary-s0", 10), ("decoder-s0", 2)])
def test_a_sum_of_longer_numbers_than_in_training_is_shown_and_says_so(capsys, name, longest):
    assert main(["add", name, "1" + "0" * longest, "1"]) == 0
    shown = capsys.readouterr()
    assert shown.out.strip().isdigit()
    said = f"{name} was trained on numbers of up to {longest} digits, the longest here has {longest + 1}."
    assert shown.err == f"Longer than in training: {said}\n"
    assert main(["add", name, "9" * longest, "1"]) == 0
    assert capsys.readouterr().err == ""


def test_an_answer_says_which_certificate_covers_it(capsys):
    longer_than_python_prints = "9" * 5000
    assert main(["add", "adder-certified", longer_than_python_prints, "1"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "1" + "0" * 5000 + "\n"
    assert "Covered by adder-certified.certificate.json" in shown.err


def test_a_difference_may_be_negative_and_is_covered_at_every_length(capsys):
    assert main(["subtract", "differences-s0", "12", "34"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "-22\n"
    assert "Covered by differences-s0.certificate.json: right for all integers from 0 on" in shown.err
    assert main(["subtract", "differences-s0", "1" + "0" * 5000, "1"]) == 0
    assert capsys.readouterr().out == "9" * 5000 + "\n"


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


def test_certify_says_where_it_wrote_and_goes_on_after_a_network_that_is_not_proven(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(certificates, "path_of", lambda name, folder: tmp_path / f"{name}.json")
    assert main(["certify", "pages-s[1-2]"]) == 1
    shown = capsys.readouterr()
    assert shown.out.startswith(f"{tmp_path / 'pages-s2.json'}: right at every length")
    assert shown.err.startswith("arithlib: pages-s1 is not proven right in 1 of 12640 contexts")
