"""The chapters, as committed and as they ran."""

import ast
import inspect
import json
import pkgutil
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from bookkit.build.glued import GLUED
from bookkit.build.layers import ROOMS
from bookkit.build.notebook_ast import (
    check_verdicts,
    code_of,
    default_parameters,
    global_reads,
    scope_of,
    unread_parameters,
)
from bookkit.build.project import Project
from bookkit.build.provenance import checkpoints
from bookkit.build.reader_notes import words

PROJECT = Project(Path(__file__).resolve().parents[2])
NOTEBOOKS = sorted(path.stem for path in (PROJECT.root / "notebooks").glob("*.ipynb"))
LONGEST_CELL = 25  # lines on the page
LONGEST_UNSEEN = 50  # lines of a drawing, which is folded, or of numbers for the prose, which are removed
UNSEEN = {"hide-input", "remove-cell"}
MOST_WORDS, MOST_FIGURES = 3500, 10  # of a chapter that readers finish, exercises included


@cache
def source(name):
    return nbformat.read(PROJECT.root / "notebooks" / f"{name}.ipynb", as_version=4)


def code_cells(notebook):
    """Code cells, by their place in the notebook."""
    return [(number, cell) for number, cell in enumerate(notebook.cells) if cell.cell_type == "code"]


def tags(cell) -> set[str]:
    return set(cell.metadata.get("tags", []))


def test_every_notebook_is_in_the_table_of_contents_once():
    assert sorted(PROJECT.notebooks) == NOTEBOOKS, "a notebook is missing, or no table of contents knows it"
    toc = (PROJECT.root / "_toc.yml").read_text(encoding="utf-8")
    assert [toc.count(f"notebooks/{name}\n") for name in NOTEBOOKS] == [1] * len(NOTEBOOKS)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_committed_notebook_is_valid_and_holds_no_outputs(name):
    notebook = source(name)
    nbformat.validate(notebook)
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "code":
            assert cell.outputs == [], f"cell {number} has outputs: strip them before committing"
            assert cell.execution_count is None, f"cell {number} has an execution count: strip it before committing"
    assert not {"widgets", "papermill"} & set(notebook.metadata)


def figure_keys(notebook) -> list[str]:
    """The keys of its figures, as its code has them."""
    nodes = [node for cell in notebook.cells for part in code_of(cell) for node in ast.walk(part)]
    calls = [c for c in nodes if isinstance(c, ast.Call) and isinstance(c.func, ast.Name) and c.func.id == "figure"]
    return [call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)]


def test_no_two_figures_of_the_book_have_one_key():
    """They are labels of one site, whose build comes long after the chapters have run."""
    keys = Counter(key for name in NOTEBOOKS for key in figure_keys(source(name)))
    assert len(keys) > 100 and [key for key, count in keys.items() if count > 1] == []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_parameters_are_literals_that_a_cell_reads(name):
    notebook = source(name)
    assert unread_parameters(notebook) == set()
    assert set(PROJECT.notebooks[name]["parameters"]) <= set(default_parameters(notebook))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_what_a_notebook_asks_of_our_modules_is_there(name):
    """Without running it: a name that moved is found here, not after ten minutes."""
    nodes = [node for _, cell in code_cells(source(name)) for part in code_of(cell) for node in ast.walk(part)]
    modules, missing = {}, []
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] in ROOMS:
            for alias in node.names:
                try:
                    found = pkgutil.resolve_name(f"{node.module}.{alias.name}")
                except (ImportError, AttributeError):
                    missing.append(f"{node.module}.{alias.name}")
                else:
                    modules |= {alias.asname or alias.name: found} if inspect.ismodule(found) else {}
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            if not hasattr(modules[node.value.id], node.attr):
                missing.append(f"{node.value.id}.{node.attr}")
    assert missing == []


def literals(loop: ast.For) -> dict[str, list[str]]:
    """What the variables of a loop take, as far as it stands there: in a tuple, or as the keys of a dictionary."""
    match loop.iter:
        case ast.Call(func=ast.Attribute(value=ast.Dict(keys=keys), attr="items" | "keys")):
            rows = [[key] for key in keys]
        case ast.Tuple(elts=elements):
            rows = [one.elts if isinstance(one, ast.Tuple) else [one] for one in elements]
        case _:
            return {}
    variables = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
    return {
        variable.id: [str(value.value) for value in column if isinstance(value, ast.Constant)]
        for variable, column in zip(variables, zip(*rows, strict=False), strict=False)
        if isinstance(variable, ast.Name)
    }


