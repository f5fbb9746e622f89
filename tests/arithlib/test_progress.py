"""Restricting, excluding and fitting on planted Clock logits."""

import math

import numpy as np
import pytest
import torch

from arithlib.analysis.progress import (
    answer_table,
    clock_fit,
    clock_template,
    exclude,
    grid_loss,
    mean_at_end,
    restrict,
    variance_explained,
)

P = 23


def clock_logits(freqs, heights):
    return torch.einsum("m,mabc->abc", torch.tensor(heights, dtype=torch.float64), clock_template(P, freqs))


def memorised_noise(scale=1.0):
    return scale * torch.randn(P, P, P, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_a_mean_at_the_end_takes_the_last_steps_and_no_earlier_one():
    history = {"step": np.array([0, 100, 200, 300]), "accuracy": np.array([9.0, 9.0, 1.0, 2.0])}
    assert mean_at_end(history, "accuracy", 200) == 1.5
    assert mean_at_end(history, "accuracy", 100) == 2


def test_the_clock_template_peaks_at_the_answer():
    n = torch.arange(P)
    for k, grid in zip([2, 7], clock_template(P, [2, 7]), strict=True):
        assert torch.equal(grid.argmax(-1), answer_table(P))
        a, b, c = 5, 20, 9
        assert grid[a, b, c] == pytest.approx(math.cos(2 * math.pi * k * (a + b - c) / P))
    assert torch.equal(answer_table(P), (n[:, None] + n) % P)


def test_restricting_keeps_a_planted_clock_and_removes_noise():
    clock = clock_logits([2, 7], [5.0, 3.0])
    torch.testing.assert_close(restrict(clock, [2, 7]), clock)
    noisy = clock + memorised_noise()
    assert grid_loss(restrict(noisy, [2, 7])) < grid_loss(noisy)
    assert variance_explained(clock, restrict(noisy, [2, 7])) > 0.99


def test_excluding_leaves_only_what_is_not_the_clock():
    noise = memorised_noise()
    left = exclude(clock_logits([2, 7], [5.0, 3.0]) + noise, [2, 7])
    torch.testing.assert_close(left, exclude(noise, [2, 7]))
    assert grid_loss(exclude(clock_logits([2, 7], [5.0, 3.0]), [2, 7])) == pytest.approx(math.log(P))


def test_restricted_and_excluded_parts_add_up():
    logits = clock_logits([4], [2.0]) + memorised_noise()
    torch.testing.assert_close(restrict(logits, [4]) - logits.mean((0, 1)) + exclude(logits, [4]), logits)


def test_planted_heights_are_recovered_beneath_noise_and_any_shift():
    heights = [5.0, 3.0]
    shift = 10 * torch.randn(P, P, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    alpha, fit = clock_fit(clock_logits([2, 7], heights) + shift + memorised_noise(), [2, 7])
    torch.testing.assert_close(alpha, torch.tensor(heights, dtype=torch.float64), rtol=0, atol=0.05)
    assert variance_explained(clock_logits([2, 7], heights), fit) > 0.999


def test_a_clock_of_another_frequency_explains_nothing():
    clock = clock_logits([2], [5.0])
    assert variance_explained(clock, clock_fit(clock, [3])[1]) == pytest.approx(0, abs=1e-9)
    assert clock_fit(clock, [])[1].abs().max() == 0


def test_the_loss_of_a_mask_is_the_loss_of_its_pairs():
    logits = memorised_noise()
    mask = torch.zeros(P, P, dtype=torch.bool)
    mask[3, 4] = True
    expected = -logits[3, 4].log_softmax(-1)[7]
    assert grid_loss(logits, mask) == pytest.approx(float(expected))
