"""Runs: three numbers on one line, their columns apart or together (chapter 65).

arithlib train "columns-*"    some minutes on one busy core: six small models trained as one
"""

from arithlib.training import AdamW
from chapters.ch65_experiments import ColumnsExperiment, WrittenLine

STEPS = 1500


def presets():
    """Every run of this family."""
    yield ColumnsExperiment(
        name="columns-eight", about="three numbers of eight digits on one line (chapter 65)", steps=STEPS,
        evaluate_every=100, optimizer=AdamW(lr=3e-3, weight_decay=0.1, warmup_steps=100, schedule="cosine"),
        lines=(WrittenLine(), WrittenLine(interleaved=True)), seeds=(0, 1, 2), ships_weights=False,
    )  # fmt: skip
