"""Modular addition: every pair (a, b) with 0 <= a, b < p, labelled (a + b) mod p (Nanda et al. 2023, section 3).

Dimensions: B pairs. Tokens 0..p-1 are the residues, token p is '='.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from arithlib.settings import of_kind
from arithlib.tasks.pairs import SplitPairs


@of_kind("modular-addition")
@dataclass(frozen=True)
class ModularAddition(SplitPairs):
    """The task `a + b = ? (mod p)` with a random share of all p * p ordered pairs as training set.

    p: modulus, at least 3; the number of residues.
    train_fraction: share of the pairs that trains, strictly between 0 and 1; floor(train_fraction * p * p) pairs.
    data_seed: which pairs those are. The model's own seed is separate.
    """

    p: int = 113
    train_fraction: float = 0.3
    data_seed: int = 0

    def __post_init__(self):
        if not isinstance(self.p, int) or self.p < 3:
            raise ValueError(f"p = {self.p!r}: the modulus must be an integer of at least 3")
        super().__post_init__()

    @property
    def n_numbers(self) -> int:
        """p, the residues 0 to p - 1."""
        return self.p

    def answers(self, pairs: Tensor) -> Tensor:
        """(B, 2) pairs -> (B,) residues (a + b) mod p.

        >>> ModularAddition(p=12).answers(torch.tensor([[10, 6]]))
        tensor([4])
        """
        return pairs.sum(1) % self.p

    def tokens(self, pairs: Tensor) -> Tensor:
        """(B, 2) pairs -> (B, 3) token rows [a, b, '=']."""
        return torch.cat([pairs, torch.full_like(pairs[:, :1], self.p)], 1)


def merge_mirrored(pairs: Tensor) -> tuple[Tensor, Tensor]:
    """Fold (a, b) and (b, a) into one row: a model without positions cannot tell them apart.

    pairs: (B, 2). Returns the (M, 2) distinct unordered pairs, smaller entry first, and the (M,) counts.

    >>> merge_mirrored(torch.tensor([[1, 2], [2, 1], [3, 3]]))
    (tensor([[1, 2],
            [3, 3]]), tensor([2, 1]))
    """
    return torch.unique(pairs.sort(1).values, dim=0, return_counts=True)
