"""A stack of small GPTs is what its models are one by one, and its measures are those of greedy decoding."""

import dataclasses

import numpy as np
import pytest
import torch
from short_runs import seeded, trained

from arithlib import experiments
from arithlib.training import AdamW
from chapters.ch61_character_gpt import CharacterGPTConfig, CharacterGPTs
from chapters.ch61_experiments import PIECE, WrittenExperiment, of_length, pieces, score, up_to_the_end
from chapters.ch61_written_sums import ALPHABET, NEWLINE, Format, Sample, WithoutDigit

PLUS = ALPHABET.index("+")
CONFIG = CharacterGPTConfig(n_ctx=12, d_model=16, n_layers=2, n_heads=2)


def tiny(**more):
    settings = dict(
        name="written-tiny", about="a test", steps=30, evaluate_every=30, format=Format(), d_model=16, n_layers=1,
        samples=(Sample(60, shares=(0.5, 0.5)), Sample(200, shares=(0.2, 0.8))), seeds=(0, 1), batch_size=8,
        test_size=20, optimizer=AdamW(lr=3e-3, weight_decay=0.1, warmup_steps=2, schedule="cosine"),
    )  # fmt: skip
    return WrittenExperiment(**settings | more)


def test_each_model_of_a_stack_is_the_model_of_its_seed_alone():
    tokens = torch.randint(len("0123456789"), (3, 4, 12), generator=seeded())
    stack = CharacterGPTs(CONFIG, (5, 6, 5))
    for index, seed in enumerate((5, 6, 5)):
        alone = CharacterGPTs(CONFIG, (seed,))(tokens[index : index + 1])
        torch.testing.assert_close(stack(tokens)[index : index + 1], alone)


def test_training_a_stack_is_training_its_models_one_by_one():
    together, run = trained(tiny())
    for index, (sample, seed) in enumerate(tiny().members):
        alone = tiny(samples=(sample,), seeds=(seed,))
        # Draws of a step are those of the experiment's own seed, which both have.
        model, own = trained(alone)
        np.testing.assert_allclose(
            run.history["loss"].reshape(2, 4)[:, index], own.history["loss"][:, 0, 0], rtol=1e-3
        )
        torch.testing.assert_close(together.W_U[index], model.W_U[0], rtol=1e-2, atol=1e-4)


def test_a_token_sees_nothing_after_it():
    model, tokens = CharacterGPTs(CONFIG, (0,)), torch.randint(10, (1, 1, 12), generator=seeded())
    changed = tokens.clone()
    changed[..., 7] = (changed[..., 7] + 1) % 10
    before, after = model(tokens), model(changed)
    assert torch.equal(before[..., :7, :], after[..., :7, :]) and not torch.equal(before[..., 7, :], after[..., 7, :])


def test_right_as_read_is_right_as_written():
    """What is scored with the right text before it is what greedy decoding writes, and what `add` says."""
    sample = Sample(60, shares=(1.0,))
    e = tiny(steps=400, samples=(sample,), seeds=(0,), format=Format("reversed"), d_model=32)
    model, _ = trained(e)
    pairs = sample.draw(0, e.test_pairs())
    lines = e.lines(pairs)
    right, _ = score(model, lines)
    said = model.complete(lines.tokens[None], lines.written.int().argmax(1)[None])[0]
    assert torch.equal(right[0], (said == lines.tokens).all(1))
    assert 0 < right.double().mean() < 1, "else this compares nothing"
    assert e.answers(model, [pairs]).item() == pytest.approx(right.double().mean().item())
    for (a, b), well in zip(pairs.tolist(), right[0].tolist(), strict=True):
        assert (e.add(model, a, b) == a + b) == well


def test_after_its_line_end_a_text_is_ended():
    model = CharacterGPTs(CONFIG, (0, 1))
    tokens = torch.randint(10, (2, 5, 12), generator=seeded())
    begin = torch.full((2, 5), 6)
    begin[0, 0] = 3
    said = model.complete(tokens, begin)
    assert torch.equal(said[0, 0, :3], tokens[0, 0, :3]) and torch.equal(said[1, :, :6], tokens[1, :, :6])
    for text, first in zip(said.flatten(0, 1).tolist(), begin.flatten().tolist(), strict=True):
        if NEWLINE in text[first:]:
            end = text.index(NEWLINE, first)
            assert set(text[end:]) == {NEWLINE}


