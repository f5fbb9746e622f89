"""Runs: one model for n-back with n from 1 to 6, with few heads or many (chapter 65).

arithlib train "nback-*"    one to two minutes each on one busy core
"""

from arithlib.experiments import sweep
from arithlib.models.looped import LoopedConfig
from arithlib.training import AdamW
from chapters.ch65_experiments import NBackExperiment
from chapters.ch65_working_memory import D_VOCAB

SEEDS, STEPS = range(3), 1000
HEADS = (1, 2, 4, 8)


def sized(n_layers, n_heads, d_model=32):
    return LoopedConfig(
        d_model=d_model, n_heads=n_heads, d_mlp=4 * d_model, n_layers=n_layers, n_loops=1, positions="rotary",
        injection="none", d_vocab=D_VOCAB,
    )  # fmt: skip


def presets():
    """Every run of this family: "2x4" is two layers of four heads, whose weights the chapter looks into."""
    nback = NBackExperiment(
        name="nback", about="a small transformer on n-back (chapter 65)", steps=STEPS, evaluate_every=50,
        optimizer=AdamW.cosine(5e-3, STEPS), model=sized(2, 4),
    )  # fmt: skip
    yield from sweep(nback, {"2x4": {}}, SEEDS)
    one_layer = {f"1x{heads}": dict(model=sized(1, heads), ships_weights=False) for heads in HEADS}
    yield from sweep(nback, one_layer, SEEDS)
