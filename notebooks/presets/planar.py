"""Runs: sums of many numbers: addresses in the plane, and on a line for comparison (chapter 74).

arithlib train "planar-rows-s*"      half a minute each on one core
arithlib train "planar-columns-s*"   half a minute each on one core
arithlib train "planar-label-s*"     one to two minutes each on one core, as planar-index and planar-token
"""

from arithlib.experiments import sweep
from arithlib.models.column import ColumnConfig
from arithlib.training import AdamW
from chapters.ch74_experiments import PlanarExperiment
from chapters.ch74_running_totals import RunningTotals


def presets():
    """Every run of this family."""

    def planar(name, about, steps, evaluate_every, **more):
        return PlanarExperiment(
            name=f"planar{name}", about=f"{about} (chapter 74)", steps=steps, evaluate_every=evaluate_every,
            optimizer=AdamW.cosine(1e-2, steps, weight_decay=0.0), **more,
        )  # fmt: skip

    yield planar("-live", "addresses in the plane, trained while the book is built", 1500, 150, seed=5)
    rows = planar("", "sums of many numbers, addresses in the plane", 3000, 300)
    columns = dict(about="the same, written by columns (chapter 74)", task=RunningTotals(layout="columns"))
    yield from sweep(rows, {"rows": {}, "columns": columns}, range(3))
    short = planar("-short", "the same for half as long", 1500, 150, ships_weights=False)
    yield from sweep(short, {"": {}}, range(3))

    def on_a_line(positions, about):
        return dict(about=f"{about} (chapter 74)", model=ColumnConfig(positions, d_mlp=128))

    line = planar("", "addresses on a line", 1500, 500, ships_weights=False)
    yield from sweep(line, {
        "label": on_a_line("line-label", "places, and a learned vector for each line"),
        "index": on_a_line("column-only", "places alone, lines look alike"),
        "token": on_a_line("distance", "distances in tokens, no table"),
    }, range(3))  # fmt: skip
