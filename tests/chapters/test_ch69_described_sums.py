"""Texts say the sums they should, and places are those of their kind."""

import numpy as np
import pytest
import torch

from chapters.ch61_written_sums import as_lines
from chapters.ch69_described_sums import (
    ALPHABET,
    OTHER_SENTENCE,
    SENTENCES,
    asked_for_words,
    bare,
    draw_places,
    room,
    sentence,
    spaced,
    text,
)


def test_every_character_has_one_token():
    assert len(set(ALPHABET)) == len(ALPHABET)
    used = "".join((*SENTENCES, OTHER_SENTENCE)).replace("{a}", "").replace("{b}", "")
    assert set(used) <= set(ALPHABET)


def test_the_other_sentence_has_no_word_that_training_lacks():
    words = set(" ".join(SENTENCES).replace(",", "").split())
    assert set(OTHER_SENTENCE.replace(",", "").split()) <= words


@pytest.mark.parametrize("template", SENTENCES)
def test_a_sentence_has_the_answer_of_the_bare_sum(template):
    question, answer = sentence(template, 47, 58)
    assert answer == bare(47, 58)[1] == "501"
    assert question.index("47") < question.index("58")


@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_spaces_stand_between_digits_alone(share):
    generator = np.random.default_rng(0)
    for a, b in [(123, 45), (7, 8), (99999, 10000)]:
        question = bare(a, b)[0]
        found = spaced(question, share, generator)
        assert found.replace(" ", "") == question
        gaps = [i for i, character in enumerate(found) if character == " "]
        assert all(found[i - 1].isdigit() and found[i + 1].isdigit() for i in gaps)
        assert len(gaps) <= room(max(len(str(a)), len(str(b))))
        if share != 0.5:
            assert len(gaps) == share * (len(str(a)) + len(str(b)) - 2)


def test_places():
    generator = np.random.default_rng(0)
    fixed, shifts, subsets = (draw_places(kind, (500, 4), 9, generator) for kind in ("fixed", "shifts", "subsets"))
    assert torch.equal(fixed, torch.arange(4).expand(500, -1))
    assert torch.equal(shifts - shifts[:, :1], fixed) and set(shifts[:, 0].tolist()) == set(range(6))
    assert (subsets.diff(dim=1) > 0).all() and subsets.min() == 0 and subsets.max() == 8
    assert len({tuple(row) for row in subsets.tolist()}) > 100, "126 there are"


def test_words_are_what_stands_before_the_answer():
    lines = as_lines([sentence(SENTENCES[0], 1, 2), bare(34, 5)], 40, ALPHABET)
    for asked, tokens, question in zip(
        asked_for_words(lines), lines.tokens, (sentence(SENTENCES[0], 1, 2)[0], "34+5="), strict=True
    ):
        assert "".join(ALPHABET[token] for token in tokens[asked]) == question
        assert text(tokens).startswith(question.strip())
    assert not (asked_for_words(lines) & lines.written).any()
