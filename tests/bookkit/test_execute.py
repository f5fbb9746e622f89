"""Notebooks run as the build believes they do, and fail with what one needs to know."""

import errno
import functools
import json
import os
import sys

import nbformat
import papermill
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from bookkit.build import execute
from bookkit.build.execute import NotebookFailed, execute_notebook
from bookkit.build.notebook_ast import (
    BadCell,
    BadParameter,
    check_parameters,
    check_verdicts,
    default_parameters,
    unread_parameters,
)
from bookkit.build.project import BadSettings, Project
from bookkit.build.watchdog import STALLED
from bookkit.files import FileProblem


def notebook(*cells, parameters="steps = 3"):
    tagged = [] if parameters is None else [new_code_cell(parameters, metadata={"tags": ["parameters"]})]
    return new_notebook(cells=[new_markdown_cell("# Waves"), *tagged, *map(new_code_cell, cells)])


@pytest.fixture
def run(tmp_path):
    """Run a notebook of these cells; its files lie under tmp_path."""

    def run(*cells, **options):
        nbformat.write(notebook(*cells), tmp_path / "10_waves.ipynb")
        return execute_notebook(
            tmp_path / "10_waves.ipynb",
            tmp_path / "executed" / "10_waves.ipynb",
            tmp_path / "records" / "10_waves",
            **options,
        )

    return run


def records(tmp_path):
    return json.loads((tmp_path / "records" / "10_waves" / "run.json").read_text())


# --- parameters ---


def test_an_unknown_parameter_is_refused_and_the_known_ones_are_named():
    with pytest.raises(BadParameter, match="unknown parameter stepz: the parameters cell defines seed, steps"):
        check_parameters(notebook("print(steps, seed)", parameters="steps = 3\nseed: int = 0"), {"stepz": 1})


def test_values_are_the_defaults_and_what_is_set_over_them():
    book = notebook("print(steps, seed)", parameters="steps = 3\nseed: int = -1")
    assert check_parameters(book, {"steps": 9}) == {"steps": 9, "seed": -1}


@pytest.mark.parametrize(
    "cells",
    [
        (),
        ("steps = 5\nprint(steps)",),
        ("def train(steps):\n    return steps",),
        ("train(steps=4)",),
        ("print('steps')  # steps",),
        ("[steps for steps in range(3)]", "{n: steps for n, steps in {}.items()}", "{steps for steps in range(3)}"),
    ],
)
def test_a_parameter_that_no_cell_reads_is_refused(cells):
    with pytest.raises(BadParameter, match="no later cell reads the parameter steps"):
        check_parameters(notebook(*cells), {})


@pytest.mark.parametrize(
    "cell",
    [
        "print(steps)",
        "steps = steps + 1",
        "def train(n):\n    return n + steps",
        "[step for step in range(steps)]",
        "print(f'{steps} steps')",
        "%time print(steps)",
        "%%time\nfor step in range(steps):\n    pass",
        "def train():\n    steps = 5\n    return steps\n\ntrain() + steps",
        "[steps for steps in range(3)]\nprint(steps)",
    ],
)
def test_a_parameter_that_a_cell_reads_is_accepted(cell):
    assert unread_parameters(notebook("%%bash\nls -l $HOME", cell)) == set()


def test_a_cell_that_is_no_python_is_shown():
    with pytest.raises(BadCell, match=r"a cell is no Python .*: print\(steps"):
        check_parameters(notebook("print(steps"), {})


def test_parameters_are_literals():
    with pytest.raises(BadParameter, match=r"the parameter steps is `2 \* n`, which is no literal"):
        default_parameters(notebook(parameters="n = 3\nsteps = 2 * n"))
    with pytest.raises(BadParameter, match="holds `import math`"):
        default_parameters(notebook(parameters="import math"))


def test_there_is_one_parameters_cell():
    with pytest.raises(BadParameter, match="0 cells are tagged"):
        default_parameters(notebook("print(1)", parameters=None))


# --- verdicts ---


@pytest.mark.parametrize(
    "cell",
    [
        "claim('A-01', steps)\nclaim('A-02', steps)",
        "claim('A-01', steps)\nprint(steps)",
    ],
)
def test_a_verdict_that_no_cell_shows_is_refused_before_anything_runs(run, tmp_path, cell):
    with pytest.raises(BadCell, match=r"10_waves.ipynb: cell 2 does not show the verdict of claim\('A-01', ...\)"):
        run(cell)
    assert not (tmp_path / "records").exists()


