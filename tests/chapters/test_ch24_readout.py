"""What is planted in neurons is read out again: affine maps, ranks, hands, waves."""

import dataclasses

import pytest
import torch

from chapters.ch24_readout import (
    WaveNeurons,
    affine_classifier,
    affine_stand_in,
    answer_means,
    clock_hand,
    distil,
    keep_principal,
    over_difference,
    principal_directions,
)

P = 23
N = torch.arange(P, dtype=torch.float64)
SUM = (N[:, None] + N).long() % P


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def planted_network(freqs=(2, 5, 9), phases=16):
    """For each clock `phases` neurons around the circle, read at twice their phase; other numbers arbitrary."""
    freq = torch.tensor(freqs).repeat_interleave(phases)
    phase = (2 * torch.pi * torch.arange(phases, dtype=torch.float64) / phases - 3).repeat(len(freqs))
    size = 0.1 + 0.1 * random(6, len(freq)).abs()
    return WaveNeurons(
        p=P, frequency=freq, bias=size[0], gain=1 + size[1], phase=phase, product=size[2], product_phase=2 * phase,
        difference=size[3] - 0.2, overtone=size[4], overtone_phase=2 * phase + torch.pi, read=1 + size[5],
        read_phase=2 * phase,
    )  # fmt: skip


def test_a_planted_affine_map_is_recovered_and_a_relu_is_not():
    x = random(P, P, 6)
    y = x @ random(6, 4, seed=1) + random(4, seed=2)
    torch.testing.assert_close(affine_stand_in(x, y), y)
    assert (affine_stand_in(x, y.relu()) - y.relu()).abs().max() > 0.1


def test_the_stand_in_of_an_output_is_the_output_of_the_stand_in():
    x, W_out = random(P, P, 6), random(4, 3, seed=3)
    y = (x @ random(6, 4, seed=1)).relu()
    torch.testing.assert_close(affine_stand_in(x, y @ W_out), affine_stand_in(x, y) @ W_out)


def test_dependent_inputs_do_no_harm():
    x = random(P, P, 3) @ random(3, 8, seed=1)
    torch.testing.assert_close(affine_stand_in(x, x), x)


def test_a_planted_rank_is_found_and_enough():
    grid = random(P, P, 3) @ random(3, 10, seed=1) + random(10, seed=2)
    share, _ = principal_directions(grid)
    assert share[:3].sum() == pytest.approx(1) and share[3:].abs().max() < 1e-12
    pairs = (torch.arange(P), torch.arange(P).flip(0))
    two, three = keep_principal(grid, (2, 3), pairs)
    torch.testing.assert_close(three, grid[pairs])
    assert (two - grid[pairs]).abs().max() > 0.1


def test_a_separable_answer_is_classified_and_noise_is_not():
    answers = torch.arange(5).repeat(40)
    x = random(200, 4, seed=1) * 0.05 + random(5, 4, seed=2)[answers]
    assert (affine_classifier(x, answers).argmax(1) == answers).all()
    assert (affine_classifier(random(200, 4), answers).argmax(1) == answers).double().mean() < 0.5


def test_answers_are_averaged_over_their_own_pairs():
    grid = random(P, 2)[SUM]
    torch.testing.assert_close(answer_means(grid)[7], grid[3, 4])
    waves_in_a = (2 * torch.pi * 3 * N / P).cos()[:, None, None].expand(P, P, 1)
    assert answer_means(waves_in_a).abs().max() < 1e-12


def test_the_hand_has_the_planted_length_and_error():
    length, error = 1 + random(P, P).abs(), 0.3 * random(P, P, seed=1)
    c = N[None, None, :]
    logits = length[..., None] * (2 * torch.pi * 4 / P * (SUM[..., None] - c) + error[..., None]).cos()
    hand = clock_hand(logits + 5 + (2 * torch.pi * 6 * c / P).sin(), 4)
    torch.testing.assert_close(hand.abs(), length)
    torch.testing.assert_close(hand.angle(), error)
    with pytest.raises(ValueError, match="frequencies run from 1 to 11"):
        clock_hand(logits, 12)


@pytest.mark.parametrize("k", [1, 4, 11])
def test_a_function_of_the_difference_is_unfolded_by_its_angle(k):
    grid = (2 * torch.pi * k * (N[:, None] - N) / P).cos() + (2 * torch.pi * k * (N[:, None] + N) / P).sin()
    angle, mean = over_difference(grid, k)
    assert len(angle) == 12 and angle[0] == 0 and angle[-1] < torch.pi
    torch.testing.assert_close(mean, angle.cos())


def test_planted_wave_neurons_add_and_are_distilled_to_their_numbers():
    planted = planted_network()
    assert (planted.logits().argmax(-1) == SUM).all()
    found = distil(planted.mlp_pre(), planted.W_L())
    assert torch.equal(found.frequency, planted.frequency)
    for field in dataclasses.fields(WaveNeurons)[2:]:
        ours, truth = getattr(found, field.name), getattr(planted, field.name)
        if "phase" in field.name:  # up to full turns
            ours, truth = torch.exp(1j * ours), torch.exp(1j * truth)
        torch.testing.assert_close(ours, truth, msg=field.name)
    torch.testing.assert_close(found.logits(), planted.logits())


def test_neurons_read_at_their_own_phase_instead_of_twice_do_not_add():
    planted = planted_network()
    wrong = dataclasses.replace(planted, read_phase=planted.phase)
    assert (wrong.logits().argmax(-1) == SUM).double().mean() < 0.3
