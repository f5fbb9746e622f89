"""A planted frequency is found; noise is not."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from arithlib.analysis.fourier import (
    coefficient_norms,
    fourier_2d,
    fourier_basis,
    fourier_coefficients,
    key_frequencies,
    power_spectrum,
    project,
    sum_waves,
)

odd = st.integers(8, 60).map(lambda n: 2 * n + 1)


def planted(p, freqs, columns=100, noise=0.0, seed=0):
    """(p, columns) random mixtures of the waves at freqs, unit power each, plus white noise."""
    generator = torch.Generator().manual_seed(seed)
    x = noise * torch.randn(p, columns, generator=generator, dtype=torch.float64)
    for k in freqs:
        mixing = torch.randn(2, columns, generator=generator, dtype=torch.float64) / columns**0.5
        x = x + fourier_basis(p)[2 * k - 1 : 2 * k + 1].T @ mixing * p**0.5
    return x


@given(odd)
def test_the_basis_is_orthonormal(p):
    assert torch.allclose(fourier_basis(p) @ fourier_basis(p).T, torch.eye(p, dtype=torch.float64), atol=1e-9)


@given(odd, st.data())
def test_power_is_that_of_numpys_fft(p, data):
    x = torch.randn(p, 3, generator=torch.Generator().manual_seed(data.draw(st.integers(0, 1000))))
    fft = np.abs(np.fft.rfft(x.double().numpy(), axis=0, norm="ortho")[1:]) ** 2
    np.testing.assert_allclose(power_spectrum(x).numpy(), 2 * fft.sum(1), rtol=1e-9)


@given(odd, st.data())
def test_planted_frequencies_are_found(p, data):
    freqs = sorted(data.draw(st.sets(st.integers(1, (p - 1) // 2), min_size=1, max_size=3)))
    x = planted(p, freqs, noise=0.05, seed=data.draw(st.integers(0, 1000)))
    assert key_frequencies(power_spectrum(x)) == freqs


@pytest.mark.parametrize("seed", range(50))
def test_noise_has_no_key_frequency(seed):
    noise = torch.randn(113, 128, generator=torch.Generator().manual_seed(seed))
    assert key_frequencies(power_spectrum(noise)) == []


def test_shuffling_the_residues_hides_a_planted_frequency():
    x = planted(113, [7, 30], noise=0.01)
    shuffled = x[torch.randperm(113, generator=torch.Generator().manual_seed(0))]
    assert key_frequencies(power_spectrum(x)) == [7, 30]
    assert key_frequencies(power_spectrum(shuffled)) == []


def test_a_constant_has_no_power_and_coefficients_rebuild_the_matrix():
    x = planted(113, [5], noise=1.0)
    assert power_spectrum(torch.ones(113, 4)).max() < 1e-20
    torch.testing.assert_close(fourier_basis(113).T @ fourier_coefficients(x), x)
    torch.testing.assert_close(coefficient_norms(x).square().sum(), x.square().sum())


def test_a_wave_in_the_sum_has_the_two_product_waves_of_the_identity():
    p, k = 23, 4
    n = torch.arange(p)
    grid = (2 * torch.pi * k * (n[:, None] + n) / p).cos().double()  # cos cos - sin sin
    coefficients = fourier_2d(grid)
    expected = torch.zeros(p, p, dtype=torch.float64)
    expected[2 * k - 1, 2 * k - 1], expected[2 * k, 2 * k] = p / 2, -p / 2
    torch.testing.assert_close(coefficients, expected, atol=1e-5, rtol=0)


def test_sum_waves_are_orthonormal_and_tell_a_sum_from_a_difference():
    p = 23
    waves = sum_waves(p, [3, 8]).flatten(1)
    torch.testing.assert_close(waves @ waves.T, torch.eye(4, dtype=torch.float64))
    n = torch.arange(p)
    of_sum, of_difference = (
        (2 * torch.pi * 3 * m / p).sin().double()[..., None] for m in (n[:, None] + n, n[:, None] - n)
    )
    torch.testing.assert_close(project(of_sum, sum_waves(p, [3])), of_sum, atol=1e-5, rtol=0)
    assert project(of_sum, sum_waves(p, [8])).abs().max() < 1e-5
    assert project(of_difference, sum_waves(p, [3, 8])).abs().max() < 1e-5


def test_unsuited_sizes_are_refused():
    with pytest.raises(ValueError, match="takes an odd p of at least 3"):
        fourier_basis(12)
    with pytest.raises(ValueError, match="takes an odd p of at least 3"):
        power_spectrum(torch.ones(2, 3))
    with pytest.raises(ValueError, match="at least eight frequencies"):
        key_frequencies(power_spectrum(torch.ones(13, 3)))
    with pytest.raises(ValueError, match="they run from 1 to 11"):
        sum_waves(23, [12])
