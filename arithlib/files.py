"""Files that are either whole or not there: atomic writes, tensors in safetensors only."""

import hashlib
import json
import os
import tempfile
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor


class FileProblem(RuntimeError):
    """A file could not be written or read; the message says which, why, and what to do."""


def write_atomic(path: Path, content: bytes) -> None:
    """Write `content` beside `path` and move it into place: a reader sees the old file or the new, never half."""
    path = Path(path)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise FileProblem(
            f"could not write {path}: {error.strerror or error}. "
            "Free some space or choose a folder you may write to; whatever stood there before is unchanged."
        ) from error


def save_tensors(path: Path, tensors: dict[str, Tensor], about: dict | None = None) -> str:
    """Write named tensors as safetensors with a JSON note and a checksum of both; returns the file's sha256."""
    contiguous = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    note = (about or {}) | {"checksum": _checksum(contiguous, about or {})}
    # One entry only: those of a safetensors header have no order, and equal contents are to be equal files.
    content = save(contiguous, {"about": json.dumps(note, sort_keys=True)})
    write_atomic(path, content)
    return hashlib.sha256(content).hexdigest()


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict]:
    """Named tensors and the JSON note of a file written by `save_tensors`.

    Raises FileProblem for a file that is not what was written; one from before there were checksums is believed.
    """
    try:
        with safe_open(str(path), framework="pt") as file:
            about = json.loads((file.metadata() or {}).get("about", "{}"))
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}
            checksum = about.pop("checksum", None)
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:
        raise FileProblem(
            f"{path} is truncated or not a safetensors file ({error}). Delete it and train again."
        ) from error
    if checksum not in (None, _checksum(tensors, about)):
        raise FileProblem(f"{path} is damaged: its checksum is another. Delete it and train again.")
    return tensors, about


def _checksum(tensors: dict[str, Tensor], about: dict) -> str:
    """sha256 of the note, and of names, types, shapes and numbers."""
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name, value in sorted(tensors.items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def sha256(path: Path) -> str:
    """Hexadecimal sha256 of a file's content."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def choose_device(name: str | None) -> torch.device:
    """The device of that name, or a GPU if there is one. Raises ValueError for one that is not there."""
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name is None:
        return torch.device("cuda" if found else "cpu")
    known = ["cpu", *(["cuda"] if found else []), *(f"cuda:{number}" for number in range(found))]
    if name not in known:
        raise ValueError(f"device {name!r} is none that torch can use here: choose {' or '.join(known)}")
    return torch.device(name)


def device_name(device: torch.device | str) -> str:
    """'cpu' or the GPU's model name."""
    device = torch.device(device)
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