def glued_names(tree: ast.AST, known: dict[str, list[str]]) -> Iterator[str]:
    """Patterns of the names that code glues; `.+` stands for what only a run can tell.

    known: the literals of loops around it. A name with one of their variables alone has a pattern for each.
    """
    if isinstance(tree, ast.For):
        taken = {node.id for node in ast.walk(tree.target) if isinstance(node, ast.Name)}
        known = {name: words for name, words in known.items() if name not in taken} | literals(tree)
    for node in ast.iter_child_nodes(tree):
        yield from glued_names(node, known)
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "glue":
        name = tree.args[0]
        parts = [getattr(part, "value", part) for part in getattr(name, "values", [name])]
        match [part for part in parts if isinstance(part, ast.AST)]:
            case [ast.Name(id=variable)] if known.get(variable):
                values = map(re.escape, known[variable])
            case _:
                values = [".+"]
        for value in values:
            yield "".join(value if isinstance(part, ast.AST) else re.escape(part) for part in parts)


def unused(notebook) -> list[str]:
    used = GLUED.findall("\n".join(cell.source for cell in notebook.cells))
    patterns = [p for _, cell in code_cells(notebook) for part in code_of(cell) for p in glued_names(part, {})]
    return [pattern for pattern in patterns if not any(re.fullmatch(pattern, name) for name in used)]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_number_made_for_the_text_stands_in_it(name):
    """Of those that a loop glues by two variables, or over what only a run knows, at least one does."""
    assert unused(source(name)) == []


@pytest.mark.parametrize(
    ("code", "left"),
    [
        ("glue('a', 1)\nglue('b', 2)", ["b"]),
        ("for name in ('a', 'b'):\n    glue(name, 1)", ["b"]),
        ("for name in {'x': 'a', 'y': 'b'}.values():\n    glue(name, 1)", []),
        ("for name in ('b', 'c'):\n    for name in found:\n        glue(name, 1)", []),
        ("for name, _ in (('a', 1), ('b', 2)):\n    glue(f'wave-{name}', 1)", ["wave\\-b"]),
        ("for name, x in {'a': 1, 'b': 2}.items():\n    glue(f'wave-{name}', x)", ["wave\\-b"]),
        ("for name in found:\n    glue(f'wave-{name}', 1)\n    glue(f'tide-{name}', 1)", ["tide\\-.+"]),
        ("for name in ('a', 'b'):\n    for x in (1, 2):\n        glue(f'{name}-{x}', 1)", []),
    ],
)
def test_a_number_that_no_text_uses_is_found(code, left):
    text = "{glue:text}`a`, {glue:text}`wave-a` and {glue:text}`a-1`"
    assert unused(new_notebook(cells=[new_code_cell(code), new_markdown_cell(text)])) == left


def test_what_prose_links_to_is_there():
    """Seen in seconds: Sphinx says so, too, but only after every chapter has run."""
    pages = {path.name: path.read_text() for path in (PROJECT.root / "book").glob("*.md")}
    for name in NOTEBOOKS:
        pages[name] = "\n".join(cell.source for cell in source(name).cells if cell.cell_type == "markdown")
    missing, seen = [], 0
    for page, text in pages.items():
        for target in re.findall(r"\{py:\w+\}`[^`]*?([\w.]+)>?`", text):
            seen += 1
            try:
                pkgutil.resolve_name(target)
            except (ImportError, AttributeError):
                missing.append((page, target))
    assert seen > 30 and missing == []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_cells_are_short_enough_to_read(name):
    long = [
        (number, lines)
        for number, cell in code_cells(source(name))
        if (lines := len(cell.source.splitlines())) > (LONGEST_UNSEEN if UNSEEN & tags(cell) else LONGEST_CELL)
    ]
    assert long == [], (
        f"cells of more than {LONGEST_CELL} lines ({LONGEST_UNSEEN} where folded), as (cell, lines): split them by "
        "ideas, or move plumbing into arithlib"
    )


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_chapter_is_short_enough_to_be_finished(name):
    text = "\n\n".join(cell.source for cell in source(name).cells if cell.cell_type == "markdown")
    assert words(text) <= MOST_WORDS and len(figure_keys(source(name))) <= MOST_FIGURES


