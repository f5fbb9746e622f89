"""The OR of two vectors and what can be wrong with it: against Python's integers and an exhaustive search."""

import itertools

import pytest
import torch
from short_runs import seeded

from arithlib.tasks.bitwise import FAULTS, Or, faults
from arithlib.tokenizer import CharacterTokenizer


def texts(problems):
    return [text.split("$")[0] for text in CharacterTokenizer().decode_batch(problems.tokens)]


@pytest.mark.parametrize("vectors", ["one", "random"])
def test_the_answer_is_the_or_of_pythons_integers(vectors):
    for text in texts(Or(9, vectors).sample(300, seeded())):
        question, answer = text.split("=")
        a, b = (int(vector[::-1], 2) for vector in question.split("+"))  # both begin at their lowest bit
        assert int(answer[::-1], 2) == a | b
        assert len(answer) == max(map(len, question.split("+")))


def test_the_single_one_stands_in_the_shorter_vector():
    seen = set()
    for text in texts(Or(3, "one").sample(3000, seeded())):
        first, second = text.split("=")[0].split("+")
        assert (first + second).count("1") == 1
        shorter = first if len(first) < len(second) else second
        assert len(first) == len(second) or "1" in shorter
        seen.add((first, second))
    # All of them: min(i, j) places, in either vector where they are equally long.
    assert len(seen) == sum(min(i, j) * (2 if i == j else 1) for i in (1, 2, 3) for j in (1, 2, 3))


def test_every_problem_of_a_pair_of_lengths_is_written_once():
    lengths = torch.tensor([[3, 3], [1, 4], [5, 2]])
    every = texts(Or(3, "one").every(lengths))
    drawn = texts(Or(3, "one").problems(lengths.repeat(200, 1), seeded()))
    assert len(every) == 3 * 2 + 1 + 2 and sorted(every) == sorted(set(drawn))
    assert every[6] == "1+0000=1000"  # row by row


def test_lengths_may_exceed_those_of_training():
    problems = Or(4, "random").problems(torch.tensor([[12, 7]]).expand(20, 2), seeded())
    assert problems.prompts().shape == (20, 21) and (problems.stop - problems.start == 13).all()


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="max_bits = 0"):
        Or(0)
    with pytest.raises(ValueError, match="vectors = 'ones'"):
        Or(3, "ones")
    with pytest.raises(ValueError, match="vectors of 0 bits"):
        Or(3).problems(torch.tensor([[0, 2]]), seeded())
    with pytest.raises(ValueError, match="only those with a single one"):
        Or(3, "random").every(torch.tensor([[1, 2]]))


def fault_of(written, answer):
    """By trying every single zero that could have been put in or left out."""
    if written == answer:
        return "right"
    longer, shorter = sorted((written, answer), key=len, reverse=True)
    if len(longer) == len(shorter) + 1:
        zeros = [i for i, bit in enumerate(longer) if bit == "0" and longer[:i] + longer[i + 1 :] == shorter]
        if zeros:
            return "one zero at the end" if len(longer) - 1 in zeros else "one zero elsewhere"
    return "too short" if len(written) < len(answer) else "too long" if len(written) > len(answer) else "wrong bits"


def test_every_fault_of_short_answers_is_named_as_a_search_names_it():
    words = ["".join(bits) for n in range(1, 6) for bits in itertools.product("01", repeat=n)]
    pairs = list(itertools.product(["", *words], words))
    written, answers = (
        CharacterTokenizer().encode_batch([pair[side].ljust(6, "$") for pair in pairs]) for side in (0, 1)
    )
    named = [FAULTS[fault] for fault in faults(written, answers)]
    assert named == [fault_of(*pair) for pair in pairs]
    assert set(named) == set(FAULTS)
