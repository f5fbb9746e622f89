"""No program leaves the balls of what is written out in full: of models that read it, and of no others."""

import json

import numpy as np
import pytest
import torch

from arithlib import checkpoints
from arithlib.certify import certificates, checker
from arithlib.certify.addition import ProofError, text
from arithlib.certify.written import WRITTEN, examine, logits
from arithlib.contexts import context_logits
from arithlib.models.column import POSITIONS, ColumnConfig, ColumnTransformer
from arithlib.tokenizer import ABSENT, ALPHABET, END, EQUALS, CharacterTokenizer
from chapters.ch78_long_multiplication import LongMultiplication
from chapters.ch79_differences import Differences

SHIPPED = {"page": "pages-s0", "difference": "differences-s0"}
TASKS = {"page": LongMultiplication(), "difference": Differences()}
PAIRS = [(12, 34), (9876, 5049), (7, 9001), (999_999, 99), (0, 60), (100, 100)]
both = pytest.mark.parametrize("positions", WRITTEN)


def made(positions, heads=2):
    model = ColumnTransformer(ColumnConfig(positions, d_model=8, n_heads=heads, d_mlp=16), 1)
    return model.eval().requires_grad_(False)


def inside(values, ball):
    return bool((np.abs(values.double().numpy() - ball.mid) <= ball.rad).all())


@pytest.mark.parametrize("positions, list_again", [("page", "page_contexts"), ("difference", "difference_contexts")])
def test_the_contexts_are_those_of_the_checker(positions, list_again):
    contexts, right = WRITTEN[positions].reachable()
    assert getattr(checker, list_again)() == {
        text(context): ALPHABET[token] for context, token in zip(contexts, right, strict=True)
    }
    assert [tuple(row) for row in contexts] == sorted({tuple(row) for row in contexts})


@pytest.mark.parametrize("heads", [1, 2, 4])
@both
def test_the_model_computes_in_a_context_what_the_ball_holds(positions, heads):
    model, (contexts, _) = made(positions, heads), WRITTEN[positions].reachable()
    keys, ball = torch.from_numpy(contexts), logits(model, contexts)
    assert ball.mid.shape == (len(contexts), len(ALPHABET)) and 0 < ball.rad.min() and ball.rad.max() < 0.01
    assert inside(context_logits(model, keys), ball)
    assert inside(context_logits(model, keys.flip(0)).flip(0), ball)
    exact = context_logits(model.double(), keys)
    np.testing.assert_allclose(exact.numpy(), ball.mid, atol=1e-12)  # the middle is what there is without rounding
    assert (context_logits(model.float(), keys) != exact).any()


@both
def test_and_on_whole_texts(positions):
    task, model = TASKS[positions], made(positions)
    tokens = task.encode(PAIRS)
    keys, asks = task.contexts(tokens)[0].numpy(), ((tokens == EQUALS).cumsum(1) > 0) & (tokens != END)
    for found in (model(tokens), model(tokens.flip(0)).flip(0), model.double()(tokens)):
        assert inside(found[asks], logits(model.float(), keys))


@both
def test_an_untrained_model_is_not_proven(positions):
    model, (contexts, right) = made(positions), WRITTEN[positions].reachable()
    found = examine(model)
    wrong = context_logits(model, torch.from_numpy(contexts)).argmax(1).numpy() != right
    assert wrong.any() and {*np.flatnonzero(wrong)} <= {*found.open}
    assert (found.assured <= found.lead).all()


@pytest.mark.parametrize("positions", [kind for kind in POSITIONS if kind not in WRITTEN])
def test_a_model_that_reads_neither_is_refused(positions):
    other = ColumnTransformer(ColumnConfig(positions, d_model=8, n_heads=2, d_mlp=16))
    with pytest.raises(
        ValueError, match=f"positions = {positions!r}: contexts are listed for one of page, difference"
    ):
        examine(other)


@both
def test_a_context_in_which_it_is_wrong_is_named(positions, monkeypatch):
    name, (contexts, _) = SHIPPED[positions], WRITTEN[positions].reachable()
    trained = checkpoints.read(name)
    with torch.no_grad():
        trained.model.unembedding.bias[7] += 30
    monkeypatch.setattr(checkpoints, "read", lambda name: trained)
    met, slots = contexts.shape
    with pytest.raises(
        ProofError,
        match=rf"{name} is not proven right in \d+ of {met} contexts; the worst is '.{{{slots}}}', where the right",
    ):
        certificates.certify(name)


@both
def test_the_shipped_certificate_speaks_of_its_weights_and_their_worst_context(positions):
    name, (contexts, right) = SHIPPED[positions], WRITTEN[positions].reachable()
    stated = certificates.covering(name)
    assert stated == json.loads(certificates.path_of(name, checkpoints.find(name)).read_text())
    assert stated == certificates.certify(name)
    context = np.array([CharacterTokenizer().token_of.get(key, ABSENT) for key in stated["margin_at"]])
    worst = int((contexts == context).all(1).nonzero()[0][0])
    logit = context_logits(checkpoints.load(name).model.double(), torch.from_numpy(contexts)).detach().numpy()
    lead = logit[range(len(right)), right] - np.where(np.arange(15) == right[:, None], -np.inf, logit).max(1)
    assert lead.argmin() == worst and 0.01 <= lead[worst] - stated["margin"] <= 0.02
    assert 0 < stated["margin_float32"] < stated["margin"]
