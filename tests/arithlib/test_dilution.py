"""Reading every key in linear time gives the numbers of the forward; changes in evaluation do what they say."""

import copy
import math

import pytest
import torch

from arithlib.analysis import dilution
from arithlib.analysis.dilution import (
    NUMBER,
    TOKEN,
    Fix,
    Tables,
    crossing,
    expected_presence,
    masses,
    predict,
    presence,
    read,
)
from arithlib.models.column import ANSWER, RELATIVE, ColumnConfig, ColumnTransformer, column_distance, segment_ids
from arithlib.streaming import columns
from arithlib.tasks.operands import OperandTask
from arithlib.tasks.worst_case_sums import stress_sums

TINY = dict(d_model=8, n_heads=2, d_mlp=16)
SUMS = OperandTask(max_digits=9).sample(25, torch.Generator().manual_seed(0))


def made(positions, seed=0):
    model = ColumnTransformer(ColumnConfig(positions, **TINY), seed).eval().requires_grad_(False)
    if positions == "alibi":
        model.log_slope.copy_(torch.tensor([-1.5, 0.3]))
    return model


def by_forward(model, problems, change=None):
    """Margins and shares of the window from the plain forward in float64, in the order of the rows."""
    model = copy.deepcopy(model).double()
    if change:
        change(model)
    tokens = problems.tokens
    logits, activations = model(tokens[:, :-1], return_activations=True)
    asks, right = problems.answer_mask[:, 1:], tokens[:, 1:, None]
    lead = logits.gather(2, right)[..., 0] - logits.scatter(2, right, -torch.inf).amax(2)
    distance = column_distance(tokens[:, :-1])
    inside = ((distance == 0) | (distance == 1)) & (segment_ids(tokens[:, :-1])[:, None] < 3)
    near = (activations["pattern"] * inside[:, None]).sum(-1).movedim(1, -1)
    return lead[asks], near[asks]


