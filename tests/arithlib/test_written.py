"""Operations written out in full: contexts are those of the forward, and nothing occurs that is not listed."""

import dataclasses
import random

import pytest
import torch
import torch.nn.functional as F

from arithlib import experiments
from arithlib.certify.addition import text
from arithlib.contexts import context_logits, context_margins, remembered
from arithlib.evaluation import distinct
from arithlib.models.column import ColumnConfig, own_token
from arithlib.tasks.operands import of_length
from arithlib.tasks.written import WrittenOperation
from arithlib.tokenizer import ABSENT, ALPHABET, END, EQUALS
from arithlib.training import AdamW, train
from chapters.ch78_experiments import ProductExperiment
from chapters.ch78_long_multiplication import CarriedMultiplication
from chapters.ch78_other_layouts import LayoutConfig, LayoutExperiment, PartialProducts
from chapters.ch79_differences import ChainedDifferences
from chapters.ch79_experiments import DifferenceExperiment

SHORT = dict(
    name="tiny", about="a test", steps=40, evaluate_every=20, batch_size=8, evaluation_count=12,
    optimizer=AdamW.cosine(1e-2, 40, warmup_steps=2),
)  # fmt: skip
SIZES = dict(d_model=8, n_heads=2, d_mlp=16)
QUICK = {
    "product": ProductExperiment(model=ColumnConfig("page", **SIZES), **SHORT),
    "partial products": LayoutExperiment(task=PartialProducts(), model=LayoutConfig(**SIZES), **SHORT),
    "difference": DifferenceExperiment(model=ColumnConfig("difference", **SIZES), **SHORT),
}
SOME = [(0, 0), (0, 407), (407, 0), (5, 9999), (9999, 5), (99, 99), (1000, 999), (12, 34), (90, 99), (100, 200)]


@pytest.fixture(params=QUICK)
def quick(request):
    return QUICK[request.param]


def model(experiment):
    return dataclasses.replace(experiment, seed=1).build().eval().requires_grad_(False)


def pairs_of(count, digits=4, seed=0):
    rng = random.Random(seed)
    return [tuple(of_length(rng.randint(1, digits), rng) for _ in range(2)) for _ in range(count)] + SOME


def writing(tokens):
    """(B, T) whether a token asks for one that is written."""
    return ((tokens == EQUALS).cumsum(1) > 0) & (tokens != END)


def lines(keys, following):
    """A character for each slot, and the one that follows."""
    return [text(key) + ALPHABET[token] for key, token in zip(keys.tolist(), following.tolist(), strict=True)]


def test_every_length_is_drawn_and_none_beyond(quick):
    kind, rng = type(quick.task), random.Random(0)
    drawn = [kind(3).sample(rng) for _ in range(3000)]
    assert {(len(str(a)), len(str(b))) for a, b in drawn} == {(n, m) for n in (1, 2, 3) for m in (1, 2, 3)}
    assert {a for a, _ in drawn if a < 10} == {b for _, b in drawn if b < 10} == set(range(10))
    assert {of_length(2, rng) for _ in range(2000)} == set(range(10, 100))
    with pytest.raises(ValueError, match="numbers of up to 0 digits: at least 1"):
        kind(0)


def test_an_operation_has_to_say_how_it_is_written():
    assert WrittenOperation.__abstractmethods__ == {"contexts", "every_context", "read", "write"}
    with pytest.raises(TypeError, match="abstract"):
        WrittenOperation()


# ---- contexts ----------------------------------------------------------------------------------------------------


def test_contexts_are_the_keys_in_the_models_slots(quick):
    task, made = quick.task, model(quick)
    tokens = task.encode(pairs_of(20))
    slots, (row, place) = made.slots(tokens), writing(tokens).nonzero().unbind(1)
    expected = torch.full((len(row), quick.model.n_slots), ABSENT)
    for n, (r, t) in enumerate(zip(row.tolist(), place.tolist(), strict=True)):
        for s, slot in enumerate(slots[r, t].tolist()):
            if slot != ABSENT:
                assert expected[n, slot] == ABSENT  # no slot holds two keys
                expected[n, slot] = tokens[r, s]
    keys, following = task.contexts(tokens)
    assert torch.equal(keys, expected) and torch.equal(following, tokens[row, place + 1])
    assert torch.equal(own_token(quick.model.positions, keys), tokens[row, place])


