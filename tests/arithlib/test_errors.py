"""Errors of codes whose truth is planted, the carry test against scipy, and that noise is not found."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency
from short_runs import seeded

from arithlib.analysis.errors import (
    CircularCode,
    carries,
    chi_square,
    contingency,
    correlation,
    error_shares,
    even_code,
    noise_for,
    own_code,
    plant_failed_carries,
)
from arithlib.analysis.helix import helix_columns

NUMBERS = torch.arange(100)
PAIRS = torch.cartesian_prod(NUMBERS, NUMBERS)


def errors_of(code, noise=0.3, bias=0.0, seed=0):
    sums = PAIRS.sum(1)
    return code.read(sums, noise, seeded(seed), bias) - sums


def test_distances_are_those_of_the_points():
    code = CircularCode((2.5, 7.0), (0.5, 2.0), 0.1, size=40)
    apart = torch.cdist(code.points, code.points)
    assert torch.allclose(apart[3], code.distances(torch.arange(40) - 3), atol=1e-9)
    assert torch.allclose(apart[30], code.distances(torch.arange(40) - 30), atol=1e-9)


def test_without_noise_a_code_never_errs_and_reads_the_nearest_point_with_it():
    code = even_code((2, 5, 10, 100))
    sums = PAIRS.sum(1)
    assert torch.equal(code.read(sums, 0.0, seeded()), sums)
    noise = 0.3 * torch.randn(len(sums), 9, generator=seeded(), dtype=torch.float64)
    assert torch.equal(code.read(sums, 0.3, seeded()), torch.cdist(code.points[sums] + noise, code.points).argmin(1))


@pytest.mark.parametrize("period", [7, 10, 13])
def test_errors_fall_at_the_planted_period(period):
    shares = error_shares(errors_of(even_code((period, period / 2, 100))), 30)
    assert sorted(shares.argsort()[-2:].tolist()) == [30 - period, 30 + period]
    assert float(shares[30 - period] + shares[30 + period]) > 0.5


def test_logits_that_fall_make_errors_negative():
    code = even_code((2, 5, 10, 100))
    level, falling = (error_shares(errors_of(code, bias=bias), 10) for bias in (0.0, 0.01))
    assert abs(float(level[0] - level[20])) < 0.05
    assert float(falling[0] - falling[20]) > 0.3


def test_an_own_code_has_the_planted_variances_and_noise_has_no_strong_circle():
    columns = helix_columns(NUMBERS, (20, 5), line=True)
    x = columns * torch.tensor([0.0, 2.0, 2.0, 1.0, 1.0])  # no line; circles of radius 2 and 1
    code = own_code(x, NUMBERS, (20, 5))
    assert code.slope < 0.01
    assert torch.allclose(torch.tensor(code.radii).square(), torch.tensor([0.8, 0.2]), atol=0.02)
    noise = own_code(torch.randn(100, 64, generator=seeded()), NUMBERS, (20, 5))
    assert max(noise.radii) ** 2 < 0.05


def test_noise_is_found_at_which_so_many_are_right():
    assert noise_for(lambda noise: 1 - noise / 4, 0.8, 3.0, halvings=20) == pytest.approx(0.8, abs=1e-5)
    with pytest.raises(ValueError, match="give a larger one"):
        noise_for(lambda noise: 0.9, 0.8, 3.0)


def test_shares_count_wrong_answers_only_and_refuse_none():
    shares = error_shares(torch.tensor([0, 0, 3, -3, -3, 50]), 3)
    assert shares.tolist() == [0.5, 0, 0, 0, 0, 0, 0.25]
    with pytest.raises(ValueError, match="all of 2 answers are right"):
        error_shares(torch.zeros(2, dtype=torch.long), 3)


def test_a_histogram_is_compared_without_its_middle():
    x = torch.tensor([1.0, 2.0, 99.0, 4.0, 5.0])
    assert correlation(x, torch.tensor([1.0, 2.0, -50.0, 4.0, 5.0])) == pytest.approx(1)
    assert correlation(x, -x) == pytest.approx(-1)


@given(st.lists(st.integers(1, 200), min_size=4, max_size=4))
def test_chi_square_is_that_of_scipy(counts):
    table = torch.tensor(counts).view(2, 2)
    expected = chi2_contingency(table.numpy(), correction=False)
    assert chi_square(table) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-6, abs=1e-12)


def test_an_empty_row_or_column_cannot_be_tested():
    with pytest.raises(ValueError, match="is empty"):
        chi_square(torch.tensor([[3, 4], [0, 0]]))


def test_carries_and_counts_are_those_of_plain_loops():
    carried = carries(*PAIRS.T)
    assert carried.tolist() == [len(str(a % 10 + b % 10)) == 2 for a, b in PAIRS.tolist()]
    second = PAIRS[:, 0] > 40
    both = list(zip(carried.tolist(), second.tolist(), strict=True))
    expected = [[both.count((i, j)) for j in (False, True)] for i in (False, True)]
    assert contingency(carried, second).tolist() == expected


def test_planted_failures_to_carry_are_found_and_nothing_is_where_none_are():
    a, b = PAIRS.T
    answers = a + b + errors_of(even_code((2, 5, 10, 100)), noise=0.28)
    planted = plant_failed_carries(a, b, answers, 0.5, seeded())
    assert int((planted - a - b == -10).sum()) == int((answers - a - b == -10).sum())
    moved = (planted != answers) & (planted == a + b - 10)
    assert carries(a, b)[moved].all()

    def p_value(given):
        error = given - a - b
        return chi_square(contingency(carries(a, b)[error != 0], error[error != 0] == -10))[1]

    assert p_value(planted) < 1e-6
    assert torch.equal(plant_failed_carries(a, b, answers, 0.0, seeded()), answers)
    found = sum(p_value(a + b + errors_of(even_code((2, 5, 10, 100)), 0.28, seed=s)) < 0.05 for s in range(20))
    assert found <= 4
