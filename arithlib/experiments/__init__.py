"""The registry: every training run of the book is one frozen dataclass with a name.

`python -m arithlib list` prints it; `python -m arithlib train NAME` runs one. What a run computes is fixed by the
fields that enter its hash, so that a checkpoint can prove which experiment it came from.

A family is a module of this package, and the names of its experiments begin with the module's. A chapter about any
family but grokking imports that module, so that the chapter runs again when the family changes, and no other does.
"""

import difflib
import fnmatch
import importlib
import pkgutil

from arithlib.experiments.base import Experiment, NotAnAdder
from arithlib.experiments.grokking import GrokkingExperiment, ModularObjective

__all__ = [
    "EXPERIMENTS", "Experiment", "GrokkingExperiment", "ModularObjective", "NotAnAdder", "UnknownExperiment", "get",
    "match",
]  # fmt: skip

# Imported by a computed name: the digest of a notebook follows written imports only, so a chapter about one family is
# not run again because another was edited or joined.
FAMILIES = [module.name for module in pkgutil.iter_modules(__path__) if module.name != "base"]
EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for family in FAMILIES
    for experiment in importlib.import_module(f"arithlib.experiments.{family}").presets()
}


class UnknownExperiment(KeyError):
    """No experiment of that name."""

    def __str__(self):
        return self.args[0]


def get(name: str) -> Experiment:
    """The experiment of that name; the error names the nearest ones."""
    if name in EXPERIMENTS:
        return EXPERIMENTS[name]
    near = difflib.get_close_matches(name, EXPERIMENTS, n=3, cutoff=0.4)
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    raise UnknownExperiment(f"no experiment is called {name!r}. {hint}`python -m arithlib list` shows all.")


def match(pattern: str) -> list[Experiment]:
    """Experiments whose name fits a shell pattern, in registry order; an error if none does."""
    found = [e for e in EXPERIMENTS.values() if fnmatch.fnmatchcase(e.name, pattern)]
    return found or [get(pattern)]
