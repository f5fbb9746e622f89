"""A checkpoint is whole, fresh and untouched, or it is refused with what to do."""

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest
import torch

import arithlib
from arithlib import checkpoints, experiments
from arithlib.cli import main
from arithlib.files import load_tensors, save_tensors
from arithlib.models.grokking import GrokkingConfig
from arithlib.tasks.modular import ModularAddition


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A registered experiment of a second, with empty shipped and local folders."""
    experiment = experiments.GrokkingExperiment(
        name="small", about="a test", steps=20, evaluate_every=10, snapshot_steps=(0, 20),
        task=ModularAddition(p=17), model=GrokkingConfig(p=17, d_model=16, n_heads=2, d_head=8, d_mlp=32),
    )  # fmt: skip
    monkeypatch.setitem(experiments.EXPERIMENTS, "small", experiment)
    monkeypatch.setattr(checkpoints, "shipped_folder", lambda: tmp_path / "checkpoints")
    monkeypatch.setattr(checkpoints, "local_folder", lambda: tmp_path / "runs")
    monkeypatch.setattr(checkpoints, "SEARCH", [])
    return experiment


def test_what_was_trained_is_what_is_read(small, tmp_path):
    made = checkpoints.make("small", device="cpu", progress=False)
    read = checkpoints.read("small")
    for name, value in made.model.state_dict().items():
        assert torch.equal(read.model.state_dict()[name], value)
    assert read.history["step"].tolist() == [0, 10, 20]
    assert read.history["W_E_norms"].shape == (3, 17)
    assert read.history["progress_step"].tolist() == [0, 20]
    assert read.at(20, "test_loss") == pytest.approx(read.provenance["final"]["test_loss"])
    assert arithlib.load("small").add(3, 4) == read.add(3, 4)
    with pytest.raises(ValueError, match="not evaluated at step 15"):
        read.at(15, "test_loss")


def test_provenance_says_how_it_was_made(small):
    note = checkpoints.make("small", device="cpu", progress=False).provenance
    assert note["hash"] == small.hash() and note["settings"]["task"]["p"] == 17
    assert note["settings"]["seed"] == note["settings"]["task"]["data_seed"] == 0
    for key in ("sha256", "seconds", "device", "threads", "torch", "steps", "scale", "final", "made"):
        assert note[key] or note[key] == 0, key


def test_it_trains_once_and_then_reads(small, capsys):
    first = checkpoints.load_or_train("small", progress=False)
    said = "Training small (a test): 20 steps. No time is known: no such run is recorded here.\n"
    assert capsys.readouterr().out == said
    again = checkpoints.load_or_train("small", progress=False)
    assert capsys.readouterr().out == ""
    assert again.provenance == first.provenance
    checkpoints.load_or_train("small", retrain=True, progress=False)
    seconds, threads = first.provenance["seconds"], first.provenance["threads"]
    assert f"20 steps. It took {seconds:.0f} s once, on cpu ({threads} thread" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("recorded", "said"),
    [
        ({"device": "Some Card", "threads": 1, "seconds": 1234.5}, "It took 1,234 s once, on Some Card (1 thread)."),
        ({"threads": 2, "seconds": 0.6, "stack": 10}, "It took 1 s once, on cpu (2 threads, 10 models at once)."),
        ({"hash": "of other settings"}, "No time is known: no such run is recorded here."),
        ({"seconds": None}, "No time is known: no such run is recorded here."),
    ],
)
def test_what_a_shipped_run_took_is_said_before_it_is_made_again(small, tmp_path, recorded, said):
    shipped = tmp_path / "checkpoints/small"
    checkpoints.make("small", shipped, device="cpu", progress=False)
    note = shipped / "small.json"
    note.write_text(json.dumps(json.loads(note.read_text()) | recorded))
    assert checkpoints.announcement("small") == f"Training small (a test): 20 steps. {said}"


def test_a_run_for_a_gpu_is_said_to_take_long_where_it_is_to_train_on_a_cpu(small, monkeypatch):
    monkeypatch.setitem(experiments.EXPERIMENTS, "small", dataclasses.replace(small, scale="gpu"))
    monkeypatch.setattr(checkpoints, "choose_device", lambda name: torch.device(name or "cuda"))
    assert checkpoints.announcement("small", "cpu").endswith("without one small will take very long.")
    assert checkpoints.announcement("small").endswith("recorded here.")


def test_where_only_measurements_are_here_weights_are_trained_when_asked_for_and_once(small, tmp_path, capsys):
    made = checkpoints.make("small", tmp_path / "elsewhere", device="cpu", progress=False)
    made.model = None
    checkpoints.write(made, tmp_path / "checkpoints/small")
    assert checkpoints.load_or_train("small", progress=False).model is None
    assert capsys.readouterr().out == ""
    assert checkpoints.load_or_train("small", weights=True, progress=False).model is not None
    assert "Training small (a test)" in capsys.readouterr().out
    assert checkpoints.load_or_train("small", weights=True, progress=False).model is not None
    assert capsys.readouterr().out == ""


def test_shipped_weights_come_before_local_ones(small, tmp_path):
    checkpoints.make("small", tmp_path / "runs", device="cpu", progress=False)
    assert checkpoints.find("small") == tmp_path / "runs"
    checkpoints.make("small", tmp_path / "checkpoints/small", device="cpu", progress=False)
    assert checkpoints.find("small") == tmp_path / "checkpoints/small"


def test_the_folder_a_reproduction_names_comes_before_the_shipped_weights(small, tmp_path, monkeypatch):
    checkpoints.SEARCH.insert(0, tmp_path / "runs")
    checkpoints.make("small", tmp_path / "checkpoints/small", device="cpu", progress=False)
    assert checkpoints.find("small") == tmp_path / "checkpoints/small"
    checkpoints.make("small", tmp_path / "runs", device="cpu", progress=False)
    assert checkpoints.find("small") == tmp_path / "runs"


def test_a_checkpoint_of_ones_own_is_read_without_a_registry(small, tmp_path, monkeypatch):
    """Its note holds every setting, so that whoever has the two files has the model."""
    made = checkpoints.make("small", device="cpu", progress=False)
    monkeypatch.delitem(experiments.EXPERIMENTS, "small")
    read = checkpoints.load("small")
    assert read.experiment.settings() == small.settings() and read.experiment.about == "a test"
    assert torch.equal(read.model.W_E, made.model.W_E) and read.add(3, 4) == made.add(3, 4)


def test_a_note_of_settings_that_nobody_here_knows_is_refused(small, tmp_path, monkeypatch):
    checkpoints.make("small", device="cpu", progress=False)
    monkeypatch.delitem(experiments.EXPERIMENTS, "small")
    note = tmp_path / "runs/small.json"
    note.write_text(note.read_text().replace('"kind": "grokking-model"', '"kind": "a stranger\'s"'))
    with pytest.raises(checkpoints.CheckpointError, match="no settings of the kind .* import the module"):
        checkpoints.read("small")


def test_a_missing_checkpoint_says_how_to_make_it(small):
    with pytest.raises(checkpoints.CheckpointError, match="with `arithlib train small`"):
        checkpoints.read("small")


def test_a_stale_checkpoint_is_refused(small, monkeypatch):
    checkpoints.make("small", device="cpu", progress=False)
    monkeypatch.setitem(experiments.EXPERIMENTS, "small", dataclasses.replace(small, seed=1))
    with pytest.raises(checkpoints.CheckpointError, match="small is stale.*--retrain"):
        checkpoints.read("small")


@pytest.mark.parametrize("damage", ["truncated", "altered"])
def test_a_truncated_or_altered_checkpoint_is_refused(small, tmp_path, damage):
    checkpoints.make("small", device="cpu", progress=False)
    weights = tmp_path / "runs/small.safetensors"
    content = bytearray(weights.read_bytes())
    if damage == "truncated":
        del content[-100:]
    else:
        content[-5] ^= 1
    weights.write_bytes(bytes(content))
    with pytest.raises(checkpoints.CheckpointError, match="truncated or altered"):
        checkpoints.read("small")


@pytest.mark.parametrize("damage", ["stale", "altered"])
def test_training_again_mends_what_was_shipped_stale_or_altered(small, tmp_path, monkeypatch, damage):
    checkpoints.make("small", tmp_path / "checkpoints/small", device="cpu", progress=False)
    if damage == "stale":
        monkeypatch.setitem(experiments.EXPERIMENTS, "small", dataclasses.replace(small, seed=1))
    else:
        (tmp_path / "checkpoints/small/small.safetensors").write_bytes(b"")
    with pytest.raises(checkpoints.CheckpointError):
        checkpoints.read("small")
    checkpoints.load_or_train("small", retrain=True, progress=False)
    assert checkpoints.find("small") == tmp_path / "runs"
    assert checkpoints.read("small").experiment == experiments.get("small")


def test_the_command_trains_what_is_stale_and_leaves_what_is_fresh(small, monkeypatch, capsys):
    assert main(["train", "small", "--device", "cpu"]) == 0 and checkpoints.is_here("small")
    assert "small: " in capsys.readouterr().out
    assert main(["train", "small", "--device", "cpu"]) == 0
    assert "matching weights are here already" in capsys.readouterr().out
    monkeypatch.setitem(experiments.EXPERIMENTS, "small", dataclasses.replace(small, seed=1))
    assert not checkpoints.is_here("small")
    assert main(["list", "small"]) == 0 and "unusable" in capsys.readouterr().out
    assert main(["train", "small", "--device", "cpu"]) == 0
    assert checkpoints.read("small").experiment.seed == 1


def test_a_gpu_that_is_not_there_is_refused(small, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="device 'cuda' is none that torch can use here: choose cpu"):
        checkpoints.make("small", device="cuda")


def test_missing_weights_and_an_unreadable_note_are_named(small, tmp_path):
    checkpoints.make("small", device="cpu", progress=False)
    note = tmp_path / "runs/small.json"
    content = note.read_text()
    note.write_text("{")
    with pytest.raises(checkpoints.CheckpointError, match="small.json cannot be read"):
        checkpoints.read("small")
    note.write_text(content)
    (tmp_path / "runs/small.safetensors").unlink()
    with pytest.raises(checkpoints.CheckpointError, match="small.safetensors is missing"):
        checkpoints.read("small")


def test_names_and_descriptions_do_not_make_a_checkpoint_stale(small):
    assert dataclasses.replace(small, name="other", about="words").hash() == small.hash()
    assert dataclasses.replace(small, steps=21).hash() != small.hash()


def test_the_registry_names_what_it_has(monkeypatch):
    with pytest.raises(experiments.UnknownExperiment, match="Did you mean grokking-s0"):
        experiments.get("groking-s0")
    assert [e.name for e in experiments.match("grokking-wd3-*")] == [f"grokking-wd3-s{seed}" for seed in range(5)]
    hashes = [e.hash() for e in experiments.match("*")]
    assert len(set(hashes)) == len(hashes)


def test_embeddings_stay_on_the_circles_they_are_confined_to(small):
    confined = dataclasses.replace(small, frequencies=(2, 5))
    experiments.EXPERIMENTS["small"] = confined
    norms = checkpoints.make("small", device="cpu", progress=False).history["W_E_norms"]
    allowed = [0, 3, 4, 9, 10]
    assert np.delete(norms, allowed, axis=1).max() < 1e-4 < norms[:, allowed].min()


def test_a_shipped_note_is_json_that_a_person_can_read(small, tmp_path):
    checkpoints.make("small", device="cpu", progress=False)
    text = (tmp_path / "runs/small.json").read_text()
    assert list(json.loads(text)) == sorted(json.loads(text)) and text.count("\n") > 20


def test_a_run_is_shipped_with_its_weights_or_with_its_measurements_only(small, tmp_path, monkeypatch):
    made = checkpoints.make("small", device="cpu", progress=False)
    whole = checkpoints.ship("small")
    assert whole.parent == tmp_path / "checkpoints/small"
    assert torch.equal(checkpoints.read("small", whole.parent).model.state_dict()["W_E"], made.model.W_E)
    size = whole.stat().st_size

    one_of_many = dataclasses.replace(small, ships_weights=False)
    assert one_of_many.hash() == small.hash()
    monkeypatch.setitem(experiments.EXPERIMENTS, "small", one_of_many)
    assert checkpoints.ship("small").stat().st_size < size
    read = checkpoints.read("small")
    assert read.model is None
    assert np.array_equal(read.history["test_loss"], np.float32(made.history["test_loss"]))
    assert checkpoints.load("small").add(3, 4) == made.add(3, 4)  # a reader's own run has them
    (tmp_path / "runs" / "small.json").unlink()
    with pytest.raises(checkpoints.CheckpointError, match="only the measurements.*train small --retrain"):
        checkpoints.load("small")


@pytest.mark.parametrize("damage", [{"settings": 3}, {"settings": {"kind": "adamw"}}, None, b"\xff{}"])
def test_a_note_that_holds_something_else_is_refused(small, tmp_path, damage):
    checkpoints.make("small", device="cpu", progress=False)
    (note,) = tmp_path.rglob("small.json")
    whole = json.loads(note.read_text())
    whole["settings"] |= {"optimizer": 3} if damage is None else {}
    note.write_bytes(damage if isinstance(damage, bytes) else json.dumps(whole | (damage or {})).encode())
    with pytest.raises(checkpoints.CheckpointError, match="small"):
        checkpoints.read("small")


def test_equal_contents_are_equal_files_in_whatever_process(tmp_path):
    """Otherwise a checksum of a file would say nothing about what is in it."""
    program = (
        "import sys, torch; from pathlib import Path; from arithlib.files import save_tensors\n"
        "tensors, about = {'a': torch.arange(3), 'b': torch.tensor(1.5)}, {'x': 1, 'y': [2]}\n"
        "for _ in range(8): print(save_tensors(Path(sys.argv[1]), tensors, about))"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "file.safetensors")]
    elsewhere = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    tensors, about = load_tensors(tmp_path / "file.safetensors")
    here = [save_tensors(tmp_path / "file.safetensors", tensors, about) for _ in elsewhere]
    assert len(here) == 8 and len({*here, *elsewhere}) == 1
    assert about == {"x": 1, "y": [2]} and tensors["b"] == 1.5 and tensors["a"].tolist() == [0, 1, 2]
