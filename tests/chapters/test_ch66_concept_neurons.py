"""Concept neurons: planted ones are found, ablations against the whole model, ranks against scipy."""

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from short_runs import seeded

from arithlib.models.decoder import Decoder, DecoderConfig
from arithlib.tasks.prompts import prompt
from chapters.ch50_minilm import MiniLM
from chapters.ch66_concept_neurons import (
    CONCEPTS,
    LastToken,
    NeuronMiniLM,
    best_direction,
    fewest_for_half,
    matched,
    permutation_p,
    rank_correlation,
    selectivity,
    written_size,
)

PAIRS = torch.cartesian_prod(torch.arange(100), torch.arange(100))[torch.randperm(10_000, generator=seeded())[:800]]


def test_concepts_are_what_they_say():
    for (a, b), *found in zip(PAIRS.tolist(), *(c.labels(PAIRS).tolist() for c in CONCEPTS.values()), strict=True):
        c = a + b
        assert found == [c % 2, c % 10, c // 10 % 10, int(a % 10 + b % 10 > 9), int(c > 99), c // 20]


def test_a_sham_concept_has_one_answer_for_each_number_and_as_many_numbers_for_each_answer():
    concept = CONCEPTS["units digit"]
    sham, sums = concept.relabelled(PAIRS, seeded(1)), PAIRS.sum(1)
    values = torch.tensor([[c, *set(sham[sums == c].tolist())] for c in sums.unique().tolist()])
    assert values.shape[1] == 2 and not sham.equal(concept.labels(PAIRS))
    assert (values[:, 1].bincount() == (values[:, 0] % 10).bincount()).all()


def test_selectivity_is_the_variance_between_by_the_variance():
    x, labels = torch.randn(60, 4, generator=seeded()), torch.randint(5, (60,), generator=seeded(1))
    x[:, 3] = 7.0
    x[:, 2] = labels.float()
    for neuron, value in zip(x.double().T[:2], selectivity(x, labels), strict=False):
        within = sum(((neuron[labels == k] - neuron[labels == k].mean()) ** 2).sum() for k in range(5))
        assert float(value) == pytest.approx(float(1 - within / ((neuron - neuron.mean()) ** 2).sum()), abs=1e-9)
    assert selectivity(x, labels)[2:].tolist() == pytest.approx([1, 0])


@pytest.mark.parametrize("name", CONCEPTS)
def test_a_planted_neuron_is_found_and_its_concept_told_from_the_others(name):
    x = torch.randn(len(PAIRS), 50, generator=seeded())
    labels = CONCEPTS[name].labels(PAIRS)
    levels = torch.randn(10, generator=seeded(3))
    x[:, 17] = levels[labels] + 0.3 * x[:, 17]
    first, second = slice(0, 400), slice(400, None)
    by_name = {other: selectivity(x[first], c.labels(PAIRS[first])) for other, c in CONCEPTS.items()}
    assert by_name[name].argmax() == 17
    assert selectivity(x[second], labels[second])[17] > 0.5
    assert selectivity(x[second], CONCEPTS[name].relabelled(PAIRS[second], seeded())).max() < 0.5


def test_a_concept_that_is_spread_has_a_direction_and_no_neuron():
    x = torch.randn(len(PAIRS), 30, generator=seeded()).double()
    hidden = torch.randn(30, generator=seeded(1)).double()
    parity = CONCEPTS["parity"].labels(PAIRS)
    x += (
        2 * parity[:, None] - 1 - (x @ hidden / hidden.square().sum())[:, None]
    ) * hidden  # x @ hidden: parity alone
    first, second = slice(0, 400), slice(400, None)
    found = best_direction(x[first], parity[first])
    assert selectivity((x[second] @ found)[:, None], parity[second])[0] > 0.95
    for weights in torch.randn(5, 30, generator=seeded(2)).double():
        assert selectivity((x[first] @ weights)[:, None], parity[first])[0] < 0.9


@pytest.mark.parametrize("mlp", ["gelu", "gated"])
def test_the_last_token_run_alone_is_the_model_with_its_last_token_edited(mlp):
    model = Decoder(DecoderConfig(d_model=16, n_heads=2, d_mlp=8, n_layers=2, mlp=mlp), seed=3)
    prompts, neurons, values = prompt(*PAIRS[:20].T), torch.tensor([1, 7, 10]), torch.randn(16, generator=seeded())
    alone = LastToken(model, prompts)

    def put(layer):
        def edit(x):
            x = x.clone()
            for neuron in neurons.tolist():
                if neuron // 8 == layer:
                    x[:, -1, neuron % 8] = values[neuron]
            return x

        return edit

    with torch.no_grad():
        clean, seen = model(prompts, return_activations=True)
        edited = model(prompts, {f"{layer}.mlp_post": put(layer) for layer in range(2)})
    torch.testing.assert_close(alone.logits(), clean)
    torch.testing.assert_close(alone.activations, torch.cat([seen[f"{i}.mlp_post"][:, -1] for i in range(2)], 1))
    torch.testing.assert_close(alone.logits(neurons, values), edited)
    assert not torch.allclose(clean, edited)


def test_what_a_neuron_writes_is_what_its_mean_takes_away():
    model = Decoder(DecoderConfig(d_model=16, n_heads=2, d_mlp=8, n_layers=2), seed=3)
    activations = LastToken(model, prompt(*PAIRS[:50].T)).activations
    neuron = 11  # of layer 1
    lost = (activations[:, neuron] - activations[:, neuron].mean())[:, None] * model.blocks[1].W_out[3].detach()
    lost = lost - lost.mean(1, keepdim=True)
    expected = lost.square().sum(1).mean().sqrt()
    torch.testing.assert_close(written_size(model, activations)[neuron], expected)


def test_matched_neurons_are_others_of_nearly_the_same_size():
    size = torch.rand(200, generator=seeded()) + 0.1
    group = size.argsort(descending=True)[20:40]
    for seed in range(5):
        drawn = matched(group, size, seeded(seed))
        assert len(set(drawn.tolist())) == len(group) and not set(drawn.tolist()) & set(group.tolist())
        assert size[drawn].mean() == pytest.approx(float(size[group].mean()), rel=0.1)
    assert not matched(group, size, seeded(0)).equal(matched(group, size, seeded(1)))


def test_rank_correlation_is_spearmans_and_chance_has_any_p():
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=300), generator.random(300) < 0.8
    assert rank_correlation(x, y) == pytest.approx(spearmanr(x, y).statistic)
    assert permutation_p(x + 1.0 * y, y, generator) == pytest.approx(1 / 1000)
    assert permutation_p(x - 1.0 * y, y, generator) > 0.99
    by_chance = [permutation_p(generator.normal(size=60), y[:60], generator, 99) for _ in range(100)]
    assert 0.35 < np.mean(by_chance) < 0.65


