"""The bound on far tokens holds in real sums, and vanishes with the far tokens."""

import copy

import numpy as np
import pytest
import torch

from arithlib import checkpoints
from arithlib.certify.mutants import visits
from arithlib.certify.tail_bounds import assured_lead
from arithlib.models.column import RELATIVE, ColumnConfig, ColumnTransformer
from arithlib.tasks.operands import OperandTask

MODEL = checkpoints.load("adder-unwindowed-s0").model
OTHERS = [positions for positions in RELATIVE if positions != "alibi"]


@pytest.fixture(scope="module")
def leads():
    """What every context leads by: with nothing far, and with whatever may be."""
    return assured_lead(MODEL)


@pytest.mark.parametrize("digits", [1, 3, 30])
def test_in_real_sums_of_any_length_the_lead_is_at_least_the_bound(digits, leads):
    alone, assured = leads
    lengths = torch.randint(1, digits + 1, (40, 2), generator=torch.Generator().manual_seed(digits))
    problems = OperandTask().problems(lengths, torch.Generator().manual_seed(digits)).trimmed()
    model = copy.deepcopy(MODEL).double()
    with torch.no_grad():
        logits = model(problems.tokens[:, :-1])
    asked = problems.answer_mask[:, 1:]
    right = problems.tokens[:, 1:][asked]
    own = logits[asked].gather(1, right[:, None])[:, 0]
    lead = (own - logits[asked].scatter(1, right[:, None], -torch.inf).amax(1)).numpy()
    places, rows = visits(problems.a, problems.b)
    assert (lead >= assured[places] - 1e-9).all()
    assert (np.abs(lead - alone[places]) > 1e-3).any()  # far tokens do change something


def test_most_contexts_are_proven_and_not_all(leads):
    alone, assured = leads
    assert 0.5 < (assured > 0).mean() < 1
    assert (assured <= alone).all()


def test_where_far_tokens_fade_at_once_nothing_is_lost():
    steep = copy.deepcopy(MODEL)
    with torch.no_grad():
        steep.log_slope.fill_(5.0)
    alone, assured = assured_lead(steep)
    assert assured == pytest.approx(alone, abs=1e-6)


@pytest.mark.parametrize("other", [{"positions": "alibi", "window": 2}, *({"positions": p} for p in OTHERS)])
def test_another_model_is_refused(other):
    with pytest.raises(ValueError, match="window = 1"):
        assured_lead(ColumnTransformer(ColumnConfig(d_model=8, n_heads=2, d_mlp=8, **other)))
