"""Runs: adders with learned rows or rotary angles for addresses (chapter 77).

arithlib train "contrast-*"   under a minute each on one core
"""

from arithlib.experiments import sweep
from arithlib.models.column import TABLES, ColumnConfig
from arithlib.training import AdamW
from chapters.ch77_experiments import ContrastExperiment

# By the name of the run: its positions, what they are, and its steps, fewer of them where this layer does not learn.
SCHEDULE = {
    "abacus": ("abacus", "a learned row for every digit address, signs have one row of their own (chapter 77)", 3000),
    "coupling": ("coupling", "the same, and signs have the row below the first digit (chapter 77)", 6000),
    "rotary": ("rotary", "rotary angles of the digit address (chapter 77)", 6000),
    "places": ("rotary-text", "rotary angles of the place in the text (chapter 77)", 2000),
}


def presets():
    """Every run of chapter 77; of places a single one, which shows that they are not learned in its steps."""
    for name, (positions, about, steps) in SCHEDULE.items():
        run = ContrastExperiment(
            name=f"contrast-{name}", about=about, steps=steps, evaluate_every=steps // 25,
            optimizer=AdamW.cosine(1e-2, steps, weight_decay=0.0), model=ColumnConfig(positions),
            k=20 if positions in TABLES else 1, ships_weights=name != "places",
        )  # fmt: skip
        yield from sweep(run, {"": {}}, range(1 if name == "places" else 3))
