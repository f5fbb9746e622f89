"""The workflow makes what is missing or stale and nothing else, here and on a cluster."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest
import yaml
from nbformat.v4 import new_code_cell, new_notebook

from bookkit.build import commands
from bookkit.build.project import Project
from bookkit.build.rulegraph import draw, essential, read_dot, rows, snakemake_rulegraph

REPOSITORY = Path(__file__).resolve().parents[2]
CHAPTERS = {
    "10_waves": ["from arithlib.waves import wave\nprint(wave * steps)"],
    "11_sums": ["from arithlib.sums import total\nprint(total + steps)"],
}
EXECUTED = [f"book/_build/executed/{name}.ipynb" for name in CHAPTERS]


# Its library trains five runs. Nothing here needs torch, which takes every program two seconds to import.
EXPERIMENTS = """\
from fnmatch import fnmatch
from types import SimpleNamespace


class Experiment(SimpleNamespace):
    def hash(self):
        return self.name


def match(pattern):
    found = [Experiment(name=f"waves-s{seed}", scale="cpu") for seed in range(5)]
    return [experiment for experiment in found if fnmatch(experiment.name, pattern)]


def get(name):
    return match(name)[0]
"""


def write_chapter(root: Path, name: str, cells: list[str]) -> None:
    tagged = new_code_cell("steps = 3", metadata={"tags": ["parameters"]})
    (root / "notebooks").mkdir(exist_ok=True)
    nbformat.write(new_notebook(cells=[tagged, *map(new_code_cell, cells)]), root / "notebooks" / f"{name}.ipynb")


def snakemake(root: Path, *arguments: str) -> list[str]:
    command = [sys.executable, "-m", "snakemake", "--snakefile", "book/workflow/Snakefile", "--nolock"]
    return [*command, "--rerun-incomplete", "--keep-going", *arguments]


def with_own_library(root: Path) -> dict:
    """The environment in which the copies under `root` are what notebooks import."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(str(root / room) for room in ("", "book", "notebooks"))}


