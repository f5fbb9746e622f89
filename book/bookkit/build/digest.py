"""When must a notebook run again? When something it was made from has other content, and not otherwise.

The digest covers the notebook's code cells, the definitions that they reach, its checkpoints and experiments, its
parameters, the claims it tests and the pinned packages. Time stamps, stored outputs, text between the cells,
comments, docstrings and formatting do not count: none of them changes what is computed.

A *definition* is a function, class or assignment at the top of a module. It is reached when reached code names it,
through whatever imports, whether or not that line will run; a module that is passed around as a value reaches all of
its definitions. Other statements of an imported module always count, for they run, and so does an import of what the
module never reads, made for its effect. What stands in a registry is looked up by a string, so a class is also
reached by its name or its `kind`, and what one of our decorators marks by its name or a string given to that, where
reached code, a checkpoint's note or the `repr` of an experiment holds that string.

So nothing that runs is left out, as long as a definition does nothing by being defined but to enter a registry, and
no code puts together the string by which it looks something up there.
"""

import ast
import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from bookkit.build.notebook_ast import code_of
from bookkit.claims import read_rows

# The packages that are followed, and the folders that hold them; a package that is not there is passed over.
PACKAGES = {"arithlib": ".", "bookkit": "book", "chapters": "notebooks", "presets": "notebooks"}

# Functions of this name fill the registry of experiments. They are not followed: of all that they make, a notebook
# depends on the experiments that it names or lists, and these count one by one.
FILLS_REGISTRY = "presets"

# Trains a model if there is no checkpoint of it, and is followed only if a notebook names an experiment that it does
# not list: the checkpoints that it lists are loaded, and count by their content.
TRAINS = "arithlib.checkpoints.make"

# Keys of a claim that no notebook reads: the generated pages take them from the ledger itself.
SHOWN_BY_PAGES = {"remark", "compare"}

NAME_BEGUN = re.compile(r"[a-z0-9]+-[^*?\[]*")  # a family, and what follows it up to the first wildcard


def notebook_digest(root: Path, name: str, settings: dict, experiments: Mapping[str, str]) -> str:
    """Content digest, 16 hexadecimal digits, of all that notebook `name` of the checkout `root` is made from.

    settings: as `Project.notebooks` has them; `parameters`, `checkpoints` (names or globs) and `files` count.
    experiments: the `repr` of every registered experiment, by its name.
    """
    notebook = nbformat.read(root / "notebooks" / f"{name}.ipynb", as_version=4)
    checkpoints = checkpoint_files(root, settings.get("checkpoints", []))
    reached = Reach(root, notebook, checkpoints, experiments)
    parts = [
        [[cell.source, sorted(cell.metadata.get("tags", []))] for cell in notebook.cells if cell.cell_type == "code"],
        {place: [unit.digest for unit in units] for place, units in reached.found.items()},
        {name: experiments[name] for name in reached.loaded | reached.trained},
        data_files(root),
        {path.name: file_digest(path) for path in checkpoints},
        tree_digest(root, settings.get("files", [])),
        settings.get("parameters", {}),
        claims_of(root, name, notebook),
        pins(root),
    ]
    return digest_of(parts)


# ------------------------------------------------------------------------------------------------- modules


@dataclass(frozen=True)
class Unit:
    """What counts as a whole or not at all: a statement at the top of a module, or one name bound by an import.

    names: dotted names that it reads, from their package on. imports: modules that running it may import.
    known_as: strings by which a registry may hold it. lines: first and last, decorators included.
    """

    names: frozenset[str]
    strings: frozenset[str]
    imports: frozenset[str]
    known_as: frozenset[str]
    lines: tuple[int, int]
    digest: str


@dataclass(frozen=True)
class Module:
    """A source file. defined, imported: units by each name that they bind. other: those that bind none.

    imports: modules that importing this one imports.
    """

    defined: dict[str, list[Unit]]
    imported: dict[str, list[Unit]]
    other: list[Unit]
    imports: frozenset[str]


