"""Runs one notebook from top to bottom with papermill, and refuses what papermill lets pass in silence.

Papermill only warns about an injected parameter that the notebook does not know, and says nothing about one that no
cell reads: the notebook then runs at its defaults while the build believes otherwise. Both are errors here.
"""

import argparse
import ast
import json
import os
import platform
import shutil
import symtable
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import nbformat
import papermill
import torch
from IPython.core.inputtransformer2 import TransformerManager
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode
from papermill.exceptions import PapermillExecutionError

from arithlib.files import FileProblem, device_name, write_atomic
from arithlib.publishing.project import Project

PACKAGES = ("torch", "numpy", "matplotlib", "arithlib")


class BadParameter(ValueError):
    """The parameters of a notebook are not what the build believes them to be."""


class NotebookFailed(RuntimeError):
    """A notebook did not run to its end; the message names the notebook, the cell and the exception."""


# ---------------------------------------------------------------------------------------------- parameters


def code_of(cell: NotebookNode) -> ast.Module:
    """A code cell as a syntax tree; IPython's own `%magic` and `!shell` lines are understood."""
    try:
        return ast.parse(TransformerManager().transform_cell(cell.source))
    except SyntaxError as error:
        raise NotebookFailed(f"a cell is no valid Python ({error.msg}): {(error.text or '').strip()}") from error


