"""What making the book takes, stage by stage, from an empty clone, into benchmarks/build.json.

    arithlib bench build

Twenty minutes on two cores, of the last commit; nothing else should run meanwhile. What each chapter takes is on the
book's page on its environment.
"""

import datetime
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import nbformat

from arithlib.files import write_atomic
from bookkit.build.execute import duration
from bookkit.build.pages import machine
from bookkit.build.project import Project

ROOT = Path(__file__).resolve().parents[1]
PAGE = "11_fourier_circles"
WORKFLOW = "import sys; from bookkit.build import commands as c; sys.exit(c.run_workflow(c.Project.find(), '{}', []))"


def change_one_word(clone: Path) -> None:
    """The first word of a chapter's first paragraph gains a letter."""
    path = clone / "notebooks" / f"{PAGE}.ipynb"
    chapter = nbformat.read(path, as_version=4)
    text = next(cell for cell in chapter.cells if cell.cell_type == "markdown")
    title, paragraph = text.source.split("\n\n", 1)
    text.source = f"{title}\n\nWell: {paragraph}"
    nbformat.write(chapter, path)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder, "book")
        subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
        project, python = Project(clone), str(clone / ".venv" / "bin" / "python")
        # As a newcomer has it: nothing of the environment that this runs in.
        own = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}

        def call(*command):
            subprocess.run(command, cwd=clone, env=own | {"CI": "true"}, check=True)

        def bring(target):
            call(python, "-c", WORKFLOW.format(target.relative_to(clone).as_posix()))

        def word():
            change_one_word(clone)
            call(python, "-m", "bookkit", "book")

        stages = {
            "environment": lambda: call("bash", "book/workflow/setup.sh"),
            "one chapter and its page": lambda: bring(project.page(PAGE) / "html" / "notebooks" / f"{PAGE}.html"),
            "all other chapters": lambda: call(python, "-c", WORKFLOW.format("chapters")),
            "site and its checks": lambda: call(python, "-m", "bookkit", "book"),
            # The book is there, so that this is the tests alone.
            "tests": lambda: call(python, "-m", "bookkit", "test"),
            "the book again, nothing changed": lambda: call(python, "-m", "bookkit", "book"),
            "the book again, one word changed": word,
        }
        seconds = {}
        for name, stage in stages.items():
            started = time.perf_counter()
            stage()
            seconds[name] = round(time.perf_counter() - started, 1)
            print(f"{name}: {duration(seconds[name])}", flush=True)
        found = {
            "machine": machine() | {"made": datetime.datetime.now(datetime.UTC).date().isoformat()},
            "seconds": seconds,
            "chapters": sum(
                json.loads(path.read_text())["seconds"] for path in project.build.glob("records/*/run.json")
            ),
            "megabytes": sum(path.stat().st_size for path in project.site.rglob("*") if path.is_file()) / 1e6,
        }
    write_atomic(ROOT / "benchmarks" / "build.json", (json.dumps(found, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