def read_modules(root: Path) -> dict[str, Module]:
    """All modules of the packages, by dotted name."""
    found = {}
    for package, folder in PACKAGES.items():
        for path in (root / folder / package).rglob("*.py"):
            parts = path.relative_to(root / folder).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            found[name] = parse(path.read_text(encoding="utf-8"), name, is_package)
    return found


@cache
def parse(text: str, name: str, is_package: bool) -> Module:
    return analyse(ast.parse(text), name, name if is_package else name.rpartition(".")[0])


def analyse(tree: ast.Module, name: str, package: str) -> Module:
    """The statements of a module and what they refer to; `package` resolves leading dots of imports."""
    without_docstrings(tree)
    read = {name for name, *_ in names_read(tree)}
    defined: dict[str, list[ast.stmt]] = {}
    other: list[ast.stmt] = []
    imports: list[ast.stmt] = []
    for statement in tree.body:
        for bound in bound_by(statement):
            defined.setdefault(bound, []).append(statement)
        if isinstance(statement, ast.Import | ast.ImportFrom):
            imports.append(statement)
            if read.isdisjoint(bound for bound, *_ in imports_of(statement, package)):
                other.append(statement)  # imported for what that does
        elif not bound_by(statement):
            other.append(statement)
    origins: dict[str, set[str]] = {bound: {f"{name}.{bound}"} for bound in defined}
    imported: dict[str, list[Unit]] = {}
    for bound, origin, _ in imports_of(tree, package):
        origins.setdefault(bound, set()).add(origin)
        nothing = frozenset()
        imported.setdefault(bound, []).append(
            Unit(frozenset([origin]), nothing, nothing, nothing, (0, 0), digest_of(origin))
        )

    def full_names(tree: ast.AST) -> set[str]:
        read = names_read(tree)
        return {".".join([origin, *rest]) for first, *rest in read for origin in origins.get(first, ())}

    def unit(statement: ast.stmt) -> Unit:
        names, decorators = full_names(statement), getattr(statement, "decorator_list", [])
        # One of another library, such as torch.no_grad, enters nothing in our registries.
        ours = [d for d in decorators if any(name.partition(".")[0] in PACKAGES for name in full_names(d))]
        return Unit(
            names=frozenset(names),
            strings=frozenset(strings_in(statement)),
            imports=modules_in([statement], package),
            known_as=frozenset(known_as(statement, ours)),
            lines=(min(node.lineno for node in [statement, *decorators]), statement.end_lineno),
            digest=digest_of([ast.dump(statement), sorted(names)]),
        )

    return Module(
        defined={bound: [unit(statement) for statement in several] for bound, several in defined.items()},
        imported=imported,
        other=[unit(statement) for statement in other],
        imports=modules_in(imports, package),
    )


def without_docstrings(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str())), *rest]:
                    node.body = rest


def bound_by(statement: ast.stmt) -> set[str]:
    """Names that a definition binds; none for a statement that does more than to bind names."""
    match statement:
        case ast.FunctionDef(name="__getattr__"):
            return set()  # nobody names it; it runs where a name of the module is not found
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Assign(targets=targets):
            pass
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            targets = [target]
        case _:
            return set()
    nodes = [node for target in targets for node in ast.walk(target)]
    if any(isinstance(node, ast.Attribute | ast.Subscript) for node in nodes):
        return set()  # it changes something that has another name
    return {node.id for node in nodes if isinstance(node, ast.Name)}


