"""Long multiplication on a page: texts are those of integers, contexts those of the forward, and the list is full."""

import dataclasses
import random
import re

import pytest
import torch
import torch.nn.functional as F

from arithlib import checkpoints, experiments
from arithlib.certify.addition import text
from arithlib.certify.multiplication import reachable
from arithlib.evaluation import distinct
from arithlib.models.column import PAGE_SLOTS, ColumnConfig, ColumnTransformer, page_slots
from arithlib.tasks.operands import of_length
from arithlib.tokenizer import ABSENT, ALPHABET, END, CharacterTokenizer
from arithlib.training import AdamW, train
from chapters.ch78_experiments import ProductExperiment, leads
from chapters.ch78_long_multiplication import (
    LongMultiplication,
    asking,
    contexts,
    continued,
    encode,
    margins,
    page_mask,
)

TASK = LongMultiplication()
SIZES = ColumnConfig("page", d_model=8, n_heads=2, d_mlp=16)
QUICK = ProductExperiment(
    name="pages-tiny", about="a test", steps=40, evaluate_every=20, batch_size=8, evaluation_count=12, model=SIZES,
    optimizer=AdamW.cosine(1e-2, 40, warmup_steps=2),
)  # fmt: skip
SOME = [(0, 0), (0, 407), (407, 0), (5, 9999), (9999, 5), (99, 99), (1000, 1000), (12, 34), (9, 9)]


def model(seed=1):
    return ColumnTransformer(SIZES, seed).eval().requires_grad_(False)


def products(count, digits=4, seed=0):
    rng = random.Random(seed)
    return [LongMultiplication(digits).sample(rng) for _ in range(count)]


def lines(keys, following):
    """Six characters for the slots, and the one that follows."""
    return [text(key) + ALPHABET[token] for key, token in zip(keys.tolist(), following.tolist(), strict=True)]


# ---- texts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("digits", [1, 2, 6, 30])
def test_rows_are_totals_and_carries_of_integers(digits):
    for a, b in [*products(60, digits), *SOME]:
        question, *rows, end = TASK.write(a, b).split("=")
        assert (f"{question}=", end, len(rows)) == (TASK.ask(a, b), "$", len(str(b)))
        assert [int(number[::-1]) for number in question.split("*")] == [a, b]
        for i, row in enumerate(rows):
            above, total = (a * (b % 10**n) for n in (i, i + 1))
            places, b_i = len(str(a)) + i + 1, b // 10**i % 10
            assert row[::2] == f"{total:0{places}d}"[::-1]
            for m in range(places - 1):
                ten = 10 ** (m + 1)
                assert int(row[2 * m + 1]) == (above % ten + b_i * (a * 10**i % ten)) // ten
        assert TASK.read(TASK.write(a, b)) == a * b


@pytest.mark.parametrize(
    "wrong", ["", "$", "21*43=", "21*43=$", "21*43=80400=8001400=", "2*4=8=+=$", "2*4=8==$", "2=8$"]
)
def test_a_text_without_a_last_row_is_refused(wrong):
    with pytest.raises(ValueError):
        TASK.read(wrong)


def test_every_length_is_drawn_and_none_beyond():
    drawn = products(3000, digits=3)
    assert {(len(str(a)), len(str(b))) for a, b in drawn} == {(n, m) for n in (1, 2, 3) for m in (1, 2, 3)}
    assert {a for a, _ in drawn if a < 10} == {b for _, b in drawn if b < 10} == set(range(10))
    rng = random.Random(0)
    assert {of_length(2, rng) for _ in range(2000)} == set(range(10, 100))
    with pytest.raises(ValueError, match="at least 1"):
        LongMultiplication(0)


# ---- contexts ----------------------------------------------------------------------------------------------------


