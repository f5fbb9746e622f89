"""Differences in two passes: texts are those of integers, contexts those of the forward, and the list is full."""

import itertools
import random
import re

import numpy as np
import pytest
import torch

from arithlib import checkpoints
from arithlib.certify.addition import text
from arithlib.contexts import context_margins
from arithlib.evaluation import distinct
from arithlib.models.column import ColumnTransformer
from arithlib.tasks.operands import of_length
from arithlib.tokenizer import ALPHABET, END, CharacterTokenizer
from chapters.ch79_differences import ChainedDifferences, Differences, contexts_by_column, hard_pair, written

TASK = Differences()
SOME = [(0, 0), (0, 407), (407, 0), (5, 9999), (9999, 5), (99, 99), (1000, 999), (12, 34), (90, 99), (100, 200)]


def pairs_of(count, digits=4, seed=0):
    rng = random.Random(seed)
    return [Differences(digits).sample(rng) for _ in range(count)]


def hard_pairs(count, digits, seed=0):
    rng = random.Random(seed)
    return [hard_pair(rng.randint(1, digits), rng) for _ in range(count)]


def lines(keys, following):
    """Five characters for the slots, and the one that follows."""
    return [text(key) + ALPHABET[token] for key, token in zip(keys.tolist(), following.tolist(), strict=True)]


# ---- texts -------------------------------------------------------------------------------------------------------


def check_text(a, b):
    found = TASK.write(a, b)
    question, first, second = found.split("=")
    assert f"{question}=" == TASK.ask(a, b)
    assert [int(number[::-1]) for number in question.split("-")] == [a, b]
    columns = max(len(str(a)), len(str(b)))
    assert len(first) == columns and len(second) == columns + 2
    for n, less in enumerate(first, 1):
        x, y = a % 10**n, b % 10**n
        assert less == ("0" if x == y else "1" if x < y else "2")
    assert (first[-1] == "1", first[-1] == "2") == (a < b, a > b)
    assert (second[0], second[-1]) == ("-" if a < b else "+", "$")
    assert int(second[-2:0:-1]) == abs(a - b)
    assert TASK.read(found) == a - b


def test_the_rows_of_all_short_numbers_compare_and_subtract_integers():
    for a, b in itertools.product(range(100), repeat=2):
        check_text(a, b)


@pytest.mark.parametrize("digits", [4, 7, 30])
def test_so_do_those_of_long_ones(digits):
    for a, b in [*pairs_of(150, digits), *hard_pairs(150, digits), *SOME]:
        check_text(a, b)


@pytest.mark.parametrize(
    "wrong", ["", "$", "=", "21-43=", "21-43=11=-22", "21-43=11=", "2-4=1=-$", "2-4=1=2$", "2-4=1=*2$", "2=+-2$"]
)
def test_a_text_without_a_sign_digits_and_an_end_is_refused(wrong):
    with pytest.raises(ValueError, match="does not end in a sign, digits and the end token"):
        TASK.read(wrong)


