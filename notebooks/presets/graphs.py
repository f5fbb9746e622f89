"""Runs: experiments on symbolic grade-school problems (chapter 42): k layers looped L times, source 003, table 2.

arithlib train "graphs-*x*-s0"        the six shapes of one seed: five minutes on one idle core
arithlib train "graphs-gpu-*"         the published width and size of problem, three minutes each on a GPU
"""

from arithlib.experiments.base import Experiment
from arithlib.models.looped import LoopedConfig
from arithlib.training import ScheduledAdamW
from chapters.ch42_experiments import GraphExperiment
from chapters.ch42_igsm import Graphs
from presets.depth import shapes

SEEDS = range(3)
SHAPES = tuple(sorted({*shapes(4), (1, 2)}))  # of depth 4, the looped ones with both their partners
PUBLISHED = ((8, 1), (1, 1), (1, 2), (1, 4), (1, 8), (2, 1), (2, 2), (2, 4), (4, 1), (4, 2))  # the rows of table 2


def presets() -> list[Experiment]:
    """Every experiment of this family, in the order in which `arithlib list` prints them."""
    small = dict(
        task=Graphs(5, depth=2, constants=3, terms=2, factor_share=0.0, levels=3, width=2), everywhere=True,
        steps=1600, lr=3e-3, width=(64, 4), batch_size=32, evaluation_count=100,
        about="five parameters, asked to depth 2 (chapter 42)",
    )  # fmt: skip
    large = dict(
        task=Graphs(), steps=10_000, lr=1e-3, width=(128, 8), batch_size=256, scale="gpu",
        about="twelve parameters: three minutes", ships_weights=False,
    )  # fmt: skip
    ours = [
        _preset("graphs", s, seed, ships_weights=s == (1, 4) and seed < 2, **small) for seed in SEEDS for s in SHAPES
    ]
    return ours + [_preset("graphs-gpu", s, seed, **large) for seed in SEEDS for s in PUBLISHED]


def _preset(name, shape, seed, *, steps, lr, width, task, **more):
    (k, loops), (d_model, n_heads) = shape, width
    return GraphExperiment(
        name=f"{name}-{k}x{loops}-s{seed}",
        task=task,
        steps=steps,
        evaluate_every=steps // 20,
        model_seed=seed,
        data_seed=seed,
        model=LoopedConfig(
            d_model=d_model, n_heads=n_heads, d_mlp=4 * d_model, n_layers=k, n_loops=loops,
            positions="rotary", injection="none", d_vocab=len(task.words),
        ),
        optimizer=ScheduledAdamW(lr=lr, steps=steps, warmup_steps=steps // 20),
        **more,
    )  # fmt: skip
