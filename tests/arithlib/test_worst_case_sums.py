"""The hard sums are as hard as their names say."""

import pytest
import torch

from arithlib.streaming import columns, contexts
from arithlib.tasks.operands import OperandTask, lengths_of, longest_carry_chain, numbers_of
from arithlib.tasks.worst_case_sums import KINDS, covering_sums, stress_sums


@pytest.mark.parametrize("digits", [2, 3, 10, 11, 500])
def test_every_kind_is_what_it_says(digits):
    a, b, kinds = stress_sums(digits, 20, torch.Generator().manual_seed(digits))
    assert a.shape == b.shape == (20, digits) and kinds == [*KINDS, *["random"] * 8]
    assert a.min() >= 0 and b.min() >= 0 and a.max() <= 9 and b.max() <= 9
    assert torch.maximum(lengths_of(a), lengths_of(b)).eq(digits).all()
    pairs = dict(zip(kinds, zip(numbers_of(a), numbers_of(b), strict=True), strict=True))
    assert pairs["nines plus one"] == (10**digits - 1, 1) == pairs["one plus nines"][::-1]
    assert pairs["nines twice"] == (10**digits - 1,) * 2
    assert sum(pairs["alternating, no carry"]) == 10**digits - 1
    assert sum(pairs["alternating, carried"]) == 10**digits
    assert sum(pairs["chain through unequal digits"]) == 10**digits
    assert pairs["plus zero"][1] == pairs["zero plus"][0] == 0
    short = 10 ** max(digits // 100, 1) - 1
    assert pairs["short second operand"][1] == pairs["short first operand"][0] == short
    chains = dict(zip(kinds, longest_carry_chain(a, b).tolist(), strict=True))
    for kind in ("nines plus one", "one plus nines", "chain through unequal digits", "alternating, carried"):
        assert chains[kind] == digits
    assert chains["carry in every other column"] == 1


@pytest.mark.parametrize(("digits", "count"), [(1, 20), (5, 3)])
def test_too_few_digits_or_sums_are_refused(digits, count):
    with pytest.raises(ValueError, match="at least"):
        stress_sums(digits, count, torch.Generator())


def situations(a, b):
    """Codes of all windows of one column in these sums: query and keys, one number each."""
    lines = columns(a, b)
    number, distance = torch.tensor([0, 0, 1, 1, 2]), torch.tensor([0, 1, 0, 1, 1])
    keys = contexts(lines, number, distance, 0, lines.shape[2] - 1)[1]
    return ((keys + 1) @ 16 ** torch.arange(5)).unique()


def test_the_covering_sums_contain_every_situation_and_none_can_be_left_out():
    a, b = covering_sums()
    assert a.shape == b.shape == (24_500, 4)
    covered = situations(a, b)
    # 100 first columns; two operands that go on or end (109 each), with a carry or without; one that ended before,
    # the other not; both ended, with a carry; and the number 0 beside anything, never with a carry.
    assert len(covered) == 100 + 2 * 109**2 + 2 * 2 * 109 + 1 + 2 * 109 + 1
    for digits in (1, 2, 3, 6, 30):
        problems = OperandTask(max_digits=digits).sample(3000, torch.Generator().manual_seed(digits))
        assert torch.isin(situations(problems.a, problems.b), covered).all()
    some = torch.arange(24_500) % 100 != 7
    assert len(situations(a[some], b[some])) < len(covered)
