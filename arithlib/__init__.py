"""arithlib: the small library beneath "How transformers do arithmetic: every claim, rerun".

>>> from arithlib import load
>>> load("adder-certified").add(45, 99)
144

A tokenizer, the looped transformer with Abacus positions, the grokking transformer, column transformers, one training
loop and what it takes to keep its results: each name below can be imported from here. What is used is opened, and no
more, so that `import arithlib` takes no time.
"""

import importlib

__version__ = "0.1.0"

EXPORTS = {
    "CharacterTokenizer": "tokenizer",
    "OperandTask": "tasks.operands",
    "ModularAddition": "tasks.modular",
    "LoopedConfig": "models.looped",
    "LoopedTransformer": "models.looped",
    "GrokkingConfig": "models.grokking",
    "GrokkingTransformer": "models.grokking",
    "ColumnConfig": "models.column",
    "ColumnTransformer": "models.column",
    "AdamW": "training",
    "train": "training",
    "AbacusExperiment": "experiments.abacus",
    "AdderExperiment": "experiments.adder",
    "GrokkingExperiment": "experiments.grokking",
    "register": "experiments",
    "load": "checkpoints",
    "make": "checkpoints",
}
__all__ = list(EXPORTS)  # noqa: PLE0604  names that __getattr__ opens


def __getattr__(name: str):
    if name in EXPORTS:
        return getattr(importlib.import_module(f"arithlib.{EXPORTS[name]}"), name)
    raise AttributeError(f"module 'arithlib' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *EXPORTS])
