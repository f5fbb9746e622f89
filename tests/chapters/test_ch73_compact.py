"""Adders of few numbers: what follows from a number, which sums are trained on, and each step of training."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from arithlib import checkpoints, experiments
from arithlib.certify import checker
from arithlib.certify.addition import examine, reachable
from arithlib.certify.mutants import answers
from arithlib.models.column import ColumnConfig, ColumnTransformer
from arithlib.streaming import slots
from arithlib.tasks.operands import OperandTask
from arithlib.tokenizer import ABSENT, END
from chapters import ch73_compact as compact
from chapters.ch73_experiments import every_context, situations

SIZE = ColumnConfig("window-sink", d_model=3, n_heads=1, d_mlp=2, tied=True)
FAMILY = experiments.match("compact-*")


def numbers(starts=1, seed=0, size=SIZE):
    return compact.initial(size, starts, torch.Generator().manual_seed(seed))


def experiment(**more):
    return compact.CompactExperiment(
        name="compact-test",
        about="a test",
        model=SIZE,
        **dict(steps=12, evaluate_every=12, starts=3, batch_size=32) | more,
    )


# ---- from the numbers to the weights -----------------------------------------------------------------------------


def test_weights_follow_from_the_numbers_and_from_every_one_of_them():
    [one] = numbers()
    assert len(one) == compact.count(SIZE) == sum(part.numel() for part in compact.named(one, SIZE).values())
    model = ColumnTransformer(SIZE)
    model.load_state_dict(compact.expand(one, SIZE))
    whole = torch.cat([weight.flatten() for weight in compact.expand(one, SIZE).values()])
    for place in range(len(one)):
        other = one.clone()
        other[place] += 1
        changed = torch.cat([weight.flatten() for weight in compact.expand(other, SIZE).values()])
        assert not torch.equal(changed, whole), f"number {place} is nowhere"


def test_digits_lie_on_the_planted_arc_and_like_parts_are_alike():
    [one] = numbers()
    one[:3] = torch.tensor([2.0, 0.5, 0.25])
    weights = compact.expand(one, SIZE)
    angle = 0.5 + 0.25 * np.arange(10)
    planted = 2 * np.stack([np.cos(angle), np.sin(angle), 0 * angle], 1)
    np.testing.assert_allclose(weights["embedding.weight"][:10], planted, atol=1e-6)
    signs, (first, second, answer, fourth) = weights["embedding.weight"][10:14], weights["numbers.weight"]
    assert torch.equal(signs, signs[:1].expand(4, 3)) and torch.equal(first, second) and not fourth.any()
    assert not torch.equal(first, answer) and weights["unembedding.weight"] is weights["embedding.weight"]


# ---- what is trained on ------------------------------------------------------------------------------------------


def test_a_context_has_the_sum_of_its_column_in_every_sum_that_meets_it():
    sums = {tuple(row): int(s) for row, s in zip(every_context().tolist(), compact.column_sums(), strict=True)}
    problems = OperandTask(max_digits=5).sample(200, torch.Generator().manual_seed(3))
    where = slots(ColumnTransformer(SIZE), 1)
    for a, b in zip(problems.a, problems.b, strict=True):
        met, carry = situations(where, a[None], b[None]).tolist(), 0
        for place, row in enumerate(met):
            digits = [int(x[place]) if place < len(x) else 0 for x in (a.clamp(min=0), b.clamp(min=0))]
            due = sum(digits) + carry
            assert sums[tuple(row)] == due and row[-1] in (due % 10, END)
            carry = due // 10


def test_a_batch_has_low_sums_and_admitted_ones_alone_the_newest_most():
    likely, sums, keys = compact.curriculum(), compact.column_sums(), every_context()
    two_digits = (keys[:, [0, 2]] != ABSENT).all(1)
    for smallest, row in enumerate(likely, start=10):
        assert (row[(sums >= 10) & (sums < smallest)] == 0).all() and (
            row[(sums < 10) | (sums >= smallest)] > 0
        ).all()
        newest, older = (row[two_digits & (sums == s)] for s in (smallest, smallest + 1))
        torch.testing.assert_close(newest[0], 2 * older[0])
        row = torch.where(sums == smallest, row / 2, row)
        torch.testing.assert_close(row[two_digits].sum(), torch.tensor(0.5))
        torch.testing.assert_close(row[two_digits & (sums < 10)].sum(), torch.tensor(0.25))


# ---- training ----------------------------------------------------------------------------------------------------


def test_losses_and_wrong_answers_are_those_of_the_written_out_model():
    stack, model = compact.Stack(SIZE, numbers(2)), ColumnTransformer(SIZE).eval()
    for start in range(2):
        model.load_state_dict(compact.expand(stack.numbers[start], SIZE))
        assert int(stack.wrong()[start]) == (answers(model) != reachable().right).sum()
    with torch.no_grad():
        logits = torch.stack([stack.answer(one, every_context()[:50]) for one in stack.numbers])
    right = every_context()[:50, -1]
    slow = torch.stack([F.cross_entropy(each, right, reduction="none") for each in logits])
    torch.testing.assert_close(stack.losses()[:, :50], slow)


def test_a_step_is_that_of_gauss_and_newton_written_out():
    stack, batch = compact.Stack(SIZE, numbers(1, seed=5)), torch.arange(0, 240, 20)[None]
    stack.damping[:] = 10.0  # so that the first attempt is taken
    start, contexts = stack.numbers[0].clone(), every_context()[batch[0]]
    gradient, curvature = torch.zeros(len(start)), torch.zeros(len(start), len(start))
    for context in contexts:
        slope = torch.autograd.functional.jacobian(lambda one: stack.answer(one, context[None])[0], start)  # noqa: B023
        p = stack.answer(start, context[None])[0].softmax(0)
        gradient += slope.T @ (p - F.one_hot(context[-1], len(p))) / len(contexts)
        curvature += slope.T @ (p.diag() - p[:, None] * p) @ slope / len(contexts)
    curvature += 2 * compact.PENALTY * torch.eye(len(start))
    gradient += 2 * compact.PENALTY * start
    damped = curvature + 10.0 * (curvature.diagonal() + 1e-3).diag()
    step = torch.linalg.solve(damped, gradient)
    step *= min(1.0, compact.FARTHEST / float(step.norm()))
    stack.step(batch)
    torch.testing.assert_close(stack.numbers[0], start - step, rtol=1e-3, atol=1e-4)
    assert stack.damping.tolist() == [5.0]


def test_no_start_gets_worse_on_its_batch_and_what_does_not_fall_stays():
    stack = compact.Stack(SIZE, numbers(6, seed=1))
    draw = torch.Generator().manual_seed(0)
    for _ in range(5):
        batch, before = torch.randint(len(stack.contexts), (6, 64), generator=draw), stack.numbers.clone()
        loss = stack.step(batch)
        after = stack.losses().gather(1, batch).mean(1) + compact.PENALTY * stack.numbers.square().sum(1)
        still = (stack.numbers == before).all(1)
        assert ((after < loss + 1e-5) | still).all() and not still.all()


def test_the_best_start_is_kept_and_a_run_repeats_itself(monkeypatch):
    monkeypatch.setattr(compact, "CUTS", {6: 2})
    runs = []
    for _ in range(2):
        one = experiment()
        model = one.build()
        runs.append(one.fit(model, torch.device("cpu"), progress=False).history)
        assert (answers(model) != reachable().right).sum() == runs[-1]["wrong"].min()
    assert all(np.array_equal(runs[0][name], runs[1][name]) for name in runs[0])
    assert (
        runs[0]["wrong"].shape == runs[0]["admitted"].shape == (1, 3) and (runs[0]["admitted"] == compact.LAST).all()
    )
    assert one.size()["weights"] == compact.count(SIZE) == runs[0]["numbers"].size


@pytest.mark.parametrize("run", [run for run in FAMILY if checkpoints.find(run.name)], ids=lambda run: run.name)
def test_a_shipped_adder_is_written_out_from_its_numbers_and_wrong_as_often_as_stated(run):
    trained = checkpoints.read(run.name)
    [history] = trained.history["numbers"]
    torch.testing.assert_close(compact.expand(torch.from_numpy(history), run.model), dict(trained.model.state_dict()))
    assert (answers(trained.model) != reachable().right).sum() == trained.history["wrong"].min()


# ---- leads that rounding cannot undo -----------------------------------------------------------------------------


@torch.no_grad()
def test_leads_are_measured_in_units_of_what_rounding_may_cost_and_one_context_stands_for_its_mirror_images():
    settling, model = compact.Settling(SIZE, numbers()[0]), ColumnTransformer(SIZE)
    model.load_state_dict(compact.expand(settling.numbers[0], SIZE))
    found, met, room = examine(model), reachable(), settling.measure()
    weights = {name: weight.double().numpy() for name, weight in model.state_dict().items()}
    checked = checker.leads(weights, met.contexts, met.right, *checker.FLOAT32)
    cost = np.maximum(1.25 * (found.lead - found.assured), found.lead - checked)
    assert room == pytest.approx((found.lead - cost).min())
    logits = settling.answer(settling.numbers[0], settling.contexts) * settling.unit[:, None]
    by_context = {
        (frozenset([(d, a), (e, b)]), c): place for place, (a, b, c, d, e) in enumerate(met.contexts.tolist())
    }
    plain = compact.Stack(SIZE, settling.numbers)
    for row in settling.contexts[::97]:
        first, last, second, before, own, which, right = row.tolist()
        given = torch.tensor([[first, last, second, before, own, right], [second, before, first, last, own, right]])
        one, mirrored = plain.answer(settling.numbers[0], given)
        torch.testing.assert_close(one, mirrored)
        torch.testing.assert_close(logits[which], one, rtol=1e-4, atol=1e-4)
        places = [p for p in (by_context.get((frozenset([(first, x), (second, y)]), own)) for x, y in
                              ((last, before), (before, last))) if p is not None]  # fmt: skip
        unit = float(settling.unit[which])
        assert any(unit == pytest.approx(max(0.3, compact.ROOM * cost[p]), rel=1e-3) for p in places)
        assert right in {int(met.right[p]) for p in places}


def test_what_was_settled_has_room_and_what_it_began_from_had_none():
    before, after = (checkpoints.read(f"compact-3x4-s4{more}").history["numbers"][-1] for more in ("", "-settled"))
    rooms = [compact.Settling(FAMILY[0].model, torch.from_numpy(each)).measure() for each in (before, after)]
    assert rooms[0] < 0 < rooms[1]
