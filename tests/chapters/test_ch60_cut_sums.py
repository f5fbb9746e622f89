"""Sums cut into tokens: against text cut by hand, and stacks of small models against one another."""

import numpy as np
import pytest
import torch

from arithlib.training import AdamW, train
from chapters.ch60_cut_sums import Cut, draw_numbers, lengths_of, spelling, token_text, vocabulary
from chapters.ch60_errors import fit_power, single_errors, wrong_places
from chapters.ch60_experiments import CutExperiment
from chapters.ch61_written_sums import NEWLINE

CUTS = [Cut(), Cut(2, "left"), Cut(2, "right"), Cut(3, "left"), Cut(3, "right")]
DIGITS = 6


def numbers(size, seed=0, digits=DIGITS):
    generator = torch.Generator().manual_seed(seed)
    return draw_numbers(torch.randint(1, digits + 1, (size,), generator=generator).numpy(), generator)


def cut_by_hand(text, cut):
    """A number as text, cut with slices of strings."""
    first = len(text) % cut.size if cut.side == "right" else 0
    parts = [text[:first]] + [text[i : i + cut.size] for i in range(first, len(text), cut.size)]
    return [part for part in parts if part]


def spelled(tokens, size):
    return [token_text(token, size) for token in tokens if token >= 0]


@pytest.mark.parametrize("cut", CUTS, ids=str)
def test_numbers_are_cut_as_strings_are(cut):
    drawn = np.concatenate([numbers(300), [0, 9, 10, 99, 100, 999, 1000, 99_999, 100_000, 999_999]])
    for number, tokens in zip(drawn, cut.tokens(drawn, DIGITS), strict=True):
        assert spelled(tokens, cut.size) == cut_by_hand(str(number), cut)


@pytest.mark.parametrize("cut", CUTS, ids=str)
def test_a_line_is_the_question_and_its_answer_and_ends_where_it_should(cut):
    pairs = numbers(200, 1).reshape(100, 2)
    lines = cut.write(pairs, DIGITS)
    for (a, b), tokens, written in zip(pairs, lines.tokens, lines.written, strict=True):
        asked, said = tokens[~written].tolist(), tokens[written].tolist()
        parts = [*cut_by_hand(str(a), cut), "+", *cut_by_hand(str(b), cut), "="]
        assert [part for part in spelled(asked, cut.size) if part != "\n"] == parts
        assert spelled(said, cut.size) == [*cut_by_hand(str(a + b), cut), "\n"]
        assert cut.read(tokens[written]) == a + b
    begin = lines.written.int().argmax(1)
    assert len(set(begin.tolist())) == 1 and (lines.tokens[:, begin[0] - 1] == 11).all()


@pytest.mark.parametrize("digits", [DIGITS, 12])
def test_commas_stand_where_people_write_them_and_the_answer_has_none(digits):
    pairs = numbers(200, 2, digits).reshape(100, 2)
    commas = np.arange(100) % 2 == 0
    lines, room = Cut().write(pairs, digits, commas), Cut().write(pairs, digits, room=True)
    assert lines.tokens.shape == room.tokens.shape and torch.equal(lines.written, room.written)
    for (a, b), tokens, written, with_commas in zip(pairs, lines.tokens, lines.written, commas, strict=True):
        text = "".join(spelled(tokens[~written].tolist(), 1)).replace("\n", "")
        assert text == (f"{a:,}+{b:,}=" if with_commas else f"{a}+{b}=")
        assert "".join(spelled(tokens[written].tolist(), 1)) == f"{a + b}\n"
    assert torch.equal(lines.tokens[1::2], room.tokens[1::2])
    with pytest.raises(ValueError, match="commas stand between single digits"):
        Cut(2, "left").write(pairs, digits, commas)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_tokens_spell_different_things_and_there_is_none_beyond_the_vocabulary(size):
    assert len({token_text(token, size) for token in range(vocabulary(size))}) == vocabulary(size)
    with pytest.raises(ValueError, match=f"token {vocabulary(size)}: chunks of {size} digits"):
        token_text(vocabulary(size), size)
    with pytest.raises(ValueError, match="side = 'middle'"):
        Cut(size, "middle")


