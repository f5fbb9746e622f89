"""Runs one notebook from top to bottom with papermill, and refuses what papermill lets pass in silence.

Papermill only warns about an injected parameter that the notebook does not know, and says nothing about one that no
cell reads: the notebook then runs at its defaults while the build believes otherwise. Both are errors here.
"""

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import nbformat
import papermill
from nbclient.exceptions import DeadKernelError
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError
from traitlets.config import Config

from bookkit.build.notebook_ast import BadCell, BadParameter, check_parameters, check_verdicts
from bookkit.build.project import Project, UnknownNotebook
from bookkit.build.watchdog import STALLED
from bookkit.files import FileProblem, check_writable, write_atomic

PACKAGES = ("torch", "numpy", "matplotlib")  # on whose versions numbers and drawings depend

# A kernel takes stderr over: what it says when it is stopped for stalling would be lost, had it not the true one.
# What importing `bookkit.build` does against looking for garbage saves a kernel a second.
KERNEL_CONFIG = """
import faulthandler, os
faulthandler.enable(os.dup(2))
import bookkit.build
"""


class SavesOnce(NBClientEngine):
    """Papermill's own engine writes the whole notebook before and after every cell; this one when no more is run."""

    @classmethod
    def execute_managed_notebook(cls, nb_man, kernel_name, **kwargs):
        path, nb_man.output_path = nb_man.output_path, None
        try:
            super().execute_managed_notebook(nb_man, kernel_name, **kwargs)
        finally:
            nb_man.output_path = path


papermill_engines.register("saves once", SavesOnce)


class NotebookFailed(RuntimeError):
    """A notebook did not run to its end; the message names the notebook, the cell and the exception."""


class KernelSilent(NotebookFailed):
    """The kernel of a notebook could not be reached; another may well be."""


@contextmanager
def kernel_environment(records: Path, threads: int, startup: str) -> Iterator[Config]:
    """Environment of the kernel: where `bookkit` records, how many threads it may use, what it runs before anything.

    Yields how to reach it. By TCP one kernel in some hundreds cannot be reached: its ports are chosen before it binds
    them, and kernels that start side by side take each other's. Sockets in a folder of its own nobody else can take.
    """
    with tempfile.TemporaryDirectory() as profile:
        config = Path(profile, "profile_default", "ipython_kernel_config.py")
        config.parent.mkdir()
        config.write_text(f"{KERNEL_CONFIG}\n{startup}\n", encoding="utf-8")
        settings = {
            "BOOKKIT_RECORDS": str(records),
            "TQDM_DISABLE": "1",  # a page shows no progress
            # Two notebooks side by side would otherwise start one thread per core each and wait for each other.
            **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads)),
            # glibc hands large tensors back at once, and has the system clear their pages anew at every step.
            **dict.fromkeys(("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"), str(2**30)),
            # A reader's own IPython start-up files and history must not reach the book.
            "IPYTHONDIR": profile,
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        }
        sockets = {"transport": "ipc", "ip": str(Path(profile, "kernel"))} if os.name == "posix" else {}
        before = {name: os.environ.get(name) for name in settings}
        os.environ.update(settings)
        try:
            yield Config(KernelManager=sockets)
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


def versions() -> dict[str, str]:
    """Python's version, and those of PACKAGES that are installed."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def device() -> str:
    """The name of the GPU that torch finds, or "cpu", as where there is no torch, or no driver that it could ask."""
    if not any(map(shutil.which, ("nvidia-smi", "rocm-smi"))):
        return "cpu"  # torch would take two seconds to say so, of every notebook
    try:
        import torch
    except ImportError:
        return "cpu"
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"


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
    startup: str = "",
) -> dict:
    """Run the notebook at `path` and write it, outputs and all, to `executed_path`.

    records_dir: emptied first; receives the notebook's figures and claims, and run.json, whatever happens.
    parameters: values for names of the parameters cell. threads: of the numerical libraries in the kernel.
    startup: Python code that the kernel runs first, in a namespace of its own.
    Returns the content of run.json. Raises BadCell, BadParameter or FileProblem before anything runs, KernelSilent
    where the kernel cannot be reached, and NotebookFailed when a cell raises: what was recorded stays, and the
    notebook as far as it ran is kept beside `executed_path` as NAME.failed.ipynb, where nothing can take it for a
    page of the book.
    """
    path, executed_path, records_dir = Path(path), Path(executed_path), Path(records_dir).resolve()
    failed_path = executed_path.with_suffix(".failed.ipynb")
    source = nbformat.read(path, as_version=4)
    try:
        effective = check_parameters(source, parameters or {})
        check_verdicts(source)
    except (BadCell, BadParameter) as error:
        raise type(error)(f"{path.name}: {error}") from error
    check_writable(executed_path.parent)
    check_writable(records_dir)
    for stale in ("figures", "claims", "assets"):
        shutil.rmtree(records_dir / stale, ignore_errors=True)

    run = {
        "notebook": path.stem,
        "status": "failed",
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "parameters": effective,
        "threads": threads,
        "versions": versions(),
        "device": device(),
        "error": "interrupted",
    }
    begin = time.perf_counter()
    try:
        with kernel_environment(records_dir, threads, startup) as reached:
            papermill.execute_notebook(
                path.resolve(),
                failed_path.resolve(),
                parameters=dict(parameters or {}),
                engine_name="saves once",
                language="python",
                kernel_name="python3",  # this interpreter, whatever kernel the author's editor left in the file
                progress_bar=sys.stderr.isatty(),
                cwd=path.parent,
                config=reached,
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
    except RuntimeError as error:  # all that jupyter_client says of a kernel that cannot be reached
        run["error"] = f"{path.name}: its kernel could not be reached: {error}"
        raise KernelSilent(run["error"]) from error
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


def duration(seconds: float) -> str:
    """For the reader: "3 min 2 s", "12 s"."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def expected(records: Path) -> str:
    """How long a notebook will take, from the run before this one: " (last time it took 3 min 2 s)", or nothing."""
    try:
        last = json.loads((records / "run.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return ""
    return f" (last time it took {duration(last['seconds'])})" if last["status"] == "ok" else ""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bookkit.build.execute", description=__doc__.split("\n")[0])
    parser.add_argument("notebook", help="NAME of notebooks/NAME.ipynb")
    parser.add_argument("--threads", type=int, default=1, help="threads of the numerical libraries (default 1)")
    parser.add_argument("--startup", default="", help="Python code that the kernel runs first")
    options = parser.parse_args(arguments)
    project = Project.find()
    name = options.notebook
    try:
        notebook = project.notebook(name)
        print(f"{name}: running{expected(project.records(name))}", file=sys.stderr, flush=True)
        run = execute_notebook(
            notebook,
            project.executed(name),
            project.records(name),
            project.notebooks[name]["parameters"],
            options.threads,
            options.startup,
        )
    except (BadCell, BadParameter, FileProblem, NotebookFailed, UnknownNotebook) as error:
        print(f"\n{error}\n", file=sys.stderr)
        return STALLED if isinstance(error, KernelSilent) else 1
    except KeyboardInterrupt:
        print(f"{name}: interrupted; what it recorded stays", file=sys.stderr)
        return 130
    memory = f", {run['peak_memory_mb']:.0f} MB" if run["peak_memory_mb"] else ""
    print(f"{name}: done in {duration(run['seconds'])}{memory}", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
