"""Adders with other addresses: their forward is its definition, and they train on the same sums as chapter 70's."""

import dataclasses
import math

import pytest
import torch
import torch.nn.functional as F

from arithlib import checkpoints, experiments
from arithlib.experiments.contrast import ContrastExperiment, answers
from arithlib.models.addressed import number_of
from arithlib.models.contrast import SCHEMES, TABLES, ContrastConfig, ContrastTransformer
from arithlib.models.positions import Offsets, addresses, coupled, number_index
from arithlib.tasks.operands import OperandTask
from arithlib.tokenizer import END
from arithlib.training import ScheduledAdamW, train

TINY = dict(d_model=8, n_heads=2, d_mlp=16, n_rows=12)
SUMS = OperandTask(max_digits=4).sample(5, torch.Generator().manual_seed(0))
FAMILY = experiments.match("contrast-*")


def made(scheme, **more):
    return ContrastTransformer(ContrastConfig(scheme, **{**TINY, **more}), seed=1).eval().requires_grad_(False)


def addresses_by_hand(scheme, tokens, offset):
    index, found = 0, []
    for place, token in enumerate(tokens):
        index = index + 1 if token < 10 else 0
        found.append({
            "abacus": index + offset if token < 10 else 0, "coupling": 0 if token == END else index + offset + 1,
            "rotary": index, "places": place,
        }[scheme])  # fmt: skip
    return found


def by_hand(model, tokens, offset):
    """Logits of one text, pair by pair, every pair of entries turned as a complex number."""
    H, scheme = model.config.n_heads, model.config.scheme
    address = addresses_by_hand(scheme, tokens.tolist(), offset)
    x = model.embedding(tokens) + model.numbers.weight[number_of(tokens[None])[0]]
    if scheme in TABLES:
        x = x + model.rows.weight[address]
    q, k, v = model.qkv(x).unflatten(-1, (3, H, -1)).unbind(1)
    half = q.shape[-1] // 2
    frequency = [1e4 ** (-i / half) for i in range(half)]
    logits = []
    for t in range(len(tokens)):
        z = []
        for h in range(H):
            weights = []
            for s in range(t + 1):
                if scheme in TABLES:
                    score = float(q[t, h] @ k[s, h])
                else:
                    pairs = [torch.complex(y[:half], y[half:]).tolist() for y in (q[t, h], k[s, h])]
                    turns = [
                        complex(math.cos(f * d), math.sin(f * d))
                        for f in frequency
                        for d in [address[t] - address[s]]
                    ]
                    score = sum((a * b.conjugate() * turn).real for a, b, turn in zip(*pairs, turns, strict=True))
                weights.append(math.exp(score / math.sqrt(2 * half)))
            z.append(sum(w * v[s, h] for s, w in enumerate(weights)) / sum(weights))
        mid = x[t] + model.out(torch.cat(z))
        logits.append(model.unembedding(mid + model.mlp_out(model.mlp_in(mid).clamp(min=0))))
    return torch.stack(logits)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("offset", [0, 3])
def test_the_forward_is_the_definition(scheme, offset):
    model = made(scheme).double()
    logits, activations = model(SUMS.tokens, torch.tensor([[offset]]), return_activations=True)
    torch.testing.assert_close(
        logits, torch.stack([by_hand(model, row, offset) for row in SUMS.tokens]), rtol=1e-6, atol=1e-6
    )
    torch.testing.assert_close(model(SUMS.tokens, torch.tensor([[offset]])), logits)
    torch.testing.assert_close(activations["pattern"].sum(-1), torch.ones(5, 2, SUMS.tokens.shape[1]).double())


def test_addresses_are_those_of_the_looped_adders_schemes():
    offset = torch.tensor([[2]])
    for scheme, known in (("abacus", addresses), ("coupling", coupled)):
        assert torch.equal(made(scheme).address(SUMS.tokens, offset), known(SUMS.tokens, offset))


