"""Adders of few numbers: what follows from a number, which sums are trained on, and each step of training."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from arithlib import checkpoints, experiments
from arithlib.certify import addition, checker
from arithlib.certify.addition import examine, reachable
from arithlib.certify.mutants import answers
from arithlib.models.column import ColumnTransformer
from arithlib.streaming import context_logits, slots
from arithlib.tasks.operands import OperandTask
from arithlib.tokenizer import ABSENT, ALPHABET, END
from chapters import ch73_compact as compact
from chapters.ch73_experiments import situations

FAMILY = experiments.match("compact-*")
EVERY_SIZE = pytest.mark.parametrize("spared", compact.SPARED)


def numbers(starts=1, seed=0, spared=compact.LARGEST):
    return compact.initial(spared, starts, torch.Generator().manual_seed(seed))


def experiment():
    settings = dict(spared=compact.LARGEST, steps=12, evaluate_every=12, starts=4, batch_size=32)
    return compact.CompactExperiment(name="compact-test", about="a test", **settings)


def written_out(one, spared=compact.LARGEST):
    model = ColumnTransformer(compact.SIZE).eval().requires_grad_(False)
    model.load_state_dict(compact.expand(one, spared))
    return model


# ---- from the numbers to the weights -----------------------------------------------------------------------------


@EVERY_SIZE
def test_weights_follow_from_the_numbers_and_from_every_one_of_them(spared):
    [one] = numbers(spared=spared)
    assert len(one) == compact.count(spared) == sum(part.numel() for part in compact.named(one, spared).values())
    assert all(written_out(one, spared).state_dict()[name].shape == w.shape for name, w in expanded(one, spared))
    whole = torch.cat([weight.flatten() for _, weight in expanded(one, spared)])
    for place in range(len(one)):
        other = one.clone()
        other[place] += 1
        changed = torch.cat([weight.flatten() for _, weight in expanded(other, spared)])
        assert not torch.equal(changed, whole), f"number {place} is nowhere"


def expanded(one, spared=compact.LARGEST):
    return compact.expand(one, spared).items()


def test_every_size_does_without_something_that_the_one_before_could_also_write():
    assert [compact.count(spared) for spared in compact.SPARED] == [24, 20, 18]
    [one] = numbers(spared=3)
    parts, whole = compact.named(one, 3), numbers()[0]
    larger = compact.named(whole)
    for name in ("arc", "end", "operand", "answer", "near", "value", "mlp_bias"):
        larger[name].copy_(parts[name])
    larger["signs"].zero_()
    larger["mlp_in"].copy_(parts["mlp_in"].expand(2, 2))
    larger["mlp_out"].copy_(torch.stack([parts["mlp_out"], -parts["mlp_out"]]))
    for (name, small), (_, large) in zip(expanded(one, 3), expanded(whole), strict=True):
        torch.testing.assert_close(small, large, msg=name)


def test_digits_lie_on_the_planted_arc_and_like_parts_are_alike():
    [one] = numbers()
    one[:3] = torch.tensor([2.0, 0.5, 0.25])
    weights = compact.expand(one)
    angle = 0.5 + 0.25 * np.arange(10)
    planted = 2 * np.stack([np.cos(angle), np.sin(angle)], 1)
    np.testing.assert_allclose(weights["embedding.weight"][:10], planted, atol=1e-6)
    signs, (first, second, answer, fourth) = weights["embedding.weight"][10:14], weights["numbers.weight"]
    assert torch.equal(signs, signs[:1].expand(4, 2)) and torch.equal(first, second) and not fourth.any()
    assert not torch.equal(first, answer)
    apart = weights["embedding.weight"].diff(dim=0) * compact.WRITES * compact.SHARPNESS
    torch.testing.assert_close(weights["unembedding.weight"].diff(dim=0), apart, rtol=1e-4, atol=1e-4)


def test_no_start_is_better_for_what_is_subtracted_from_all_logits():
    """The middle of the arc is taken from every row of the unembedding: no probability changes."""
    [one] = numbers()
    model, contexts = written_out(one), compact.alike()[0][::50]
    where = slots(model, 1)
    with torch.no_grad():
        logits = context_logits(model, contexts[:, 4], contexts[:, :5], *where)
        model.unembedding.weight.copy_(compact.WRITES * compact.SHARPNESS * model.embedding.weight)
        whole = context_logits(model, contexts[:, 4], contexts[:, :5], *where)
    torch.testing.assert_close(logits.log_softmax(1), whole.log_softmax(1), rtol=1e-3, atol=1e-2)


# ---- what is trained on ------------------------------------------------------------------------------------------


def test_one_context_stands_for_those_with_exchanged_digits():
    contexts, belongs = compact.alike()
    met, seen = reachable(), set()
    for (a, b, own, next_a, next_b), right, which in zip(met.contexts.tolist(), met.right, belongs, strict=True):
        first, column, second, before, written, answer = contexts[which].tolist()
        assert (sorted((a, b)), sorted((next_a, next_b)), own, right) == (
            [column, before], [first, second], written, answer
        )  # fmt: skip
        seen.add(int(which))
    assert len(seen) == len(contexts) == len(contexts.unique(dim=0))


def test_a_context_has_the_sum_of_its_column_in_every_sum_that_meets_it():
    contexts, _ = compact.alike()
    sums = {tuple(row): int(s) for row, s in zip(contexts.tolist(), compact.column_sums(contexts), strict=True)}
    problems = OperandTask(max_digits=5).sample(200, torch.Generator().manual_seed(3))
    where = slots(ColumnTransformer(compact.SIZE), 1)
    for a, b in zip(problems.a, problems.b, strict=True):
        met, carry = situations(where, a[None], b[None]).tolist(), 0
        for place, (one, before, other, last, *rest) in enumerate(met):
            digits = [int(x[place]) if place < len(x) else 0 for x in (a.clamp(min=0), b.clamp(min=0))]
            due, (one, other), (before, last) = sum(digits) + carry, sorted((one, other)), sorted((before, last))
            assert sums[one, before, other, last, *rest] == due and rest[-1] in (due % 10, END)
            carry = due // 10


def test_a_batch_has_low_sums_and_admitted_ones_alone_the_newest_most():
    keys, _ = compact.alike()
    likely, sums = compact.curriculum(keys), compact.column_sums(keys)
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


@EVERY_SIZE
def test_losses_and_wrong_answers_are_those_of_the_written_out_model(spared):
    stack = compact.CompactStack(numbers(2, spared=spared), spared)
    right = stack.contexts[:, -1]
    for start, (wrong, losses) in enumerate(zip(stack.wrong(), stack.losses(), strict=True)):
        model = written_out(stack.numbers[start], spared)
        # Random starts have logits that are equal up to rounding; here they are computed in another order.
        assert abs(int(wrong) - (answers(model) != reachable().right).sum()) <= 2
        logits = context_logits(model, stack.contexts[:, 4], stack.contexts[:, :5], *slots(model, 1))
        torch.testing.assert_close(losses, F.cross_entropy(logits, right, reduction="none"), rtol=1e-4, atol=1e-2)


def test_a_step_is_that_of_gauss_and_newton_written_out():
    stack, batch = compact.CompactStack(numbers(1, seed=5), sharpness=1.0), torch.arange(0, 240, 20)[None]
    stack.damping[:] = 10.0  # so that the first attempt is taken
    start, contexts = stack.numbers[0].clone(), stack.contexts[batch[0]]
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
    step *= min(1.0, stack.farthest / float(step.norm()))
    stack.step(batch)
    torch.testing.assert_close(stack.numbers[0], start - step, rtol=1e-3, atol=1e-4)
    assert stack.damping.tolist() == [5.0]


def test_no_start_gets_worse_on_its_batch_and_what_does_not_fall_stays():
    stack = compact.CompactStack(numbers(6, seed=1), sharpness=compact.BLUNT)
    draw = torch.Generator().manual_seed(0)
    for _ in range(5):
        batch, before = torch.randint(len(stack.contexts), (6, 64), generator=draw), stack.numbers.clone()
        loss = stack.step(batch)
        after = stack.losses().gather(1, batch).mean(1) + compact.PENALTY * stack.numbers.square().sum(1)
        still = (stack.numbers == before).all(1)
        assert ((after < loss + 1e-5) | still).all() and not still.all()


def test_the_best_start_is_kept_and_a_run_repeats_itself(monkeypatch):
    monkeypatch.setattr(compact, "CUTS", {6: 1 / 2})
    runs = []
    for _ in range(2):
        one = experiment()
        model = one.build()
        runs.append(one.fit(model, torch.device("cpu"), progress=False).history)
        assert (answers(model) != reachable().right).sum() == runs[-1]["wrong"].min()
    assert all(np.array_equal(runs[0][name], runs[1][name]) for name in runs[0])
    assert (
        runs[0]["wrong"].shape == runs[0]["admitted"].shape == (1, 4) and (runs[0]["admitted"] == compact.LAST).all()
    )
    assert one.size()["weights"] == compact.count() == runs[0]["numbers"].size


@pytest.mark.parametrize("run", [run for run in FAMILY if checkpoints.find(run.name)], ids=lambda run: run.name)
def test_a_shipped_adder_is_written_out_from_its_numbers_and_wrong_as_often_as_stated(run):
    trained = checkpoints.read(run.name)
    [history] = trained.history["numbers"]
    weights = compact.expand(torch.from_numpy(history), run.spared)
    torch.testing.assert_close(weights, dict(trained.model.state_dict()))
    assert (answers(trained.model) != reachable().right).sum() == trained.history["wrong"].min()


# ---- leads that rounding cannot undo -----------------------------------------------------------------------------


@EVERY_SIZE
@torch.no_grad()
def test_what_rounding_leaves_of_a_logit_is_what_the_certifier_encloses(spared, monkeypatch):
    settling = compact.Settling(numbers(spared=spared)[0], spared)
    model, contexts = written_out(settling.numbers[0], spared), settling.contexts[::25]
    ball = addition.logits(model, contexts[:, [1, 3, 4, 0, 2]].numpy())  # in the order of `reachable`
    monkeypatch.setattr(compact, "SOFTNESS", 1.0)
    found = {}
    for room in (0.0, 1.0):
        monkeypatch.setattr(compact, "ROOM", room)
        found[room] = settling.answer(settling.numbers[0], contexts).double().numpy()
    size = np.abs(ball.mid).max()
    np.testing.assert_allclose(found[0.0], ball.mid, atol=1e-4 * size)
    right = F.one_hot(contexts[:, -1], len(ALPHABET)).numpy().astype(bool)
    moved = np.where(right, -1, 1) * (found[1.0] - found[0.0])
    large = ball.rad > 1e-5 * size  # elsewhere the float32 sums here are as rough as what is measured
    assert large.mean() > 0.1
    assert (moved[large] > 0.4 * ball.rad[large]).all() and (moved[large] < 1.02 * ball.rad[large]).all()


@torch.no_grad()
def test_room_is_measured_against_the_certifier_and_against_the_checker():
    settling, met = compact.Settling(numbers()[0]), reachable()
    model = written_out(settling.numbers[0])
    found, room = examine(model), settling.measure()
    weights = {name: weight.double().numpy() for name, weight in model.state_dict().items()}
    checked = checker.leads(weights, met.contexts, met.right, *checker.FLOAT32)
    assert room == pytest.approx(min((found.lead - 1.25 * (found.lead - found.assured)).min(), checked.min()))


def test_what_was_settled_has_room_and_what_it_began_from_had_none():
    before, after = (checkpoints.read(f"compact-18-s3{more}").history["numbers"][-1] for more in ("", "-settled"))
    rooms = [compact.Settling(torch.from_numpy(each), 3).measure() for each in (before, after)]
    assert rooms[0] < 0 < rooms[1]
