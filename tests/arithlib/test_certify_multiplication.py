"""What a page can show, and that no program leaves the balls: of models that read pages, and of no others."""

import json
from itertools import product

import numpy as np
import pytest
import torch

from arithlib import checkpoints
from arithlib.certify import certificates, checker
from arithlib.certify.addition import ProofError, text
from arithlib.certify.multiplication import carries, examine, logits, own, reachable
from arithlib.models.column import POSITIONS, ColumnConfig, ColumnTransformer
from arithlib.tokenizer import ABSENT, ALPHABET, CharacterTokenizer
from chapters.ch78_long_multiplication import LongMultiplication, contexts, encode, page_mask

CONTEXTS, RIGHT = reachable()


def made(seed=1, heads=2):
    model = ColumnTransformer(ColumnConfig("page", d_model=8, n_heads=heads, d_mlp=16), seed)
    return model.eval().requires_grad_(False)


def inside(values, ball):
    return bool((np.abs(values.double().numpy() - ball.mid) <= ball.rad).all())


@pytest.mark.parametrize("b", range(10))
def test_carries_are_those_of_every_row_of_three_places(b):
    for above, most in ((False, 0), (True, 999)):
        rows = range(0, most + 1, 1 if b in (0, 9) else 9)  # 9 and 999 among them
        brute = {(a % 10**m * b + r % 10**m) // 10**m for a, r, m in product(range(1000), rows, (0, 1, 2, 3))}
        assert carries(b, above) == brute


def test_the_contexts_are_those_of_the_checker():
    assert checker.page_contexts() == {
        text(context): ALPHABET[token] for context, token in zip(CONTEXTS, RIGHT, strict=True)
    }
    assert [tuple(row) for row in CONTEXTS] == sorted({tuple(row) for row in CONTEXTS})


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_the_model_computes_in_a_context_what_the_ball_holds(heads):
    model, asked, keys = made(heads=heads), torch.from_numpy(own(CONTEXTS)), torch.from_numpy(CONTEXTS)
    ball = logits(model, CONTEXTS)
    assert ball.mid.shape == (12_640, len(ALPHABET)) and 0 < ball.rad.min() and ball.rad.max() < 0.01
    assert inside(model.slot_logits(asked, keys), ball)
    assert inside(model.slot_logits(asked.flip(0), keys.flip(0)).flip(0), ball)
    exact = model.double().slot_logits(asked, keys)
    np.testing.assert_allclose(exact.numpy(), ball.mid, atol=1e-12)  # the middle is what there is without rounding
    assert (model.float().slot_logits(asked, keys) != exact).any()


def test_and_on_whole_pages():
    pairs = [(12, 34), (9876, 5049), (7, 9001), (999_999, 99), (0, 60)]
    tokens = encode(LongMultiplication(), pairs)
    keys, model = contexts(tokens)[0].numpy(), made()
    for pages in (model(tokens), model(tokens.flip(0)).flip(0), model.double()(tokens)):
        assert inside(pages[page_mask(tokens)], logits(model.float(), keys))


def test_an_untrained_model_is_not_proven():
    model = made()
    found = examine(model)
    wrong = model.slot_logits(torch.from_numpy(own(CONTEXTS)), torch.from_numpy(CONTEXTS)).argmax(1).numpy() != RIGHT
    assert wrong.any() and {*np.flatnonzero(wrong)} <= {*found.open}
    assert (found.assured <= found.lead).all()


@pytest.mark.parametrize("positions", [kind for kind in POSITIONS if kind != "page"])
def test_a_model_that_reads_no_pages_is_refused(positions):
    other = ColumnTransformer(ColumnConfig(positions, d_model=8, n_heads=2, d_mlp=16))
    with pytest.raises(ValueError, match="contexts are those of a page"):
        examine(other)


def test_a_context_in_which_it_is_wrong_is_named(monkeypatch):
    trained = checkpoints.read("pages-s0")
    with torch.no_grad():
        trained.model.unembedding.bias[7] += 30
    monkeypatch.setattr(checkpoints, "read", lambda name: trained)
    with pytest.raises(
        ProofError, match=r"pages-s0 is not proven right in \d+ of 12640 contexts; the worst is '......', where"
    ):
        certificates.certify("pages-s0")


def test_the_shipped_certificate_speaks_of_its_weights_and_their_worst_context():
    stated = certificates.covering("pages-s0")
    assert stated == json.loads(certificates.path_of("pages-s0", checkpoints.find("pages-s0")).read_text())
    context = np.array([CharacterTokenizer().token_of.get(key, ABSENT) for key in stated["margin_at"]])
    worst = int((CONTEXTS == context).all(1).nonzero()[0][0])
    found = checkpoints.load("pages-s0").model.double()
    logit = found.slot_logits(torch.from_numpy(own(CONTEXTS)), torch.from_numpy(CONTEXTS)).detach().numpy()
    lead = logit[range(len(RIGHT)), RIGHT] - np.where(np.arange(15) == RIGHT[:, None], -np.inf, logit).max(1)
    assert lead.argmin() == worst and 0.01 <= lead[worst] - stated["margin"] <= 0.02
    assert 0 < stated["margin_float32"] < stated["margin"]
