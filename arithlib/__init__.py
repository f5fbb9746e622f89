"""arithlib: the small library beneath "How transformers do arithmetic: every claim, rerun".

>>> from arithlib import load
>>> load("adder-certified").add(45, 99)
144

A tokenizer, the looped transformer with Abacus positions, the grokking transformer, column transformers, one training
loop and what it takes to keep its results.
"""

__version__ = "0.1.0"

from arithlib.checkpoints import load, make
from arithlib.experiments import GrokkingExperiment, register
from arithlib.experiments.abacus import AbacusExperiment
from arithlib.experiments.adder import AdderExperiment
from arithlib.models.column import ColumnConfig, ColumnTransformer
from arithlib.models.grokking import GrokkingConfig, GrokkingTransformer
from arithlib.models.looped import LoopedConfig, LoopedTransformer
from arithlib.tasks.modular import ModularAddition
from arithlib.tasks.operands import OperandTask
from arithlib.tokenizer import CharacterTokenizer
from arithlib.training import AdamW, train

__all__ = [
    "AbacusExperiment", "AdamW", "AdderExperiment", "CharacterTokenizer", "ColumnConfig", "ColumnTransformer",
    "GrokkingConfig", "GrokkingExperiment", "GrokkingTransformer", "LoopedConfig", "LoopedTransformer",
    "ModularAddition", "OperandTask", "load", "make", "register", "train",
]  # fmt: skip
