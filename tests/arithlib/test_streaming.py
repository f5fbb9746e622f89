"""The linear-time form of the column transformer gives the same numbers as its forward, at any length."""

import sys

import numpy as np
import pytest
import torch

from arithlib import load, streaming
from arithlib.models.column import ANSWER, RELATIVE, ColumnConfig, ColumnTransformer
from arithlib.streaming import (
    Stream,
    any_size,
    columns,
    context_logits,
    context_mid,
    contexts,
    margins,
    reach_of,
    slots,
)
from arithlib.tasks.operands import OperandTask
from arithlib.tokenizer import ABSENT, END, EQUALS, PLUS

TASK = OperandTask(max_digits=9)
TINY = dict(d_model=8, n_heads=2, d_mlp=16)


def made(positions="window", seed=0):
    return ColumnTransformer(ColumnConfig(positions, **TINY), seed).eval().requires_grad_(False)


def sums(count=20, seed=0):
    return TASK.sample(count, torch.Generator().manual_seed(seed))


def everything(model, problems):
    lines = columns(problems.a, problems.b)
    where = slots(model, lines.shape[2])
    return *contexts(lines, *where, 0, lines.shape[2] - 1), *where


def test_columns_lie_below_one_another():
    lines = columns(torch.tensor([[5, 9, 0]]), torch.tensor([[5, 0, 0]]))
    assert lines[0, 0].tolist() == [ABSENT, 5, 9, ABSENT, ABSENT, ABSENT]
    assert lines[0, 1].tolist() == [PLUS, 5, ABSENT, ABSENT, ABSENT, ABSENT]
    assert lines[0, 2].tolist() == [EQUALS, 0, 0, 1, END, ABSENT]


