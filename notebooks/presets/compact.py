"""Runs: adders whose weights follow from as few numbers as we could train (chapter 73).

arithlib train "compact-*"     of a thousand starts each: minutes on a GPU, more than half an hour on one core
"""

from chapters.ch73_compact import CompactExperiment, SettledExperiment, count

STEPS = 1500
SEEDS = {1: range(3), 2: range(5), 3: range(5)}  # by size


def presets():
    """Every run of this family."""
    for spared, seeds in SEEDS.items():
        for seed in seeds:
            name = f"compact-{count(spared)}-s{seed}"
            common = dict(spared=spared, seed=seed)
            yield CompactExperiment(
                name=name, about=f"an adder of {count(spared)} numbers (chapter 73)", steps=STEPS,
                evaluate_every=STEPS, **common,
            )  # fmt: skip
            yield SettledExperiment(
                name=f"{name}-settled", about="the same, until rounding cannot undo its leads (chapter 73)",
                steps=300, evaluate_every=300, start=name, **common,
            )  # fmt: skip
