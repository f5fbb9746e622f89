"""Runs: words over a group with fillers in place of the written products, or prompted with and without (chapter 66).

arithlib train "steps-*"        one to three minutes each on one core
"""

from dataclasses import replace

from arithlib.experiments import sweep
from chapters.ch45_experiments import GROUPS
from chapters.ch66_experiments import EXTRA_TOKENS, PromptedExperiment
from presets.words import LETTERS, SEEDS, of_steps, of_words


def presets():
    """Every run of this family. Trained as those of `presets.words`; two styles in one model take twice the steps."""
    words = of_words("S5", LETTERS["S5"])
    model = replace(words.pop("model"), d_vocab=GROUPS["S5"].order + EXTRA_TOKENS)
    run = PromptedExperiment(
        name="steps", about="words with fillers, or prompted with and without steps (chapter 66)", batch_size=64,
        ships_weights=False, styles=("filler",), model=model, **of_steps(1000), **words,
    )  # fmt: skip
    yield from sweep(run, {
        "filler": {},
        "both": dict(styles=("plain", "steps"), **of_steps(2000)),
    }, SEEDS)  # fmt: skip
