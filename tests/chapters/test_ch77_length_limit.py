"""Where an adder ends: planted tables and planted angles are found, and what is foreseen is what long sums show."""

import math

import pytest
import torch

from arithlib.evaluation import logit_margin
from arithlib.models.column import ColumnConfig, ColumnTransformer
from arithlib.tasks.operands import OperandTask
from chapters.ch77_length_limit import Placed, extrapolate, read, scores_of, shares_right

TASK, LAST = OperandTask(), 12


def blind(positions, **sizes):
    """One head whose scores are all 0 so far: no content is looked at, and no address."""
    model = ColumnTransformer(ColumnConfig(positions, n_heads=1, **sizes), seed=3).eval().requires_grad_(False)
    model.qkv.weight[: 2 * model.config.d_model] = 0
    model.qkv.bias[: 2 * model.config.d_model] = 0
    return model


def tabled():
    """A table of one-hot rows up to LAST, zero beyond; row r looks for rows r + 1 and r."""
    model = blind("coupling", d_model=16, d_mlp=8, n_rows=40)
    torch.nn.init.zeros_(model.embedding.weight)
    torch.nn.init.zeros_(model.numbers.weight)
    torch.nn.init.zeros_(model.rows.weight)
    model.rows.weight[: LAST + 1, : LAST + 1] = torch.eye(LAST + 1)
    query, key = model.qkv.weight[:16], model.qkv.weight[16:32]
    key[:, :] = torch.eye(16)
    query[:, :] = 80 * (torch.eye(16) + torch.eye(16).roll(1, 0))
    return model


def turning(amplitude=6.0, pair=1, phase=0.4):
    """One pair of entries turns: the score of a key at address j for a query at i is A cos(w (i - j) + phase)."""
    model = blind("rotary", d_model=8, d_mlp=8)
    half, D = 4, 8
    model.qkv.bias[pair], model.qkv.bias[pair + half] = (
        math.cos(phase) * 8**0.5 * amplitude,
        math.sin(phase) * 8**0.5 * amplitude,
    )
    model.qkv.bias[D + pair] = 1
    return model, lambda i, j: amplitude * math.cos(10 ** (-pair) * (i - j) + phase)


def equal_sums(digits, count, seed=0):
    return TASK.problems(torch.full((count, 2), digits), torch.Generator().manual_seed(seed))


def test_a_planted_last_row_is_where_attention_loses_its_columns():
    problems = equal_sums(20, 4)
    for offset in (0, 3):
        reading = read(tabled(), problems, offset)
        known = reading.index + offset + 1 <= LAST  # the row that asks; its own column it finds, too
        assert (reading.near[known] > 0.999).all()
        assert (reading.near[~known] < 0.2).all()
        assert known.any() and not known.all()


def test_scores_of_planted_angles_are_the_cosine_and_its_aliases():
    model, score = turning()
    found = scores_of(model, torch.tensor([9]), torch.arange(0, 80))
    assert found.shape == (80, 3, 10, 10, 1)
    expected = torch.tensor([score(9, j) for j in range(80)], dtype=torch.double)
    torch.testing.assert_close(found, expected[:, None, None, None, None].expand_as(found), rtol=1e-6, atol=1e-6)
    # The angle 0.1 comes round after 63 columns: there is a second best column, as good as the first.
    best = found[:, 0, 0, 0, 0].topk(2).indices.tolist()
    assert abs(best[0] - best[1]) == 63


