"""A notebook runs again when, and only when, something it is made from has other content."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from arithlib import experiments
from bookkit.build.digest import Reach, analyse, checkpoint_files, notebook_digest, tree_digest
from bookkit.build.notebook_ast import default_parameters
from bookkit.build.project import Project

ROOT = Path(__file__).parents[2]
NOTEBOOKS = Project(ROOT).notebooks
ROOMS = os.pathsep.join(str(ROOT / room) for room in ("", "book", "notebooks"))
REGISTERED = {experiment.name: repr(experiment) for experiment in experiments.match("*")}

SETTINGS = {"threads": 1, "parameters": {"steps": 5}, "checkpoints": ["wave-*"], "files": ["measured/*.json"]}

FILES = {
    "arithlib/__init__.py": '__version__ = "1"\n',
    "arithlib/circles.py": '"""Circles."""\nfrom arithlib import fourier\n\ncircle = fourier.basis\n',
    "arithlib/fourier.py": """\
import numpy as np

from arithlib import petals

np.seterr(all="raise")


def basis():
    from .tasks.modular import residues

    return np.cos(scale(residues))


def scale(x):
    return petals.half(x)


def spectrum():
    return 1
""",
    "arithlib/petals.py": "def half(x):\n    return x / 2\n\n\ndef quarter(x):\n    return x / 4\n",
    "arithlib/tasks/__init__.py": "",
    "arithlib/tasks/modular.py": "residues = 113\nprimes = [113]\n",
    "arithlib/checkpoints.py": """\
from arithlib import experiments


def load(name):
    return experiments.get(name) or make(name)


def make(name):
    return optimise(name)


def optimise(name):
    return 0
""",
    "arithlib/experiments.py": """\
import importlib


def get(name):
    return {e.name: e for e in importlib.import_module(f"presets.{name}").presets()}[name]
""",
    "arithlib/models.py": """\
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

KINDS = {}


def register(kind):
    return lambda made: KINDS.setdefault(kind, made)


@dataclass
class Model:
    width: int = 1

    def forward(self):
        return 0


class Wave(Model):
    kind: ClassVar[str] = "wave"

    def forward(self):
        return 1


class Tide(Model):
    kind: ClassVar[str] = "tide"

    def forward(self):
        return 2


@register("slow")
def slow_rate():
    return 3


@register("fast")
def fast_rate():
    return 4


@cache
def rate():
    return 5
""",
    "notebooks/presets/wave.py": """\
from arithlib.models import Tide, Wave


def presets():
    yield Wave()
    yield Tide()
""",
    "arithlib/book.mplstyle": "font.size: 11\n",
    "checkpoints/wave-0.safetensors": "weights",
    "checkpoints/wave-0.json": '{"settings": {"steps": 5, "model": {"kind": "wave"}, "rates": [{"kind": "slow"}]}}',
    "checkpoints/other.safetensors": "other weights",
    "measured/speed.json": "[1, 2]",
    "measured/notes.md": "Slow.",
    "requirements.txt": "# numbers\nnumpy==2.4.6\ntorch==2.13.0\n",
    "book/claims/004.yaml": """\
