"""Where a notebook's figures and measurements are kept.

Records go to the folder named by BOOKKIT_RECORDS, which the run of the book sets for each notebook, and to
book/_build/records/interactive when a reader works by hand::

    figures/<key>.json .npz .svg .png    what was drawn, from what
    claims/<id>.json                     what was measured, and the verdict
    assets/<name>                        what an element of the page loads when it is asked for

In a run of the book a key, a claim or a glued name that comes again with other content is an error; by hand,
running a cell again simply replaces what it recorded.
"""

import json
import os
from pathlib import Path

from bookkit.claims import INTERACTIVE, repo_root
from bookkit.files import write_atomic

# What this run has recorded: {records folder: {(kind, name): content}}. Not read back from disk, where an
# earlier run may have left something else.
recorded: dict[Path, dict[tuple[str, str], object]] = {}


class ChapterError(ValueError):
    """A figure, claim or number a notebook may not record like this; the message says why and what to do."""


def records_folder() -> Path:
    """Where this notebook's records go."""
    if folder := os.environ.get("BOOKKIT_RECORDS"):
        return Path(folder)
    return repo_root() / "book" / "_build" / "records" / INTERACTIVE


def remember(kind: str, name: str, content) -> None:
    """Note that this run recorded `name`. Raises ChapterError if it already did, with other content."""
    seen = recorded.setdefault(records_folder(), {})
    if "BOOKKIT_RECORDS" in os.environ and seen.get((kind, name), content) != content:
        raise ChapterError(f"{kind} {name!r} was recorded before in this notebook with other content: rename one")
    seen[kind, name] = content


def write(path: Path, content) -> None:
    """Atomically, bytes as they are and anything else as readable JSON. Raises FileProblem."""
    if not isinstance(content, bytes):
        content = (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()
    write_atomic(path, content)
