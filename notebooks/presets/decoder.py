"""Runs: experiments on small decoders whose numbers are single tokens, or two digits each (part 5).

arithlib train "decoder-s*"           about a minute each on one core
arithlib train "decoder-digits-s*"    the same sums, read and written digit by digit
"""

from arithlib.experiments.decoder import DecoderExperiment, DigitExperiment
from arithlib.models.decoder import DecoderConfig
from arithlib.tasks.prompts import Sums
from arithlib.training import ScheduledAdamW


def presets():
    """Every experiment on decoders, in the order in which `arithlib list` prints them."""

    def learn(name, about, steps, seed, **more):
        return DecoderExperiment(
            name=name,
            about=about,
            steps=steps,
            evaluate_every=100,
            model_seed=seed,
            optimizer=ScheduledAdamW(lr=3e-3, betas=(0.9, 0.98), weight_decay=1.0, warmup_steps=50, steps=steps),
            sums=Sums(data_seed=seed),
            **more,
        )

    for seed in range(3):
        yield learn(f"decoder-s{seed}", "sums of two numbers that are single tokens (chapters 51, 52)", 1200, seed)
        yield learn(
            f"decoder-tasks-s{seed}", "sums and five other questions about a number (chapter 51)", 1600, seed,
            others_share=0.25,
        )  # fmt: skip
        yield learn(
            f"decoder-gated-s{seed}", "sums, with a gated MLP of as many weights", 1200, seed,
            model=DecoderConfig(d_mlp=88, mlp="gated"),
        )  # fmt: skip

    for seed in range(3):
        yield DigitExperiment(
            name=f"decoder-digits-s{seed}",
            about="sums read and written digit by digit (chapter 53)",
            steps=600,
            evaluate_every=100,
            model_seed=seed,
            optimizer=ScheduledAdamW(lr=3e-3, betas=(0.9, 0.98), weight_decay=1.0, warmup_steps=50, steps=600),
            sums=Sums(data_seed=seed),
        )
