"""Runs: two numbers on one line, their columns apart or together (chapter 65).

arithlib train "columns-*"    some minutes on one busy core: six small models trained as one
"""

from arithlib.training import AdamW
from chapters.ch65_experiments import ColumnsExperiment, WrittenLine

STEPS = 2000


def presets():
    """Every run of this family."""
    yield ColumnsExperiment(
        name="columns-four", about="two numbers of four digits on one line (chapter 65)", steps=STEPS,
        evaluate_every=100, optimizer=AdamW(lr=5e-3, weight_decay=0.1, warmup_steps=100, schedule="cosine"),
        lines=(WrittenLine(), WrittenLine(interleaved=True)), seeds=(0, 1, 2), digits=4, numbers=2, d_model=48,
        ships_weights=False,
    )  # fmt: skip
