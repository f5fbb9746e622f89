"""The sums of a training are drawn again, and the situations in them counted."""

from dataclasses import replace

import torch

from arithlib import checkpoints
from arithlib.certify.addition import reachable, text
from arithlib.experiments.adder import AdderObjective
from arithlib.tasks.operands import OperandTask
from chapters import ch72_training

EXPERIMENT = checkpoints.read("adder-certified").experiment


def test_the_batches_are_those_that_the_training_takes(monkeypatch):
    """What reaches the loss at each step, recorded there."""
    taken = []
    monkeypatch.setattr(AdderObjective, "_loss", lambda self, model, problems: taken.append(problems))
    objective = AdderObjective(EXPERIMENT, EXPERIMENT.build())
    for step in range(3):
        objective.loss(None, step)
    a, b = ch72_training.batches(EXPERIMENT, 3)
    assert torch.equal(a, torch.cat([problems.a for problems in taken]))
    assert torch.equal(b, torch.cat([problems.b for problems in taken]))


def test_situations_are_counted_as_often_as_sums_come_to_them(monkeypatch):
    """Three sums by hand: 12 + 9 and 9 + 3 have two columns in common, 0 + 0 none."""
    chosen = OperandTask(max_digits=2).from_numbers([(12, 9), (92, 39), (0, 0)])
    monkeypatch.setattr(ch72_training, "batches", lambda experiment, steps: (chosen.a, chosen.b))
    counted = ch72_training.times_met(EXPERIMENT, 1)
    met = {text(reachable().contexts[place]): int(counted[place]) for place in counted.nonzero()[0]}
    assert met == {
        ".+=29": 2, "2911.": 1, "1.2..": 1, "29193": 1, "933..": 1, "..1..": 1, ".+=00": 1, "000..": 1,
    }  # fmt: skip


def test_fewer_steps_meet_no_more():
    longer = ch72_training.times_met(EXPERIMENT, 40)
    assert (ch72_training.times_met(EXPERIMENT, 20) <= longer).all() and (longer == 0).any()
    other = ch72_training.times_met(replace(EXPERIMENT, seed=EXPERIMENT.seed + 1), 40)
    assert (other != longer).any()
