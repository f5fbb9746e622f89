"""Patching on a planted circuit, whose effects are known by hand, and on a decoder; fits on planted helices."""

import pytest
import torch

from arithlib.analysis.helix import helix_columns, principal_components
from arithlib.analysis.patching import (
    Pairs,
    attribution,
    direct_effect,
    effect,
    fitted,
    put,
    random_directions,
    remove,
    strongest_periods,
    total_effect,
    total_effects,
)
from arithlib.models.decoder import Decoder, DecoderConfig
from arithlib.tasks.prompts import prompt

NUMBERS = torch.arange(100)
NAMES = ("source", "builder", "reader")


class Circuit:
    """The number a goes to the answer's logit by three ways: 2 a directly, 3 a by a builder, and its reader's.

    The builder writes 3 a; the reader writes `bend` of what the builder wrote.
    """

    def __init__(self, bend=lambda x: 10 * x):
        self.bend = bend

    def __call__(self, tokens, edits=None, return_activations=False):
        activations = {}

        def at(name, x):
            activations[name] = (edits or {}).get(name, lambda x: x)(x)
            return activations[name]

        source = at("source", tokens[:, :1].double().requires_grad_())
        builder = at("builder", 3 * source)
        reader = at("reader", self.bend(builder))
        logits = torch.cat([2 * source + builder + reader, torch.zeros_like(source)], 1)
        return (logits, activations) if return_activations else logits


PAIRS = Pairs(torch.tensor([[7], [4]]), torch.tensor([[2], [9]]), torch.tensor([0, 0]))
CHANGE = torch.tensor([5.0, -5.0], dtype=torch.float64)  # of a from the corrupted to the clean prompt


@pytest.mark.parametrize(("name", "times"), [("source", 2 + 3 + 30), ("builder", 3 + 30), ("reader", 30)])
def test_total_effects_of_a_planted_circuit(name, times):
    assert torch.equal(total_effect(Circuit(), PAIRS, name), times * CHANGE)


@pytest.mark.parametrize(("name", "times"), [("source", 2), ("builder", 3), ("reader", 30)])
def test_direct_effects_of_a_planted_circuit(name, times):
    assert torch.equal(direct_effect(Circuit(), PAIRS, name, NAMES), times * CHANGE)


def test_holding_only_the_reader_leaves_the_way_through_the_builder():
    assert torch.equal(direct_effect(Circuit(), PAIRS, "source", ["reader"]), (2 + 3) * CHANGE)


def test_attribution_is_exact_where_the_circuit_is_linear_and_not_where_it_bends():
    for name in NAMES:
        found = attribution(Circuit(), PAIRS, [name])[name][:, 0]
        assert torch.equal(found, total_effect(Circuit(), PAIRS, name))
    square = Circuit(lambda x: x**2)
    found = attribution(square, PAIRS, ["builder"])["builder"][:, 0]
    assert torch.equal(found, 3 * CHANGE * (1 + 2 * 3 * PAIRS.corrupted[:, 0]))  # the slope on the corrupted prompt
    assert not torch.allclose(found, total_effect(square, PAIRS, "builder"))


def test_an_effect_is_measured_at_the_clean_answer():
    other = Pairs(PAIRS.clean, PAIRS.corrupted, torch.tensor([1, 1]))  # a logit that the circuit never moves
    assert torch.equal(total_effect(Circuit(), other, "source"), torch.zeros(2, dtype=torch.float64))


# ---- on a decoder ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    return Decoder(DecoderConfig(d_model=32, n_layers=2, d_mlp=16)).eval()


@pytest.fixture(scope="module")
def pairs():
    a, other, b = torch.randint(100, (3, 20), generator=torch.Generator().manual_seed(0))
    return Pairs(prompt(a, b), prompt(other, b), a + b)


def test_patching_all_of_the_input_makes_the_corrupted_prompt_the_clean_one(model, pairs):
    with torch.no_grad():
        difference = (model(pairs.clean) - model(pairs.corrupted))[torch.arange(20), pairs.answers]
    assert torch.allclose(total_effect(model, pairs, "resid.0"), difference, atol=1e-5)
    assert torch.allclose(total_effect(model, pairs, "resid.0", 0), difference, atol=1e-5)  # they differ in a only
    assert torch.equal(total_effect(model, pairs, "resid.0", 2), torch.zeros(20))


def test_without_its_readers_a_token_that_is_not_the_last_has_no_direct_effect(model, pairs):
    others = [f"{layer}.{part}" for layer in range(2) for part in ("attn_out", "mlp_out")]
    assert torch.allclose(direct_effect(model, pairs, "resid.0", others, 0), torch.zeros(20), atol=1e-5)


