"""Addresses against the source's loops; each scheme against what defines it."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from arithlib.models.positions import (
    SCHEMES,
    Offsets,
    Positions,
    addresses,
    coupled,
    far_columns,
    number_index,
    rotate,
    rotation,
    spread_offsets,
)
from arithlib.tokenizer import ALPHABET, CharacterTokenizer

TOKENIZER = CharacterTokenizer()


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def slow_index(text):
    index, run = [], 0
    for character in text:
        run = run + 1 if character.isdigit() else 0
        index.append(run)
    return index


@given(st.lists(st.text(ALPHABET, min_size=12, max_size=12), min_size=1, max_size=4), st.integers(0, 50))
def test_addresses_are_those_of_counting_along_each_text(texts, offset):
    tokens = TOKENIZER.encode_batch(texts, end=False)
    assert number_index(tokens).tolist() == [slow_index(text) for text in texts]
    shifted = addresses(tokens, torch.tensor([[offset]]))
    assert shifted.tolist() == [[i + offset if i else 0 for i in slow_index(text)] for text in texts]


def test_the_example_of_source_002_has_its_addresses():
    tokens = TOKENIZER.encode_batch(["321+654="], end=False)
    assert addresses(tokens, torch.tensor([[0]])).tolist() == [[1, 2, 3, 0, 1, 2, 3, 0]]
    assert addresses(tokens, torch.tensor([[38]])).tolist() == [[39, 40, 41, 0, 39, 40, 41, 0]]


def test_digits_of_one_significance_share_an_address_and_coupling_gives_operators_one_too():
    tokens = TOKENIZER.encode_batch(["321+65=683$"], end=False)
    assert coupled(tokens, torch.tensor([[5]])).tolist() == [[7, 8, 9, 6, 7, 8, 6, 7, 8, 9, 0]]


def test_far_columns_of_a_sum_by_hand():
    """123 + 456 = 579, least significant digit first, one column to either side; `=` writes the first column."""
    tokens = TOKENIZER.encode_batch(["321+654=975$"], end=False)
    wanted = [
        *("1", "11", "011", "1111", "11011", "111111", "0111011", "11011101"),
        *("111111111", "0111011101", "00110011001"),
    ]
    near = ~far_columns(tokens, 1)[0]
    assert ["".join(str(int(one)) for one in row[: i + 1]) for i, row in enumerate(near[:11])] == wanted
    assert not far_columns(tokens, 3).any()


def test_far_columns_are_those_of_counting_in_sums_of_any_lengths():
    texts = ["321+65=683$", "9+1234=0234$"]
    tokens = TOKENIZER.encode_batch(texts, end=False)
    for row, text in zip(far_columns(tokens, 2).tolist(), texts, strict=True):
        index = slow_index(text)
        stands = [i + (place >= text.index("=")) for place, i in enumerate(index)]
        for query, key in itertools.product(range(len(text)), repeat=2):
            apart = abs(stands[query] - index[key]) > 2
            assert row[query][key] == (index[key] > 0 and stands[query] > 0 and apart)


def test_a_row_without_digits_has_address_zero_throughout():
    assert addresses(TOKENIZER.encode_batch(["+=$"]), torch.tensor([[9]])).tolist() == [[0, 0, 0, 0]]


def test_each_policy_draws_what_it_says():
    assert Offsets("fixed", value=7).draw(5, generator()).tolist() == [[7]]
    batch = Offsets("per batch", k=10)
    assert {int(batch.draw(5, generator(seed)).squeeze()) for seed in range(200)} == set(range(10))
    sample = Offsets("per sample", k=10).draw(500, generator())
    assert sample.shape == (500, 1) and set(sample.flatten().tolist()) == set(range(10))
    assert Offsets("redrawn", k=10).draw(500, generator()).unique().tolist() == list(range(10))
    assert torch.equal(sample, Offsets("per sample", k=10).draw(500, generator()))


def test_offsets_that_cannot_cover_a_length_are_refused():
    Offsets("per batch", k=100).require(21, 121)
    with pytest.raises(
        ValueError, match="21 digits under an offset of up to 99 needs address 120; the table ends at 119"
    ):
        Offsets("per batch", k=100).require(21, 120)
    with pytest.raises(ValueError, match="needs address 60; the table ends at 50"):
        Offsets("fixed", value=20).require(40, 51)
    Positions("abacus", 8, 2, 121, 4).require(Offsets(k=100), 21)
    Positions("none", 8, 2, 4, 4).require(Offsets(k=100), 21)
    with pytest.raises(ValueError, match="needs address 121; the table ends at 120"):
        Positions("coupling", 8, 2, 121, 4).require(Offsets(k=100), 21)
    with pytest.raises(ValueError, match="choose one of fixed, per batch, per sample, redrawn"):
        Offsets("random")
    with pytest.raises(ValueError, match="k is at least 1"):
        Offsets(k=0)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_later_tokens_alone_are_placed_as_in_the_whole_text(scheme):
    positions = Positions(scheme, d_model=16, n_heads=2, n_rows=40, n_ctx=32)
    tokens, offset = TOKENIZER.encode_batch(["321+654=", "12+9876="], end=False), torch.tensor([[3], [11]])
    whole, later = positions(tokens, offset), positions(tokens, offset, start=6)
    for name, axis in (("embedding", -2), ("on_qk", 1), ("bias", 1)):
        a, b = getattr(whole, name), getattr(later, name)
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a.narrow(axis, 6, 2), b)
    if whole.rotation is not None:
        torch.testing.assert_close(whole.rotation[0][6:], later.rotation[0])
    assert sum(getattr(whole, name) is not None for name in ("embedding", "on_qk", "rotation", "bias")) == len(
        positions.parts - {"none"}
    )


def test_rotated_scores_depend_on_distance_alone():
    q, k = torch.randn(2, 1, 1, 1, 8, generator=generator(), dtype=torch.float64)

    def score(i, j):
        turned = [rotate(x, *rotation(torch.tensor([place]), 8)) for x, place in ((q, i), (k, j))]
        return float((turned[0] * turned[1]).sum())

    assert score(9, 4) == pytest.approx(score(25, 20), rel=1e-5) != pytest.approx(score(9, 5), rel=1e-3)
    assert score(3, 3) == pytest.approx(float((q * k).sum()))


def test_fire_is_its_formula():
    fire = Positions("fire", 8, 2, 4, 4).fire
    bias = fire(torch.arange(700), torch.arange(700))
    for i, j in ((5, 2), (699, 3), (40, 40)):
        share = torch.log(0.1 * torch.tensor(float(i - j)) + 1) / torch.log(0.1 * torch.tensor(max(i, 512.0)) + 1)
        torch.testing.assert_close(bias[:, i, j], fire.mlp(share[None]))


def test_unknown_schemes_and_texts_longer_than_learned_places_are_refused():
    with pytest.raises(ValueError, match="positions = 'abacuss': choose one of none"):
        Positions("abacuss", 8, 2, 4, 4)
    with pytest.raises(ValueError, match="8 tokens, but learned places end at 4"):
        Positions("learned", 8, 2, 4, 4)(TOKENIZER.encode_batch(["321+654="], end=False), None)


@given(st.integers(1, 40), st.integers(1, 119), st.integers(120, 300))
def test_spread_offsets_are_distinct_and_leave_every_column_a_trained_row(count, digits, last_row):
    values = [policy.value for policy in spread_offsets(count, digits, last_row)]
    room = last_row - digits - 1
    assert values == sorted(set(values)) and 0 <= values[0] and values[-1] <= room
    assert len(values) == min(count, room + 1)


def test_no_offset_is_invented_where_a_sum_does_not_fit():
    assert [policy.value for policy in spread_offsets(3, 119, 120)] == [0]
    with pytest.raises(ValueError, match="sums of 120 digits within rows up to 120"):
        spread_offsets(3, 120, 120)
