"""Words over a finite group, with their product and all running products (source 003, section 2.2.2).

A group is its multiplication table: element 0 is the identity, `table[a, b]` is a ∘ b.

Dimensions: B words, N letters of a word, P elements of the group.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import torch
from torch import Tensor


@dataclass(frozen=True)
class Group:
    """A finite group.

    name: as written in figures. table: (P, P) products, element 0 the identity.
    """

    name: str
    table: Tensor

    @property
    def order(self) -> int:
        """How many elements the group has."""
        return len(self.table)

    def words(self, n: int, count: int, generator: torch.Generator) -> Tensor:
        """(count, n) independent uniform letters."""
        return torch.randint(self.order, (count, n), generator=generator)

    def distribution(self, letters: Sequence[int], n: int) -> Tensor:
        """(n, P) probability of each product of 1, 2, ..., n letters, each drawn alike from `letters`.

        >>> cyclic(5).distribution([1, 2], 2)[1].tolist()
        [0.0, 0.0, 0.25, 0.5, 0.25]
        """
        step = torch.zeros(self.order, self.order, dtype=torch.float64)
        for letter in letters:
            step[torch.arange(self.order), self.table[:, letter]] += 1 / len(letters)
        rows = [step[0]]
        for _ in range(n - 1):
            rows.append(rows[-1] @ step)
        return torch.stack(rows)

    def running_products(self, words: Tensor) -> Tensor:
        """(B, N) words -> (B, N) the product of the first 1, 2, ..., N letters, from the left.

        >>> cyclic(60).running_products(torch.tensor([[40, 30, 1]]))
        tensor([[40, 10, 11]])
        """
        products = words.clone()
        for i in range(1, words.shape[1]):
            products[:, i] = self.table[products[:, i - 1], words[:, i]]
        return products

    def product(self, words: Tensor) -> Tensor:
        """(B, N) words -> (B,) the product of all letters."""
        return self.running_products(words)[:, -1]


def cyclic(order: int) -> Group:
    """Z_order: addition mod `order`. Raises ValueError for an order below 2."""
    if order < 2:
        raise ValueError(f"order = {order}: a group with something to multiply has at least 2 elements")
    residues = torch.arange(order)
    return Group(f"Z{order}", (residues[:, None] + residues) % order)


def symmetric(degree: int) -> Group:
    """S_degree: all permutations in lexicographic order; a ∘ b applies b first."""
    return _permutation_group(f"S{degree}", list(permutations(range(degree))))


def alternating(degree: int) -> Group:
    """A_degree: the even permutations in lexicographic order; a ∘ b applies b first."""
    return _permutation_group(f"A{degree}", [g for g in permutations(range(degree)) if _is_even(g)])


def _permutation_group(name: str, elements: list[tuple[int, ...]]) -> Group:
    if len(elements) < 2:
        raise ValueError(f"{name} has {len(elements)} element: a group with something to multiply has at least 2")
    index = {g: number for number, g in enumerate(elements)}
    return Group(name, torch.tensor([[index[tuple(a[i] for i in b)] for b in elements] for a in elements]))


def _is_even(g: tuple[int, ...]) -> bool:
    inversions = sum(g[i] > g[j] for j in range(len(g)) for i in range(j))
    return inversions % 2 == 0
