"""Work through the presets of one scale in order of value, in sittings, and carry the results away in few files.

A GPU may be at hand for half an hour only, and give back small files only. Each sitting trains what is missing,
leaves a state where its time ran out, and packs weights, notes and states into parts that `cat` and `tar` join again:

    cat results/arithlib.tar.* | tar x -C runs
"""

import io
import tarfile
import time
from pathlib import Path

from arithlib import checkpoints, experiments
from arithlib.experiments import Experiment
from arithlib.files import write_atomic
from arithlib.training import OutOfTime

PART_BYTES = 16 * 2**20
PARTS = 8


def missing(scale: str) -> list[Experiment]:
    """Valued experiments of that scale without matching weights here, the most valuable first."""
    valued = [e for e in experiments.match("*") if e.scale == scale and getattr(e, "value", 0) > 0]
    if not valued:
        known = sorted({e.scale for e in experiments.match("*")})
        raise ValueError(f"no queue is called {scale!r}; there are: {', '.join(known)}")
    return sorted((e for e in valued if not checkpoints.is_here(e.name)), key=lambda e: -e.value)


def work(scale: str, minutes: float, out: Path, device: str | None = None) -> list[Path]:
    """Train what is missing until the time is up, then pack what was made; returns the parts.

    out: folder for weights, states and parts. What an earlier sitting left there is continued, not made again.
    """
    deadline = time.perf_counter() + 60 * minutes
    waiting = [e for e in missing(scale) if not (out / f"{e.name}.json").exists()]
    for experiment in waiting:
        left = (deadline - time.perf_counter()) / 60
        if left <= 0:
            break
        try:
            trained = checkpoints.make(experiment.name, out, device=device, minutes=left)
            print(f"{experiment.name}: done in {trained.provenance['seconds']:.0f} s", flush=True)
        except OutOfTime as stop:
            print(stop, flush=True)
    return pack(out)


def pack(folder: Path, parts: int = PARTS, part_bytes: int = PART_BYTES) -> list[Path]:
    """One tar of a folder's finished weights, then states, in at most `parts` files; says what does not fit.

    Finished experiments go in order of value, so that what is left out is worth least.
    """
    for old in folder.glob("arithlib.tar.*"):
        old.unlink()
    value = {e.name: getattr(e, "value", 0) for e in experiments.match("*")}
    notes = sorted(folder.glob("*.json"), key=lambda note: -value.get(note.stem, 0))
    items = [[note.with_suffix(".safetensors"), note] for note in notes]
    items += [[state] for state in sorted(folder.glob("*.state.safetensors"))]
    buffer = io.BytesIO()
    room = parts * part_bytes - 2 * tarfile.RECORDSIZE  # a tar ends with up to two records of zeros
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for files in items:
            size = sum(file.stat().st_size + 2 * tarfile.BLOCKSIZE for file in files)
            if buffer.tell() + size > room:
                print(
                    f"{files[0].name} stays in {folder}: {parts} parts of {part_bytes:,} bytes are full", flush=True
                )
                continue
            for file in files:
                tar.add(file, arcname=file.name, filter=_anonymous)
    content = buffer.getvalue()
    written = []
    for index, first in enumerate(range(0, len(content) if items else 0, part_bytes)):
        written.append(folder / f"arithlib.tar.{index}")
        write_atomic(written[-1], content[first : first + part_bytes])
    return written


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without the name and time of whoever packed it."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry
