"""Runs: symbolic grade-school problems (chapter 42): k layers looped L times, source 003, table 2.

arithlib train "graphs-*x*-s0"        the six shapes of one seed: five minutes on one idle core
arithlib train "graphs-gpu-*"         the published width and size of problem, two minutes each on a GPU
"""

from dataclasses import replace

from arithlib.experiments import sweep
from chapters.ch42_experiments import GraphExperiment
from chapters.ch42_igsm import Graphs
from presets.depth import of_shapes, of_steps, shapes

SEEDS = range(3)
SHAPES = tuple(sorted({*shapes(4), (1, 2)}))  # of depth 4, the looped ones with both their partners
PUBLISHED = ((8, 1), (1, 1), (1, 2), (1, 4), (1, 8), (2, 1), (2, 2), (2, 4), (4, 1), (4, 2))  # the rows of table 2


def presets():
    """Every run of this family."""
    small = Graphs(5, depth=2, constants=3, terms=2, factor_share=0.0, levels=3, width=2)
    ours = of_shapes(SHAPES, d_vocab=len(small.words))
    run = GraphExperiment(
        name="graphs", about="five parameters, asked to depth 2 (chapter 42)", task=small, everywhere=True,
        **of_steps(1600), batch_size=32, evaluation_count=100, ships_weights=False, **ours["1x4"],
    )  # fmt: skip
    yield from sweep(replace(run, ships_weights=True), {"1x4": {}}, range(2))
    yield from sweep(run, {"1x4": {}}, [2])
    yield from sweep(run, {name: shape for name, shape in ours.items() if name != "1x4"}, SEEDS)
    large = Graphs()
    published = of_shapes(PUBLISHED, d_model=128, n_heads=8, d_vocab=len(large.words))
    run = GraphExperiment(
        name="graphs-gpu", about="twelve parameters: two minutes", task=large, **of_steps(10_000, lr=1e-3),
        batch_size=256, scale="gpu", ships_weights=False, **published["1x1"],
    )  # fmt: skip
    yield from sweep(run, published, SEEDS)
