"""A Sphinx extension: links between the chapters and the library, both ways, read from the code itself.

Each chapter ends with the parts of the library that its cells name; each function and class of the API reference
ends with the chapters that name it. Nothing is listed by hand, so nothing goes stale.
"""

import ast
import functools
import inspect
import json
import pkgutil
import re
from pathlib import Path

from bookkit.build.layers import ROOMS
from bookkit.build.notebook_ast import statements

FOLDER = "notebooks"
DESCRIBED = set(ROOMS) - {"presets"}  # the tables of runs have no entries on the API pages


def library_names(cells: list[str]) -> list[str]:
    """Full names of the functions and classes of ours that these code cells use, in alphabetical order.

    cells: source of code cells, one string each; IPython's `%magic` and `!shell` lines are understood.

    >>> library_names(["from arithlib import load", "model = load('grokking')"])
    ['arithlib.load']
    """
    nodes = [node for cell in cells for statement in statements(cell) for node in ast.walk(statement)]
    imported = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for name in node.names:
                top = name.name.partition(".")[0]
                imported[name.asname or top] = name.name if name.asname else top
        elif isinstance(node, ast.ImportFrom):
            imported |= {name.asname or name.name: f"{node.module}.{name.name}" for name in node.names}
    found = {_documented_name(_dotted(node, imported)) for node in nodes}
    return sorted(found - {None})


def _dotted(node: ast.AST, imported: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return imported.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _dotted(node.value, imported)
        return owner and f"{owner}.{node.attr}"
    return None


@functools.cache
def _documented_name(dotted: str | None) -> str | None:
    """Where the object of that name is defined, if it is a function or class of ours with a docstring."""
    if dotted is None or dotted.partition(".")[0] not in DESCRIBED:
        return None
    try:
        thing = pkgutil.resolve_name(dotted)
    except (ImportError, AttributeError):
        return None
    if not (inspect.isfunction(thing) or inspect.isclass(thing)) or not thing.__doc__:
        return None
    name = f"{thing.__module__}.{thing.__qualname__}"
    return name if name.partition(".")[0] in DESCRIBED and "._" not in name else None


def _code_cells(notebook: dict) -> list[str]:
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def find_users(app) -> None:
    """Before anything is read: which chapter uses which parts of the library."""
    paths = sorted(Path(app.srcdir, FOLDER).glob("*.ipynb"))
    app.bookkit_uses = {path.stem: library_names(_code_cells(json.loads(path.read_text("utf8")))) for path in paths}


def uses_changed(app, env, added: set[str], changed: set[str], removed: set[str]) -> set[str]:
    """Every page, if what is remembered of them was read when chapters used other parts of the library."""
    before = getattr(env, "bookkit_uses", app.bookkit_uses)
    env.bookkit_uses = app.bookkit_uses
    return set() if before == app.bookkit_uses else env.found_docs


def name_library(app, docname: str, source: list[str]) -> None:
    """End a chapter with links to the parts of the library it uses."""
    if not docname.startswith(f"{FOLDER}/"):
        return
    names = app.bookkit_uses[docname.removeprefix(f"{FOLDER}/")]
    if names:
        notebook = json.loads(source[0])
        links = " · ".join(f"{{py:obj}}`~{name}`" for name in names)
        text = f":::{{admonition}} The library behind this page\n:class: library\n{links}\n:::"
        cell = {"cell_type": "markdown", "id": "library", "metadata": {}, "source": text}
        notebook["cells"].append(cell)
        source[0] = json.dumps(notebook)


def name_chapters(app, what: str, name: str, obj, options, lines: list[str]) -> None:
    """End the docstring of a function or class with links to the chapters that use it."""
    chapters = [chapter for chapter, names in app.bookkit_uses.items() if name in names]
    if chapters:
        lines += ["", ":Used in: " + " · ".join(f":doc:`/{FOLDER}/{chapter}`" for chapter in chapters), ""]


def plain_text(app, what: str, name: str, obj, options, lines: list[str]) -> None:
    """Show a docstring as it stands in the source; to Sphinx, `|x|` and `*args` would be markup.

    An indented paragraph is code, and the lines of one that describes arguments, like this, stay apart:

    a, b: (B,) residues.
    p: the modulus.
    """
    paragraphs = "\n".join(lines).split("\n\n")
    for index, paragraph in enumerate(paragraphs):
        if paragraph.startswith(">>>"):
            continue
        if re.match(r"    .*(\n    .*)*$", paragraph):
            # Where the text before announces a block itself, another `::` would be taken for the block.
            announced = index > 0 and paragraphs[index - 1].endswith("::")
            paragraphs[index] = paragraph if announced else f"::\n\n{paragraph}"
            continue
        # Every second piece stands between backquotes.
        pieces = re.split(r"(`+[^`]*`+)", paragraph)
        pieces[::2] = [re.sub(r"[*|]|_(?!\w)", r"\\\g<0>", piece) for piece in pieces[::2]]
        paragraphs[index] = "".join(pieces)
        if re.match(r"\w+(, \w+)*: ", paragraph):
            paragraphs[index] = re.sub(r"^(?! )", "| ", paragraphs[index], flags=re.MULTILINE)
    lines[:] = "\n\n".join(paragraphs).split("\n")


def setup(app) -> dict:
    app.connect("builder-inited", find_users)
    app.connect("env-get-outdated", uses_changed)
    app.connect("source-read", name_library)
    app.connect("autodoc-process-docstring", plain_text, priority=400)  # before napoleon writes markup
    app.connect("autodoc-process-docstring", name_chapters)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
