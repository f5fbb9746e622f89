"""Runs: loops in a small language model (chapter 46): k layers looped L times beside k layers and k L layers.

arithlib train "language-?x?-s*"    four to twelve minutes each on one busy core
arithlib train "language-short-*"   a minute each on one core
arithlib train "language-twelve-*"  two to six minutes each on one core
arithlib train "language-deeper-*"  one to six minutes each on one core
"""

from arithlib.experiments import sweep
from arithlib.models.looped import LoopedConfig
from arithlib.training import AdamW
from chapters.ch46_experiments import DeeperExperiment, LanguageExperiment, ShortExperiment
from chapters.ch46_text import CHARACTERS

SEEDS, MORE_SEEDS = range(3), range(5)
# Layers to a block and strength of the rows of source 003's table 4, their blocks halved with the depth.
PULLED = ((2, 1), (2, 10), (3, 10), (4, 10), (6, 10))


def of_shapes(shapes, **more):
    """Variants of a run: k layers looped L times."""
    return {f"{k}x{loops}": dict(model=shaped(k, loops, **more)) for k, loops in shapes}


def shaped(k, loops, n_ends=0):
    return LoopedConfig(
        d_model=64, n_heads=4, d_mlp=256, n_layers=k, n_loops=loops, positions="rotary", injection="none",
        d_vocab=len(CHARACTERS), n_ends=n_ends,
    )  # fmt: skip


def presets():
    """Every run of this family.

    Those of 1000 steps learn the facts and something of the text, and in context nothing. The short ones have a mix
    in which looking up is easy; those of a depth of twelve have it for twice the steps. "pulled" are models whose
    blocks are pulled together, "slow" is twelve layers at a third of the learning rate. The deeper ones read no
    facts, and one depth of assignments after another; the others learned none but the first.
    """

    def run(kind, name, steps, shape, optimizer=None, **more):
        return kind(
            name=name, about="a small language model (chapter 46)", steps=steps, evaluate_every=steps // 20,
            optimizer=optimizer or AdamW.cosine(3e-3, steps), model=shaped(*shape), ships_weights=False, **more,
        )  # fmt: skip

    mixed = run(LanguageExperiment, "language", 1000, (4, 1))
    yield from sweep(mixed, of_shapes(((4, 1), (1, 1), (1, 4))), SEEDS)
    short = run(ShortExperiment, "language-short", 500, (2, 1))
    yield from sweep(short, of_shapes(((2, 1), (2, 2))), SEEDS)
    twelve = run(ShortExperiment, "language-twelve", 1000, (12, 1), block=6)
    yield from sweep(twelve, {
        **of_shapes(((12, 1), (6, 2), (4, 3), (6, 1), (4, 1))),
        "middle": dict(model=shaped(6, 4, n_ends=2)),
        "slow": dict(optimizer=AdamW.cosine(1e-3, 1000)),
        **{f"pulled{block}-{strength}": dict(block=block, strength=float(strength)) for block, strength in PULLED},
    }, SEEDS)  # fmt: skip
    falling = AdamW.cosine(1e-3, 2400, schedule="trapezoid", decay_steps=600)
    deeper = run(DeeperExperiment, "language-deeper", 2400, (4, 1), falling, later=600)
    yield from sweep(deeper, of_shapes(((4, 1), (2, 2), (1, 4))), MORE_SEEDS)
    yield from sweep(deeper, of_shapes(((2, 1), (1, 1))), SEEDS)
