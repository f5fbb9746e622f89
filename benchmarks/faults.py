"""Damages files and kills programs on purpose and counts what comes of it, into benchmarks/faults.json.

    arithlib bench faults

Every file that the project reads is damaged in a copy, byte by byte and, where it is JSON, value by value; whoever
reads it must refuse it in words (`refused`) or give what it gave before (`unharmed`). Where a file cannot know what
it held, as a text cannot, reading it as it now stands is all that can be asked (`read`). `wrong`, another answer, and
`traceback`, an error nobody foresaw, are faults of ours. Programs that write are killed at random moments and started
again. It needs the executed book (`make book`), and a quarter of an hour on two cores.
"""

import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tqdm import tqdm

from arithlib import checkpoints, experiments, training
from arithlib.certify import checker
from arithlib.files import FileProblem, sha256, write_atomic
from bookkit import files as book_files
from bookkit.build import pages, provenance, regression, staging
from bookkit.build.project import Project
from bookkit.claims import ClaimError, load_claims, scoreboard

ROOT = Path(__file__).resolve().parents[1]
DAMAGES = 100  # of each sort of file
KILLS = {"training": 20, "shipping": 15, "certifying": 10, "building": 5}
LASTS = {"training": 6, "shipping": 6, "certifying": 6, "building": 20}  # seconds, about, undisturbed
ADDER, SUM = "adder-certified", (987654321, 123456789)
CERTIFIED = {"sums": ADDER, "products": "pages-s0", "differences": "differences-s0"}
VALUES = (None, True, 0, -1, 1e308, "", "x", "../../etc", [], {}, [[]], {"kind": "adamw"})


@dataclass
class Reader:
    """Who reads a file, and how that is called. same: whether what was read must be what it was before."""

    path: Path
    read: Callable[[], object]
    refuses: tuple[type[BaseException], ...]
    same: bool = True


def damaged(content: bytes, rng: random.Random) -> bytes:
    """The content with one fault: bits, bytes, a part that is gone, doubled or zero, or one value of its JSON."""
    if rng.random() < 0.5:
        try:
            return changed(json.loads(content), rng)
        except ValueError:
            pass
    at = rng.randrange(len(content))
    to = min(len(content), at + rng.choice((1, 2, 8, 100, 10_000)))
    part = content[at:to]
    bit = bytes([content[at] ^ 1 << rng.randrange(8)])
    put = rng.choice((bit + part[1:], rng.randbytes(len(part)), b"", 2 * part, bytes(len(part))))
    return rng.choice((content[:at] + put + content[to:], content[:at]))


def changed(value: object, rng: random.Random) -> bytes:
    """JSON in which one value, somewhere, is another, or gone."""
    holders = [holder for holder in _holders(value) if len(holder)]
    if holders:
        holder = rng.choice(holders)
        key = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
        if rng.random() < 0.3:
            del holder[key]
        else:
            holder[key] = rng.choice(VALUES)
    return json.dumps(value).encode()


def _holders(value) -> Iterator[dict | list]:
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _holders(inner)


def count(reader: Reader, rng: random.Random) -> tuple[Counter, list[str]]:
    """What came of so many damages, and the first lines of what should not have happened."""
    whole, truth = reader.path.read_bytes(), reader.read()
    found, faults = Counter(), []
    for _ in range(DAMAGES):
        content = damaged(whole, rng)
        reader.path.write_bytes(content)
        try:
            with redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
                now = reader.read()
            outcome = "unharmed" if now == truth else "wrong" if reader.same else "read"
        except reader.refuses:
            outcome = "refused"
        except Exception as error:
            outcome = "traceback"
            faults.append(f"{type(error).__name__}: {error}"[:200])
        found[outcome] += 1
    reader.path.write_bytes(whole)
    return found, faults


