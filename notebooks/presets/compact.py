"""Runs: adders whose weights follow from as few numbers as we could train (chapter 73).

arithlib train "compact-*"     2 to 4 minutes each on one core
"""

from arithlib.experiments import sweep
from arithlib.models.column import ColumnConfig
from chapters.ch73_compact import CompactExperiment, SettledExperiment

STEPS = 1500
SEEDS = range(5)


def presets():
    """Every run of this family."""
    name, size = "compact-3x4", ColumnConfig("window-sink", d_model=3, n_heads=1, d_mlp=4, tied=True)
    compact = CompactExperiment(
        name=name, about="an adder of few numbers (chapter 73)", steps=STEPS, evaluate_every=STEPS, model=size
    )
    yield from sweep(compact, {"": {}}, SEEDS)
    for seed in SEEDS:
        yield SettledExperiment(
            name=f"{name}-s{seed}-settled", about="the same, until rounding cannot undo its leads (chapter 73)",
            steps=300, evaluate_every=300, model=size, starts=1, start=f"{name}-s{seed}",
        )  # fmt: skip
