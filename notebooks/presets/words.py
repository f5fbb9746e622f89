"""Runs: words over a group (chapter 45): one layer, looped, says the product so far after every letter.

arithlib train "words-*"            half a minute a loop on one idle core
"""

from arithlib.experiments import sweep
from arithlib.models.looped import LoopedConfig
from arithlib.training import AdamW
from chapters.ch45_experiments import GROUPS, WordExperiment

SEEDS = range(3)
LOOPS = (1, 2, 4)
LETTERS = {"Z60": (1, 8), "A5": (15, 16), "S5": (24, 33)}  # permutations: a short cycle, and one of all five
MORE_LETTERS = (1, 8, 19, 34)  # of Z60: as many different products, soon, as A5 has
LENGTHS = (16, 24, 32)  # of words


def of_steps(steps):
    """The length of a run, and what goes with it."""
    return dict(steps=steps, evaluate_every=steps // 10, optimizer=AdamW.cosine(3e-3, steps))


def of_words(group, letters, loops=1, n=LENGTHS[0], **more):
    """A variant: words of n letters over a group, and a model for them."""
    model = LoopedConfig(
        d_model=64, n_heads=4, d_mlp=256, n_layers=1, n_loops=loops, positions="learned", n_ctx=2 * n + 1,
        injection="none", d_vocab=GROUPS[group].order + 1,
    )  # fmt: skip
    return dict(group=group, letters=letters, n=n, model=model, **more)


def presets():
    """Every run of this family."""
    run = WordExperiment(
        name="words", about="products of words over a group (chapter 45)", batch_size=64, ships_weights=False,
        **of_steps(1000), **of_words("Z60", LETTERS["Z60"]),
    )  # fmt: skip
    for n in LENGTHS:
        length = "" if n == LENGTHS[0] else f"{n}-"
        yield from sweep(run, {
            **{f"{length}{group}-1": of_words(group, letters, n=n) for group, letters in LETTERS.items()},
            f"{length}Z60-four": of_words("Z60", MORE_LETTERS, n=n),
            f"{length}S5-aloud": of_words("S5", LETTERS["S5"], n=n, chain_of_thought=True),
        }, SEEDS)  # fmt: skip
    more = {
        f"{group}-{loops}": of_words(group, LETTERS[group], loops) for group in ("A5", "S5") for loops in LOOPS[1:]
    }
    # One loop for as much computing as four.
    longer = {f"long-{group}-1": of_words(group, LETTERS[group], **of_steps(4000)) for group in ("A5", "S5")}
    longest = {"long-32-S5-1": of_words("S5", LETTERS["S5"], n=32, **of_steps(4000))}
    yield from sweep(run, more | longer | longest, SEEDS)
