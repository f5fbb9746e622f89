"""Files that are either whole or not there."""

import os
import tempfile
from pathlib import Path


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
