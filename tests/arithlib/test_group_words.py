"""Groups and words against permutations multiplied by hand."""

from itertools import permutations, product

import pytest
import torch

from arithlib.tasks.group_words import alternating, cyclic, symmetric

GROUPS = [symmetric(5), alternating(5), cyclic(60), cyclic(113), symmetric(3)]


def by_name(group):
    return group.name


@pytest.mark.parametrize("group", GROUPS, ids=by_name)
def test_the_table_is_that_of_a_group(group):
    table, P = group.table, group.order
    assert (table[0] == torch.arange(P)).all() and (table[:, 0] == torch.arange(P)).all()
    assert (table.sort(0).values == torch.arange(P)[:, None]).all()  # every element can be divided by
    assert (table[table] == table[torch.arange(P)[:, None, None], table]).all()  # (a ∘ b) ∘ c = a ∘ (b ∘ c)


def test_the_orders_and_which_groups_commute():
    assert [group.order for group in GROUPS] == [120, 60, 60, 113, 6]
    assert [bool((group.table == group.table.T).all()) for group in GROUPS] == [False, False, True, True, False]


def test_products_of_permutations_are_those_of_python():
    group, elements = symmetric(4), list(permutations(range(4)))
    words = group.words(7, 50, torch.Generator().manual_seed(0))
    for word, running in zip(words.tolist(), group.running_products(words).tolist(), strict=True):
        composed = (0, 1, 2, 3)
        for letter, expected in zip(word, running, strict=True):
            composed = tuple(composed[i] for i in elements[letter])
            assert composed == elements[expected]


def test_products_in_a_cyclic_group_are_sums():
    words = torch.tensor(list(product(range(5), repeat=3)))
    assert (cyclic(5).product(words) == words.sum(1) % 5).all()


@pytest.mark.parametrize("group", [cyclic(5), symmetric(3), alternating(4)], ids=by_name)
def test_the_distribution_of_products_is_that_of_all_words(group):
    letters = [1, 1, group.order - 1]  # one of them twice as likely
    words = torch.tensor(letters)[torch.tensor(list(product(range(3), repeat=5)))]
    counted = torch.stack([running.bincount(minlength=group.order) for running in group.running_products(words).T])
    assert torch.allclose(group.distribution(letters, 5), counted.double() / len(words))


def test_words_are_seeded_and_use_every_letter():
    draw = [cyclic(7).words(9, 100, torch.Generator().manual_seed(seed)) for seed in (3, 3, 4)]
    assert draw[0].equal(draw[1]) and not draw[0].equal(draw[2])
    assert draw[0].unique().tolist() == list(range(7))


@pytest.mark.parametrize("make", [lambda: cyclic(1), lambda: symmetric(1), lambda: alternating(2)])
def test_a_group_of_one_element_is_refused(make):
    with pytest.raises(ValueError, match="at least 2"):
        make()
