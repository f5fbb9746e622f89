"""Fourier analysis over the residues 0..p-1 (chapter 11; Nanda et al. 2023, section 4).

Dimensions: P residues (odd), D any other axis. Frequency k = 1..(P - 1)/2 has angular frequency w_k = 2 pi k / P.
Rows of the basis: constant, cos 1, sin 1, cos 2, sin 2, ...
"""

from collections.abc import Iterable
from functools import lru_cache

import torch
from torch import Tensor

# A frequency is *key* when its norm exceeds a quarter of the largest (so that it matters) and its power exceeds four
# times the median (so that it is no noise: with white noise in 100 columns the largest of 56 powers stays below 1.5
# medians). Published work uses three different rules, none with a number for noise.
KEY_NORM_SHARE = 0.25
KEY_POWER_OVER_MEDIAN = 4.0


def n_frequencies(p: int) -> int:
    """Number of frequencies of p residues: (p - 1) / 2. p must be odd and at least 3."""
    if p < 3 or p % 2 == 0:
        raise ValueError(
            f"p = {p}: the Fourier basis pairs a cosine with a sine for each frequency, "
            "which takes an odd p of at least 3"
        )
    return (p - 1) // 2


@lru_cache
def fourier_basis(p: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """(P, P) orthonormal rows: constant, cos 1, sin 1, ..., cos (p-1)/2, sin (p-1)/2.

    >>> bool(torch.allclose(fourier_basis(5) @ fourier_basis(5).T, torch.eye(5, dtype=torch.float64)))
    True
    """
    angles = 2 * torch.pi * torch.outer(frequencies(p), torch.arange(p)).to(torch.float64) / p
    waves = torch.stack([angles.cos(), angles.sin()], 1).flatten(0, 1)
    basis = torch.cat([torch.ones(1, p, dtype=torch.float64), waves])
    return (basis / basis.norm(dim=1, keepdim=True)).to(dtype)


def frequencies(p: int) -> Tensor:
    """(F,) the frequencies 1..(p - 1)/2."""
    return torch.arange(1, n_frequencies(p) + 1)


def wave_rows(freqs: Iterable[int]) -> list[int]:
    """Rows of the basis that hold the cosine and the sine of each frequency.

    >>> wave_rows([1, 3])
    [1, 2, 5, 6]
    """
    return [row for k in freqs for row in (2 * k - 1, 2 * k)]


def fourier_coefficients(x: Tensor) -> Tensor:
    """(P, D) -> (P, D) coefficients of each column along the residue axis, rows in basis order, float64."""
    return fourier_basis(len(x)).to(x.device) @ x.detach().double()


def coefficient_norms(x: Tensor) -> Tensor:
    """(P, D) -> (P,) norm of each basis row's coefficient over D: the bars of source 004, section 5."""
    return fourier_coefficients(x).norm(dim=1)


def power_spectrum(x: Tensor) -> Tensor:
    """(P, D) -> (F,) power (squared norm) at frequencies 1..(p-1)/2, cosine and sine together."""
    return power_from_norms(coefficient_norms(x))


def power_from_norms(norms: Tensor) -> Tensor:
    """(..., P) coefficient norms -> (..., F) power per frequency."""
    return norms[..., 1:].unflatten(-1, (-1, 2)).square().sum(-1)


def key_frequencies(power: Tensor) -> list[int]:
    """The frequencies that stand out of a (F,) power spectrum, ascending; empty for noise.

    The rule: norm above a quarter of the largest, and power above four times the median power.
    Raises ValueError below eight frequencies (p < 17), where a median is no estimate of the noise.
    """
    if power.ndim != 1 or len(power) < 8:
        raise ValueError(
            f"a power spectrum of shape {tuple(power.shape)}: key frequencies are told from noise by the median, "
            "which takes a vector of at least eight frequencies (p >= 17)"
        )
    stands_out = (power.sqrt() > KEY_NORM_SHARE * power.sqrt().max()) & (
        power > KEY_POWER_OVER_MEDIAN * power.median()
    )
    return (stands_out.nonzero()[:, 0] + 1).tolist()


def fourier_2d(grid: Tensor) -> Tensor:
    """(P, P, ...) a function of (a, b) -> (P, P, ...) coefficients of a-waves (rows) times b-waves (columns)."""
    basis = fourier_basis(len(grid))
    return torch.einsum("ia,ab...,jb->ij...", basis, grid.detach().double(), basis)


def sum_waves(p: int, freqs: list[int]) -> Tensor:
    """(2 m, P, P) orthonormal cos w_k(a + b) and sin w_k(a + b) for each of the m frequencies k."""
    if not all(1 <= k <= n_frequencies(p) for k in freqs):
        raise ValueError(f"frequencies {freqs}: at p = {p} they run from 1 to {n_frequencies(p)}")
    n = torch.arange(p)
    return fourier_basis(p)[wave_rows(freqs)][:, (n[:, None] + n) % p] / p**0.5


def project(grid: Tensor, waves: Tensor) -> Tensor:
    """Projection of (P, P, ...) functions of (a, b) on the span of orthonormal (m, P, P) waves."""
    coefficients = torch.einsum("mab,ab...->m...", waves, grid)
    return torch.einsum("mab,m...->ab...", waves, coefficients)