def readers(folder: Path) -> dict[str, Reader]:
    """Every sort of file that the project reads, each as a copy in `folder`."""
    for name in CERTIFIED.values():
        for path in checkpoints.find(name).glob(f"{name}.*"):
            shutil.copy(path, folder)

    def add():
        return checkpoints.read(ADDER, folder).add(*SUM)

    def check(name):
        try:
            return checker.check(folder / f"{name}.safetensors", folder / f"{name}.certificate.json")
        except checker.MALFORMED as problem:
            raise checker.Rejected(str(problem)) from problem

    checked = {
        sort.format(what): Reader(folder / f"{name}.{suffix}", partial(check, name), (checker.Rejected,))
        for what, name in CERTIFIED.items()
        for sort, suffix in (
            ("certificate of {}", "certificate.json"),
            ("weights for {}, to the checker", "safetensors"),
        )
    }

    state = folder / "state.safetensors"
    run = dict(steps=6, evaluate_every=3, state=state, progress=False)

    def resume():
        experiment = experiments.get("adder-live")
        model = experiment.build()
        objective = experiment.objective(model, "cpu")
        before = state.read_bytes() if state.exists() else None
        training.train(model, objective, training.AdamW(), **run)
        if before is not None:
            state.write_bytes(before)
        return [value.tolist() for value in model.state_dict().values()]

    resume()
    claims, records, build = folder / "claims", folder / "records", folder / "build"
    shutil.copytree(ROOT / "book" / "claims", claims)
    shutil.copytree(ROOT / "tests" / "baselines" / "10_grokking", folder / "baselines" / "10_grokking")
    shutil.copytree(ROOT / "book" / "_build" / "records" / "10_grokking", records / "10_grokking")
    shutil.copytree(records, build / "records")
    (build / "executed").mkdir()
    executed = build / "executed" / "10_grokking.ipynb"
    shutil.copy(ROOT / "book" / "_build" / "executed" / executed.name, executed)
    site = folder / "site"
    site.mkdir()
    shutil.copy(ROOT / "book" / "_build" / "html" / provenance.FILE, site)
    figure = sorted((records / "10_grokking" / "figures").glob("*.npz"))[0]
    claim = sorted((records / "10_grokking" / "claims").glob("*.json"))[0]

    def compare():
        return list(map(str, regression.compare(records, folder / "baselines")))

    def stage():
        return staging._staged_notebook(ROOT / "notebooks" / executed.name, build, ROOT)

    def board():
        return scoreboard(records, load_claims(claims))

    refusals = (checkpoints.CheckpointError, FileProblem)
    return {
        "weights": Reader(folder / f"{ADDER}.safetensors", add, refusals),
        "note of a checkpoint": Reader(folder / f"{ADDER}.json", add, refusals),
        "state of a run": Reader(state, resume, refusals),
        **checked,
        "claims": Reader(claims / "004.yaml", lambda: load_claims(claims), (ClaimError,), same=False),
        "record of a claim": Reader(claim, board, (ClaimError,), same=False),
        "record of a figure": Reader(figure.with_suffix(".json"), compare, (regression.RegressionError,), same=False),
        "data of a figure": Reader(figure, compare, (regression.RegressionError,), same=False),
        "executed notebook": Reader(executed, stage, (staging.StagingError,), same=False),
        "record of a run": Reader(
            build / "records" / "10_grokking" / "run.json",
            lambda: pages.environment_markdown(ROOT, build),
            (book_files.FileProblem,),
            same=False,
        ),
        "provenance of a site": Reader(
            site / provenance.FILE,
            lambda: provenance.verify(Project(ROOT), site),
            (book_files.FileProblem,),
            same=False,
        ),
    }


