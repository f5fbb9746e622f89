"""Trained weights on disk: found by experiment, verified before use, made when missing.

A checkpoint is NAME.safetensors (weights under `model/`, kept snapshots under `snapshot/STEP/`, measurements under
`history/`) beside NAME.json (its provenance). Shipped ones live in checkpoints/, a reader's own in runs/. Of an
experiment that is one of many (`ships_weights` is False) only the measurements are shipped.
"""

import datetime
import json
import os
import platform
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

import arithlib
from arithlib import experiments, parallel
from arithlib.experiments import Experiment
from arithlib.files import FileProblem, choose_device, device_name, load_tensors, save_tensors, sha256, write_atomic
from arithlib.training import train


class CheckpointError(RuntimeError):
    """A checkpoint is missing, stale, truncated or altered; the message says which and how to retrain."""


@dataclass
class Trained:
    """A trained model with what was measured on the way.

    model: None where only the measurements were shipped.
    history: name -> array, one entry an evaluation (see `training.Run`). provenance: the JSON beside the weights.
    """

    experiment: Experiment
    model: nn.Module | None
    history: dict[str, np.ndarray]
    provenance: dict

    def at(self, step: int, name: str) -> np.ndarray:
        """The measurement `name` at an evaluated step."""
        where = np.flatnonzero(self.history["step"] == step)
        if len(where) == 0:
            raise ValueError(f"{self.experiment.name} was not evaluated at step {step}: {self.history['step']}")
        return self.history[name][where[0]]


def project_root() -> Path:
    """The folder that holds pyproject.toml: of the package's checkout, or of the working directory."""
    for start in (Path(arithlib.__file__).resolve().parent, Path.cwd()):
        for folder in (start, *start.parents):
            if (folder / "pyproject.toml").exists() and (folder / "arithlib").is_dir():
                return folder
    return Path.cwd()


def shipped_folder() -> Path:
    return project_root() / "checkpoints"


def local_folder() -> Path:
    return project_root() / "runs"


def find(name: str) -> Path | None:
    """The folder that holds a checkpoint of that name, shipped ones first; None if there is none.

    A fresh and undamaged one is preferred, so that training again mends a stale or altered one that was shipped.
    The folder named by the environment variable ARITHLIB_CHECKPOINTS comes before both: `make reproduce` sets it.
    """
    preferred = os.environ.get("ARITHLIB_CHECKPOINTS")
    folders = (*([Path(preferred)] if preferred else []), shipped_folder(), local_folder())
    holding = [folder for folder in folders if (folder / f"{name}.json").exists()]
    return next((folder for folder in holding if _is_usable(name, folder)), holding[0] if holding else None)


def is_here(name: str) -> bool:
    """Whether a checkpoint of that name is here that is neither stale nor damaged."""
    folder = find(name)
    return folder is not None and _is_usable(name, folder)


def _is_usable(name: str, folder: Path) -> bool:
    try:
        note = json.loads((folder / f"{name}.json").read_text())
        return (
            note["hash"] == experiments.get(name).hash() and sha256(folder / f"{name}.safetensors") == note["sha256"]
        )
    except (OSError, ValueError, KeyError):
        return False


def read(name: str, folder: Path | None = None) -> Trained:
    """Load and verify the checkpoint of an experiment; CheckpointError says what is wrong with it."""
    experiment = experiments.get(name)
    folder = folder or find(name)
    retrain = f"Train it again with `python -m arithlib train {name} --retrain`."
    if folder is None:
        raise CheckpointError(f"no checkpoint of {name} is here. Make it with `python -m arithlib train {name}`.")
    weights, note = folder / f"{name}.safetensors", folder / f"{name}.json"
    try:
        provenance = json.loads(note.read_text())
    except (OSError, json.JSONDecodeError) as error:
        raise CheckpointError(f"{note.name} cannot be read ({error}). {retrain}") from error
    if provenance.get("hash") != experiment.hash():
        raise CheckpointError(
            f"{name} is stale: it was made by another version of the experiment "
            f"({provenance.get('hash')}, now {experiment.hash()}). {retrain}"
        )
    if not weights.exists():
        raise CheckpointError(f"{weights.name} is missing beside {note.name}. {retrain}")
    if sha256(weights) != provenance.get("sha256"):
        raise CheckpointError(
            f"{weights.name} is truncated or altered: its sha256 is not the recorded one. {retrain}"
        )
    try:
        tensors, _ = load_tensors(weights)
    except FileProblem as error:
        raise CheckpointError(f"{error} {retrain}") from error
    model = None
    if state := _under("model", tensors):
        model = experiment.kept_model(experiment.build()).eval()
        model.load_state_dict(state)
    history = {k: v.numpy() for k, v in _under("history", tensors).items()}
    return Trained(experiment, model, history, provenance)


