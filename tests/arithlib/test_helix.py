"""Helix fits on planted helices, against plain least squares, repeated fits and closed forms."""

import numpy as np
import pytest
import torch
from short_runs import seeded

from arithlib.analysis.helix import (
    PERIODS,
    add_noisy,
    break_at,
    explained,
    explained_left_out,
    fit_helix,
    fitted_coordinates,
    gram,
    helix_columns,
    line_sums_right,
    noise_of,
    orthonormal,
    placed_left_out,
    polynomial_columns,
    power_spectrum,
    principal_components,
    principal_share,
    radius_spread,
    random_period_shares,
    rank,
    shuffled_shares,
    subsets,
)

NUMBERS = torch.arange(100)
D = 48


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)


def planted(periods=PERIODS, noise=0.0, numbers=NUMBERS):
    """(N, D) a helix in random directions, off the origin, with noise."""
    columns = helix_columns(numbers, periods)
    return columns @ normal(columns.shape[1], D) + normal(1, D, seed=1) + noise * normal(len(numbers), D, seed=2)


def least_squares_share(x, columns):
    """The share explained, by numpy's least squares with a constant."""
    design = np.column_stack([np.ones(len(x)), columns])
    residual = x.numpy() - design @ np.linalg.lstsq(design, x.numpy(), rcond=None)[0]
    return 1 - (residual**2).sum() / ((x - x.mean(0)).numpy() ** 2).sum()


# ---- functions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("periods", "line", "count"), [(PERIODS, True, 8), (PERIODS, False, 7), ((5, 10), True, 5)])
def test_columns_are_as_many_as_are_independent(periods, line, count):
    columns = helix_columns(NUMBERS, periods, line)
    assert columns.shape == (100, count) and rank(columns) == count


def test_the_nine_functions_of_the_source_are_eight():
    angles = 2 * torch.pi * NUMBERS.double()[:, None] / torch.tensor(PERIODS)
    nine = torch.cat([NUMBERS.double()[:, None], angles.cos(), angles.sin()], 1)
    assert nine.shape == (100, 9) and rank(nine) == 8
    assert explained(normal(100, D), nine) == pytest.approx(
        explained(normal(100, D), helix_columns(NUMBERS)), rel=1e-9
    )


def test_a_period_below_two_is_refused_because_it_looks_like_a_longer_one():
    assert torch.allclose(
        torch.cos(2 * torch.pi * NUMBERS.double() / 1.25), torch.cos(2 * torch.pi * NUMBERS.double() / 5)
    )
    with pytest.raises(ValueError, match="period 1.25.*looks like a longer one"):
        helix_columns(NUMBERS, [10, 1.25])


def test_polynomials_span_the_powers():
    powers = np.arange(100)[:, None] ** np.arange(1, 5)
    x = normal(100, D)
    assert explained(x, polynomial_columns(NUMBERS, 4)) == pytest.approx(least_squares_share(x, powers), rel=1e-8)


# ---- shares ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [helix_columns(NUMBERS), polynomial_columns(NUMBERS, 9), normal(100, 9, seed=5)])
def test_the_share_explained_is_that_of_least_squares(columns):
    x = planted(noise=2.0)
    assert explained(x, columns) == pytest.approx(least_squares_share(x, columns), rel=1e-8)


def test_a_planted_helix_is_explained_wholly_and_a_scrambled_one_is_not():
    x = planted()
    assert explained(x, helix_columns(NUMBERS)) == pytest.approx(1)
    assert explained(x[torch.randperm(100, generator=seeded())], helix_columns(NUMBERS)) < 0.3


def test_shuffled_shares_are_those_of_shuffled_fits():
    x, columns = planted(noise=1.0), helix_columns(NUMBERS)
    shares = shuffled_shares(x, columns, 5, seeded())
    orders = torch.rand(5, 100, generator=seeded()).argsort(1)
    assert shares.tolist() == pytest.approx([least_squares_share(x, columns[order]) for order in orders])
    assert orders.sort(1).values.equal(NUMBERS.expand(5, -1))


def test_shuffled_shares_of_numbers_left_out_are_those_of_shuffled_fits():
    x, columns = planted(noise=1.0), helix_columns(NUMBERS)
    shares = shuffled_shares(x, columns, 5, seeded(), left_out=True)
    orders = torch.rand(5, 100, generator=seeded()).argsort(1)
    assert shares.tolist() == pytest.approx([explained_left_out(x, columns[order]) for order in orders])
    assert float(shares.max()) < 0.1 < explained_left_out(x, columns)


def test_columns_explain_of_noise_what_their_number_does():
    shares = shuffled_shares(normal(100, 300), helix_columns(NUMBERS), 500, seeded())
    assert float(shares.mean()) == pytest.approx(8 / 99, rel=0.02)


def test_random_periods_have_nine_columns_and_stay_below_a_planted_helix():
    x = planted(noise=1.0)
    for count, keep in ((4, ()), (3, (100,))):
        of_noise, periods = random_period_shares(normal(100, 300), NUMBERS, count, 300, seeded(), keep)
        assert float(of_noise.mean()) == pytest.approx(9 / 99, rel=0.05)
        assert periods.shape == (300, count) and 2 <= float(periods.min()) < float(periods.max()) <= 100
        shares, _ = random_period_shares(x, NUMBERS, count, 300, seeded(), keep)
        assert float(shares.max()) < explained(x, helix_columns(NUMBERS))


def test_random_periods_are_fitted_by_least_squares():
    x = planted(noise=1.0)
    shares, periods = random_period_shares(x, NUMBERS, 2, 3, seeded(), [100])
    expected = [least_squares_share(x, helix_columns(NUMBERS, [100, *pair.tolist()])) for pair in periods]
    assert shares.tolist() == pytest.approx(expected)


def test_leaving_out_by_leverage_is_leaving_out():
    x, columns = planted(noise=1.0)[:30], helix_columns(NUMBERS)[:30]
    wrong = total = 0.0
    for n in range(30):
        rest = torch.arange(30) != n
        design = np.column_stack([np.ones(29), columns[rest]])
        weights = np.linalg.lstsq(design, x[rest].numpy(), rcond=None)[0]
        wrong += ((x[n].numpy() - np.r_[1, columns[n]] @ weights) ** 2).sum()
        total += ((x[n] - x[rest].mean(0)).numpy() ** 2).sum()
    assert explained_left_out(x, columns) == pytest.approx(1 - wrong / total)
    assert explained_left_out(normal(100, D), helix_columns(NUMBERS)) < 0


def test_no_functions_explain_more_than_as_many_principal_components():
    x = planted(noise=1.0)
    best = orthonormal(principal_components(x, 8))
    assert explained(x, best) == pytest.approx(principal_share(x, 8))
    assert explained(x, helix_columns(NUMBERS)) < principal_share(x, 8) < principal_share(x, 99) <= 1 + 1e-12


# ---- periods -----------------------------------------------------------------------------------------------------


def test_subsets_are_all_of_them_and_end_as_the_legend_of_the_source():
    found = subsets()
    assert len(set(found)) == 15
    last = {len(chosen): chosen for chosen in found}
    assert last == {1: (100,), 2: (10, 100), 3: (5, 10, 100), 4: (2, 5, 10, 100)}


def test_the_planted_periods_explain_left_out_numbers_best():
    x = planted((5, 10), noise=1.0)
    score = {chosen: explained_left_out(x, helix_columns(NUMBERS, chosen)) for chosen in subsets()}
    assert max(score, key=score.get) == (5, 10)


def test_a_planted_wave_has_all_the_power_at_its_period():
    for T in (2, 5, 10, 50):
        periods, power = power_spectrum(
            helix_columns(NUMBERS, [T], line=False) @ normal(2 - (T == 2), D), detrend=False
        )
        waves = 1 if T == 2 else 2
        assert periods[power.argmax()] == T and float(waves * power.max()) == pytest.approx(1)


def test_power_adds_up_to_the_variance_by_least_squares():
    x = normal(100, D)
    periods, power = power_spectrum(x, detrend=False)
    for T in PERIODS:
        waves = helix_columns(NUMBERS, [T], line=False)
        assert float(waves.shape[1] * power[periods == T]) == pytest.approx(explained(x, waves))
    assert float(2 * power.sum() - power[periods == 2]) == pytest.approx(1)


def test_noise_is_level_and_period_two_no_exception():
    _, power = power_spectrum(normal(100, 20_000), detrend=False)
    assert power.tolist() == pytest.approx([1 / 99] * 50, rel=0.05)


def test_power_adds_up_over_an_odd_range_too():
    _, power = power_spectrum(normal(101, D))
    assert float(2 * power.sum()) == pytest.approx(1)


def test_a_line_fills_the_low_frequencies_unless_it_is_taken_out():
    x = NUMBERS.double()[:, None] * normal(1, D) + 0.01 * normal(100, D)
    periods, power = power_spectrum(x, detrend=False)
    assert float(2 * power[periods > 10].sum()) > 0.9
    assert float(2 * power_spectrum(x)[1][periods > 10].sum()) < 0.25


@pytest.mark.parametrize("k", [1, 10])
def test_taking_the_line_out_takes_its_part_of_a_sine(k):
    """6 / (pi k)^2 of the variance of k whole waves: most of one, next to nothing of ten."""
    sine = torch.sin(2 * torch.pi * k * torch.arange(1000) / 1000).double()[:, None]
    line = orthonormal(torch.arange(1000).double()[:, None])
    overlap = float((line.T @ sine).square() / sine.square().sum())
    assert overlap == pytest.approx(6 / (torch.pi * k) ** 2, rel=0.01)
    assert float(2 * power_spectrum(sine)[1][k - 1]) == pytest.approx(1 - overlap, rel=0.02)


def test_a_range_that_its_period_does_not_divide_leaks():
    periods, power = power_spectrum(planted([10], numbers=torch.arange(105)))
    assert 10 not in periods.tolist() and float(2 * power.max()) < 0.5


# ---- the fit -----------------------------------------------------------------------------------------------------


def test_a_fit_gives_back_a_planted_helix():
    x = planted()
    fit = fit_helix(x, NUMBERS)
    assert torch.allclose(fit(NUMBERS), x)
    assert torch.allclose(fit.coordinates(x), helix_columns(NUMBERS))


def test_a_fit_explains_its_share_and_does_not_depend_on_a_hundred_components():
    x = planted(noise=3.0)
    fit = fit_helix(x, NUMBERS)
    share = 1 - (x - fit(NUMBERS)).square().sum() / (x - x.mean(0)).square().sum()
    assert float(share) == pytest.approx(explained(x, helix_columns(NUMBERS)))
    assert torch.allclose(fit_helix(x, NUMBERS, n_components=D).coefficients, fit.coefficients)
    assert not torch.allclose(fit_helix(x, NUMBERS, n_components=20).coefficients, fit.coefficients)


def test_a_planted_helix_places_numbers_it_has_not_seen():
    x, held = planted([100], noise=0.05), NUMBERS % 10 == 3
    assert placed_left_out(x, NUMBERS, held, [100]).equal(NUMBERS[held])
    shuffled = x[torch.randperm(100, generator=seeded())]
    both = placed_left_out(torch.stack([shuffled, x]), NUMBERS, held, [100])
    assert not both[0].equal(NUMBERS[held]) and both[1].equal(NUMBERS[held])


def test_numbers_left_out_are_placed_by_the_fit_to_the_others():
    x, held = planted([100], noise=2.0), NUMBERS % 10 == 7
    fit = fit_helix(x[~held], NUMBERS[~held], [100])
    nearest = NUMBERS[torch.cdist(x[held], fit(NUMBERS)).argmin(1)]
    assert placed_left_out(x, NUMBERS, held, [100]).equal(nearest)
    assert not nearest.equal(NUMBERS[held])


def test_coordinates_by_inner_products_are_those_of_the_fit():
    x = planted(noise=3.0)
    orders = torch.stack([NUMBERS, torch.randperm(100, generator=seeded())])
    both = fitted_coordinates(gram(x), helix_columns(NUMBERS)[orders])
    for order, found in zip(orders, both, strict=True):
        undone = order.argsort()  # the vector of number n stands where the order says n
        assert torch.allclose(found[undone], fit_helix(x[undone], NUMBERS).coordinates(x[undone]))


def test_white_noise_shows_a_perfect_helix_in_its_own_fitted_directions():
    """With as many dimensions as numbers and no structure at all: why a picture of the fit needs a control."""
    x = normal(100, 99)
    white = torch.linalg.svd(x - x.mean(0), full_matrices=False)[0][:, :99]
    found = fit_helix(white, NUMBERS).coordinates(white)
    assert torch.allclose(found, helix_columns(NUMBERS), atol=1e-6)


def test_the_radius_of_a_circle_does_not_vary_and_that_of_a_cloud_does():
    circle = helix_columns(NUMBERS, [100], line=False)
    assert float(radius_spread(circle)) == pytest.approx(0, abs=1e-12)
    assert float(radius_spread(normal(100_000, 2))) == pytest.approx((4 / np.pi - 1) ** 0.5, rel=0.01)


# ---- linearity ---------------------------------------------------------------------------------------------------


def test_the_first_component_is_the_planted_line():
    x = NUMBERS.double()[:, None] * normal(1, D) + normal(100, D)
    first = principal_components(x, 1)[:, 0]
    assert float(torch.corrcoef(torch.stack([first, NUMBERS.double()]))[0, 1]) > 0.99


@pytest.mark.parametrize("jump", [30, 100, 170])
def test_a_planted_jump_is_found(jump):
    a = torch.arange(200).double()
    y = torch.where(a < jump, a, 300 - 0.5 * a) + 3 * normal(200)
    where, r_squared = break_at(y)
    assert where == jump and r_squared > 0.95


def test_too_few_numbers_have_no_break():
    with pytest.raises(ValueError, match="9 numbers: two lines of at least 5 each need 10"):
        break_at(torch.arange(9))


# ---- adding under noise ------------------------------------------------------------------------------------------


def pairs(count):
    both = torch.randint(0, 100, (2, count), generator=seeded(3))
    return both[0], both[1]


@pytest.mark.parametrize("periods", [(), PERIODS, (10, 100)])
def test_without_noise_every_sum_is_right(periods):
    a, b = pairs(500)
    assert add_noisy(a, b, periods, 1e-9, seeded()).equal(a + b)


@pytest.mark.parametrize("noise", [0.3, 1.0, noise_of(0.997, 833.25)])
def test_the_plain_line_is_as_often_right_as_in_closed_form(noise):
    a, b = (n.clamp(10, 89) for n in pairs(40_000))  # away from the ends, where there is only one wrong neighbour
    right = (add_noisy(a, b, (), noise, seeded()) == a + b).double().mean()
    assert float(right) == pytest.approx(line_sums_right(noise), abs=4 * (0.25 / 40_000) ** 0.5)


def test_noise_has_the_r_squared_that_was_asked_for():
    a = pairs(200_000)[0].double()
    noisy = a + noise_of(0.9, float(a.var())) * normal(len(a))
    assert float(torch.corrcoef(torch.stack([a, noisy]))[0, 1] ** 2) == pytest.approx(0.9, abs=0.003)


def test_circles_help_and_a_period_that_tells_little_does_not():
    a, b = pairs(4000)
    right = {
        periods: float((add_noisy(a, b, periods, 1.5, seeded()) == a + b).double().mean())
        for periods in ((), (10, 100), PERIODS, (1000,))
    }
    assert min(right[PERIODS], right[(10, 100)]) > 0.9 > 0.3 > right[()] > right[(1000,)]


def test_line_and_circles_share_the_variance():
    """Beside a circle so slow that it tells no two sums apart, the line is left with half of it."""
    a, b = torch.randint(100, (2, 20_000), generator=seeded())
    right = float((add_noisy(a, b, (1e6,), 0.5, seeded()) == a + b).double().mean())
    assert right == pytest.approx(line_sums_right(0.5 * 2**0.5), abs=0.015)
    assert abs(right - line_sums_right(0.5)) > 0.05