def test_once_every_text_has_ended_the_model_is_not_asked_again(monkeypatch):
    asked = []

    def ends_at_once(self, tokens, places=None):
        asked.append(tokens.shape[2])
        return torch.nn.functional.one_hot(torch.full(tokens.shape, NEWLINE), len(ALPHABET))

    monkeypatch.setattr(CharacterGPTs, "forward", ends_at_once)
    tokens, begin = torch.randint(10, (1, 5, 12), generator=seeded()), torch.full((1, 5), 6)
    begin[0, 0] = 3
    said = CharacterGPTs(CONFIG, (0,)).complete(tokens, begin)
    assert asked == [3, 4, 5, 6]
    written = torch.arange(12) >= begin[..., None]
    assert (said[written] == NEWLINE).all() and torch.equal(said[~written], tokens[~written])


def test_a_test_is_in_no_set_and_the_longest_sums_are_of_the_test():
    e = tiny()
    test = {*map(tuple, e.test_pairs().tolist())}
    for sample, seed in e.members:
        assert not test & {*map(tuple, sample.draw(seed, e.test_pairs()).tolist())}
    assert {*map(tuple, of_length(2, e.test_size).tolist())} <= test
    for digits in (1, 2, 3):
        assert {len(str(longer)) for longer in of_length(digits, 50).max(1).tolist()} == {digits}


def test_what_a_finished_run_measures():
    e = tiny(samples=(Sample(60, shares=(0.5, 0.5), left_out=10),))
    model, run = trained(e)
    measured = e.finish(model, run)
    assert {name: values.shape for name, values in measured.items()} == {
        "answered": (1, 1, 2), "by_length": (1, 1, 2, 3), "unseen": (1, 1, 2),
    }  # fmt: skip
    assert not np.isnan(measured["unseen"]).any()
    assert np.isnan(tiny().finish(*trained(tiny()))["unseen"]).all()


