"""Runs: padded sums, plain and modulo m, with three ways to know a place (chapter 64).

arithlib train "padded-*"       ten to thirty seconds each on one core
"""

from dataclasses import replace

from arithlib.experiments import sweep
from arithlib.models.looped import LoopedConfig
from arithlib.training import AdamW
from chapters.ch64_experiments import PaddedExperiment
from chapters.ch64_padded_sums import PaddedSums

SEEDS = range(3)
# Steps, batches and learning rates are from trials with another seed: until sums as in training are right.
EASY, HARD = (50, 100), (51, 101)
# Offsets of addresses in training: a column is then no fixed row of the table.
OFFSETS = 8


def presets():
    """Every run of this family."""
    model = LoopedConfig(
        d_model=64, d_mlp=256, n_layers=1, n_loops=1, injection="none", n_rows=32, n_ctx=32, offset=0
    )  # fmt: skip

    def variant(positions, steps, batch, modulus=None, full="one", lr=1e-2):
        kind = "plain sums" if modulus is None else f"sums modulo {modulus}"
        return dict(
            about=f"{kind}, positions: {positions} (chapter 64)", task=PaddedSums(2, modulus=modulus, full=full),
            model=replace(model, positions=positions), k=OFFSETS if positions == "abacus" else 1, steps=steps,
            batch_size=batch, evaluate_every=steps // 4, optimizer=AdamW.cosine(lr, steps, weight_decay=0.1),
        )  # fmt: skip

    variants = {f"{modulus}-learned": variant("learned", 1200, 128, modulus) for modulus in (*EASY, *HARD, 150)}
    variants |= {f"{modulus}-rotary": variant("rotary", 3000, 128, modulus) for modulus in EASY}
    # At 1e-2 no trial with rotary places learned a hard modulus.
    variants |= {f"{modulus}-rotary": variant("rotary", 3000, 128, modulus, lr=3e-3) for modulus in HARD}
    variants |= {f"sums-{positions}": variant(positions, 3000, 64) for positions in ("learned", "rotary")}
    variants["sums-abacus"] = variant("abacus", 3000, 64, lr=3e-3)  # 1e-2, or 6,000 steps, learned less
    variants["both-learned"] = variant("learned", 1200, 64, full="both")
    run = PaddedExperiment(name="padded", ships_weights=False, **variants["sums-learned"])
    yield from sweep(run, variants, SEEDS)
