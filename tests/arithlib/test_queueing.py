"""The queue trains what is missing, most valuable first, and packs it into few small files that tar reads."""

import dataclasses
import io
import tarfile

import pytest
import test_abacus_experiments

from arithlib import checkpoints, experiments, queueing
from arithlib.cli import main
from arithlib.training import ScheduledAdamW

NAMES = ("abacus-a", "abacus-b", "abacus-c")


@pytest.fixture
def three(monkeypatch, tmp_path):
    for value, name in enumerate(NAMES, start=1):
        made = dataclasses.replace(
            test_abacus_experiments.TINY, name=name, scale="tiny", value=value, model_seed=value
        )
        monkeypatch.setitem(experiments.EXPERIMENTS, name, made)
    monkeypatch.setattr(checkpoints, "shipped_folder", lambda: tmp_path / "checkpoints")
    monkeypatch.setattr(checkpoints, "local_folder", lambda: tmp_path / "runs")


def unpacked(parts):
    with tarfile.open(fileobj=io.BytesIO(b"".join(part.read_bytes() for part in parts))) as tar:
        return tar.getnames()


def test_the_most_valuable_missing_one_is_first(three):
    checkpoints.make("abacus-b", device="cpu", progress=False)
    assert [e.name for e in queueing.missing("tiny")] == ["abacus-c", "abacus-a"]
    with pytest.raises(ValueError, match="no queue is called 'huge'; there are: cpu, gpu, tiny"):
        queueing.missing("huge")


def test_a_sitting_trains_and_packs_and_the_next_makes_nothing_again(three, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["train", "--queue", "tiny", "--minutes", "5", "--out", str(out), "--device", "cpu"]) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()[:3]] == list(reversed(NAMES))
    parts = sorted(out.glob("arithlib.tar.*"))
    assert unpacked(parts) == [f"{n}.{kind}" for n in reversed(NAMES) for kind in ("safetensors", "json")]
    assert main(["train", "--queue", "tiny", "--minutes", "5", "--out", str(out), "--device", "cpu"]) == 0
    assert "done" not in capsys.readouterr().out
    checkpoints.read("abacus-a", out)


def test_what_time_cuts_short_is_packed_as_a_state(three, tmp_path, capsys, monkeypatch):
    long = dataclasses.replace(
        experiments.get("abacus-c"), steps=90_000, evaluate_every=90_000, optimizer=ScheduledAdamW(steps=90_000)
    )
    monkeypatch.setitem(experiments.EXPERIMENTS, "abacus-c", long)
    parts = queueing.work("tiny", 0.5 / 60, tmp_path / "out", "cpu")
    assert "of 90,000 steps are done. The same command continues" in capsys.readouterr().out
    assert unpacked(parts) == [f"abacus-c.{long.hash()}.state.safetensors"]


def test_parts_are_no_larger_and_no_more_than_asked_and_the_least_valuable_stays(three, tmp_path, capsys):
    out = tmp_path / "out"
    queueing.work("tiny", 5, out, "cpu")
    one = sum((out / f"abacus-a.{kind}").stat().st_size for kind in ("safetensors", "json"))
    parts = queueing.pack(out, parts=8, part_bytes=(2 * one + 40_000) // 8)
    assert len(parts) <= 8 and max(part.stat().st_size for part in parts) <= (2 * one + 40_000) // 8
    assert unpacked(parts) == [f"{n}.{kind}" for n in ("abacus-c", "abacus-b") for kind in ("safetensors", "json")]
    assert "abacus-a.safetensors stays in" in capsys.readouterr().out


def test_the_command_asks_for_what_belongs_together(capsys):
    for arguments in (["--queue", "gpu"], ["abacus-live", "--queue", "gpu", "--minutes", "1", "--out", "x"]):
        assert main(["train", *arguments]) == 1
        assert "train --queue SCALE needs --minutes and --out" in capsys.readouterr().err
    assert main(["train"]) == 1 and "train takes NAME" in capsys.readouterr().err


def test_minutes_stop_a_named_run_which_the_same_command_continues(three, capsys):
    assert main(["train", "abacus-a", "--minutes", "1e-6", "--device", "cpu"]) == 0
    assert "abacus-a: 0 of 6 steps are done. The same command continues" in capsys.readouterr().out
    assert main(["train", "abacus-a", "--minutes", "5", "--device", "cpu"]) == 0
    assert capsys.readouterr().out.startswith("abacus-a: exact match")
