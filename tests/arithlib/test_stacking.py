"""A stack trains the models that separate runs would train."""

import dataclasses

import numpy as np
import pytest
import torch

from arithlib import checkpoints, experiments, stacking
from arithlib.models.grokking import GrokkingConfig
from arithlib.tasks.modular import ModularAddition


@pytest.fixture
def pair_of_experiments(monkeypatch):
    """Two small experiments that differ in seeds and weight decay."""
    base = experiments.GrokkingExperiment(
        name="", about="", steps=12, evaluate_every=6, snapshot_steps=(12,),
        task=ModularAddition(p=17), model=GrokkingConfig(p=17, d_model=16, n_heads=2, d_head=8, d_mlp=32),
    )  # fmt: skip
    made = []
    for seed, decay in ((0, 1.0), (1, 0.0)):
        made.append(
            dataclasses.replace(
                base,
                name=f"small-{seed}",
                model_seed=seed,
                task=ModularAddition(p=17, data_seed=seed),
                optimizer=dataclasses.replace(base.optimizer, weight_decay=decay),
            )  # fmt: skip
        )
        monkeypatch.setitem(experiments.EXPERIMENTS, f"small-{seed}", made[-1])
    return [e.name for e in made]


def test_a_stack_gives_each_model_its_own_training(pair_of_experiments, tmp_path):
    stacked = stacking.make(pair_of_experiments, tmp_path / "stack", device="cpu")
    for name, together in zip(pair_of_experiments, stacked, strict=True):
        alone = checkpoints.make(name, tmp_path / "alone", device="cpu", progress=False)
        for key, value in alone.model.state_dict().items():
            torch.testing.assert_close(together.model.state_dict()[key], value, rtol=2e-4, atol=2e-5)
        np.testing.assert_allclose(together.history["test_loss"], alone.history["test_loss"], rtol=1e-4)
        assert together.provenance["stack"] == 2
        assert checkpoints.read(name, tmp_path / "stack").provenance == together.provenance


def test_a_stack_refuses_experiments_that_differ_in_more_than_seeds_and_decay(pair_of_experiments, monkeypatch):
    longer = dataclasses.replace(experiments.get("small-1"), name="longer", steps=13)
    monkeypatch.setitem(experiments.EXPERIMENTS, "longer", longer)
    with pytest.raises(ValueError, match="longer and small-0 differ"):
        stacking.make(["small-0", "longer"])


def test_a_stack_refuses_constrained_embeddings(pair_of_experiments, monkeypatch):
    bound = dataclasses.replace(experiments.get("small-1"), name="bound", frequencies=(1,))
    monkeypatch.setitem(experiments.EXPERIMENTS, "bound", bound)
    with pytest.raises(ValueError, match="bound cannot join"):
        stacking.make(["small-0", "bound"])