@pytest.mark.parametrize(
    "cell",
    [
        "print(steps)\nclaim('A-01', steps)",
        "%time claim('A-01', steps)",
        "found = claim('A-01', steps)\nprint(found)",
    ],
)
def test_a_verdict_that_is_shown_or_kept_is_accepted(cell):
    check_verdicts(notebook(cell, "claim('A-02', steps)", "verdicts('A-01', 'A-02')"))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("verdicts('A-01')", r"claim\(...\) names A-02, and verdicts\(...\) does not"),
        ("steps", r"claim\(...\) names A-01, and verdicts"),
        ("verdicts('A-01', 'A-02', 'A-03')", r"verdicts\(...\) names A-03, and claim\(...\) does not"),
    ],
)
def test_the_table_of_verdicts_names_the_claims_of_its_chapter(table, said):
    with pytest.raises(BadCell, match=said):
        check_verdicts(notebook("claim('A-01', steps)", "claim('A-02', 3)", table))


# --- running ---


def test_a_notebook_runs_where_it_lies_with_its_parameters_threads_and_records(run, tmp_path):
    old = tmp_path / "records" / "10_waves" / "figures" / "old.json"
    old.parent.mkdir(parents=True)
    old.write_text("{}")
    result = run(
        "import os\nsteps, os.environ['OMP_NUM_THREADS'], os.environ['BOOKKIT_RECORDS'], os.getcwd()",
        parameters={"steps": 7},
        threads=2,
    )
    executed = nbformat.read(tmp_path / "executed" / "10_waves.ipynb", as_version=4)
    shown = executed.cells[-1].outputs[0].data["text/plain"]
    assert eval(shown) == (7, "2", str(tmp_path / "records" / "10_waves"), str(tmp_path))
    assert result == records(tmp_path)
    assert (result["status"], result["error"], result["notebook"]) == ("ok", None, "10_waves")
    assert result["parameters"] == {"steps": 7} and result["seconds"] > 0
    assert set(result["versions"]) == {"python", "torch", "numpy", "matplotlib"}
    assert sys.platform == "win32" or 20 < result["peak_memory_mb"] < 20_000
    assert not old.exists(), "figures of an earlier run must not pass for this one's"
    assert "BOOKKIT_RECORDS" not in os.environ


def test_a_failing_cell_is_named_and_everything_until_then_is_kept(run, tmp_path):
    with pytest.raises(NotebookFailed) as failed:
        run(
            "import os, pathlib\n"
            "folder = pathlib.Path(os.environ['BOOKKIT_RECORDS'], 'figures')\n"
            "folder.mkdir()\n"
            "(folder / 'wave.json').write_text(str(steps))",
            "1 / 0  # the end",
            "print('never')",
        )
    kept = tmp_path / "executed" / "10_waves.failed.ipynb"
    for part in (
        "10_waves.ipynb failed in cell 3",
        "1 / 0  # the end",
        "ZeroDivisionError: division by zero",
        str(kept),
    ):
        assert part in str(failed.value)
    assert any(cell.get("outputs") for cell in nbformat.read(kept, as_version=4).cells)
    assert not (tmp_path / "executed" / "10_waves.ipynb").exists(), "a failed notebook must not pass for a page"
    assert (tmp_path / "records" / "10_waves" / "figures" / "wave.json").exists()
    assert records(tmp_path)["status"] == "failed" and "ZeroDivisionError" in records(tmp_path)["error"]


def test_a_kernel_that_dies_is_reported_as_such(run, tmp_path):
    with pytest.raises(NotebookFailed, match="10_waves.ipynb: its Python process ended without a word"):
        run("steps", "import os\nos._exit(1)")
    assert records(tmp_path)["status"] == "failed"


def test_a_kernel_is_given_no_port_that_another_could_take(run, tmp_path):
    """Except on Windows, where there is nothing but ports."""
    run("steps", "from ipykernel.connect import get_connection_info\nget_connection_info(unpack=True)['transport']")
    executed = nbformat.read(tmp_path / "executed" / "10_waves.ipynb", as_version=4)
    assert executed.cells[-1].outputs[0].data["text/plain"] == repr("tcp" if sys.platform == "win32" else "ipc")


def test_a_bad_parameter_stops_it_before_it_runs(run, tmp_path, monkeypatch):
    monkeypatch.setattr(papermill, "execute_notebook", lambda *_, **__: pytest.fail("it ran"))
    with pytest.raises(BadParameter, match="10_waves.ipynb: unknown parameter epochs"):
        run("print(steps)", parameters={"epochs": 1})