def test_only_tables_feel_an_offset_and_only_to_their_end():
    for scheme in SCHEMES:
        model = made(scheme)
        same = torch.equal(model(SUMS.tokens), model(SUMS.tokens, torch.tensor([[2]])))
        assert same == (scheme not in TABLES)
    with pytest.raises(ValueError, match="address 13: the table ends at 11"):
        made("coupling")(torch.tensor([[1, 2, 3]]), torch.tensor([[9]]))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_reach_leaves_what_is_near_and_the_rest_keeps_its_proportions(scheme):
    model, tokens = made(scheme), SUMS[:1].trimmed().tokens
    free, held = (model(tokens, reach=reach, return_activations=True)[1]["pattern"][0] for reach in (None, 1))
    index = number_index(tokens)[0].tolist()
    for t in range(len(index)):
        kept = [s for s in range(t + 1) if -1 <= index[t] + 1 - index[s] <= 2]
        lost = [s for s in range(len(index)) if s not in kept]
        assert (held[:, t, lost] == 0).all()
        torch.testing.assert_close(held[:, t, kept], free[:, t, kept] / free[:, t, kept].sum(-1, keepdim=True))


def test_impossible_configurations_are_refused():
    for wrong, message in (({"d_model": 6}, "multiple"), ({"scheme": "alibi"}, "abacus, coupling, rotary, places")):
        with pytest.raises(ValueError, match=message):
            ContrastConfig(**{**TINY, "scheme": "rotary", **wrong})
    with pytest.raises(ValueError, match="does not follow"):
        made("places").address_at(torch.tensor(1), torch.tensor(1))


# ---- training ----------------------------------------------------------------------------------------------------


def tiny(scheme, k=1):
    return ContrastExperiment(
        name="contrast-tiny", about="a test", steps=60, evaluate_every=30, batch_size=16, evaluation_count=20, k=k,
        task=OperandTask(max_digits=2), model=ContrastConfig(scheme, **TINY),
        optimizer=ScheduledAdamW(lr=1e-2, steps=60, warmup_steps=2),
    )  # fmt: skip


def test_no_model_is_trained_on_more_than_ten_digits_and_only_schemes_and_offsets_differ():
    assert all(experiment.task == OperandTask("+", max_digits=10) for experiment in FAMILY)
    sizes = {dataclasses.replace(experiment.model, scheme="rotary") for experiment in FAMILY}
    assert len(sizes) == 1 and {experiment.model.scheme for experiment in FAMILY} == set(SCHEMES)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_loss_is_that_of_the_whole_batch_and_one_offset_serves_it(scheme):
    experiment = tiny(scheme, k=6)
    model, generator = experiment.build(), torch.Generator().manual_seed(7)
    problems = experiment.task.sample(16, generator)
    expected = F.cross_entropy(*answers(model, problems, Offsets("per batch", k=6).draw(16, generator)))
    torch.testing.assert_close(experiment.objective(model, torch.device("cpu")).loss(model, 7), expected)


def test_training_lowers_the_loss_and_repeats_itself():
    finals, experiment = [], tiny("coupling", k=3)
    for _ in range(2):
        model = experiment.build()
        objective = experiment.objective(model, torch.device("cpu"))
        run = train(model, objective, experiment.optimizer, experiment.steps, evaluate_every=30, progress=False)
        finals.append(run.history["loss"])
    assert finals[0][-1] < 0.9 * finals[0][0]
    assert (finals[0] == finals[1]).all()


@pytest.mark.parametrize(
    "experiment", [e for e in FAMILY if checkpoints.find(e.name) and e.ships_weights], ids=lambda e: e.name
)
def test_a_shipped_model_scores_as_its_provenance_says(experiment):
    trained = checkpoints.read(experiment.name)
    measured = experiment.objective(trained.model, torch.device("cpu")).evaluate(trained.model)
    assert measured["exact_match"] == pytest.approx(trained.provenance["final"]["exact_match"], abs=2e-3)