def parameters_index(notebook: NotebookNode) -> int:
    """Position of the one code cell tagged `parameters`."""
    tagged = [i for i, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", [])]
    if len(tagged) != 1 or notebook.cells[tagged[0]].cell_type != "code":
        raise BadParameter(
            f"{len(tagged)} cells are tagged `parameters` (cells {tagged}); expected one code cell. "
            "Tag the cell of literals near the top."
        )
    return tagged[0]


def default_parameters(notebook: NotebookNode) -> dict[str, object]:
    """Names and literal values assigned by the cell tagged `parameters`."""
    defaults = {}
    for statement in code_of(notebook.cells[parameters_index(notebook)]).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case _:
                raise BadParameter(
                    f"the parameters cell holds `{ast.unparse(statement)}`; expected only assignments "
                    "`name = literal`. Move everything else to a later cell."
                )
        try:
            defaults[name] = ast.literal_eval(value)
        except ValueError as error:
            raise BadParameter(
                f"the parameter {name} is `{ast.unparse(value)}`, which is no literal; papermill would inject new "
                "values after it had been computed. Derive it in a later cell."
            ) from error
    return defaults


def unread_parameters(notebook: NotebookNode) -> set[str]:
    """Parameters that no later cell reads before assigning them anew: a value injected there would change nothing."""
    names = set(default_parameters(notebook))
    read, rebound = set(), set()
    for cell in notebook.cells[parameters_index(notebook) + 1 :]:
        for statement in code_of(cell).body if cell.cell_type == "code" else []:
            scope = symtable.symtable(ast.unparse(statement), "cell", "exec")
            read |= global_reads(scope) - rebound
            rebound |= {symbol.get_name() for symbol in scope.get_symbols() if symbol.is_assigned()}
    return names - read


def global_reads(scope: symtable.SymbolTable) -> set[str]:
    """Global names read in a scope or in any function inside it."""
    top = scope.get_type() == "module"
    own = {s.get_name() for s in scope.get_symbols() if s.is_referenced() and (top or s.is_global())}
    return own.union(*map(global_reads, scope.get_children()))


def check_parameters(notebook: NotebookNode, parameters: Mapping[str, object]) -> dict[str, object]:
    """The values the notebook will run with; an unknown or unread parameter is an error."""
    defaults = default_parameters(notebook)
    if unknown := set(parameters) - set(defaults):
        raise BadParameter(
            f"unknown parameter {', '.join(sorted(unknown))}: the parameters cell defines "
            f"{', '.join(sorted(defaults)) or 'none'}. Correct the name or add it to that cell."
        )
    if unread := unread_parameters(notebook):
        raise BadParameter(
            f"no later cell reads the parameter {', '.join(sorted(unread))}, so its value changes nothing. "
            "Use it in a later cell (before assigning it anew) or remove it."
        )
    return defaults | dict(parameters)


# ----------------------------------------------------------------------------------------------- execution


def check_writable(folder: Path) -> None:
    """Make `folder` and write to it now: half an hour of training later is too late to learn that it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise FileProblem(
            f"cannot write to {folder}: {error.strerror or error}. Nothing was run. "
            "Make it a folder you may write to, or choose another."
        ) from error


@contextmanager
def kernel_environment(records: Path, threads: int, weights: Path | None) -> Iterator[None]:
    """Environment of the kernel: where `arithlib.chapter` records, where weights are, how many threads it may use."""
    with tempfile.TemporaryDirectory() as profile:
        config = Path(profile, "profile_default", "ipython_kernel_config.py")
        config.parent.mkdir()
        config.write_text("c.IPKernelApp.log_level = 40\n")  # errors only; it warns of TCP on this very machine
        settings = {
            "ARITHLIB_RECORDS": str(records),
            **({"ARITHLIB_CHECKPOINTS": str(weights.resolve())} if weights else {}),
            # Two notebooks side by side would otherwise start one thread per core each and wait for each other.
            **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads)),
            # A reader's own IPython start-up files and history must not reach the book.
            "IPYTHONDIR": profile,
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        }
        before = {name: os.environ.get(name) for name in settings}
        os.environ.update(settings)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


def peak_memory_mb() -> float | None:
    """Largest resident memory of any kernel that this process started and that has ended; None on Windows."""
    try:
        import resource
    except ImportError:
        return None
    kilobytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return kilobytes / (1e6 if sys.platform == "darwin" else 1e3)


def failure(path: Path, kept: Path, error: PapermillExecutionError) -> str:
    """What to tell the reader about a cell that raised."""
    first = next((line for line in error.source.splitlines() if line.strip()), "")
    return (
        f"{path.name} failed in cell {error.cell_index} (In [{error.exec_count}], `{first}`):\n"
        f"  {error.ename}: {error.evalue}\n"
        f"The notebook as far as it ran, with its traceback: {kept}"
    )


def execute_notebook(
    path: Path,
    executed_path: Path,
    records_dir: Path,
    parameters: Mapping[str, object] | None = None,
    threads: int = 1,
    weights: Path | None = None,
) -> dict:
    """Run the notebook at `path` and write it, outputs and all, to `executed_path`.

    records_dir: emptied first; receives the notebook's figures and claims, and run.json, whatever happens.
    parameters: values for names of the parameters cell. threads: of the numerical libraries in the kernel.
    weights: a folder whose checkpoints are preferred over the shipped ones.
    Returns the content of run.json. Raises BadParameter or FileProblem before anything runs, and NotebookFailed
    when a cell raises: what was recorded stays, and the notebook as far as it ran is kept beside `executed_path`
    as NAME.failed.ipynb, where nothing can take it for a page of the book.
    """
    path, executed_path, records_dir = Path(path), Path(executed_path), Path(records_dir).resolve()
    failed_path = executed_path.with_suffix(".failed.ipynb")
    try:
        effective = check_parameters(nbformat.read(path, as_version=4), parameters or {})
    except BadParameter as error:
        raise BadParameter(f"{path.name}: {error}") from error
    check_writable(executed_path.parent)
    check_writable(records_dir)
    for stale in ("figures", "claims"):
        shutil.rmtree(records_dir / stale, ignore_errors=True)

    run = {
        "notebook": path.stem,
        "status": "failed",
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "parameters": effective,
        "threads": threads,
        "versions": {"python": platform.python_version()} | {name: version(name) for name in PACKAGES},
        "device": device_name("cuda" if torch.cuda.is_available() else "cpu"),
        "error": "interrupted",
    }
    begin = time.perf_counter()
    try:
        with kernel_environment(records_dir, threads, weights):
            papermill.execute_notebook(
                path.resolve(),
                failed_path.resolve(),
                parameters=dict(parameters or {}),
                kernel_name="python3",  # this interpreter, whatever kernel the author's editor left in the file
                progress_bar=sys.stderr.isatty(),
                cwd=path.parent,
            )
        run |= {"status": "ok", "error": None}
        os.replace(failed_path, executed_path)
    except PapermillExecutionError as error:
        run["error"] = failure(path, failed_path, error)
        raise NotebookFailed(run["error"]) from error
    except DeadKernelError as error:
        run["error"] = (
            f"{path.name}: its Python process ended without a word, most often for want of memory (peak so far "
            f"{peak_memory_mb() or 0:.0f} MB). The notebook as far as it ran: {failed_path}"
        )
        raise NotebookFailed(run["error"]) from error
    except OSError as error:
        run["error"] = (
            f"{path.name}: {error.strerror or error} while writing {error.filename or failed_path}. "
            f"What it recorded so far stays in {records_dir}; free some space and run again."
        )
        raise NotebookFailed(run["error"]) from error
    finally:
        run |= {"seconds": round(time.perf_counter() - begin, 2), "peak_memory_mb": peak_memory_mb()}
        write_atomic(records_dir / "run.json", (json.dumps(run, indent=1) + "\n").encode())
    return run


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m arithlib.publishing.execute", description=__doc__.split("\n")[0])
    parser.add_argument("notebook", help="NAME of notebooks/NAME.ipynb; its parameters: workflow/config.yaml")
    parser.add_argument("--threads", type=int, default=1, help="threads of the numerical libraries (default 1)")
    parser.add_argument("--weights", type=Path, help="folder of checkpoints to prefer over the shipped ones")
    options = parser.parse_args(arguments)
    project = Project.find()
    name = options.notebook
    print(f"{name}: running", file=sys.stderr, flush=True)
    try:
        run = execute_notebook(
            project.notebook(name),
            project.executed(name),
            project.records(name),
            project.notebooks[name].get("parameters", {}),
            options.threads,
            options.weights,
        )
    except (BadParameter, FileProblem, NotebookFailed) as error:
        print(f"\n{error}\n", file=sys.stderr)
        return 1
    memory = f", {run['peak_memory_mb']:.0f} MB" if run["peak_memory_mb"] else ""
    print(f"{name}: done in {run['seconds']:.0f} s{memory}", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