def test_every_second_pair_has_nines_and_zeros_in_half_of_its_columns(monkeypatch):
    rng, any_digits = random.Random(0), {*itertools.product(range(10), repeat=2)}
    monkeypatch.setattr(Differences, "sample", lambda *_: None)
    drawn = [ChainedDifferences(5).sample(rng) for _ in range(10_000)]
    chained = [pair for pair in drawn if pair]
    assert 0.47 < len(chained) / len(drawn) < 0.53
    for place in range(5):
        digits = [(a // 10**place % 10, b // 10**place % 10) for a, b in chained]
        assert 0.46 < sum({*pair} <= {0, 9} for pair in digits) / len(digits) < 0.57
        # No number begins with a zero, except where a column of nines and zeros ends it sooner.
        assert {*digits} == {pair for pair in any_digits if place < 4 or 0 not in pair or {*pair} <= {0, 9}}


def test_hard_pairs_are_as_long_as_asked_and_borrow_all_the_way_or_not_at_all():
    for digits in (1, 2, 30):
        found = [hard_pair(digits, random.Random(seed)) for seed in range(400)]
        assert {max(len(str(a)), len(str(b))) for a, b in found} == {digits}
        rows = {TASK.write(a, b).split("=")[1] for a, b in found}
        assert rows >= {"0" * digits, "1" * (digits - 1) + "2", "2" * (digits - 1) + "1", "1" * digits, "2" * digits}


# ---- contexts ----------------------------------------------------------------------------------------------------


def by_hand(a, b):
    """As `lines`, token by token, from the numbers: what the docstring of the column model says is seen."""
    question, first, second = TASK.write(a, b).split("=")
    one, other = question.split("-")
    sign, digits, found = second[0], second[1:-1], []

    def at(row, column):
        return row[column - 1] if 0 < column <= len(row) else "."

    for column, right in enumerate(first + "=", 1):
        own = "=" if column == 1 else at(first, column - 1)
        found.append(at(one, column) + at(other, column) + ".." + own + right)
    found.append(".." + first[-1] + ".=" + sign)
    for column, right in enumerate(digits + "$", 1):
        seen = at(one, column) + at(other, column) + at(first, column - 1) + sign + at(digits, column - 1)
        found.append(seen + right)
    return found


def test_contexts_are_what_stands_in_the_text():
    pairs = [*pairs_of(60, digits=5), *hard_pairs(60, 6), *SOME]
    expected = [line for a, b in pairs for line in by_hand(a, b)]
    assert lines(*TASK.contexts(TASK.encode(pairs))) == expected
    assert lines(*TASK.contexts(TASK.encode(pairs[:1]))) == by_hand(*pairs[0])  # none of it depends on other texts


def test_contexts_by_column_are_those_of_the_text():
    for a, b in [*pairs_of(150, 30), *hard_pairs(150, 30), *SOME]:
        expected = [part.numpy() for part in TASK.contexts(TASK.encode([(a, b)]))]
        for found, other in zip(contexts_by_column(str(a), str(b)), expected, strict=True):
            np.testing.assert_array_equal(found, other)
    rng = random.Random(0)
    for a, b in ((of_length(2000, rng), of_length(1990, rng)), (10**1999, 1), (10**1500, 10**1999 + 1)):
        assert lines(*contexts_by_column(str(a), str(b))) == by_hand(a, b)


def columns_built():
    """Pairs of at most four digits: two columns for all that those above can tell, with any third and fourth."""
    lows = {}
    for x, y in sorted(itertools.product(range(100), repeat=2), key=lambda low: min(low) > 9):
        lows[x < y, x > y, (x - y) // 10 % 10, (y - x) // 10 % 10] = f"{x:02d}", f"{y:02d}"
    column, tops = ["", *"0123456789"], ["12", "21", ("1", ""), ("", "1"), ("", "")]
    for (a, b), c, d, (e, f) in itertools.product(lows.values(), column, column, tops):
        yield int(e + c + a), int(f + d + b)
    for a, b in itertools.product(range(10), repeat=2):
        yield from ((a, b), (10 + a, 20 + b), (20 + a, 10 + b))


def test_whatever_is_listed_occurs_in_a_difference_of_four_digits():
    missing, pairs = {*lines(*TASK.every_context())}, sorted({*columns_built()})
    assert len(missing) == 5307 and max(map(max, pairs)) < 10_000
    for start in range(0, len(pairs), 1000):
        keys, following, _ = distinct(*TASK.contexts(TASK.encode(pairs[start : start + 1000])))
        missing -= {*lines(keys, following)}
    assert not missing


# ---- decoding ----------------------------------------------------------------------------------------------------


def greedy(made, a, b):
    """What the forward writes, as far as a right text would go."""
    tokens = torch.tensor([CharacterTokenizer().encode(TASK.ask(a, b), end=False)])
    asked = tokens.shape[1]
    for _ in range(2 * max(len(str(a)), len(str(b))) + 3):
        tokens = torch.cat([tokens, made(tokens)[:, -1:].argmax(-1)], 1)
        if tokens[0, -1] == END:
            break
    return CharacterTokenizer().decode(tokens[0, asked:].tolist())


def decoded(made, a, b):
    """What `written` gives, and whether it stopped at a character that has no place there."""
    found = ""
    try:
        for character in written(made, str(a), str(b)):
            found += character
    except ValueError as problem:
        assert repr(found[-1]) in str(problem)
        return found, True
    return found, False


def test_decoding_from_remembered_contexts_is_greedy_decoding_by_the_forward():
    shipped, found = checkpoints.load("differences-s0").model, []
    for noise, seed in itertools.product((0.1, 0.15, 0.2), range(10)):
        made, draw = ColumnTransformer(shipped.config).requires_grad_(False), torch.Generator().manual_seed(seed)
        for weight, right in zip(made.parameters(), shipped.parameters(), strict=True):
            weight.copy_(right + noise * torch.randn(right.shape, generator=draw))
        for a, b in ((9038, 2675), (7, 60), (1203, 4)):
            answer, stopped = decoded(made, a, b)
            expected = greedy(made, a, b)
            assert expected.startswith(answer) if stopped else answer == expected, (noise, seed, a, b)
            assert stopped == (re.fullmatch(r"\d*(=([-+]\d*)?)?\$?", answer) is None), answer
            found.append(answer)
    kinds = (r"\d+=\+\d+\$", r"\d+=-\d+\$", r"\d{11}", r"\d*\$", r"\d+=[-+]\d+")
    for kind in (*kinds, r"\d*[-+]", r"\d+=\d", r"\d+==", r"\d+=[-+]\d*[-+=]"):  # these have no place
        assert any(re.fullmatch(kind, answer) for answer in found), kind


def test_a_shipped_model_subtracts_and_a_blind_one_says_so():
    trained, rng = checkpoints.load("differences-s0"), random.Random(4)
    for n, m in ((1, 1), (12, 9), (3, 20)):
        a, b = of_length(n, rng), of_length(m, rng)
        assert trained.subtract(a, b) == a - b and trained.subtract(b, a) == b - a
    assert TASK.write(3, 20) == TASK.ask(3, 20) + "".join(written(trained.model, "3", "20"))
    assert trained.provenance["final"]["exact_match"] == 1 and trained.provenance["final"]["wrong_contexts"] == 0
    assert trained.history["smallest_lead"][0] == pytest.approx(
        float(context_margins(trained.model, *TASK.every_context()).min()), abs=1e-4
    )
    torch.nn.init.zeros_(trained.model.unembedding.weight)
    with pytest.raises(ValueError, match="does not end in a sign, digits and the end token|in part"):
        trained.subtract(12, 34)