def test_sums_of_numbers_that_no_set_has_are_asked(monkeypatch):
    e, asked = tiny(samples=(WithoutDigit(60, shares=(0.5, 0.5), place=1, digit=3),)), []
    model, run = trained(e)
    monkeypatch.setattr(
        type(e), "answers", lambda self, model, pairs, bare=False: asked.append(pairs) or np.zeros((1, 2))
    )
    e.finish(model, run)
    assert {int(number) // 10 for part in asked[-2] for number in part.ravel()} == {3}


def test_every_registered_study_can_be_drawn_and_is_about_one_number_of_digits():
    for e in experiments.match("written-*"):
        assert len({sample.digits for sample in e.samples}) == 1
        small = dataclasses.replace(e, samples=e.samples[:1], seeds=e.seeds[:1])
        tokens, written = small.objective(small.build(), None).batch(0)
        width = PIECE if e.reads == "text" else e.format.width(e.digits)
        assert tokens.shape == written.shape == (1, e.batch_size, width) and written.any()


def test_an_answer_that_is_no_number_is_refused(monkeypatch):
    e = tiny()
    model = e.build()
    monkeypatch.setattr(model, "complete", lambda tokens, begin: torch.where(tokens == NEWLINE, NEWLINE, PLUS))
    with pytest.raises(ValueError, match="no number"):
        e.add(model, 1, 2)


def spelled(tokens):
    return "".join(ALPHABET[token] for token in tokens.tolist())


def test_what_is_learned_of_a_line_is_all_of_it():
    lines = tiny().lines(np.array([[1, 2], [99, 99]]))
    assert [spelled(row[learned]) for row, learned in zip(lines.tokens, up_to_the_end(lines), strict=True)] == [
        "\n1+2=3\n",
        "\n99+99=198\n",
    ]


def test_pieces_are_those_of_the_running_text_and_a_prompt_stands_in_it_as_it_is_asked():
    pairs = np.array([[1, 2], [99, 99], [30, 4]])
    text, lines = "\n1+2=3\n99+99=198\n30+4=34\n", tiny().lines(pairs)
    found = pieces(lines, 7)
    assert found.written.all()
    assert list(map(spelled, found.tokens)) == [text[start : start + 7] for start in range(len(text) - 6)]
    for row, written in zip(lines.tokens, lines.written, strict=True):
        assert spelled(row[: int(written.int().argmax())]) in text


def test_a_model_of_a_running_text_is_also_asked_without_the_line_end_before_a_sum():
    sample = Sample(60, shares=(1.0,))
    e = tiny(reads="text", steps=400, samples=(sample,), seeds=(0,), d_model=32)
    model, run = trained(e)
    tokens, learned = e.objective(model, "cpu").batch(3)
    assert tokens.shape == (1, 8, PIECE) and learned.all()
    pairs = sample.draw(0, e.test_pairs())
    lines = e.lines(pairs)
    said = model.complete(lines.tokens[None, :, 1:], lines.written.int().argmax(1)[None] - 1)[0]
    right = (said == lines.tokens[:, 1:]).all(1).double().mean().item()
    assert 0 < right < 1, "else this compares nothing"
    assert e.answers(model, [pairs], bare=True).item() == pytest.approx(right)
    assert e.finish(model, run)["bare"].shape == (1, 1, 1)
    assert "bare" not in dataclasses.replace(e, reads="lines").finish(model, run)


def test_a_way_of_reading_must_be_known():
    with pytest.raises(ValueError, match="choose one of answers, lines, text"):
        tiny(reads="books")


def test_a_curriculum_teaches_short_sums_first_and_in_the_end_the_same_ones():
    plain, taught = tiny(), tiny(curriculum=True)
    objectives = [e.objective(None, torch.device("cpu")) for e in (plain, taught)]
    sets = [[set(map(spelled, lines.tokens)) for lines in objective.sets] for objective in objectives]
    assert sets[0] == sets[1]

    def longest(objective, step):
        """Digits of the longest operand in what each model is shown at this step."""
        questions = [[spelled(text).strip().partition("=")[0] for text in part] for part in objective.batch(step)[0]]
        return [max(len(number) for question in part for number in question.split("+")) for part in questions]

    # Two lengths: the second begins after a quarter of 30 steps.
    assert all(longest(objectives[1], step) == [1] * 4 for step in range(8))
    assert [taught.taught(step) for step in (0, 7, 8, 29)] == [1, 1, 2, 2]
    assert all(max(longest(objectives[1], step)) == 2 for step in range(8, 30))
    assert all(max(longest(objectives[0], step)) == 2 for step in range(30))
    assert objectives[1].shown(7) == [30, 30, 40, 40]
    assert objectives[1].shown(8) == objectives[0].shown(0) == [60, 60, 200, 200]


def test_a_running_text_has_no_curriculum():
    with pytest.raises(ValueError, match="no short sums to begin with"):
        tiny(reads="text", curriculum=True)


def test_dropout_acts_in_training_alone_and_alike_at_one_step():
    e, same = tiny(dropout=0.5), tiny()
    model, plain = e.build(), same.build()
    objective, without = e.objective(model, "cpu"), same.objective(plain, "cpu")
    torch.manual_seed(1)
    first = objective.loss(model, 3).item()
    torch.manual_seed(2)
    assert objective.loss(model, 3).item() == first != without.loss(plain, 3).item()
    np.testing.assert_array_equal(objective.evaluate(model)["loss"], without.evaluate(plain)["loss"])
    state = torch.random.get_rng_state()
    objective.loss(model, 4)
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("silent", [("W_O", "W_out"), ("W_out",), ("W_O",)])
@torch.no_grad()
def test_dropout_acts_on_the_embedding_and_on_what_each_part_of_a_layer_writes(silent):
    """A quarter of each is zero, and its mean over many masks stays what it is."""
    torch.manual_seed(0)
    model = CharacterGPTs(CharacterGPTConfig(8, 32, 1, dropout=0.25), (0,))
    for name in silent:
        model.blocks[0][name].zero_()
    tokens = torch.randint(10, (1, 1, 8), generator=seeded()).expand(1, 4000, 8)
    embedded, after = model.streams(tokens)
    dropped = embedded if len(silent) == 2 else after - embedded
    assert (dropped == 0).double().mean() == pytest.approx(0.25, abs=0.01)
    if len(silent) == 2:
        torch.testing.assert_close(embedded.mean(1), model.eval().streams(tokens[:, :1])[0][:, 0], atol=0.02, rtol=0)


def test_dropout_acts_on_attention_weights(monkeypatch):
    rates, attend = [], torch.nn.functional.scaled_dot_product_attention
    record = lambda *of, dropout_p=0.0, **more: rates.append(dropout_p) or attend(*of, dropout_p=dropout_p, **more)  # noqa: E731
    monkeypatch.setattr("chapters.ch61_character_gpt.F.scaled_dot_product_attention", record)
    model = CharacterGPTs(CharacterGPTConfig(8, 16, 1, dropout=0.25), (0,))
    tokens = torch.zeros(1, 1, 8, dtype=torch.long)
    model(tokens), model.eval()(tokens)
    assert rates == [0.25, 0.0]


@pytest.mark.parametrize("rate", (-0.1, 1.0))
def test_what_is_dropped_must_be_a_share_below_one(rate):
    with pytest.raises(ValueError, match="dropout"):
        tiny(dropout=rate).build()
