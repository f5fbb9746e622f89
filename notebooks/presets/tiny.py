"""Runs: adders of as few weights as we could train (chapter 73).

arithlib train "tiny-*"     2 to 3 minutes each on one core
"""

from arithlib.models.column import ColumnConfig
from arithlib.training import ScheduledAdamW
from chapters.ch73_experiments import PolishExperiment, TinyExperiment


def rate(lr, steps):
    """A rate that is constant until the scaffold is gone, and then falls to zero along a line."""
    return ScheduledAdamW(
        lr=lr, steps=steps, warmup_steps=steps // 20, weight_decay=0.0, schedule="trapezoid", decay_steps=steps // 2,
        clip_norm=None,
    )  # fmt: skip


def presets():
    """Every experiment of chapter 73, from the widest on."""
    steps, again = 10_000, 10_000
    for d_model, d_mlp in ((4, 12), (4, 8)):
        size = ColumnConfig(d_model=d_model, n_heads=1, d_mlp=d_mlp, tied=True)
        for seed in range(5):
            yield TinyExperiment(
                name=f"tiny-{d_model}x{d_mlp}-s{seed}", about="a tiny adder (chapter 73)", steps=steps,
                evaluate_every=steps // 10, model_seed=seed, data_seed=seed, model=size, optimizer=rate(2e-2, steps),
            )  # fmt: skip
        yield PolishExperiment(
            name=f"tiny-{d_model}x{d_mlp}-polished", about="the best tiny adder of its size, trained on (chapter 73)",
            steps=again, evaluate_every=again // 10, model_seed=2, data_seed=100, model=size, scaffold=size,
            optimizer=rate(4e-3, again), start=f"tiny-{d_model}x{d_mlp}-s2",
        )  # fmt: skip
