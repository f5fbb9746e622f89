"""Prompts of single-token numbers, against Python's own arithmetic."""

import pytest
import torch

from arithlib.tasks.prompts import N_NUMBERS, QUESTIONS, SIGNS, Sums, ask, digit_answer, digit_prompt, prompt

PYTHON = {
    "a - 23": lambda a: a - 23,
    "a // 5": lambda a: a // 5,
    "a * 3/2": lambda a: a * 1.5,
    "a mod 2": lambda a: a % 2,
    "x - a = 0": lambda a: a,
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_answers_are_those_of_python(name):
    prompts, answers = ask(name)
    assert answers.tolist() == [PYTHON[name](a) for a in prompts[:, 0].tolist()]
    assert 0 <= answers.min() and answers.max() < N_NUMBERS


def test_the_questions_are_those_of_the_source_in_number():
    assert [len(ask(name)[0]) for name in QUESTIONS] == [77, 100, 50, 100, 100]


def test_each_question_has_a_sign_of_its_own():
    signs = {int(ask(name)[0][0, 1]) for name in QUESTIONS} | {int(prompt(torch.tensor([1]), 1)[0, 1])}
    assert len(signs) == len(QUESTIONS) + 1
    assert int(prompt(torch.tensor([1]), 1)[0, 3]) == N_NUMBERS + SIGNS.index("=")


def test_a_number_without_a_token_is_refused():
    with pytest.raises(ValueError, match="from 0 to 198 have a token"):
        prompt(torch.tensor([199]), 1)


def test_training_pairs_and_the_others_are_all_sums_once():
    sums = Sums(0.6, data_seed=3)
    assert len(sums.train_pairs) == 6000 and len(sums.test_pairs) == 4000
    both = {tuple(pair) for part in (sums.train_pairs, sums.test_pairs) for pair in part.tolist()}
    assert both == {(a, b) for a in range(100) for b in range(100)}
    assert not torch.equal(sums.train_mask, Sums(0.6, data_seed=4).train_mask)


@pytest.mark.parametrize("fraction", [0.0, 1.0])
def test_a_share_without_training_or_test_pairs_is_refused(fraction):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        Sums(fraction)


def test_digits_are_those_of_python():
    pairs = Sums(0.6).pairs
    written = ["".join("0123456789+="[t] for t in row) for row in digit_prompt(*pairs.T).tolist()]
    assert written == [f"{a:02d}+{b:02d}=" for a, b in pairs.tolist()]
    answers = ["".join(map(str, row)) for row in digit_answer(pairs.sum(1)).tolist()]
    assert answers == [f"{a + b:03d}" for a, b in pairs.tolist()]


def test_a_number_of_three_digits_is_refused():
    with pytest.raises(ValueError, match="from 0 to 99"):
        digit_prompt(torch.tensor([100]), torch.tensor([1]))
