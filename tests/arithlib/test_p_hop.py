"""p-hop sequences against the definition, read word for word."""

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from arithlib.tasks.p_hop import Hops, find


def find_1(v, i):
    """Definition A.1; v counts from 1."""
    return max([0] + [j for j in range(2, i + 1) if v[j - 1] == v[i]])


def find_p(v, i, p):
    for _ in range(p):
        i = find_1(v, i) if i else 0
    return i


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(0, 5))
def test_find_is_the_definition(tokens, p):
    v = dict(enumerate(tokens, 1))
    assert find(torch.tensor([tokens]), p)[0].tolist() == [find_p(v, i, p) for i in v]


@given(st.integers(1, 8), st.integers(0, 6), st.integers(2, 5), st.integers(0, 1000))
def test_every_hop_is_there_and_leads_to_the_left(p, more, alphabet, seed):
    task = Hops(p, 2 * p + 1 + more, alphabet)
    tokens = task.sample(20, torch.Generator().manual_seed(seed))
    assert tokens.shape == (20, task.n) and tokens.min() >= 0 and tokens.max() < alphabet
    places = torch.stack([find(tokens, hops)[:, -1] for hops in range(p + 1)], 1)
    assert (places[:, 1:] < places[:, :-1]).all() and (places > 0).all()
    for row, answer in zip(tokens.tolist(), task.answers(tokens).tolist(), strict=True):
        v = dict(enumerate(row, 1))
        assert answer == v[find_p(v, task.n, p)]


def test_answers_and_places_are_spread():
    tokens = Hops(3, 20).sample(4000, torch.Generator().manual_seed(0))
    assert min(Counter(Hops(3, 20).answers(tokens).tolist()).values()) > 900
    assert set(find(tokens, 1)[:, -1].tolist()) == set(range(6, 20))
    assert set(find(tokens, 3)[:, -1].tolist()) == set(range(2, 16))


def test_nowhere_is_said():
    assert Hops(2, 5).answers(torch.tensor([[0, 1, 2, 3, 0], [0, 1, 0, 1, 0]])).tolist() == [-1, 0]


@pytest.mark.parametrize("wrong", [{"p": 0}, {"p": 3, "n": 6}, {"p": 1, "alphabet": 1}])
def test_what_cannot_be_drawn_is_refused(wrong):
    with pytest.raises(ValueError, match="at least"):
        Hops(**wrong)
