"""Runs: experiments on what else needs digits brought together: sorting, and the OR of two vectors (chapter 36).

arithlib train "aligned-*"     a minute each on one core
"""

from arithlib.models.looped import LoopedConfig
from arithlib.models.positions import Offsets
from arithlib.training import ScheduledAdamW
from chapters.ch36_bitwise_or import Or
from chapters.ch36_experiments import OrExperiment, SortingExperiment
from chapters.ch36_sorting import WORDS, Sorting

SEEDS = range(3)
SMALL = dict(d_model=64, n_heads=4, d_mlp=256, n_rows=64)
LISTS = Sorting(max_numbers=3, max_digits=2)
# Layers and loops. The looped one has as much to compute as the standard one and as many weights as the single one,
# and gets its input again before each loop.
STANDARD, LOOPED, SINGLE = (2, 1), (1, 2), (1, 1)


def presets():
    """Every experiment of this family, in the order in which `arithlib list` prints them."""
    sorters = {"both": ("abacus+fire", STANDARD), "looped": ("abacus+fire", LOOPED)}
    sorters["single"] = ("abacus+fire", SINGLE)
    sorters |= {positions: (positions, STANDARD) for positions in ("abacus", "fire")}
    for label, (positions, (n_layers, n_loops)) in sorters.items():
        for seed in SEEDS:
            yield _preset(
                SortingExperiment, f"sort-{label}",
                f"sorting, {n_layers} x {n_loops}, positions: {positions} (chapter 36)", 3000, seed,
                task=LISTS, offsets=Offsets("per batch", k=4),
                model=LoopedConfig(
                    n_layers=n_layers, n_loops=n_loops, positions=positions, offset=1, d_vocab=len(WORDS), **SMALL
                ),
                sizes=(tuple(range(1, 2 * LISTS.max_numbers + 1)), tuple(range(1, 2 * LISTS.max_digits + 1))),
            )  # fmt: skip
    for positions in ("abacus", "fire", "none"):
        for seed in SEEDS:
            yield _preset(
                OrExperiment, f"or-one-{positions}", f"OR of two vectors, positions: {positions} (chapter 36)", 1200,
                seed, task=Or(8, "one"), offsets=Offsets("per batch", k=24), sizes=(tuple(range(4, 25, 4)),) * 2,
                model=LoopedConfig(n_layers=2, n_loops=1, positions=positions, offset=4, **SMALL),
            )  # fmt: skip


def _preset(kind, label, about, steps, seed, **more):
    """An experiment whose rate warms up over a twentieth of its steps and falls to zero along a cosine."""
    return kind(
        name=f"aligned-{label}-s{seed}",
        about=about,
        steps=steps,
        evaluate_every=steps // 10,
        model_seed=seed,
        data_seed=seed,
        optimizer=ScheduledAdamW(lr=3e-3, steps=steps, warmup_steps=steps // 20),
        batch_size=32,
        ships_weights=False,
        **more,
    )
