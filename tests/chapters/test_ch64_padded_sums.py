"""Padded sums as text, what is right without the higher digits, and the experiment on them (chapter 64)."""

import dataclasses

import pytest
import torch
from short_runs import seeded, trained

from arithlib import experiments
from arithlib.decoding import greedy
from arithlib.tokenizer import ALPHABET
from arithlib.training import AdamW
from chapters.ch64_experiments import agreement
from chapters.ch64_padded_sums import PaddedSums, of_length


def text(tokens):
    return "".join(ALPHABET[token] for token in tokens)


def test_a_text_is_what_its_numbers_say():
    pairs = torch.tensor([[23, 45], [0, 9999]])
    assert [text(row) for row in PaddedSums(2).write(pairs)] == ["3200+5400=86000", "0000+9999=99990"]
    assert [text(row) for row in PaddedSums(2, modulus=51).write(pairs)] == ["3200+5400=71", "0000+9999=30"]
    assert [text(row) for row in PaddedSums(2, modulus=101).write(pairs)] == ["3200+5400=860", "0000+9999=000"]


def test_texts_are_those_of_python_integers():
    pairs = of_length(4, 200, seeded())
    for modulus in (None, 7, 50, 101, 150):
        task = PaddedSums(3, modulus=modulus)
        width = 5 if modulus is None else len(str(modulus - 1))
        for (a, b), row in zip(pairs.tolist(), task.write(pairs), strict=True):
            total = a + b if modulus is None else (a + b) % modulus
            assert text(row) == f"{a:04}"[::-1] + "+" + f"{b:04}"[::-1] + "=" + f"{total:0{width}}"[::-1]


def test_training_has_the_full_length_in_one_number_or_in_both():
    one, both = (PaddedSums(2, full=full).sample(4000, seeded()) for full in ("one", "both"))
    assert (one.max(1).values >= 10).all() and (one.min(1).values < 10).any() and one.max() < 100
    assert (both >= 10).all() and both.max() < 100
    assert 0.4 < (one[:, 0] > one[:, 1]).double().mean() < 0.6


@pytest.mark.parametrize("modulus", [50, 51, 100, 101, 150, 30, 7])
def test_the_share_that_is_right_without_the_higher_digits_is_the_predicted_one(modulus):
    """Against every pair of high parts, in all residues."""
    task = PaddedSums(2, modulus=modulus, width=6)
    high = torch.arange(modulus)
    pairs = torch.cartesian_prod(high, high) * 100 + 7
    right = task.answers(pairs) == task.answers(task.dropped(pairs))
    assert float(right.all(1).double().mean()) == pytest.approx(task.predicted())


def test_plain_sums_are_never_right_without_the_higher_digits():
    pairs = of_length(3, 500, seeded())
    task = PaddedSums(2)
    assert not (task.answers(pairs) == task.answers(task.dropped(pairs))).all(1).any() and task.predicted() == 0


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="12345 has more than 4 digits"):
        PaddedSums(2).write(torch.tensor([[1, 12345]]))
    with pytest.raises(ValueError, match="digits = 5"):
        PaddedSums(5)
    with pytest.raises(ValueError, match="choose one or both"):
        PaddedSums(2, full="none")


def tiny(**more):
    first = experiments.get("padded-sums-learned-s0")
    settings = dict(
        name="padded-tiny", steps=60, evaluate_every=60, optimizer=AdamW.cosine(1e-2, 60),
        batch_size=32, test_size=50, task=PaddedSums(1, width=2),
        model=dataclasses.replace(first.model, d_model=32, d_mlp=64),
    )  # fmt: skip
    return dataclasses.replace(first, **settings | more)


def test_agreement_is_with_what_greedy_decoding_writes():
    e = tiny()
    model, _ = trained(e)
    pairs = e.task.sample(100, seeded(1))
    said = greedy(model, e.task.write(pairs)[:, : e.task.question], e.task.width + 1)
    right = (said == e.task.answers(pairs)).all(1)
    assert 0 < right.double().mean() < 1, "else this compares nothing"
    assert agreement(model, e.task, pairs, e.task.answers(pairs)) == pytest.approx(right.double().mean().item())
    for (a, b), tokens in list(zip(pairs.tolist(), said.tolist(), strict=True))[:10]:
        if max(tokens) <= 9:
            assert e.add(model, a, b) == int("".join(map(str, reversed(tokens))))


def test_without_new_digits_dropping_them_changes_nothing():
    e = tiny()
    model, run = trained(e)
    measured = e.finish(model, run)
    assert measured["right"].shape == measured["as_dropped"].shape == (1, 2)
    assert measured["right"][0, 0] == measured["as_dropped"][0, 0]


def test_a_model_of_remainders_adds_no_two_numbers():
    e = experiments.get("padded-101-learned-s0")
    with pytest.raises(ValueError, match="adds no two numbers"):
        e.add(e.build(), 1, 2)
