"""Runs: how many written sums a small GPT must see, by format (chapter 61), and how many of a table (chapter 62).

arithlib train "written-*"      some five minutes each on one core: a run is a stack of up to thirty small models
"""

from dataclasses import replace

from arithlib.training import AdamW
from chapters.ch61_experiments import WrittenExperiment
from chapters.ch61_written_sums import Format, Sample

SEEDS = (0, 1, 2)
STEPS = 1500
# The published numbers of sums (Lee et al. 2023, tables of figures 1 and 4), as far as two cores reach.
SIZES = {
    "plain": (500, 1000, 2000, 3000, 4000, 5000, 10_000, 20_000),
    "reversed": (500, 1000, 2000, 3000, 4000, 5000, 10_000),
    "simplified": (250, 500, 1000, 2000, 3000),
    "detailed": (125, 250, 500, 1000),
}


def presets():
    """Every run of this family."""
    study = WrittenExperiment(
        name="written", about="small GPTs on sets of written sums (chapter 61)", steps=STEPS, evaluate_every=100,
        optimizer=AdamW(lr=3e-3, weight_decay=0.1, warmup_steps=100, schedule="cosine"), ships_weights=False,
        format=Format(), samples=(), seeds=SEEDS,
    )  # fmt: skip

    def run(name, samples, **more):
        return replace(study, name=f"written-{name}", samples=samples, **more)

    for style, sizes in SIZES.items():
        batch = {"simplified": 32, "detailed": 16}.get(style, 64)
        yield run(style, tuple(map(Sample, sizes)), format=Format(style), batch_size=batch)
    yield run(
        "table", tuple(Sample(size, shares=(0.0, 1.0)) for size in (500, 750, 1000, 1500, 2000, 4000)),
        seeds=tuple(range(10)),
    )  # fmt: skip
    yield run("padded", (Sample(10_000),), format=Format(padded=3))
    yield run("unbalanced", (Sample(10_000, shares=(0.0, 0.0, 1.0)),))
    yield run("left-out", tuple(Sample(10_000, left_out=number) for number in (10, 100, 500)))
    yield run("gap", (Sample(10_000, shares=(0.01, 0.0, 0.99)),))
    noises = (("sums",), ("carries",), ("sums", "carries"))
    yield run(
        "noise", tuple(Sample(size, noise=noise) for size in (2000, 20_000) for noise in noises),
        format=Format("simplified"), batch_size=32,
    )  # fmt: skip
