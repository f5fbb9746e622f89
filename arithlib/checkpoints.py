"""Trained weights on disk: found by name, verified before use, made when missing.

A checkpoint is NAME.safetensors (weights under `model/`, measurements under `history/`) beside NAME.json, its note:
how it was made, and all settings, from which the model is built again. So a checkpoint needs no registry to be read;
where an experiment of its name is registered, the two must agree. Shipped ones live in checkpoints/, a folder a
family, and three inside the package; a reader's own in runs/. Of an experiment that is one of many (`ships_weights`
is False) only the measurements are shipped.
"""

import datetime
import json
import platform
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor, nn

import arithlib
from arithlib import experiments
from arithlib.experiments import Experiment
from arithlib.files import FileProblem, choose_device, device_name, load_tensors, save_tensors, sha256, write_atomic
from arithlib.settings import from_json

HERE = Path(arithlib.__file__).resolve().parent
WEIGHTS = HERE / "weights"  # the few models that travel inside the package


class CheckpointError(RuntimeError):
    """A checkpoint is missing, stale, truncated or altered; the message says which and how to retrain."""


@dataclass
class Trained:
    """A trained model with what was measured on the way.

    model: None where only the measurements were shipped. `add` asks it for a sum, `subtract` for a
        difference and `multiply` for a product, if that is what it was trained on.
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

    def add(self, a: int, b: int) -> int:
        """a + b as this model writes it, by greedy decoding, in the form that it was trained on.

        Raises CheckpointError where no weights are here; `experiments.NotAnAdder` for a model that was trained on
        something else; ValueError for what is no integer of at least 0, operands that cannot be written in that form,
        or an answer that is no number.
        """
        self._require(a, b)
        return self.experiment.add(self.model, a, b)

    def multiply(self, a: int, b: int) -> int:
        """a b as this model writes it. Raises as `add` does, `experiments.NotAMultiplier` for NotAnAdder."""
        self._require(a, b)
        return self.experiment.multiply(self.model, a, b)

    def subtract(self, a: int, b: int) -> int:
        """a - b as this model writes it. Raises as `add` does, `experiments.NotASubtractor` for NotAnAdder."""
        self._require(a, b)
        return self.experiment.subtract(self.model, a, b)

    def _require(self, *numbers):
        if self.model is None:
            raise CheckpointError(_only_measured(self.experiment.name))
        for number in numbers:
            if not isinstance(number, int) or isinstance(number, bool) or number < 0:
                raise ValueError(f"{number!r} is no integer of at least 0")


def is_checkout() -> bool:
    """Whether this package lies in a checkout; else it is installed, and its own folder stays as it is."""
    return (HERE.parent / "checkpoints").is_dir()


def project_root() -> Path:
    """The checkout that this package belongs to, or else the working directory."""
    return HERE.parent if is_checkout() else Path.cwd()


def shipped_folder() -> Path:
    return project_root() / "checkpoints"


def shipped() -> list[Path]:
    """The notes of all shipped checkpoints, those that travel inside the package among them, by name."""
    notes = [*shipped_folder().glob("*/*.json"), *WEIGHTS.glob("*.json")]
    return sorted((path for path in notes if ".certificate" not in path.name), key=lambda path: path.stem)


def local_folder() -> Path:
    return project_root() / "runs"


# Folders that are searched before the shipped ones; whoever wants other weights to be preferred puts theirs here.
SEARCH: list[Path] = []


def find(name: str) -> Path | None:
    """The folder that holds a checkpoint of that name, shipped ones first; None if there is none.

    A fresh and undamaged one is preferred, so that training again mends a stale or altered one that was shipped.
    """
    family = name.partition("-")[0]
    folders = (*SEARCH, shipped_folder() / family, WEIGHTS, local_folder())
    holding = [folder for folder in folders if (folder / f"{name}.json").exists()]
    return next((folder for folder in holding if _is_usable(name, folder)), holding[0] if holding else None)


def is_here(name: str) -> bool:
    """Whether a checkpoint of that name is here that is neither stale nor damaged."""
    folder = find(name)
    return folder is not None and _is_usable(name, folder)


def own() -> list[Experiment]:
    """Experiments that were trained into runs/ and that nobody registered here, as their notes describe them."""
    found = []
    for note in sorted(local_folder().glob("*.json")):
        if experiments.find(note.stem) is None and ".certificate" not in note.name:
            try:
                described, _ = _described(note)
            except CheckpointError:  # damaged, or of a kind that is not known here: `read` says which
                continue
            if described.name == note.stem:  # else a copy under another name, which nothing can read
                found.append(described)
    return found


def holds_weights(name: str, folder: Path) -> bool:
    """Whether a checkpoint there has the weights of its model, and not its measurements alone."""
    with safe_open(folder / f"{name}.safetensors", "np") as tensors:
        return any(key.startswith("model/") for key in tensors.keys())


def _is_usable(name: str, folder: Path) -> bool:
    try:
        _verified(name, folder)
    except CheckpointError:
        return False
    return True


def _again(name: str) -> str:
    return f"Train it again with `arithlib train {name} --retrain`."


def _described(note: Path) -> tuple[Experiment, dict]:
    """The experiment that a note describes, and the note; CheckpointError for one that cannot be read."""
    experiments.load_presets()  # which also make their kinds of settings known
    try:
        provenance = json.loads(note.read_text(encoding="utf-8"))
        labels = {key: provenance[key] for key in ("name", "about", "scale")}
        return from_json(provenance["settings"] | labels), provenance
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:  # whatever a damaged note may hold
        raise CheckpointError(f"{note.name} cannot be read ({error}). {_again(note.stem)}") from error


def _verified(name: str, folder: Path) -> tuple[Experiment, dict]:
    """The experiment that a note describes, and the note; CheckpointError for a stale one, or other weights."""
    retrain, weights, note = _again(name), folder / f"{name}.safetensors", folder / f"{name}.json"
    described, provenance = _described(note)
    registered = experiments.find(name) or described
    if registered.settings() != described.settings():
        raise CheckpointError(
            f"{name} is stale: it was made by another version of the experiment "
            f"({described.hash()}, now {registered.hash()}). {retrain}"
        )
    if not weights.exists():
        raise CheckpointError(f"{weights.name} is missing beside {note.name}. {retrain}")
    if sha256(weights) != provenance.get("sha256"):
        raise CheckpointError(
            f"{weights.name} is truncated or altered: its sha256 is not the recorded one. {retrain}"
        )
    return registered, provenance


def read(name: str, folder: Path | None = None) -> Trained:
    """Load and verify a checkpoint; CheckpointError says what is wrong with it.

    Raises UnknownExperiment where there is none, and no experiment of that name to make it by.
    """
    folder = folder or find(name)
    if folder is None:
        experiments.get(name)
        raise CheckpointError(f"no checkpoint of {name} is here. Make it with `arithlib train {name}`.")
    experiment, provenance = _verified(name, folder)
    try:
        tensors, _ = load_tensors(folder / f"{name}.safetensors")
    except FileProblem as error:
        raise CheckpointError(f"{error} {_again(name)}") from error
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
    device = choose_device(device)
    state = folder / f"{name}.{experiment.hash()}.state.safetensors"
    torch.manual_seed(experiment.seed)
    model = experiment.build().to(device)
    run = experiment.fit(model, device, state=state, label=name, progress=progress, minutes=minutes)
    if experiment.scale != "gpu":  # a run that was sized for a GPU has tests of that size, too
        model = model.cpu()
    model = experiment.kept_model(model).eval()
    history = run.history | experiment.finish(model, run)
    trained = Trained(experiment, model.cpu(), history, provenance(experiment, history, run.seconds, device))
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


def load_or_train(
    name: str, *, retrain: bool = False, weights: bool = False, progress: bool | None = None
) -> Trained:
    """The trained model of an experiment: read if a checkpoint is there, trained here and now if none is.

    Says what it does before it starts, what for, and how long it took once. retrain=True always trains, into
    runs/; weights=True also where only measurements are here.
    Raises CheckpointError for a stale or damaged checkpoint: weights are never replaced unasked.
    """
    folder = find(name)
    if folder is not None and not retrain:
        trained = read(name, folder)
        if trained.model is not None or not weights:
            return trained
        if (local_folder() / f"{name}.json").exists():
            return read(name, local_folder())
    print(announcement(name), flush=True)
    make(name, progress=progress)
    return read(name, local_folder())


def load(name: str) -> Trained:
    """A shipped (or locally trained) model with its history: `.model` is the network, `.add(a, b)` asks it for a sum.

    Raises CheckpointError where only its measurements are here.
    """
    trained = read(name)
    if trained.model is None and (local_folder() / f"{name}.json").exists():
        trained = read(name, local_folder())
    if trained.model is None:
        raise CheckpointError(_only_measured(name))
    return trained


def _only_measured(name: str) -> str:
    return f"of {name} only the measurements are here. Train it with `arithlib train {name} --retrain`."


def ship(name: str) -> Path:
    """Copy a run from runs/ to where it ships, without the weights of an experiment that does not ship them.

    Returns the file of tensors. Raises CheckpointError for a run that is missing, stale or damaged.
    """
    trained = read(name, local_folder())
    if not trained.experiment.ships_weights:
        trained.model = None
    inside = is_checkout() and (WEIGHTS / f"{name}.json").exists()
    folder = WEIGHTS if inside else shipped_folder() / name.partition("-")[0]
    write(trained, folder)
    return folder / f"{name}.safetensors"


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(f"{prefix}/"): v for k, v in tensors.items() if k.startswith(f"{prefix}/")}


def announcement(name: str, device: str | None = None) -> str:
    """What a run is, how long it is, and what it took where a run of the same settings is recorded.

    It is said before anything is trained. device: the one that it will be trained on, as `make` takes it.
    """
    experiment, folder = experiments.get(name), find(name)
    most = "at most " if experiment.until else ""
    said = f"Training {name} ({experiment.about}): {most}{experiment.steps:,} steps. {_recorded(experiment, folder)}"
    if experiment.scale == "gpu" and choose_device(device).type == "cpu":
        said += f" It was sized for a GPU, and without one {name} will take very long."
    return said


def _recorded(experiment: Experiment, folder: Path | None) -> str:
    unknown = "No time is known: no such run is recorded here."
    if folder is None:
        return unknown
    try:
        note = json.loads((folder / f"{experiment.name}.json").read_text(encoding="utf-8"))
        if note["hash"] != experiment.hash():
            return unknown
        threads, models = note["threads"], note.get("stack", 1)
        together = f", {models} models at once" if models > 1 else ""
        with_what = f"{threads} thread{'s' if threads > 1 else ''}{together}"
        return f"It took {note['seconds']:,.0f} s once, on {note['device']} ({with_what})."
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # whatever a damaged note may hold
        return unknown


def provenance(experiment: Experiment, history: dict, seconds: float, device: torch.device, stack: int = 1) -> dict:
    """How a checkpoint came to be. stack: how many models were trained as one; the seconds are those of all."""
    measured = {k: v for k, v in history.items() if "/" not in k}  # the rest are tables of a snapshot
    final = {k: float(v[-1]) for k, v in measured.items() if v.ndim == 1 and k != "step"}
    return {
        "name": experiment.name,
        "about": experiment.about,
        "hash": experiment.hash(),
        "settings": experiment.settings(),
        "scale": experiment.scale,
        "steps": int(history["step"][-1]),
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
