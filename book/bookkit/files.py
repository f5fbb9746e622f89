"""Files that are either whole or not there."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, UnionType

ROOM = 2**20  # bytes that a program which begins to write must find


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


def check_writable(folder: Path) -> None:
    """Make `folder` and write to it now: half an hour of training later is too late to learn that it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(ROOM))
    except OSError as error:
        raise FileProblem(
            f"cannot write to {folder}: {error.strerror or error}. Nothing was run. "
            "Free some space, or make it a folder you may write to, or choose another."
        ) from error


def read_json(path: Path, fields: Mapping[str, type | UnionType] = MappingProxyType({})) -> dict:
    """The object that a JSON file holds.

    fields: what must be there, and of which type. Raises FileProblem for a file of which that is not true.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        wrong = [name for name, type in fields.items() if not isinstance(content[name], type)]
    except (ValueError, LookupError, TypeError) as error:
        raise FileProblem(f"{path.parent.name}/{path.name} is damaged ({error!r}): make it again") from error
    if wrong or not isinstance(content, dict):
        raise FileProblem(f"{path.parent.name}/{path.name} is damaged (in {wrong or 'all'}): make it again")
    return content
