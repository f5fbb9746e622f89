"""All ordered pairs of numbers, a random share of which trains: what the tasks on two numbers have in common.

Dimensions: n numbers, B pairs.
"""

from functools import cached_property

import numpy as np
import torch
from torch import Tensor


class SplitPairs:
    """Every ordered pair (a, b) of the numbers 0 to n - 1, split at random into training and test pairs.

    Frozen dataclasses that inherit from it have the fields train_fraction, strictly between 0 and 1, and data_seed,
    which pairs those are, and say in n_numbers how many numbers there are.
    """

    n_numbers: int
    train_fraction: float
    data_seed: int

    def __post_init__(self):
        fraction, count = self.train_fraction, self.n_numbers**2
        if not 0 < fraction < 1:
            raise ValueError(
                f"train_fraction = {fraction!r}: must lie strictly between 0 and 1, "
                "so that both the training and the test set have pairs"
            )
        if not int(fraction * count):
            raise ValueError(f"train_fraction = {fraction!r} leaves no training pair among {count}")

    @cached_property
    def pairs(self) -> Tensor:
        """(n * n, 2) every ordered pair (a, b), a slowest."""
        return torch.cartesian_prod(torch.arange(self.n_numbers), torch.arange(self.n_numbers))

    @cached_property
    def train_mask(self) -> Tensor:
        """(n * n,) True where the pair of that row of `pairs` trains; floor(train_fraction * n * n) of them."""
        shuffled = torch.randperm(len(self.pairs), generator=torch.Generator().manual_seed(self.data_seed))
        mask = torch.zeros(len(self.pairs), dtype=torch.bool)
        mask[shuffled[: int(self.train_fraction * len(self.pairs))]] = True
        return mask

    def training_bits(self) -> bytes:
        """`train_mask`, one bit a pair: the highest bit of a byte comes first, and zeros fill the last."""
        return np.packbits(self.train_mask.numpy()).tobytes()

    @property
    def train_pairs(self) -> Tensor:
        """(B, 2) the training pairs, in the order of `pairs`."""
        return self.pairs[self.train_mask]

    @property
    def test_pairs(self) -> Tensor:
        """(B, 2) every pair that does not train."""
        return self.pairs[~self.train_mask]
