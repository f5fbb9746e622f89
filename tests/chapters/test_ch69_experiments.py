"""Studies of described sums: no sum of a test is trained on, and what is measured is what greedy decoding writes."""

import re

import numpy as np
import pytest
import torch
from short_runs import trained

from arithlib.training import AdamW
from chapters.ch61_character_gpt import CharacterGPTConfig, CharacterGPTs, sinusoids
from chapters.ch61_experiments import hits
from chapters.ch69_described_sums import FORMAT, bare, sentence, text
from chapters.ch69_experiments import PlacesExperiment, SentencesExperiment, by_place


def tiny(kind=PlacesExperiment, **more):
    settings = dict(
        name="described-tiny", about="a test", steps=30, evaluate_every=30, digits=2, n_ctx=40, seeds=(0, 1),
        batch_size=32, d_model=16, n_layers=1, test_size=20,
        optimizer=AdamW(lr=1e-2, warmup_steps=2, schedule="cosine"),
    )  # fmt: skip
    return kind(**settings | more)


ARMS = [
    {}, {"places": "shifts"}, {"places": "subsets"}, {"spaces": True},
    {"kind": SentencesExperiment, "kinds": ("bare", "sentences")},
]  # fmt: skip


@pytest.mark.parametrize("arm", ARMS)
def test_texts_of_training_are_right_and_none_is_of_a_test(arm):
    e = tiny(**arm)
    objective = e.objective(None, None)
    tests = {tuple(pair) for digits in (1, 2) for pair in e.test(digits).tolist()}
    assert {tuple(pair) for pair in objective.without.tolist()} == tests and len(tests) == 40
    seen = set()
    for step in range(20):
        tokens, written, _ = objective.batch(step)
        for row, asked in zip(tokens.flatten(0, 1), written.flatten(0, 1), strict=True):
            answer, question = text(row[asked]), text(row[: int(asked.int().argmax())])
            a, b = map(int, re.findall(r"\d+", question.replace(" ", "")))
            assert a + b == int(answer[::-1])
            seen.add((a, b))
    assert not seen & tests and len(seen) > 500


def test_seeds_have_texts_of_their_own_and_a_step_has_always_the_same():
    objective = tiny(places="subsets").objective(None, None)
    first, again = objective.batch(5), objective.batch(5)
    assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))
    alone = tiny(places="subsets", seeds=(1,)).objective(None, None).batch(5)
    assert all(torch.equal(one[0], other[1]) for one, other in zip(alone, first, strict=True))
    assert not torch.equal(first[0][0], first[0][1])


def test_places_choose_rows_of_the_table():
    model = CharacterGPTs(CharacterGPTConfig(12, 16, 2), (0, 1))
    tokens = torch.randint(16, (2, 3, 5))
    plain = torch.arange(5).expand(2, 3, -1)
    assert torch.allclose(model(tokens), model(tokens, plain), atol=1e-5)
    places = torch.tensor([1, 4, 5, 9, 11])
    moved = model(tokens, places.expand(2, 3, -1))
    with torch.no_grad():
        model.W_pos[:, :5] = model.W_pos[:, places].clone()
    assert torch.allclose(model(tokens), moved, atol=1e-5)


