"""The source's own sums: how many carry out."""

import numpy as np
import pytest

from chapters.ch33_source_test import COUNT, carry_shares


def expected(n, m):
    """The share of all sums of two numbers of so many digits that carry out, by enumeration."""
    first, second = (np.arange(0 if digits == 1 else 10 ** (digits - 1), 10**digits) for digits in (n, m))
    return (np.add.outer(first, second) >= 10 ** max(n, m)).mean()


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 2), (2, 1), (2, 2), (3, 2), (3, 3)])
def test_as_many_sums_carry_out_as_a_sample_of_all_has(n, m):
    share = carry_shares([1, 2, 3])[n - 1, m - 1]
    p = expected(n, m)
    assert abs(share - p) <= 3 * (p * (1 - p) / COUNT) ** 0.5


def test_a_pair_of_lengths_has_its_sums_whatever_stands_beside_it():
    assert carry_shares([1, 7, 20])[1:, 1:].tolist() == carry_shares([7, 20]).tolist()
