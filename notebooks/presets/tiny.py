"""Runs: adders of as few weights as we could train (chapter 73).

arithlib train "tiny-*"     2 to 3 minutes each on one core
"""

from arithlib.experiments import sweep
from arithlib.models.column import ColumnConfig
from arithlib.training import AdamW
from chapters.ch73_experiments import PolishExperiment, TinyExperiment

STEPS = 10_000


def rate(lr):
    """A rate that is constant until the scaffold is gone, and then falls to zero along a line."""
    return AdamW(lr, weight_decay=0.0, warmup_steps=STEPS // 20, schedule="trapezoid", decay_steps=STEPS // 2)


def presets():
    """Every run of this family, from the widest on."""
    for d_model, d_mlp in ((4, 12), (4, 8)):
        name, size = f"tiny-{d_model}x{d_mlp}", ColumnConfig(d_model=d_model, n_heads=1, d_mlp=d_mlp, tied=True)
        common = dict(steps=STEPS, evaluate_every=STEPS // 10, model=size)
        tiny = TinyExperiment(name=name, about="a tiny adder (chapter 73)", optimizer=rate(2e-2), **common)
        yield from sweep(tiny, {"": {}}, range(5))
        yield PolishExperiment(
            name=f"{name}-polished", about="the best tiny adder of its size, trained on (chapter 73)", seed=100,
            optimizer=rate(4e-3), scaffold=size, start=f"{name}-s2", **common,
        )  # fmt: skip
