"""Gaps and lines against cases whose answer is known."""

import math
import random

import numpy as np
import pytest

from chapters import ch44_loops as loops


def test_the_gap_is_0_for_the_small_model_100_for_the_deep_one_and_does_not_care_which_way_is_better():
    assert loops.percent_gap(20, 20, 30) == 0 and loops.percent_gap(20, 30, 30) == 100
    assert loops.percent_gap(20, 35, 30) == 150
    assert loops.percent_gap(-20, -25, -30) == loops.percent_gap(20, 25, 30)
    with pytest.raises(ZeroDivisionError):
        loops.percent_gap(1, 2, 1)


@pytest.mark.parametrize("entries", [(26.7, 34.3, 29.3), (8.16, 7.9, 7.4), (19.4, 56.9, 47.5), (5.0, 4.0, 9.0)])
def test_no_numbers_that_round_to_the_entries_leave_the_interval_and_some_reach_its_ends(entries):
    low, high = loops.gap_interval(*entries, half=0.05)
    draw = random.Random(0)
    drawn = [loops.percent_gap(*(x + draw.uniform(-0.05, 0.05) for x in entries)) for _ in range(3000)]
    assert low <= min(drawn) and max(drawn) <= high
    assert max(drawn) - min(drawn) > 0.7 * (high - low)


def test_a_gap_without_a_certain_denominator_can_be_anything():
    assert loops.gap_interval(5.0, 7.0, 5.1, half=0.05) == (-math.inf, math.inf)


def test_a_planted_line_is_found_with_its_noise():
    rng = np.random.default_rng(0)
    x = np.linspace(1, 3, 400)
    found = loops.line(x, 5 - 2 * x + rng.normal(0, 0.3, 400))
    assert found.slope == pytest.approx(-2, abs=0.1) and found.at(2) == pytest.approx(1, abs=0.1)
    assert found.off == pytest.approx(0.3, rel=0.15)
    assert found.error(2) == pytest.approx(0.3 / 20, rel=0.15) and found.error(10) > 5 * found.error(2)


def test_the_error_of_a_line_is_the_spread_of_many():
    rng, x = np.random.default_rng(1), np.linspace(0, 1, 12)
    heights = [loops.line(x, x + rng.normal(0, 0.2, 12)).at(1.5) for _ in range(500)]
    errors = [loops.line(x, x + rng.normal(0, 0.2, 12)).error(1.5) for _ in range(50)]
    assert np.mean(errors) == pytest.approx(np.std(heights), rel=0.2)


def test_two_points_make_no_line_with_an_error():
    with pytest.raises(ValueError, match="three points"):
        loops.line(np.array([1.0, 2.0]), np.array([1.0, 2.0]))


def test_a_curve_is_ahead_by_what_was_planted_and_no_order_of_its_points_matters():
    x, shift = np.linspace(0, 2, 60), 1.5
    other = np.linspace(1, 3, 80)
    shuffled = np.random.default_rng(0).permutation(60)
    found = loops.ahead(x[shuffled], (x**2 + shift)[shuffled], other, other**2)
    assert found == pytest.approx(shift, abs=1e-3)
    assert loops.ahead(other, other**2, x, x**2 + shift) == pytest.approx(-found)
    assert loops.ahead([1.0], [4.0], x, x**2) == pytest.approx(3, abs=1e-3)


def test_curves_without_a_common_range_are_not_compared():
    with pytest.raises(ValueError, match="0 to 1 and 2 to 3 are apart"):
        loops.ahead([0, 1], [5, 6], [2, 3], [5, 6])