def test_attribution_has_the_slope_of_a_small_patch(model, pairs):
    model = Decoder(model.config).double()
    found = attribution(model, pairs, ["0.mlp_post"])["0.mlp_post"][:, 0].sum(-1)
    clean, corrupted = (
        model(tokens, return_activations=True)[1]["0.mlp_post"][:, 0] for tokens in (pairs.clean, pairs.corrupted)
    )
    small = 1e-6
    step = effect(model, pairs, {"0.mlp_post": put((corrupted + small * (clean - corrupted)).detach(), 0)})
    assert float(found.abs().max()) > 0
    assert torch.allclose(step / small, found, rtol=1e-4, atol=1e-6)


# ---- subspaces ---------------------------------------------------------------------------------------------------


def test_removing_directions_takes_out_their_span_and_nothing_else():
    generator = torch.Generator().manual_seed(1)
    x, directions = torch.randn(50, 3, 12, generator=generator), random_directions(12, 4, generator)
    mean = x[:, 1].mean(0)
    left = remove(directions, mean, 1)(x)
    assert torch.allclose((left[:, 1] - mean) @ directions.T, torch.zeros(50, 4), atol=1e-4)
    assert torch.equal(left[:, [0, 2]], x[:, [0, 2]])
    basis = torch.linalg.qr(directions.T)[0]
    assert torch.allclose(left[:, 1] - x[:, 1], -(x[:, 1] - mean) @ basis @ basis.T, atol=1e-5)


def test_of_a_planted_subspace_only_its_own_removal_is_noticed():
    generator = torch.Generator().manual_seed(2)
    axes = torch.linalg.qr(torch.randn(32, 32, generator=generator))[0].T
    used, unused, read = axes[:4], axes[4:8], axes[:4].T @ torch.ones(4)
    x = torch.randn(200, 32, generator=generator)
    x = x - x.mean(0)
    zero = torch.zeros(32)
    assert torch.allclose(remove(used, zero)(x) @ read, torch.zeros(200), atol=1e-4)
    assert torch.allclose(remove(unused, zero)(x) @ read, x @ read, atol=1e-4)
    kept = torch.stack([remove(random_directions(32, 4, generator), zero)(x) @ read for _ in range(50)])
    share = (kept * (x @ read)).sum(-1) / (x @ read).square().sum()
    assert abs(float(share.mean()) - (1 - 4 / 32)) < 0.03


# ---- fits --------------------------------------------------------------------------------------------------------


def planted(periods, noise=0.0, line=1.0):
    generator = torch.Generator().manual_seed(3)
    columns = helix_columns(NUMBERS, periods)
    columns[:, 0] *= line
    clean = columns @ torch.randn(columns.shape[1], 24, generator=generator, dtype=torch.float64) + 1
    return clean + noise * torch.randn(100, 24, generator=generator, dtype=torch.float64)


def test_a_planted_helix_is_fitted_exactly_also_where_the_fit_has_not_seen_it():
    x, columns = planted([7.3, 20]), helix_columns(NUMBERS, [7.3, 20])
    assert torch.allclose(fitted(x, columns), x)
    assert torch.allclose(fitted(x, columns, seen=NUMBERS % 5 != 3), x)
    shuffled = NUMBERS[torch.randperm(100, generator=torch.Generator().manual_seed(4))]
    assert not torch.allclose(fitted(x, helix_columns(shuffled, [7.3, 20])), x, atol=0.1)


def test_principal_components_as_columns_give_the_reduced_vectors():
    x = planted([7.3, 20], noise=0.5)
    left, sizes, axes = torch.linalg.svd(x - x.mean(0), full_matrices=False)
    assert torch.allclose(fitted(x, principal_components(x, 3)), x.mean(0) + left[:, :3] * sizes[:3] @ axes[:3])


def test_planted_periods_are_found_though_they_do_not_divide_the_range():
    periods = [7.3, 20, 2.6]
    found = strongest_periods(planted(periods, noise=0.1, line=3.0), NUMBERS, 3)
    for T in periods:
        assert min(abs(1 / T - 1 / other) for other in found) <= 1 / 2000


def test_shuffled_numbers_hide_the_periods():
    shuffled = NUMBERS[torch.randperm(100, generator=torch.Generator().manual_seed(5))]
    found = strongest_periods(planted([7.3, 20], noise=0.1), shuffled, 2)
    assert all(abs(1 / T - 1 / other) > 1 / 2000 for T in (7.3, 20) for other in found)


def test_effects_at_many_places_are_those_at_each(model, pairs):
    places = [(-1, 3), (2, slice(4, 9)), 0]
    each = torch.stack([total_effect(model, pairs, "1.attn_out", where) for where in places])
    assert torch.equal(total_effects(model, pairs, "1.attn_out", places), each)
