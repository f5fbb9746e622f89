"""Digit tensors against Python's integers, and the written problems against Python's strings."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from arithlib.tasks.operands import (
    OperandTask,
    add,
    carries,
    digits_of,
    lengths_of,
    longest_carry_chain,
    multiply,
    numbers_of,
    subtract,
)
from arithlib.tokenizer import ALPHABET, END, CharacterTokenizer

TOKENIZER = CharacterTokenizer()
numbers = st.integers(0, 10**12) | st.integers(0, 99) | st.sampled_from([0, 9, 10, 999, 1000, 10**9 - 1, 10**12 - 1])
pairs = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def both(several):
    a, b = zip(*several, strict=True)
    width = len(str(max(*a, *b)))
    return digits_of(list(a), width), digits_of(list(b), width)


@given(pairs)
def test_sums_differences_and_products_are_pythons(several):
    a, b = both(several)
    assert numbers_of(add(a, b)) == [x + y for x, y in several]
    difference, negative = subtract(a, b)
    assert numbers_of(difference) == [abs(x - y) for x, y in several]
    assert negative.tolist() == [x < y for x, y in several]
    assert numbers_of(multiply(a, b)) == [x * y for x, y in several]


def test_every_product_of_two_numbers_of_two_digits():
    """Among them 79 * 79, in which a column hands on two."""
    a, b = torch.cartesian_prod(torch.arange(100), torch.arange(100)).unbind(1)
    digits = [digits_of(numbers.tolist(), 2) for numbers in (a, b)]
    assert numbers_of(multiply(*digits)) == (a * b).tolist()


def test_long_products_of_nines_carry_everywhere():
    nines = digits_of([10**40 - 1])
    assert numbers_of(multiply(nines, nines)) == [(10**40 - 1) ** 2]


@given(pairs)
def test_digits_are_the_reversed_string(several):
    a, _ = both(several)
    for row, (x, _) in zip(a, several, strict=True):
        assert "".join(map(str, row.tolist())).rstrip("0") == str(x)[::-1].rstrip("0")
        assert int(lengths_of(row)) == len(str(x))


@given(pairs)
def test_carries_are_those_of_adding_by_hand(several):
    a, b = both(several)
    for row, chain, (x, y) in zip(carries(a, b), longest_carry_chain(a, b), several, strict=True):
        expected = [int(x % 10**i + y % 10**i >= 10**i) for i in range(a.shape[1] + 1)]
        assert row.tolist() == expected
        longest = travelled = 0
        for i, carry in enumerate(expected[1:]):
            made = x // 10**i % 10 + y // 10**i % 10 >= 10
            travelled = 0 if not carry else 1 if made else travelled + 1
            longest = max(longest, travelled)
        assert int(chain) == longest


@pytest.mark.parametrize("operation", "+-*")
@given(several=pairs)
def test_problems_are_written_as_python_writes_them_reversed(operation, several):
    problems = OperandTask(operation).from_numbers(several)
    for text, start, stop, (x, y) in zip(
        TOKENIZER.decode_batch(problems.tokens), problems.start, problems.stop, several, strict=True
    ):
        answer = {"+": x + y, "-": x - y, "*": x * y}[operation]
        expected = f"{str(x)[::-1]}{operation}{str(y)[::-1]}={str(answer)[::-1]}$"
        assert text[:stop] == expected and set(text[stop:]) <= {"$"}
        assert text[start - 1] == "=" and stop == len(expected)


@pytest.mark.parametrize(
    ("reverse", "expected"), [("all", "21-503=392-$"), ("answer", "12-305=392-$"), ("none", "12-305=-293$")]
)
def test_what_is_reversed_is_a_choice(reverse, expected):
    tokens = OperandTask("-", reverse=reverse).from_numbers([(12, 305)]).trimmed().tokens
    assert TOKENIZER.decode_batch(tokens) == [expected]


def test_the_example_of_source_002_has_its_tokens_width_and_mask():
    problems = OperandTask("+", max_digits=5)
    example = problems.from_numbers([(220, 3328)])
    assert TOKENIZER.decode_batch(example.trimmed().tokens) == ["022+8233=8453$"]
    labels = torch.where(example.answer_mask, example.tokens, -100)[0].tolist()
    assert labels[:14] == [-100] * 9 + [8, 4, 5, 3, 14] and set(labels[14:]) <= {-100}
    assert problems.sample(3, generator()).tokens.shape == (3, 19)  # as wide as the source's


def test_every_pair_of_lengths_is_equally_likely_and_numbers_have_their_length():
    problems = OperandTask(max_digits=3).sample(9000, generator())
    lengths = torch.stack([lengths_of(problems.a), lengths_of(problems.b)], 1)
    counts = torch.bincount((lengths[:, 0] - 1) * 3 + lengths[:, 1] - 1, minlength=9)
    assert counts.min() > 850 and counts.max() < 1150
    ones = problems.a[lengths[:, 0] == 1, 0]
    assert torch.bincount(ones, minlength=10).min() > 200  # zero is drawn too
    assert torch.equal(problems.start, lengths.sum(1) + 2)


def test_a_seed_gives_the_same_problems_and_another_does_not():
    task = OperandTask("+-*", max_digits=4)
    assert torch.equal(task.sample(50, generator(1)).tokens, task.sample(50, generator(1)).tokens)
    assert not torch.equal(task.sample(50, generator(1)).tokens, task.sample(50, generator(2)).tokens)


def test_mixed_operations_are_all_right():
    problems = OperandTask("+-*", max_digits=4).sample(300, generator())
    seen = set()
    for text in TOKENIZER.decode_batch(problems.tokens):
        problem, answer = text.rstrip("$").split("=")
        symbol = next(c for c in problem if c in "+-*")
        seen.add(symbol)
        x, y = (int(number[::-1]) for number in problem.split(symbol))
        assert int(answer[::-1]) == {"+": x + y, "-": x - y, "*": x * y}[symbol]
    assert seen == set("+-*")


def test_groups_of_similar_length_hold_every_problem_once_with_little_filling():
    problems = OperandTask().sample(512, generator())
    parts = problems.by_length(4)
    texts = sorted(text.rstrip("$") for part in parts for text in TOKENIZER.decode_batch(part.tokens))
    assert texts == sorted(text.rstrip("$") for text in TOKENIZER.decode_batch(problems.tokens))
    used, whole = problems.stop.sum(), problems.tokens.numel()
    filled = 1 - used / sum(part.tokens.numel() for part in parts)
    assert 1 - used / whole > 0.35 and filled < 0.16


def test_lengths_beyond_training_can_be_asked_for():
    problems = OperandTask(max_digits=3).problems(torch.tensor([[30, 2], [1, 40]]), generator())
    assert lengths_of(problems.a).tolist() == [30, 1] and lengths_of(problems.b).tolist() == [2, 40]


def test_bad_input_is_named():
    task = OperandTask()
    with pytest.raises(ValueError, match=r"problem 1 has operands of \[3, 0\] digits: each needs at least one"):
        task.problems(torch.tensor([[1, 1], [3, 0]]), generator())
    with pytest.raises(ValueError, match="no operand lengths"):
        task.problems(torch.zeros(0, 2, dtype=torch.long), generator())
    with pytest.raises(ValueError, match="-3 is negative"):
        task.from_numbers([(-3, 4)])
    with pytest.raises(ValueError, match="1234 has 4 digits; the width is 3"):
        digits_of([1234], 3)
    with pytest.raises(ValueError, match="no numbers"):
        digits_of([])
    with pytest.raises(ValueError, match="operations = '/'"):
        OperandTask("/")
    with pytest.raises(ValueError, match="operations = ''"):
        OperandTask("")
    with pytest.raises(ValueError, match="at least one digit"):
        OperandTask(max_digits=0)
    with pytest.raises(ValueError, match="choose one of all, answer, none"):
        OperandTask(reverse="some")
    with pytest.raises(ValueError, match="prompts of 4 to 5 tokens"):
        task.from_numbers([(1, 2), (1, 23)]).prompts()


def test_digits_are_their_own_tokens():
    assert ALPHABET[:10] == "0123456789"


def test_what_no_end_token_follows_is_no_answer():
    task = OperandTask()
    unfinished = torch.tensor([3, 2, 1])
    assert task.read(torch.cat([unfinished, torch.tensor([END])])) == 123
    with pytest.raises(ValueError, match="writes '321' at the end of 3 tokens, and no end token"):
        task.read(unfinished)
