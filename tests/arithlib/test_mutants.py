"""Mutants are wrong where they were made wrong, and nowhere else that a test would notice."""

import numpy as np
import torch

from arithlib import checkpoints
from arithlib.certify.addition import examine, reachable
from arithlib.certify.mutants import adversarial_finetune, answers, rounded, visits
from arithlib.streaming import add
from arithlib.tasks.operands import digits_of

MODEL = checkpoints.load("adder-certified").model


def test_visits_are_the_columns_of_the_sums_and_one_more():
    places, rows = visits(digits_of([123, 99, 0]), digits_of([4, 1, 0], 3))
    met = reachable()
    assert np.bincount(rows).tolist() == [4, 4, 2]  # 127$ 100$ 0$
    assert met.right[places[rows == 1]].tolist() == [0, 0, 1, 14]


def test_the_certified_model_answers_every_context_rightly():
    assert (answers(MODEL) == reachable().right).all()


def test_many_levels_change_little_and_few_change_all():
    assert (answers(rounded(MODEL, 2**20)) == reachable().right).all()
    assert (answers(rounded(MODEL, 1)) != reachable().right).mean() > 0.5


def test_a_misled_model_is_wrong_in_its_context_and_the_certifier_says_so():
    met = reachable()
    zero = digits_of([18]), digits_of([0], 2)
    place = int(visits(*zero)[0][1])  # 18 + 0: the 1, after the 8
    assert met.right[place] == 1
    mutant = adversarial_finetune(MODEL, place, 2)
    assert add(MODEL, 18, 0) == 18 and add(mutant, 18, 0) == 28
    assert (answers(mutant) != met.right).mean() < 0.001
    assert examine(mutant).open[0] == place


def test_the_model_that_was_misled_is_left_alone():
    before = {name: value.clone() for name, value in MODEL.state_dict().items()}
    adversarial_finetune(MODEL, 0, 2, steps=2)
    assert all(torch.equal(value, before[name]) for name, value in MODEL.state_dict().items())
