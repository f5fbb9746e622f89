"""Train the runs that need a GPU, most valuable first, in sittings; carry the results away in few files.

    python -m presets.queueing --minutes 25 --out results

Each sitting trains what is missing, leaves a state where its time ran out, and packs weights, notes and states into
parts that `cat` and `tar` join again:

    cat results/arithlib.tar.* | tar x -C runs
"""

import argparse
import io
import tarfile
import time
from pathlib import Path

from arithlib import checkpoints, experiments
from arithlib.experiments import Experiment
from arithlib.files import write_atomic
from arithlib.training import OutOfTime

PART_BYTES = 16 * 2**20
PARTS = 4
# Patterns of names. Many seeds of the grokked network in one run; the paper's adder, then without loops and without
# injection; of the published tables one layer, its loops, and as many layers; source 002's own layout, and then its
# shape in ours.
QUEUE = (
    "grokking-gpu",
    "abacus-gpu-s?", "abacus-gpu-8x1-*", "abacus-gpu-noinjection-*",
    "depth-gpu-add-1x1-*", "depth-gpu-add-1x12-*", "depth-gpu-add-12x1-*", "depth-gpu-add-2x6-*",
    "depth-gpu-hop16-1x*", "depth-gpu-hop16-6x*",
    "abacus-gpu-source-*", "abacus-gpu-1x16-*", "graphs-gpu-1x*", "graphs-gpu-?x1-*",
    "abacus-gpu-*", "graphs-gpu-*", "depth-gpu-*",
)  # fmt: skip


def queue() -> list[Experiment]:
    """Every run of the queue, the most valuable first."""
    named = {experiment.name: experiment for pattern in QUEUE for experiment in experiments.match(pattern)}
    return list(named.values())


def work(minutes: float, out: Path, device: str | None = None) -> list[Path]:
    """Train what is missing until the time is up, then pack what was made, of runs that do not ship
    weights their measurements alone; returns the parts.

    out: folder for weights, states and parts. What an earlier sitting left there is continued, not made again.
    """
    deadline = time.perf_counter() + 60 * minutes
    for experiment in queue():
        if checkpoints.is_here(experiment.name) or (out / f"{experiment.name}.json").exists():
            continue
        left = (deadline - time.perf_counter()) / 60
        if left <= 0:
            break
        print(checkpoints.announcement(experiment.name, device), flush=True)
        try:
            trained = checkpoints.make(experiment.name, out, device=device, minutes=left)
            if not experiment.ships_weights:
                trained.model = None
                checkpoints.write(trained, out)
            print(f"{experiment.name}: done in {trained.provenance['seconds']:.0f} s", flush=True)
        except OutOfTime as stop:
            print(stop, flush=True)
    return pack(out)


def pack(folder: Path, parts: int = PARTS, part_bytes: int = PART_BYTES) -> list[Path]:
    """One tar of a folder's finished weights, then states, in at most `parts` files; says what does not fit.

    Finished runs go in the order of the queue, so that what is left out is worth least.
    """
    for old in folder.glob("arithlib.tar.*"):
        old.unlink()
    order = [experiment.name for experiment in queue()]
    notes = sorted(folder.glob("*.json"), key=lambda note: order.index(note.stem))
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


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m presets.queueing", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, required=True, help="stop after so long; the same command continues")
    parser.add_argument("--out", type=Path, required=True, help="folder for the results, packed into at most 8 files")
    parser.add_argument("--device", help="cpu or cuda (default: cuda if there is one)")
    options = parser.parse_args(argv)
    for part in work(options.minutes, options.out, options.device):
        print(f"{part}  {part.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
