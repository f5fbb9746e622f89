"""One sum in every format says the same, addresses mean what they say, and carries come as ordered."""

from itertools import product

import pytest
import torch

from arithlib.tasks.formats import ADDRESSES, Format, draw_carrying, draw_sums
from arithlib.tasks.operands import carries, numbers_of

FORMATS = [Format(*settings) for settings in product((1, 2, 3), (False, True), ADDRESSES)]


def drawn(count=200, longest=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return draw_sums(torch.randint(1, longest + 1, (count, 2), generator=generator), generator)


def read(f, tokens, reverse=False):
    """The number that a list of chunks writes."""
    return sum(token * f.base**place for place, token in enumerate(tokens if reverse else tokens[::-1]))


@pytest.mark.parametrize("f", FORMATS, ids=str)
def test_every_format_writes_the_operands_and_their_sum(f):
    operands = drawn()
    pairs = [numbers_of(numbers) for numbers in operands.unbind(1)]
    sums = f.write(*operands.unbind(1))
    for row, (a, b) in enumerate(zip(*pairs, strict=True)):
        question = [t for t in sums.tokens[row, : sums.question].tolist() if t != f.base + 2]
        plus = question.index(f.base)
        assert (read(f, question[:plus]), read(f, question[plus + 1 : -1])) == (a, b)
        assert question[-1] == f.base + 1 and len(question[:plus]) == -(-len(str(a)) // f.chunk)
        answer = sums.tokens[row, sums.question :]
        assert read(f, answer[sums.answer[row]].tolist(), f.reverse) == a + b
        assert set(answer[~sums.answer[row]].tolist()) <= {f.base + 2}
        longer = len(str(max(a, b)))
        assert int(sums.length[row]) == longer and int(sums.answer[row].sum()) == -(-(longer + 1) // f.chunk)


@pytest.mark.parametrize("f", FORMATS, ids=str)
def test_addresses_count_places_or_mean_worth_and_filling_has_none(f):
    sums = f.write(*drawn().unbind(1))
    filling = sums.tokens == f.base + 2
    assert (sums.address[filling] == 0).all()
    for tokens, address, wide in zip(sums.tokens, sums.address, sums.answer.sum(1).tolist(), strict=True):
        address = address[tokens != f.base + 2].tolist()
        if f.addresses == "place":
            assert address == list(range(1, len(address) + 1))
            continue
        written = tokens[tokens != f.base + 2].tolist()
        plus, equals = written.index(f.base), written.index(f.base + 1)
        worth = [
            *range(plus, 0, -1), 0, *range(equals - plus - 1, 0, -1), 0,
            *(range(1, wide + 1) if f.reverse else range(wide, 0, -1)),
        ]  # fmt: skip
        assert address == worth
    moved = sums.moved(torch.tensor([[7]]))
    assert torch.equal(moved > 0, sums.address > 0) and (moved - sums.address).unique().tolist() == [0, 7]


def test_the_examples_of_the_docstring():
    operands = torch.tensor([[[3, 2], [4, 0]]])
    by_place = Format().write(*operands.unbind(1))
    assert by_place.tokens.tolist() == [[12, 2, 3, 10, 4, 11, 0, 2, 7]]
    assert by_place.address.tolist() == [[0, 1, 2, 3, 4, 5, 6, 7, 8]]
    by_worth = Format(addresses="significance").write(*operands.unbind(1))
    assert by_worth.address.tolist() == [[0, 2, 1, 0, 1, 0, 3, 2, 1]]


@pytest.mark.parametrize("length", [1, 2, 5])
def test_sums_carry_as_often_as_asked(length):
    wanted = torch.arange(length + 1).repeat_interleave(100)
    a, b = draw_carrying(length, wanted, torch.Generator().manual_seed(1)).unbind(1)
    assert torch.equal(carries(a, b).sum(1), wanted) and torch.equal(Format().write(a, b).carried, wanted)
    if length > 1:
        assert (a[:, -1] > 0).all() and (b[:, -1] > 0).all()
    for n in (a, b):  # every digit, wherever the count of carries leaves it open
        assert set(n[:, 0].tolist()) == set(range(10))


def test_drawn_numbers_have_the_lengths_asked_for():
    lengths = torch.randint(1, 6, (500, 2), generator=torch.Generator().manual_seed(2))
    numbers = draw_sums(lengths, torch.Generator().manual_seed(3))
    assert [[len(str(n)) for n in numbers_of(side)] for side in numbers.unbind(1)] == lengths.T.tolist()


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        Format(chunk=0)
    with pytest.raises(ValueError, match="place, significance"):
        Format(addresses="rotary")
    with pytest.raises(ValueError, match="0 to 3"):
        draw_carrying(3, torch.tensor([4]), torch.Generator())
