"""Modular addition against plain Python loops."""

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from arithlib.tasks.modular import ModularAddition, merge_mirrored

tasks = st.builds(
    ModularAddition,
    p=st.integers(3, 40),
    train_fraction=st.floats(0.15, 0.85),
    data_seed=st.integers(0, 2**31),
)


@given(tasks)
def test_training_and_test_pairs_are_all_pairs_once(task):
    both = [tuple(pair) for pair in torch.cat([task.train_pairs, task.test_pairs]).tolist()]
    assert Counter(both) == Counter((a, b) for a in range(task.p) for b in range(task.p))
    assert len(task.train_pairs) == int(task.train_fraction * task.p**2)


def test_the_bits_of_the_training_pairs_are_their_mask():
    task = ModularAddition(p=7)
    bits = "".join(f"{byte:08b}" for byte in task.training_bits())
    assert bits == "".join(str(int(trains)) for trains in task.train_mask) + 7 * "0"


@given(tasks)
def test_answers_and_tokens_are_those_of_python(task):
    for (a, b), answer, row in zip(
        task.pairs.tolist(), task.answers(task.pairs).tolist(), task.tokens(task.pairs).tolist(), strict=True
    ):
        assert answer == (a + b) % task.p
        assert row == [a, b, task.p]


def test_thirty_per_cent_of_12769_pairs_are_3830():
    assert len(ModularAddition().pairs) == 12_769
    assert len(ModularAddition().train_pairs) == 3830


def test_the_data_seed_alone_decides_the_split():
    assert torch.equal(ModularAddition(data_seed=1).train_mask, ModularAddition(data_seed=1).train_mask)
    assert not torch.equal(ModularAddition(data_seed=1).train_mask, ModularAddition(data_seed=2).train_mask)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=50))
def test_merging_mirrored_pairs_counts_each_unordered_pair(pairs):
    merged, counts = merge_mirrored(torch.tensor(pairs))
    expected = Counter(tuple(sorted(pair)) for pair in pairs)
    assert dict(zip(map(tuple, merged.tolist()), counts.tolist(), strict=True)) == expected


@pytest.mark.parametrize("p", [2, 0, -5, 7.5])
def test_a_modulus_below_three_is_refused(p):
    with pytest.raises(ValueError, match="the modulus must be an integer of at least 3"):
        ModularAddition(p=p)


@pytest.mark.parametrize("fraction", [0, 1, -0.1, 1.5, float("nan")])
def test_a_fraction_outside_the_open_unit_interval_is_refused(fraction):
    with pytest.raises(ValueError, match="must lie strictly between 0 and 1"):
        ModularAddition(train_fraction=fraction)


def test_a_fraction_that_leaves_no_training_pair_is_refused():
    with pytest.raises(ValueError, match="leaves no training pair among 9"):
        ModularAddition(p=3, train_fraction=0.05)
