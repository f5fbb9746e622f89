"""What an adder can meet, what it does there, and that both are what happens in real sums."""

import numpy as np
import pytest
import torch

from arithlib import checkpoints, streaming
from arithlib.certify import certificates
from arithlib.certify.addition import ProofError, examine, following, logits, reachable, text
from arithlib.certify.case_split import Proof
from arithlib.certify.mutants import answers, visits
from arithlib.models.column import ColumnConfig, ColumnTransformer, segment_ids
from arithlib.models.positions import number_index
from arithlib.streaming import OWN, WINDOW_DISTANCE, WINDOW_NUMBER, WINDOW_SLOTS
from arithlib.tasks.operands import OperandTask, digits_of
from arithlib.tokenizer import ABSENT

TASK = OperandTask(max_digits=12)
MODEL = ColumnTransformer(ColumnConfig(d_model=8, n_heads=2, d_mlp=16))
CERTIFIED = [path.name.partition(".")[0] for path in certificates.shipped()]


def test_the_contexts_are_those_of_all_short_sums():
    # All numbers to 199 show every first and second column; those to 1999 that end in 0 or 9, with or without a carry
    # into the second column, every second and third. No later column is new.
    numbers = digits_of([n for n in range(2000) if n < 200 or n % 10 in (0, 9)])
    seen = set()
    for row in numbers:
        lines = streaming.columns(row.expand(len(numbers), 4), numbers)
        query, keys, token = streaming.contexts(lines, WINDOW_NUMBER, WINDOW_DISTANCE, 0, lines.shape[2] - 1)
        assert torch.equal(query, keys[:, OWN])
        coded = (torch.cat([keys, token[:, None]], 1) + 1) @ 17 ** torch.arange(6)
        seen.update(coded.unique().tolist())
    met = reachable()
    expected = (np.column_stack([met.contexts, met.right]) + 1) @ 17 ** np.arange(6)
    assert seen == set(expected.tolist())


def test_a_number_does_not_end_on_a_zero_unless_it_is_zero():
    assert ABSENT not in following(ABSENT, place=0)
    assert ABSENT in following(0, place=1)
    assert ABSENT not in following(0, place=2)
    assert following(ABSENT, place=2) == [ABSENT]


def test_a_witness_meets_its_context():
    met = reachable()
    for place in np.random.default_rng(0).choice(len(met.contexts), 300, replace=False):
        pair = met.witness(place)
        assert place in visits(*digits_of(list(pair)).split(1))[0], (text(met.contexts[place]), pair)


def test_a_token_sees_the_slots_of_its_context_and_nothing_else():
    problems = TASK.sample(50, torch.Generator().manual_seed(1))
    for tokens, start, stop in zip(problems.tokens, problems.start, problems.stop, strict=True):
        seen = torch.isfinite(MODEL.bias(tokens[None])[0, 0]).tril()
        number, index = segment_ids(tokens[None])[0], number_index(tokens[None])[0]
        for query in range(int(start) - 1, int(stop) - 1):
            keys = seen[query].nonzero()[:, 0]
            where = {(int(number[k]), int(index[query] + 1 - index[k])) for k in keys}
            assert len(where) == len(keys) and where <= set(WINDOW_SLOTS)


def test_the_model_computes_in_a_context_what_it_computes_in_the_sum():
    problems = TASK.sample(50, torch.Generator().manual_seed(2))
    with torch.no_grad():
        whole = MODEL(problems.tokens)
    places, rows = visits(problems.a, problems.b)
    ball = logits(MODEL, reachable().contexts)[places]
    order = np.argsort(rows, kind="stable")
    spans = enumerate(zip(problems.start, problems.stop, strict=True))
    computed = torch.cat([whole[row, start - 1 : stop - 1] for row, (start, stop) in spans])
    assert (np.abs(computed.double().numpy() - ball.mid[order]) <= ball.rad[order]).all()


def test_an_untrained_model_is_not_proven():
    found = examine(MODEL)
    wrong = answers(MODEL) != reachable().right
    assert wrong.any() and set(np.flatnonzero(wrong)) <= set(found.open)


@pytest.mark.parametrize(
    "other", [{"window": 2}, {"positions": "alibi"}, {"positions": "full"}, {"positions": "log-scaled"}]
)
def test_a_model_that_sees_more_is_refused(other):
    with pytest.raises(ValueError, match="five slots"):
        examine(ColumnTransformer(ColumnConfig(d_model=8, n_heads=2, d_mlp=8, **other)))


# Of the adders without a window, tests/arithlib/test_case_split.py proves the one with the fewest cases.
@pytest.mark.parametrize("name", [name for name in CERTIFIED if "unwindowed" not in name])
def test_a_shipped_certificate_is_what_certifying_gives(name):
    assert certificates.covering(name) == certificates.certify(name)


def test_there_are_certificates():
    assert "adder-certified" in CERTIFIED


def test_what_is_wrong_is_named_with_a_sum(monkeypatch):
    trained = checkpoints.read("adder-certified")
    with torch.no_grad():
        trained.model.unembedding.bias[7] += 30
    monkeypatch.setattr(checkpoints, "read", lambda name: trained)
    with pytest.raises(ProofError, match=r"not proven right in .* contexts; the worst is .*, met in \d+ \+ \d+"):
        certificates.certify("adder-certified")


def test_a_case_without_a_window_that_stays_open_is_no_certificate(monkeypatch):
    monkeypatch.setattr(certificates, "prove", lambda model, least: Proof(lead=least - 1, complete=False))
    with pytest.raises(ProofError, match=r"a lead of 4.5 logits is not assured in every case \(the least is 3.5\)"):
        certificates.certify("adder-unwindowed-s1")


def test_a_certificate_of_other_weights_covers_nothing(tmp_path, monkeypatch):
    shipped = checkpoints.read("adder-certified")
    monkeypatch.setattr(checkpoints, "find", lambda name: tmp_path)
    assert certificates.covering("adder-certified") is None
    certificates.path_of("adder-certified", tmp_path).write_text('{"sha256": "another"}')
    monkeypatch.setattr(checkpoints, "read", lambda name, folder: shipped)
    assert certificates.covering("adder-certified") is None