- {id: M-01, chapter: 10_waves, value: 1}
- {id: M-02, chapter: null, value: 1}
- {id: N-07, chapter: null, value: 1}
""",
}


def notebook(**changes):
    code = changes.get("code", 'from arithlib.circles import circle\nprint(circle(), published("N-07"))')
    result = new_notebook(
        cells=[
            new_markdown_cell(changes.get("prose", "# Waves"), id="a"),
            new_code_cell("steps = 3", id="b", metadata={"tags": ["parameters"]}),
            new_code_cell(code, id="c", metadata=changes.get("metadata", {})),
        ]
    )
    if "output" in changes:
        result.cells[2].outputs = [new_output("stream", text=changes["output"])]
        result.cells[2].execution_count = 7
        result.metadata["kernelspec"] = {"name": "elsewhere", "display_name": "Elsewhere"}
    return result


@pytest.fixture
def root(tmp_path):
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    write_notebook(tmp_path)
    return tmp_path


def write_notebook(root, **changes):
    (root / "notebooks").mkdir(exist_ok=True)
    nbformat.write(notebook(**changes), root / "notebooks" / "10_waves.ipynb")


def digest(root, settings=SETTINGS, registered=()):
    return notebook_digest(root, "10_waves", settings, dict(registered))


def edit(root, name, old, new):
    """Replace a part of one of FILES."""
    assert FILES[name].count(old) == 1, f"{name} holds {old!r} {FILES[name].count(old)} times"
    (root / name).write_text(FILES[name].replace(old, new))


@pytest.mark.parametrize(
    "name, content",
    [
        ("arithlib/tasks/__init__.py", "import torch\n"),
        ("arithlib/book.mplstyle", "font.size: 12\n"),
        ("checkpoints/wave-0.safetensors", "other"),
        ("checkpoints/wave-0.json", '{"steps": 1}'),
        ("checkpoints/wave-1.safetensors", "one more seed"),
        ("measured/speed.json", "[1, 3]"),
        ("requirements.txt", FILES["requirements.txt"].replace("2.13.0", "2.13.1")),
        ("requirements-weights.txt", "weights-of-a-model==1.0\n"),
        ("book/claims/004.yaml", FILES["book/claims/004.yaml"].replace("10_waves, value: 1", "10_waves, value: 2")),
        (
            "book/claims/004.yaml",
            FILES["book/claims/004.yaml"].replace("N-07, chapter: null, value: 1", "N-07, chapter: null, value: 2"),
        ),
    ],
)
def test_it_runs_again_when_something_it_reaches_changes(root, name, content):
    before = digest(root)
    (root / name).write_text(content)
    assert digest(root) != before


@pytest.mark.parametrize(
    "name, content",
    [
        (
            "arithlib/circles.py",
            '"""Circles, described at length."""\n' + FILES["arithlib/circles.py"].partition("\n")[2],
        ),
        ("arithlib/tasks/modular.py", "# how many there are\nresidues = (113)\nprimes = [113]\n"),
        ("checkpoints/other.safetensors", "changed"),
        ("measured/notes.md", "Faster."),
        ("requirements.txt", "torch==2.13.0\nnumpy==2.4.6  # numbers\n"),
        (
            "book/claims/004.yaml",
            FILES["book/claims/004.yaml"].replace("M-02, chapter: null, value: 1", "M-02, chapter: null, value: 2"),
        ),
        (
            "book/claims/004.yaml",
            FILES["book/claims/004.yaml"].replace("value: 1}", "value: 1, remark: None, compare: {value: mean}}"),
        ),
    ],
)
def test_it_does_not_run_again_for_what_it_does_not_reach_or_compute(root, name, content):
    before = digest(root)
    assert (root / name).read_text() != content
    (root / name).write_text(content)
    assert digest(root) == before


def test_time_stamps_do_not_count(root):
    before = digest(root)
    for name in FILES:
        os.utime(root / name, (1, 1))
    assert digest(root) == before


@pytest.mark.parametrize("changes", [{"code": "print(1)"}, {"metadata": {"tags": ["hide-input"]}}])
def test_it_runs_again_when_its_code_cells_change(root, changes):
    before = digest(root)
    write_notebook(root, **changes)
    assert digest(root) != before


def test_imports_behind_a_magic_are_seen(root):
    write_notebook(root, code="%%time\nfrom arithlib.petals import quarter\nprint(quarter(1))")
    before = digest(root)
    edit(root, "arithlib/petals.py", "x / 4", "x * 0.25")
    assert digest(root) != before


@pytest.mark.parametrize(
    "changes", [{"prose": "# Waves, again"}, {"output": "113"}, {"metadata": {"scrolled": True}}]
)
def test_text_stored_outputs_and_other_metadata_do_not_count(root, changes):
    before = digest(root)
    write_notebook(root, **changes)
    assert digest(root) == before


def test_parameters_count_and_threads_do_not(root):
    before = digest(root)
    assert digest(root, SETTINGS | {"threads": 2}) == before
    assert digest(root, SETTINGS | {"parameters": {"steps": 6}}) != before


def test_a_tree_digest_sees_contents_and_names_but_not_what_was_built(root):
    def pages():
        return tree_digest(root, ["book/**/*"], without=root / "book" / "_build")

    (root / "book" / "_build").mkdir(parents=True)
    (root / "book" / "index.md").write_text("# Book")
    first = pages()
    (root / "book" / "_build" / "site.html").write_text("built")
    assert pages() == first
    (root / "book" / "index.md").rename(root / "book" / "intro.md")
    renamed = pages()
    (root / "book" / "intro.md").write_text("# Book, revised")
    assert len({first, renamed, pages()}) == 3


# --- what code reaches ---


@pytest.mark.parametrize(
    "name, old, new",
    [
        ("arithlib/circles.py", "= fourier.basis", "= fourier.spectrum"),
        ("arithlib/fourier.py", "cos", "sin"),
        ("arithlib/fourier.py", 'all="raise"', 'all="warn"'),
        ("arithlib/fourier.py", "import numpy as np", "import cupy as np"),
        ("arithlib/petals.py", "x / 2", "x * 0.5"),
        ("arithlib/tasks/modular.py", "residues = 113", "residues = 59"),
        ("arithlib/tasks/modular.py", "primes = [113]", "residues += 1"),
        ("arithlib/models.py", "width: int = 1", "width: int = 1\n    depth: int = 1"),
        ("arithlib/models.py", "return 1", "return -1"),
        ("arithlib/models.py", "return 3", "return -3"),
    ],
)
def test_an_edit_of_what_is_reached_runs_it_again(root, name, old, new):
    before = digest(root)
    edit(root, name, old, new)
    assert digest(root) != before


@pytest.mark.parametrize(
    "name, old, new",
    [
        ("arithlib/fourier.py", "return 1", "return 2"),
        ("arithlib/fourier.py", "def scale(x):", 'def scale(x):\n    """A half."""'),
        ("arithlib/fourier.py", "def spectrum():\n    return 1", "import cmath\n\nspectrum = cmath.pi"),
        ("arithlib/petals.py", "x / 4", "x * 0.25"),
        ("arithlib/tasks/modular.py", "[113]", "[59]"),
        ("arithlib/models.py", "return 2", "return -2"),
        ("arithlib/models.py", "return 4", "return -4"),
        ("arithlib/checkpoints.py", "return 0", "return 1"),
    ],
)
def test_an_edit_beside_what_is_reached_does_not(root, name, old, new):
    before = digest(root)
    edit(root, name, old, new)
    assert digest(root) == before


def test_a_new_file_that_nobody_names_does_not_count(root):
    before = digest(root)
    (root / "arithlib" / "tides.py").write_text("print('imported')\n")
    assert digest(root) == before


@pytest.mark.parametrize("package", ["arithlib", "book/bookkit", "notebooks/chapters", "notebooks/presets"])
def test_every_package_is_followed(root, package):
    (root / package).mkdir(parents=True, exist_ok=True)
    (root / package / "tides.py").write_text("tide = 1\n")
    write_notebook(root, code=f"from {Path(package).name}.tides import tide\nprint(tide)")
    before = digest(root)
    (root / package / "tides.py").write_text("tide = 2\n")
    assert digest(root) != before


def test_all_of_a_module_counts_that_is_passed_around_as_a_value(root):
    write_notebook(root, code='from arithlib import petals\nprint(getattr(petals, "quar" + "ter")(1))')
    before = digest(root)
    edit(root, "arithlib/petals.py", "x / 4", "x * 0.25")
    assert digest(root) != before


def test_a_string_names_what_our_decorators_mark_and_nothing_else(root):
    write_notebook(root, code='print("rate", "fast_rate")')
    before = digest(root)
    edit(root, "arithlib/models.py", "return 5", "return -5")
    assert digest(root) == before
    edit(root, "arithlib/models.py", "return 4", "return -4")
    assert digest(root) != before


def test_what_stands_in_a_registry_counts_where_code_holds_its_string(root):
    write_notebook(root, code='from arithlib.models import KINDS\nprint(KINDS["fast"]())')
    before = digest(root)
    edit(root, "arithlib/models.py", "return 4", "return -4")
    assert digest(root) != before


@pytest.mark.parametrize("code", ["import arithlib.fourier", "def later():\n    import arithlib.fourier"])
def test_an_imported_module_runs_its_loose_statements_though_nothing_of_it_is_used(root, code):
    write_notebook(root, code=code)
    before = digest(root)
    edit(root, "arithlib/fourier.py", "cos", "sin")
    assert digest(root) == before
    edit(root, "arithlib/fourier.py", 'all="raise"', 'all="warn"')
    assert digest(root) != before


# --- experiments ---

EXPERIMENTS = {
    "wave-0": "Experiment(name='wave-0')",
    "tide-live": "Experiment(name='tide-live', model=Tide(width=2))",
}
TRAINS_TIDE = 'from arithlib.checkpoints import load\nload("tide-live")'
LOADS_WAVE = 'from arithlib.checkpoints import load\nload(f"wave-{0}")'


@pytest.mark.parametrize("code, trains", [(TRAINS_TIDE, True), (LOADS_WAVE, False)])
def test_training_counts_where_a_notebook_trains_and_not_where_it_loads(root, code, trains):
    write_notebook(root, code=code)
    before = digest(root, registered=EXPERIMENTS)
    edit(root, "arithlib/checkpoints.py", "return 0", "return 1")
    assert (digest(root, registered=EXPERIMENTS) != before) == trains
    before = digest(root, registered=EXPERIMENTS)
    edit(root, "arithlib/models.py", "return 2", "return -2")  # class Tide
    assert (digest(root, registered=EXPERIMENTS) != before) == trains
    before = digest(root, registered=EXPERIMENTS)
    assert (digest(root, registered=EXPERIMENTS | {"tide-live": "Experiment(steps=9)"}) != before) == trains


def test_the_classes_of_a_loaded_experiment_count_though_its_note_does_not_name_them(root):
    registered = {"wave-0": "Experiment(name='wave-0', rates=[Tide()])"}
    before = digest(root, registered=registered)
    edit(root, "arithlib/models.py", "return 2", "return -2")  # class Tide
    assert digest(root, registered=registered) != before


def test_the_table_of_a_registry_counts_row_by_row(root):
    write_notebook(root, code="from presets import wave\nprint(list(wave.presets()))")
    before = digest(root)
    edit(root, "notebooks/presets/wave.py", "Tide()", "Tide(width=2)")
    assert digest(root) == before


def test_an_experiment_that_nobody_names_does_not_count(root):
    assert digest(root, registered=EXPERIMENTS | {"tide-1": "Experiment()"}) == digest(root, registered=EXPERIMENTS)


def test_the_name_of_a_trained_experiment_may_be_built_from_its_beginning(root):
    write_notebook(root, code='from arithlib.checkpoints import load\nkind = "live"\nload(f"tide-{kind}")')
    before = digest(root, registered=EXPERIMENTS)
    assert digest(root, registered=EXPERIMENTS | {"tide-live": "Experiment(steps=9)"}) != before


# --- the book's own notebooks ---


def reach_of(notebook, patterns):
    return Reach(ROOT, notebook, checkpoint_files(ROOT, patterns), REGISTERED)


def read(name):
    return nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)


def test_a_docstring_changes_no_module():
    for path in (ROOT / "arithlib").rglob("*.py"):
        tree = ast.parse(path.read_text())
        described = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and ast.get_docstring(node)]
        for node in described:
            node.body[0].value.value = "Something else."
        assert analyse(tree, "m", "m") == analyse(ast.parse(path.read_text()), "m", "m"), path


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_trains_nothing_that_is_shipped(name):
    notebook = read(name)
    trained = reach_of(notebook, NOTEBOOKS[name]["checkpoints"]).trained
    shipped = sorted(one for one in trained if checkpoint_files(ROOT, [one]))
    assert not shipped, f"list {', '.join(shipped)} among the checkpoints in its metadata"
    assert default_parameters(notebook).get("retrain", False) is False


LOADS = new_notebook(
    cells=[
        new_code_cell(
            "from arithlib import checkpoints, streaming\n"
            "run = checkpoints.load_or_train('adder-windowed-s0')\n"
            "print(streaming.add(run.model, 95, 48), run.experiment.objective(run.model, None).evaluate(run.model))\n"
            "run = checkpoints.load_or_train('abacus-cpu-s0')\n"
            "print(run.add(95, 48))"
        )
    ]
)
# Lists, for each notebook, every function of the library that runs from a cell: its file, its line and its name.
TRACE = """
import json, sys
from pathlib import Path
import matplotlib.pyplot, nbformat, torch  # what these call on the way is not the library's: nobody need watch it
from IPython.core.interactiveshell import InteractiveShell

