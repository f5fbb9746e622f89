"""Runs: column transformers (part 7), trained on sums of at most ten digits, meant for any length.

arithlib train adder-live             a quarter of a minute on one core
arithlib train "adder-windowed-s*"   a minute each on one core
arithlib train "adder-wide-s*"       a minute each on one core
arithlib train "adder-unwindowed-s*" 2 minutes each on one core
arithlib train "adder-flat-s*"       2 minutes each on one core
arithlib train "adder-scaled-s*"     2 minutes each on one core
"""

from arithlib.experiments import sweep
from arithlib.experiments.adder import AdderExperiment
from arithlib.models.column import ColumnConfig
from arithlib.training import AdamW


def of_steps(steps):
    """The length of a run, and what goes with it."""
    optimizer = AdamW.cosine(1e-2, steps, weight_decay=0.0)
    return dict(steps=steps, evaluate_every=steps // 25, optimizer=optimizer)


def presets():
    """Every run of this family."""
    adder = AdderExperiment(name="adder", about="attention within one column: a minute (part 7)", **of_steps(6000))
    half = of_steps(3000)
    yield AdderExperiment(
        name="adder-live", about="windowed, trained while the book is built (chapter 70)", **of_steps(2000)
    )
    yield AdderExperiment(
        name="adder-certified", about="a windowed one to use: `arithlib add adder-certified A B` (part 7)", seed=5,
        **half,
    )  # fmt: skip
    yield from sweep(adder, {
        "short": dict(about="windowed, half as long: half a minute (chapter 70)", **half),
        "windowed": {},
        "wide": dict(about="the same with twice the neurons: a minute (part 7)", model=ColumnConfig(d_mlp=128)),
    }, range(5))  # fmt: skip
    yield from sweep(adder, {
        "unwindowed": dict(
            about="softmax over every token, with a learned decay: 2 minutes (part 7)", model=ColumnConfig("alibi"),
            **half,
        ),
        "flat": dict(
            about="softmax over every token, and nothing that fades: 2 minutes (chapter 71)",
            model=ColumnConfig("full"), **half,
        ),
        "scaled": dict(
            about="flat, with all scores times log n: 2 minutes (chapter 71)", model=ColumnConfig("log-scaled"),
            **half,
        ),
    }, range(3))  # fmt: skip
