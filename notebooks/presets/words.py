"""Runs: words over a group (chapter 45): one layer, looped, says the product so far after every letter.

arithlib train "words-*"            half a minute a loop on one idle core
"""

from collections.abc import Iterator
from itertools import product

from arithlib.models.looped import LoopedConfig
from arithlib.training import ScheduledAdamW
from chapters.ch45_experiments import GROUPS, WordExperiment

SEEDS = range(3)
LOOPS = (1, 2, 4)
LETTERS = {"Z60": (1, 8), "A5": (15, 16), "S5": (24, 33)}  # permutations: a short cycle, and one of all five
MORE_LETTERS = (1, 8, 19, 34)  # of Z60: as many different products, soon, as A5 has
LENGTHS = (16, 24, 32)  # of words


def presets() -> Iterator[WordExperiment]:
    """Every experiment of this family, in the order in which `arithlib list` prints them."""
    for n, seed in product(LENGTHS, SEEDS):
        words = "words" if n == LENGTHS[0] else f"words-{n}"
        for group, letters in LETTERS.items():
            yield _preset(f"{words}-{group}-1", group, letters, 1, seed, n=n)
        yield _preset(f"{words}-Z60-four", "Z60", MORE_LETTERS, 1, seed, n=n)
        yield _preset(f"{words}-S5-aloud", "S5", LETTERS["S5"], 1, seed, n=n, aloud=True)
    for group, seed in product(("A5", "S5"), SEEDS):
        for loops in LOOPS[1:]:
            yield _preset(f"words-{group}-{loops}", group, LETTERS[group], loops, seed)
        # One loop for as much computing as four.
        yield _preset(f"words-long-{group}-1", group, LETTERS[group], 1, seed, steps=4000)
    for seed in SEEDS:
        yield _preset("words-long-32-S5-1", "S5", LETTERS["S5"], 1, seed, n=32, steps=4000)


def _preset(name, group, letters, loops, seed, *, n=16, aloud=False, steps=1000):
    return WordExperiment(
        name=f"{name}-s{seed}",
        about="products of words over a group (chapter 45)",
        group=group,
        letters=letters,
        n=n,
        aloud=aloud,
        steps=steps,
        evaluate_every=steps // 10,
        batch_size=64,
        model_seed=seed,
        data_seed=seed,
        model=LoopedConfig(
            d_model=64, n_heads=4, d_mlp=256, n_layers=1, n_loops=loops, positions="learned", n_ctx=2 * n + 1,
            injection="none", d_vocab=GROUPS[group].order + 1,
        ),
        optimizer=ScheduledAdamW(lr=3e-3, steps=steps, warmup_steps=steps // 20),
        ships_weights=False,
    )  # fmt: skip
