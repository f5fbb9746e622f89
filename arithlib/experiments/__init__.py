"""Training runs, each a frozen dataclass with a name; and the registry of those that somebody named.

The library names none itself. A package of runs registers its own (`register`), and one that declares the entry point
`arithlib.presets` is found as soon as a name is asked for: this book's is `presets`, beside its notebooks.
`arithlib list '*'` prints all; `arithlib train NAME` runs one.
"""

import difflib
import fnmatch
from collections.abc import Iterable
from functools import cache
from importlib.metadata import entry_points

from arithlib.experiments.base import Experiment, NotAMultiplier, NotAnAdder, NotASubtractor, NotItsTask, sweep
from arithlib.experiments.grokking import GrokkingExperiment, ModularObjective

__all__ = [
    "EXPERIMENTS", "Experiment", "GrokkingExperiment", "ModularObjective", "NotAMultiplier", "NotASubtractor",
    "NotAnAdder", "NotItsTask", "UnknownExperiment", "find", "get", "match", "register", "sweep",
]  # fmt: skip

EXPERIMENTS: dict[str, Experiment] = {}


class UnknownExperiment(KeyError):
    """No experiment of that name."""

    def __str__(self):
        return self.args[0]


def register(experiments: Iterable[Experiment]) -> None:
    """Make these runs known by their names. Raises ValueError for a name that another run has."""
    for experiment in experiments:
        if EXPERIMENTS.setdefault(experiment.name, experiment) != experiment:
            raise ValueError(f"two experiments are called {experiment.name!r}")


@cache
def load_presets() -> None:
    """Import every installed package of runs, once."""
    for package in entry_points(group="arithlib.presets"):
        package.load()


def find(name: str) -> Experiment | None:
    """The experiment registered under that name, or None."""
    load_presets()
    return EXPERIMENTS.get(name)


def get(name: str) -> Experiment:
    """The experiment of that name; the error names the nearest ones."""
    if found := find(name):
        return found
    near = difflib.get_close_matches(name, EXPERIMENTS, n=3, cutoff=0.4)
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    raise UnknownExperiment(f"no experiment is called {name!r}. {hint}`arithlib list '*'` shows all.")


def match(pattern: str) -> list[Experiment]:
    """Experiments whose name fits a shell pattern, in the order of their registration; an error if none does."""
    load_presets()
    found = [e for e in EXPERIMENTS.values() if fnmatch.fnmatchcase(e.name, pattern)]
    return found or [get(pattern)]
