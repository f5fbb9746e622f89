"""Runs: small GPTs on tasks with and without a short program in RASP-L (chapter 63).

arithlib train "algorithm-*"      one to five minutes each on one core: a run is a stack of three small models
"""

from dataclasses import replace

from arithlib.training import AdamW
from chapters.ch63_experiments import AlgorithmExperiment
from chapters.ch63_tasks import TASKS

SEEDS = (0, 1, 2)
STEPS, STEPS_OF_SUMS = 1500, 2500


def presets():
    """Every run of this family."""
    study = AlgorithmExperiment(
        name="algorithm", about="small GPTs on tasks of RASP-L (chapter 63)", steps=STEPS, evaluate_every=250,
        optimizer=AdamW.cosine(lr=2e-3, steps=STEPS), ships_weights=False, seeds=SEEDS,
        task="count", train_length=10, test_lengths=(5, 10, 12, 15, 20),
    )  # fmt: skip
    sums = dict(
        steps=STEPS_OF_SUMS, optimizer=AdamW.cosine(lr=2e-3, steps=STEPS_OF_SUMS),
        train_length=6, test_lengths=(3, 6, 7, 9, 12),
    )  # fmt: skip
    for task in TASKS:
        yield replace(study, name=f"algorithm-{task}", task=task, **(sums if task.startswith("add") else {}))
