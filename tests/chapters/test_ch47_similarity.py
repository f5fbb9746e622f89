"""Cosines and distances of blocks against cases whose answer is known."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from arithlib.models.looped import LoopedConfig, LoopedTransformer
from chapters import ch47_similarity as similarity

CONFIG = LoopedConfig(d_model=8, n_heads=2, d_mlp=16, n_layers=4, n_loops=1, positions="rotary", injection="none")


def test_corresponding_matrices_stand_k_layers_apart():
    layers = LoopedTransformer(CONFIG).layers
    pairs = similarity.corresponding(layers, 2)
    assert list(pairs) == list(similarity.GROUPS) and all(len(of) == 2 for of in pairs.values())
    assert pairs["FFN-W1"][1][0] is layers[1].mlp_in.weight and pairs["FFN-W1"][1][1] is layers[3].mlp_in.weight
    assert pairs["Attn-K"][0][0].equal(layers[0].qkv.weight[8:16])
    for k in (0, 3, 4):
        with pytest.raises(ValueError, match="several blocks"):
            similarity.corresponding(layers, k)


def test_copies_have_cosine_1_and_distance_0_and_scaled_copies_a_distance_only():
    layers = LoopedTransformer(CONFIG).layers
    for i in (2, 3):
        layers[i] = copy.deepcopy(layers[i - 2])
    assert similarity.mean_over_groups(layers, 2).item() == pytest.approx(1)
    assert similarity.mean_over_groups(layers, 2, similarity.relative_distance).item() == pytest.approx(0)
    with torch.no_grad():
        for layer in layers[2:]:
            for matrix in similarity.matrices(layer).values():
                matrix.mul_(3)
    assert similarity.mean_over_groups(layers, 2).item() == pytest.approx(1)
    assert similarity.mean_over_groups(layers, 2, similarity.relative_distance).item() == pytest.approx(4 / 10)
    assert similarity.similarities(layers, 2)["FFN-W2"] == pytest.approx([1, 1])


def test_the_mean_over_groups_is_that_of_equation_4_written_out():
    layers, L, k = LoopedTransformer(CONFIG).layers, 4, 1
    total = 0.0
    for group in similarity.GROUPS:
        vectors = [similarity.matrices(layer)[group].detach().flatten().numpy() for layer in layers]
        for i in range(L // k - 1):
            for j in range(k):
                a, b = vectors[i * k + j], vectors[(i + 1) * k + j]
                total += a @ b / np.linalg.norm(a) / np.linalg.norm(b) / (L - k) / len(similarity.GROUPS)
    assert similarity.mean_over_groups(layers, k).item() == pytest.approx(total, abs=1e-6)


@pytest.mark.parametrize("measure", ["cosine", "l2"])
@pytest.mark.parametrize("strength", [1.0, -1.0])
def test_descent_on_the_pull_makes_blocks_alike_if_its_strength_is_positive(measure, strength):
    model = LoopedTransformer(CONFIG)
    before = similarity.mean_over_groups(model.layers, 2).item()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(30):
        optimizer.zero_grad()
        similarity.similarity_penalty(model.layers, 2, strength, measure).backward()
        optimizer.step()
    after = similarity.mean_over_groups(model.layers, 2).item()
    assert (after - before) * strength > 0.3


def test_the_squared_distance_is_also_lowered_by_smaller_matrices_and_the_others_are_not():
    layers = LoopedTransformer(CONFIG).layers
    before = {
        measure: similarity.similarity_penalty(layers, 2, 1.0, measure).item()
        for measure in ("cosine", "l2", "squared")
    }
    with torch.no_grad():
        for layer in layers:
            for linear in (layer.qkv, layer.out, layer.mlp_in, layer.mlp_out):
                linear.weight.mul_(0.5)
    after = {measure: similarity.similarity_penalty(layers, 2, 1.0, measure).item() for measure in before}
    assert after["squared"] == pytest.approx(before["squared"] / 4)
    assert [after[m] for m in ("cosine", "l2")] == pytest.approx([before[m] for m in ("cosine", "l2")], abs=1e-6)


def test_models_trained_together_are_those_trained_alone_but_for_rounding():
    strengths, steps, drawn = torch.tensor([0.0, 10.0, -10.0]), 12, torch.Generator().manual_seed(0)
    texts = torch.randint(4, (steps, len(strengths), 5, 9), generator=drawn)

    def loss(model, tokens, strength):
        left = nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        return left + similarity.similarity_penalty(model.layers, 2, strength), left

    together = [LoopedTransformer(CONFIG, seed) for seed in range(3)]
    kept = similarity.train_together(together, loss, lambda step: (texts[step], strengths), steps)
    for i, seed in enumerate(range(3)):
        alone, seen = LoopedTransformer(CONFIG, seed), []
        optimizer = torch.optim.Adam(alone.parameters(), lr=0.01)
        decay = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0.02, steps)
        for step in range(steps):
            of_step, left = loss(alone, texts[step, i], strengths[i])
            seen.append(left.detach())
            optimizer.zero_grad()
            of_step.backward()
            optimizer.step()
            decay.step()
        torch.testing.assert_close(kept[:, i], torch.stack(seen), rtol=1e-4, atol=1e-4)
        for own, same in zip(together[i].parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(own, same, rtol=1e-3, atol=1e-3)


def test_an_unknown_measure_is_refused():
    with pytest.raises(ValueError, match="choose cosine, l2 or squared"):
        similarity.similarity_penalty(nn.ModuleList(LoopedTransformer(CONFIG).layers), 2, 1.0, "angle")
