"""Runs: adders that find the columns by themselves, of as few numbers as we could train (chapter 73).

arithlib train "unaddressed-*"     of 128 starts each: five to seven minutes of one core a run
"""

from chapters.ch73_unaddressed import COUNT, UnaddressedExperiment, UnaddressedSettledExperiment

STEPS = 1100
SEEDS = range(5)


def presets():
    """Every run of this family."""
    for seed in SEEDS:
        name = f"unaddressed-{COUNT}-s{seed}"
        yield UnaddressedExperiment(
            name=name, about=f"an adder of {COUNT} numbers without addresses (chapter 73)",
            steps=STEPS, evaluate_every=STEPS, seed=seed,
        )  # fmt: skip
        yield UnaddressedSettledExperiment(
            name=f"{name}-settled", about="the same, until neither rounding nor other tokens can undo its leads",
            steps=300, evaluate_every=300, start=name, seed=seed,
        )  # fmt: skip
