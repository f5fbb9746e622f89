"""Attention changed in evaluation: scores, heads, columns, and what is refused (chapter 37)."""

from types import SimpleNamespace

import pytest
import torch

from arithlib.models.looped import LoopedConfig, LoopedTransformer
from arithlib.tasks.operands import OperandTask
from chapters.ch37_sharpness import column_attention, log_law, sharpened, windowed

SMALL = dict(d_model=16, n_heads=2, d_mlp=16, n_rows=32)


def problems(n, count=4):
    return OperandTask(max_digits=n).problems(torch.full((count, 2), n), torch.Generator().manual_seed(n))


def first_pattern(model, sums):
    return model(sums.tokens, return_activations=True)[1]["loops.0.layers.0.pattern"].double()


@pytest.mark.parametrize("positions", ["abacus", "rotary"])
@pytest.mark.parametrize("heads", [None, [[True, False], [False, False]]])
def test_weights_are_those_of_scores_so_many_times_as_large(positions, heads):
    model, sums = LoopedTransformer(LoopedConfig(**SMALL, positions=positions), seed=1), problems(5)
    before = first_pattern(model, sums)
    powers = before**1.7
    wanted = powers / powers.sum(-1, keepdim=True)
    if heads is not None:
        wanted[:, 1] = before[:, 1]
    found = first_pattern(sharpened(model, 1.7, heads and torch.tensor(heads)), sums)
    torch.testing.assert_close(found, wanted, atol=1e-6, rtol=1e-5)


def test_a_factor_of_one_changes_nothing_and_no_factor_changes_the_model():
    model, sums = LoopedTransformer(LoopedConfig(**SMALL)), problems(5)
    before = model(sums.tokens)
    assert torch.equal(sharpened(model, 1.0)(sums.tokens), before)
    assert not torch.equal(sharpened(model, 2.0)(sums.tokens), before)
    assert torch.equal(model(sums.tokens), before)


@pytest.mark.parametrize("positions", ["fire", "abacus-qk", "abacus+fire"])
def test_positions_that_add_to_scores_are_refused(positions):
    with pytest.raises(ValueError, match="add to scores"):
        sharpened(LoopedTransformer(LoopedConfig(**SMALL, positions=positions)), 1.5)


def test_the_law_leaves_the_longest_text_of_training_and_is_one_logarithm_over_another():
    assert log_law(64, 64) == 1 and log_law(64**2, 64) == pytest.approx(2)


def test_a_window_changes_what_a_copy_sees_as_if_it_were_built_so():
    model, sums = LoopedTransformer(LoopedConfig(**SMALL), seed=2), problems(5)
    model.kernel = "eager"
    before, near = model(sums.tokens), windowed(model, 1)
    built = LoopedTransformer(LoopedConfig(**SMALL, window=1), seed=2)
    torch.testing.assert_close(near(sums.tokens), built(sums.tokens))
    torch.testing.assert_close(windowed(model, 6)(sums.tokens), before)
    assert near.config == built.config and near.kernel == "eager"
    assert torch.equal(model(sums.tokens), before) and not torch.allclose(near(sums.tokens), before)


@pytest.mark.parametrize(("shift", "share"), [(0, 0.75), (1, 0.0)])
def test_attention_planted_on_the_column_is_found_there_alone(shift, share):
    """A quarter elsewhere, a quarter on the first number's digit and half on the second's."""
    sums = problems(6)

    class Planted:
        config = SimpleNamespace(n_layers=1)

        def __call__(self, tokens, offset, return_activations):
            assert offset is None and return_activations
            pattern = torch.zeros(len(tokens), 2, tokens.shape[1], tokens.shape[1])
            for column in range(6):
                writes = int(sums.start[0]) - 1 + column
                pattern[:, 1, writes, (column + shift) % 6] = 0.25
                pattern[:, 1, writes, 7 + (column + shift) % 6] = 0.5
                pattern[:, 1, writes, 6] = 0.25
            return None, {"loops.0.layers.0.pattern": pattern, "loops.0.layers.0.resid_post": None}

    assert column_attention(Planted(), sums).tolist() == [[[0.0, share]]]
