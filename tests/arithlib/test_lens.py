"""Direct effects of neurons against path patching, and spectra of planted waves; of noise, none agree."""

import math

import pytest
import torch

from arithlib.analysis.lens import agree, folded, neuron_effects, neuron_lens, spectrum, strongest, sum_spectrum
from arithlib.analysis.patching import Pairs, direct_effect
from arithlib.models.decoder import MLPS, Decoder, DecoderConfig, normalise
from arithlib.tasks.prompts import prompt

FREQUENCIES = torch.arange(4, 201) / 400


@pytest.fixture(params=MLPS)
def model(request):
    return Decoder(DecoderConfig(d_model=32, n_layers=2, n_heads=2, d_mlp=24, mlp=request.param), seed=1).eval()


def test_direct_effects_are_those_of_path_patching(model):
    a, other, b = torch.randint(100, (3, 20), generator=torch.Generator().manual_seed(0))
    pairs = Pairs(prompt(a, b), prompt(other, b), a + b)
    effects = neuron_effects(model, pairs)
    assert effects.shape == (2, 24)
    writers = [f"{layer}.{part}" for layer in range(2) for part in ("attn_out", "mlp_out")]
    for layer, neuron in [(0, 3), (1, 0), (1, 23)]:
        others = [name for name in writers if name != f"{layer}.mlp_out"]
        slow = direct_effect(model, pairs, f"{layer}.mlp_post", others, (-1, neuron)).mean()
        assert float(effects[layer, neuron]) == pytest.approx(float(slow), abs=1e-5)


@torch.no_grad()
def test_the_lens_is_what_a_neuron_adds_to_the_logits(model):
    numbers = torch.arange(50)
    x = torch.randn(32, generator=torch.Generator().manual_seed(0))
    written = x + 0.01 * model.blocks[1].W_out[5]
    scale = (written - written.mean()).square().mean().add(1e-5).sqrt()
    moved = normalise(written) @ model.W_U[:, numbers] * scale - (x - x.mean()) @ model.W_U[:, numbers]
    assert torch.allclose(moved, 0.01 * neuron_lens(model, numbers)[1, 5], atol=1e-4)


def test_the_strongest_are_the_fewest_with_that_share():
    effects = torch.tensor([1.0, 5.0, -1.0, 3.0])  # 8 in all
    assert strongest(effects, 0.6).tolist() == [1]
    assert strongest(effects, 0.8).tolist() == [1, 3]


@pytest.mark.parametrize("f", [0.0425, 0.26, 0.3725])
def test_a_planted_wave_is_found_below_a_steep_line(f):
    n = torch.arange(199)
    curve = torch.cos(2 * math.pi * f * n + 1) + 0.3 * n
    assert float(FREQUENCIES[spectrum(curve, FREQUENCIES).argmax()]) == pytest.approx(f, abs=1e-6)


def test_a_wave_in_the_sum_is_found_among_waves_in_the_numbers():
    a, b = torch.meshgrid(torch.arange(100), torch.arange(100), indexing="ij")
    others = 3 * torch.cos(2 * math.pi * 0.11 * a) + 3 * torch.cos(2 * math.pi * 0.11 * b) + 0.5 * a
    grid = torch.sin(2 * math.pi * 0.285 * (a + b)) + others
    assert float(FREQUENCIES[sum_spectrum(grid, FREQUENCIES).argmax()]) == pytest.approx(0.285, abs=1e-6)


def test_frequencies_are_compared_as_whole_numbers_show_them():
    assert torch.allclose(
        folded(torch.tensor([0.3, 0.74, -0.26, 1.1])), torch.tensor([0.3, 0.26, 0.26, 0.1]), atol=1e-6
    )
    assert agree(2 * torch.tensor([0.37, 0.1]), torch.tensor([0.26, 0.4])) == 0.5
    assert agree(torch.tensor([[0.1], [0.2], [0.3]]), torch.tensor([0.3, 0.45])) == pytest.approx(1 / 3)


def test_random_frequencies_seldom_agree():
    first, second = 0.5 * torch.rand(2, 5000, generator=torch.Generator().manual_seed(0))
    assert agree(first, second) < 0.05
