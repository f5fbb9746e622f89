"""Does the suite notice faults? One deliberate fault at a time (`mutants.yaml`), and which kinds of check see it.

A fault is applied to a clone of the last commit. Then run, each by itself:

    unit     the tests that need no built book, those of the faulty module first
    run      the cheapest chapter that reaches the faulty definition: does it run to its end?
    data, structure, pixels    its figures against their baselines
    claims   its verdicts against theirs

A chapter that takes longer than a minute is left out. Needs a built book, whose records say how long each takes.
`mutants.json` holds what was found, and at which commit. Faults that it holds are not committed again: interrupted,
the same command continues, and whoever wants a fault measured anew removes its entry, or the file.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

import yaml
from tqdm import tqdm

from arithlib import experiments
from arithlib.files import write_atomic
from bookkit.build.digest import notebook_digest
from bookkit.build.project import Project
from bookkit.build.regression import compare, compare_verdicts

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "mutants.json"
LONGEST = 60  # seconds that a chapter may take
PATIENCE = 1200  # seconds after which a test or a chapter that does not end counts as having failed
FIGURES = ("data", "structure", "pixels", "claims")


def shell(clone: Path, *command: str) -> subprocess.CompletedProcess | None:
    """What a Python command in the clone says, all of whose imports are the clone's; None if it takes too long."""
    rooms = os.pathsep.join(str(clone / room) for room in ("", "book", "notebooks"))
    environment = os.environ | {"PYTHONPATH": rooms, "OMP_NUM_THREADS": "1", "CI": "true"}
    try:
        return subprocess.run(
            [sys.executable, *command], cwd=clone, env=environment, capture_output=True, text=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        return None


def apply(clone: Path, mutant: dict) -> None:
    """Raises ValueError unless the text to be changed is there exactly once."""
    path = clone / mutant["file"]
    text = path.read_text(encoding="utf-8")
    if text.count(mutant["old"]) != 1:
        raise ValueError(
            f"{mutant['file']} holds {mutant['old']!r} {text.count(mutant['old'])} times: once is needed"
        )
    path.write_text(text.replace(mutant["old"], mutant["new"]), encoding="utf-8")


def imports(mutant: dict) -> tuple[str, re.Pattern]:
    """The name of the faulty module, and what an import of it looks like."""
    module = mutant["file"].removeprefix("notebooks/").removeprefix("book/").removesuffix(".py")
    package, _, name = module.replace("/", ".").rpartition(".")
    both = rf"\b{re.escape(package)}\.{name}\b|\bfrom {re.escape(package)} import [^\n]*\b{name}\b"
    return name, re.compile(both)


def test_files(clone: Path, mutant: dict) -> list[list[str]]:
    """Test files in two lots: those that name the faulty module, and all others of its room and above."""
    rooms = ("arithlib", "chapters") if mutant["file"].startswith(("arithlib", "notebooks")) else ("bookkit",)
    name, named = imports(mutant)
    lots = [[], []]
    paths = [file for room in rooms for file in (clone / "tests" / room).glob("test_*.py")]
    for path in sorted(paths, key=lambda path: (name not in path.stem, path)):
        lots[not named.search(path.read_text(encoding="utf-8"))].append(str(path.relative_to(clone)))
    return lots


def unit(clone: Path, mutant: dict) -> str | None:
    """The first test that fails, or None."""
    for files in filter(None, test_files(clone, mutant)):
        said = shell(clone, "-m", "pytest", "-x", "-q", "-n0", "-m", "not built", "-rfE", *files)
        if said is None:
            return "a test that does not end"
        if said.returncode:
            found = re.search(r"^(?:FAILED|ERROR) (\S+)", said.stdout, flags=re.MULTILINE)
            return found[1] if found else said.stdout[-200:] + said.stderr[-200:]
    return None


def digests(clone: Path) -> dict[str, str]:
    registered = {experiment.name: repr(experiment) for experiment in experiments.match("*")}
    project = Project(clone)
    return {name: notebook_digest(clone, name, project.notebooks[name], registered) for name in project.notebooks}


def chapter(clone: Path, mutant: dict, before: dict[str, str], seconds: dict[str, float]) -> str | None:
    """The cheapest chapter that reaches what was changed; if there is any, one that imports its module itself."""
    after = digests(clone)
    texts = {name: (clone / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8") for name in seconds}
    reaching = [name for name in seconds if after[name] != before[name]]
    return min(reaching, key=lambda name: (not imports(mutant)[1].search(texts[name]), seconds[name]), default=None)


def rebuild(clone: Path, name: str) -> dict[str, int | bool]:
    """Whether the chapter runs, and how many changes of each kind are seen in it."""
    said = shell(clone, "-m", "bookkit.build.execute", name)
    if said is None or said.returncode:
        return {"run": True}
    records, baselines = clone / "book" / "_build" / "records", clone / "tests" / "baselines"
    changes = [*compare(records, baselines), *compare_verdicts(records, baselines)]
    own = [change for change in changes if change.figure.startswith(f"{name}/")]
    return {"run": False} | {kind: sum(change.level == kind for change in own) for kind in FIGURES}


def examine(clone: Path, mutant: dict, before: dict[str, str], seconds: dict[str, float]) -> dict:
    """All that is seen of one fault; the clone is put back."""
    try:
        apply(clone, mutant)
        found = {"unit": unit(clone, mutant), "chapter": chapter(clone, mutant, before, seconds)}
        return found | (rebuild(clone, found["chapter"]) if found["chapter"] else {})
    finally:
        subprocess.run(["git", "checkout", "-q", "."], cwd=clone, check=True)


def caught(found: dict) -> bool:
    return bool(found["unit"] or found.get("run") or any(found.get(kind) for kind in FIGURES))


def main() -> None:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True)
    mutants = yaml.safe_load(RESULTS.with_suffix(".yaml").read_text(encoding="utf-8"))
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    project = Project(ROOT)
    # Of chapters that compute something themselves.
    chapters = [name for name, settings in project.notebooks.items() if not settings["files"]]
    seconds = {name: json.loads((project.records(name) / "run.json").read_text())["seconds"] for name in chapters}
    seconds = {name: taken for name, taken in seconds.items() if taken <= LONGEST}
    results = {mutant["about"]: results[mutant["about"]] for mutant in mutants if mutant["about"] in results}
    waiting = [mutant for mutant in mutants if mutant["about"] not in results]
    with tempfile.TemporaryDirectory() as folder:
        clones = SimpleQueue()
        workers = os.cpu_count() or 1
        for number in range(workers):
            subprocess.run(["git", "clone", "-q", ROOT, f"{folder}/{number}"], check=True)
            clones.put(Path(folder, str(number)))
        before = digests(Path(folder, "0"))

        def job(mutant):
            clone = clones.get()
            try:
                return mutant, examine(clone, mutant, before, seconds)
            finally:
                clones.put(clone)

        with ThreadPoolExecutor(workers) as pool:
            for mutant, found in tqdm(pool.map(job, waiting), total=len(waiting), unit="fault"):
                results[mutant["about"]] = {"file": mutant["file"], "commit": commit.stdout.strip()} | found
                write_atomic(RESULTS, (json.dumps(results, indent=1, ensure_ascii=False) + "\n").encode())
                if not caught(found):
                    tqdm.write(f"not seen: {mutant['file']}: {mutant['about']}")
    print(f"{sum(map(caught, results.values()))} of {len(results)} faults were seen")


if __name__ == "__main__":
    main()
