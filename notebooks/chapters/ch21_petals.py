"""Petals: what a periodic weight does to points on a circle (chapters 21 and 22; source 004, section 6.1).

A head mixes the points of a and b on a circle, z(b) = alpha(b) x_a + (1 - alpha(b)) x_b, where
x_t = exp(2 pi i k_e t / p) has the *embedding frequency* k_e and alpha(b) = 1/2 + A cos(2 pi k_a b / p + phi) the
*attention frequency* k_a. Points of the plane are complex numbers; b is any real number, k_e and k_a integers >= 1.

Written around x_a the curve is a polar graph (chapter 21 derives it): with theta = pi k_e (b - a) / p,
z = x_a + i x_a exp(i theta) r(theta),  r(theta) = 2 (1/2 - A cos(2 (k_a / k_e) theta + phi_a)) sin(theta).
"""

from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Petal:
    """One petal curve.

    embedding, attention: frequencies k_e and k_a in turns per p. amplitude: A of the weight, 0 (a circle) to 1/2 (the
    weight runs from 0 to 1). phase: phi in radians. a: the fixed number. p: the modulus.

    >>> bool(abs(Petal(embedding=4, attention=32, a=70)(70) - np.exp(2j * np.pi * 4 * 70 / 113)) < 1e-12)
    True
    """

    embedding: int
    attention: int
    amplitude: float = 0.5
    phase: float = 0.0
    a: float = 0.0
    p: int = 113

    def __post_init__(self):
        if self.embedding < 1 or self.attention < 1:
            raise ValueError(
                f"frequencies {self.embedding} and {self.attention}: both must be integers of at least 1 "
                "(an amplitude of 0 gives the plain circle)"
            )
        if not 0 <= self.amplitude <= 0.5:
            raise ValueError(f"amplitude {self.amplitude}: a weight 1/2 + A cos stays between 0 and 1 for A <= 1/2")

    def point(self, t: ArrayLike) -> NDArray:
        """x_t, where number t stands on the circle."""
        return np.exp(2j * np.pi * self.embedding * np.asarray(t) / self.p)

    def weight(self, b: ArrayLike) -> NDArray:
        """alpha(b), the attention that a receives; b receives the rest."""
        return 0.5 + self.amplitude * np.cos(2 * np.pi * self.attention * np.asarray(b) / self.p + self.phase)

    def __call__(self, b: ArrayLike) -> NDArray:
        """z(b), complex, in the shape of b."""
        alpha = self.weight(b)
        return alpha * self.point(self.a) + (1 - alpha) * self.point(b)

    def terms(self) -> dict[int, complex]:
        """The finite Fourier series of z: {turns per p: coefficient}, at 0, k_e, +-k_a and k_e +- k_a only."""
        half = self.amplitude / 2 * np.exp(1j * self.phase)
        x_a = complex(self.point(self.a))
        series: dict[int, complex] = {}
        for turns, coefficient in (
            (0, x_a / 2), (self.attention, half * x_a), (-self.attention, half.conjugate() * x_a),
            (self.embedding, 0.5), (self.embedding + self.attention, -half),
            (self.embedding - self.attention, -half.conjugate()),
        ):  # fmt: skip
            series[turns] = series.get(turns, 0) + complex(coefficient)
        return series

    def radius(self, theta: ArrayLike) -> NDArray:
        """r(theta), the signed distance from x_a in the direction i x_a exp(i theta)."""
        theta = np.asarray(theta)
        start = 2 * np.pi * self.attention * self.a / self.p + self.phase
        alpha = 0.5 + self.amplitude * np.cos(2 * self.attention / self.embedding * theta + start)
        return 2 * (1 - alpha) * np.sin(theta)

    @property
    def ratio(self) -> tuple[int, int]:
        """k_a / k_e in lowest terms (m, n): the closed curve holds m turns of the weight and n of the circle."""
        divisor = gcd(self.attention, self.embedding)
        return self.attention // divisor, self.embedding // divisor

    @property
    def crossings(self) -> int:
        """How often the closed curve crosses itself away from x_a at a phase in general position: m (n - 1).

        On a ray from x_a the n turns of the circle give n radii; each pair of turns is equal at 2 m / n places, and
        there are n (n - 1) / 2 pairs. So a curve is free of crossings only if k_e divides k_a.
        """
        m, n = self.ratio
        return m * (n - 1)

    @property
    def lobes(self) -> int:
        """Lobes of the closed curve at full amplitude, phase in general position: m + n, the returns to x_a."""
        return sum(self.ratio)

    def closed(self, samples_a_turn: int = 400) -> NDArray:
        """(n samples_a_turn,) the closed curve once around, from b = a on; the last point is next to the first.

        Every turn of the circle comes through x_a at one of the samples.
        """
        _, n = self.ratio
        return self(self.a + self.p / self.embedding * np.arange(n * samples_a_turn) / samples_a_turn)


def count_crossings(curve: NDArray, touching: complex) -> int:
    """How many pairs of sides of a closed polygon cross, leaving out the surroundings of the point `touching`.

    curve: (N,) complex corners; the last is joined to the first. All turns of a petal touch at x_a, where the sides
    of a polygon cannot be told apart; crossings nearer to it than 1.5 of the longest sides are left out.
    """
    n = len(curve)
    side = np.roll(curve, -1) - curve
    near = 1.5 * abs(side).max()

    def cross(u, v):
        return (u.conjugate() * v).imag

    found = 0
    for i in range(n - 2):
        others = slice(i + 2, n - (i == 0))  # later sides that do not share a corner with side i
        gap = curve[others] - curve[i]
        with np.errstate(divide="ignore", invalid="ignore"):  # parallel sides do not cross
            along = cross(gap, side[others]) / cross(side[i], side[others])
            along_other = cross(gap, side[i]) / cross(side[i], side[others])
        meets = (along >= 0) & (along < 1) & (along_other >= 0) & (along_other < 1)
        found += int((abs(curve[i] + along[meets] * side[i] - touching) > near).sum())
    return found


def count_lobes(curve: NDArray, centre: complex) -> int:
    """How many local maxima the distance from `centre` has along a closed (N,) curve."""
    distance = abs(curve - centre)
    return int(((distance > np.roll(distance, 1)) & (distance >= np.roll(distance, -1))).sum())
