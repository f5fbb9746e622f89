"""The grid functions of attention agree with the plain forward pass, token by token."""

import pytest
import torch

from arithlib.analysis.attention import attention_grid, head_scores, keep_waves, mix, weight_on_a
from arithlib.models.grokking import GrokkingConfig, GrokkingTransformer

P = 11


@pytest.fixture(scope="module")
def model():
    return GrokkingTransformer(GrokkingConfig(p=P, d_model=16, n_heads=2, d_head=8, d_mlp=8), seed=3).double()


@pytest.fixture(scope="module")
def activations(model):
    pairs = torch.cartesian_prod(torch.arange(P), torch.arange(P))
    tokens = torch.cat([pairs, torch.full_like(pairs[:, :1], P)], 1)
    return model(tokens, return_activations=True)[1]


def test_the_grid_is_the_last_row_of_the_attention_pattern(model, activations):
    pattern, v = attention_grid(model)
    expected = activations["pattern"][:, :, -1].unflatten(0, (P, P)).mT  # (P, P, token, head)
    torch.testing.assert_close(pattern, expected.detach())
    torch.testing.assert_close(v[:, 1], activations["v"].detach()[::P, 1, 0])  # pairs (a, 0): the value of a


def test_scores_are_those_of_the_model_up_to_a_constant(model, activations):
    pattern, _ = attention_grid(model)
    of_a = activations["scores"].detach()[::P, :, -1, 0]  # (P, H)
    torch.testing.assert_close(head_scores(pattern), of_a - of_a.mean(0))


def test_two_scores_decide_how_the_attention_on_a_and_b_is_shared(model):
    pattern, _ = attention_grid(model)
    share = pattern[:, :, 0] / pattern[:, :, :2].sum(2)
    torch.testing.assert_close(weight_on_a(head_scores(pattern)), share)


def test_mixing_gives_the_head_output_once_nothing_goes_to_the_equals_sign(model, activations):
    pattern, v = attention_grid(model)
    z = activations["z"].detach()[:, :, -1].unflatten(0, (P, P))
    v_equals = torch.einsum("d,hdk->hk", model.W_E[-1], model.W_V).detach()
    of_two = mix(weight_on_a(head_scores(pattern)), v)
    to_equals = pattern[:, :, 2, :, None]
    torch.testing.assert_close((1 - to_equals) * of_two + to_equals * v_equals, z)


def test_keep_waves_keeps_the_mean_and_the_named_waves_only():
    angle = 2 * torch.pi * torch.arange(P, dtype=torch.float64) / P
    kept, dropped = 3 + (2 * angle + 1).cos(), (4 * angle).sin()
    torch.testing.assert_close(keep_waves((kept + dropped)[:, None], [2]), kept[:, None])


def test_a_model_with_positions_is_refused():
    config = GrokkingConfig(p=P, d_model=16, n_heads=2, d_head=8, d_mlp=8, positions="learned")
    with pytest.raises(ValueError, match="two values for each residue"):
        attention_grid(GrokkingTransformer(config))


def test_a_planted_petal_is_measured_with_its_frequencies_phase_and_amplitude():
    p, k_e, k_a, S, phase = 113, 4, 32, 1.3, 0.7
    planted = GrokkingTransformer(GrokkingConfig(d_model=8, n_heads=1, d_head=4, d_mlp=4)).double()
    t = torch.arange(p, dtype=torch.float64)
    circle, listens = (2 * torch.pi * k * t / p for k in (k_e, k_a))
    with torch.no_grad():
        for parameter in planted.parameters():
            parameter.zero_()
        planted.W_E[:p, :4] = torch.stack([circle.cos(), circle.sin(), listens.cos(), listens.sin()], 1)
        planted.W_E[p, 4] = 1  # '='
        planted.W_Q[0, 4, 0] = planted.config.d_head**0.5
        planted.W_K[0, 4, 0] = -50
        planted.W_K[0, 2:4, 0] = S * torch.tensor([phase, phase + torch.pi / 2], dtype=torch.float64).cos()
        planted.W_V[0, :2, :2] = torch.eye(2)
    pattern, v = attention_grid(planted)
    score = S * (listens + phase).cos()
    torch.testing.assert_close(head_scores(pattern)[:, 0], score)
    x = torch.polar(torch.ones(p, dtype=torch.float64), circle)
    alpha = 1 / (1 + (score[None] - score[:, None]).exp())
    z = mix(weight_on_a(head_scores(pattern)), v)[:, :, 0]
    petal = alpha * x[:, None] + (1 - alpha) * x[None]
    torch.testing.assert_close(torch.view_as_complex(z[..., :2].contiguous()), petal)