def test_an_output_folder_that_cannot_be_written_stops_it_before_it_runs(run, tmp_path, monkeypatch):
    monkeypatch.setattr(papermill, "execute_notebook", lambda *_, **__: pytest.fail("it ran"))
    (tmp_path / "records").write_text("a file where a folder should be")
    with pytest.raises(FileProblem, match="cannot write to .*records.*Nothing was run"):
        run("print(steps)")


def test_a_full_disk_is_named(run, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "figure.svg")

    monkeypatch.setattr(papermill, "execute_notebook", full)
    with pytest.raises(NotebookFailed, match="No space left on device while writing figure.svg.*free some space"):
        run("print(steps)")
    assert records(tmp_path)["status"] == "failed"


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_drawn_on_a_terminal_only(run, tmp_path, monkeypatch, terminal):
    asked = {}

    def record(_, output, **options):
        asked.update(options)
        output.write_text("{}")

    monkeypatch.setattr(papermill, "execute_notebook", record)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    run("print(steps)")
    assert asked["progress_bar"] is terminal


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "_toc.yml").write_text("{format: jb-book, root: book/index, chapters: [{file: notebooks/10_waves}]}")
    chapter = notebook("print(steps)")
    chapter.metadata["bookkit"] = {"parameters": {"epochs": 1}}
    nbformat.write(chapter, tmp_path / "notebooks" / "10_waves.ipynb")
    monkeypatch.setattr(Project, "find", lambda: Project(tmp_path))
    return Project(tmp_path)


def test_a_kernel_that_does_not_answer_counts_as_stalled(project, monkeypatch, capsys):
    """It is asked before it is there. What started this notebook then tries again."""
    monkeypatch.setattr(execute, "KERNEL_CONFIG", "import time\ntime.sleep(20)")
    monkeypatch.setattr(papermill, "execute_notebook", functools.partial(papermill.execute_notebook, start_timeout=1))
    nbformat.write(notebook("print(steps)"), project.root / "notebooks" / "10_waves.ipynb")
    assert execute.main(["10_waves"]) == STALLED
    assert "10_waves.ipynb: its kernel could not be reached: Kernel didn't respond" in capsys.readouterr().err
    assert json.loads((project.records("10_waves") / "run.json").read_text())["status"] == "failed"


def test_the_command_says_what_failed_and_returns_one(project, capsys):
    assert execute.main(["10_waves"]) == 1
    assert "10_waves.ipynb: unknown parameter epochs" in capsys.readouterr().err
    assert execute.main(["11_waves"]) == 1
    assert "lists no chapter '11_waves'; near it: 10_waves. They" in capsys.readouterr().err


def test_metadata_that_nobody_reads_is_refused(project):
    chapter = notebook("print(steps)")
    chapter.metadata["bookkit"] = {"thread": 2}
    nbformat.write(chapter, project.root / "notebooks" / "10_waves.ipynb")
    with pytest.raises(BadSettings, match=r"10_waves: its metadata has \['thread'\]; known are"):
        Project(project.root).notebooks  # noqa: B018  a property that reads


def test_a_notebook_that_starts_says_how_long_it_took_last_time(project, monkeypatch, capsys):
    nbformat.write(notebook("print(steps)"), project.root / "notebooks" / "10_waves.ipynb")
    monkeypatch.setattr(execute, "execute_notebook", lambda *_: {"seconds": 61.6, "peak_memory_mb": None})
    records, said = project.records("10_waves"), []
    records.mkdir(parents=True)
    for content in (None, {"status": "ok", "seconds": 181.7}, {"status": "failed", "seconds": 3.0}):
        if content:
            (records / "run.json").write_text(json.dumps(content))
        assert execute.main(["10_waves"]) == 0
        said.append(capsys.readouterr().err.splitlines())
    assert [start for start, _ in said] == [
        "10_waves: running",
        "10_waves: running (last time it took 3 min 2 s)",
        "10_waves: running",
    ]
    assert {end for _, end in said} == {"10_waves: done in 1 min 2 s"}


def test_an_interrupted_notebook_is_no_finished_one(project, monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    nbformat.write(notebook("print(steps)"), project.root / "notebooks" / "10_waves.ipynb")
    monkeypatch.setattr(papermill, "execute_notebook", interrupt)
    assert execute.main(["10_waves"]) == 130
    assert "10_waves: interrupted" in capsys.readouterr().err
    record = json.loads((project.records("10_waves") / "run.json").read_text())
    assert (record["status"], record["error"]) == ("failed", "interrupted")
