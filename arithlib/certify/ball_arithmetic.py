"""Ball arithmetic: what a float32 program may compute, whatever the order of its sums (chapter 72).

A ball is a midpoint and a radius. It holds the value in exact arithmetic, and every value that a float32 program can
come to: rounding to nearest after each operation, sums in any order, fused or not. A dot product of n terms is then
within gamma(n) = n u / (1 - n u) of its exact value, relative to the sum of absolute values (Higham, "Accuracy and
Stability of Numerical Algorithms", 2002, section 3.1). The exponential has no such rule: that each one in a softmax
is relatively off by at most `FUNCTION_ERROR` is a hypothesis of every proof made with this module. (A kernel that
takes keys in blocks multiplies several exponentials for one key; then it is about their product.)
"""

from dataclasses import dataclass

import numpy as np

# float32 rounds by at most 2^-24, relatively. The little more outweighs that the bounds are computed in float64.
UNIT = 2.0**-24 * (1 + 2.0**-16)
UNDERFLOW = 2.0**-126  # a result smaller than this may be rounded to 0
FUNCTION_ERROR = 2.0**-16  # 256 units in the last place: generous, because fast kernels trade accuracy for time


@dataclass(frozen=True)
class Ball:
    """Every value within `rad` of `mid`, entry by entry; two float64 arrays of one shape."""

    mid: np.ndarray
    rad: np.ndarray

    @classmethod
    def exact(cls, values) -> "Ball":
        """Float32 numbers as they are: radius zero."""
        mid = np.asarray(values, dtype=np.float64)
        return cls(mid, np.zeros_like(mid))

    @property
    def size(self) -> np.ndarray:
        """The largest absolute value in the ball."""
        return np.abs(self.mid) + self.rad

    def __add__(self, other: "Ball") -> "Ball":
        mid = self.mid + other.mid
        return Ball(mid, self.rad + other.rad + UNIT * (self.size + other.size) + UNDERFLOW)

    def map(self, change) -> "Ball":
        """The same exact change of midpoints and radii: another order or shape, or multiplication by a constant."""
        return Ball(change(self.mid), change(self.rad))

    def __getitem__(self, index) -> "Ball":
        return self.map(lambda part: part[index])


def gamma(n: int) -> float:
    """The relative error of a sum of n products of float32 numbers, in any order (Higham 2002, equation 3.4)."""
    return n * UNIT / (1 - n * UNIT)


def einsum(pattern: str, a: Ball, b: Ball, *added: Ball, roundings: int = 0) -> Ball:
    """Sums of products, as `numpy.einsum`; everything that the pattern sums over is one dot product.

    added: what else goes into each sum, say a bias, of a shape that broadcasts. It may come at any place in the
        order: a program that starts from the bias rounds it with every product.
    roundings: how many more the program may make on the way, for instance by a factor known to both sides.
    """

    def product(x, y):
        return np.einsum(pattern, x, y, optimize=True)

    names, out = pattern.split("->")
    left, right = names.split(",")
    sizes = dict(zip(left + right, a.mid.shape + b.mid.shape, strict=True))
    n = int(np.prod([sizes[name] for name in sizes.keys() - set(out)])) + len(added)
    mid = product(a.mid, b.mid) + sum(term.mid for term in added)
    size = product(a.size, b.size) + sum(term.size for term in added)
    rad = product(np.abs(a.mid), b.rad) + product(a.rad, b.size) + sum(term.rad for term in added)
    return Ball(mid, rad + gamma(n + roundings) * size + n * UNDERFLOW)


def relu(x: Ball) -> Ball:
    """max(x, 0): exact, no two values move apart, and what is surely negative becomes 0 without an error."""
    return Ball(np.maximum(x.mid, 0), np.minimum(x.rad, np.maximum(x.mid + x.rad, 0)))


def softmax(scores: Ball) -> Ball:
    """Along the last axis, after subtraction of whatever maximum the program found; -inf stands for a masked entry.

    With scores off by at most e, every weight is off by a factor of at most exp(2 e), as the sum is by exp(e).
    """
    shift = scores.mid.max(-1, keepdims=True)
    shifted = np.where(np.isneginf(scores.mid), 0, scores.mid - shift)
    n = scores.mid.shape[-1]
    off = (scores.rad + UNIT * (np.abs(shifted) + 2 * scores.rad.max(-1, keepdims=True))).max(-1, keepdims=True)
    weights = np.exp(scores.mid - shift)
    weights /= weights.sum(-1, keepdims=True)
    relative = np.expm1(2 * off + 2 * FUNCTION_ERROR + gamma(n + 3))
    return Ball(weights, weights * relative + np.where(weights > 0, UNDERFLOW, 0))


def margin(logits: Ball, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By how much the right answer leads: (B, V) balls, (B,) indices -> (B,) lead at the midpoints, (B,) at least.

    Where the second is positive, every program that the balls cover gives the right answer.
    """
    rows = np.arange(len(right))
    own = logits[rows, right]
    others = np.ones_like(logits.mid, dtype=bool)
    others[rows, right] = False
    nearest = np.where(others, logits.mid, -np.inf).max(1)
    strongest = np.where(others, logits.mid + logits.rad, -np.inf).max(1)
    return own.mid - nearest, own.mid - own.rad - strongest
