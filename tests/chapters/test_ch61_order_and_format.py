"""Order and format: a test asks what training asks, and curves are read as by hand."""

import dataclasses
import itertools

import numpy as np
import pytest

from arithlib import experiments
from arithlib.checkpoints import Trained
from chapters.ch61_character_gpt import CharacterGPTs
from chapters.ch61_order_and_format import all_seeds, local_contexts, step_reaching, steps_of_fall, sums_needed
from chapters.ch61_written_sums import ALPHABET


def text(tokens):
    return "".join(ALPHABET[token] for token in tokens.tolist())


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
    assert handed == beginnings
    assert all(prompt.startswith("\n") for prompt in handed)


def test_studies_of_other_seeds_are_joined_seed_by_seed():
    first, more = (experiments.get(f"written-plain{part}") for part in ("", "-more"))

    def measured(e):
        """Every number says which seed it is of."""
        by_seed = np.broadcast_to(e.seeds, (2, len(e.samples), len(e.seeds)))
        return Trained(e, None, {"step": np.arange(2), "loss": by_seed, "by_length": by_seed[..., None]}, {})

    joined = all_seeds(measured(first), measured(more))
    assert joined.experiment.seeds == tuple(range(10)) and joined.experiment.name == "written-plain"
    assert (joined.history["loss"] == range(10)).all() and (joined.history["by_length"][..., 0] == range(10)).all()
    assert joined.history["step"].tolist() == [0, 1]
    for other in (first, dataclasses.replace(more, steps=500)):
        with pytest.raises(ValueError, match="is not written-plain with other seeds"):
            all_seeds(measured(first), measured(other))


def test_sums_needed_is_where_the_line_between_log_sizes_crosses():
    assert sums_needed([100, 1000, 10_000], [0.0, 0.25, 0.75], 0.5) == pytest.approx(1000 * 10**0.5)
    assert sums_needed([100, 1000], [0.6, 0.9], 0.5) == 100
    assert sums_needed([100, 1000], [0.1, 0.5], 0.5) == 1000
    with pytest.raises(ValueError, match="do not fall"):
        sums_needed([100, 1000], [0.1, 0.4], 0.5)


def test_a_fall_is_timed_from_nine_tenths_to_one_tenth():
    step = np.arange(0, 1001, 50)
    line = 2.0 - np.clip((step - 200) / 400, 0, 1)  # falls from step 200 to 600
    assert steps_of_fall(step, line, 100) == pytest.approx(0.8 * 400)
    sudden = 2.0 - np.clip((step - 200) / 50, 0, 1)
    assert steps_of_fall(step, sudden, 100) == pytest.approx(0.8 * 50)
    with_start = np.where(step < 100, 5.0, line)  # what is learned before counts for nothing
    assert steps_of_fall(step, with_start, 100) == pytest.approx(0.8 * 400)
    assert step_reaching(step, 2.0 - line, 0.5) == 400 and step_reaching(step, line, 9.0) == 1000


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
