"""Runs: sums whose numbers are cut into single digits, or into chunks from the left or from the right (chapter 60).

arithlib train "cuts-*"    two to fifteen minutes each on one core: a run is a stack of three small models
"""

from arithlib.training import AdamW
from chapters.ch60_cut_sums import Cut
from chapters.ch60_experiments import CutExperiment

SEEDS = (0, 1, 2)
# Steps, learning rate and the longest numbers are from trials with another seed, by sums as in training.
STEPS = {1: 1000, 2: 2000, 3: 2000}  # by digits a token
WIDTHS = (32, 64)  # the last is that of all other runs
COMMAS = 0.1  # share of sums with commas in the training of the run "digits-commas"


def presets():
    """Every run of this family."""

    def run(name, about, cut, d_model=WIDTHS[-1], **more):
        steps = STEPS[cut.size]
        return CutExperiment(
            name=f"cuts-{name}", about=f"{about} (chapter 60)", steps=steps, evaluate_every=50,
            optimizer=AdamW(lr=3e-3, weight_decay=0.1, warmup_steps=100, schedule="cosine", clip_norm=1.0),
            cut=cut, seeds=SEEDS, d_model=d_model, ships_weights=False, **more,
        )  # fmt: skip

    def kept(cut):
        return dict(snapshot_steps=tuple(range(50, STEPS[cut.size] + 1, 50)))

    yield run("digits", "sums of single digits", Cut(), **kept(Cut()))
    yield run("digits-commas", "sums of single digits, some with commas", Cut(), commas=COMMAS)
    for side in ("left", "right"):
        cut = Cut(2, side)
        for width in WIDTHS:
            more = kept(cut) if width == WIDTHS[-1] else {}
            yield run(f"{side}-{width}", f"sums of chunks of two digits from the {side}", cut, width, **more)
        cut, about = Cut(3, side), f"sums of chunks of three digits from the {side}"
        yield run(f"threes-{side}", about, cut, digits=6, spelled=True, **kept(cut))
