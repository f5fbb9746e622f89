"""Runs: experiments on written arithmetic (part 3): looped transformers with Abacus positions, and their rivals.

arithlib train abacus-live          under 3 minutes on two cores
arithlib train "abacus-cpu-s*"      about an hour each on one core
arithlib train "abacus-gpu-*"        the paper-sized ones, a quarter of an hour each on a GPU
"""

from dataclasses import replace

from arithlib.experiments.abacus import AbacusExperiment
from arithlib.models.looped import LoopedConfig, ProgressiveLoss
from arithlib.models.positions import Offsets
from arithlib.tasks.operands import OperandTask
from arithlib.training import ScheduledAdamW

SEEDS = range(3)
SIX, TEN = OperandTask(max_digits=6), OperandTask(max_digits=10)
# What source 002 wrote: addresses on queries and keys of every layer, the input added after each norm, no last norm.
SOURCE = LoopedConfig(
    positions="abacus-qk", injection="normed", final_norm=False, n_layers=1, n_loops=8, n_rows=512
)  # fmt: skip
SOURCE_OFFSETS, SOURCE_LOSS = Offsets("per sample", k=100), ProgressiveLoss(alpha=0.5)
WIDE = LoopedConfig(d_model=512, n_heads=8, d_mlp=2048, n_layers=2, n_loops=4)