def make(
    name: str,
    folder: Path | None = None,
    *,
    device: str | None = None,
    progress: bool | None = None,
    minutes: float | None = None,
) -> Trained:
    """Train an experiment and write its checkpoint; continues an interrupted run of the same experiment.

    minutes: stop after so long by raising `training.OutOfTime`; the next call continues.
    """
    experiment = experiments.get(name)
    folder = folder or local_folder()
    device = parallel.join(choose_device(device))
    first = parallel.rank() == 0
    if parallel.size() > 1 and not experiment.shares_batches:
        raise ValueError(f"{name} trains in one process: start it without torchrun")
    state = folder / f"{name}.{experiment.hash()}.state.safetensors"
    torch.manual_seed(experiment.model_seed)
    model = experiment.build().to(device)
    run = train(
        model,
        experiment.objective(model, device),
        experiment.optimizer,
        experiment.steps,
        evaluate_every=experiment.evaluate_every,
        snapshot_steps=experiment.snapshot_steps,
        state=state,
        label=name,
        progress=progress if first else False,
        after_step=experiment.after_step,
        minutes=minutes,
    )
    model = experiment.kept_model(model.cpu()).eval()
    history = run.history | experiment.finish(model, run)
    trained = Trained(experiment, model, history, provenance(experiment, history, run.seconds, device))
    if first:
        write(trained, folder)
        state.unlink(missing_ok=True)
    return trained


def write(trained: Trained, folder: Path) -> None:
    """Write weights, history (float32) and provenance of a trained model; the provenance gains the sha256."""
    name = trained.experiment.name
    state = {} if trained.model is None else trained.model.state_dict()
    tensors = {f"model/{k}": v for k, v in state.items()}
    for key, values in trained.history.items():
        values = torch.from_numpy(np.ascontiguousarray(values))
        tensors[f"history/{key}"] = values.float() if values.is_floating_point() else values
    trained.provenance["sha256"] = save_tensors(folder / f"{name}.safetensors", tensors)
    note = json.dumps(trained.provenance, indent=2, sort_keys=True) + "\n"
    write_atomic(folder / f"{name}.json", note.encode())


def load_or_train(name: str, *, retrain: bool = False, progress: bool | None = None) -> Trained:
    """The trained model of an experiment: read if a checkpoint is there, trained here and now if none is.

    Says what it does before it starts, and how long it took last time. retrain=True always trains, into runs/.
    Raises CheckpointError for a stale or damaged checkpoint: weights are never replaced unasked.
    """
    experiment = experiments.get(name)
    folder = find(name)
    if folder is not None and not retrain:
        return read(name, folder)
    print(f"Training {name}: {experiment.steps:,} steps{_last_time(name, folder)}.", flush=True)
    make(name, progress=progress)
    return read(name, local_folder())


def load(name: str) -> nn.Module:
    """The trained model of a shipped (or locally trained) experiment, ready for `.add(a, b)`.

    Raises CheckpointError where only its measurements are here.
    """
    model = read(name).model
    if model is None and (local_folder() / f"{name}.json").exists():
        model = read(name, local_folder()).model
    if model is None:
        raise CheckpointError(
            f"of {name} only the measurements are shipped. Train it with `python -m arithlib train {name} --retrain`."
        )
    return model


def ship(name: str) -> Path:
    """Copy a run from runs/ to checkpoints/, without the weights of an experiment that does not ship them.

    Returns the file of tensors. Raises CheckpointError for a run that is missing, stale or damaged.
    """
    trained = read(name, local_folder())
    if not trained.experiment.ships_weights:
        trained.model = None
    write(trained, shipped_folder())
    return shipped_folder() / f"{name}.safetensors"


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(f"{prefix}/"): v for k, v in tensors.items() if k.startswith(f"{prefix}/")}


def _last_time(name: str, folder: Path | None) -> str:
    if folder is None:
        return ", for the first time here"
    try:
        note = json.loads((folder / f"{name}.json").read_text())
        return f"; last time that took {note['seconds']:.0f} s on {note['device']} ({note['threads']} threads)"
    except (OSError, json.JSONDecodeError, KeyError):
        return ""


def provenance(experiment: Experiment, history: dict, seconds: float, device: torch.device, stack: int = 1) -> dict:
    """How a checkpoint came to be. stack: how many models were trained as one; the seconds are those of all."""
    final = {k: float(v[-1]) for k, v in history.items() if v.ndim == 1 and k != "step"}
    return {
        "name": experiment.name,
        "about": experiment.about,
        "hash": experiment.hash(),
        "settings": experiment.settings(),
        "scale": experiment.scale,
        "steps": experiment.steps,
        "seconds": round(seconds, 1),
        "stack": stack,
        "final": final,
        "device": device_name(device),
        "threads": torch.get_num_threads(),
        "machine": platform.machine(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "arithlib": arithlib.__version__,
        "made": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }
