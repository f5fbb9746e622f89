"""The Clock's measures on a planted Clock, where every product is known, and on models and noise that have none."""

import pytest
import torch
import torch.nn.functional as F

from arithlib.analysis.clock import (
    additive,
    clock_share,
    fit,
    frequency_shares,
    helices,
    interaction,
    interaction_waves,
    kinds_of_variance,
    one_period_shares,
    share,
    straightened,
    together,
    waves,
    without,
    writers,
)
from arithlib.analysis.neurons import frequency_variance
from arithlib.analysis.progress import clock_fit, variance_explained
from arithlib.models.decoder import Decoder, DecoderConfig
from arithlib.tasks.prompts import Sums, prompt

PERIODS = [40.0, 2.7]
PAIRS = Sums().pairs
A, B = PAIRS.T
SEEN = Sums().train_mask
T = PERIODS[1]


def wave(n, period, kind=torch.cos):
    return kind(2 * torch.pi * n.double() / period)[:, None]


def random_map(rows, seed=0):
    return torch.randn(rows, 12, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


NOISE = torch.randn(len(PAIRS), 12, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
FIRST = torch.cat([waves(A, PERIODS), waves(B, PERIODS)], 1)  # what a Clock is handed
PLAID = FIRST @ random_map(FIRST.shape[1])

# ---- sums and products -------------------------------------------------------------------------------------------


def test_any_sum_of_a_function_of_a_and_one_of_b_is_additive():
    x = (A.double().sqrt() + (B.double() / 9).sin() ** 3)[:, None] @ random_map(1)
    assert torch.allclose(additive(x), x)
    assert interaction(x).abs().max() < 1e-9


def test_additive_is_the_nearest_sum_by_least_squares():
    side = 5
    x = torch.randn(side * side, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rows, columns = torch.eye(side, dtype=torch.float64), torch.eye(side, dtype=torch.float64)
    design = torch.cat([rows.repeat_interleave(side, 0), columns.repeat(side, 1)], 1)
    nearest = design @ torch.linalg.lstsq(design, x[:, None], driver="gelsd").solution
    assert torch.allclose(additive(x), nearest[:, 0])


def test_rows_that_are_no_grid_are_refused():
    with pytest.raises(ValueError, match="12 rows: a grid of all pairs"):
        additive(torch.zeros(12, 2))


def test_the_line_of_the_sum_needs_no_product_and_its_circle_does():
    line, circle = (A + B).double()[:, None], wave(A + B, T)
    assert interaction(line).abs().max() < 1e-9
    assert interaction(circle).square().sum() > 0.99 * (circle - circle.mean()).square().sum()


def test_products_of_two_waves_are_waves_of_the_sum_and_of_the_difference():
    product = wave(A, T) * wave(B, T)
    kinds = kinds_of_variance(product, PAIRS, PERIODS)
    assert kinds["a+b"] == pytest.approx(0.5, abs=0.02) and kinds["a-b"] == pytest.approx(0.5, abs=0.02)
    assert kinds["rest"] == pytest.approx(0, abs=1e-9)
    identity = wave(A, T) * wave(B, T) - wave(A, T, torch.sin) * wave(B, T, torch.sin)
    assert torch.allclose(identity, wave(A + B, T))
    assert kinds_of_variance(identity, PAIRS, PERIODS)["a+b"] > 0.98


def test_kinds_of_variance_add_up_and_find_nothing_in_noise():
    for x in (PLAID, PLAID + wave(A + B, T), NOISE):
        assert sum(kinds_of_variance(x, PAIRS, PERIODS).values()) == pytest.approx(1)
    kinds = kinds_of_variance(NOISE, PAIRS, PERIODS)
    assert kinds["rest"] > 0.95 and kinds["a+b"] < 0.002 and kinds["a-b"] < 0.002


def test_a_bend_makes_products_of_a_plaid_and_a_line_makes_none():
    assert kinds_of_variance(PLAID, PAIRS, PERIODS)["f(a)+g(b)"] == pytest.approx(1)
    bent = kinds_of_variance(F.gelu(PLAID), PAIRS, PERIODS)
    assert bent["a+b"] > 0.02 and bent["a-b"] > 0.02
    assert kinds_of_variance(3 * PLAID + 1, PAIRS, PERIODS)["f(a)+g(b)"] == pytest.approx(1)


def test_products_at_other_periods_are_the_rest():
    kinds = kinds_of_variance(wave(A, 5.3) * wave(B, 5.3), PAIRS, PERIODS)
    assert kinds["rest"] > 0.95


# ---- least squares -----------------------------------------------------------------------------------------------


def test_a_planted_helix_of_the_sum_is_found_on_held_out_pairs_and_noise_is_not():
    columns = helices(PAIRS, PERIODS, "a+b")
    planted = columns @ random_map(columns.shape[1])
    assert float(share(planted, columns, SEEN)) == pytest.approx(1)
    assert torch.allclose(fit(planted, columns, SEEN), planted)
    assert float(share(planted, helices(PAIRS, PERIODS, "a b"), SEEN)) < 0.7
    assert abs(float(share(NOISE, helices(PAIRS, PERIODS), SEEN))) < 0.01


def test_shares_of_single_entries_leave_out_one_that_never_varies():
    x = torch.cat([wave(A + B, T), torch.ones(len(PAIRS), 1), NOISE[:, :1]], 1)
    found = share(x, helices(PAIRS, PERIODS, "a+b"), SEEN, each=True)
    assert found[0] == pytest.approx(1) and found[1].isnan() and abs(found[2]) < 0.01


def test_an_unknown_number_of_a_pair_is_refused():
    with pytest.raises(ValueError, match="'a\\*b'; there are: a, b, a\\+b, a-b"):
        helices(PAIRS, PERIODS, "a*b")


def test_writers_share_what_they_wrote_of_the_circles():
    circle = interaction_waves(PAIRS, PERIODS) @ random_map(4)
    parts = {"most": 3 * circle + PLAID, "some": 2 * circle, "against": -circle, "none": PLAID}
    found = writers(parts, interaction_waves(PAIRS, PERIODS))
    expected = {"most": 0.75, "some": 0.5, "against": -0.25, "none": 0}
    assert found == pytest.approx(expected, abs=1e-9)


# ---- periods and logits ------------------------------------------------------------------------------------------


def test_the_period_of_a_wave_of_the_sum_is_found_beside_a_line_and_noise():
    frequencies = torch.arange(10, 1001) / 2000
    planted = torch.cat([wave(A + B, 2.7) + 0.02 * (A + B)[:, None], wave(A + B, 23) + NOISE[:, :1]], 1)
    shares = frequency_shares(planted, A + B, frequencies)
    assert (1 / frequencies[shares.argmax(0)]).tolist() == pytest.approx([2.7, 23], rel=0.02)
    assert float(frequency_shares(wave(A + B, 2.7), A + B, torch.tensor([1 / 2.7]))) == pytest.approx(1, abs=1e-3)
    assert frequency_shares(NOISE, A + B, frequencies).max() < 0.01


def test_one_period_owns_its_waves_and_their_products_and_no_more():
    own = wave(A, T) + 2 * wave(B, T, torch.sin) + wave(A, T, torch.sin) * wave(B, T)
    x = torch.cat([own, own + wave(A, 9) * wave(B, 9), NOISE[:, :1]], 1)
    found = one_period_shares(x, torch.tensor([1 / T, 1 / 17]))
    assert found[0, 0] == pytest.approx(1) and found[1, 0] < 0.01
    assert found[0, 1] == pytest.approx(1 - 0.25 / float(x[:, 1].var()), abs=0.01)
    assert found[:, 2].max() < 0.01


def test_where_periods_divide_the_range_one_period_shares_are_those_of_the_fourier_transform():
    p = 13
    grid = torch.randn(p, p, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = one_period_shares(grid.flatten(0, 1), torch.arange(1, p // 2 + 1) / p)
    assert torch.allclose(found, frequency_variance(grid).T)


def test_a_clocks_logits_are_explained_and_noise_is_not():
    away = (A + B)[:, None] - torch.arange(199)
    logits = sum(weight * (2 * torch.pi * away / T).cos() for weight, T in zip((3, 1), PERIODS, strict=True))
    assert clock_share(logits + A[:, None], PAIRS, PERIODS) == pytest.approx(1, abs=1e-6)
    assert clock_share(logits, PAIRS, [7.7]) < 0.05
    noise = torch.randn(logits.shape, generator=torch.Generator().manual_seed(0))
    assert clock_share(noise, PAIRS, PERIODS) < 1e-4


def test_modulo_p_the_clock_share_is_that_of_part_1():
    p, freqs = 13, [2, 5]
    logits = torch.randn(p, p, p, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    pairs = torch.cartesian_prod(torch.arange(p), torch.arange(p))
    centred = logits - logits.mean(-1, keepdim=True)
    expected = variance_explained(centred, clock_fit(logits, freqs)[1])
    assert clock_share(logits.flatten(0, 1), pairs, [p / k for k in freqs]) == pytest.approx(expected)


# ---- edits -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    return Decoder(DecoderConfig(d_model=32, n_layers=2, d_mlp=16)).double().requires_grad_(False)


@pytest.fixture(scope="module")
def prompts():
    numbers = torch.arange(12)
    return prompt(*torch.cartesian_prod(numbers, numbers).T)


def test_together_sets_every_place_and_no_other(model, prompts):
    clean, other = prompts[:50], prompts[50:100]
    there = model(clean, return_activations=True)[1]
    before = model(other, return_activations=True)[1]
    edits = together(there, [("0.z", (-1, 0)), ("0.z", (-1, 2)), ("0.mlp_out", (1,))])
    after = model(other, edits, return_activations=True)[1]
    for head in range(4):
        source = there if head in (0, 2) else before
        assert torch.equal(after["0.z"][:, -1, head], source["0.z"][:, -1, head])
    assert torch.equal(after["0.mlp_out"][:, 1], there["0.mlp_out"][:, 1])
    assert torch.equal(after["0.mlp_out"][:, 0], before["0.mlp_out"][:, 0])
    everything = together(there, [("resid.0", slice(None))])
    assert torch.allclose(model(other, everything), model(clean))


def test_without_takes_the_planted_product_and_leaves_the_rest():
    circle = wave(A + B, T) @ random_map(1)
    x = PLAID + circle + 5
    left = without(x, interaction_waves(PAIRS, [T]))
    assert torch.allclose(left, PLAID + 5 + additive(circle))
    assert torch.allclose(without(NOISE, interaction_waves(PAIRS, [T])), NOISE, atol=0.15)


def test_without_takes_as_much_variance_as_it_is_told_and_never_more_than_there_is():
    x, columns = PLAID + NOISE, waves(A, PERIODS)
    assert float((x - without(x, columns, 50.0)).square().sum()) == pytest.approx(50)
    assert torch.allclose(without(x, columns, 1e12), without(x, columns))


def test_straightened_a_network_can_only_add(model, prompts):
    def interacts(edits):
        x = model(prompts, edits, return_activations=True)[1]["resid.2"][:, -1]
        return float(interaction(x).square().sum() / (x - x.mean(0)).square().sum())

    kinds = straightened(model(prompts, return_activations=True)[1], 2)
    assert set(kinds) == {"GELU", "softmax", "layer norm"}
    all_three = {name: edit for edits in kinds.values() for name, edit in edits.items()}
    assert interacts(all_three) < 1e-20
    for kind in kinds:  # each of the three alone makes products
        others = {name: edit for other in kinds if other != kind for name, edit in kinds[other].items()}
        assert interacts(others) > 1e-6


def test_straight_neurons_have_the_line_that_fits_best(model, prompts):
    inside = model(prompts, return_activations=True)[1]
    edits = straightened(inside, 2)["GELU"]
    after = model(prompts, {name: edits[name] for name in ("0.mlp_pre", "0.mlp_post")}, return_activations=True)[1]
    x, y = inside["0.mlp_pre"][:, 2, 3], inside["0.mlp_post"][:, 2, 3]
    design = torch.stack([torch.ones_like(x), x], 1)
    best = design @ torch.linalg.lstsq(design, y[:, None]).solution[:, 0]
    assert torch.allclose(after["0.mlp_post"][:, 2, 3], best)


def test_an_edit_of_straightened_models_works_on_other_prompts(model, prompts):
    kinds = straightened(model(prompts, return_activations=True)[1], 2)
    for edits in kinds.values():
        assert torch.allclose(model(prompts[:7], edits), model(prompts, edits)[:7])