def calls(cell) -> set[str]:
    """Names of the functions that a cell calls."""
    nodes = [node for part in code_of(cell) for node in ast.walk(part)]
    return {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_verdict_is_seen_where_it_is_given(name):
    check_verdicts(source(name))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_no_claim_is_judged_in_a_removed_cell(name):
    removed = [
        number for number, cell in code_cells(source(name)) if "remove-cell" in tags(cell) and "claim" in calls(cell)
    ]
    assert removed == [], "removed cells with a claim: show what was measured"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_what_is_made_for_the_page_is_shown_there(name):
    """A table that does not end its cell is lost unless it is displayed, and nobody sees that it is."""
    made = {"provenance", "table", "verdicts"}
    lost = []
    for number, cell in code_cells(source(name)):
        parts = code_of(cell)
        bare = [inner for part in parts for inner in ast.walk(part) if isinstance(inner, ast.Expr)]
        lost += [
            (number, ast.unparse(inner))
            for inner in bare
            if isinstance(inner.value, ast.Call) and ast.unparse(inner.value.func) in made and inner is not parts[-1]
        ]
    assert lost == [], "end the cell with it, or display(...) it"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_code_on_the_page_uses_no_name_of_a_removed_cell(name):
    """But for the variables of loops, which every loop assigns anew."""
    removed, lost = {}, []
    for number, cell in code_cells(source(name)):
        for statement in code_of(cell):
            scope = scope_of(statement)
            assigned = {s.get_name() for s in scope.get_symbols() if s.is_assigned() or s.is_imported()}
            own = assigned if isinstance(statement, ast.For | ast.With) else set()
            if "remove-cell" in tags(cell):
                removed |= dict.fromkeys(assigned - own, number)
            else:
                lost += [(number, read, removed[read]) for read in (global_reads(scope) - own) & set(removed)]
                removed = {key: at for key, at in removed.items() if key not in assigned}
    assert lost == [], "names a reader cannot find, as (cell, name, removed cell): show where they are computed"


@pytest.mark.built
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_ran_to_its_end(name):
    executed, record = PROJECT.executed(name), PROJECT.records(name) / "run.json"
    assert executed.is_file() and record.is_file(), f"{name} has not been run: make book"
    run = json.loads(record.read_text(encoding="utf-8"))
    assert (run["status"], run["error"], run["notebook"]) == ("ok", None, name)
    for number, cell in enumerate(nbformat.read(executed, as_version=4).cells):
        if cell.cell_type == "code" and cell.source.strip():
            assert cell.execution_count is not None, f"cell {number} was not run"
            errors = [output.ename for output in cell.outputs if output.output_type == "error"]
            assert errors == [], f"cell {number} failed"


@pytest.mark.built
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_what_ran_is_what_is_committed(name):
    ran = [cell for _, cell in code_cells(nbformat.read(PROJECT.executed(name), as_version=4))]
    ran = [cell.source for cell in ran if "injected-parameters" not in tags(cell)]
    assert ran == [cell.source for _, cell in code_cells(source(name))]


@pytest.mark.built
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_trained_model_that_a_page_names_is_declared(name):
    """Else a chapter would not run again when it changes, and provenance.json would lack it."""
    shipped = {path.stem for path in PROJECT.root.glob("checkpoints/**/*.json")}
    declared = {Path(place).stem for place in checkpoints(PROJECT, name)}
    shown = [output.data["text/plain"] for _, cell in code_cells(nbformat.read(PROJECT.executed(name), as_version=4))
             for output in cell.outputs if "text/plain" in output.get("data", {})]  # fmt: skip
    named = {named for text in shown for pair in re.findall(r"^Trained: (\S+)(?: to (\S+))?", text) for named in pair}
    assert named & shipped <= declared
