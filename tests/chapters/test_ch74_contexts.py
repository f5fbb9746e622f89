"""The list of situations is complete, and nothing in it is made up."""

import random

import pytest
import torch

from chapters.ch74_contexts import every_context, witness
from chapters.ch74_experiments import encode
from chapters.ch74_grid import contexts
from chapters.ch74_running_totals import RunningTotals, stress_totals

TASK = RunningTotals(max_digits=5, max_count=5)


def codes(keys, following):
    """One integer for each situation and the token that follows."""
    return ((torch.cat([keys, following[:, None]], 1) + 1) * 16 ** torch.arange(9)).sum(1)


def met(sums):
    query, keys, following = contexts(encode(TASK, sums))
    assert torch.equal(query, keys[:, 5])
    return codes(keys, following)


def test_whatever_occurs_in_a_sum_is_listed_with_what_follows():
    rng = random.Random(0)
    sums = [TASK.sample(rng) for _ in range(2000)]
    sums += [numbers for d in range(1, 7) for n in range(1, 7) for numbers in stress_totals(d, n, 12, rng)[0]]
    sums += [[a, b, c] for a in range(0, 120, 7) for b in range(0, 120, 11) for c in range(0, 120, 29)]
    assert torch.isin(met(sums), codes(*every_context())).all()


def test_nothing_is_listed_twice_and_no_situation_has_two_answers():
    keys, following = every_context()
    alone = codes(keys, torch.zeros_like(following))
    assert len(alone.unique()) == len(keys)


def test_a_witness_leads_to_its_situation():
    keys, following = every_context()
    wanted = codes(keys, following)
    drawn = torch.randint(len(keys), (60,), generator=torch.Generator().manual_seed(1))
    special = ((keys == -1).sum(1) >= 4).nonzero()[:, 0]  # ends and starts
    for row in [*drawn.tolist(), *special[:: max(len(special) // 60, 1)].tolist()]:
        numbers = witness(keys[row].tolist())
        assert len(numbers) <= 3 and max(numbers) < 10_000
        assert (met([numbers]) == wanted[row]).any(), (keys[row].tolist(), numbers)


def test_a_situation_that_cannot_be_has_no_witness():
    with pytest.raises(ValueError, match="no sum"):
        witness([2, 2, 1, 1, -1, 9, 3, 3])  # 3 + 2 gives 5 or 6, not 9