@pytest.mark.parametrize("reach", [None, 0, 5])
def test_shares_of_planted_angles_are_those_of_a_sum_over_columns(reach):
    model, score = turning()
    problems = equal_sums(30, 3)
    reading = read(model, problems, reach=reach)
    shares = {}
    for i in range(32):
        present = [(n, j) for n, first, last in ((0, 1, 30), (1, 0, 30), (2, 0, i)) for j in range(first, last + 1)]
        if reach is not None:
            present = [(n, j) for n, j in present if -reach <= i + 1 - j <= 1 + reach]
        total = sum(math.exp(score(i, j)) for _, j in present)
        near = sum(math.exp(score(i, j)) for _, j in present if j in (i, i + 1))
        shares[i] = near / total
        measured = reading.near[reading.index == i]
        torch.testing.assert_close(measured, torch.full_like(measured, shares[i]), rtol=1e-6, atol=0)
    short = equal_sums(10, 5)
    foreseen = extrapolate(model, short.a, short.b, 30, reach=reach)
    expected = torch.tensor([[shares[i]] for i in foreseen.index.tolist()], dtype=torch.double)
    torch.testing.assert_close(foreseen.near, expected, rtol=1e-6, atol=0)
    assert set(foreseen.index.tolist()) == set(range(32))


def between(reading, digits):
    """Near shares and margins away from the ends of the numbers."""
    inner = (reading.index >= 2) & (reading.index <= digits - 3)
    return reading.near[inner], reading.margin[inner]


@pytest.mark.parametrize("positions", ["abacus", "coupling", "rotary"])
def test_what_is_foreseen_is_what_long_random_sums_show(positions):
    model = ColumnTransformer(ColumnConfig(positions, d_model=16, n_heads=2, d_mlp=16, n_rows=80), seed=4).eval()
    short, long = equal_sums(10, 60), equal_sums(60, 20, seed=1)
    foreseen, reading = extrapolate(model, short.a, short.b, 60, offset=3), read(model, long, offset=3)
    (near, margin), (near_foreseen, margin_foreseen) = (between(one, 60) for one in (reading, foreseen))
    torch.testing.assert_close(near_foreseen.mean(0), near.mean(0), rtol=0.1, atol=0)
    elsewhere = between(extrapolate(model, short.a, short.b, 20, offset=3), 20)[0]
    assert (elsewhere.mean(0) / near.mean(0) > 1.5).all()  # another length is another share
    assert abs(float(margin_foreseen.median() - margin.median())) < 0.25 * float(margin.std())


def test_readings_of_several_passes_are_one(monkeypatch):
    model, problems = turning()[0], equal_sums(12, 5)
    whole = read(model, problems)
    monkeypatch.setattr("chapters.ch77_length_limit.WEIGHTS_A_PASS", 2500)
    parts = read(model, problems)
    assert shares_right(whole)[0] == pytest.approx(float((whole.margin > 0).double().mean()))
    for name in ("row", "visible", "margin", "near", "index"):
        torch.testing.assert_close(getattr(parts, name), getattr(whole, name))
    logits = model.double()(problems.tokens[:, :-1])
    asks, right = problems.answer_mask[:, 1:], problems.tokens[:, 1:]
    torch.testing.assert_close(whole.margin, logit_margin(logits[asks], right[asks]))
    assert torch.equal(whole.visible, asks.nonzero()[:, 1] + 1)


def test_a_sum_is_right_where_every_token_is_and_a_carry_out_counts_as_often_as_it_occurs():
    index = torch.tensor([0, 1, 2, 3, 0, 1, 2])  # two sums of two digits, of which one carries out
    margin = torch.tensor([1.0, 1.0, 1.0, -1.0, 1.0, -1.0, 1.0])
    nothing = torch.zeros(7)
    tokens, sums = shares_right(Placed(nothing, nothing, margin, nothing, index))
    assert tokens == pytest.approx(1 - (0.5 + 0.5) / 3.5) and sums == pytest.approx(0.5 * (1 - 0.5))


def test_what_cannot_be_foreseen_is_refused():
    model = turning()[0]
    with pytest.raises(ValueError, match="same number"):
        extrapolate(model, torch.tensor([[1, 2, 0, 0]]), torch.tensor([[1, 2, 3, 4]]), 50)
    with pytest.raises(ValueError, match="the table ends at 39"):
        extrapolate(tabled(), torch.tensor([[1, 2, 3, 4]]), torch.tensor([[1, 2, 3, 4]]), 50)
