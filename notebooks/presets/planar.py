"""Runs: sums of many numbers: addresses in the plane, and on a line for comparison (chapter 74).

arithlib train "planar-rows-s*"      half a minute each on one core
arithlib train "planar-columns-s*"   half a minute each on one core
arithlib train "planar-label-s*"     one to two minutes each on one core, as planar-index and planar-token
"""

from arithlib.models.column import ColumnConfig
from arithlib.training import ScheduledAdamW
from chapters.ch74_experiments import PlanarExperiment
from chapters.ch74_running_totals import RunningTotals


def preset(name, about, seed, steps=1500, evaluate_every=150, **more):
    """An experiment whose rate warms up over a twentieth of its steps and falls to zero along a cosine."""
    return PlanarExperiment(
        name=name, about=f"{about} (chapter 74)", steps=steps, evaluate_every=evaluate_every, model_seed=seed,
        data_seed=seed, optimizer=ScheduledAdamW(lr=1e-2, steps=steps, warmup_steps=steps // 20, weight_decay=0.0),
        **more,
    )  # fmt: skip


def presets():
    """Every experiment of chapter 74, in the order in which `arithlib list` prints them."""
    yield preset("planar-live", "addresses in the plane, trained while the book is built", 5)
    for seed in range(3):
        yield preset(
            f"planar-rows-s{seed}", "sums of many numbers, addresses in the plane", seed, steps=3000,
            evaluate_every=300,
        )  # fmt: skip
        yield preset(f"planar-short-s{seed}", "the same for half as long", seed, ships_weights=False)
        yield preset(
            f"planar-columns-s{seed}", "the same, written by columns", seed, steps=3000, evaluate_every=300,
            task=RunningTotals(layout="columns"),
        )  # fmt: skip
    for name, positions, about in (
        ("label", "line-label", "places, and a learned vector for each line"),
        ("index", "column-only", "places alone, lines look alike"),
        ("token", "distance", "distances in tokens, no table"),
    ):
        for seed in range(3):
            yield preset(
                f"planar-{name}-s{seed}", about, seed, model=ColumnConfig(positions, d_mlp=128),
                evaluate_every=500, ships_weights=False,
            )  # fmt: skip
