"""Order and format: a test asks what training asks, packed text is the text, and curves are read as by hand."""

import itertools

import numpy as np
import pytest
from short_runs import trained

from arithlib import experiments
from arithlib.training import AdamW
from chapters.ch61_character_gpt import CharacterGPTs
from chapters.ch61_order_and_format import (
    EqualLengths,
    PackedExperiment,
    first_step,
    local_contexts,
    prompts,
    steps_of_fall,
    stream,
    sums_needed,
)
from chapters.ch61_written_sums import ALPHABET, Format, Sample


def text(tokens):
    return "".join(ALPHABET[token] for token in tokens.tolist())


def packed(**more):
    settings = dict(
        name="packed-tiny", about="a test", steps=5, evaluate_every=5, format=Format(), d_model=16, n_layers=1,
        samples=(Sample(60, shares=(0.5, 0.5)),), seeds=(0, 1), batch_size=6, test_size=20, context=15,
        optimizer=AdamW(lr=3e-3, weight_decay=0.1, warmup_steps=2, schedule="cosine"),
    )  # fmt: skip
    return PackedExperiment(**settings | more)


@pytest.mark.parametrize("e", experiments.match("written-*"), ids=lambda e: e.name)
def test_a_test_gives_a_model_token_for_token_what_training_gives_it(e, monkeypatch):
    """The same pairs, as a text of training begins and as the model of a test is handed them."""
    pairs = np.array([[3, 48], [99, 1], [0, 0], [12, 34]])
    sample = e.samples[0]
    in_training = e.lines(pairs, sample.noise, 0)
    handed = []

    def keep(self, tokens, places):
        handed.extend(text(row[:place]) for row, place in zip(tokens[0], places[0].tolist(), strict=True))
        return tokens

    monkeypatch.setattr(CharacterGPTs, "complete", keep)
    e.answers(CharacterGPTs(e.build().config, (0,)), [pairs] * len(e.members))
    beginnings = [text(tokens[: text(tokens).index("=") + 1]) for tokens in in_training.tokens]
    assert handed == beginnings == prompts(e, pairs)
    assert all(prompt.startswith("\n") for prompt in handed)


def test_packed_texts_are_pieces_of_the_sums_behind_one_another():
    e = packed()
    objective = e.objective(None, None)
    tokens, written = objective.batch(3)
    assert tokens.shape == (2, 6, 15) and written.all()
    for (sample, seed), pieces in zip(e.members, tokens, strict=True):
        sums = sample.draw(seed, e.test_pairs()).tolist()
        whole = "".join(f"{a}+{b}={a + b}\n" for a, b in sums)
        assert all(text(piece) in whole + whole for piece in pieces)
    assert len({text(piece)[0] for piece in tokens.flatten(0, 1)}) > 2, "they begin anywhere"
    assert text(stream(e.lines(np.array([[1, 2], [30, 4]])).tokens)) == "1+2=3\n30+4=34\n"


def test_without_its_line_end_a_prompt_is_the_same_prompt_one_place_earlier():
    e = packed(steps=3, test_size=8)
    model, run = trained(e)
    lines = e.lines(e.test_pairs())
    assert e.completed(model, lines.tokens, lines.written) == pytest.approx(
        e.answers(model, [e.test_pairs()] * 2), abs=1e-9
    )
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CharacterGPTs, "complete", lambda self, tokens, places: seen.append((tokens, places)) or tokens)
        assert e.finish(model, run)["bare"].tolist() == [[[1.0, 1.0]]], "the right text is right"
    bare, places = seen[0]
    assert text(bare[0, 0, : places[0, 0]]) == prompts(e, e.test_pairs())[0].removeprefix("\n")


def test_equal_lengths_are_equal_and_otherwise_the_set_is_what_it_says():
    test = np.array([[1, 2], [45, 67]])
    for seed in (0, 1):
        pairs = EqualLengths(500, shares=(0.1, 0.9)).draw(seed, test)
        lengths = [tuple(len(str(n)) for n in pair) for pair in pairs.tolist()]
        assert {*lengths} == {(1, 1), (2, 2)} and lengths.count((1, 1)) == 50
        assert len({*map(tuple, pairs.tolist())}) == 500 and not {(1, 2), (45, 67)} & {*map(tuple, pairs.tolist())}
    mixed = Sample(500, shares=(0.1, 0.9)).draw(0, test)
    assert any(len(str(a)) != len(str(b)) for a, b in mixed.tolist())


def test_sums_needed_is_where_the_line_between_log_sizes_crosses():
    assert sums_needed([100, 1000, 10_000], [0.0, 0.25, 0.75], 0.5) == pytest.approx(1000 * 10**0.5)
    assert sums_needed([100, 1000], [0.6, 0.9], 0.5) == 100
    assert sums_needed([100, 1000], [0.1, 0.5], 0.5) == 1000
    with pytest.raises(ValueError, match="never reach 0.5"):
        sums_needed([100, 1000], [0.1, 0.4], 0.5)


def test_a_fall_is_timed_from_nine_tenths_to_one_tenth():
    step = np.arange(0, 1001, 50)
    line = 2.0 - np.clip((step - 200) / 400, 0, 1)  # falls from step 200 to 600
    assert steps_of_fall(step, line, 100) == pytest.approx(0.8 * 400)
    sudden = 2.0 - np.clip((step - 200) / 50, 0, 1)
    assert steps_of_fall(step, sudden, 100) == pytest.approx(0.8 * 50)
    with_start = np.where(step < 100, 5.0, line)  # what is learned before counts for nothing
    assert steps_of_fall(step, with_start, 100) == pytest.approx(0.8 * 400)
    assert first_step(step, 2.0 - line, 0.5) == 400 and first_step(step, line, 9.0) == 1000


@pytest.mark.parametrize("digits", [1, 2, 3])
def test_local_contexts_are_those_that_the_columns_of_all_sums_show(digits):
    """By hand: a column, and of those below it as many from the top as it takes to know the carry."""
    pairs = list(itertools.product(range(10), repeat=2))
    for kinds, undecided, columns in ((100, 10, pairs), (19, 1, range(19))):
        if len(columns) ** digits > 10_000:  # a million sums by hand take too long
            continue
        total = {column: sum(column) if kinds == 100 else column for column in columns}
        forward, reverse = set(), set()
        for number in itertools.product(columns, repeat=digits):  # least significant first
            carry = 0
            for place, column in enumerate(number):
                below = []
                for lower in reversed(number[:place]):
                    below.append(lower)
                    if total[lower] != 9:
                        break
                forward.add((place, column, *below))
                reverse.add((place, column, carry))
                carry = int(total[column] + carry > 9)
        assert local_contexts(digits, True, kinds, undecided) == len(forward)
        assert local_contexts(digits, False, kinds, undecided) == len(reverse)
