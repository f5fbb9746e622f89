"""Runs: small GPTs on tasks with and without a short program in RASP-L (chapter 63).

arithlib train "algorithm-*"      one to four minutes each on one core: a run is a stack of three small models
"""

from dataclasses import replace

from arithlib.training import AdamW
from chapters.ch63_experiments import AlgorithmExperiment
from chapters.ch63_tasks import TASKS

SEEDS = (0, 1, 2)


def presets():
    """Every run of this family."""
    steps = 2500
    study = AlgorithmExperiment(
        name="algorithm", about="small GPTs on tasks of RASP-L (chapter 63)", steps=steps, evaluate_every=250,
        optimizer=AdamW.cosine(lr=5e-3, steps=steps, clip_norm=None), ships_weights=False, seeds=SEEDS, d_model=32,
        task="count", train_length=10, test_lengths=(5, 10, 12, 15, 20),
    )  # fmt: skip
    sums = dict(train_length=6, test_lengths=(3, 6, 7, 9, 12))
    for task in TASKS:
        yield replace(study, name=f"algorithm-{task}", task=task, **(sums if task.startswith("add") else {}))
