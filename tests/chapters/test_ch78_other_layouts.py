"""Other layouts of a page: texts are those of integers, what is seen stands in the text, and the list is full."""

import random

import pytest
import torch

from arithlib.certify.addition import text
from arithlib.certify.written import examine
from arithlib.contexts import context_logits
from arithlib.tokenizer import ALPHABET, END, EQUALS
from chapters.ch78_long_multiplication import CarriedMultiplication, LongMultiplication
from chapters.ch78_other_layouts import LayoutConfig, LayoutExperiment, PartialProducts, WithoutCarries

SOME = [(0, 0), (0, 407), (407, 0), (5, 9999), (9999, 5), (99, 99), (1000, 1000), (12, 34), (9, 9), (99_999, 99_999)]
BARE, PARTIALS = WithoutCarries(), PartialProducts()
layouts = pytest.mark.parametrize("task", [BARE, PARTIALS], ids=["bare", "partials"])


def products(count, digits=4, seed=0):
    rng = random.Random(seed)
    return SOME + [CarriedMultiplication(digits).sample(rng) for _ in range(count)]


def codes(keys, following):
    return ((torch.cat([keys, following[:, None]], 1) + 1) * 16 ** torch.arange(keys.shape[1] + 1)).sum(1)


# ---- texts -------------------------------------------------------------------------------------------------------


@layouts
def test_a_page_ends_in_the_product(task):
    for a, b in products(200, 7):
        assert task.read(task.write(a, b)) == a * b
    for wrong in ("21*43=", "21*43=$", "21*43=80400=8001400="):
        with pytest.raises(ValueError):
            task.read(wrong)


def test_rows_without_carries_are_the_digits_of_rows_with_them():
    for a, b in products(100, 6):
        question, *rows, end = LongMultiplication().write(a, b).split("=")
        assert BARE.write(a, b) == "=".join([question, *(row[::2] for row in rows), end])


def test_partial_products_are_those_of_integers_and_totals_are_their_sums():
    for a, b in products(100, 6):
        question, *rows, end = PARTIALS.write(a, b).split("=")
        numbers, total = [int(row[::2][::-1]) for row in rows], 0
        for i, digit in enumerate(map(int, reversed(str(b)))):
            partial = numbers.pop(0)
            assert partial == a * digit
            before, total = total, total + 10**i * partial
            if i:
                assert numbers.pop(0) == total
                for m, carry in enumerate(map(int, rows[2 * i][1::2]), 1):
                    assert carry == (before % 10**m + 10**i * partial % 10**m) // 10**m
            for m, carry in enumerate(map(int, rows[max(2 * i - 1, 0)][1::2]), 1):
                assert carry == a % 10**m * digit // 10**m
        assert (question, end, numbers) == (PARTIALS.ask(a, b)[:-1], "$", [])


# ---- contexts ----------------------------------------------------------------------------------------------------


def at(digits, place):
    return digits[place] if 0 <= place < len(digits) else "."


def bare_by_hand(a, b):
    """A character for each slot, and the one that follows, read off the text."""
    question, *rows = BARE.write(a, b).split("=")
    (first, second), above, found = question.split("*"), "", []
    for i, row in enumerate(rows):
        line = "=" + row + "=" * (row != "$")
        for place in range(len(line) - 1):
            own = line[place] + "." if place else "." + line[place]
            seen = at(first, place - i) + at(second, i) + at(above, place) + at(above, place - 1)
            found.append(seen + own + at(first, place - 1 - i) + line[place + 1])
        above = row
    return found


def partials_by_hand(a, b):
    question, *rows = PARTIALS.write(a, b).split("=")
    (first, second), total, part, found = question.split("*"), "", "", []
    for k, row in enumerate(rows):
        i, line = (k + 1) // 2, "=" + row + "=" * (row != "$")
        for step in range(len(line) - 1):
            place, own = step // 2, line[step - 1 : step + 1] + "." if step % 2 else ".." + line[step]
            if k and k % 2 == 0:
                seen = ".." + at(total, place) + own + at(part, place - i)
            else:
                seen = at(first, place) + at(second, i) + "." + own + "."
            found.append(seen + line[step + 1])
        if k and k % 2:
            part = row[::2]
        else:
            total = row[::2]
    return found


@pytest.mark.parametrize("task, by_hand", [(BARE, bare_by_hand), (PARTIALS, partials_by_hand)])
def test_contexts_are_what_stands_in_the_text(task, by_hand):
    pairs = products(60, 5)
    found = zip(*(part.tolist() for part in task.contexts(task.encode(pairs))), strict=True)
    assert [text(key) + ALPHABET[token] for key, token in found] == [
        line for pair in pairs for line in by_hand(*pair)
    ]


@layouts
def test_every_context_is_listed_once(task):
    keys, following = task.every_context()
    listed = codes(keys, following)
    assert len(listed) == len(codes(keys, torch.zeros_like(following)).unique())
    for digits in (1, 2, 3, 6):
        assert torch.isin(codes(*task.contexts(task.encode(products(1500, digits)))), listed).all()


def test_all_that_is_listed_of_partial_products_occurs_in_short_ones():
    assert set(codes(*PARTIALS.every_context()).tolist()) == set(
        codes(*PARTIALS.contexts(PARTIALS.encode(products(12_000)))).tolist()
    )


def test_without_carries_few_contexts_are_listed_of_short_pages_that_do_not_occur():
    keys, following = BARE.every_context()
    no_row_above = (keys[:, [2, 3]] < 0).all(1) & (keys[:, 1] >= 0)
    listed, short = codes(keys, following)[no_row_above], [(a, b) for a in range(2000) for b in range(10)]
    met = codes(*BARE.contexts(BARE.encode([*short, *((999, 10 * b + 9) for b in range(1, 10))])))
    # What never occurs: a top digit above b, or a carry where all of the first factor is zero.
    assert int((~torch.isin(listed, met)).sum()) == sum(9 - b for b in range(10)) + sum(range(9))


# ---- models ------------------------------------------------------------------------------------------------------


@layouts
def test_contexts_give_the_logits_of_the_forward(task):
    sizes = LayoutConfig(d_model=8, n_heads=2, d_mlp=16)
    run = LayoutExperiment(name="x", about="a test", steps=600, evaluate_every=300, task=task, model=sizes, seed=3)
    model, tokens = run.build().eval(), task.encode(products(10))
    on_page = ((tokens == EQUALS).cumsum(1) > 0) & (tokens != END)
    with torch.no_grad():
        torch.testing.assert_close(context_logits(model, task.contexts(tokens)[0]), model(tokens)[on_page])
    with pytest.raises(ValueError, match="reads 7 slots"):
        examine(model)


def test_what_is_measured_of_a_model_that_is_right_everywhere_is_what_its_contexts_say(monkeypatch):
    run = LayoutExperiment(name="x", about="a test", steps=600, evaluate_every=300, task=PARTIALS)
    model = run.build().eval().requires_grad_(False)
    assert run.finish(model, None).keys() == {"smallest_lead"}  # it is untrained
    keys, _ = PARTIALS.every_context()
    answers = context_logits(model, keys)
    monkeypatch.setattr(PartialProducts, "every_context", lambda _: (keys, answers.argmax(1)))
    found = run.finish(model, None)
    lead = answers.topk(2).values
    assert 0 < found["smallest_lead"] == pytest.approx(float((lead[:, 0] - lead[:, 1]).min()), abs=1e-6)
    assert found["assured_lead"] < found["smallest_lead"]
    assert found["mean_logit"] == pytest.approx(float(answers.mean()), abs=1e-4)
