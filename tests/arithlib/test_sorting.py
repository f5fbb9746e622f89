"""Lists to be sorted: read back from their tokens and sorted by Python."""

import pytest
import torch
from short_runs import seeded

from arithlib.models.positions import number_index
from arithlib.tasks.sorting import WORDS, Sorting, ascending


def read(tokens):
    """The (letter, number) pairs of a written list and its answer, by plain string handling."""
    text = "".join(WORDS[token] for token in tokens.tolist()).split("$")[0]
    question, answer = text.split("=")
    pairs, number = [], ""
    for character in question:
        if character.isdigit():
            number = character + number
        else:
            pairs, number = [*pairs, (character, number)], ""
    return pairs, answer


@pytest.mark.parametrize("shape", [(4, 3), (1, 1), (26, 2), (3, 18)])
def test_the_answer_is_what_python_sorts(shape):
    problems = Sorting(*shape).sample(200, seeded())
    for row, tokens in enumerate(problems.tokens):
        pairs, answer = read(tokens)
        # Python's sort is stable, too: equal numbers keep the order in which they stand.
        assert answer == "".join(letter for letter, _ in sorted(pairs, key=lambda pair: int(pair[1])))
        assert 1 <= len(pairs) <= shape[0] and all(1 <= len(number) <= shape[1] for _, number in pairs)
        assert all(not number.startswith("0") for _, number in pairs)
        assert [ord(after) - ord(before) for (before, _), (after, _) in zip(pairs, pairs[1:], strict=False)] == [
            -25 if before == "z" else 1 for before, _ in pairs[:-1]
        ]
        start, stop = int(problems.start[row]), int(problems.stop[row])
        assert "".join(WORDS[token] for token in tokens[start:stop].tolist()) == answer + "$"
        assert int(problems.answer_mask[row].sum()) == len(answer) + 1


def test_equal_numbers_keep_their_order_and_absent_ones_come_last():
    digits = torch.tensor([[[7, 1], [3, 0], [7, 1], [0, 0]]])
    assert ascending(digits, torch.tensor([3])).tolist() == [[1, 0, 2, 3]]


def test_all_sizes_and_letters_are_drawn():
    problems = Sorting(4, 3).sample(4000, seeded(1))
    assert torch.bincount(problems.stop - problems.start - 1).tolist()[0] == 0
    shares = torch.bincount(problems.stop - problems.start - 1)[1:] / 4000
    assert ((shares - 0.25).abs() < 0.03).all()
    assert len(problems.b[:, 0].unique()) == 26
    # Of lists that allow 3 digits, one number in three has 3 of them; 1/9 of all numbers.
    longest = (problems.a[:, 2, 0] > 0).double().mean()
    assert abs(float(longest) - 1 / 9) < 0.02


def test_lists_of_a_given_shape_may_exceed_those_of_training():
    problems = Sorting(4, 3).problems(torch.tensor([[7, 5]]).expand(50, 2), seeded())
    assert (problems.stop - problems.start == 8).all()
    assert int(number_index(problems.tokens).max()) == 5


def test_impossible_lists_are_refused():
    with pytest.raises(ValueError, match="27 numbers of up to 3 digits"):
        Sorting(27, 3)
    with pytest.raises(ValueError, match="2 numbers of up to 19 digits"):
        Sorting().problems(torch.tensor([[2, 19]]), seeded())
    with pytest.raises(ValueError, match="0 numbers"):
        Sorting().problems(torch.tensor([[2, 2], [0, 2]]), seeded())
