"""Experiments on grade-school problems: what is asked, what is measured, and which models stand beside which."""

import dataclasses

import pytest
import torch
from short_runs import seeded

from arithlib import experiments
from arithlib.experiments.depth import IGNORE_INDEX
from arithlib.models.looped import LoopedConfig
from arithlib.training import AdamW, train
from chapters.ch42_experiments import GraphExperiment
from chapters.ch42_igsm import Graphs
from presets.graphs import PUBLISHED, SHAPES

TASK = Graphs(4, depth=2, constants=2, terms=2, factor_share=0.0, levels=2, width=2)
TINY = GraphExperiment(
    name="graphs-tiny", about="a test", steps=2, evaluate_every=2, task=TASK, batch_size=6, evaluation_count=8,
    model=LoopedConfig(
        d_model=16, n_heads=2, d_mlp=16, n_layers=1, n_loops=2, positions="rotary", injection="none",
        d_vocab=len(TASK.words),
    ),
    optimizer=AdamW.cosine(1e-3, 2, warmup_steps=1),
)  # fmt: skip


def test_one_parameter_is_asked_or_every_one_and_what_can_be_worked_out():
    [(_, once)] = TINY.batch(seeded())
    assert (once[:, :-1] == IGNORE_INDEX).all() and (once[:, -1] >= 0).all()
    [(_, often)] = dataclasses.replace(TINY, everywhere=True).batch(seeded())
    assert (often[:, -4:] >= 0).all() and (often[:, :-4] >= 0).any() and often.max() < 7


def test_there_is_a_test_for_every_depth():
    tests = TINY.tests(20, seeded())
    assert len(tests) == 3 and all((targets[:, -1] >= 0).all() for _, targets in tests)
    constants = tests[0][0]
    asked = constants[:, -1:]  # a constant: right after the name where it is defined stands its value
    defined = (constants == asked + TASK.n_names).long().argmax(1, keepdim=True)
    assert (constants.gather(1, defined + 1) == tests[0][1][:, -1:]).all()


def test_a_run_measures_every_depth_and_other_loops():
    model = TINY.build()
    run = train(
        model, TINY.objective(model, torch.device("cpu")), TINY.optimizer, 2, evaluate_every=2, progress=False
    )
    assert run.history["accuracies"].shape == (2, 3)
    assert TINY.finish(model, run)["accuracy_by_loops"].shape == (1, 4, 3)
    assert model.embedding.weight.shape == (len(TASK.words), 16)


@pytest.mark.parametrize(("name", "shapes"), [("graphs", SHAPES), ("graphs-gpu", PUBLISHED)])
def test_the_rows_of_a_table_are_trained_alike(name, shapes):
    rows = [experiments.get(f"{name}-{k}x{loops}-s0") for k, loops in shapes]
    assert [(e.model.n_layers, e.model.n_loops) for e in rows] == list(shapes)
    assert len({(e.steps, e.optimizer, e.task, e.batch_size, e.model.d_model) for e in rows}) == 1


def test_every_looped_model_of_the_small_table_has_both_partners():
    assert (
        {(k, 1) for k, _ in SHAPES} <= set(SHAPES) and (4, 1) in SHAPES and max(k * loops for k, loops in SHAPES) == 4
    )
