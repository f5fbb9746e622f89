"""Runs: small decoders whose numbers are single tokens, or two digits each (part 5).

arithlib train "decoder-s*"           about a minute each on one core
arithlib train "decoder-digits-s*"    the same sums, read and written digit by digit
arithlib train "decoder-12x4-s*"      twelve layers of four heads, over five minutes each on an idle core
"""

from arithlib.experiments import sweep
from arithlib.experiments.decoder import DecoderExperiment, DigitExperiment
from arithlib.models.decoder import DecoderConfig
from arithlib.tasks.prompts import Sums
from arithlib.training import AdamW
from chapters.ch56_experiments import LayersExperiment

DEPTHS = (6, 12)  # beside the three layers of the others


def presets():
    """Every run of this family."""
    for seed in range(3):
        common = dict(
            evaluate_every=100, sums=Sums(data_seed=seed),
            optimizer=AdamW(lr=3e-3, warmup_steps=50, schedule="cosine", clip_norm=1.0),
        )  # fmt: skip
        tokens = DecoderExperiment(
            name="decoder", about="sums of two numbers that are single tokens (chapters 51, 52)", steps=1200, **common
        )
        digits = DigitExperiment(
            name="decoder", about="sums read and written digit by digit (chapter 53)", steps=600, **common
        )
        yield from sweep(tokens, {
            "": {},
            "tasks": dict(
                about="sums and five other questions about a number (chapter 51)", steps=1600, others_share=0.25
            ),
            "gated": dict(
                about="sums, with a gated MLP of as many weights", model=DecoderConfig(d_mlp=88, mlp="gated")
            ),
        }, [seed])  # fmt: skip
        yield from sweep(digits, {"digits": {}}, [seed])
        # On seed 10, which is in no result, twelve layers learn sooner at this rate than at half of it.
        deeper = LayersExperiment(
            name="decoder", about="sums, with more layers (chapter 56)", steps=1600, ships_weights=False,
            **common | dict(evaluate_every=200),
        )  # fmt: skip
        yield from sweep(
            deeper, {f"{depth}x4": dict(model=DecoderConfig(n_layers=depth)) for depth in DEPTHS}, [seed]
        )
