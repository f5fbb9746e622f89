"""Experiments on depth: what is asked, what is measured, and that both partners of a looped model are there."""

import dataclasses

import pytest
import torch
from short_runs import seeded, trained

from arithlib import experiments
from arithlib.experiments.depth import IGNORE_INDEX, AdditionExperiment, HopExperiment
from arithlib.models.looped import LoopedConfig
from arithlib.tasks.multi_operand import ManyOperands
from arithlib.tasks.p_hop import Hops, find
from arithlib.tokenizer import CharacterTokenizer
from arithlib.training import AdamW
from presets.depth import shapes

MODEL = LoopedConfig(d_model=32, n_heads=2, d_mlp=64, n_layers=1, n_loops=2, positions="rotary", injection="none")
SMALL = dict(
    name="depth-tiny", about="a test", steps=4, evaluate_every=2, model=MODEL, evaluation_count=10,
    optimizer=AdamW.cosine(1e-3, 4, warmup_steps=2),
)  # fmt: skip
SUMS = AdditionExperiment(task=ManyOperands(2), counts=(1, 2), further=(3,), batch_size=12, **SMALL)
HOPS = HopExperiment(task=Hops(2, 12), batch_size=12, **SMALL)


@pytest.mark.parametrize("reverse", [False, True])
def test_of_a_sum_the_answer_and_one_end_token_are_asked(reverse):
    experiment = dataclasses.replace(SUMS, task=ManyOperands(2, reverse))
    tokens, targets = experiment.examples(3, 50, seeded())
    sums = experiment.task.sample(3, 50, seeded()).sum(1)
    for row, total in zip(targets.tolist(), sums.tolist(), strict=True):
        asked = CharacterTokenizer().decode([token for token in row if token != IGNORE_INDEX])
        assert asked == (f"{total:03}"[::-1] if reverse else str(total)) + "$"
    assert (targets[:, : 3 * 3 - 1] == IGNORE_INDEX).all() and tokens.shape == targets.shape


def test_of_a_sequence_the_last_token_is_asked_or_every_one_that_has_an_answer():
    tokens, targets = HOPS.examples(20, seeded())
    assert (targets[:, :-1] == IGNORE_INDEX).all() and targets[:, -1].equal(HOPS.task.answers(tokens))
    [(dense, asked)] = dataclasses.replace(HOPS, everywhere=True).batch(seeded())
    place = find(dense, 2)
    assert ((asked == IGNORE_INDEX) == (place == 0)).all()
    for row, column in place.nonzero().tolist():
        assert asked[row, column] == dense[row, place[row, column] - 1]


def test_every_count_has_an_equal_part_of_a_batch():
    assert [len(tokens) for tokens, _ in SUMS.batch(seeded())] == [6, 6]


@pytest.mark.parametrize("experiment", [SUMS, HOPS])
def test_a_step_fixes_its_batch_and_seeds_and_steps_differ(experiment):
    model = experiment.build()
    made = experiment.objective(model, torch.device("cpu"))
    assert made.loss(model, 3) == made.loss(model, 3) != made.loss(model, 4)
    other = dataclasses.replace(experiment, seed=1).objective(model, torch.device("cpu"))
    assert other.loss(model, 3) != made.loss(model, 3)


def test_accuracy_is_the_share_with_everything_right():
    class Reader(torch.nn.Module):
        """Says what it is shown next to, so that what it gets right is known."""

        def forward(self, tokens, loops=None):
            return torch.nn.functional.one_hot(tokens, 15).float()

    made = HOPS.objective(HOPS.build(), torch.device("cpu"))
    tokens = torch.tensor([[1, 2], [1, 2], [1, 2], [1, 2]])
    targets = torch.tensor([[IGNORE_INDEX, 2], [1, 2], [1, 3], [3, 2]])
    assert made.accuracy(Reader(), tokens, targets) == 0.5


def test_the_end_of_a_run_measures_further_counts_and_other_loops():
    model, run = trained(SUMS)
    assert run.history["accuracies"].shape == (3, 2)
    assert SUMS.finish(model, run)["accuracy_by_count"].shape == (1, 3)
    model, run = trained(HOPS)
    assert HOPS.finish(model, run)["accuracy_by_loops"].shape == (1, 4)


def test_a_tiny_model_learns_one_digit():
    experiment = dataclasses.replace(
        SUMS, task=ManyOperands(1), counts=(1,), steps=60, evaluate_every=60, batch_size=32,
        optimizer=AdamW.cosine(1e-2, 60, warmup_steps=5),
    )  # fmt: skip
    accuracy = trained(experiment)[1].history["accuracy"]
    assert accuracy[0] < 0.5 < 0.9 < accuracy[-1]


def test_both_partners_of_every_looped_model_are_there():
    assert shapes(4) == [(1, 1), (1, 4), (2, 1), (2, 2), (4, 1)]
    for name in ("depth-add", "depth-hop", "depth-hop-end"):
        made = {shape: experiments.get(f"{name}-{shape[0]}x{shape[1]}-s0") for shape in shapes(4)}
        assert {(e.model.n_layers, e.model.n_loops) for e in made.values()} == set(shapes(4))
        same = {e.steps for e in made.values()}, {e.optimizer for e in made.values()}, {e.task for e in made.values()}
        assert all(len(values) == 1 for values in same)
