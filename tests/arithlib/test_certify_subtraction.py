"""What a difference can show, and that no program leaves the balls: of models that read them, and of no others."""

import json
from itertools import product

import numpy as np
import pytest
import torch

from arithlib import checkpoints
from arithlib.certify import certificates, checker
from arithlib.certify.addition import ProofError, text
from arithlib.certify.subtraction import (
    EQUAL,
    FIRST_LESS,
    SECOND_LESS,
    compared,
    examine,
    logits,
    own,
    reachable,
    signs,
    subtracted,
)
from arithlib.models.column import POSITIONS, ColumnConfig, ColumnTransformer
from arithlib.tokenizer import ABSENT, ALPHABET, END, EQUALS, MINUS, PLUS, CharacterTokenizer
from chapters.ch79_differences import Differences, contexts, encode

CONTEXTS, RIGHT = reachable()
PAIRS = [(12, 34), (9876, 5049), (7, 9001), (999_999, 99), (0, 60), (100, 100)]


def made(seed=1, heads=2):
    model = ColumnTransformer(ColumnConfig("difference", d_model=8, n_heads=heads, d_mlp=16), seed)
    return model.eval().requires_grad_(False)


def inside(values, ball):
    return bool((np.abs(values.double().numpy() - ball.mid) <= ball.rad).all())


def less(a, b):
    return FIRST_LESS if a < b else SECOND_LESS if a > b else EQUAL


def digit(n, place):
    """ABSENT above the number."""
    return int(str(n)[::-1][place]) if place < len(str(n)) else ABSENT


def test_columns_are_those_of_all_numbers_of_two_digits():
    for a, b in product(range(100), repeat=2):
        units, tens, sign = (a % 10, b % 10), (digit(a, 1), digit(b, 1)), MINUS if a < b else PLUS
        below = less(*units)
        assert compared(*units, EQUAL) == below and compared(*tens, below) == less(a, b)
        assert subtracted(*units, EQUAL, sign) == abs(a - b) % 10
        assert subtracted(*tens, below, sign) == abs(a - b) // 10
        assert signs(*tens, below) == ({sign} if ABSENT in tens else {PLUS, MINUS})


def test_the_contexts_are_those_of_the_checker():
    assert checker.difference_contexts() == {
        text(context): ALPHABET[token] for context, token in zip(CONTEXTS, RIGHT, strict=True)
    }
    assert [tuple(row) for row in CONTEXTS] == sorted({tuple(row) for row in CONTEXTS})


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_the_model_computes_in_a_context_what_the_ball_holds(heads):
    model, asked, keys = made(heads=heads), torch.from_numpy(own(CONTEXTS)), torch.from_numpy(CONTEXTS)
    ball = logits(model, CONTEXTS)
    assert ball.mid.shape == (5307, len(ALPHABET)) and 0 < ball.rad.min() and ball.rad.max() < 0.01
    assert inside(model.slot_logits(asked, keys), ball)
    assert inside(model.slot_logits(asked.flip(0), keys.flip(0)).flip(0), ball)
    exact = model.double().slot_logits(asked, keys)
    np.testing.assert_allclose(exact.numpy(), ball.mid, atol=1e-12)  # the middle is what there is without rounding
    assert (model.float().slot_logits(asked, keys) != exact).any()


def test_and_on_whole_texts():
    tokens = encode(Differences(), PAIRS)
    keys, model = contexts(tokens)[0].numpy(), made()
    asks = ((tokens == EQUALS).cumsum(1) > 0) & (tokens != END)
    for found in (model(tokens), model(tokens.flip(0)).flip(0), model.double()(tokens)):
        assert inside(found[asks], logits(model.float(), keys))


def test_an_untrained_model_is_not_proven():
    model = made()
    found = examine(model)
    wrong = model.slot_logits(torch.from_numpy(own(CONTEXTS)), torch.from_numpy(CONTEXTS)).argmax(1).numpy() != RIGHT
    assert wrong.any() and {*np.flatnonzero(wrong)} <= {*found.open}
    assert (found.assured <= found.lead).all()


@pytest.mark.parametrize("positions", [kind for kind in POSITIONS if kind != "difference"])
def test_a_model_that_reads_no_differences_is_refused(positions):
    other = ColumnTransformer(ColumnConfig(positions, d_model=8, n_heads=2, d_mlp=16))
    with pytest.raises(ValueError, match="contexts are those of a difference"):
        examine(other)


def test_a_context_in_which_it_is_wrong_is_named(monkeypatch):
    trained = checkpoints.read("differences-s0")
    with torch.no_grad():
        trained.model.unembedding.bias[7] += 30
    monkeypatch.setattr(checkpoints, "read", lambda name: trained)
    with pytest.raises(
        ProofError, match=r"differences-s0 is not proven right in \d+ of 5307 contexts; the worst is '.....', where"
    ):
        certificates.certify("differences-s0")


def test_the_shipped_certificate_speaks_of_its_weights_and_their_worst_context():
    stated = certificates.covering("differences-s0")
    path = certificates.path_of("differences-s0", checkpoints.find("differences-s0"))
    assert stated == json.loads(path.read_text()) == certificates.certify("differences-s0")
    context = np.array([CharacterTokenizer().token_of.get(key, ABSENT) for key in stated["margin_at"]])
    worst = int((CONTEXTS == context).all(1).nonzero()[0][0])
    found = checkpoints.load("differences-s0").model.double()
    logit = found.slot_logits(torch.from_numpy(own(CONTEXTS)), torch.from_numpy(CONTEXTS)).detach().numpy()
    lead = logit[range(len(RIGHT)), RIGHT] - np.where(np.arange(15) == RIGHT[:, None], -np.inf, logit).max(1)
    assert lead.argmin() == worst and 0.01 <= lead[worst] - stated["margin"] <= 0.02
    assert 0 < stated["margin_float32"] < stated["margin"]
