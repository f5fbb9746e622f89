"""Planted neurons are assigned to their frequency; ablations remove what they say."""

import pytest
import torch

from arithlib.analysis.fourier import coefficient_norms
from arithlib.analysis.neurons import (
    answer_grids,
    frequency_variance,
    keep_directions,
    keep_frequencies,
    keep_sum_waves,
    logits_from,
    readout_directions,
    without_embedding_frequencies,
)
from arithlib.evaluation import answer_grid
from arithlib.models.grokking import GrokkingConfig, GrokkingTransformer

P = 23
N = torch.arange(P, dtype=torch.float64)


def wave(k, sign=1, phase=0.3):
    return (2 * torch.pi * k * (N[:, None] + sign * N) / P + phase).cos()


def planted_neurons():
    """Columns: a wave in a + b at 3; a product at 5 plus its linear terms; half 2, half 7; constant; noise."""
    angle = 2 * torch.pi * 5 * N / P
    product = (1 + angle.cos()[:, None]) * (1 + (angle + 1).sin())
    noise = torch.randn(P, P, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return torch.stack([wave(3), product, wave(2) + wave(7, -1), torch.full((P, P), 4.0), noise], -1)


def test_each_planted_neuron_shows_its_frequencies():
    share = frequency_variance(planted_neurons())
    assert share[0, 2] == pytest.approx(1) and share[1, 4] == pytest.approx(1)
    assert share[2, 1] == pytest.approx(0.5) and share[2, 6] == pytest.approx(0.5)
    assert share[3].max() == 0
    assert share[4].max() < 0.15


def test_keeping_a_frequency_keeps_its_neurons_and_silences_the_others():
    neurons = planted_neurons()
    kept = keep_frequencies(neurons, [3, 5])
    torch.testing.assert_close(kept[..., [0, 1, 3]], neurons[..., [0, 1, 3]])
    assert kept[..., 2].abs().max() < 1e-9


def test_keeping_sum_waves_drops_the_difference_and_the_linear_terms():
    neurons = planted_neurons()
    kept = keep_sum_waves(neurons, [2, 3, 7])
    torch.testing.assert_close(kept[..., 0], neurons[..., 0])
    torch.testing.assert_close(kept[..., 2], wave(2))
    torch.testing.assert_close(kept[..., 3], neurons[..., 3])


@pytest.mark.parametrize("positions", ["none", "learned"])
def test_logits_rebuilt_from_the_neurons_are_those_of_the_model(positions):
    model = GrokkingTransformer(
        GrokkingConfig(p=P, d_model=24, n_heads=2, d_head=8, d_mlp=40, positions=positions)
    ).double()
    torch.testing.assert_close(logits_from(model, *answer_grids(model)), answer_grid(model, P))


def test_readout_directions_carry_all_that_a_planted_readout_reads():
    generator = torch.Generator().manual_seed(0)
    u = torch.randn(40, 2, generator=generator, dtype=torch.float64)
    angle = 2 * torch.pi * 4 * N / P
    W_L = u @ torch.stack([angle.cos(), angle.sin()])
    neurons = torch.randn(P, P, 40, generator=generator, dtype=torch.float64)
    directions = readout_directions(W_L, [4])
    torch.testing.assert_close(keep_directions(neurons, directions) @ W_L, neurons @ W_L)
    assert (keep_directions(neurons, readout_directions(W_L, [4])) - neurons).abs().max() > 1


def test_an_ablated_copy_lacks_the_frequencies_and_leaves_the_model_alone():
    model = GrokkingTransformer(GrokkingConfig(p=P, d_model=24, n_heads=2, d_head=8, d_mlp=40))
    before = model.W_E.detach().clone()
    norms = coefficient_norms(without_embedding_frequencies(model, [3, 8]).W_E[:P])
    assert norms[[5, 6, 15, 16]].max() < 1e-5 < norms[[1, 2, 3, 4, 7, 8]].min()
    assert torch.equal(model.W_E, before)
    with pytest.raises(ValueError, match="they run from 1 to 11"):
        without_embedding_frequencies(model, [12])
