"""Every training run of the book, as tables: a module a family, whose runs begin with its name."""

import importlib
import pkgutil

from arithlib import experiments

# Imported by computed names: a chapter that reads one family's table does not depend on the others.
FAMILIES = [
    importlib.import_module(f"presets.{module.name}")
    for module in pkgutil.iter_modules(__path__)
    if module.name != "queueing"  # it reads these tables
]

for family in FAMILIES:
    experiments.register(family.presets())
