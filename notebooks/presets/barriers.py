"""Runs: what holds a small transformer back from adding: tokens, order, addresses, memory (chapter 76).

arithlib train "barriers-*-s*"       about half a minute each on one core
"""

from itertools import product

from arithlib.models.looped import LoopedConfig
from arithlib.training import ScheduledAdamW
from chapters.ch76_experiments import BarrierExperiment
from chapters.ch76_formats import Format

SEEDS = range(3)
BEST, AS_PEOPLE_WRITE = ("digits", "reversed", "shared"), ("digits", "forward", "place")
FORWARD = ("digits", "forward", "shared")
TOKENS, ORDERS, PLACES = {"digits": 1, "chunks": 2}, ("forward", "reversed"), ("place", "shared")
# Chunks make shorter texts: more of them for as many tokens, and so for as much computing.
BATCH = {1: 64, 2: 107}


def preset(name, about, seed, tokens, order, places, *, width=48, steps=1000):
    """An experiment whose rate warms up over a twentieth of its steps and falls to zero along a cosine."""
    written = Format(TOKENS[tokens], order == "reversed", "place" if places == "place" else "significance")
    return BarrierExperiment(
        name=f"barriers-{name}-s{seed}", about=f"{about} (chapter 76)", steps=steps, evaluate_every=steps // 10,
        model_seed=seed, data_seed=seed, format=written, batch_size=BATCH[written.chunk],
        model=LoopedConfig(
            d_model=width, d_mlp=4 * width, n_layers=2, n_loops=1, positions="none", n_rows=64,
            d_vocab=written.vocabulary,
        ),
        optimizer=ScheduledAdamW(lr=5e-3, steps=steps, warmup_steps=steps // 20),
        # The chapter narrows the view of the first, and takes the answers of the other apart.
        ships_weights=(tokens, order, places) in (BEST, FORWARD),
    )  # fmt: skip


def presets():
    """Every experiment of chapter 76, in the order in which `arithlib list` prints them."""
    for seed in SEEDS:
        for cell in product(TOKENS, ORDERS, PLACES):
            yield preset("-".join(cell), ", ".join(cell), seed, *cell)
        yield preset(
            "wide", "digits as people write them, in a state twice as wide", seed, *AS_PEOPLE_WRITE, width=96
        )
