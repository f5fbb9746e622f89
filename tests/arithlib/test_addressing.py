"""What a perfect adder gets wrong, against every sum, every draw of the offset, and an adder that runs."""

import functools
import itertools
from fractions import Fraction
from math import comb, prod

import numpy as np
import pytest
import torch

from arithlib.analysis.addressing import (
    READINGS,
    carry_out,
    exact_given_carry,
    last_rows,
    longest_number,
    predicted_grid,
    predicted_means,
    row_visits,
    rows_needed,
    rows_touched,
    standard_error,
    worst_cell,
)
from arithlib.decoding import greedy
from arithlib.exact_match import score
from arithlib.models.positions import Offsets, addresses
from arithlib.tasks.operands import OperandTask, add
from arithlib.tokenizer import ALPHABET, END, EQUALS


def numbers(digits):
    return range(0 if digits == 1 else 10 ** (digits - 1), 10**digits)


def all_sums(n, m):
    return itertools.product(numbers(n), numbers(m))


# ---- sums --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (2, 3), (3, 3)])
def test_the_share_of_carries_out_is_that_of_all_sums(n, m):
    longer = [len(str(a + b)) > max(n, m) for a, b in all_sums(n, m)]
    assert carry_out(n, m) == Fraction(sum(longer), len(longer))


def test_a_number_without_digits_is_refused():
    with pytest.raises(ValueError, match="0 and 3 digits"):
        carry_out(3, 0)


# ---- predictions -------------------------------------------------------------------------------------------------


def plain_needs(length, carry, reading):
    """The rule of each reading, token by token, in words."""
    written = length + carry
    needs = []
    for column in range(1, written + 2):
        is_end, has_operand = column == written + 1, column <= length
        if has_operand:
            needs.append(column)
        elif reading == "tokens" or (reading == "columns" and not is_end):
            needs.append(column)
        elif reading == "standing":
            needs.append(column - 1)
    return needs


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("carry", [False, True])
def test_the_rows_a_step_needs_follow_the_reading(reading, carry):
    assert rows_needed(4, carry, reading) == plain_needs(4, carry, reading)


@functools.cache
def enumerated(length, carry, offsets, last_row, reading, guess=0):
    """Every sequence of draws, one a step, or one for all; each step without a row is a guess of its own."""
    needs = plain_needs(length, carry, reading)
    draws = range(offsets.k) if offsets.policy != "fixed" else [offsets.value]
    if offsets.policy == "redrawn":
        sequences = itertools.product(draws, repeat=len(needs))
    else:
        sequences = ((draw,) * len(needs) for draw in draws)
    right = [
        prod(Fraction(1) if o + need <= last_row else guess for o, need in zip(s, needs, strict=True))
        for s in sequences
    ]
    return Fraction(sum(right), len(right))


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("offsets", [
    Offsets("fixed", value=0), Offsets("fixed", value=3), Offsets("per sample", k=4), Offsets("per batch", k=4),
    Offsets("redrawn", k=4),
])  # fmt: skip
def test_the_probability_is_that_of_all_draws(reading, offsets):
    for length, carry, last_row in itertools.product((1, 2, 4), (False, True), (0, 2, 4, 6, 7, 20)):
        expected = enumerated(length, carry, offsets, last_row, reading)
        assert exact_given_carry(length, carry, offsets, last_row, reading) == expected
        guessing = enumerated(length, carry, offsets, last_row, reading, Fraction(1, 10))
        assert exact_given_carry(length, carry, offsets, last_row, reading, Fraction(1, 10)) == guessing


def test_the_means_of_all_readings_are_those_of_their_grids():
    side, redrawn = range(1, 5), Offsets("redrawn", k=3)
    means = predicted_means(side, 2, redrawn)
    assert len(means) == len(READINGS) * 4 and len(set(means.values())) > len(READINGS)
    for (reading, row, guess), mean in means.items():
        assert mean == pytest.approx(predicted_grid(side, side, redrawn, row, reading, guess=guess).mean())
    assert means["operands", 4, 0] < means["operands", 4, Fraction(1, 10)] < means["operands", 5, Fraction(1, 10)]


