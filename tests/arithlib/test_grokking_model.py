"""The fast forward passes are the readable one; the readable one is what the sources describe."""

import pytest
import torch

from arithlib.evaluation import per_example_loss
from arithlib.experiments import GrokkingExperiment
from arithlib.experiments.grokking import ModularObjective
from arithlib.models.grokking import GrokkingConfig, GrokkingTransformer
from arithlib.tasks.modular import ModularAddition

TASK = ModularAddition(p=11, train_fraction=0.5)
SMALL = dict(p=11, d_model=24, n_heads=3, d_head=8, d_mlp=40)
VARIANTS = [
    dict(),
    dict(positions="learned"),
    dict(activation="gelu"),
    dict(activation="identity", positions="learned"),
]


def values_and_gradients(model, answer_logits):
    logits = answer_logits(model)
    weights = torch.linspace(-1, 1, logits.numel(), dtype=logits.dtype).view_as(logits)
    parameters = dict(model.named_parameters())
    gradients = torch.autograd.grad((logits * weights).sum() + logits.square().sum(), list(parameters.values()))
    return logits.detach(), dict(zip(parameters, gradients, strict=True))


def assert_same(model, one, other):
    (logits, gradients), (other_logits, other_gradients) = (values_and_gradients(model, f) for f in (one, other))
    assert (logits - other_logits).abs().max() < 1e-10
    for name, gradient in gradients.items():
        scale = max(1.0, float(gradient.abs().max()))
        assert (gradient - other_gradients[name]).abs().max() < 1e-10 * scale, name


@pytest.mark.parametrize("variant", [*VARIANTS, dict(layer_norm=True), dict(layer_norm=True, positions="learned")])
def test_the_logits_at_equals_are_those_of_the_three_position_forward(variant):
    model = GrokkingTransformer(GrokkingConfig(**SMALL, **variant), seed=1).double()
    pairs = TASK.train_pairs
    assert_same(model, lambda m: m(TASK.tokens(pairs))[:, -1], lambda m: m.answer_logits(pairs))


@pytest.mark.parametrize("variant", VARIANTS)
def test_mixing_tokens_gives_the_values_and_gradients_of_mixing_pairs(variant):
    model = GrokkingTransformer(GrokkingConfig(**SMALL, **variant), seed=2).double()
    pairs = TASK.train_pairs
    assert_same(model, lambda m: m.answer_logits(pairs), lambda m: m.answer_logits(pairs, m.mixer(pairs)))


def test_at_the_published_size_fast_and_readable_agree():
    task = ModularAddition()
    model = GrokkingTransformer(GrokkingConfig(), seed=0).double()
    pairs = task.train_pairs[::7]
    assert_same(model, lambda m: m(task.tokens(pairs))[:, -1], lambda m: m.answer_logits(pairs, m.mixer(pairs)))


def test_the_published_model_has_226816_parameters():
    model = GrokkingTransformer(GrokkingConfig(positions="learned"))
    assert sum(parameter.numel() for parameter in model.parameters()) == 226_816


def test_forward_returns_every_named_activation_with_its_shape():
    model = GrokkingTransformer(GrokkingConfig(**SMALL))
    tokens = TASK.tokens(TASK.pairs[:5])
    logits, activations = model(tokens, return_activations=True)
    B, T, D, H, K, F, V = 5, 3, 24, 3, 8, 40, 12
    shapes = dict(
        resid_pre=(B, T, D), q=(B, H, T, K), k=(B, H, T, K), v=(B, H, T, K), scores=(B, H, T, T),
        pattern=(B, H, T, T), z=(B, H, T, K), attn_out=(B, T, D), resid_mid=(B, T, D), mlp_pre=(B, T, F),
        mlp_post=(B, T, F), mlp_out=(B, T, D), resid_post=(B, T, D), logits=(B, T, V),
    )  # fmt: skip
    assert {name: tuple(value.shape) for name, value in activations.items()} == shapes
    assert torch.equal(activations["logits"], logits)
    torch.testing.assert_close(activations["pattern"].sum(-1), torch.ones(B, H, T))
    assert (activations["pattern"].triu(1) == 0).all()


def test_without_positions_the_order_of_a_and_b_does_not_matter_and_with_them_it_does():
    for positions, same in (("none", True), ("learned", False)):
        model = GrokkingTransformer(GrokkingConfig(**SMALL, positions=positions))
        forth, back = model.answer_logits(TASK.pairs), model.answer_logits(TASK.pairs.flip(1))
        assert torch.allclose(forth, back, atol=1e-5) == same


def test_a_model_adds_by_its_most_likely_token():
    model = GrokkingTransformer(GrokkingConfig(**SMALL), seed=3)
    logits = model(torch.tensor([[4, 9, 11]]))[0, -1]
    asked = GrokkingExperiment(name="g", about="", steps=1, evaluate_every=1, task=TASK, model=model.config)
    assert asked.add(model, 4, 9) == int(logits[:11].argmax())
    with pytest.raises(ValueError, match="adds residues 0 to 10"):
        asked.add(model, 4, 11)


def test_the_seed_decides_the_weights():
    one, same, other = (GrokkingTransformer(GrokkingConfig(**SMALL), seed) for seed in (5, 5, 6))
    assert torch.equal(one.W_E, same.W_E) and not torch.equal(one.W_E, other.W_E)


def test_unknown_choices_and_an_impossible_mixer_are_refused():
    with pytest.raises(ValueError, match="activation = 'tanh': choose one of relu, gelu, identity"):
        GrokkingConfig(activation="tanh")
    with pytest.raises(ValueError, match="positions = 'rotary': choose one of none, learned"):
        GrokkingConfig(positions="rotary")
    with pytest.raises(ValueError, match="call answer_logits without a mixer"):
        GrokkingTransformer(GrokkingConfig(**SMALL, layer_norm=True)).mixer(TASK.pairs)


@pytest.mark.parametrize("positions", ["none", "learned"])
def test_the_training_loss_is_the_mean_over_all_ordered_pairs_that_train(positions):
    """Mirrored pairs are one row of the batch, and count as often as they train."""
    task = ModularAddition(p=13, train_fraction=0.5)
    model = GrokkingTransformer(GrokkingConfig(**SMALL | {"p": 13}, positions=positions), seed=1)
    objective = ModularObjective(task, model, torch.device("cpu"))
    each = per_example_loss(model.answer_logits(task.train_pairs), task.answers(task.train_pairs))
    torch.testing.assert_close(objective.loss(model, 0), each.mean())
    unseen = per_example_loss(model.answer_logits(task.test_pairs), task.answers(task.test_pairs))
    assert objective.evaluate(model)["test_loss"] == pytest.approx(float(unseen.mean().detach()))