@pytest.mark.parametrize("positions", [kind for kind in RELATIVE if kind != "window-sink"])
def test_margins_and_shares_are_those_of_the_forward(positions, monkeypatch):
    monkeypatch.setattr(dilution, "COLUMNS_A_PASS", 60)
    monkeypatch.setattr(dilution, "TOKENS_A_PASS", 31)
    model = made(positions)
    reading = read(model, SUMS.a, SUMS.b)
    lead, near = by_forward(model, SUMS)
    torch.testing.assert_close(reading.margin, lead, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(reading.near, near, rtol=1e-9, atol=1e-9)
    smallest = torch.stack([lead[reading.row == row].min() for row in range(len(SUMS))])
    torch.testing.assert_close(reading.margins(), smallest)


def test_visible_keys_are_all_tokens_so_far():
    problems = SUMS[:1].trimmed()
    reading = read(made("full"), problems.a, problems.b)
    start = int(problems.answer_mask[0].nonzero()[0])
    assert reading.visible.tolist() == list(range(start, start + len(reading.visible)))


def test_another_slope_is_that_of_a_model_that_has_it():
    def slope(model):
        model.log_slope.fill_(math.log(0.7))

    decaying = made("alibi")
    expected = by_forward(decaying, SUMS, slope)[0]
    torch.testing.assert_close(read(decaying, SUMS.a, SUMS.b, Fix(slope=0.7)).margin, expected)
    window = read(made("full"), SUMS.a, SUMS.b, Fix(slope=math.inf))
    torch.testing.assert_close(window.margin, read(made("window"), SUMS.a, SUMS.b).margin)
    assert (window.near == 1).all()


def test_scale_multiplies_all_scores_and_in_the_limit_the_best_key_takes_all():
    flat, scaled = made("full"), made("log-scaled")
    expected = read(scaled, SUMS.a, SUMS.b).margin
    torch.testing.assert_close(read(flat, SUMS.a, SUMS.b, Fix(scale=lambda n: n.log())).margin, expected)

    def hard(model):
        model.near *= 1e6
        model.qkv.weight[:8] *= 1e6
        model.qkv.bias[:8] *= 1e6

    hardest = read(flat, SUMS.a, SUMS.b, Fix(scale=lambda n: torch.full_like(n, 1e6)))
    torch.testing.assert_close(hardest.margin, by_forward(flat, SUMS, hard)[0], rtol=1e-6, atol=1e-6)
    assert ((hardest.near < 1e-9) | (hardest.near > 1 - 1e-9)).any()


def test_lift_adds_to_the_near_scores():
    def lifted(model):
        model.near += 0.8

    flat = made("full")
    by_fix = read(flat, SUMS.a, SUMS.b, Fix(lift=lambda n: torch.full_like(n, 0.8)))
    torch.testing.assert_close(by_fix.margin, by_forward(flat, SUMS, lifted)[0])


def test_masses_are_sums_over_far_columns():
    lines, slope = columns(SUMS.a[:4], SUMS.b[:4]), torch.tensor([0.0, 0.6]).double()
    found, present = masses(presence(lines), slope), presence(lines)
    for i in range(lines.shape[2] - 2):
        for j in range(lines.shape[2]):
            steps = i - j if j < i else j - i - 1 if j > i + 1 else 0
            if steps:
                allowed = (NUMBER != ANSWER) if j > i else torch.ones_like(NUMBER)
                found[i] -= (present[j] * allowed)[..., None] * (-slope * steps).exp()
    assert found[: lines.shape[2] - 2].abs().max() < 1e-12


def test_expected_presence_is_the_mean_of_random_sums():
    a, b = (torch.randint(0, 10, (4000, 6), generator=torch.Generator().manual_seed(seed)) for seed in (0, 1))
    a[:, -1] = b[:, -1] = 5
    found, expected = presence(columns(a, b)).mean(1), expected_presence(6)[:, 0]
    assert (found - expected)[:6].abs().max() < 0.03
    assert expected[:, TOKEN >= 10].sum() == 2


def test_prediction_is_what_long_random_sums_show():
    model = made("full", seed=4)
    a, b, _ = stress_sums(10, 212, torch.Generator().manual_seed(2))
    predicted = predict(model, a[12:], b[12:], 300)
    a, b, _ = stress_sums(300, 42, torch.Generator().manual_seed(3))
    measured = read(model, a[12:], b[12:])
    torch.testing.assert_close(predicted.near.mean(0), measured.near.mean(0), rtol=0.05, atol=0)
    spread = float(measured.margin.std())
    assert abs(float(predicted.margin.median() - measured.margin.median())) < 0.1 * spread
    shuffled = predict(model, a[12:, :10].clamp(min=1), b[12:, :10].clamp(min=1), 30)
    assert float((shuffled.near.mean(0) / measured.near.mean(0)).min()) > 5  # another length is another share


def test_shares_stay_below_the_bound():
    model = made("full")
    reading = read(model, SUMS.a, SUMS.b)
    best = 5 * Tables(model).score_range().exp()
    rest = (reading.visible - 5).clamp(min=0)[:, None]
    assert (reading.near <= best / (best + rest) + 1e-12).all()


def test_a_crossing_lies_on_the_line_between_logarithms():
    assert crossing([10, 100, 1000], torch.tensor([3.0, 1.0, -1.0]), 0.0) == pytest.approx(10**2.5)
    for values in ([1.0, 0.5], [-1.0, -2.0]):
        with pytest.raises(ValueError, match="do not fall"):
            crossing([10, 100], torch.tensor(values), 0.0)


def test_what_cannot_be_predicted_or_read_is_refused():
    with pytest.raises(ValueError, match="same number"):
        predict(made("full"), torch.tensor([[1, 2, 0, 0]]), torch.tensor([[1, 2, 3, 4]]), 50)
    with pytest.raises(ValueError, match="window = 2"):
        read(ColumnTransformer(ColumnConfig(**TINY, window=2)), SUMS.a, SUMS.b)
    with pytest.raises(ValueError, match="knows no sink"):
        read(made("window-sink"), SUMS.a, SUMS.b)