rooms = ("arithlib", "book/bookkit", "notebooks/chapters", "notebooks/presets")
library, ran, importing = tuple(str(Path(room).resolve()) for room in rooms), set(), 0


def profile(frame, event, _):
    global importing
    code = frame.f_code
    if not code.co_filename.startswith(library):
        return
    if code.co_name == "<module>":
        importing += {"call": 1, "return": -1}.get(event, 0)
    elif event == "call" and not importing:
        ran.add((code.co_filename, code.co_firstlineno, code.co_qualname))


shell = InteractiveShell.instance()
for path in map(Path, sys.argv[1:]):
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            sys.setprofile(profile)
            result = shell.run_cell(cell.source)
            sys.setprofile(None)
            result.raise_error()
    path.with_suffix(".json").write_text(json.dumps(sorted(ran)))
    ran.clear()
"""
TRACED = {
    "00_why_arithmetic": (read("00_why_arithmetic"), [], "figure"),
    "loads": (LOADS, ["adder-windowed-s0", "abacus-cpu-s0"], "LoopedTransformer.forward"),
}


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """Beside each notebook, what ran in it; all in one process, for to import torch takes longest."""
    folder = tmp_path_factory.mktemp("traces")
    paths = [folder / f"{name}.ipynb" for name in TRACED]
    for path in paths:
        nbformat.write(TRACED[path.stem][0], path)
    here = {"MPLBACKEND": "agg", "BOOKKIT_RECORDS": str(folder), "PYTHONPATH": ROOMS}
    command = [sys.executable, "-c", TRACE, *map(str, paths)]
    subprocess.run(command, cwd=ROOT, env=os.environ | here, check=True, stdout=subprocess.DEVNULL)
    return folder


@pytest.mark.parametrize("name", TRACED)
def test_every_function_that_runs_was_reached(name, traces):
    notebook, patterns, one_of_them = TRACED[name]
    ran = json.loads((traces / f"{name}.json").read_text())
    assert one_of_them in {name for _, _, name in ran}

    reached = {}
    for place, units in reach_of(notebook, patterns).found.items():
        reached.setdefault(place.partition(":")[0], []).extend(unit.lines for unit in units)
    for file, line, name in ran:
        parts = Path(file).relative_to(ROOT).with_suffix("").parts
        module = ".".join(parts[parts[0] in ("book", "notebooks") :]).removesuffix(".__init__")
        assert any(first <= line <= last for first, last in reached.get(module, [])), f"{module}.{name}"