def test_what_a_token_spells_is_told_from_its_text_and_from_nothing_else():
    rows = spelling(3)
    assert rows.shape == (vocabulary(3), 30)
    for token, row in enumerate(rows):
        text = token_text(token, 3)
        places = enumerate(reversed(text)) if text.isdecimal() else ()
        assert row.nonzero().ravel().tolist() == sorted(10 * place + int(digit) for place, digit in places)
    assert torch.allclose(rows.norm(dim=1), rows.any(1).float())


def test_what_is_no_number_reads_as_none():
    cut = Cut(2, "left")
    digits, end = cut.tokens(np.array([1234]), 4)[0], [NEWLINE]
    assert cut.read(torch.tensor([*digits, *end, 3, 3])) == 1234
    assert cut.read(torch.tensor([*digits, 10, *end])) == cut.read(torch.tensor(end)) == -1


def test_lengths_are_those_of_text_and_all_are_as_likely():
    drawn = numbers(6000, 3)
    assert lengths_of(drawn).tolist() == [len(str(number)) for number in drawn]
    assert np.bincount(lengths_of(drawn))[1:] / 6000 == pytest.approx(np.full(6, 1 / 6), abs=0.02)
    five = draw_numbers(np.full(4000, 5), torch.Generator().manual_seed(4))
    assert np.bincount(five // 10_000)[1:] / 4000 == pytest.approx(np.full(9, 1 / 9), abs=0.02)
    assert {0, 9} <= set(draw_numbers(np.ones(200, int), torch.Generator().manual_seed(4)).tolist())


def small(**more):
    return CutExperiment(**dict(
        name="x", about="x", steps=4, evaluate_every=2, optimizer=AdamW(warmup_steps=1), cut=Cut(), seeds=(0, 1),
        digits=4, d_model=8, n_layers=1, n_heads=2, batch_size=4, evaluation_count=6, test_count=3, chain_count=2,
    ) | more)  # fmt: skip


def longest_chain_of_a_loop(a, b):
    carry, chain, longest = 0, 0, 0
    for place in range(len(str(max(a, b)))):
        total = a // 10**place % 10 + b // 10**place % 10
        chain = 1 if total > 9 else chain + 1 if total == 9 and carry else 0
        carry = int(total + carry > 9)
        longest = max(longest, chain)
    return longest


def test_the_tests_of_the_end_have_the_lengths_and_chains_they_promise():
    pairs = small().tests()
    assert len(pairs) == 3 * 4 + 2 * 5
    assert lengths_of(pairs).tolist() == [[n, n] for n in (1, 1, 1, 2, 2, 2, 3, 3, 3, *[4] * 13)]
    assert [longest_chain_of_a_loop(*pair) for pair in pairs[12:].tolist()] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert np.array_equal(pairs, small(cut=Cut(2, "left"), seeds=(5,)).tests())


@pytest.mark.parametrize("cut", [Cut(), Cut(2, "left")], ids=str)
def test_answers_are_those_of_greedy_decoding_one_sum_at_a_time(cut):
    run = small(cut=cut)
    model = run.build()
    with torch.no_grad():
        model.W_U[:, :, NEWLINE] -= 1.0  # untrained models then write digits, too
    answers = run.answers(model)
    assert answers.shape == (2, len(run.tests())) and answers.dtype == np.int32 and (answers >= 0).any()
    pairs = run.tests()
    lines = run.lines(pairs)
    first = int(lines.written[0].int().argmax())
    for sum_, which in ((0, 0), (7, 1), (21, 0)):
        text = lines.tokens[sum_, :first].tolist()
        while len(text) < lines.tokens.shape[1]:
            with torch.no_grad():
                said = int(model(torch.tensor([[text]] * 2))[which, 0, -1].argmax())
            text.append(said)
            if said == NEWLINE:
                break
        assert cut.read(torch.tensor(text[first:])) == answers[which, sum_]


def test_the_half_trained_answers_are_those_of_the_first_snapshot_at_half():
    run = small(snapshot_steps=(0, 2, 4))
    model = run.build()
    trained = train(model, run.objective(model, None), run.optimizer, 4, evaluate_every=2, snapshot_steps=(0, 2, 4))
    assert trained.history["exact_match"].shape == (3, 2)
    trained.history["exact_match"] = np.array([[0.0, 0.1], [0.6, 0.2], [0.5, 0.3]])  # planted
    found = run.finish(model, trained)
    assert found["half_step"].tolist() == [[2, 4]]
    other = run.build()
    other.load_state_dict(trained.snapshots[2])
    assert np.array_equal(found["half"][0, 0], run.answers(other)[0])
    assert np.array_equal(found["half"][0, 1], found["answers"][0, 1])


def test_a_spelled_chunk_begins_as_the_sum_of_its_digits_and_a_sign_by_itself():
    plain, spelled = (small(cut=Cut(2), spelled=yes).build() for yes in (False, True))
    first = vocabulary(1)  # 00, 01, ...
    for of_token in (lambda model: model.W_E.data[0], lambda model: model.W_U.data[0].T):
        before, rows = of_token(plain), of_token(spelled)
        assert torch.equal(before[10:first], rows[10:first]) and not torch.equal(before[first:], rows[first:])
        chunks = rows[first:].view(10, 10, -1)  # tens, units
        assert torch.allclose(chunks[3, 7] + chunks[8, 1], chunks[3, 1] + chunks[8, 7], atol=1e-6)
        assert rows[first:].std() == pytest.approx(float(before[first:].std()), rel=0.3)


def test_models_of_a_stack_have_the_same_sums_and_a_step_can_be_drawn_again():
    run = small(commas=0.5)
    model, objective = run.build(), run.objective(None, None)
    first, again, other = (objective.loss(model, step).item() for step in (1, 1, 2))
    assert np.isfinite(first) and first == again != other
    alone = small(commas=0.5, seeds=(0,)), small(commas=0.5, seeds=(1,))
    parts = [one.objective(None, None).loss(one.build(), 1).item() for one in alone]
    assert first == pytest.approx(sum(parts), rel=1e-5)


def test_wrong_places_are_those_of_text():
    generator = np.random.default_rng(0)
    right = generator.integers(0, 20_000, 300)
    answers = np.stack([np.where(generator.random(300) < 0.5, right, generator.integers(-1, 30_000, 300))] * 2)
    found = wrong_places(answers, right, 5)
    for answer, truth, row in zip(answers[1].tolist(), right.tolist(), found[1].tolist(), strict=True):
        one, other = f"{answer:05}"[::-1], f"{truth:05}"[::-1]
        assert row == ([True] * 5 if answer < 0 else [a != b for a, b in zip(one, other, strict=True)])
    assert wrong_places(np.array([[123_456]]), np.array([23_456]), 5).tolist() == [[[False] * 4 + [True]]]


def test_single_errors_are_counted_among_wrong_sums():
    wrong = np.zeros((10, 3), bool)
    wrong[0], wrong[1, 2], wrong[2, 2], wrong[3, 0] = True, True, True, True
    one, usual, at = single_errors(wrong)
    assert (one, usual, at.tolist()) == (75.0, 50.0, [25.0, 0.0, 50.0])
    with pytest.raises(ValueError, match="no sum is wrong"):
        single_errors(wrong[4:])


@pytest.mark.parametrize(("c", "power"), [(0.1, 1.0), (0.02, 2.5), (0.5, 0.4), (1e-5, 8.0)])
def test_a_planted_power_is_found(c, power):
    n = np.array([1, 2, 4, 8])
    found = fit_power(n, 10_000 * np.exp(-c * n**power), np.full(4, 10_000))
    assert found == pytest.approx((c, power), rel=0.05)
