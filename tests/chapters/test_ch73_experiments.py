"""Tiny adders: a scaffold that leaves nothing behind, and how often shipped ones are wrong."""

import dataclasses
import itertools
from types import SimpleNamespace

import pytest
import torch

from arithlib import checkpoints, experiments, training
from arithlib.certify.addition import reachable
from arithlib.certify.mutants import answers
from arithlib.models.column import ColumnConfig, ColumnTransformer
from arithlib.training import AdamW, OutOfTime, train
from chapters import ch73_ensemble as ensemble
from chapters.ch73_experiments import TinyExperiment

SMALL = ColumnConfig(d_model=3, n_heads=1, d_mlp=4, tied=True)
WIDE = ColumnConfig(d_model=6, n_heads=1, d_mlp=9, tied=True)
FAMILY = experiments.match("tiny-*")


def experiment(seed=0, steps=20):
    return TinyExperiment(
        name=f"tiny-test-{seed}", about="a test", steps=steps, evaluate_every=10, model=SMALL, scaffold=WIDE,
        batch_size=16, sums=300, seed=seed,
        optimizer=AdamW.cosine(1e-2, steps, warmup_steps=2, clip_norm=None),
    )  # fmt: skip


def test_an_objective_leaves_the_model_as_it_is():
    model = ColumnTransformer(SMALL, seed=1)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    experiment().objective(model, torch.device("cpu"))
    after = model.state_dict()
    assert model.config == SMALL and all(torch.equal(after[name], value) for name, value in before.items())


def test_the_model_in_training_is_as_wide_as_the_scaffold_and_the_one_that_is_kept_is_not():
    one = experiment()
    wide = one.build()
    assert wide.config == WIDE and one.kept_model(wide).config == SMALL
    kept, first = dict(one.kept_model(wide).named_parameters()), dict(ColumnTransformer(SMALL).named_parameters())
    torch.testing.assert_close(kept, first)  # the scaffold is built around it, and cut off again


def test_a_model_is_right_or_wrong_on_every_situation_that_there_is():
    objective = experiment().objective(ColumnTransformer(SMALL), torch.device("cpu"))
    known = {
        (*context, right) for context, right in zip(reachable().contexts.tolist(), reachable().right, strict=True)
    }
    assert len(objective.every) == len(known)
    slots = torch.stack(objective.answering.slots, 1).tolist()
    order = [slots.index([number, distance]) for number, distance in ((0, 1), (1, 1), (2, 1), (0, 0), (1, 0))]
    found = {(*row[order], row[5]) for row in objective.every.numpy()}
    assert found == known


def test_the_scaffold_is_whole_then_fades_and_is_gone_before_the_end():
    objective = experiment(steps=100).objective(ColumnTransformer(SMALL), torch.device("cpu"))
    shares = []
    for step in (0, 10, 30, 50, 99):
        objective.batch(step)
        shares.append(objective.share)
    assert shares == pytest.approx([1, 1, 0.5, 0, 0])


def test_training_ends_with_a_model_of_the_small_size_that_scores_as_it_was_measured():
    one = experiment()
    model = one.build()
    run = train(
        model, one.objective(model, torch.device("cpu")), one.optimizer, one.steps, evaluate_every=10, progress=False
    )
    model = one.kept_model(model)
    assert (answers(model) != reachable().right).sum() == run.history["wrong"][-1]


def test_stopped_while_the_scaffold_stands_and_continued_it_is_the_same_run_bit_for_bit(monkeypatch, tmp_path):
    one, clock = experiment(), itertools.count()  # every look at it a second later
    monkeypatch.setattr(experiments, "get", {one.name: one}.__getitem__)
    whole = checkpoints.make(one.name, tmp_path / "whole", progress=False)
    monkeypatch.setattr(training, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    with pytest.raises(OutOfTime, match="[2-8] of 20 steps are done"):
        checkpoints.make(one.name, tmp_path / "parts", progress=False, minutes=10 / 60)
    parts = checkpoints.make(one.name, tmp_path / "parts", progress=False)
    assert parts.model.config == SMALL
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, parts.model.state_dict()[name])


def test_a_litter_trains_each_model_as_if_it_were_alone(monkeypatch, tmp_path):
    both = {e.name: e for e in (experiment(0), experiment(1))}
    monkeypatch.setattr(experiments, "get", both.__getitem__)
    monkeypatch.setattr(checkpoints, "local_folder", lambda: tmp_path)
    together = ensemble.make(list(both))
    for trained, one in zip(together, both.values(), strict=True):
        model = one.build()
        run = train(
            model,
            one.objective(model, torch.device("cpu")),
            one.optimizer,
            one.steps,
            evaluate_every=10,
            progress=False,
        )
        assert trained.history["loss"] == pytest.approx(run.history["loss"], rel=1e-3)
        assert checkpoints.read(one.name, tmp_path).model.config == SMALL


def test_a_litter_refuses_models_that_grow_differently(monkeypatch):
    both = {"one": experiment(0), "other": dataclasses.replace(experiment(1), scaffold=SMALL)}
    monkeypatch.setattr(experiments, "get", both.__getitem__)
    with pytest.raises(ValueError, match="cannot be trained together"):
        ensemble.make(list(both))


@pytest.mark.parametrize("one", [e for e in FAMILY if checkpoints.find(e.name)], ids=lambda e: e.name)
def test_a_shipped_tiny_adder_is_wrong_as_often_as_its_provenance_says(one):
    trained = checkpoints.read(one.name)
    assert trained.model.config == one.model and one.task.max_digits <= 10
    assert (answers(trained.model) != reachable().right).sum() == trained.provenance["final"]["wrong"]