def test_contexts_give_the_logits_and_margins_of_the_forward(quick):
    made, tokens = model(quick), quick.task.encode(pairs_of(10))
    (keys, following), logits = quick.task.contexts(tokens), made(tokens)[writing(tokens)]
    torch.testing.assert_close(context_logits(made, keys), logits)
    answer = remembered(made)
    for _ in range(2):
        assert [answer(*key) for key in keys[:40].tolist()] == logits[:40].argmax(1).tolist()
    rows = torch.arange(len(keys))
    right = logits[rows, following].clone()
    logits[rows, following] = -torch.inf
    torch.testing.assert_close(context_margins(made, keys, following), right - logits.amax(1))


def test_whatever_occurs_in_a_text_is_listed_with_what_follows(quick):
    listed = {*lines(*quick.task.every_context())}
    for digits in range(1, 7):
        pairs = [*pairs_of(300, digits), *((10**digits - 1, 10**n - 1) for n in range(1, 7))]
        assert {*lines(*quick.task.contexts(quick.task.encode(pairs)))} <= listed


def test_distinct_contexts_are_all_that_there_are_and_each_knows_its_own(quick):
    keys, following = quick.task.contexts(quick.task.encode([(99, 99), (12, 34), (99, 99)]))
    few, right, which = distinct(keys, following)
    assert len(few) == len({(*row, token) for row, token in zip(keys.tolist(), following.tolist(), strict=True)})
    assert torch.equal(few[which], keys) and torch.equal(right[which], following)


# ---- training ----------------------------------------------------------------------------------------------------


def test_the_loss_is_that_of_the_forward_on_fresh_texts(quick):
    made, task = quick.build(), quick.task
    for seed, step in ((0, 7), (2, 7), (2, 8)):
        rng = random.Random(1_000_003 * seed + step)
        tokens = task.encode([task.sample(rng) for _ in range(quick.batch_size)])
        asks = writing(tokens)[:, :-1]
        expected = F.cross_entropy(made(tokens)[:, :-1][asks], tokens[:, 1:][asks])
        found = dataclasses.replace(quick, seed=seed).objective(made, None).loss(made, step)
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    "pattern", ["pages-s*", "pages-carried-s*", "pages-partials-s*", "differences-s*", "differences-chained-s*"]
)
def test_held_out_problems_are_no_batch_of_training(pattern):
    family = experiments.match(pattern)
    held_out = [random.Random(2**31 + e.seed).random() for e in family]
    stream = {random.Random(1_000_003 * e.seed + step).random() for e in family for step in range(e.steps)}
    assert len({*held_out}) == len(family) and len(stream) == sum(e.steps for e in family)
    assert not stream & {*held_out}
    for seed in (1, 0):
        objective, rng = family[seed].objective(None, None), random.Random(2**31 + seed)
        assert objective.held_out == [family[seed].task.sample(rng) for _ in range(family[seed].evaluation_count)]
    if isinstance(family[0].task, (ChainedDifferences, CarriedMultiplication)):  # nines: too few to be new
        return
    ask, size = family[0].task.ask, family[0].batch_size
    trained = {ask(*pair) for step in range(400) for pair in objective._draw(random.Random(step), size)}
    long = {ask(a, b) for a, b in objective.held_out if len(str(a)) + len(str(b)) > 6}
    assert len(long) > 20 and not long & trained  # of short ones there are too few to be new


def test_an_evaluation_counts_texts_and_contexts(quick):
    made = model(quick)
    objective = quick.objective(made, None)
    found = objective.evaluate(made)
    keys, right = quick.task.every_context()
    wrong = int((made.slot_logits(own_token(quick.model.positions, keys), keys).argmax(1) != right).sum())
    assert found["wrong_contexts"] == wrong > 0.75 * len(keys) and found["exact_match"] == 0
    made.unembedding.weight.zero_()
    made.unembedding.bias.zero_()[0] = 1.0  # it writes nothing but zeros
    objective.held_out = [(0, 0), (1, 1)]
    assert objective.evaluate(made)["exact_match"] == 0
    assert quick.finish(made, None)["smallest_lead"].tolist() == [-1.0]
    assert context_margins(made, keys, right).unique().tolist() == [-1.0, 1.0]


def test_training_lowers_the_loss(quick):
    made = quick.build()
    run = train(made, quick.objective(made, None), quick.optimizer, quick.steps, evaluate_every=quick.evaluate_every)
    assert run.history["loss"][-1] < 0.9 * run.history["loss"][0]