def test_half_of_the_loss_on_a_line_between_the_counts():
    counts, increases = np.array([2, 4, 8]), np.array([1.0, 0.5, 3.0])
    assert fewest_for_half(counts, increases, 4.0) == pytest.approx(4 + 4 * 0.5)
    assert fewest_for_half(counts, increases, 1.0) == pytest.approx(1.0)
    assert fewest_for_half(counts, increases, 7.0) == float("inf")


def test_minilm_with_neurons_read_and_set():
    model = NeuronMiniLM()
    tokens = torch.tensor([[model.tokens[word] for word in ("[CLS]", "two", "plus", "two", "[SEP]")]])
    with torch.no_grad():
        plain = MiniLM().hidden_states(tokens)[-1].mean(1)
        embedding, seen = model.run(tokens)
        torch.testing.assert_close(embedding, plain / plain.norm())
        same, _ = model.run(tokens, torch.tensor([5]), seen[0, 0])
        assert not torch.allclose(same, embedding, atol=1e-7)
        neuron = 3 * 1536 + 7
        set_to, after = model.run(tokens, torch.tensor([neuron]), torch.full((seen.shape[-1],), 9.0))
    assert (after[..., neuron] == 9).all() and not torch.allclose(set_to, embedding)
    torch.testing.assert_close(after[..., : 3 * 1536], seen[..., : 3 * 1536])
    assert model.written_norms().shape == (6 * 1536,)
