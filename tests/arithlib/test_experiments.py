"""The registry: one module a family, and a chapter depends on its own family alone."""

import ast
import re
from pathlib import Path

import nbformat
import pytest

from arithlib import checkpoints, experiments
from bookkit.build.digest import reached_modules
from bookkit.build.notebook_ast import code_of

ROOT = Path(__file__).parents[2]
SHIPPED = [path.stem for path in checkpoints.shipped()]


def test_names_begin_with_their_family():
    for name, experiment in experiments.EXPERIMENTS.items():
        family = name.partition("-")[0]
        assert family in experiments.FAMILIES
        assert type(experiment).__module__ == f"arithlib.experiments.{family}"


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_weights_belong_to_the_experiment_of_their_name(name):
    trained = checkpoints.read(name)
    assert trained.provenance["hash"] == experiments.get(name).hash()
    assert trained.provenance["settings"] == experiments.get(name).settings()


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("[0-9]*.ipynb")), ids=lambda path: path.stem)
def test_a_chapter_reaches_the_families_whose_experiments_it_names_and_no_other(path):
    notebook = nbformat.read(path, as_version=4)
    reached = reached_modules(ROOT, [ast.Module(code_of(cell), []) for cell in notebook.cells])
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    for family in set(experiments.FAMILIES) - {"grokking"}:  # which the registry itself imports
        begun = re.findall(rf"[\"']({family}-[a-z0-9]*)", code)  # names may go on in an f-string
        named = any(name.startswith(tuple(begun)) for name in experiments.EXPERIMENTS)
        imported = re.search(rf"experiments(\.| import .*\b){family}\b", code) is not None
        assert (f"arithlib.experiments.{family}" in reached) == (named or imported), family
        assert imported or not named, family
