"""The sums that source 002 asks of its model: what its seed fixes of them (chapters 33 and 34)."""

import random
from collections.abc import Sequence

import numpy as np

SEED, COUNT = 42, 100  # of its test_grid.py: drawn anew for each pair of lengths


def carry_shares(side: Sequence[int]) -> np.ndarray:
    """(N, N) share of the sums that have a digit more than both operands, for each pair of lengths in side."""
    return np.array([[_share(n, m) for m in side] for n in side])


def _share(n: int, m: int) -> float:
    draw = random.Random(SEED).randint
    low = [0 if digits == 1 else 10 ** (digits - 1) for digits in (n, m)]
    sums = [draw(low[0], 10**n - 1) + draw(low[1], 10**m - 1) for _ in range(COUNT)]
    return sum(total >= 10 ** max(n, m) for total in sums) / COUNT