def by_hand(a, b):
    """As `lines`, token by token, read off the text."""
    question, *rows = TASK.write(a, b).split("=")
    (first, second), above, found = question.split("*"), "", []

    def at(digits, place):
        return digits[place] if 0 <= place < len(digits) else "."

    for i, row in enumerate(rows):
        line = "=" + row + "=" * (row != "$")
        for step in range(len(line) - 1):
            own = line[step - 1 : step + 1] + "." if step % 2 else ".." + line[step]
            seen = at(first, step // 2 - i) + at(second, i) + at(above, step // 2)
            found.append(seen + own + line[step + 1])
        above = row[::2]
    return found


def test_contexts_are_what_stands_in_the_text():
    pairs = [*products(50, digits=5), *SOME]
    expected = [line for a, b in pairs for line in by_hand(a, b)]
    assert lines(*contexts(encode(TASK, pairs))) == expected
    assert lines(*contexts(encode(TASK, pairs[:1]))) == by_hand(*pairs[0])  # none of it depends on other texts


def test_contexts_are_the_keys_in_the_models_slots():
    tokens = encode(TASK, [*products(20), *SOME])
    slots, (row, place) = page_slots(tokens), page_mask(tokens).nonzero().unbind(1)
    expected = torch.full((len(row), len(PAGE_SLOTS)), ABSENT)
    for n, (r, t) in enumerate(zip(row.tolist(), place.tolist(), strict=True)):
        for s, slot in enumerate(slots[r, t].tolist()):
            if slot != ABSENT:
                assert expected[n, slot] == ABSENT  # no slot holds two keys
                expected[n, slot] = tokens[r, s]
    keys, following = contexts(tokens)
    assert torch.equal(keys, expected) and torch.equal(following, tokens[row, place + 1])
    assert torch.equal(asking(keys), tokens[row, place])


def test_contexts_give_the_logits_and_margins_of_the_forward():
    made, tokens = model(), encode(TASK, products(10))
    (keys, following), logits = contexts(tokens), made(tokens)[page_mask(tokens)]
    torch.testing.assert_close(made.slot_logits(asking(keys), keys), logits)
    rows = torch.arange(len(keys))
    right = logits[rows, following].clone()
    logits[rows, following] = -torch.inf
    torch.testing.assert_close(margins(made, keys, following), right - logits.amax(1))


def test_whatever_occurs_on_a_page_is_listed_with_what_follows():
    listed = {*lines(*map(torch.from_numpy, reachable()))}
    for digits in range(1, 7):
        pairs = products(300, digits) + [(10**digits - 1, 10**n - 1) for n in range(1, 7)] + SOME
        assert {*lines(*contexts(encode(TASK, pairs)))} <= listed


def test_whatever_is_listed_occurs_in_a_product_of_four_digits():
    def codes(keys, following):
        return ((torch.cat([keys, following[:, None]], 1) + 1) * 16 ** torch.arange(7)).sum(1)

    missing, rng = codes(*map(torch.from_numpy, reachable())), random.Random(0)
    assert len(missing) == len(missing.unique()) == 12_640
    for _ in range(14):
        # Large digits more often than small ones: they make the carries that are rare.
        drawn = [
            "".join(rng.choices("0123456789", range(9, 19), k=rng.choice((1, 2, 3, *[4] * 9)))) for _ in range(6000)
        ]
        met = codes(*contexts(encode(TASK, [(int(a), int(b)) for a, b in zip(*[iter(drawn)] * 2, strict=True)])))
        missing = missing[~torch.isin(missing, met)]
    assert len(missing) == 0


# ---- decoding ----------------------------------------------------------------------------------------------------


def test_decoding_from_remembered_contexts_is_greedy_decoding_by_the_forward():
    written = []
    for seed in range(11):
        made = model(seed)
        if seed < 8:  # many signs, and where keys stand counts for more
            made.near_value.mul_(9)
            made.unembedding.weight.mul_(3)
            made.unembedding.bias[10:] += torch.tensor([1.0, 1.0, 1.0, 2.0, -3.0])
        for a, b in ((9038, 2675), (7, 60)):
            prompt = TASK.ask(a, b)
            tokens = torch.tensor([CharacterTokenizer().encode(prompt, end=False)])
            for _ in range(30):
                tokens = torch.cat([tokens, made(tokens)[:, -1:].argmax(-1)], 1)
                if tokens[0, -1] == END:
                    break
            found = continued(made, prompt, 30)
            assert found == CharacterTokenizer().decode(tokens[0].tolist()), (seed, prompt)
            written.append(found.removeprefix(prompt))
    for nonsense in (r"\+", "-", r"\*", "==", r"\d[-+*][^=]*\d=.*\d", r".{30}", r"\$"):
        assert any(re.search(nonsense, answer) for answer in written), nonsense


# ---- training ----------------------------------------------------------------------------------------------------


def test_the_loss_is_that_of_the_forward_on_fresh_pages():
    made = QUICK.build()
    for seed, step in ((0, 7), (2, 7), (2, 8)):
        rng = random.Random(1_000_003 * seed + step)
        tokens = encode(TASK, [TASK.sample(rng) for _ in range(QUICK.batch_size)])
        asks = page_mask(tokens)[:, :-1]
        expected = F.cross_entropy(made(tokens)[:, :-1][asks], tokens[:, 1:][asks])
        found = dataclasses.replace(QUICK, seed=seed).objective(made, None).loss(made, step)
        torch.testing.assert_close(found, expected)


def test_held_out_products_are_no_batch_of_training():
    family = experiments.match("pages-s*")
    held_out = [random.Random(2**31 + e.seed).random() for e in family]
    stream = {random.Random(1_000_003 * e.seed + step).random() for e in family for step in range(e.steps)}
    assert len({*held_out}) == len(family) and len(stream) == sum(e.steps for e in family)
    assert not stream & {*held_out}
    objective = family[0].objective(None, None)
    rng = random.Random(2**31)
    assert objective.held_out == [TASK.sample(rng) for _ in range(family[0].evaluation_count)]
    trained = {TASK.ask(*pair) for step in range(400) for pair in objective._draw(random.Random(step), 48)}
    long = {TASK.ask(a, b) for a, b in objective.held_out if len(str(a)) + len(str(b)) > 6}
    assert len(long) > 20 and not long & trained  # of short ones there are too few to be new


def test_an_evaluation_counts_pages_and_contexts():
    made = model()
    objective = QUICK.objective(made, None)
    found = objective.evaluate(made)
    keys, right = map(torch.from_numpy, reachable())
    wrong = int((made.slot_logits(asking(keys), keys).argmax(1) != right).sum())
    assert found["wrong_contexts"] == wrong > 10_000 and found["exact_match"] == 0
    made.unembedding.weight.zero_()
    made.unembedding.bias.zero_()[0] = 1.0  # it writes nothing but zeros
    objective.held_out = [(0, 0), (1, 1)]
    assert objective.evaluate(made)["exact_match"] == 0
    assert leads(made).unique().tolist() == [-1.0, 1.0]


def test_training_lowers_the_loss():
    made = QUICK.build()
    run = train(made, QUICK.objective(made, None), QUICK.optimizer, QUICK.steps, evaluate_every=QUICK.evaluate_every)
    assert run.history["loss"][-1] < 0.9 * run.history["loss"][0]


def test_a_shipped_model_multiplies_and_a_blind_one_says_so():
    trained, rng = checkpoints.load("pages-s0"), random.Random(4)
    for n, m in ((1, 1), (12, 9), (3, 20)):
        a, b = of_length(n, rng), of_length(m, rng)
        assert trained.experiment.multiply(trained.model, a, b) == a * b
    torch.nn.init.zeros_(trained.model.unembedding.weight)
    with pytest.raises(ValueError):
        trained.experiment.multiply(trained.model, 12, 34)


def test_distinct_contexts_are_all_that_there_are_and_each_knows_its_own():
    keys, following = contexts(encode(LongMultiplication(), [(99, 99), (12, 34), (99, 99)]))
    few, right, which = distinct(keys, following)
    assert len(few) == len({(*row, token) for row, token in zip(keys.tolist(), following.tolist(), strict=True)})
    assert torch.equal(few[which], keys) and torch.equal(right[which], following)
