"""Products as text: what is written is long multiplication, sets are what they say, and no test is trained on."""

import itertools

import numpy as np
import pytest

from arithlib import experiments
from chapters.ch61_written_sums import NEWLINE
from chapters.ch68_experiments import TEST_SEED
from chapters.ch68_written_products import (
    CHARACTERS,
    ProductFormat,
    Products,
    last_number,
    of_lengths,
    partial_products,
    times_seen,
)

FORMATS = [
    ProductFormat(reverse, steps, padded)
    for reverse, steps, padded in itertools.product((False, True), (False, True), (0, 3))
]


def text(tokens):
    return "".join(CHARACTERS[token] for token in tokens.tolist())


def test_one_product_in_every_format():
    written = [f.question(34, 12) + f.answer(34, 12) for f in FORMATS]
    assert written == [
        "34*12=408", "034*012=000408", "34*12=68;340,408", "034*012=000068;000340,000408",
        "34*12=804", "034*012=804000", "34*12=86;043,804", "034*012=860000;043000,804000",
    ]  # fmt: skip


def test_steps_are_those_of_long_multiplication():
    """Digit by digit with a carry, without multiplying whole numbers."""
    for a, b in of_lengths(3, 3, 100, np.random.default_rng(0)).tolist():
        first, *others = ProductFormat(steps=True, reverse=True).answer(a, b).split(";")
        assert len(others) == len(str(b)) - 1
        total = [0] * 8
        for place, step in enumerate([f"{first},{first}", *others]):
            row, carry = [0] * place, 0
            for digit in reversed(str(a)):
                carry, low = divmod(int(digit) * int(str(b)[-1 - place]) + carry, 10)
                row.append(low)
            row.append(carry)
            carry = 0
            for i in range(8):
                carry, total[i] = divmod(total[i] + (row[i] if i < len(row) else 0) + carry, 10)
            partial, so_far = (list(map(int, number)) for number in step.split(","))
            for said, right in ((partial, row), (so_far, total)):
                assert said == right[: len(said)] and not any(right[len(said) :])


@pytest.mark.parametrize("written", FORMATS, ids=str)
def test_a_text_ends_with_the_product_and_is_written_from_the_equals_sign_to_the_line_end(written):
    pairs = np.array([[0, 0], [7, 48], [99, 1], [128, 367], [999, 999]])
    lines = written.write(pairs, written.width(3, 3))
    for (a, b), tokens, asked in zip(pairs.tolist(), lines.tokens, lines.written, strict=True):
        end = last_number(tokens)
        assert int(end[::-1] if written.reverse else end) == a * b
        assert text(tokens).strip("\n") + "\n" == written.question(a, b) + text(tokens[asked])
        assert tokens[0] == NEWLINE


def test_no_product_of_such_operands_is_longer_than_nines():
    for written in FORMATS:
        longest = max(len(written.question(a, b) + written.answer(a, b)) for a in range(100) for b in range(10))
        assert written.width(2, 1) == longest + 2


def test_a_product_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="more than 12"):
        ProductFormat().write(np.array([[100, 100]]), 12)


def test_a_test_has_different_products_of_its_lengths_and_at_most_a_fifth_of_them():
    products = Products(2, pool=10)
    for (left, right), pairs in products.tests((3, 2), 100, 7).items():
        assert {(len(str(a)), len(str(b))) for a, b in pairs.tolist()} == {(left, right)}
        assert len({*map(tuple, pairs.tolist())}) == len(pairs) == (20 if left == right == 1 else 100)
        assert np.array_equal(pairs, Products(5).test(left, right, 100, 7)), "another set has the same test"


def test_a_pool_and_the_tests_are_all_products_there_are():
    products = Products(2, pool=9680)
    without = np.concatenate(list(products.tests((2, 2), 100, TEST_SEED).values()))
    pool = products.pooled(3, without)
    both = {*map(tuple, pool.tolist())}, {*map(tuple, without.tolist())}
    assert not both[0] & both[1] and both[0] | both[1] == {*itertools.product(range(100), repeat=2)}
    assert not np.array_equal(pool, products.pooled(4, without))
    with pytest.raises(ValueError, match="9,681 products wanted, and there are only 9,680"):
        Products(2, pool=9681).pooled(3, without)


def test_fresh_products_have_all_pairs_of_lengths_as_often_and_none_of_a_test():
    products = Products(3)
    without = np.concatenate(list(products.tests((3, 3), 100, 7).values()))
    drawn = products.fresh(9000, np.random.default_rng(0), without)
    assert not {*map(tuple, drawn.tolist())} & {*map(tuple, without.tolist())}
    counts = np.zeros((3, 3))
    np.add.at(counts, tuple(np.array([[len(str(n)) - 1 for n in pair] for pair in drawn.tolist()]).T), 1)
    # A fifth of the shortest is tested and drawn again among all.
    assert (np.abs(counts / 1000 - 1) < 0.25).all()


@pytest.mark.parametrize("e", experiments.match("products-*"), ids=lambda e: e.name)
def test_no_product_of_a_test_is_trained_on(e):
    objective = e.objective(None, None)
    inside = {tuple(pair) for pairs in objective.tests.values() for pair in pairs.tolist()}
    tokens, _ = objective.batch(0)
    asked = {text(row).strip("\n").partition("=")[0] for row in tokens.flatten(0, 1)}
    assert not {tuple(map(int, question.split("*"))) for question in asked} & inside
    # What `finish` asks of the lengths of training is what was kept out of it.
    asked_at_the_end = e.products.tests(e.longest, e.test_size, TEST_SEED)
    for lengths, pairs in objective.tests.items():
        assert np.array_equal(pairs, asked_at_the_end[lengths])


def test_a_partial_product_is_seen_as_often_as_the_texts_of_a_pool_write_it():
    generator = np.random.default_rng(2)
    pool, asked = of_lengths(1, 2, 40, generator), of_lengths(1, 2, 30, generator)
    written = [(a, part // 10**place // max(a, 1)) for a, b in pool.tolist() if a
               for place, part in enumerate(partial_products(a, b))]  # fmt: skip
    seen = times_seen(asked, pool)
    for (a, b), times in zip(asked.tolist(), seen.tolist(), strict=True):
        if a:
            assert times == min(written.count((a, int(digit))) for digit in str(b))
    assert {0, 1} <= set(seen.tolist())
