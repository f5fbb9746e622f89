"""Experiments on sums of two numbers: what they train on, and that shipped ones came out of it."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F

from arithlib import checkpoints, experiments
from arithlib.experiments.adder import AdderExperiment
from arithlib.models.column import RELATIVE, ColumnConfig
from arithlib.tasks.operands import OperandTask
from arithlib.training import AdamW, train

TINY = AdderExperiment(
    name="adder-tiny", about="a test", steps=60, evaluate_every=30, batch_size=16, evaluation_count=20,
    task=OperandTask(max_digits=2), model=ColumnConfig(d_model=8, n_heads=2, d_mlp=16),
    optimizer=AdamW.cosine(1e-2, 60, warmup_steps=2),
)  # fmt: skip
FAMILY = experiments.match("adder-*")


def test_no_adder_is_trained_on_more_than_ten_digits():
    assert len(FAMILY) >= 9
    assert all(experiment.task == OperandTask("+", max_digits=10) for experiment in FAMILY)


@pytest.mark.parametrize("positions", RELATIVE)
def test_the_loss_is_that_of_the_forward_on_the_answer(positions):
    experiment = dataclasses.replace(TINY, model=dataclasses.replace(TINY.model, positions=positions))
    model = experiment.build()
    problems = experiment.task.sample(16, torch.Generator().manual_seed(7))
    answer = problems.answer_mask[:, 1:]
    expected = F.cross_entropy(model(problems.tokens[:, :-1])[answer], problems.tokens[:, 1:][answer])
    loss = experiment.objective(model, torch.device("cpu")).loss(model, 7)
    torch.testing.assert_close(loss, expected)
    loss.backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    expected.backward()
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-4, atol=1e-6)


def test_training_lowers_the_loss_and_repeats_itself():
    finals = []
    for _ in range(2):
        model = TINY.build()
        objective = TINY.objective(model, torch.device("cpu"))
        run = train(model, objective, TINY.optimizer, TINY.steps, evaluate_every=30, progress=False)
        finals.append(run.history["loss"])
    assert finals[0][-1] < 0.8 * finals[0][0]
    assert (finals[0] == finals[1]).all()


@pytest.mark.parametrize("experiment", [e for e in FAMILY if checkpoints.find(e.name)], ids=lambda e: e.name)
def test_a_shipped_adder_scores_as_its_provenance_says(experiment):
    trained = checkpoints.read(experiment.name)
    measured = experiment.objective(trained.model, torch.device("cpu")).evaluate(trained.model)
    assert measured["exact_match"] == trained.provenance["final"]["exact_match"]