@pytest.mark.parametrize("offsets", [Offsets("per sample", k=3), Offsets("redrawn", k=3)])
def test_a_cell_of_the_grid_is_the_mean_over_all_its_sums(offsets):
    grid = predicted_grid([1, 2], [1, 2, 3], offsets, 3, "tokens")
    for (i, n), (j, m) in itertools.product(enumerate([1, 2]), enumerate([1, 2, 3])):
        each = [enumerated(max(n, m), len(str(a + b)) > max(n, m), offsets, 3, "tokens") for a, b in all_sums(n, m)]
        assert grid[i, j] == pytest.approx(float(sum(each) / len(each)), rel=1e-12)


def test_known_carries_replace_their_probability():
    redrawn, last = Offsets("redrawn", k=3), 3
    always = predicted_grid([2], [2], redrawn, last, "tokens", carry=np.ones((1, 1)))
    assert always[0, 0] == pytest.approx(float(exact_given_carry(2, True, redrawn, last, "tokens")))


def test_no_offset_that_fits_costs_anything():
    lengths = range(1, 9)
    for policy in ("per sample", "redrawn"):
        assert (predicted_grid(lengths, lengths, Offsets(policy, k=5), last_row=14, reading="tokens") == 1).all()


def test_an_unknown_reading_is_named():
    with pytest.raises(ValueError, match="'rows'.*operands, columns"):
        rows_needed(3, False, "rows")


class PerfectAdder:
    """Writes every sum, as long as the row of each digit that it reads was trained; else it repeats a plus sign.

    It has of a LoopedTransformer what decoding and scoring use. Reads the sum from the tokens alone.
    """

    def __init__(self, last_row):
        self.last_row, self.offsets, self.positions = last_row, Offsets(), self
        self.device = torch.device("cpu")

    def require(self, offsets, digits):
        pass

    def __call__(self, tokens, offset=None, loops=None, cache=None, since=0):
        logits = torch.zeros(*tokens.shape, len(ALPHABET))
        rows = addresses(tokens, offset)
        for text, place, out in zip(tokens.tolist(), rows.tolist(), logits, strict=True):
            plus, equals = text.index(ALPHABET.index("+")), text.index(EQUALS)
            a, b = text[:plus], text[plus + 1 : equals]
            total = add(*(torch.tensor([n + [0] * (max(len(a), len(b)) - len(n))]) for n in (a, b)))[0].tolist()
            total = [*(total[:-1] if total[-1] == 0 else total), END]
            for column in range(len(text) - equals):
                read = [place[start + column] for start, n in ((0, a), (plus + 1, b)) if column < len(n)]
                knows = all(row <= self.last_row for row in read)
                answer = total[min(column, len(total) - 1)] if knows else ALPHABET.index("+")
                out[equals + column, answer] = 1
        return logits


@pytest.mark.parametrize("value", range(4))
def test_an_adder_that_runs_is_right_where_it_is_predicted_to_be(value):
    problems = OperandTask("+").problems(torch.tensor([[2, 4]] * 8 + [[4, 4]] * 8), torch.Generator().manual_seed(0))
    offsets = Offsets("fixed", value=value)
    exact = score(PerfectAdder(last_row=6), problems.trimmed(), offsets=offsets).exact
    assert (exact == bool(exact_given_carry(4, False, offsets, last_row=6))).all()
    assert {bool(exact_given_carry(4, False, Offsets("fixed", value=v), 6)) for v in range(4)} == {True, False}


def test_redrawing_multiplies_what_the_running_adder_gets_right_at_each_step():
    problems = OperandTask("+").from_numbers([(9876, 1234), (1111, 22)])
    at = [score(PerfectAdder(6), problems.trimmed(), offsets=Offsets("fixed", value=o)).right for o in range(4)]
    steps = torch.stack(at).double().mean(0)  # (B, M) share of the draws at which a step is right
    for row, carry in enumerate((True, False)):
        expected = exact_given_carry(4, carry, Offsets("redrawn", k=4), last_row=6)
        assert float(steps[row].prod()) == pytest.approx(float(expected), rel=1e-12) and expected < 1


