"""When must a notebook run again? When something it was made from has other content, and not otherwise.

The digest covers the notebook's cells, the modules of `arithlib` that it reaches, its checkpoints, its parameters,
the claims it tests and the pinned packages. Time stamps, stored outputs, comments, docstrings and formatting do not
count: none of them changes what is computed. A module imported by a computed name (`importlib`) is not seen.
"""

import ast
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from bookkit.build.notebook_ast import code_of
from bookkit.claims import read_rows

PACKAGE = "arithlib"


def notebook_digest(root: Path, name: str, settings: dict) -> str:
    """Content digest, 16 hexadecimal digits, of all that notebook `name` of the checkout `root` is made from.

    settings: its entry in book/workflow/config.yaml; `parameters` and `checkpoints` (names or globs) count.
    """
    notebook = nbformat.read(root / "notebooks" / f"{name}.ipynb", as_version=4)
    code = [ast.Module(code_of(cell), []) for cell in notebook.cells]
    parts = [
        [[cell.cell_type, cell.source, sorted(cell.metadata.get("tags", []))] for cell in notebook.cells],
        {module: module_digest(path) for module, path in reached_modules(root, code).items()},
        data_files(root),
        {path.name: file_digest(path) for path in checkpoint_files(root, settings.get("checkpoints", []))},
        settings.get("parameters", {}),
        claims_of(root, name, notebook),
        pins(root),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


# ------------------------------------------------------------------------------------------------- modules


def reached_modules(root: Path, trees: Iterable[ast.Module]) -> dict[str, Path]:
    """Modules of the package that these syntax trees import, directly or through each other: name -> file."""
    reached: dict[str, Path] = {}
    waiting = {module for tree in trees for module in imported(tree, package="")}
    while waiting:
        module = waiting.pop()
        path = module_file(root, module)
        if module in reached or path is None:
            continue
        reached[module] = path
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        # Importing a.b.c runs a and a.b first.
        waiting |= imported(syntax(path), package) | {module.rpartition(".")[0]}
    return dict(sorted(reached.items()))


def imported(tree: ast.Module, package: str) -> set[str]:
    """Every dotted name that a tree may import as a module, in functions too; `package` resolves leading dots."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*base, *filter(None, [node.module])])
            # `from a import b` may name a module a.b; where it does not, no such file is found.
            found |= {source} | {f"{source}.{alias.name}" for alias in node.names}
    return found


def module_file(root: Path, module: str) -> Path | None:
    """The file of a module of the package; None for any other dotted name."""
    if module.split(".")[0] != PACKAGE:
        return None
    path = root.joinpath(*module.split("."))
    candidates = (path / "__init__.py", path.with_name(f"{path.name}.py"))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def module_digest(path: Path) -> str:
    """Digest of what a module does: its syntax tree without docstrings, hence without comments and layout."""
    tree = syntax(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str())), *rest]:
                    node.body = rest
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def syntax(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


# -------------------------------------------------------------------------------------------- other inputs


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tree_digest(root: Path, patterns: Iterable[str], without: Path | None = None) -> str:
    """Digest of the bytes and places of the files that match `patterns` below `root`, but not below `without`."""
    found = {path for pattern in patterns for path in root.glob(pattern) if path.is_file()}
    files = sorted(path for path in found if without is None or without not in path.parents)
    content = [[path.relative_to(root).as_posix(), file_digest(path)] for path in files]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def data_files(root: Path) -> str:
    """Digest of the data that ships inside the package, such as the style sheet."""
    return tree_digest(root, [f"{PACKAGE}/**/*.mplstyle"])


def checkpoint_files(root: Path, patterns: Iterable[str]) -> list[Path]:
    """Shipped weights, and the note of how they were made, for each name or glob."""
    folders = (root / "checkpoints", root / PACKAGE / "weights")
    return sorted({path for name in patterns for folder in folders for path in folder.glob(f"**/{name}.*")})


def claims_of(root: Path, name: str, notebook: NotebookNode) -> list[dict]:
    """Rows of claims.yaml that the notebook tests, or that its code mentions by id."""
    rows = read_rows(root / "claims.yaml")
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    return [row for row in rows if row.get("chapter") == name or row["id"] in code]


def pins(root: Path) -> list[str]:
    """The pinned packages of requirements.txt, without comments and order."""
    lines = (root / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return sorted(filter(None, (line.partition("#")[0].strip() for line in lines)))
