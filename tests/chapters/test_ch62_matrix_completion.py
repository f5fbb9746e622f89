"""What settles a table of sums: against linear algebra, by hand, and by counting."""

import numpy as np
import pytest

from chapters.ch62_matrix_completion import (
    determined,
    entries_needed,
    entries_settling,
    fill,
    fillable,
    share_connected,
    sum_table,
)


def settled_by_algebra(seen):
    """An entry is settled if its equation r_a + c_b follows from those seen: by ranks."""
    n = len(seen)
    rows = np.concatenate([np.repeat(np.eye(n), n, 0), np.tile(np.eye(n), (n, 1))], 1)
    known = rows[seen.ravel()]
    rank = np.linalg.matrix_rank(known) if len(known) else 0
    return np.array([np.linalg.matrix_rank(np.vstack([known, row])) == rank for row in rows]).reshape(n, n)


@pytest.mark.parametrize("entries", [0, 1, 3, 5, 7, 9, 14])
def test_what_is_determined_is_what_follows_from_the_equations(entries):
    for seed in range(5):
        seen = np.random.default_rng(seed).permutation(25).reshape(5, 5) < entries
        assert np.array_equal(determined(seen), settled_by_algebra(seen))


def test_the_rule_for_sums_fills_with_sums_and_the_rule_for_products_with_products():
    generator = np.random.default_rng(0)
    sums, products = sum_table(12), np.outer(generator.integers(1, 9, 12), generator.integers(1, 9, 12))
    for seed in range(5):
        seen = np.random.default_rng(seed).random((12, 12)) < 0.4
        for values, rule, other in ((sums, "sums", "products"), (products, "products", "sums")):
            filled, known = fill(values, seen, rule)
            np.testing.assert_allclose(filled[known], values[known])
            assert np.isnan(filled[~known]).all() and (known >= seen).all() and known.sum() > seen.sum()
            assert not np.allclose(fill(values, seen, other)[0][known], values[known])
            assert np.array_equal(fillable(seen), known)
        assert (known <= determined(seen)).all(), "no rule knows what is not settled"


def test_filling_goes_on_until_no_block_has_a_single_hole():
    seen = np.zeros((6, 6), bool)
    seen[0, :] = seen[:, 0] = True
    assert fill(sum_table(6), seen, "sums")[1].all()
    seen[0, 3] = False  # a cut that no block of neighbours leads across
    known = fill(sum_table(6), seen, "sums")[1]
    blocks = known[:-1, :-1].astype(int) + known[1:, :-1] + known[:-1, 1:] + known[1:, 1:]
    assert not (blocks == 3).any() and not known.all()


def test_entries_needed_is_the_first_number_at_which_it_is_complete():
    for seed in range(5):
        needed = entries_needed(8, lambda seen: determined(seen).all(), np.random.default_rng(seed))
        rank = np.random.default_rng(seed).permutation(64).reshape(8, 8)
        slow = next(m for m in range(65) if determined(rank < m).all())
        assert needed == slow


def test_the_law_of_connection_is_that_of_random_tables():
    needed = [entries_needed(60, lambda seen: determined(seen).all(), np.random.default_rng(s)) for s in range(120)]
    for level in (0.25, 0.5, 0.75):
        entries = np.quantile(needed, level)
        assert share_connected(60, entries) == pytest.approx(level, abs=0.15)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_the_law_of_the_giant_component_is_that_of_single_entries(share):
    n, entries = 300, round(entries_settling(300, share))
    ranks = [np.random.default_rng(seed).permutation(n * n).reshape(n, n) for seed in range(20)]
    assert np.mean([determined(rank < entries)[rank >= entries].mean() for rank in ranks]) == pytest.approx(
        share, abs=0.03
    )
