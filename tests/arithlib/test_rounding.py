"""No float32 program strays further than the bound, at any length, and none that is allowed to be worse than ours."""

import copy
import json

import pytest
import torch

from arithlib import checkpoints
from arithlib.analysis.dilution import read
from arithlib.certify.ball_arithmetic import FUNCTION_ERROR
from arithlib.certify.rounding import SLOPE_ERROR, ZERO_BELOW, rounding
from arithlib.models.column import ColumnConfig, ColumnTransformer
from arithlib.streaming import columns, context_logits, contexts, margins, slots
from arithlib.tasks.operands import OperandTask
from arithlib.tasks.worst_case_sums import stress_sums

NAMES = [f"adder-unwindowed-s{seed}" for seed in range(3)]
MODEL = checkpoints.load(NAMES[1]).model
BOUND = rounding(MODEL)


def leads(logits, right):
    """(N, V) logits -> (N, V) lead of the right token over every other; 0 over itself."""
    return logits.double().gather(1, right[:, None]) - logits.double()


@pytest.mark.parametrize("digits", [3, 40])
@pytest.mark.parametrize("kernel", ["eager", "sdpa"])
def test_the_definition_in_float32_stays_within_the_bound(digits, kernel):
    lengths = torch.randint(1, digits + 1, (20, 2), generator=torch.Generator().manual_seed(digits))
    problems = OperandTask().problems(lengths, torch.Generator().manual_seed(digits)).trimmed()
    model, exact = copy.deepcopy(MODEL), copy.deepcopy(MODEL).double()
    model.kernel, asked = kernel, problems.answer_mask[:, 1:]
    right = problems.tokens[:, 1:][asked]
    with torch.no_grad():
        found, truth = (leads(one(problems.tokens[:, :-1])[asked], right) for one in (model, exact))
    assert 0 < (found - truth).abs().max() < BOUND.lead


@pytest.mark.parametrize("name", NAMES)
def test_in_hard_sums_the_lead_is_never_below_the_certificate(name):
    certificate = json.loads((checkpoints.find(name) / f"{name}.certificate.json").read_text())
    model = checkpoints.load(name).model
    a, b, _ = stress_sums(150, 12, torch.Generator().manual_seed(0))
    single, double = margins(model, a, b), read(model, a, b)
    assert (single >= certificate["margin_float32"]).all()
    assert (double.margin >= certificate["margin"]).all()
    assert (single.double() - double.margins()).abs().max() < rounding(model).lead <= certificate["rounding"]


def test_a_program_with_the_worst_functions_allowed_stays_within_the_bound(monkeypatch):
    a, b, _ = stress_sums(60, 12, torch.Generator().manual_seed(1))
    lines, (number, distance) = columns(a, b), slots(MODEL, 64)
    query, keys, right = contexts(lines, number, distance, 0, lines.shape[2] - 1)
    exact, most = copy.deepcopy(MODEL).double().requires_grad_(False), 0.0
    worse = copy.deepcopy(exact)
    worse.log_slope += SLOPE_ERROR
    for place in range(0, len(query), 40):
        case = query[[place]], keys[[place]], number, distance
        truth = leads(context_logits(exact, *case), right[[place]])
        # Every exponential is off by all that is granted, and in the direction that costs the lead most.
        bias = worse.bias_at(number, distance).requires_grad_()
        monkeypatch.setattr(worse, "bias_at", lambda *_, bias=bias: bias)
        rival = truth.scatter(1, right[[place], None], torch.inf).argmin()
        leads(context_logits(worse, *case), right[[place]])[0, rival].backward()
        with torch.no_grad():
            bias -= FUNCTION_ERROR * bias.grad.sign()
            found = leads(context_logits(worse, *case), right[[place]])
        monkeypatch.undo()
        most = max(most, float((found - truth).abs().max()))
    assert BOUND.lead / 2000 < most < BOUND.lead  # a bound so much smaller would not hold


def test_no_more_keys_have_weight_than_are_said():
    problems = OperandTask().problems(torch.tensor([[150, 150]]), torch.Generator().manual_seed(0)).trimmed()
    with torch.no_grad():
        _, activations = MODEL(problems.tokens, return_activations=True)
    weighing = (activations["pattern"][0, :, 302:] > 0).sum(-1)  # of the answer's tokens
    assert problems.tokens.shape[1] > 2 * BOUND.keys  # many could have weight
    assert BOUND.keys / 3 < weighing.max() <= BOUND.keys


def test_float32_has_no_numbers_where_weights_are_said_to_vanish():
    assert torch.tensor(ZERO_BELOW).exp() == 0
    scores = torch.tensor([[0.0, ZERO_BELOW, ZERO_BELOW - 100]])
    assert scores.softmax(1).tolist() == [[1.0, 0.0, 0.0]]


def test_larger_weights_have_a_larger_bound_and_a_gentler_slope_more_keys():
    louder, gentler = copy.deepcopy(MODEL), copy.deepcopy(MODEL)
    with torch.no_grad():
        louder.unembedding.weight *= 10
        gentler.log_slope -= 1
    assert rounding(louder).lead == pytest.approx(10 * BOUND.lead, rel=0.01)
    assert rounding(gentler).keys > 2 * BOUND.keys and rounding(gentler).lead > BOUND.lead


def test_a_model_that_does_not_fade_is_refused():
    with pytest.raises(ValueError, match="lose a slope"):
        rounding(ColumnTransformer(ColumnConfig(d_model=8, n_heads=2, d_mlp=8)))
