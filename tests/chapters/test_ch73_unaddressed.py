"""Adders without addresses: their layout, what they are trained on, and the proof for all sums of ten digits."""

import numpy as np
import pytest
import torch

from arithlib import checkpoints, experiments
from arithlib.tokenizer import ABSENT
from chapters import ch73_compact as compact
from chapters import ch73_unaddressed as unaddressed
from chapters.ch73_unaddressed import ASKS, DIGITS, DISTANCES

FAMILY = experiments.match("unaddressed-*")
PROVEN = "unaddressed-14-s0-settled"
HARD = [
    (0, 0),
    (9_999_999_999, 1),
    (9_999_999_999, 9_999_999_999),
    (5_555_555_555, 4_444_444_445),
    (1_111_111_111, 0),
]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def adder(name=PROVEN):
    return checkpoints.read(name).model


def drawn(count, seed=0):
    """Random sums of every length, and the hard ones."""
    numbers = np.random.default_rng(seed)
    longest = 10 ** numbers.integers(1, DIGITS + 1, (count, 2))
    return [*HARD, *map(tuple, (numbers.random((count, 2)) * longest).astype(np.int64).tolist())]


def prefix(a, b):
    """(34,) the question and all digits of the sum but the last."""
    return torch.tensor(unaddressed.question(a, b) + [(a + b) // 10**i % 10 for i in range(DIGITS)])


def of_column(a, b, asked):
    """What `columns` lists of the column: its digits, those of the one before, and what is written under that."""

    def digit(number, place):
        return number // 10**place % 10 if place >= 0 else 0

    return [digit(a, asked), digit(b, asked), digit(a, asked - 1), digit(b, asked - 1), digit(a + b, asked - 1)]


# ---- from the numbers to the weights -----------------------------------------------------------------------------


def test_every_number_moves_some_weight():
    [numbers] = unaddressed.initial(1, generator())
    assert len(numbers) == unaddressed.COUNT == 14
    whole = unaddressed.expand(numbers)
    for place in range(len(numbers)):
        other = numbers.clone()
        other[place] += 1
        changed = unaddressed.expand(other)
        assert any(not torch.equal(changed[name], whole[name]) for name in whole), f"number {place} is nowhere"


def test_a_score_has_its_planted_peak_and_comes_round_after_the_period():
    [numbers] = unaddressed.initial(1, generator())
    angle = 2 * np.pi / unaddressed.PERIOD * 10.3
    unaddressed.named(numbers)["place"].copy_(torch.tensor([np.cos(angle), np.sin(angle)]))
    score = unaddressed.expand(numbers)["score"]
    assert len(score) == DISTANCES and score[: unaddressed.PERIOD].argmax() == 10
    torch.testing.assert_close(score[unaddressed.PERIOD :], score[: -unaddressed.PERIOD], rtol=1e-4, atol=1e-3)
    assert float(score.max()) == pytest.approx(unaddressed.STEEP * np.cos(2 * np.pi / unaddressed.PERIOD * 0.3), 1e-4)


# ---- the layout --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("a, b", drawn(10))
def test_the_columns_are_where_the_distances_say(a, b):
    text = prefix(a, b)
    assert len(text) == DISTANCES
    for asked in range(DIGITS + 1):
        seen = text[: ASKS + asked + 1].flip(0)
        found = [int(seen[d]) for d in (*unaddressed.COLUMN, *unaddressed.BEFORE, 0)]
        # Which of two digits of a column comes first does not matter: b is nearer than a.
        assert found == [of_column(a, b, asked)[place] for place in (1, 0, 3, 2, 4)]


def test_texts_are_sums_asked_for_one_digit_each_and_none_shows_its_answer():
    seen, due = unaddressed.texts(500, generator(1))
    for row, column in zip(seen.tolist(), due.tolist(), strict=True):
        *context, right = row
        text = [token for token in reversed(context) if token != ABSENT]
        asked = len(text) - ASKS - 1
        a, b = (sum(d * 10**i for i, d in enumerate(text[at : at + DIGITS])) for at in (1, DIGITS + 3))
        assert text == prefix(a, b)[: len(text)].tolist() and right == (a + b) // 10**asked % 10
        low = 10**asked
        assert column == a // low % 10 + b // low % 10 + (a % low + b % low) // low
    assert len(set(due.tolist())) == 20  # 0 to 19: no sum of a column is left out


def test_a_batch_has_low_sums_and_admitted_ones_alone_the_newest_most():
    stack = unaddressed.UnaddressedStack(unaddressed.initial(1, generator()), generator())
    for smallest, row in enumerate(stack.likely(), start=10):
        assert (row[(stack.sums >= 10) & (stack.sums < smallest)] == 0).all()
        newest, low = row[stack.sums == smallest], row[stack.sums < 10]
        assert float(low.sum()) == pytest.approx(0.5, 1e-3) and (newest > 0).all()
        if smallest < unaddressed.LAST:
            torch.testing.assert_close(newest[0], 2 * row[stack.sums == smallest + 1][0])


@pytest.mark.parametrize("a, b", [(-1, 0), (0, 10**DIGITS)])
def test_operands_without_room_are_refused(a, b):
    with pytest.raises(ValueError, match=str(a or b)):
        unaddressed.add(adder(), a, b)


def test_a_text_without_room_is_refused():
    with pytest.raises(ValueError, match="35 tokens"):
        adder()(torch.zeros(1, DISTANCES + 1, dtype=torch.long))


@torch.no_grad()
def test_no_token_depends_on_later_ones():
    model, text = adder(), prefix(*HARD[1])[None]
    whole = model(text)
    for length in (1, ASKS + 1, DISTANCES):
        torch.testing.assert_close(model(text[:, :length]), whole[:, :length])


# ---- training ----------------------------------------------------------------------------------------------------


def test_a_run_repeats_itself_and_loads_what_it_says():
    settings = dict(name="unaddressed-test", about="a test", steps=6, evaluate_every=6, starts=3, batch_size=32)
    runs = []
    for _ in range(2):
        one = unaddressed.UnaddressedExperiment(**settings)
        model = one.build()
        runs.append(one.fit(model, torch.device("cpu"), progress=False).history)
        torch.testing.assert_close(
            unaddressed.expand(torch.from_numpy(runs[-1]["numbers"][-1])), dict(model.state_dict())
        )
    assert all(np.array_equal(runs[0][name], runs[1][name]) for name in runs[0])
    assert one.size()["weights"] == runs[0]["numbers"].size == unaddressed.COUNT


@torch.no_grad()
def test_what_is_trained_on_last_bounds_every_logit_from_the_side_that_matters():
    """With room for one exponential and no softening, each least lead is at most what any text can show."""
    settling = unaddressed.UnaddressedSettling(torch.from_numpy(checkpoints.read(PROVEN).history["numbers"][-1]))
    settling.room = 1.0
    bounded = settling.answer(settling.numbers[0], settling.contexts).numpy() * compact.SOFTNESS
    table = {tuple(row[:-1]): logits for row, logits in zip(settling.contexts.tolist(), bounded, strict=True)}
    model = adder().double()
    for a, b in drawn(40, seed=3):
        logits = model(prefix(a, b)[None])[0, ASKS:].numpy()
        for asked, found in enumerate(logits):
            one, other, last, last_other, own = of_column(a, b, asked)
            least = table[min(one, other), max(one, other), min(last, last_other), max(last, last_other), own]
            right = (a + b) // 10**asked % 10
            others = np.arange(10) != right
            assert least[right] - least[others].max() <= found[right] - found[others].max() + 1e-6


@pytest.mark.parametrize("run", FAMILY, ids=lambda run: run.name)
def test_a_shipped_adder_is_written_out_from_its_numbers(run):
    trained = checkpoints.read(run.name)
    weights = unaddressed.expand(torch.from_numpy(trained.history["numbers"][-1]))
    torch.testing.assert_close(weights, dict(trained.model.state_dict()))


# ---- the proof ---------------------------------------------------------------------------------------------------


@torch.no_grad()
def test_every_column_of_every_sum_is_listed_and_its_logits_are_enclosed():
    model, (seen, right) = adder(), unaddressed.columns()
    assert len(np.unique(seen, axis=0)) == len(seen) == 20_000
    place = {tuple(row): number for number, row in enumerate(seen.tolist())}
    balls = [unaddressed.logits(model, asked, seen) for asked in range(DIGITS + 1)]
    for a, b in drawn(100, seed=2):
        for asked, logits in enumerate(model(prefix(a, b)[None])[0, ASKS:].double().numpy()):
            number = place[tuple(of_column(a, b, asked))]
            assert right[number] == (a + b) // 10**asked % 10
            ball = balls[asked][number]
            assert (np.abs(logits - ball.mid) <= ball.rad).all()


def test_other_tokens_are_what_the_proof_says_they_may_do():
    """Any digit in all other places stays inside, and some use half of the ball."""
    model, (seen, _) = adder(), unaddressed.columns()
    with torch.no_grad():
        model.score.mul_(0.3)  # so that they have some weight
        ball, used = unaddressed.logits(model, DIGITS, seen[:1]), 0.0
        for filler in range(10):
            text = torch.full((1, DISTANCES), filler)
            for distance, digit in zip((*unaddressed.COLUMN, *unaddressed.BEFORE, 0), seen[0], strict=True):
                text[0, -1 - distance] = digit
            logits = model(text)[0, -1].double().numpy()
            assert (np.abs(logits - ball.mid[0]) <= ball.rad[0]).all()
            used = max(used, (np.abs(logits - ball.mid[0]) / ball.rad[0]).max())
    assert used > 0.5


@pytest.mark.parametrize("name", ["mlp_out.weight", "mlp_in.bias", "value", "bias", "score", "embedding.weight"])
def test_a_damaged_adder_is_not_proven(name):
    model = adder()
    with torch.no_grad():
        model.get_parameter(name).mul_(0.7)
    assert (unaddressed.examine(model)[1] <= 0).any()


@pytest.mark.parametrize("name", [run.name for run in FAMILY if run.name.endswith("-settled")])
def test_the_proven_adders_add(name):
    model = adder(name)
    lead, least = unaddressed.examine(model)
    assert lead.shape == least.shape == (DIGITS + 1, 20_000) and (least > 0).all() and (least <= lead).all()
    assert all(unaddressed.add(model, a, b) == a + b for a, b in drawn(60, seed=4))