def test_fixed_positions_are_no_weights():
    learned, fixed, none = (
        CharacterGPTs(CharacterGPTConfig(12, 16, 1, positions=positions), (0, 1))
        for positions in ("learned", "sinusoidal", "none")
    )
    names = {name for name, _ in learned.named_parameters()}
    for model in (fixed, none):
        assert names - {name for name, _ in model.named_parameters()} == {"W_pos"}
        assert all(torch.equal(weight, learned.get_parameter(name)) for name, weight in model.named_parameters())
    table = [[(np.sin, np.cos)[i % 2](place / 10_000 ** (i // 2 * 2 / 16)) for i in range(16)] for place in range(12)]
    assert np.allclose(sinusoids(12, 16), 0.1 * np.sqrt(2) * np.array(table), atol=1e-6)
    assert not none.W_pos.any()
    for model in (fixed, none):
        model.load_state_dict({name: part.clone() for name, part in model.state_dict().items()})
    with pytest.raises(ValueError, match="choose one of"):
        CharacterGPTConfig(12, positions="rotary")


@pytest.mark.parametrize("arm", ARMS)
def test_what_is_read_to_be_right_is_what_greedy_decoding_writes(arm):
    e = tiny(**arm, steps=60, d_model=32, test_size=40)
    model, run = trained(e)
    found = e.finish(model, run)
    right = []
    for a, b in e.test(2).tolist():
        question, answer = bare(a, b)
        tokens, written, _ = e.asked([(question, answer)], e.width)
        said = model.complete(tokens, written.int().argmax(-1))
        right.append([text(one[0]) == question + answer for one in said])
    if e.places == "fixed":
        assert np.allclose(found["bare"][0], np.mean(right, 0))
    assert found["sentences"].shape == (1, 2, 4) and found["other"].shape == (1, 2)


def test_shares_by_place_against_counting():
    e = tiny()
    model, _ = trained(e)
    tokens, written, places = e.asked([bare(a, b) for a, b in e.test(2).tolist()], FORMAT.width(2))
    right = hits(model, tokens, written, places)
    said = model(tokens[..., :-1]).argmax(-1)
    for seed in range(2):
        at = [[], [], [], []]
        for row in range(20):
            for nth, place in enumerate(np.flatnonzero(written[0, row])):
                at[nth].append(bool(said[seed, row, place - 1] == tokens[seed, row, place]))
        assert np.allclose(by_place(right, written[0, :, 1:], 4)[seed], [np.mean(hit) for hit in at])


def test_what_a_finished_run_measures():
    e = tiny(spaces=True)
    found = e.finish(*trained(e))
    shapes = {name: values.shape[1:] for name, values in found.items()}
    assert shapes == {
        "by_length": (2, 4), "characters": (2, 4, 6), "moved": (2,), "spaced": (2, 4), "bare": (2,),
        "sentences": (2, 4), "other": (2,),
    }  # fmt: skip
    assert np.array_equal(np.isfinite(found["characters"][0, 0]).sum(1), [3, 4, 5, 6])


def test_places_are_read_where_they_are_planted_and_not_where_there_are_none():
    """Of two models one has planted places, the other its random table, and a layer that adds nothing."""
    e = tiny(digits=2, d_model=48, n_layers=1, test_size=100)
    model = e.build()
    with torch.no_grad():
        model.W_pos.zero_()
        model.W_pos[0, :, :40] = torch.eye(40)
        model.W_E[0] = 0
        for weight in (model.blocks[0]["W_O"], model.blocks[0]["W_out"]):
            weight.zero_()  # the layer adds nothing
    planted, bare_characters = e.place_read(model)
    assert (planted == 1).all()
    assert 0.3 < bare_characters[0] < 0.6 and bare_characters[1] == bare_characters[0]


def test_the_last_stream_is_what_the_logits_are_read_from():
    model = CharacterGPTs(CharacterGPTConfig(12, 16, 2), (0, 1))
    tokens = torch.randint(16, (2, 3, 5))
    streams = model.streams(tokens)
    assert [stream.shape for stream in streams] == [(2, 3, 5, 16)] * 3
    assert torch.allclose(streams[0], model.W_E[torch.arange(2)[:, None, None], tokens] + model.W_pos[:, None, :5])
    last = streams[-1]
    scaled = (last - last.mean(-1, keepdim=True)) / last.var(-1, unbiased=False, keepdim=True).add(1e-5).sqrt()
    assert torch.allclose(torch.einsum("sbtd,sdv->sbtv", scaled, model.W_U), model(tokens), atol=1e-4)


def test_words_alone_leave_no_answer_to_learn():
    e = tiny(kind=SentencesExperiment, kinds=("words",))
    tokens, written, _ = e.objective(None, None).batch(0)
    for row, asked in zip(tokens[0], written[0], strict=True):
        last = int(torch.nonzero(asked).max())
        assert text(row[: last + 1]).endswith(text(row[asked])) and text(row[last + 1 :]).isdigit()
    assert sentence("{a} and {b} make ", 1, 2)[1] == "3"
