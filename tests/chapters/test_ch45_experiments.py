"""Experiments on words over a group: what is asked, where, and what is measured."""

import dataclasses
from itertools import permutations

import pytest
import torch
from short_runs import seeded, trained

from arithlib.experiments.depth import IGNORE_INDEX
from arithlib.models.looped import LoopedConfig
from arithlib.training import AdamW
from chapters.ch45_experiments import GROUPS, WordExperiment
from presets.words import LETTERS, MORE_LETTERS

TINY = WordExperiment(
    name="words-tiny", about="a test", steps=2, evaluate_every=2, group="Z60", letters=(1, 7), n=5, batch_size=6,
    evaluation_count=8, optimizer=AdamW.cosine(1e-3, 2, warmup_steps=1),
    model=LoopedConfig(
        d_model=16, n_heads=2, d_mlp=16, n_layers=1, n_loops=2, positions="learned", n_ctx=11, injection="none",
        d_vocab=61,
    ),
)  # fmt: skip


@pytest.mark.parametrize("name", GROUPS)
def test_words_of_one_length_make_the_whole_group(name):
    assert (GROUPS[name].distribution(LETTERS[name], 200)[-1] > 0).all()


def test_the_letters_of_the_permutations_are_a_short_cycle_and_one_of_five():
    everything = list(permutations(range(5)))
    assert [everything[letter] for letter in LETTERS["S5"]] == [(1, 0, 2, 3, 4), (1, 2, 3, 4, 0)]
    table, five, three = GROUPS["A5"].table, LETTERS["A5"][1], LETTERS["A5"][0]
    powers = GROUPS["A5"].running_products(torch.tensor([[three] * 5, [five] * 5]))
    assert powers[0, 2] == 0 and powers[1, 4] == 0 and table[three, five] != table[five, three]


def test_every_product_is_asked_at_the_letter_that_completes_it():
    tokens, targets = TINY.examples(20, seeded())
    assert (tokens[:, 0] == 60).all() and (targets[:, 0] == IGNORE_INDEX).all()
    assert (targets[:, 1:] == tokens[:, 1:].cumsum(1) % 60).all()
    assert set(tokens[:, 1:].unique().tolist()) == {1, 7}


def test_aloud_the_products_stand_in_the_text_and_are_asked_before_they_do():
    tokens, targets = dataclasses.replace(TINY, chain_of_thought=True).examples(20, seeded())
    letters, products = tokens[:, 1::2], tokens[:, 2::2]
    assert (products == letters.cumsum(1) % 60).all() and targets[:, 1::2].equal(products)
    assert (targets[:, ::2] == IGNORE_INDEX).all()


@pytest.mark.parametrize("chain_of_thought", [False, True])
def test_a_run_measures_every_place_and_other_loops(chain_of_thought):
    experiment = dataclasses.replace(TINY, chain_of_thought=chain_of_thought)
    model, run = trained(experiment)
    by_place = experiment.finish(model, run)["accuracy_by_place"]
    assert by_place.shape == (1, 4, 5) and ((by_place >= 0) & (by_place <= 1)).all()


def test_the_last_place_is_right_at_least_as_often_as_the_whole_word():
    experiment = dataclasses.replace(
        TINY, n=3, letters=MORE_LETTERS[:2], steps=60, evaluate_every=60, batch_size=32, evaluation_count=100,
        optimizer=AdamW.cosine(1e-2, 60, warmup_steps=5),
    )  # fmt: skip
    model, run = trained(experiment)
    first, *_, last = experiment.finish(model, run)["accuracy_by_place"][0, 1]
    assert run.history["accuracy"][0] < 0.3 and run.history["accuracy"][-1] <= last + 0.1 and first > 0.9
