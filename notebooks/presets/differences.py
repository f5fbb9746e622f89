"""Runs: differences in two passes (chapter 79).

arithlib train "differences-*"       two minutes each on one core
"""

from arithlib.experiments import sweep
from arithlib.training import AdamW
from chapters.ch79_differences import ChainedDifferences
from chapters.ch79_experiments import DifferenceExperiment

STEPS = 8_000


def presets():
    """Every run of this family."""
    run = DifferenceExperiment(
        name="differences", about="differences of up to 4 digits in two passes (chapter 79)", steps=STEPS,
        evaluate_every=400, optimizer=AdamW.cosine(5e-3, STEPS, weight_decay=0.0),
    )  # fmt: skip
    chained = dict(
        about="differences of up to 4 digits, half of them with long borrows (chapter 79)", task=ChainedDifferences()
    )
    yield from sweep(run, {"": {}, "chained": chained}, range(5))
