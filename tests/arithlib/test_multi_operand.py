"""Sums of many numbers against Python's own integers and strings."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from arithlib.tasks.multi_operand import ManyOperands
from arithlib.tokenizer import CharacterTokenizer


def written(task, numbers):
    return CharacterTokenizer().decode_batch(task.write(torch.tensor([numbers])))[0]


@given(st.integers(1, 4), st.booleans(), st.data())
def test_a_sum_is_written_as_python_writes_it(digits, reverse, data):
    numbers = data.draw(st.lists(st.integers(0, 10**digits - 1), min_size=1, max_size=12))
    task = ManyOperands(digits, reverse)
    width = task.answer_width(len(numbers)) if reverse else 1
    texts = [f"{number:0{digits}}" for number in numbers] + [f"{sum(numbers):0{width}}"]
    *operands, answer = (text[::-1] for text in texts) if reverse else texts
    text = written(task, numbers)
    assert text.rstrip("$") == "+".join(operands) + "=" + answer
    assert len(text) == task.question_width(len(numbers)) + task.answer_width(len(numbers)) + 1
    assert text.index("=") + 1 == task.question_width(len(numbers))


def test_the_worked_example_of_the_source():
    assert written(ManyOperands(3), [315, 120, 45, 824]) == "315+120+045+824=1304$"


def test_operands_fill_their_range_and_a_seed_fixes_them():
    draw = lambda seed: ManyOperands(2).sample(3, 2000, torch.Generator().manual_seed(seed))  # noqa: E731
    assert draw(0).unique().tolist() == list(range(100))
    assert draw(0).equal(draw(0)) and not draw(0).equal(draw(1))


def test_an_answer_has_room_for_the_largest_sum_and_no_more():
    assert [ManyOperands(3).answer_width(n) for n in (1, 2, 10, 11, 100, 101)] == [3, 4, 4, 5, 5, 6]


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="digits = 0"):
        ManyOperands(0)
    with pytest.raises(ValueError, match="n = 0"):
        ManyOperands(3).sample(0, 1, torch.Generator())