# To import Snakemake takes longer than a plan of this book: it is forked from one process that has imported it, and
# is then as `python -m` would have it. Windows has no such processes, and starts anew.
FORKING = """
import json, os, sys
from snakemake.cli import main

for line in sys.stdin:
    root, environment, arguments, said = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(root)
        os.environ.update(environment)
        sys.path[:1] = [root, *environment["PYTHONPATH"].split(os.pathsep)]
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        os.dup2(1, 2)
        main(arguments)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def attempt(root: Path, *arguments: str) -> subprocess.CompletedProcess:
    """What Snakemake answers, with all that it says in one text, as on a screen."""
    to_one = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.run(snakemake(root, *arguments), cwd=root, env=with_own_library(root), **to_one)


@pytest.fixture(scope="module", autouse=sys.platform != "win32")
def forking(tmp_path_factory):
    said = tmp_path_factory.mktemp("said") / "said"

    def attempt(root: Path, *arguments: str) -> subprocess.CompletedProcess:
        command = snakemake(root, *arguments)
        job = [str(root), with_own_library(root), command[3:], str(said)]
        print(json.dumps(job), file=server.stdin, flush=True)
        status = int(server.stdout.readline())
        return subprocess.CompletedProcess(command, status, said.read_text("utf8"))

    command = [sys.executable, "-c", FORKING]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys.modules[__name__], "attempt", attempt)
        yield


def ask(root: Path, *arguments: str) -> str:
    answer = attempt(root, *arguments)
    assert answer.returncode == 0, answer.stdout
    return answer.stdout


def runs(root: Path, *arguments: str) -> set[str]:
    """Notebooks that a build runs, or would run."""
    return set(re.findall(r"wildcards: notebook=(\w+)", ask(root, *arguments, "--cores", "2", *EXECUTED)))


def stale(root: Path) -> set[str]:
    return runs(root, "--dry-run")


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A small checkout, in a folder with a space in its name, whose two notebooks have been run."""
    root = tmp_path_factory.mktemp("a book")
    for folder in ("book/bookkit", "book/workflow"):
        shutil.copytree(REPOSITORY / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("requirements.txt", "pyproject.toml", "_config.yml"):
        shutil.copy(REPOSITORY / name, root)
    (root / "arithlib").mkdir()
    for name, text in (("__init__", ""), ("experiments", EXPERIMENTS), ("waves", "wave = 1\n")):
        (root / "arithlib" / f"{name}.py").write_text(text)
    (root / "arithlib" / "sums.py").write_text("total = 0\n")
    (root / "book" / "claims").mkdir()
    chapters = [{"file": f"notebooks/{name}"} for name in CHAPTERS]
    (root / "_toc.yml").write_text(yaml.safe_dump({"format": "jb-book", "root": "book/index", "chapters": chapters}))
    config = {"registry": "arithlib.experiments", "sweep": ["waves-*"], "retrained": False, "limit": 600}
    config["prefer_retrained"] = ""
    (root / "book" / "workflow" / "config.yaml").write_text(yaml.safe_dump(config))
    for name, cells in CHAPTERS.items():
        write_chapter(root, name, cells)
    ask(root, "--cores", "2", *EXECUTED)
    return root


@pytest.fixture
def project(built, tmp_path) -> Path:
    """A copy of that checkout to change."""
    return shutil.copytree(built, tmp_path / "a book")


def test_only_what_reaches_a_changed_module_runs_again_whatever_time_stamps_and_other_modules_say(
    project,
):
    for name in CHAPTERS:
        record = json.loads((project / "book/_build/records" / name / "run.json").read_text())
        assert record["status"] == "ok"
    for path in [
        *project.glob("notebooks/*"),
        *project.glob("arithlib/**/*.py"),
        project / "book/workflow/config.yaml",
    ]:
        os.utime(path)
    (project / "arithlib" / "petals.py").write_text("petals = 5\n")
    (project / "arithlib" / "waves.py").write_text("wave = 2\n")
    assert stale(project) == {"10_waves"}


def test_a_page_alone_runs_its_chapter_alone_also_where_others_come_first(project, monkeypatch, capfd):
    for name, cells in CHAPTERS.items():
        write_chapter(project, name, ["print(steps)", *cells])
    path = project / "notebooks" / "11_sums.ipynb"
    chapter = nbformat.read(path, as_version=4)
    chapter.metadata["bookkit"] = {"first": True}
    nbformat.write(chapter, path)
    monkeypatch.setenv("PYTHONPATH", with_own_library(project)["PYTHONPATH"])

    def planned(target):
        assert commands.run_workflow(Project(project), target, ["--dry-run", "--quiet", "host"]) == 0
        return set(re.findall(r"wildcards: notebook=(\w+)", "".join(capfd.readouterr())))

    assert planned("book/_build/page/10_waves/html/notebooks/10_waves.html") == {"10_waves"}
    assert planned("chapters") == {"10_waves", "11_sums"}


def test_a_failed_notebook_runs_again_and_the_others_are_kept(project):
    write_chapter(project, "10_waves", ["1 / (steps - 3)"])
    write_chapter(project, "11_sums", ["print(steps + 1)"])
    answer = attempt(project, "--cores", "2", *EXECUTED)
    assert answer.returncode == 1
    for said in ("11_sums: running (last time it took ", "10_waves.ipynb failed in cell 1", "ZeroDivisionError"):
        assert said in answer.stdout, answer.stdout
    assert (project / "book/_build/executed/10_waves.failed.ipynb").exists()
    assert stale(project) == {"10_waves"}


def kill_with_children(process: subprocess.Popen) -> None:
    """Kill a process and all that it started, as no signal to a group would do on Windows."""
    children = psutil.Process(process.pid).children(recursive=True)
    for member in (process, *children):
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()
    process.wait()
    psutil.wait_procs(children, timeout=600)


def test_a_build_that_was_killed_goes_on_where_it_stopped(project):
    marker = project / "running"
    waits = f"import pathlib, time\npathlib.Path({str(marker)!r}).touch()\ntime.sleep(3600 * (steps == 3))"
    write_chapter(project, "10_waves", [waits])
    build = subprocess.Popen(
        snakemake(project, "--cores", "2", *EXECUTED),
        cwd=project,
        env=with_own_library(project),
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 600
    while not marker.exists() and build.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    kill_with_children(build)
    assert marker.exists(), "the notebook never started"
    write_chapter(project, "10_waves", ["print(steps)"])
    assert runs(project) == {"10_waves"}
    assert (project / EXECUTED[0]).exists()


def test_the_slurm_profile_plans_one_job_for_each_experiment_of_a_sweep(built):
    plan = ask(built, "sweep", "--dry-run", "--profile", "book/workflow/profiles/slurm")
    assert set(re.findall(r"wildcards: experiment=(\S+)", plan)) == {f"waves-s{seed}" for seed in range(5)}
    assert re.search(r"rule train:.*?runtime=240", plan, re.DOTALL), "the profile's resources are not in the plan"


def load_weights(root: Path) -> None:
    """Have the first notebook load weights that nobody shipped."""
    path = root / "notebooks" / "10_waves.ipynb"
    chapter = json.loads(path.read_text())
    chapter["metadata"]["bookkit"] = {"checkpoints": ["waves-s0"]}
    path.write_text(json.dumps(chapter))


def test_weights_that_nobody_shipped_are_trained_before_the_notebook_that_loads_them(project):
    load_weights(project)
    plan = ask(project, "--dry-run", "--cores", "2", *EXECUTED)
    assert "experiment=waves-s0" in plan and "notebook=10_waves" in plan
    (project / "checkpoints").mkdir()
    (project / "checkpoints" / "waves-s0.safetensors").write_text("shipped")
    assert "rule train" not in ask(project, "--dry-run", "--cores", "2", *EXECUTED)


# --- the rule graph ---


def test_the_rule_graph_leads_from_training_to_the_checked_site(project, monkeypatch):
    load_weights(project)
    monkeypatch.setenv("PYTHONPATH", with_own_library(project)["PYTHONPATH"])
    arrows = read_dot(snakemake_rulegraph(project))
    chain = ["train", "execute", "stage", "site", "check", "reproduce"]
    assert set(zip(chain, chain[1:], strict=False)) <= set(arrows)


ARROWS = [("train", "execute"), ("execute", "stage"), ("rulegraph", "stage"), ("train", "stage")]


def test_an_arrow_that_others_imply_is_left_out():
    assert essential([*ARROWS, ("train", "site"), ("stage", "site")]) == [*ARROWS[:3], ("stage", "site")]


def test_every_arrow_of_a_rule_graph_points_down():
    row = rows(ARROWS)
    assert row == {"train": 0, "execute": 1, "rulegraph": 1, "stage": 2}
    assert all(row[tail] < row[head] for tail, head in ARROWS)


def test_the_drawing_is_the_same_each_time_and_names_every_rule(tmp_path):
    for name in ("one.svg", "two.svg"):
        draw(ARROWS, tmp_path / name)
    drawing = (tmp_path / "one.svg").read_text()
    assert drawing == (tmp_path / "two.svg").read_text()
    assert all(f"<!-- {rule} -->" in drawing for rule in rows(ARROWS))


def test_what_is_no_rule_graph_is_refused():
    with pytest.raises(ValueError, match="expected a rule graph"):
        read_dot("Building DAG of jobs...")
