"""Sums as text: what is written is right, sets are what they say, and nothing of a test is in them."""

import numpy as np
import pytest

from chapters.ch61_written_sums import (
    ALPHABET,
    NEWLINE,
    STYLES,
    EqualLengths,
    Format,
    LongSums,
    Sample,
    WithoutDigit,
    last_number,
    uniform_pairs,
)

PAIRS = np.array([[0, 0], [1, 9], [7, 48], [99, 1], [128, 367], [999, 999], [5, 995]])


def text(tokens):
    return "".join(ALPHABET[token] for token in tokens.tolist())


def test_the_published_sum_in_every_format():
    answers = [Format(style).answer(128, 367) for style in STYLES]
    assert answers == [
        "495", "594", "5c1;9c0;4c0;495",
        "128+367,c0:8+7+0=15;12+36,5c1:2+6+1=09;1+3,95c0:1+3+0=04;+,495c0;495",
    ]  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
def test_a_text_ends_with_the_sum_and_is_written_from_the_equals_sign_to_the_line_end(style):
    written = Format(style)
    lines = written.write(PAIRS, written.width(3))
    for (a, b), tokens, asked in zip(PAIRS.tolist(), lines.tokens, lines.written, strict=True):
        end = str(a + b)[::-1] if style == "reversed" else str(a + b)
        assert last_number(tokens) == end
        assert text(tokens).startswith(f"\n{a}+{b}=") and set(text(tokens).strip("\n")) <= set(ALPHABET[:-1])
        chosen = text(tokens[asked])
        assert f"{a}+{b}={chosen}" == text(tokens).strip("\n") + "\n"


@pytest.mark.parametrize("style", ["simplified", "detailed"])
def test_the_steps_of_a_scratchpad_are_those_of_column_addition(style):
    """Digits and carries of every step, by plain arithmetic on the whole numbers."""
    for a, b in uniform_pairs(4, 200, 0).tolist():
        *steps, total = Format(style).answer(a, b).split(";")
        columns = max(len(str(a)), len(str(b)))
        for place, step in enumerate(steps[:columns]):
            carry = (a % 10**place + b % 10**place) // 10**place
            column = a // 10**place % 10 + b // 10**place % 10 + carry
            if style == "simplified":
                assert step == f"{column % 10}c{column // 10}"
            else:
                state, _, sum_of_column = step.partition(":")
                done = f"{(a + b) % 10**place:0{place}}" if place else ""
                left, right = (str(n)[: len(str(n)) - place] if place < len(str(n)) else "" for n in (a, b))
                assert state == f"{left}+{right},{done}c{carry}"
                assert sum_of_column == f"{a // 10**place % 10}+{b // 10**place % 10}+{carry}={column:02}"
        assert total == str(a + b)


def test_padding_fills_operands_and_sum():
    assert Format(padded=3).question(8, 36) + Format(padded=3).answer(8, 36) == "008+036=0044"


def test_noise_changes_what_it_names_and_never_the_sum():
    a, b = 128, 367
    for noise, right in ((("sums",), "carries"), (("carries",), "sums")):
        texts = [
            Format("simplified").answer(a, b, np.random.default_rng(seed), noise).split(";") for seed in range(99)
        ]
        assert {steps[-1] for steps in texts} == {"495"}
        first_digits, first_carries = {steps[0][0] for steps in texts}, {steps[0][2] for steps in texts}
        assert first_carries == ({"1"} if right == "carries" else {"0", "1"})
        assert first_digits == ({"5"} if right == "sums" else set("0123456789"))


def test_a_sum_that_does_not_fit_and_a_style_that_there_is_not_are_refused():
    with pytest.raises(ValueError, match="more than 14"):
        Format().write(np.array([[1000, 1000]]), 14)
    with pytest.raises(ValueError, match="choose one of plain"):
        Format("roman")


def test_no_sum_of_so_many_digits_is_longer_than_nines():
    for style in STYLES:
        written = Format(style)
        longest = max(len(written.question(a, b) + written.answer(a, b)) for a in range(100) for b in range(100))
        assert written.width(2) == longest + 2


