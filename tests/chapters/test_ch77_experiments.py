"""Adders with learned rows or rotary angles train on the same sums as those with relative positions."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F

from arithlib import checkpoints, experiments
from arithlib.models.column import ROTARY, TABLES, ColumnConfig
from arithlib.models.positions import Offsets
from arithlib.tasks.operands import OperandTask
from arithlib.training import AdamW, train
from chapters.ch77_experiments import ContrastExperiment, answers

TINY = dict(d_model=8, n_heads=2, d_mlp=16, n_rows=12)
POSITIONS = (*TABLES, *ROTARY)
FAMILY = experiments.match("contrast-*")


def tiny(positions, k=1):
    return ContrastExperiment(
        name="contrast-tiny", about="a test", steps=60, evaluate_every=30, batch_size=16, evaluation_count=20, k=k,
        task=OperandTask(max_digits=2), model=ColumnConfig(positions, **TINY),
        optimizer=AdamW.cosine(1e-2, 60, warmup_steps=2),
    )  # fmt: skip


def test_no_model_is_trained_on_more_than_ten_digits_and_only_positions_and_offsets_differ():
    assert all(experiment.task == OperandTask("+", max_digits=10) for experiment in FAMILY)
    sizes = {dataclasses.replace(experiment.model, positions="rotary") for experiment in FAMILY}
    assert len(sizes) == 1 and {experiment.model.positions for experiment in FAMILY} == set(POSITIONS)


@pytest.mark.parametrize("positions", POSITIONS)
def test_the_loss_is_that_of_the_whole_batch_and_one_offset_serves_it(positions):
    experiment = tiny(positions, k=6)
    model, generator = experiment.build(), torch.Generator().manual_seed(7)
    problems = experiment.task.sample(16, generator)
    expected = F.cross_entropy(*answers(model, problems, Offsets("per batch", k=6).draw(16, generator)))
    torch.testing.assert_close(experiment.objective(model, torch.device("cpu")).loss(model, 7), expected)


def test_training_lowers_the_loss_and_repeats_itself():
    finals, experiment = [], tiny("coupling", k=3)
    for _ in range(2):
        model = experiment.build()
        objective = experiment.objective(model, torch.device("cpu"))
        run = train(model, objective, experiment.optimizer, experiment.steps, evaluate_every=30, progress=False)
        finals.append(run.history["loss"])
    assert finals[0][-1] < 0.9 * finals[0][0]
    assert (finals[0] == finals[1]).all()


@pytest.mark.parametrize(
    "experiment", [e for e in FAMILY if checkpoints.find(e.name) and e.ships_weights], ids=lambda e: e.name
)
def test_a_shipped_model_scores_as_its_provenance_says(experiment):
    trained = checkpoints.read(experiment.name)
    measured = experiment.objective(trained.model, torch.device("cpu")).evaluate(trained.model)
    assert measured["exact_match"] == pytest.approx(trained.provenance["final"]["exact_match"], abs=2e-3)