def test_one_long_decoding_with_redrawn_offsets_fails_as_often_as_predicted():
    task, redrawn, count = OperandTask("+"), Offsets("redrawn", k=4), 4000
    problems = task.from_numbers([(1111, 2222)] * count)
    written = greedy(PerfectAdder(6), problems.prompts(), 5, offsets=redrawn, cache=False)
    right = (written == torch.tensor([3, 3, 3, 3, END])).all(1).double().mean()
    expected = float(exact_given_carry(4, False, redrawn, last_row=6))
    assert abs(float(right) - expected) < 4 * (expected * (1 - expected) / count) ** 0.5


# ---- what is measured --------------------------------------------------------------------------------------------


def test_the_standard_error_is_that_of_independent_cells():
    grid = np.array([[0.5, 1.0], [0.2, 0.0]])
    assert standard_error(grid, 10) == pytest.approx(((0.25 + 0.16) / 10) ** 0.5 / 4)


@pytest.mark.parametrize("count", [2, 5])
def test_from_measured_shares_the_square_of_the_standard_error_is_right_on_average(count):
    truth, average = np.array([0.3, 0.9]), 0.0
    for right in itertools.product(range(count + 1), repeat=2):
        ways = [comb(count, r) * p**r * (1 - p) ** (count - r) for r, p in zip(right, truth, strict=True)]
        average += np.prod(ways) * standard_error(np.array(right) / count, count - 1) ** 2
    assert average == pytest.approx(standard_error(truth, count) ** 2)


def test_the_worst_cell_is_that_of_all_outcomes():
    grid, count = np.array([[0.5, 0.25], [0.5, 1.0]]), 2
    chance = np.zeros(count + 1)
    for right in itertools.product(range(count + 1), repeat=4):
        weights = {0: lambda p: (1 - p) ** 2, 1: lambda p: 2 * p * (1 - p), 2: lambda p: p**2}
        chance[min(right)] += np.prod([weights[r](p) for r, p in zip(right, grid.flat, strict=True)])
    np.testing.assert_allclose(worst_cell(grid, count), chance.cumsum(), rtol=1e-12)


# ---- visits ------------------------------------------------------------------------------------------------------


def training_sums(max_digits):
    """(weight, digits of the longer operand, digits of the sum) of every training sum; lengths are equally likely."""
    for n, m in itertools.product(range(1, max_digits + 1), repeat=2):
        sums = list(all_sums(n, m))
        for a, b in sums:
            yield Fraction(1, max_digits**2 * len(sums)), max(n, m), len(str(a + b))


@pytest.mark.parametrize("part", ["any", "operand"])
def test_lengths_and_visits_are_those_of_all_training_sums_under_all_offsets(part):
    N, k = 2, 3
    lengths, visits = [Fraction(0)] * (N + 2), [Fraction(0)] * (k + N + 1)
    for weight, operand, total in training_sums(N):
        longest = total if part == "any" else operand
        lengths[longest] += weight
        for offset in range(k):
            for row in range(offset + 1, offset + longest + 1):
                visits[row] += weight / k
    np.testing.assert_allclose(longest_number(N, part), np.array(lengths, float), rtol=1e-12)
    np.testing.assert_allclose(row_visits(N, k, part), np.array(visits, float), rtol=1e-12)
    assert np.flatnonzero(row_visits(N, k, part)).max() == last_rows(N, k)[part]


@pytest.mark.parametrize("policy", ["per sample", "per batch", "fixed"])
def test_an_update_moves_the_rows_of_its_batch(policy):
    N, k, batch = 2, 3, 2
    offsets = Offsets(policy, k=k, value=2)
    lengths = {}
    for weight, _, total in training_sums(N):
        lengths[total] = lengths.get(total, 0) + weight
    touched = [Fraction(0)] * (k + N + 1)
    for one, two in itertools.product(lengths, repeat=2):
        draws = {
            "per sample": list(itertools.product(range(k), repeat=2)),
            "per batch": [(o, o) for o in range(k)],
            "fixed": [(2, 2)],
        }[policy]
        for first, second in draws:
            rows = {*range(first + 1, first + one + 1), *range(second + 1, second + two + 1)}
            for row in rows:
                touched[row] += lengths[one] * lengths[two] / len(draws)
    np.testing.assert_allclose(rows_touched(N, offsets, batch), np.array(touched, float), rtol=1e-12)


def test_an_unknown_part_is_named():
    with pytest.raises(ValueError, match="part 'sum'"):
        longest_number(3, "sum")
