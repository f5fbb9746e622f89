"""Case splitting closes what holds in real sums, leaves open what does not, and misses no neighbour."""

import copy
import math

import pytest
import torch

from arithlib import checkpoints
from arithlib.analysis.dilution import read
from arithlib.certify import case_split, certificates
from arithlib.certify.addition import reachable
from arithlib.certify.case_split import Neighbours, _assured, _split, prove
from arithlib.certify.mutants import visits
from arithlib.certify.tail_bounds import Bound, far_weight
from arithlib.models.column import ColumnConfig, ColumnTransformer
from arithlib.streaming import WINDOW_SLOTS, columns
from arithlib.tasks.operands import OperandTask
from arithlib.tokenizer import ABSENT, EQUALS

NAME = "adder-unwindowed-s1"
NEAR = Neighbours()


def test_every_neighbour_in_random_sums_is_known():
    a, b = torch.randint(0, 10, (2, 300, 12), generator=torch.Generator().manual_seed(0)).unbind(0)
    a[:, 6:] *= torch.arange(300)[:, None] % 2  # half of the first operands are shorter
    lines = columns(a, b)
    where = {tuple(column): i for i, column in enumerate(NEAR.columns.tolist())}
    pairs = {tuple(pair): i for i, pair in enumerate(NEAR.pairs.tolist())}
    for first, second in zip(lines.unbind(2), lines.unbind(2)[1:], strict=False):
        for left, right in zip(first.tolist(), second.tolist(), strict=True):
            if tuple(left) in where and tuple(right) in where:
                assert where[tuple(left)] in NEAR.before[where[tuple(right)]].tolist()
            if left[2] != EQUALS:
                assert pairs[tuple(right[:2])] in NEAR.after[pairs[tuple(left[:2])]].tolist()


def test_before_the_signs_there_is_nothing_and_all_else_comes_from_them():
    signs = [i for i, column in enumerate(NEAR.columns.tolist()) if column[2] == EQUALS]
    assert len(signs) == 1 and len(NEAR.before[signs[0]]) == 0
    reached, new = set(signs), set(signs)
    while new:
        new = {i for i, before in enumerate(NEAR.before) if set(before.tolist()) & new} - reached
        reached |= new
    assert len(reached) == len(NEAR.columns)


def test_the_first_pass_is_the_bound_of_chapter_72():
    bound = Bound(checkpoints.load(NAME).model)
    seen, right = (torch.from_numpy(part) for part in (reachable().contexts, reachable().right))
    expected = bound.leads(seen, right, WINDOW_SLOTS, far_weight(bound.content, bound.slope, seen))[1]
    found = _assured(bound, NEAR, NEAR.own[:, None], NEAR.next[:, None], NEAR.right)[0]
    torch.testing.assert_close(found, expected)


def test_what_is_assured_holds_in_real_sums_at_every_depth():
    model = checkpoints.load("adder-unwindowed-s0").model
    bound = Bound(model)
    problems = OperandTask(max_digits=30).sample(60, torch.Generator().manual_seed(1))
    lines, reading = columns(problems.a, problems.b), read(model, problems.a, problems.b)
    place = torch.cat([torch.arange(n) for n in reading.row.bincount().tolist()])
    where = {tuple(column): i for i, column in enumerate(NEAR.columns.tolist())}
    pairs = {tuple(pair): i for i, pair in enumerate(NEAR.pairs.tolist())}
    for known_behind, known_ahead in ((1, 1), (2, 1), (2, 2), (4, 3)):
        inside = (place >= known_behind) & (place + known_ahead + 1 < lines.shape[2])
        rows, at = reading.row[inside], place[inside]
        behind = [
            [where[tuple(lines[r, :, p - k].tolist())] for k in range(known_behind)]
            for r, p in zip(rows, at, strict=True)
        ]
        ahead = [
            [pairs[tuple(lines[r, :2, p + 1 + m].tolist())] for m in range(known_ahead)]
            for r, p in zip(rows, at, strict=True)
        ]
        right = lines[rows, 2, at + 1]
        assured = _assured(bound, NEAR, torch.tensor(behind), torch.tensor(ahead), right)[0]
        assert (reading.margin[inside] >= assured - 1e-9).all()
        gap = float((reading.margin[inside] - assured).median())
    assert 0 <= gap < 1e-2  # so many columns leave next to nothing unknown