def names_read(tree: ast.AST) -> Iterator[list[str]]:
    """Every name that is read, followed by the attributes asked of it: [a, b, c] of `a.b.c`."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        attributes = []
        while isinstance(node, ast.Attribute):
            attributes.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield [node.id, *reversed(attributes)]
        waiting += ast.iter_child_nodes(node)


def strings_in(tree: ast.AST) -> set[str]:
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def known_as(statement: ast.stmt, decorators: list[ast.expr]) -> set[str]:
    """Strings by which a registry may hold what a statement defines; see the top of this module."""
    known = set().union(*map(strings_in, decorators))
    if decorators or isinstance(statement, ast.ClassDef):
        known.add(statement.name)
    if isinstance(statement, ast.ClassDef):
        known = known.union(*(strings_in(line) for line in statement.body if "kind" in bound_by(line)))
    return known


def modules_in(trees: list[ast.stmt], package: str) -> frozenset[str]:
    """Every dotted name that the statements may import as a module, in functions too."""
    return frozenset(module for tree in trees for *_, module in imports_of(tree, package))


def imports_of(tree: ast.AST, package: str) -> Iterator[tuple[str, str, str]]:
    """Of every import: the name that it binds, what that stands for, and the module that may be imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:  # `import a.b` binds a
                bound = alias.asname or alias.name.partition(".")[0]
                yield bound, alias.name if alias.asname else bound, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*base, *filter(None, [node.module])])
            for alias in node.names:
                # `from a import b` may name a module a.b; where it does not, no such module is found.
                yield alias.asname or alias.name, f"{source}.{alias.name}", f"{source}.{alias.name}"


# --------------------------------------------------------------------------------------------------- reach


class Reach:
    """What a notebook reaches, given its files of checkpoints and the `repr` of all experiments by name.

    found: units by "module:name" of the definition, or by the module for its other statements.
    loaded, trained: names of the experiments whose checkpoints are listed, and of those that it may train itself.
    """

    def __init__(self, root: Path, notebook: NotebookNode, checkpoints: list[Path], experiments: Mapping[str, str]):
        self.modules, self.experiments = read_modules(root), experiments
        self.found: dict[str, list[Unit]] = {}
        self.loaded, self.trained = {path.stem for path in checkpoints} & set(experiments), set()
        self.seen: set[str] = set()  # dotted names
        self.waiting: list[Unit] = []  # found, and still to be followed
        self.registry: dict[str, list[tuple[str, str]]] = {}
        for name, module in self.modules.items():
            for bound, units in module.defined.items():
                for string in set().union(*(unit.known_as for unit in units)):
                    self.registry.setdefault(string, []).append((name, bound))

        for name in self.loaded:
            self.look_up_classes(name)
        for note in (path for path in checkpoints if path.suffix == ".json"):
            for kind in kinds(json.loads(note.read_text(encoding="utf-8"))):
                self.look_up(kind)
        cells = analyse(ast.Module([line for cell in notebook.cells for line in code_of(cell)], []), "", "")
        self.waiting += [*cells.other, *itertools.chain(*cells.defined.values())]
        for module in cells.imports:
            self.load(module)
        self.follow()
        if self.trained and TRAINS in self.seen:
            self.bind(*TRAINS.rsplit(".", 1))
            self.follow()

    def follow(self) -> None:
        while self.waiting:
            unit = self.waiting.pop()
            for module in unit.imports:
                self.load(module)
            for name in unit.names - self.seen:
                self.read(name)
            for string in unit.strings:
                self.look_up(string)
                self.train(string)

    def add(self, place: str, units: list[Unit]) -> None:
        if place not in self.found:
            self.found[place] = units
            self.waiting += units

    def load(self, name: str) -> None:
        """Import a module, if it is one of the packages."""
        for module in starts(name):  # importing a.b.c runs a and a.b first
            if module in self.modules and module not in self.found:
                self.add(module, self.modules[module].other)
                for other in self.modules[module].imports:
                    self.load(other)

    def read(self, name: str) -> None:
        """Reach what a dotted name stands for, if it begins with one of the packages."""
        self.seen.add(name)
        if name == TRAINS:
            return  # until all that is trained is known
        parts = starts(name)
        for module, longer in zip(parts, [*parts[1:], None], strict=True):
            if module not in self.modules:
                continue  # a folder without __init__.py, an attribute of what was reached, or another package
            self.load(module)
            if longer is None or not (self.bind(module, longer.rpartition(".")[2]) or longer in self.modules):
                for bound in self.modules[module].defined:
                    self.bind(module, bound)

    def bind(self, module: str, name: str) -> bool:
        """Reach what a name of a module stands for; False if nothing written there binds it."""
        units = [*self.modules[module].defined.get(name, []), *self.modules[module].imported.get(name, [])]
        if name != FILLS_REGISTRY:
            self.add(f"{module}:{name}", units)
        return bool(units) or name.startswith("__")  # __file__ and the like

    def look_up(self, string: str) -> None:
        """Reach what stands in a registry under a string."""
        for module, name in self.registry.get(string, ()):
            self.load(module)
            self.bind(module, name)

    def look_up_classes(self, experiment: str) -> None:
        for name in re.findall(r"(\w+)\(", self.experiments[experiment]):
            self.look_up(name)

    def train(self, string: str) -> None:
        """Reach what training takes, if a string names experiments, or begins to, and none of them is loaded."""
        begun = NAME_BEGUN.match(string)
        if string in self.experiments:
            named = {string} - self.loaded
        elif begun and not any(name.startswith(begun[0]) for name in self.loaded):
            named = {name for name in self.experiments if name.startswith(begun[0])}
        else:
            named = set()
        for name in named - self.trained:
            self.trained.add(name)
            self.look_up_classes(name)


