"""Runs: experiments with column transformers (part 7): trained on sums of at most ten digits, meant for any length.

arithlib train adder-live             a quarter of a minute on one core
arithlib train "adder-windowed-s*"   a minute each on one core
arithlib train "adder-wide-s*"       a minute each on one core
arithlib train "adder-unwindowed-s*" 2 minutes each on one core
arithlib train "adder-flat-s*"       2 minutes each on one core
arithlib train "adder-scaled-s*"     2 minutes each on one core
"""

from arithlib.experiments.adder import AdderExperiment
from arithlib.models.column import ColumnConfig
from arithlib.training import ScheduledAdamW


def preset(name, about, steps, seed, *, lr=1e-2, **more):
    """An experiment whose rate warms up over a twentieth of its steps and falls to zero along a cosine."""
    return AdderExperiment(
        name=name,
        about=about,
        steps=steps,
        evaluate_every=steps // 25,
        model_seed=seed,
        data_seed=seed,
        optimizer=ScheduledAdamW(lr=lr, steps=steps, warmup_steps=steps // 20, weight_decay=0.0),
        **more,
    )


def presets():
    """Every experiment of part 7, in the order in which `arithlib list` prints them."""
    yield preset("adder-live", "windowed, trained while the book is built (chapter 70)", 2000, 0)
    for seed in range(5):
        yield preset(f"adder-short-s{seed}", "windowed, half as long: half a minute (chapter 70)", 3000, seed)
    for seed in range(5):
        yield preset(f"adder-windowed-s{seed}", "attention within one column: a minute (part 7)", 6000, seed)
    yield preset("adder-certified", "a windowed one to use: `arithlib add adder-certified A B` (part 7)", 3000, 5)
    for seed in range(5):
        yield preset(
            f"adder-wide-s{seed}", "the same with twice the neurons: a minute (part 7)", 6000, seed,
            model=ColumnConfig(d_mlp=128),
        )  # fmt: skip
    for seed in range(3):
        yield preset(
            f"adder-unwindowed-s{seed}", "softmax over every token, with a learned decay: 2 minutes (part 7)", 3000,
            seed, model=ColumnConfig("alibi"),
        )  # fmt: skip
    for seed in range(3):
        yield preset(
            f"adder-flat-s{seed}", "softmax over every token, and nothing that fades: 2 minutes (chapter 71)", 3000,
            seed, model=ColumnConfig("full"),
        )  # fmt: skip
    for seed in range(3):
        yield preset(
            f"adder-scaled-s{seed}", "flat, with all scores times log n: 2 minutes (chapter 71)", 3000,
            seed, model=ColumnConfig("log-scaled"),
        )  # fmt: skip
