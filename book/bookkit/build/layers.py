"""Draws who imports whom, from the imports themselves: the parts of the library, and the rooms of the repository."""

import ast
from pathlib import Path

from bookkit.build.project import Project
from bookkit.build.rulegraph import draw, essential

# The folder that each package lies in; of the first, every top-level module is a part of its own.
LIBRARY = "arithlib"
ROOMS = {LIBRARY: "", "bookkit": "book", "chapters": "notebooks", "presets": "notebooks"}


def files(root: Path, package: str) -> list[Path]:
    """The modules of a package."""
    return sorted((root / ROOMS[package] / package).rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Every dotted name that a file imports, in its functions, too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def part(dotted: str) -> str:
    """The box that a module stands in: the second name of the library's, the first of any other's.

    >>> part("arithlib.models.looped"), part("bookkit.style.use")
    ('models', 'bookkit')
    """
    package, _, rest = dotted.partition(".")
    return rest.partition(".")[0] if package == LIBRARY else package


def arrows(root: Path) -> list[tuple[str, str]]:
    """(from, to) for every part that imports another."""
    known = {part(f"{LIBRARY}.{path.relative_to(root / LIBRARY).parts[0].removesuffix('.py')}")
             for path in files(root, LIBRARY)} - {"__init__", "__main__"}  # fmt: skip
    known |= set(ROOMS) - {LIBRARY}
    found = set()
    for package, room in ROOMS.items():
        for path in files(root, package):
            own = part(".".join(path.relative_to(root / room).with_suffix("").parts))
            found |= {(own, part(name)) for name in imports(path) if name.partition(".")[0] in ROOMS}
    return sorted((tail, head) for tail, head in found if tail != head and {tail, head} <= known)


def main() -> None:
    project = Project.find()
    draw(essential(arrows(project.root)), project.build / "layers.svg")


if __name__ == "__main__":
    main()
