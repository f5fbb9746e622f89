"""Hides what only the book brings along, as where `arithlib` is installed alone: import it, or `pytest -p` it."""

import sys
import tomllib
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def brought_by(wanted: list[str]) -> set[str]:
    """Names of the distributions that these requirements bring along, all the way down, as far as they are here."""
    found, left = set(), [Requirement(text) for text in wanted]
    while left:
        requirement = left.pop()
        name = canonicalize_name(requirement.name)
        if name in found or requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        found.add(name)
        try:
            left += map(Requirement, metadata.requires(name) or [])
        except metadata.PackageNotFoundError:
            continue
    return found


def hidden_modules() -> set[str]:
    """Names of the top-level modules that come with arithlib[book], and with neither arithlib nor its tests."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    kept = brought_by([*project["dependencies"], *extras["test"]])
    hidden = brought_by(extras["book"]) - kept
    owners = metadata.packages_distributions()
    return {module for module, names in owners.items() if hidden.issuperset(map(canonicalize_name, names))}


HIDDEN = hidden_modules()


class Rest(PathFinder):
    """Finds what is installed but for what is hidden, which is nowhere, also for those who only ask (torch does)."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in HIDDEN else super().find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Rest
