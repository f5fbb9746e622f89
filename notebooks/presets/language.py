"""Runs: loops in a small language model (chapter 44): k layers looped L times beside k layers and k L layers.

arithlib train "language-?x?-s*"    four to twelve minutes each on one busy core
arithlib train "language-short-*"   a minute each on one core
arithlib train "language-twelve-*"  two to six minutes each on one core
arithlib train "language-deeper-*"  one to six minutes each on one core
"""

from arithlib.models.looped import LoopedConfig
from arithlib.training import ScheduledAdamW
from chapters.ch44_experiments import DeeperExperiment, LanguageExperiment, ShortExperiment
from chapters.ch44_text import CHARACTERS

SEEDS, MORE_SEEDS = range(3), range(5)
SHORT_STEPS, STEPS = 500, 1000
DEEPER = dict(kind=DeeperExperiment, steps=2400, later=600, lr=1e-3, schedule="trapezoid")
# Layers to a block and strength of the rows of source 003's table 4, their blocks halved with the depth.
PULLED = ((2, 1), (2, 10), (3, 10), (4, 10), (6, 10))


def presets():
    """Every experiment of this family, in the order in which `arithlib list` prints them.

    Those of 1000 steps learn the facts and something of the text, and in context nothing. The short ones have a mix
    in which looking up is easy; those of a depth of twelve have it for twice the steps. "pulled" are models whose
    blocks are pulled together, "slow" is twelve layers at a third of the learning rate. The deeper ones read no
    facts, and one depth of assignments after another; the others learned none but the first.
    """
    for seed in SEEDS:
        for shape in ((4, 1), (1, 1), (1, 4)):
            yield _preset(f"language-{shape[0]}x{shape[1]}-s{seed}", shape, STEPS, seed)
    for seed in SEEDS:
        for shape in ((2, 1), (2, 2)):
            name = f"language-short-{shape[0]}x{shape[1]}-s{seed}"
            yield _preset(name, shape, SHORT_STEPS, seed, kind=ShortExperiment)
    for seed in SEEDS:
        twelve = dict(kind=ShortExperiment, block=6)
        for shape in ((12, 1), (6, 2), (4, 3), (6, 1), (4, 1)):
            yield _preset(f"language-twelve-{shape[0]}x{shape[1]}-s{seed}", shape, STEPS, seed, **twelve)
        yield _preset(f"language-twelve-middle-s{seed}", (6, 4), STEPS, seed, n_ends=2, **twelve)
        yield _preset(f"language-twelve-slow-s{seed}", (12, 1), STEPS, seed, lr=1e-3, **twelve)
    for seed in SEEDS:
        for block, strength in PULLED:
            name = f"language-twelve-pulled{block}-{strength}-s{seed}"
            pulled = dict(kind=ShortExperiment, block=block, strength=float(strength))
            yield _preset(name, (12, 1), STEPS, seed, **pulled)
    for seed in MORE_SEEDS:
        for shape in ((4, 1), (2, 2), (1, 4), (2, 1), (1, 1))[: 5 if seed in SEEDS else 3]:
            yield _preset(f"language-deeper-{shape[0]}x{shape[1]}-s{seed}", shape, **DEEPER, seed=seed)


def _preset(name, shape, steps, seed, kind=LanguageExperiment, lr=3e-3, schedule="cosine", n_ends=0, **more):
    k, loops = shape
    return kind(
        name=name,
        about="a small language model (chapter 44)",
        steps=steps,
        evaluate_every=steps // 20,
        model_seed=seed,
        data_seed=seed,
        model=LoopedConfig(
            d_model=64,
            n_heads=4,
            d_mlp=256,
            n_layers=k,
            n_loops=loops,
            positions="rotary",
            injection="none",
            d_vocab=len(CHARACTERS),
            n_ends=n_ends,
        ),
        optimizer=ScheduledAdamW(
            lr=lr,
            steps=steps,
            warmup_steps=steps // 20,
            schedule=schedule,
            decay_steps=steps // 4 if schedule == "trapezoid" else 0,
        ),
        ships_weights=False,
        **more,
    )
