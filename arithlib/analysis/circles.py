"""Circles in a matrix with one row per residue (chapter 11; source 004, section 5.1).

Dimensions: P residues, D the space they are embedded in.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from arithlib.analysis.fourier import fourier_coefficients, n_frequencies, wave_rows


@dataclass(frozen=True)
class Circle:
    """How the residues sit in the plane of one frequency.

    frequency: k. points: (P, 2) coordinates in the plane spanned by the cosine and the sine coefficient vectors.
    radius: mean distance from the centre. radius_spread: standard deviation of the distance over the radius.
    residual: share of the in-plane variance that is not on the best ellipse at frequency k: 0 a perfect ellipse.
    roundness: ratio of the two half-axes of that ellipse, 1 for a circle, towards 0 when squashed.
    variance: share of the variance of the whole matrix that lies in the plane.
    """

    frequency: int
    points: Tensor
    radius: float
    radius_spread: float
    residual: float
    roundness: float
    variance: float


def circle_plane(x: Tensor, frequency: int) -> Tensor:
    """(P, D) -> (D, 2) orthonormal plane in which the wave of `frequency` moves, its first axis along the cosine.

    Raises ValueError for a frequency that p residues do not have, or fewer than two columns.
    """
    p = len(x)
    if not 1 <= frequency <= n_frequencies(p):
        raise ValueError(f"frequency {frequency}: at p = {p} frequencies run from 1 to {n_frequencies(p)}")
    if x.shape[1] < 2:
        raise ValueError(f"x of shape {tuple(x.shape)}: a plane takes at least two columns")
    plane, skew = torch.linalg.qr(fourier_coefficients(x)[wave_rows([frequency])].T)
    return plane * skew.diagonal().sign()  # the first axis along the cosine, not against it, on every machine


def fit_circle(x: Tensor, frequency: int) -> Circle:
    """Project the rows of x (P, D) on the plane where `frequency` lives and measure how circular they lie.

    The plane is spanned by the D-dimensional cosine and sine coefficients (orthonormalised, which source 004 does
    not do: skewed axes show a circle as an ellipse).
    """
    centred = x.detach().double() - x.detach().double().mean(0)
    plane = circle_plane(centred, frequency)
    points = centred @ plane
    wave = fourier_coefficients(points)[wave_rows([frequency])]
    half_axes = torch.linalg.svdvals(wave)
    distance = points.norm(dim=1)
    return Circle(
        frequency,
        points,
        radius=float(distance.mean()),
        radius_spread=float(distance.std() / distance.mean()),
        residual=float(1 - wave.square().sum() / points.square().sum()),
        roundness=float(half_axes[1] / half_axes[0]),
        variance=float(points.square().sum() / centred.square().sum()),
    )
