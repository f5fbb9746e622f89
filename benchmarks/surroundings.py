"""Runs the programs that write files in unkind surroundings and counts what comes of it, into surroundings.json.

    arithlib bench surroundings

A full disk, a folder nobody may write to, the same program twice at once, a clock ten years back, no network, a
system that knows ASCII alone, a folder with blanks, quotation marks and umlauts in its name. A program may do as it
always does (`as usual`). Or it stops and says in words what to do (`refused`), and does as always once the fault is
mended. `wrong`, something else in the end, and `traceback`, an error nobody foresaw, are faults of ours. It needs
root on Linux (disks of its own, no network), and five minutes on two cores.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import indent

from faults import ADDER, BEGINNING, ROOT, SHIPPING, TRAINING, left
from tqdm import tqdm

from arithlib import checkpoints
from arithlib.files import write_atomic

PATIENCE = 600  # seconds for a program that takes a quarter of a minute
GUARDED = """
from arithlib.checkpoints import CheckpointError
from arithlib.files import FileProblem
try:
{}
except (CheckpointError, FileProblem) as problem:
    sys.exit(f"arithlib: {{problem}}")
"""
CERTIFYING = f"""
from arithlib import checkpoints
from arithlib.certify import certificates
checkpoints.SEARCH.append(folder)
certificates.write({ADDER!r})
"""
BUILDING = "sys.exit(subprocess.run([sys.executable, '-m', 'bookkit', 'book'], cwd=folder).returncode)"
PROGRAMS = {"building": BUILDING} | {
    name: GUARDED.format(indent(program, "    "))
    for name, program in {"training": TRAINING, "shipping": SHIPPING, "certifying": CERTIFYING}.items()
}
ELSEWHEN = "import time\nnow = time.time\ntime.time = lambda: now() - 10 * 365 * 86400\n"


@dataclass
class Place:
    """Where and how a program is run: its folder, what comes before its command, and what its environment adds."""

    folder: Path
    before: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)

    def start(self, name: str) -> subprocess.Popen:
        """The program on its way, in a session of its own."""
        rooms = os.pathsep.join(str(ROOT / room) for room in ("", "book", "notebooks"))
        return subprocess.Popen(
            [*self.before, sys.executable, "-c", BEGINNING + PROGRAMS[name], self.folder],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": rooms, "OMP_NUM_THREADS": "1"} | self.environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip

    def run(self, name: str) -> tuple[int, str]:
        """Status and words of the program, run to its end."""
        process = self.start(name)
        words = process.communicate(timeout=PATIENCE)[0]
        return process.returncode, words.decode("utf-8", "replace")


def prepare(name: str, folder: Path) -> None:
    """What the program finds: the small book is what the tests build."""
    folder.mkdir(parents=True, exist_ok=True)
    if name == "building":
        shutil.copytree(ROOT / "tests" / "bookkit" / "needle_book", folder, dirs_exist_ok=True)
        shutil.copytree(ROOT / "book" / "_static", folder / "book" / "_static")
        for part in ("_config.yml", "book/workflow/Snakefile"):
            shutil.copy(ROOT / part, folder / part)
    elif name == "certifying":
        for suffix in (".safetensors", ".json"):
            shutil.copy(checkpoints.find(ADDER) / f"{ADDER}{suffix}", folder)


def outcome(status: int, words: str, kept: bool) -> str:
    """What came of a run: `kept` says whether it left what it always leaves."""
    if "Traceback (most recent call last)" in words:
        return "traceback"
    if status == 0:
        return "as usual" if kept else "wrong"
    return "refused"


# ---- the surroundings: each takes a program and a folder, and gives (status, words) of the run and the place for the
# ---- run that follows once the fault is mended


@contextmanager
def disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """A disk of its own, in memory."""
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder], check=True)
    try:
        yield folder / "here"
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@contextmanager
def full_disk(name: str, folder: Path):
    with disk(folder, 64) as here:
        prepare(name, here)
        filler = folder / "filler"
        with filler.open("wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)) == 4096:
                    pass
            except OSError:
                pass
        yield Place(here).run(name), Place(here), filler.unlink


@contextmanager
def read_only(name: str, folder: Path):
    def mount(how: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{how}", folder], check=True)

    with disk(folder, 64) as here:
        prepare(name, here)
        mount("ro")
        yield Place(here).run(name), Place(here), lambda: mount("rw")


@contextmanager
def twice_at_once(name: str, folder: Path):
    prepare(name, folder)
    place = Place(folder)
    both = [place.start(name) for _ in range(2)]
    ends = [(process.communicate(timeout=PATIENCE)[0].decode(), process.returncode) for process in both]
    status = min(status for _, status in ends)
    yield (status, "\n".join(words for words, _ in ends)), place, nothing


@contextmanager
def clock_set_back(name: str, folder: Path):
    """It is begun, stopped after some seconds, and goes on ten years earlier."""
    prepare(name, folder)
    begun = Place(folder).start(name)
    try:
        begun.communicate(timeout=4)
    except subprocess.TimeoutExpired:
        os.killpg(begun.pid, 9)
        begun.communicate()
    with tempfile.TemporaryDirectory() as room:
        Path(room, "sitecustomize.py").write_text(ELSEWHEN)
        rooms = os.pathsep.join([room, *(str(ROOT / part) for part in ("", "book", "notebooks"))])
        place = Place(folder, environment={"PYTHONPATH": rooms})
        yield place.run(name), place, nothing


@contextmanager
def no_network(name: str, folder: Path):
    prepare(name, folder)
    place = Place(folder, before=("unshare", "--net"))
    yield place.run(name), place, nothing


@contextmanager
def ascii_only(name: str, folder: Path):
    prepare(name, folder)
    environment = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    place = Place(folder, environment=environment)
    yield place.run(name), place, nothing


@contextmanager
def odd_name(name: str, folder: Path):
    place = Place(folder / "Bücher von Ödön, 'neu' & \"alt\" ($HOME)")
    prepare(name, place.folder)
    yield place.run(name), place, nothing


def nothing() -> None:
    """There is nothing to mend."""


SURROUNDINGS: dict[str, Callable] = {
    "full disk": full_disk,
    "read-only folder": read_only,
    "twice at once": twice_at_once,
    "clock set back": clock_set_back,
    "no network": no_network,
    "ASCII only": ascii_only,
    "blanks, quotes, umlauts": odd_name,
}


def main() -> None:
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in PROGRAMS:
            whole = Path(folder, name, "whole")
            prepare(name, whole)
            status, words = Place(whole).run(name)
            if status:
                sys.exit(f"{name} fails in the kindest of surroundings:\n{words}")
        for surrounding, meet in SURROUNDINGS.items():
            for name in tqdm(PROGRAMS, desc=surrounding):
                truth = left(name, Path(folder, name, "whole"))
                with meet(name, Path(folder, name, surrounding.replace(" ", "-"))) as (met, place, mend):
                    mend()
                    again, later = (met[0], "") if met[0] == 0 else place.run(name)
                    kept = again == 0 and left(name, place.folder) == truth
                    result = outcome(*met, kept)
                    if result == "refused" and not kept:
                        result = "traceback" if "Traceback" in later else "wrong"
                found.setdefault(surrounding, {})[name] = result
                if result != "as usual":
                    words = (met[1] if result == "refused" else met[1] + later).strip().splitlines()[-12:]
                    print(f"{surrounding}, {name}: {result}", *words, sep="\n  ", flush=True)
    write_atomic(ROOT / "benchmarks" / "surroundings.json", (json.dumps(found, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
