"""Runs: small GPTs on tasks with and without a short program in RASP-L (chapter 63).

arithlib train "algorithm-*"      a minute each on one core, parity and sums a quarter hour or more; stacks of three
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
    # Longer, since after 4,000 steps a trial on another seed still had nine in ten long texts of training wrong.
    parity = replace(
        study, d_model=64, n_layers=2, batch_size=64, steps=12_000, evaluate_every=500,
        optimizer=AdamW.cosine(lr=3e-3, steps=12_000),
    )  # fmt: skip
    # Numbers of one to four digits, set on another seed by texts as in training.
    sums = replace(
        parity, train_length=4, test_lengths=(1, 2, 3, 4, 5, 6, 8), steps=10_000, optimizer=AdamW.cosine(3e-3, 10_000)
    )
    for task in TASKS:
        # The chapter looks into the mistakes of one task.
        own = {"parity": parity, "add": sums}.get(task.partition("-")[0], study)
        yield replace(own, name=f"algorithm-{task}", task=task, ships_weights=task == "count")
    # The reversed order with hints had hardly learned four digits when that rate ran out; on another seed it learned
    # them at a rate that stays high for longer.
    high = AdamW(lr=3e-3, weight_decay=0.01, warmup_steps=200, schedule="trapezoid", decay_steps=3000, clip_norm=1.0)
    for order in ("reversed", "forward"):
        task = f"add-{order}-hints"
        yield replace(sums, name=f"algorithm-{task}-high", task=task, optimizer=high, ships_weights=False)
