"""Effects of heads, MLPs and neurons where it is planted which of them do anything, and what the last token is."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from arithlib.models.decoder import Decoder, DecoderConfig
from chapters.ch52_clock import helices
from chapters.ch52_effects import (
    EVERY,
    components,
    direct,
    head_fits,
    heads_and_mlps,
    joint,
    kind_of_head,
    needed,
    patched,
    study,
    sum_part,
    total,
)

PERIODS = [40.0, 10.0]
SUMS = EVERY.sum(1)


@pytest.fixture(scope="module")
def sparse():
    """A study of an untrained decoder of eleven layers in which two heads and one MLP write anything.

    Head 1 of layer 0 brings the numbers, the MLP of layer 5 uses them, and head 0 of layer 10 brings them once more.
    """
    model = Decoder(DecoderConfig(d_model=32, n_layers=11, n_heads=2, d_mlp=16), seed=1)
    with torch.no_grad():
        for layer, block in enumerate(model.blocks):
            keep = {0: 1, 10: 0}.get(layer)
            block.W_O[[head for head in range(2) if head != keep]] = 0
            if layer != 5:
                block.W_out.zero_()
    return study(model, data_seed=0, n_periods=2, n_pairs=50)


def test_only_what_writes_has_an_effect(sparse):
    heads, mlps = heads_and_mlps(sparse.model)
    totals = {place: total(sparse, place) for place in heads + mlps}
    assert {place for place, value in totals.items() if abs(value) > 1e-5} == {
        ("0.z", (-1, 1)),
        ("10.z", (-1, 0)),
        ("5.mlp_out", (-1,)),
    }


def test_what_is_written_last_has_no_effect_but_a_direct_one(sparse):
    last, middle = ("10.z", (-1, 0)), ("5.mlp_out", (-1,))
    assert direct(sparse, last) == pytest.approx(total(sparse, last), abs=1e-4)
    assert abs(direct(sparse, middle) - total(sparse, middle)) > 1e-3  # the last head reads it


def test_all_parts_together_turn_the_corrupted_prompt_into_the_clean_one(sparse):
    heads, mlps = heads_and_mlps(sparse.model)
    rows = torch.arange(len(sparse.pairs))
    with torch.no_grad():
        clean, corrupted = sparse.model(sparse.pairs.clean), sparse.model(sparse.pairs.corrupted)
    whole = float((clean - corrupted)[rows, sparse.pairs.answers].mean())
    assert total(sparse, *heads, *mlps) == pytest.approx(whole, abs=1e-4)
    assert direct(sparse, *heads, *mlps) == pytest.approx(whole, abs=1e-4)


def test_two_heads_that_write_are_all_that_is_needed(sparse):
    heads, _ = heads_and_mlps(sparse.model)
    alone = np.array([total(sparse, place) for place in heads])
    ranked, curve = joint(sparse, heads, -abs(alone))  # the two last: until then there is nothing
    assert set(ranked[-2:]) == {("0.z", (-1, 1)), ("10.z", (-1, 0))}
    assert np.allclose(curve[:-2], 0, atol=1e-4) and curve[-1] == 1
    _, curve = joint(sparse, heads, abs(alone))
    assert needed(curve, 0.999) == 2


def on_last_token(s, **activations):
    return replace(s, periods=PERIODS, last={name.replace("__", "."): x for name, x in activations.items()})


def random_map(x, columns, seed=0):
    return x @ torch.randn(x.shape[1], columns, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("of, expected", [("a b", "ab"), ("a+b", "sum")])
def test_a_head_is_of_the_helix_that_it_is_made_of(sparse, of, expected):
    z = torch.zeros(len(EVERY), 2, 16, dtype=torch.float64)
    waves = helices(EVERY, PERIODS, of)[:, 1:]  # of a and b one line is left, which is none of a + b
    z[:, 1] = random_map(waves, 16)
    planted = on_last_token(sparse, **{"0__z": z})
    fits = head_fits(planted, ("0.z", (-1, 1)))
    assert max(fits) == pytest.approx(1) and kind_of_head(fits) == expected


def test_components_keep_vectors_of_so_many_dimensions_and_not_of_more():
    x = random_map(torch.randn(len(EVERY), 9, generator=torch.Generator().manual_seed(3), dtype=torch.float64), 20)
    assert torch.allclose(components(x, SUMS % 2 == 0, 9), x)
    lost = x - components(x, SUMS % 2 == 0, 8)
    assert 1e-3 < float(lost.square().sum() / (x - x.mean(0)).square().sum()) < 0.2


def test_a_last_token_that_is_the_helix_of_the_sum_is_all_that_patching_needs(sparse):
    x = 3 * random_map(helices(EVERY, PERIODS, "a+b"), 32).float()
    planted = on_last_token(sparse, resid__11=x)
    by_sum = torch.stack([x[SUMS == answer].mean(0) for answer in range(199)], 1)  # the answer's logit says how like
    planted = replace(planted, model=Reader(by_sum, x, sparse.pairs, sparse.clean))
    kept = patched(planted, 11)
    assert kept["a+b"] == pytest.approx(1, abs=1e-3) and kept["9 components"] == pytest.approx(1, abs=1e-3)
    assert kept["a b"] < 0.9


class Reader:
    """A model that reads its logits from the last token after layer 11, which is given for the clean prompts."""

    def __init__(self, W_U, x, pairs, clean):
        self.W_U, self.pairs = W_U, pairs
        self.known = {id(pairs.clean): x[clean], id(pairs.corrupted): x.mean(0).expand(len(clean), -1)}

    def __call__(self, tokens, edits=None, return_activations=False):
        resid = self.known[id(tokens)][:, None].expand(-1, 4, -1)
        for edit in (edits or {}).values():
            resid = edit(resid)
        logits = resid[:, -1] @ self.W_U
        return (logits, {"resid.11": resid}) if return_activations else logits


@pytest.mark.parametrize("of, part", [("a b", 0.0), ("a+b", 1.0)])
def test_neurons_read_a_and_b_or_their_sum(sparse, of, part):
    pre = random_map(helices(EVERY, PERIODS, of), 5)
    assert sum_part(on_last_token(sparse, **{"1__mlp_pre": pre}), "1.mlp_pre") == pytest.approx(part, abs=1e-6)
