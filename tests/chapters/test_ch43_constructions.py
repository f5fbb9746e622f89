"""Weights written by hand, against what they are meant to compute and against the same layer in plain loops."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from short_runs import seeded

from arithlib.tasks.group_words import alternating, cyclic, symmetric
from arithlib.tasks.p_hop import Hops, find
from chapters.ch43_constructions import (
    CotLooper,
    Decoder,
    GroupComposer,
    Hopper,
    Layer,
    apply,
    argmax_network,
    as_one_layer,
    bits,
    decode_and_embed,
    gate_network,
    random_decoder,
    random_layer,
    run,
    with_dummy,
)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)


# --- a layer ---


def test_a_layer_is_algorithm_1_and_a_network():
    layer, x = random_layer(5, 2, 3, 7, seeded()), normal(1, 4, 5)
    expected = x[0].clone()
    for i in range(4):
        for W_Q, W_K, W_V, W_O in zip(layer.W_Q, layer.W_K, layer.W_V, layer.W_O, strict=True):
            weight = [math.exp((W_Q @ x[0, i]) @ (W_K @ x[0, j])) for j in range(i + 1)]
            mixed = sum(w / sum(weight) * (W_V @ x[0, j]) for j, w in enumerate(weight))
            expected[i] += W_O.T @ mixed
    hidden = (expected @ layer.W_1.T + layer.b_1).clamp(min=0)
    torch.testing.assert_close(layer(x)[0], expected + hidden @ layer.W_2.T + layer.b_2)


def test_a_layer_in_another_precision_is_the_same_layer():
    layer, x = random_layer(5, 2, 3, 7, seeded()), normal(2, 4, 5)
    single = layer.to(torch.float32)(x.float())
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), layer(x), rtol=1e-4, atol=1e-4)


def test_bits_are_those_of_python():
    codes = bits(torch.arange(20), 5)
    assert [sum(1 << k for k in range(5) if code[k] > 0) for code in codes.tolist()] == list(range(20))
    assert set(codes.flatten().tolist()) == {-1.0, 1.0}


# --- theorem 2.1 ---


@pytest.mark.parametrize("group", [symmetric(3), cyclic(2), cyclic(5), alternating(4)], ids=lambda group: group.name)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_every_short_word_is_multiplied(group, n):
    words = torch.cartesian_prod(*[torch.arange(group.order)] * n).view(-1, n)[:3000]
    assert GroupComposer(group, n)(words).equal(group.product(words))


@given(st.integers(1, 40), st.sampled_from([symmetric(4), cyclic(13), alternating(4)]), st.integers(0, 100))
def test_long_words_are_multiplied_in_as_many_loops_as_the_theorem_says(n, group, seed):
    composer, words = GroupComposer(group, n), group.words(n, 4, seeded(seed))
    assert composer.loops == math.ceil(math.log2(n))
    assert composer(words).equal(group.product(words))


@pytest.mark.parametrize("n", [5, 8, 64])
def test_the_sizes_are_those_of_the_theorem(n):
    composer, bits_n = GroupComposer(symmetric(5), n), math.ceil(math.log2(n + 1))
    H, _, D = composer.layer.W_Q.shape
    assert (H, D, len(composer.layer.W_1)) == (2, 3 * (7 + bits_n), 120**2 + 6 * 7)


def test_no_loop_changes_the_product_of_all_tokens():
    group = symmetric(4)
    composer, words = GroupComposer(group, 11), group.words(11, 20, seeded())
    states = composer.states(words)
    for state in states:
        assert group.product(state).equal(group.product(words))
    assert (states[-1, :, :-1] == 0).all()  # and at the end only one token is left


def test_a_loop_too_few_leaves_half_of_the_word():
    group = symmetric(5)
    composer, words = GroupComposer(group, 16), group.words(16, 200, seeded())
    assert composer(words, composer.loops - 1).equal(group.product(words[:, 8:]))


def test_single_precision_is_enough():
    group = symmetric(4)
    composer, words = GroupComposer(group, 33), group.words(33, 50, seeded())
    composer.layer = composer.layer.to(torch.float32)
    assert composer(words).equal(group.product(words))


def test_a_soft_attention_is_not_enough():
    group = symmetric(4)
    words = group.words(33, 50, seeded())
    assert (GroupComposer(group, 33, sharp=1.0)(words) != group.product(words)).any()


# --- theorem 2.2 ---


@pytest.mark.parametrize("order", [[0], [0] * 5, [1, 0], [0, 1, 0, 1, 1, 0], [0, 1, 2, 2, 1, 0]])
def test_a_looped_layer_is_the_layers_in_their_order(order):
    R = max(order) + 1
    layers, x = [random_layer(8, 2, 4, 16, seeded(r)) for r in range(R)], normal(3, 7, 8)
    looped = as_one_layer(layers, order, bound=1e6)
    there, here = run([layers[r] for r in order], x), run([looped] * len(order), with_dummy(x, R, order[0]))
    for expected, found in zip(there, here, strict=True):
        torch.testing.assert_close(found[:, 1:, :8], expected, rtol=0, atol=1e-10)
        assert (found[:, 0, :8] == 0).all()
    H, K, D = looped.W_Q.shape
    assert (H, K, D) == (R * 2, 4 + 1, 8 + R + 2)
    assert len(looped.W_1) == R * 16 + len(order) + 2 + R


def test_the_order_matters():
    layers, x = [random_layer(8, 2, 4, 16, seeded(r)) for r in range(2)], normal(3, 7, 8)
    looped = as_one_layer(layers, [1, 0, 0], bound=1e6)
    found = run([looped] * 3, with_dummy(x, 2, 1))[-1][:, 1:, :8]
    assert (found - run([layers[r] for r in (0, 1, 0)], x)[-1]).abs().max() > 0.1


# --- corollary 2.3 ---


def truth(tokens, p):
    place = find(tokens, p)
    return torch.where(place > 0, tokens.gather(1, (place - 1).clamp(min=0)), -1)


@given(st.integers(1, 9), st.integers(2, 20), st.integers(2, 5), st.booleans(), st.integers(0, 100))
def test_every_token_of_any_sequence_finds_what_lies_p_hops_away(p, n, alphabet, induction, seed):
    tokens = torch.randint(alphabet, (5, n), generator=seeded(seed))
    assert Hopper(p, n, alphabet, induction)(tokens).equal(truth(tokens, p))


@pytest.mark.parametrize("p", range(1, 65))
def test_the_loops_are_those_of_the_corollary(p):
    assert Hopper(p, 5).loops == math.floor(math.log2(p)) + 2
    assert Hopper(p, 5, induction=True).loops == math.ceil(math.log2(p)) + 2


@pytest.mark.parametrize("p", [2, 16, 64])
def test_a_power_of_two_takes_three_layers_of_one_head(p):
    hopper = Hopper(p, 140, induction=True)
    assert [layer.W_Q.shape[0] for layer in hopper.layers] == [1, 1, 1]
    assert hopper.looped.W_Q.shape[0] == 3


@pytest.mark.parametrize("induction", [False, True])
def test_pointers_double(induction):
    task = Hops(16, 60)
    tokens, hopper = task.sample(10, seeded()), Hopper(16, 60, induction=induction)
    pointers, _ = hopper.states(tokens)
    first = 2 if induction else 1  # loops that the first hop takes
    for s in range(hopper.loops - first + 1):
        assert pointers[first + s].equal(find(tokens, 2**s))


def test_a_loop_too_few_is_wrong():
    tokens, hopper = Hops(13, 60).sample(200, seeded()), Hopper(13, 60)
    assert (hopper(tokens, hopper.loops - 1)[:, -1] != truth(tokens, 13)[:, -1]).double().mean() > 0.5


def test_no_hop_and_a_long_text_are_refused():
    with pytest.raises(ValueError, match="at least 1 hop"):
        Hopper(0, 5)
    with pytest.raises(ValueError, match="6 tokens: this hopper is made for 5 at most"):
        Hopper(1, 5)(torch.zeros(1, 6, dtype=torch.long))


# --- lemmas B.2 to B.4 ---


@given(st.lists(st.integers(-64, 64), min_size=2, max_size=7), st.integers(0, 5))
def test_the_largest_of_numbers_that_differ_by_the_smallest_gap(numbers, p):
    x = torch.tensor(numbers, dtype=torch.float64) * 2.0**-p
    largest = max(numbers)
    if numbers.count(largest) == 1:
        expected = torch.tensor([number == largest for number in numbers]).double()
        assert apply(argmax_network(len(numbers), p), x).equal(expected)


def test_a_smaller_gap_is_too_small():
    assert not apply(argmax_network(2, 3), torch.tensor([0.0, 2.0**-4]).double()).equal(
        torch.tensor([0.0, 1.0]).double()
    )


def test_decoding_and_embedding_give_the_embedding_of_the_largest_logit():
    W_U, W_E, x = normal(6, 5), normal(5, 6, seed=1), normal(40, 6, seed=2)
    torch.testing.assert_close(apply(decode_and_embed(W_U, W_E, 20), x), W_E[(x @ W_U).argmax(-1)])


def test_the_gate_lets_one_of_two_numbers_pass():
    grid = torch.cartesian_prod(
        torch.linspace(-8, 8, 33), torch.linspace(-8, 8, 33), torch.tensor([0.0, 1.0])
    ).double()
    x, y, M = grid.T
    assert apply(gate_network(8.0), grid)[:, 0].equal(M * x + (1 - M) * y)


# --- theorem B.1 ---


@pytest.mark.parametrize("L", [1, 2, 3])
@pytest.mark.parametrize("n", [1, 5])
def test_loops_write_what_steps_of_a_chain_of_thought_write(L, n):
    decoder = random_decoder(L, V=6, n_ctx=16, generator=seeded(L))
    prompts = torch.randint(6, (30, n), generator=seeded())
    looper = CotLooper(decoder, n)
    assert len(looper.block) == L + 3
    written, states = decoder.write(prompts, 10), looper.states(prompts, 10)
    for t, state in enumerate(states):  # after t loops t tokens are there, and stay
        assert state[:, : n + t].equal(written[:, : n + t])
    assert len(written[:, n:].unique()) > 2


def test_the_decoder_writes_the_largest_logit():
    decoder = random_decoder(1, V=4, n_ctx=8, generator=seeded())
    prompts = torch.tensor([[1, 2, 3]])
    assert decoder.write(prompts, 1)[0, -1] == decoder.logits(prompts)[0, -1].argmax()
    assert isinstance(decoder, Decoder) and isinstance(decoder.layers[0], Layer)
    assert not replace(decoder, W_U=-decoder.W_U).write(prompts, 1).equal(decoder.write(prompts, 1))
