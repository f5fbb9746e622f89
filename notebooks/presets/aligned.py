"""Runs: what else needs digits brought together: sorting, and the OR of two vectors (chapter 36).

arithlib train "aligned-*"     a minute each on one core
"""

from arithlib.experiments import sweep
from arithlib.models.looped import LoopedConfig
from arithlib.models.positions import Offsets
from arithlib.training import AdamW
from chapters.ch36_bitwise_or import Or
from chapters.ch36_experiments import OrExperiment, SortingExperiment
from chapters.ch36_sorting import WORDS, Sorting

SEEDS = range(3)
SMALL = dict(d_model=64, n_heads=4, d_mlp=256, n_rows=64)
LISTS = Sorting(max_numbers=3, max_digits=2)
# Layers and loops. The looped one has as much to compute as the standard one and as many weights as the single one,
# and gets its input again before each loop.
STANDARD, LOOPED, SINGLE = (2, 1), (1, 2), (1, 1)


def sorter(positions, shape):
    n_layers, n_loops = shape
    return dict(
        about=f"sorting, {n_layers} x {n_loops}, positions: {positions} (chapter 36)",
        model=LoopedConfig(
            n_layers=n_layers, n_loops=n_loops, positions=positions, offset=1, d_vocab=len(WORDS), **SMALL
        ),
    )  # fmt: skip


def or_(positions):
    return dict(
        about=f"OR of two vectors, positions: {positions} (chapter 36)",
        model=LoopedConfig(n_layers=2, n_loops=1, positions=positions, offset=4, **SMALL),
    )


def presets():
    """Every run of this family."""
    common = dict(batch_size=32, ships_weights=False)
    sorting = SortingExperiment(
        name="aligned-sort", steps=3000, evaluate_every=300, optimizer=AdamW.cosine(3e-3, 3000), task=LISTS,
        offsets=Offsets("per batch", k=4), **sorter("abacus+fire", STANDARD), **common,
        sizes=(tuple(range(1, 2 * LISTS.max_numbers + 1)), tuple(range(1, 2 * LISTS.max_digits + 1))),
    )  # fmt: skip
    yield from sweep(sorting, {
        "both": {},
        "looped": sorter("abacus+fire", LOOPED),
        "single": sorter("abacus+fire", SINGLE),
        "abacus": sorter("abacus", STANDARD),
        "fire": sorter("fire", STANDARD),
    }, SEEDS)  # fmt: skip
    ors = OrExperiment(
        name="aligned-or-one", steps=1200, evaluate_every=120, optimizer=AdamW.cosine(3e-3, 1200), task=Or(8, "one"),
        offsets=Offsets("per batch", k=24), sizes=(tuple(range(4, 25, 4)),) * 2, **or_("abacus"), **common,
    )  # fmt: skip
    yield from sweep(ors, {positions: or_(positions) for positions in ("abacus", "fire", "none")}, SEEDS)
