"""Losses in float64, and what float32 does to them."""

import math

import torch
import torch.nn.functional as F

from arithlib.evaluation import accuracy, cross_entropy, logit_margin, per_example_loss


def test_cross_entropy_is_that_of_torch():
    generator = torch.Generator().manual_seed(0)
    logits, answers = torch.randn(50, 7, generator=generator), torch.randint(7, (50,), generator=generator)
    torch.testing.assert_close(cross_entropy(logits, answers), F.cross_entropy(logits.double(), answers))


def test_weights_count_rows():
    logits, answers = torch.randn(3, 5, generator=torch.Generator().manual_seed(1)), torch.tensor([0, 1, 2])
    twice = torch.tensor([2.0, 1.0, 0.0])
    repeated = torch.tensor([0, 0, 1])
    torch.testing.assert_close(
        cross_entropy(logits, answers, twice), cross_entropy(logits[repeated], answers[repeated])
    )
    assert accuracy(logits, answers, twice) == accuracy(logits[repeated], answers[repeated])


def test_a_loss_below_float32_resolution_survives_in_float64():
    logits = torch.tensor([[20.0, 0.0]])
    answer = torch.tensor([0])
    assert F.cross_entropy(logits, answer) == 0
    assert math.isclose(per_example_loss(logits, answer).item(), math.log1p(math.exp(-20)), rel_tol=1e-6)


def test_a_margin_is_over_the_best_of_the_others():
    logits = torch.tensor([[3.0, 1.0, 2.5], [0.0, -2.0, 1.0]])
    assert logit_margin(logits, torch.tensor([0, 1])).tolist() == [0.5, -3.0]
    assert logit_margin(logits[:, None], torch.tensor([[2], [2]])).tolist() == [[-0.5], [1.0]]
