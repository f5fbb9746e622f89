"""Who may import whom. Imports run down the table only, and the rooms keep apart."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bookkit.build.layers import arrows, files, imports
from bookkit.build.rulegraph import essential, rows

ROOT = Path(__file__).resolve().parents[1]
# Of arithlib, from the ground up; modules of one line may import each other.
LAYERS = (
    "tokenizer settings files",
    "tasks",
    "models",
    "decoding exact_match evaluation streaming contexts",
    "training",
    "analysis",
    "experiments",
    "checkpoints",
    "certify doctor",
    "cli __main__",
)
MAY_IMPORT = {
    "arithlib": {"arithlib"},
    "bookkit": {"bookkit"},
    "chapters": {"arithlib", "bookkit", "chapters"},
    "presets": {"arithlib", "chapters", "presets"},
}


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_room_imports_only_from_those_below_it(package):
    forbidden = set(MAY_IMPORT) - MAY_IMPORT[package]
    for path in files(ROOT, package):
        assert not {name for name in imports(path) if name.partition(".")[0] in forbidden}, path
    assert files(ROOT, package)


def test_imports_of_the_library_run_down():
    floor = {name: height for height, names in enumerate(LAYERS) for name in names.split()}
    for path in files(ROOT, "arithlib"):
        own = path.relative_to(ROOT / "arithlib").parts[0].removesuffix(".py")
        if own == "__init__":  # the front door, which opens everything only when it is used
            continue
        for name in imports(path):
            if name.startswith("arithlib."):
                other = name.split(".")[1]
                assert other not in floor or floor[other] <= floor[own], f"{path.name} imports {name}"
        assert own in floor, f"{own} has no layer"


def test_bookkit_runs_where_there_is_no_arithlib():
    modules = [
        ".".join(path.relative_to(ROOT / "book").with_suffix("").parts).removesuffix(".__init__")
        for path in files(ROOT, "bookkit")
    ]
    program = f"""
import importlib, sys
sys.modules |= dict.fromkeys(("arithlib", "chapters", "presets"))  # None: an import of these fails
for name in {modules!r}:
    importlib.import_module(name)
"""
    found = os.environ | {"PYTHONPATH": str(ROOT / "book")}
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=found)
    assert result.returncode == 0, result.stderr


def test_the_library_needs_no_package_of_the_book():
    outside = {"papermill", "nbformat", "yaml", "IPython", "ipywidgets", "seaborn", "sphinx", "bs4", "snakemake"}
    for path in files(ROOT, "arithlib"):
        assert not {name.partition(".")[0] for name in imports(path)} & outside, path


def test_the_tests_of_the_library_need_none_either():
    """As continuous integration runs them on the oldest and the newest torch; what is not collected is not run."""
    command = [sys.executable, "-m", "pytest", "-p", "without_the_book", "--collect-only", "tests/arithlib"]
    # A plugin that some package of the book brings along would be imported unasked.
    found = os.environ | {"PYTHONPATH": str(ROOT / "tests"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=found)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr


def test_the_drawing_of_the_layers_is_made_from_the_imports():
    drawn = arrows(ROOT)
    assert {("experiments", "training"), ("presets", "chapters"), ("models", "tasks")} <= set(drawn)
    assert not {tail for tail, head in drawn if head == "presets"}
    assert rows(essential(drawn))["tokenizer"] > rows(essential(drawn))["cli"]