def preset(name, about, steps, seed, *, lr=1.5e-3, evaluations=50, **more):
    """An experiment whose rate warms up over a twentieth of its steps and falls to zero along a cosine."""
    return AbacusExperiment(
        name=name,
        about=about,
        steps=steps,
        evaluate_every=max(steps // evaluations, 1),
        model_seed=seed,
        data_seed=seed,
        optimizer=ScheduledAdamW(lr=lr, steps=steps, warmup_steps=steps // 20),
        **more,
    )


def presets():
    """Every experiment of part 3, in the order in which `arithlib list` prints them."""
    yield preset(
        "abacus-live", "up to 6 digits, trained while the book is built (chapter 31)", 1600, 0,
        task=SIX, offsets=Offsets("per batch", k=30), model=LoopedConfig(offset=8),
        snapshot_steps=tuple(range(0, 1601, 160)),
    )  # fmt: skip
    for seed in SEEDS:
        yield preset(
            f"abacus-cpu-s{seed}", "the looped adder, up to 20 digits: an hour on one core (part 3)", 12_000, seed
        )
    for seed in SEEDS:
        yield preset(
            f"abacus-source-s{seed}", "the source's own layout at d_model 128: 45 minutes (chapter 33)", 6500, seed,
            lr=1e-3, model=SOURCE, offsets=SOURCE_OFFSETS, loss=SOURCE_LOSS, batch_size=95,
        )  # fmt: skip
        yield preset(
            f"abacus-source-ten-s{seed}", "the source's layout, up to 10 digits: 10 minutes (chapter 33)", 4000, seed,
            lr=1e-3, model=replace(SOURCE, n_loops=4), offsets=SOURCE_OFFSETS, loss=SOURCE_LOSS, batch_size=95,
            task=TEN,
        )  # fmt: skip
    yield from _photographed()
    yield from _ablations()
    yield from _other_operations()
    yield from _paper_sized()


def _photographed():
    """Up to 10 digits, with a photograph every 250 steps: which digits are learned when (chapter 31)."""
    for label, positions in (("", "abacus"), ("-coupling", "coupling")):
        for seed in SEEDS:
            yield preset(
                f"abacus-ten{label}-s{seed}", f"positions: {positions}, up to 10 digits: 4 minutes", 3000, seed,
                task=TEN, model=LoopedConfig(positions=positions), snapshot_steps=tuple(range(0, 3001, 250)),
                ships_weights=False,
            )  # fmt: skip


def _ablations():
    """One change at a time to a small adder for 6 digits: 2 minutes each on one core, twice as long for 8 layers."""
    base = LoopedConfig(offset=8)

    def offsets(k):  # evaluated well inside what was trained, at no offset where there was none
        return dict(offsets=Offsets("per batch", k=k), model=replace(base, offset=min(8, k // 4)))

    variants = {
        "": ("the model that the others differ from", {}),
        "plain": ("most-significant digit first", dict(task=replace(SIX, reverse="none"))),
        "answer": ("only the answer least-significant digit first", dict(task=replace(SIX, reverse="answer"))),
        "k1": ("no random offset", offsets(1)),
        "k10": ("offsets 0 to 9", offsets(10)),
        "k20": ("offsets 0 to 19", offsets(20)),
        "sample": ("an offset for every sum, not one a batch", dict(offsets=Offsets("per sample", k=40))),
        "unmasked": ("learns to predict the question, too", dict(mask_question=False)),
        "alpha50": ("half the loss after a random number of loops", dict(loss=ProgressiveLoss(0.5))),
        "alpha100": ("all of it", dict(loss=ProgressiveLoss(1.0))),
        "alpha100cut": ("as the paper's released configuration", dict(loss=ProgressiveLoss(1.0, truncate=True))),
        "noinjection": ("the input enters once", dict(model=replace(base, injection="none"))),
        "normed": ("the input after each norm", dict(model=replace(base, injection="normed"))),
    }
    for positions in ("none", "learned", "rotary", "fire", "abacus-qk", "abacus+rotary", "abacus+fire", "coupling"):
        label = positions.replace("abacus-", "").replace("abacus+", "plus-")
        variants[label] = (f"positions: {positions}", dict(model=replace(base, positions=positions)))
    for layers, loops in ((4, 1), (1, 4), (8, 1), (4, 2), (2, 4), (1, 8)):
        model = replace(base, n_layers=layers, n_loops=loops)
        variants[f"{layers}x{loops}"] = (f"{layers} layers looped {loops} times", dict(model=model))
    for positions in ("fire", "none"):
        for layers, loops in ((4, 1), (1, 4)):
            model = replace(base, positions=positions, n_layers=layers, n_loops=loops)
            about = f"positions: {positions}, {layers} layers looped {loops} times"
            variants[f"{positions}-{layers}x{loops}"] = (about, dict(model=model))
    for label, (about, more) in variants.items():
        for seed in SEEDS if label else range(10):
            more = {"task": SIX, "model": base, "offsets": Offsets("per batch", k=40)} | more
            yield preset(
                f"abacus-six{label and '-'}{label}-s{seed}", f"{about} (chapter 34)", 2000, seed,
                batch_size=32, evaluations=20, evaluation_count=400, ships_weights=False, **more,
            )  # fmt: skip


def _other_operations():
    """Sums and differences in one model; products, with what the paper changes for them (chapter 35)."""
    base = LoopedConfig(offset=8)
    bare = replace(base, injection="none")
    products = dict(task=OperandTask("*", max_digits=2), offsets=Offsets("per batch", k=20), batch_size=64)
    short = products | dict(steps=1200)
    variants = {
        "mixed": ("sums and differences of up to 4 digits", dict(
            task=OperandTask("+-", max_digits=4), offsets=Offsets("per batch", k=40), model=base, batch_size=32,
            steps=3000,
        )),
        "times": ("products of up to 2 digits", products | dict(model=bare, steps=4000)),
        "times-bare": ("products without injection, trained briefly", short | dict(model=bare)),
        "times-injected": ("products with injection", short | dict(model=base)),
        "times-divided": ("as the paper: gradients divided by the loops", short | dict(
            model=bare, divide_gradients=True,
        )),
        "times-fire": ("FIRE instead of addresses", short | dict(model=replace(bare, positions="fire"))),
    }  # fmt: skip
    for label, (about, settings) in variants.items():
        for seed in SEEDS:
            shown = seed == 0 and label in ("mixed", "times")  # whose answers chapter 35 reads
            yield preset(
                f"abacus-{label}-s{seed}", f"{about} (chapter 35)", seed=seed, evaluations=20, evaluation_count=400,
                ships_weights=shown, **settings,
            )  # fmt: skip


def _paper_sized():
    """For a GPU of an H100's kind, at an assumed 40 % of its 800 teraflops in bfloat16."""
    gpu = dict(scale="gpu", evaluations=20, evaluation_count=1024)
    for seed in SEEDS:
        yield preset(
            f"abacus-gpu-s{seed}", "2 layers looped 4 times at d_model 512: 12 minutes", 20_000, seed, lr=5e-4,
            model=WIDE, batch_size=1024, **gpu,
        )  # fmt: skip
    yield preset(
        "abacus-gpu-1x16-s0", "1 layer looped 16 times at d_model 1024, as source 002: 27 minutes", 5000, 0, lr=3e-4,
        model=LoopedConfig(d_model=1024, n_heads=16, d_mlp=2048, n_layers=1, n_loops=16), batch_size=2048,
        loss=ProgressiveLoss(0.5), **gpu,
    )  # fmt: skip
    yield preset(
        "abacus-gpu-source-s0", "the source's own layout at its size, a tenth of its samples: 11 minutes", 4000, 0,
        lr=2e-4, model=replace(SOURCE, d_model=1024, n_heads=16, d_mlp=2048, n_loops=16), batch_size=1024,
        offsets=SOURCE_OFFSETS, loss=SOURCE_LOSS, **gpu,
    )  # fmt: skip
    yield preset(
        "abacus-gpu-k200-s0", "offsets to 199, for sums beyond 100 digits: 12 minutes", 20_000, 0, lr=5e-4,
        model=WIDE, offsets=Offsets("per batch", k=200), batch_size=1024, **gpu,
    )  # fmt: skip
    yield preset(
        "abacus-gpu-8x2-s0", "8 layers looped twice at d_model 512: 13 minutes", 5000, 0, lr=3e-4,
        model=replace(WIDE, n_layers=8, n_loops=2), batch_size=2048, loss=ProgressiveLoss(0.5), **gpu,
    )  # fmt: skip
    yield preset(
        "abacus-gpu-mixed-s0", "additions and subtractions: 13 minutes", 20_000, 0, lr=5e-4,
        task=OperandTask("+-"), model=WIDE, batch_size=1024, **gpu,
    )  # fmt: skip
    yield preset(
        "abacus-gpu-times-s0", "products of up to 10 digits, without injection: 16 minutes", 20_000, 0, lr=5e-4,
        task=OperandTask("*", max_digits=10), model=replace(WIDE, n_layers=4, injection="none"), batch_size=1024,
        **gpu,
    )  # fmt: skip