def starts(name: str) -> list[str]:
    """a, a.b and a.b.c of a.b.c."""
    return list(itertools.accumulate(name.split("."), "{}.{}".format))


def kinds(settings) -> Iterator[str]:
    """Every value of a key `kind` in nested JSON."""
    if isinstance(settings, dict):
        yield from (value for key, value in settings.items() if key == "kind" and isinstance(value, str))
        settings = list(settings.values())
    if isinstance(settings, list):
        for value in settings:
            yield from kinds(value)


# -------------------------------------------------------------------------------------------- other inputs


def digest_of(content) -> str:
    """Digest of anything that JSON can hold."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tree_digest(root: Path, patterns: Iterable[str], without: Path | None = None) -> str:
    """Digest of the bytes and places of the files that match `patterns` below `root`, but not below `without`."""
    found = {path for pattern in patterns for path in root.glob(pattern) if path.is_file()}
    files = sorted(path for path in found if without is None or without not in path.parents)
    content = [[path.relative_to(root).as_posix(), file_digest(path)] for path in files]
    return digest_of(content)


def data_files(root: Path) -> str:
    """Digest of the data that ships inside the packages, such as the style sheet."""
    return tree_digest(root, [f"{folder}/{package}/**/*.mplstyle" for package, folder in PACKAGES.items()])


def checkpoint_files(root: Path, patterns: Iterable[str]) -> list[Path]:
    """Shipped weights, and the note of how they were made, for each name or glob."""
    folders = (root / "checkpoints", root / "arithlib" / "weights")
    return sorted({path for name in patterns for folder in folders for path in folder.glob(f"**/{name}.*")})


def claims_of(root: Path, name: str, notebook: NotebookNode) -> list[dict]:
    """Rows of the ledger that the notebook tests, or that its code mentions by id, without what only pages show."""
    rows = [
        {key: value for key, value in row.items() if key not in SHOWN_BY_PAGES}
        for _, row in read_rows(root / "book" / "claims")
    ]
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    return [row for row in rows if row.get("chapter") == name or row["id"] in code]


def pins(root: Path) -> list[str]:
    """The pinned packages of requirements.txt and requirements-weights.txt, without comments and order."""
    files = [root / f"{name}.txt" for name in ("requirements", "requirements-weights")]
    lines = [line for file in files if file.is_file() for line in file.read_text(encoding="utf-8").splitlines()]
    return sorted(filter(None, (line.partition("#")[0].strip() for line in lines)))
