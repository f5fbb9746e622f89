"""Runs: adders whose weights follow from as few numbers as we could train (chapter 73).

arithlib train "compact-*"     2 to 4 minutes each on one core
"""

from arithlib.experiments import sweep
from arithlib.models.column import ColumnConfig
from chapters.ch73_compact import CompactExperiment

STEPS = 1500


def presets():
    """Every run of this family, from the widest on."""
    for d_model, d_mlp, starts in ((3, 4, 24), (2, 3, 48)):
        size = ColumnConfig("window-sink", d_model=d_model, n_heads=1, d_mlp=d_mlp, tied=True)
        compact = CompactExperiment(
            name=f"compact-{d_model}x{d_mlp}", about="an adder of few numbers (chapter 73)", steps=STEPS,
            evaluate_every=STEPS, model=size, starts=starts,
        )  # fmt: skip
        yield from sweep(compact, {"": {}}, range(5))
