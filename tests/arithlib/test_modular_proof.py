"""The grokked model, by enumeration and by its waves."""

import numpy as np
import pytest
import torch

from arithlib import checkpoints
from arithlib.certify.ball_arithmetic import margin
from arithlib.certify.modular import run, shorten, unordered_pairs
from arithlib.models.grokking import GrokkingConfig, GrokkingTransformer

MODEL = checkpoints.load("grokking-s0").model
PAIRS = unordered_pairs(113)


@pytest.fixture(scope="module")
def inside():
    return run(MODEL, PAIRS)


@pytest.fixture(scope="module")
def leads(inside):
    """By how much the right residue leads: exactly, and at least."""
    return margin(inside.logits, PAIRS.sum(1) % 113)


def test_each_pair_is_there_once():
    assert len({tuple(sorted(pair)) for pair in PAIRS.tolist()}) == len(PAIRS) == 113 * 114 // 2


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_the_float32_model_stays_in_the_balls(order, inside):
    pairs = torch.from_numpy(PAIRS)[:, order]
    tokens = torch.cat([pairs, torch.full((len(pairs), 1), 113)], 1)
    with torch.no_grad():
        computed = MODEL(tokens)[:, -1, :113].double().numpy()
    assert (np.abs(computed - inside.logits.mid) <= inside.logits.rad).all()


def test_the_grokked_model_is_proven_on_every_pair(leads):
    assert (leads[1] > 0).all()


@pytest.mark.parametrize("frequencies", [4, 10, 56])
def test_the_shorter_proof_never_claims_more_than_there_is(frequencies, inside, leads):
    shortened = shorten(MODEL, inside, frequencies)
    assert (shortened.lead <= leads[0] + 1e-9).all()


def test_with_all_waves_nothing_is_left_to_bound(inside, leads):
    assert shorten(MODEL, inside, 56).lead == pytest.approx(leads[0], abs=1e-9)


def test_fewer_waves_cost_less_and_prove_less(inside):
    few, more = (shorten(MODEL, inside, frequencies) for frequencies in (4, 10))
    assert few.operations < more.operations < more.enumerated
    assert few.proven.sum() < more.proven.sum()
    left = (~few.proven).mean()
    assert few.with_the_rest_enumerated == pytest.approx(few.operations + left * few.enumerated, abs=1)


def test_an_untrained_model_is_proven_nowhere():
    model = GrokkingTransformer(GrokkingConfig())
    assert not shorten(model, run(model, PAIRS), 4).proven.any()


@pytest.mark.parametrize("other", [{"activation": "gelu"}, {"positions": "learned"}, {"layer_norm": True}])
def test_another_architecture_is_refused(other):
    with pytest.raises(ValueError, match="source 004"):
        run(GrokkingTransformer(GrokkingConfig(**other)), PAIRS)
