"""How near looping comes to depth (chapters 44, 46 and 47; source 003, sections 3.1 and 3.2)."""

import itertools
from dataclasses import dataclass

import numpy as np

# ---- the gap -----------------------------------------------------------------------------------------------------


def percent_gap(few: float, looped: float, deep: float) -> float:
    """Equation 3: how much of the way from k layers to all of them the k layers go when looped, in percent.

    Of measures that are better when smaller, too. Raises ZeroDivisionError where there is no gap.

    >>> round(percent_gap(few=8.16, looped=7.90, deep=7.40), 1)  # perplexities of table 3, k = 12
    34.2
    """
    return 100 * (looped - few) / (deep - few)


def gap_interval(few: float, looped: float, deep: float, half: float) -> tuple[float, float]:
    """The least and the largest percent gap of numbers that are within `half` of the given ones.

    The gap is monotone in each of the three while the sign of the denominator is certain, so that the corners are
    enough; where it is not, everything is possible, and the interval is (-inf, inf).

    >>> [round(end) for end in gap_interval(26.7, 34.3, 29.3, half=0.05)]  # word problems, k = 12
    [281, 304]
    """
    if abs(deep - few) <= 2 * half:
        return -np.inf, np.inf
    corners = itertools.product(*((value - half, value + half) for value in (few, looped, deep)))
    gaps = [percent_gap(*corner) for corner in corners]
    return min(gaps), max(gaps)


# ---- score against perplexity ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """A least-squares line. off: standard deviation of the points about it. x: (n,) where they stand."""

    slope: float
    intercept: float
    off: float
    x: np.ndarray

    def at(self, x: float) -> float:
        """Height of the line."""
        return self.intercept + self.slope * x

    def error(self, x: float) -> float:
        """Standard error of the height, for independent points; it grows with the distance from them."""
        centred = self.x - self.x.mean()
        return self.off * float(np.sqrt(1 / len(self.x) + (x - self.x.mean()) ** 2 / (centred**2).sum()))


def line(x: np.ndarray, y: np.ndarray) -> Line:
    """The line through (n,) points with the least squares in y.

    Raises ValueError for fewer than three points, or all at one x.
    """
    if len(x) < 3 or np.ptp(x) == 0:
        raise ValueError(f"a line with an error needs three points at different x, found {len(x)} at {x}")
    slope, intercept = np.polyfit(x, y, 1)
    off = np.sqrt(((y - intercept - slope * x) ** 2).sum() / (len(x) - 2))
    return Line(float(slope), float(intercept), float(off), np.asarray(x))


def ahead(x: np.ndarray, y: np.ndarray, other_x: np.ndarray, other_y: np.ndarray) -> float:
    """By how much y is above the other at the same x, in the mean over the range of x that both have.

    (n,) points and (m,) others in any order, joined by straight lines; n = 1 compares a point with a curve.
    Raises ValueError where they have no x in common.

    >>> round(ahead([1.0], [7.0], [0.0, 2.0], [4.0, 8.0]), 6)  # the curve is at 6 there
    1.0
    """
    low, high = max(np.min(x), np.min(other_x)), min(np.max(x), np.max(other_x))
    if low > high:
        raise ValueError(
            f"{np.min(x):.4g} to {np.max(x):.4g} and {np.min(other_x):.4g} to {np.max(other_x):.4g} are apart"
        )
    shared = np.linspace(low, high, 200)
    heights = [np.interp(shared, np.sort(a), np.asarray(b)[np.argsort(a)]) for a, b in ((x, y), (other_x, other_y))]
    return float(np.mean(heights[0] - heights[1]))
