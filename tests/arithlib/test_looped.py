"""The looped transformer: its layouts, its loops, its loss."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F

from arithlib.models.looped import LoopedConfig, LoopedTransformer, ProgressiveLoss
from arithlib.models.positions import SCHEMES, far_columns
from arithlib.tasks.operands import OperandTask

TINY = LoopedConfig(d_model=16, n_heads=2, d_mlp=32, n_layers=2, n_loops=3, n_rows=64, n_ctx=64)
TASK = OperandTask(max_digits=4)


def problems(count=6, seed=0):
    return TASK.sample(count, torch.Generator().manual_seed(seed))


def test_weights_are_shared_by_loops_and_counted_as_in_the_paper():
    shallow, deep = (LoopedTransformer(dataclasses.replace(TINY, n_loops=n)) for n in (1, 16))
    assert sum(p.numel() for p in shallow.parameters()) == sum(p.numel() for p in deep.parameters())
    layer = LoopedTransformer(LoopedConfig(d_model=1024, n_heads=16, d_mlp=2048, n_layers=1)).layers[0]
    assert sum(p.numel() for p in layer.parameters()) == pytest.approx(8.4e6, rel=0.01)  # source 002's block


def test_the_seed_decides_the_weights_and_leaves_the_global_generator_alone():
    state = torch.random.get_rng_state()
    first, again, other = (LoopedTransformer(TINY, seed).layers[0].qkv.weight for seed in (0, 0, 1))
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert torch.equal(state, torch.random.get_rng_state())


@pytest.mark.parametrize("injection", ["loop", "normed", "none"])
def test_loops_apply_the_same_layers_to_what_the_layout_says(injection):
    model = LoopedTransformer(dataclasses.replace(TINY, injection=injection))
    tokens = problems().tokens
    e, placed = model.embed(tokens)
    x = e
    for loop in range(5):
        if injection == "loop" and loop > 0:
            x = x + e
        for layer in model.layers:
            extra = e if injection == "normed" else 0
            q, k, v = (layer.norm_attn(x) + extra).matmul(layer.qkv.weight.T).add(layer.qkv.bias).chunk(3, -1)
            heads = [h.unflatten(-1, (2, 8)).transpose(1, 2) for h in (q, k, v)]
            z = F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(2)
            x = x + layer.out(z)
            x = x + layer.mlp_out(F.gelu(layer.mlp_in(layer.norm_mlp(x) + extra)))
    torch.testing.assert_close(model(tokens, loops=5), model.unembedding(model.final_norm(x)))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kernel", ["eager", "sdpa"])
def test_asking_for_the_last_tokens_alone_gives_their_logits(scheme, kernel):
    for ends, window in ((0, None), (1, None), (0, 1)):
        layout = dict(injection="normed", n_layers=2 + ends, n_ends=ends, window=window)
        config = dataclasses.replace(TINY, positions=scheme, **layout)
        model, tokens = LoopedTransformer(config), problems().tokens
        model.kernel = kernel
        for since in (0, 5, tokens.shape[1] - 1):
            torch.testing.assert_close(model(tokens, since=since), model(tokens)[:, since:])


def test_looping_the_middle_applies_its_layers_again_and_the_ends_once():
    config = dataclasses.replace(TINY, n_layers=4, n_loops=3, injection="none", positions="rotary", n_ends=1)
    tokens = problems().tokens
    model = LoopedTransformer(config, seed=1)
    unrolled = LoopedTransformer(dataclasses.replace(config, n_layers=8, n_loops=1, n_ends=0))
    unrolled.embedding, unrolled.final_norm, unrolled.unembedding = (
        model.embedding,
        model.final_norm,
        model.unembedding,
    )
    unrolled.layers = torch.nn.ModuleList(model.layers[i] for i in (0, 1, 2, 1, 2, 1, 2, 3))
    torch.testing.assert_close(model(tokens), unrolled(tokens))
    plain = LoopedTransformer(dataclasses.replace(config, n_ends=0), seed=1)
    torch.testing.assert_close(model(tokens, loops=1), plain(tokens, loops=1))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("window", [None, 1])
def test_later_tokens_change_nothing_before_them_and_kernels_agree(scheme, window):
    model = LoopedTransformer(dataclasses.replace(TINY, positions=scheme, window=window))
    tokens = problems().tokens
    changed = tokens.clone()
    changed[:, 9:] = 3
    whole = model(tokens)
    torch.testing.assert_close(whole[:, :9], model(changed)[:, :9])
    model.kernel = "eager"
    torch.testing.assert_close(whole, model(tokens), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("scheme", ["abacus", "fire", "none"])
@pytest.mark.parametrize("kernel", ["eager", "sdpa"])
def test_a_window_hides_far_columns_and_nothing_else(scheme, kernel):
    """In one layer, once: a digit matters where it is in the window, and only there."""
    config = dataclasses.replace(TINY, positions=scheme, n_layers=1, n_loops=1, window=2)
    model = LoopedTransformer(config)
    model.kernel = kernel
    tokens = TASK.from_numbers([(1234, 67), (12, 5678)]).tokens
    far = far_columns(tokens, 2)
    before = model(tokens)
    for key in range(tokens.shape[1]):
        changed = tokens.clone()
        changed[:, key] = torch.where(tokens[:, key] < 10, (tokens[:, key] + 1) % 10, tokens[:, key])
        moved = (model(changed) - before).abs().amax(-1) > 1e-6
        after = torch.arange(tokens.shape[1]) >= key
        assert torch.equal(moved, after & ~far[:, :, key] & (changed != tokens)[:, key, None])


def test_only_schemes_with_addresses_depend_on_the_offset():
    tokens = problems().tokens
    for scheme in SCHEMES:
        model = LoopedTransformer(dataclasses.replace(TINY, positions=scheme))
        same = torch.allclose(model(tokens, torch.tensor([[3]])), model(tokens, torch.tensor([[9]])))
        assert same != model.positions.addressed


def test_activations_are_named_by_loop_and_layer_and_patterns_are_distributions():
    model = LoopedTransformer(TINY)
    tokens = problems().tokens
    logits, activations = model(tokens, loops=2, return_activations=True)
    torch.testing.assert_close(logits, model(tokens, loops=2), atol=1e-4, rtol=1e-4)
    assert set(activations) == {"resid_pre"} | {
        f"loops.{r}.layers.{n}.{name}" for r in range(2) for n in range(2) for name in ("resid_post", "pattern")
    }
    pattern = activations["loops.1.layers.0.pattern"]
    torch.testing.assert_close(pattern.sum(-1), torch.ones(pattern.shape[:-1]))
    torch.testing.assert_close(model.logits(activations["loops.1.layers.1.resid_post"]), logits)


def cross_entropy(model, batch, **more):
    logits = model(batch.tokens, torch.tensor([[4]]), **more)[:, :-1]
    losses = F.cross_entropy(logits.transpose(1, 2), batch.tokens[:, 1:], reduction="none")
    return losses[batch.answer_mask[:, 1:]].sum()


@pytest.mark.parametrize("truncate", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.25, 1.0])
def test_the_progressive_loss_is_its_two_terms_mixed(alpha, truncate):
    model, batch = LoopedTransformer(TINY), problems()
    n, k = (1, 1) if truncate else (0, 2)
    loss = ProgressiveLoss(alpha, truncate)(model, batch, torch.tensor([[4]]), (n, k), batch.answer_mask)
    full, part = cross_entropy(model, batch), cross_entropy(model, batch, loops=n + k)
    torch.testing.assert_close(loss, (1 - alpha) * full + alpha * part)


def test_only_masked_tokens_count():
    model, batch, offset = LoopedTransformer(TINY), problems(), torch.tensor([[4]])
    everything = torch.ones_like(batch.answer_mask)
    parts = [ProgressiveLoss()(model, batch, offset, (0, 1), m) for m in (batch.answer_mask, ~batch.answer_mask)]
    torch.testing.assert_close(sum(parts), ProgressiveLoss()(model, batch, offset, (0, 1), everything))
    assert min(parts) > 0 == ProgressiveLoss()(model, batch, offset, (0, 1), ~everything)


def test_truncated_loops_have_no_gradient():
    """With one loop tracked of three, the input's gradient is that of adding it before the last loop alone."""
    model, batch = LoopedTransformer(TINY), problems()
    offset = torch.tensor([[4]])
    loss = ProgressiveLoss(1.0, truncate=True)(model, batch, offset, (2, 1), batch.answer_mask)
    (truncated,) = torch.autograd.grad(loss, model.embedding.weight)
    e, placed = model.embed(batch.tokens, offset)
    before = model.states(e, placed, 2)[-1].detach()
    x = model.states(e, placed, 1, before)[-1]
    losses = F.cross_entropy(model.logits(x[:, :-1]).transpose(1, 2), batch.tokens[:, 1:], reduction="none")
    (expected,) = torch.autograd.grad(losses[batch.answer_mask[:, 1:]].sum(), model.embedding.weight)
    torch.testing.assert_close(truncated, expected)
    full = ProgressiveLoss(1.0, truncate=False)(model, batch, offset, (0, 3), batch.answer_mask)
    torch.testing.assert_close(full, loss)
    assert not torch.allclose(torch.autograd.grad(full, model.embedding.weight)[0], truncated)