BEGINNING = "import shutil, subprocess, sys\nfrom pathlib import Path\nfolder = Path(sys.argv[1])\n"
TRAINING = """
from arithlib import checkpoints, experiments, training
from arithlib.models.grokking import GrokkingConfig
from arithlib.tasks.modular import ModularAddition

experiments.EXPERIMENTS["killed"] = experiments.GrokkingExperiment(
    name="killed", about="", steps=300, evaluate_every=20, snapshot_steps=(40,),
    task=ModularAddition(p=31), model=GrokkingConfig(p=31))
train = training.train
checkpoints.train = lambda *a, **k: train(*a, **(k | {"save_every": 0.05}))
checkpoints.make("killed", folder, device="cpu", progress=False)
"""
SHIPPING = f"""
from arithlib import checkpoints

trained = checkpoints.read({ADDER!r})
for _ in range(200):
    checkpoints.write(trained, folder)
"""
CERTIFYING = f"""
from arithlib import checkpoints
from arithlib.certify import certificates

here = checkpoints.find({ADDER!r})
for suffix in (".safetensors", ".json"):
    shutil.copy(here / ({ADDER!r} + suffix), folder)
checkpoints.SEARCH.append(folder)
certificates.write({ADDER!r})
"""
BUILDING = """
shutil.copytree("tests/bookkit/needle_book", folder, dirs_exist_ok=True)
shutil.copytree("book/_static", folder / "book" / "_static", dirs_exist_ok=True)
for name in ("_config.yml", "book/workflow/Snakefile"):
    shutil.copy(name, folder / name)
subprocess.run([sys.executable, "-m", "bookkit", "book"], cwd=folder, check=True)
"""


PROGRAMS = {"training": TRAINING, "shipping": SHIPPING, "certifying": CERTIFYING, "building": BUILDING}


def left(name: str, folder: Path) -> object:
    """What a program leaves that must not depend on whether it was killed."""
    if name == "training":
        return sha256(folder / "killed.safetensors")
    if name == "shipping":
        return sha256(folder / f"{ADDER}.safetensors"), checkpoints.read(ADDER, folder).add(*SUM)
    if name == "certifying":
        return (folder / f"{ADDER}.certificate.json").read_text()
    page = (folder / "book" / "_build" / "html" / "notebooks" / "10_needle.html").read_text(encoding="utf-8")
    return re.sub(r"\?v=\w+", "", page), (folder / "book" / "_build" / "checked").is_file()


def kill_and_go_on(name: str, program: str, folder: Path, rng: random.Random) -> bool:
    """Start a program, kill it at a random moment, start it again: whether it leaves what an undisturbed one does."""
    command = [sys.executable, "-c", BEGINNING + program]
    if not (folder / "whole").exists():
        (folder / "whole").mkdir(parents=True)
        subprocess.run([*command, folder / "whole"], check=True, capture_output=True, cwd=ROOT)
    killed = Path(tempfile.mkdtemp(dir=folder))
    quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT)
    process = subprocess.Popen([*command, killed], start_new_session=True, **quiet)
    try:
        process.wait(timeout=rng.uniform(2, LASTS[name]))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    subprocess.run([*command, killed], check=True, **quiet)
    return left(name, killed) == left(name, folder / "whole")


def main() -> None:
    rng, found = random.Random(0), {"files": {}, "faults": {}, "kills": {}}
    with tempfile.TemporaryDirectory() as folder:
        for name, reader in tqdm(readers(Path(folder)).items(), desc="damaged files"):
            outcomes, faults = count(reader, rng)
            found["files"][name] = dict(outcomes)
            if faults:
                found["faults"][name] = sorted(set(faults))
            print(f"{name}: {dict(outcomes)}", *sorted(set(faults))[:8], sep="\n  ", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, program in PROGRAMS.items():
            kept = [
                kill_and_go_on(name, program, Path(folder, name), rng) for _ in tqdm(range(KILLS[name]), desc=name)
            ]
            found["kills"][name] = {"kills": len(kept), "as undisturbed": sum(kept)}
            print(f"{name}: {found['kills'][name]}", flush=True)
    write_atomic(ROOT / "benchmarks" / "faults.json", (json.dumps(found, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
