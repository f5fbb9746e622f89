"""How near looping comes to depth, and how near a deep network comes to a loop (chapter 44; source 003, 3.1 and 4).

Dimensions: L layers, k layers of a block.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Parameter groups of a `looped.Layer`, as source 003 names them; the first three are thirds of one matrix.
GROUPS = ("Attn-Q", "Attn-K", "Attn-V", "Attn-O", "FFN-W1", "FFN-W2")


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
        return -torch.inf, torch.inf
    corners = itertools.product(*((value - half, value + half) for value in (few, looped, deep)))
    gaps = [percent_gap(*corner) for corner in corners]
    return min(gaps), max(gaps)


# ---- similarity of blocks ----------------------------------------------------------------------------------------


def matrices(layer: nn.Module) -> dict[str, Tensor]:
    """The weight matrices of a `looped.Layer` by group."""
    both = (layer.out.weight, layer.mlp_in.weight, layer.mlp_out.weight)
    return dict(zip(GROUPS, (*layer.qkv.weight.chunk(3), *both), strict=True))


def corresponding(layers: nn.ModuleList, k: int) -> dict[str, list[tuple[Tensor, Tensor]]]:
    """For each group, the pairs of matrices that stand at the same place of neighbouring blocks of k layers.

    Raises ValueError where the layers are not two blocks or more.
    """
    L = len(layers)
    if k < 1 or L % k or L == k:
        raise ValueError(f"{L} layers are not several blocks of {k}")
    found = [matrices(layer) for layer in layers]
    return {group: [(found[i][group], found[i + k][group]) for i in range(L - k)] for group in GROUPS}


def cosine(a: Tensor, b: Tensor) -> Tensor:
    """Cosine of two matrices as vectors; a scalar."""
    return F.cosine_similarity(a.flatten(), b.flatten(), dim=0)


def relative_distance(a: Tensor, b: Tensor) -> Tensor:
    """Squared distance over the sum of the squared norms: 0 if equal, 1 if orthogonal, 2 if opposite; a scalar."""
    return (a - b).square().sum() / (a.square().sum() + b.square().sum())


def squared_distance(a: Tensor, b: Tensor) -> Tensor:
    """Squared distance; a scalar. Unlike the relative one it is smaller, too, between matrices that are smaller."""
    return (a - b).square().sum()


def mean_over_groups(layers: nn.ModuleList, k: int, measure=cosine) -> Tensor:
    """Equation 4 averaged over groups, as equation 5 has it; a scalar.

    The L - k of equation 4 is the number of its terms, so that it is a mean.
    """
    pairs = corresponding(layers, k)
    return torch.stack([torch.stack([measure(a, b) for a, b in of]).mean() for of in pairs.values()]).mean()


def similarity_penalty(layers: nn.ModuleList, k: int, strength: float, measure: str = "cosine") -> Tensor:
    """What is added to a loss, to be minimised, so that blocks of k layers become alike; a scalar.

    Equation 5 adds the cosine with a plus sign, which drives blocks apart; that is a negative `strength` here.

    measure: "cosine", which does not see the scale of a matrix; "l2" (`relative_distance`), which sees how unequal
        two are in scale; "squared" (`squared_distance`), which sees scale itself. Raises ValueError for any other.
    """
    if measure == "cosine":
        return -strength * mean_over_groups(layers, k)
    if measure == "l2":
        return strength * mean_over_groups(layers, k, relative_distance)
    if measure == "squared":
        return strength * mean_over_groups(layers, k, squared_distance)
    raise ValueError(f"measure = {measure!r}: choose cosine, l2 or squared")


def similarities(layers: nn.ModuleList, k: int) -> Mapping[str, list[float]]:
    """Cosine of each corresponding pair, by group."""
    with torch.no_grad():
        return {group: [float(cosine(a, b)) for a, b in of] for group, of in corresponding(layers, k).items()}


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
