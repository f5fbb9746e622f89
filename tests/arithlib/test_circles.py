"""A planted circle is measured as it was planted."""

import pytest
import torch

from arithlib.analysis.circles import circle_plane, fit_circle
from arithlib.analysis.fourier import fourier_coefficients, wave_rows


def planted_circle(p, k, radius=2.0, squash=1.0, noise=0.0, columns=40, seed=0):
    generator = torch.Generator().manual_seed(seed)
    plane, _ = torch.linalg.qr(torch.randn(columns, 2, generator=generator, dtype=torch.float64))
    angle = 2 * torch.pi * k * torch.arange(p, dtype=torch.float64) / p
    points = radius * torch.stack([angle.cos(), squash * angle.sin()], 1)
    centre = torch.randn(columns, generator=generator, dtype=torch.float64)
    return points @ plane.T + centre + noise * torch.randn(p, columns, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize(("p", "k"), [(113, 4), (113, 43), (17, 3)])
def test_a_planted_circle_is_found_with_its_radius(p, k):
    circle = fit_circle(planted_circle(p, k), k)
    assert circle.radius == pytest.approx(2.0, rel=1e-6)
    assert circle.radius_spread < 1e-6 and circle.residual < 1e-9
    assert circle.roundness == pytest.approx(1.0) and circle.variance == pytest.approx(1.0)


def test_a_squashed_circle_keeps_its_ratio_of_axes():
    circle = fit_circle(planted_circle(113, 9, squash=0.4), 9)
    assert circle.roundness == pytest.approx(0.4, rel=1e-6)
    assert circle.residual < 1e-9


def test_noise_shows_as_residual_and_lowers_the_share_of_variance():
    circle = fit_circle(planted_circle(113, 9, noise=0.2), 9)
    assert 0.005 < circle.residual < 0.1
    assert 0.6 < circle.variance < 0.85  # planted 4, noise 40 * 0.04


def test_the_spread_of_the_radius_is_a_share_of_it():
    small, large = (fit_circle(scale * planted_circle(113, 9, squash=0.4), 9) for scale in (1, 50))
    assert large.radius_spread == pytest.approx(small.radius_spread) and large.radius > 40 * small.radius
    angle = 2 * torch.pi * torch.arange(113, dtype=torch.float64) / 113
    distance = (angle.cos().square() + 0.16 * angle.sin().square()).sqrt()
    assert small.radius_spread == pytest.approx(float(distance.std() / distance.mean()))


def test_noise_alone_is_no_circle():
    noise = torch.randn(113, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert fit_circle(noise, 9).residual > 0.5
    assert fit_circle(noise, 9).radius_spread > 0.3


def test_a_frequency_or_a_width_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="frequencies run from 1 to 56"):
        fit_circle(planted_circle(113, 1), 57)
    with pytest.raises(ValueError, match="at least two columns"):
        fit_circle(torch.ones(113, 1), 3)


@pytest.mark.parametrize("turned", [1, -1])  # which way a factorisation points depends on where the circle lies
def test_the_plane_is_orthonormal_and_its_axes_point_along_the_cosine_and_the_sine(turned):
    x = turned * planted_circle(113, 9)
    plane = circle_plane(x, 9)
    torch.testing.assert_close(plane.T @ plane, torch.eye(2, dtype=torch.float64))
    assert (fourier_coefficients(x)[wave_rows([9])] @ plane).diagonal().min() > 0
