"""Runs: small looped adders trained with and without input injection, and what they know of places (chapter 67).

arithlib train "loops-*"      half a minute each on one core
"""

from dataclasses import replace

from arithlib.experiments import sweep
from arithlib.models.looped import LoopedConfig
from arithlib.models.positions import Offsets
from arithlib.tasks.operands import OperandTask
from arithlib.training import AdamW
from chapters.ch67_experiments import ProbedAdder

# Length, rate and size of sums are from trials with another seed: until most sums were right.
STEPS, SEEDS = 2000, range(3)


def presets():
    """Every run of this family."""
    model = LoopedConfig(d_model=64, d_mlp=256, offset=8)
    adder = ProbedAdder(
        name="loops", about="the input enters before each loop (chapter 67)", steps=STEPS, evaluate_every=STEPS // 4,
        batch_size=32, evaluation_count=400, task=OperandTask(max_digits=3), offsets=Offsets("per batch", k=40),
        model=model, optimizer=AdamW.cosine(4e-3, STEPS), ships_weights=False,
    )  # fmt: skip
    yield from sweep(adder, {
        "injection": {},
        "noinjection": dict(
            about="the input enters once (chapter 67)", model=replace(model, injection="none")
        ),
    }, SEEDS)  # fmt: skip