def test_splitting_makes_every_neighbour_a_case():
    behind, ahead, right = NEAR.own[:3, None], NEAR.next[:3, None], NEAR.right[:3]
    for back, choices in ((True, NEAR.before), (False, NEAR.after)):
        known = behind if back else ahead
        new = _split(NEAR, behind, ahead, right, back)
        assert len(new[0]) == sum(len(choices[i]) for i in known[:, 0].tolist())
        assert new[0].shape[1] == 1 + back and new[1].shape[1] == 2 - back


def test_an_unwindowed_adder_is_proven_right_at_every_length_as_its_certificate_says(monkeypatch):
    proofs = []
    monkeypatch.setattr(
        certificates, "prove", lambda *given, **more: proofs.append(prove(*given, **more)) or proofs[0]
    )
    assert certificates.certify(NAME) == certificates.covering(NAME)
    (proof,) = proofs
    assert proof.complete and proof.lead > 0
    assert proof.cases[1, 1] == len(reachable().contexts) and proof.undecided[1, 1] > 0
    assert len(proof.split) == len(set(proof.split)) == sum(proof.undecided.values())
    assert sum(proof.undecided.values()) < 0.02 * sum(proof.cases.values())


def test_a_wrong_adder_is_not_proven():
    wrong = copy.deepcopy(checkpoints.load(NAME).model)
    with torch.no_grad():
        wrong.unembedding.bias[7] += 12  # it writes a seven where another digit leads by little
    problems = OperandTask(max_digits=6).sample(2000, torch.Generator().manual_seed(0))
    assert (read(wrong, problems.a, problems.b).margin <= 0).any()
    proof = prove(wrong, most_columns=2)
    assert not proof.complete and proof.lead <= 0


def test_a_fault_in_one_short_sum_is_no_empty_split(monkeypatch):
    signs = next(i for i, column in enumerate(NEAR.columns.tolist()) if column[2] == EQUALS)
    one_two, ended = (NEAR.pairs.tolist().index(pair) for pair in ([1, 2], [ABSENT, ABSENT]))

    def wrong_in_one_sum(bound, near, behind, ahead, right):
        _, farther, further_on = _assured(bound, near, behind, ahead, right)
        short = (behind[:, 0] == signs) & (ahead[:, 0] == one_two) & (ahead[:, 1:] == ended).all(1)
        return torch.where(short, -1.0, 1.0).double(), farther, further_on

    monkeypatch.setattr(case_split, "_assured", wrong_in_one_sum)
    proof = prove(checkpoints.load(NAME).model)
    assert proof.undecided == {(1, 1): 1, (1, 2): 1}  # 1 + 2 and nothing else, known from end to end
    assert not proof.complete and proof.lead == -1
    assert proof.split == [".+=/123"]


def test_a_far_token_that_turns_an_answer_is_not_overlooked():
    slow = copy.deepcopy(checkpoints.load(NAME).model)
    with torch.no_grad():
        slow.log_slope += math.log(0.3)
    met, bound = reachable(), Bound(slow)
    seen, right = torch.from_numpy(met.contexts), torch.from_numpy(met.right)
    nothing = torch.zeros(len(seen), len(bound.slope), dtype=torch.double)
    alone = bound.leads(seen, right, WINDOW_SLOTS, nothing)[1].numpy()
    problems = OperandTask(max_digits=30).sample(300, torch.Generator().manual_seed(2))
    reading = read(slow, problems.a, problems.b)
    places, _ = visits(problems.a, problems.b)
    turned = (reading.margin.numpy() <= 0) & (alone[places] > 0)
    assert turned.any()  # what is near says one thing, and what is far makes it another
    assert not prove(slow, most_columns=2).complete


def test_slopes_too_small_for_a_bound_prove_nothing():
    endless = copy.deepcopy(checkpoints.load(NAME).model)
    with torch.no_grad():
        endless.log_slope.fill_(-50.0)
    assert not prove(endless, most_columns=2).complete


@pytest.mark.parametrize("positions", ["window", "full", "log-scaled"])
def test_a_model_that_does_not_fade_is_refused(positions):
    with pytest.raises(ValueError, match="lose a slope"):
        prove(ColumnTransformer(ColumnConfig(d_model=8, n_heads=2, d_mlp=8, positions=positions)))


def test_giving_up_is_said(monkeypatch):
    monkeypatch.setattr(case_split, "CASES_A_PASS", 1000)
    proof = prove(checkpoints.load(NAME).model, most_columns=2)
    assert not proof.complete and proof.undecided[1, 1] > 0
