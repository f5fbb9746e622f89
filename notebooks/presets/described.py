"""Runs: small GPTs on sums whose digits are described by other places, or stand in sentences (chapter 69).

arithlib train "described-*"      one to two minutes each on one core: a run is a stack of three small models
"""

from dataclasses import replace

from arithlib.training import AdamW
from chapters.ch69_experiments import PlacesExperiment, SentencesExperiment

# Steps and batches were chosen by the time that they take and on seed 9, which is in no result.
STEPS = 5000
SEEDS = (3, 4, 5)
TABLE = 40  # places: the longest text of a test, a sentence, has fewer


def presets():
    """Every run of this family."""
    common = dict(
        steps=STEPS, evaluate_every=100, ships_weights=False, seeds=SEEDS, digits=2, n_ctx=TABLE, n_layers=2,
        batch_size=32, optimizer=AdamW(lr=3e-3, weight_decay=0.1, warmup_steps=100, schedule="cosine"),
    )  # fmt: skip
    sums = PlacesExperiment(name="described", about="sums with other places of their digits (chapter 69)", **common)
    for name, changes in {
        "plain": {},
        "shifts": {"places": "shifts"},
        "subsets": {"places": "subsets"},
        "spaces": {"spaces": True},
        "sinusoidal": {"positions": "sinusoidal"},
        "none": {"positions": "none"},
    }.items():
        yield replace(sums, name=f"described-{name}", **changes)
    inside = SentencesExperiment(
        name="described", about="sums in sentences (chapter 69)", kinds=("bare", "sentences"), **common
    )
    yield replace(inside, name="described-mixed")
    yield replace(inside, name="described-words", kinds=("bare", "words"))
