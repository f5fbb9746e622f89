"""Runs: modular addition (part 1 and 2): the networks that grok. `grokking-gpu` is 32 of them at once."""

import torch

from arithlib.experiments.grokking import GrokkingExperiment, GrokkingSnapshots, GrokkingStack
from arithlib.models.grokking import GrokkingConfig
from arithlib.tasks.modular import ModularAddition
from arithlib.training import AdamW, Settled

PROGRESS_STEPS = tuple(range(0, 6000, 50)) + tuple(range(6000, 20001, 500))
# Every thousand steps while the circles form, one soon after all training pairs are known (epoch 150), and one where
# the unseen ones come fastest. Chosen by what the history of grokking-s0 says, before any was looked at.
SNAPSHOT_STEPS = (0, 200, 1000, 2000, 3000, 3500, 4000, 5000)
SEEDS = range(5)


def presets():
    """Every run of this family."""

    def grok(name, about, steps, seed=0, fraction=0.3, weight_decay=1.0, evaluate_every=50, **more):
        return GrokkingExperiment(
            name=name,
            about=about,
            steps=steps,
            evaluate_every=evaluate_every,
            seed=seed,
            optimizer=AdamW(weight_decay=weight_decay),
            task=ModularAddition(train_fraction=fraction, data_seed=seed),
            **more,
        )

    yield grok(
        "grokking-live", "seed 0 again, trained while the book is built, until its norm settles (chapter 10)", 6000,
        until=Settled(),
    )  # fmt: skip
    yield GrokkingExperiment(
        name="grokking-page", about="a small network, modulo 59, that a page trains (chapters 10 and 12)",
        steps=1500, evaluate_every=10, optimizer=AdamW(lr=2e-3), ships_weights=False,
        task=ModularAddition(p=59, train_fraction=0.45),
        model=GrokkingConfig(p=59, d_model=32, n_heads=2, d_head=16, d_mlp=128),
    )  # fmt: skip
    yield GrokkingSnapshots(
        name="grokking-epochs", about="grokking-s0 again, kept while it groks (chapters 11 and 24)", steps=5000,
        evaluate_every=100, snapshot_steps=SNAPSHOT_STEPS, circles=(1, 15, 19, 21), bound=0.05,
        optimizer=AdamW(weight_decay=1.0), task=ModularAddition(), ships_weights=False,
    )  # fmt: skip
    for seed in range(10):
        yield grok(
            f"grokking-s{seed}", "the main model, 20,000 epochs (chapters 10 to 12)", 20_000, seed,
            snapshot_steps=PROGRESS_STEPS,
        )  # fmt: skip
    for seed in SEEDS:
        yield grok(
            f"grokking-positions-s{seed}", "with learned positions, as Nanda et al. (chapter 10)", 10_000, seed,
            model=GrokkingConfig(positions="learned"), ships_weights=False,
        )  # fmt: skip
        yield grok(
            f"grokking-layernorm-s{seed}", "with layer norm (chapter 10)", 10_000, seed,
            model=GrokkingConfig(layer_norm=True), ships_weights=False,
        )  # fmt: skip
    for weight_decay, steps in ((0.0, 20_000), (0.3, 20_000), (3.0, 6000)):
        for seed in SEEDS:
            yield grok(
                f"grokking-wd{weight_decay:g}-s{seed}", f"weight decay {weight_decay:g} (chapter 12)", steps, seed,
                weight_decay=weight_decay, ships_weights=False,
            )  # fmt: skip
    for percent, steps in ((10, 10_000), (20, 10_000), (40, 4000), (50, 3000), (60, 2500), (80, 2000)):
        for seed in SEEDS:
            yield grok(
                f"grokking-fraction{percent}-s{seed}", f"{percent} % of the pairs train (chapter 12)", steps, seed,
                fraction=percent / 100, ships_weights=False,
            )  # fmt: skip

    def circles(count, seed):
        draw = torch.randperm(56, generator=torch.Generator().manual_seed(seed))[:count] + 1
        return tuple(sorted(draw.tolist()))

    for count in (1, 2, 3, 4, 5):
        for seed in SEEDS:
            yield grok(
                f"grokking-circles{count}-s{seed}", f"embeddings confined to {count} random circles (chapter 11)",
                3000, seed, frequencies=circles(count, seed),
            )  # fmt: skip
    for seed in SEEDS:
        yield grok(
            f"grokking-one-circle-s{seed}", "confined to one, as long as the main model (chapters 11 and 24)",
            20_000, seed, frequencies=circles(1, seed), ships_weights=False,
        )  # fmt: skip
    for heads in (1, 2):
        for seed in SEEDS:
            yield grok(
                f"grokking-heads{heads}-s{seed}", f"d_model split over {heads} head{'s'[: heads - 1]} (chapter 23)",
                10_000, seed, model=GrokkingConfig(n_heads=heads, d_head=128 // heads),
            )  # fmt: skip
    for seed in SEEDS:
        yield grok(
            f"grokking-reluless-s{seed}", "no ReLU: attention is the only product (chapters 23 and 24)", 40_000, seed,
            model=GrokkingConfig(activation="identity"),
        )  # fmt: skip
    yield GrokkingStack(
        name="grokking-gpu", about="32 seeds of the main model at once, 20,000 epochs, on a GPU", models=32,
        steps=20_000, evaluate_every=100, optimizer=AdamW(weight_decay=1.0), scale="gpu", ships_weights=False,
    )  # fmt: skip