@pytest.mark.parametrize("positions", RELATIVE)
def test_gathered_keys_give_the_logits_of_the_forward(positions):
    model, problems = made(positions), sums()
    query, keys, following, *where = everything(model, problems)
    answer = problems.answer_mask[:, 1:]
    forward, inside = model(problems.tokens[:, :-1], return_activations=True)
    forward = forward[answer]
    assert torch.equal(following, problems.tokens[:, 1:][answer])
    mid = context_mid(model, query, keys, *where)
    torch.testing.assert_close(mid, inside["resid_mid"][answer])
    torch.testing.assert_close(model.add_neurons(mid), inside["resid_post"][answer])
    torch.testing.assert_close(context_logits(model, query, keys, *where), forward)
    stream = Stream(model, problems.a.shape[1] + 3)
    streamed = np.stack([stream.logits(int(q), k.numpy()) for q, k in zip(query, keys, strict=True)])
    np.testing.assert_allclose(streamed, forward.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("positions", RELATIVE)
def test_streamed_decoding_writes_what_greedy_decoding_of_the_forward_writes(positions):
    model = made(positions, seed=3)
    model.unembedding.bias.data[10:] -= 0.6  # so that it writes digits for a while
    for row in range(len(problems := sums(8))):
        problem = problems[row : row + 1].trimmed()
        tokens, longest = problem.prompts(), problem.a.shape[1]
        for _ in range(longest + 2):
            tokens = torch.cat([tokens, model(tokens)[:, -1:].argmax(-1)], 1)
        written = tokens[0, problem.prompts().shape[1] :].tolist()
        signs = [place for place, token in enumerate(written) if token >= 10]
        if signs:  # an end token is not written, any other sign is the last
            written = written[: signs[0] + (written[signs[0]] != END)]
        a, b = problem.a[0].numpy(), problem.b[0].numpy()
        a, b = (np.trim_zeros(x, "b") if x.any() else x[:1] for x in (a, b))
        assert list(Stream(model, longest).decode(a, b)) == written[: max(len(a), len(b)) + 2]


@pytest.mark.parametrize("positions", RELATIVE)
def test_margins_are_those_of_the_worst_token_however_the_work_is_cut(positions, monkeypatch):
    model, problems = made(positions), sums()
    logits = model(problems.tokens[:, :-1])
    targets = problems.tokens[:, 1:, None]
    right = logits.gather(2, targets)[..., 0]
    margin = right - logits.scatter(2, targets, -torch.inf).amax(2)
    expected = margin.masked_fill(~problems.answer_mask[:, 1:], torch.inf).amin(1)
    torch.testing.assert_close(margins(model, problems.a, problems.b), expected)
    for name in ("TOKENS_A_PASS", "CONTEXTS_A_PASS"):
        monkeypatch.setattr(streaming, name, 45)
    torch.testing.assert_close(margins(model, problems.a, problems.b), expected)


def test_a_positive_margin_means_that_the_decoder_writes_the_sum():
    problems = OperandTask(max_digits=3).sample(300, torch.Generator().manual_seed(1))
    model = load("adder-windowed-s0").model
    torch.manual_seed(0)
    for parameter in model.parameters():  # so that it is right sometimes
        parameter.data += 0.1 * parameter.data.std() * torch.randn_like(parameter)
    exact = margins(model, problems.a, problems.b) > 0
    assert 0.05 < exact.double().mean() < 0.95
    numbers = [[int("".join(map(str, row[::-1]))) for row in x.tolist()] for x in (problems.a, problems.b)]
    for a, b, right in zip(*numbers, exact.tolist(), strict=True):
        try:
            assert (streaming.add(model, a, b) == a + b) == right
        except ValueError:
            assert not right


def test_an_answer_without_an_end_token_is_refused():
    model = load("adder-windowed-s0").model
    model.unembedding.bias.data[0] += 1e6  # zeros for ever
    with pytest.raises(ValueError, match="no end token"):
        streaming.add(model, 0, 0)


def test_beyond_the_reach_weights_are_exactly_zero():
    model = made("alibi")
    torch.nn.init.constant_(model.log_slope, 1.0)
    reach = reach_of(model)
    assert 38 <= reach < 60
    a = b = torch.randint(1, 10, (1, 3 * reach), generator=torch.Generator().manual_seed(0))
    lines = columns(a, b)
    near, all_keys = slots(model, reach), slots(made("full"), 3 * reach)
    at = 2 * reach
    few = context_logits(model, *contexts(lines, *near, at, at + 1)[:2], *near)
    every = context_logits(model, *contexts(lines, *all_keys, at, at + 1)[:2], *all_keys)
    torch.testing.assert_close(few, every, rtol=1e-5, atol=1e-6)
    number, distance = all_keys
    outside = (distance < -reach) | (distance > 1 + reach)
    query, keys, _ = contexts(lines, *all_keys, at, at + 1)
    scores = model.score_table()[query[:, None], number, keys.clamp(min=0)]
    scores = scores + model.bias_at(number, distance)
    pattern = scores.masked_fill((keys == ABSENT)[..., None], -torch.inf).softmax(1)
    assert (pattern[0, outside] == 0).all() and (pattern[0, ~outside] > 0).any()


def test_no_key_beyond_the_reach_can_outweigh_a_token_that_scores_itself_low():
    """With scores far apart a strong key may be far away and still count beside a token that hardly sees itself."""
    model = made("alibi")
    torch.nn.init.constant_(model.log_slope, 1.0)
    model.qkv.weight.mul_(10)
    score, query = model.score_table(), torch.arange(10)
    own = score[query, ANSWER, query] + model.near[:, ANSWER, 1]  # (10, H)
    needed = ((104 + score[:10].amax((1, 2)) - own) / model.log_slope.exp()).max()
    assert reach_of(model) >= needed > 104 / model.log_slope.exp().min() + 10


def test_any_integer_of_at_least_zero_is_added_and_nothing_else():
    model, limit = load("adder-windowed-s0"), sys.get_int_max_str_digits()
    with any_size():
        large = int("9" * 5000)
        assert model.add(large, 1) == 10**5000
    assert sys.get_int_max_str_digits() == limit
    assert model.add(0, 0) == 0 and model.add(999, 1) == 1000
    for wrong in (-1, 2.0, "3", None, True):
        with pytest.raises(ValueError, match="no integer of at least 0"):
            model.add(wrong, 1)


def test_an_answer_that_is_no_number_is_said():
    model = made()
    torch.nn.init.zeros_(model.unembedding.weight)
    model.unembedding.bias.data.copy_(torch.eye(15)[EQUALS])
    with pytest.raises(ValueError, match="no number"):
        streaming.add(model, 1, 2)
