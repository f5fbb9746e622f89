"""The queue trains what is missing, in its order, and packs it into few small files that tar reads."""

import dataclasses
import io
import tarfile

import pytest
import torch

from arithlib import checkpoints, experiments
from arithlib.experiments.abacus import AbacusExperiment
from arithlib.models.looped import LoopedConfig
from arithlib.tasks.operands import OperandTask
from arithlib.training import AdamW
from presets import queueing

NAMES = ("abacus-c", "abacus-b", "abacus-a")


@pytest.fixture
def three(monkeypatch, tmp_path):
    for seed, name in enumerate(sorted(NAMES)):
        made = AbacusExperiment(
            name=name, about="a test", steps=6, evaluate_every=3, seed=seed, optimizer=AdamW(),
            task=OperandTask(max_digits=3), evaluation_count=8, batch_size=8,
            model=LoopedConfig(d_model=16, n_heads=2, d_mlp=32, n_layers=1, n_loops=2),
        )  # fmt: skip
        monkeypatch.setitem(experiments.EXPERIMENTS, name, made)
    monkeypatch.setattr(queueing, "QUEUE", NAMES)
    monkeypatch.setattr(checkpoints, "shipped_folder", lambda: tmp_path / "checkpoints")
    monkeypatch.setattr(checkpoints, "local_folder", lambda: tmp_path / "runs")


def unpacked(parts):
    with tarfile.open(fileobj=io.BytesIO(b"".join(part.read_bytes() for part in parts))) as tar:
        return tar.getnames()


def test_every_run_that_needs_a_gpu_is_in_the_queue_once():
    queued = [experiment.name for experiment in queueing.queue()]
    assert sorted(queued) == sorted(e.name for e in experiments.match("*") if e.scale == "gpu")
    assert queued[:2] == ["grokking-gpu", "abacus-gpu-s0"]
    assert queued.index("abacus-gpu-source-s0") < queued.index("abacus-gpu-1x16-s0")


@pytest.mark.parametrize("name", [run.name for run in queueing.queue() if run.seed == 0])
def test_a_step_makes_no_tensor_without_saying_where(name):
    """What is made without a device is made on `meta` here, which no tensor that has one can be joined with."""
    run = experiments.get(name)
    tiny = dataclasses.replace(run.model, d_model=8, n_heads=2, d_mlp=8)
    sizes = {"models": 2, "batch_size": 2 * len(getattr(run, "counts", "1")), "evaluation_count": 4}
    run = dataclasses.replace(run, model=tiny, **{name: size for name, size in sizes.items() if hasattr(run, name)})
    model = run.build()
    objective = run.objective(model, torch.device("cpu"))
    with torch.device("meta"):
        objective.loss(model, 0).backward()


def test_a_sitting_trains_and_packs_and_the_next_makes_nothing_again(three, tmp_path, capsys):
    checkpoints.make("abacus-b", device="cpu", progress=False)
    out = tmp_path / "out"
    arguments = ["--minutes", "5", "--out", str(out), "--device", "cpu"]
    queueing.main(arguments)
    first, second, third, fourth, *_ = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in (second, fourth)] == ["abacus-c", "abacus-a"]
    for name, line in (("abacus-c", first), ("abacus-a", third)):
        assert line == f"Training {name} (a test): 6 steps. No time is known: no such run is recorded here."
    parts = sorted(out.glob("arithlib.tar.*"))
    assert unpacked(parts) == [f"{n}.{kind}" for n in ("abacus-c", "abacus-a") for kind in ("safetensors", "json")]
    queueing.main(arguments)
    assert "done" not in capsys.readouterr().out
    checkpoints.read("abacus-a", out)


def test_what_time_cuts_short_is_packed_as_a_state(three, tmp_path, capsys, monkeypatch):
    long = dataclasses.replace(experiments.get("abacus-c"), steps=90_000, evaluate_every=90_000)
    monkeypatch.setitem(experiments.EXPERIMENTS, "abacus-c", long)
    parts = queueing.work(0.5 / 60, tmp_path / "out", "cpu")
    assert "of 90,000 steps are done. The same command continues" in capsys.readouterr().out
    assert unpacked(parts) == [f"abacus-c.{long.hash()}.state.safetensors"]


def test_of_runs_that_do_not_ship_their_weights_the_measurements_are_packed(three, tmp_path, monkeypatch):
    unshipped = dataclasses.replace(experiments.get("abacus-c"), ships_weights=False)
    monkeypatch.setitem(experiments.EXPERIMENTS, "abacus-c", unshipped)
    queueing.work(5, tmp_path / "out", "cpu")
    models = {name: checkpoints.read(name, tmp_path / "out").model for name in NAMES}
    assert [name for name, model in models.items() if model is None] == ["abacus-c"]


def test_parts_are_no_larger_and_no_more_than_asked_and_the_least_valuable_stays(three, tmp_path, capsys):
    out = tmp_path / "out"
    queueing.work(5, out, "cpu")
    one = sum((out / f"abacus-a.{kind}").stat().st_size for kind in ("safetensors", "json"))
    parts = queueing.pack(out, parts=8, part_bytes=(2 * one + 40_000) // 8)
    assert len(parts) <= 8 and max(part.stat().st_size for part in parts) <= (2 * one + 40_000) // 8
    assert unpacked(parts) == [f"{n}.{kind}" for n in ("abacus-c", "abacus-b") for kind in ("safetensors", "json")]
    assert "abacus-a.safetensors stays in" in capsys.readouterr().out