def test_loop_counts_are_drawn_as_the_release_and_the_source_draw_them():
    def drawn(truncate):
        generator = torch.Generator().manual_seed(0)
        return {ProgressiveLoss(1.0, truncate).draw(6, generator) for _ in range(600)}

    assert drawn(True) == {(n, k) for n in range(6) for k in range(1, min(6 - n, 3) + 1)}
    assert drawn(False) == {(0, k) for k in range(1, 7)}


def test_bad_settings_are_named():
    with pytest.raises(ValueError, match="d_model = 10 is not a multiple of n_heads = 4"):
        LoopedConfig(d_model=10)
    with pytest.raises(ValueError, match="both are at least 1"):
        LoopedConfig(n_loops=0)
    with pytest.raises(ValueError, match="choose one of loop, normed, none"):
        LoopedConfig(injection="twice")
    for ends in (-1, 1):
        with pytest.raises(ValueError, match=f"n_ends = {ends} of 2 layers: one must be left to loop"):
            LoopedConfig(n_layers=2, n_ends=ends)
    with pytest.raises(ValueError, match="window = 0: at least 1 column"):
        LoopedConfig(window=0)
    with pytest.raises(ValueError, match="alpha = 2"):
        ProgressiveLoss(2)
    with pytest.raises(ValueError, match="loops = 0: at least 1"):
        LoopedTransformer(TINY)(problems().tokens, loops=0)