def test_a_set_has_the_mixture_that_it_says_without_the_test():
    test = uniform_pairs(3, 500, 7)
    for size in (500, 10_000):
        drawn = Sample(size).draw(3, test)
        assert drawn.shape == (size, 2) and len({*map(tuple, drawn.tolist())}) == size
        assert not {*map(tuple, drawn.tolist())} & {*map(tuple, test.tolist())}
        lengths = [int((np.maximum(*drawn.T) // 10**k > 0).sum()) for k in (1, 2)]
        wanted = [round(0.01 * size), round(0.09 * size)]
        assert abs(size - lengths[0] - wanted[0]) <= 2 and abs(lengths[0] - lengths[1] - wanted[1]) <= 1
    assert not np.array_equal(Sample(500).draw(3, test), Sample(500).draw(4, test))


def test_both_operands_of_equal_lengths_have_them():
    test = uniform_pairs(3, 500, 7)
    drawn = EqualLengths(2000, shares=(0.01, 0.0, 0.99)).draw(3, test)
    lengths = np.vectorize(lambda n: len(str(n)))(drawn)
    assert (lengths[:, 0] == lengths[:, 1]).all() and np.bincount(lengths[:, 0]).tolist() == [0, 20, 0, 1980]
    assert len({*map(tuple, drawn.tolist())}) == 2000
    assert not {*map(tuple, drawn.tolist())} & {*map(tuple, test.tolist())}


def test_numbers_left_out_occur_nowhere():
    sample = Sample(2000, left_out=100)
    missing = sample.missing(5)
    assert len(set(missing.tolist())) == 100
    assert not np.isin(sample.draw(5, uniform_pairs(3, 10, 0)), missing).any()


@pytest.mark.parametrize("place", [0, 1, 2])
def test_without_a_digit_no_operand_has_it_at_that_place_and_has_it_elsewhere(place):
    sample = WithoutDigit(3000, place=place, digit=5)
    drawn = sample.draw(1, uniform_pairs(3, 50, 0))
    digits = drawn[..., None] // [1, 10, 100] % 10
    assert (digits == 5).any((0, 1)).tolist() == [other != place for other in range(3)]
    assert len(drawn) == 3000 and sample.missing(1).size == 100
    assert all(str(number).zfill(3)[2 - place] == "5" for number in sample.missing(1).tolist())


def test_long_sums_are_different_have_the_lengths_that_they_say_and_none_of_a_test():
    test = np.concatenate([uniform_pairs(7, 500, 7), [[3, 4], [12, 7], [55, 99]]])
    sample = LongSums(4000, shares=(0.01, 0.09, 0.1, 0.1, 0.2, 0.2, 0.3))
    drawn = sample.draw(3, test)
    sums = {*map(tuple, drawn.tolist())}
    assert len(sums) == 4000 and not sums & {*map(tuple, test.tolist())}
    lengths = np.bincount([len(str(longer)) for longer in drawn.max(1).tolist()])
    assert lengths[0] == 0 and 20 <= lengths[1] <= 40 and lengths[2:7].tolist() == [360, 400, 400, 800, 800]
    assert lengths.sum() == 4000
    assert not np.array_equal(drawn, sample.draw(4, test)) and np.array_equal(drawn, sample.draw(3, test))


def test_long_sums_leave_out_those_of_a_test_where_a_set_could_hold_them():
    everything = np.stack(np.divmod(np.arange(100), 10), 1)
    drawn = LongSums(200, shares=(0.5, 0.5)).draw(0, everything[:90])
    assert {*map(tuple, drawn[drawn.max(1) < 10].tolist())} <= {*map(tuple, everything[90:].tolist())}


def test_long_sums_that_cannot_be_drawn_are_refused():
    with pytest.raises(ValueError, match="90 sums wanted, and only"):
        LongSums(90, shares=(1.0,)).draw(0, uniform_pairs(1, 5, 0))
    with pytest.raises(ValueError, match="left out"):
        LongSums(90, shares=(0.1, 0.9), left_out=3).draw(0, uniform_pairs(2, 5, 0))


def test_more_sums_than_there_are_cannot_be_drawn():
    with pytest.raises(ValueError, match="200 sums wanted, and only 9"):
        Sample(200, shares=(1.0,)).draw(0, uniform_pairs(1, 5, 0))


def test_line_ends_fill_a_text():
    lines = Format().write(np.array([[1, 2]]), 10)
    assert text(lines.tokens[0]) == "\n1+2=3\n\n\n\n" and lines.tokens[0, -1] == NEWLINE
