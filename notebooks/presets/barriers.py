"""Runs: what holds a small transformer back from adding: tokens, order, addresses, memory (chapter 76).

arithlib train "barriers-*-s*"       about half a minute each on one core
"""

from itertools import product

from arithlib.experiments import sweep
from arithlib.models.looped import LoopedConfig
from arithlib.training import AdamW
from chapters.ch76_experiments import BarrierExperiment
from chapters.ch76_formats import Format

BEST, AS_PEOPLE_WRITE = ("digits", "reversed", "shared"), ("digits", "forward", "place")
FORWARD = ("digits", "forward", "shared")
TOKENS, ORDERS, PLACES = {"digits": 1, "chunks": 2}, ("forward", "reversed"), ("place", "shared")
# Chunks make shorter texts: more of them for as many tokens, and so for as much computing.
BATCH = {1: 64, 2: 107}


def cell(tokens, order, places, width=48):
    """A way to write sums, and a model for it."""
    written = Format(TOKENS[tokens], order == "reversed", "place" if places == "place" else "significance")
    return dict(
        about=f"{tokens}, {order}, {places} (chapter 76)", format=written, batch_size=BATCH[written.chunk],
        model=LoopedConfig(
            d_model=width, d_mlp=4 * width, n_layers=2, n_loops=1, positions="none", n_rows=64,
            d_vocab=written.vocabulary,
        ),
        # The chapter narrows the view of the first, and takes the answers of the other apart.
        ships_weights=(tokens, order, places) in (BEST, FORWARD),
    )  # fmt: skip


def presets():
    """Every run of this family."""
    barriers = BarrierExperiment(
        name="barriers", steps=1000, evaluate_every=100, optimizer=AdamW.cosine(5e-3, 1000), **cell(*BEST)
    )
    cells = {"-".join(names): cell(*names) for names in product(TOKENS, ORDERS, PLACES)}
    wide = cell(*AS_PEOPLE_WRITE, width=96) | dict(
        about="digits as people write them, in a state twice as wide (chapter 76)"
    )
    yield from sweep(barriers, cells | {"wide": wide}, range(3))
