"""Runs: adders with learned rows or rotary angles for addresses (chapter 77).

arithlib train "contrast-*"   under a minute each on one core
"""

from arithlib.models.column import TABLES, ColumnConfig
from arithlib.training import ScheduledAdamW
from chapters.ch77_experiments import ContrastExperiment


def preset(name, about, steps, seed, **more):
    """An experiment whose rate warms up over a twentieth of its steps and falls to zero along a cosine."""
    return ContrastExperiment(
        name=name, about=about, steps=steps, evaluate_every=steps // 25, model_seed=seed, data_seed=seed,
        optimizer=ScheduledAdamW(lr=1e-2, steps=steps, warmup_steps=steps // 20, weight_decay=0.0), **more,
    )  # fmt: skip


# By the name of the run: its positions, what they are, and its steps, fewer of them where this layer does not learn.
SCHEDULE = {
    "abacus": ("abacus", "a learned row for every digit address, signs have one row of their own (chapter 77)", 3000),
    "coupling": ("coupling", "the same, and signs have the row below the first digit (chapter 77)", 6000),
    "rotary": ("rotary", "rotary angles of the digit address (chapter 77)", 6000),
    "places": ("rotary-text", "rotary angles of the place in the text (chapter 77)", 2000),
}


def presets():
    """Every experiment of chapter 77; of places a single run, which shows that they are not learned in its steps."""
    for name, (positions, about, steps) in SCHEDULE.items():
        for seed in range(1 if name == "places" else 3):
            yield preset(
                f"contrast-{name}-s{seed}", about, steps, seed, model=ColumnConfig(positions),
                k=20 if positions in TABLES else 1, ships_weights=name != "places",
            )  # fmt: skip
