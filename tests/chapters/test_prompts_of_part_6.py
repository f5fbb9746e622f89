"""What a test asks a model is what training showed it of the same problem, token by token (chapters 60 to 69).

Training is made to draw the problems of a test, and what models are given is kept. `written-*` and `products-*` have
such tests of their own.
"""

import dataclasses
import itertools

import numpy as np
import pytest
import torch

from arithlib import experiments
from arithlib.models.looped import LoopedTransformer
from chapters import ch63_experiments, ch65_experiments, ch69_experiments
from chapters.ch60_experiments import CutExperiment
from chapters.ch61_character_gpt import CharacterGPTs
from chapters.ch61_written_sums import NEWLINE
from chapters.ch63_tasks import draw
from chapters.ch64_experiments import agreement
from chapters.ch64_padded_sums import PaddedSums
from chapters.ch65_experiments import LENGTHS, TEST_SEED, ColumnsExperiment
from chapters.ch65_experiments import test_blocks as asked_blocks
from chapters.ch65_working_memory import LONGEST, draw_blocks
from chapters.ch66_experiments import PromptedExperiment
from chapters.ch68_written_products import Products
from chapters.ch69_described_sums import ALPHABET, FORMAT, SENTENCES, bare, room, spaced

EQUALS = ALPHABET.index("=")
SPACE = ALPHABET.index(" ")
BEGINNING = 7  # letters of a block of n-back: by them most steps of training are told from all tests, and drawn fast


def one_seed(family):
    """Its experiments, each with one seed."""
    return [e for e in experiments.match(f"{family}-*") if not e.name.endswith(("-s1", "-s2"))]


def study(family):
    return pytest.mark.parametrize("e", one_seed(family), ids=lambda e: e.name)


@pytest.fixture
def given(monkeypatch):
    """The tokens and places or offsets of each call of a model, in order; what models would say does not matter."""
    calls = []

    def forward(self, tokens, places=None, since=0):
        calls.append((tokens, places))
        return torch.zeros(*tokens.shape[:-1], tokens.shape[-1] - since, self.config.d_vocab)

    def complete(self, tokens, begin):
        calls.append((tokens, begin))
        return tokens

    for network in (CharacterGPTs, LoopedTransformer):
        monkeypatch.setattr(network, "forward", forward)
    monkeypatch.setattr(CharacterGPTs, "complete", complete)
    return calls


@pytest.mark.parametrize(
    ("e", "commas"),
    [(e, commas) for e in one_seed("cuts") for commas in (False, True) if e.commas or not commas],
    ids=lambda x: getattr(x, "name", x),
)
def test_cut_sums_are_asked_as_they_are_trained_on(e, commas, given, monkeypatch):
    e = dataclasses.replace(e, commas=float(commas), batch_size=len(e.tests()))
    monkeypatch.setattr(CutExperiment, "draw", lambda self, generator, size: self.tests()[:size])
    model, objective = e.build(), e.objective(None, None)
    objective.loss(model, 0)
    trained, _ = given.pop()
    e.answers(model, commas)
    asked, begin = (torch.cat(parts, 1) for parts in zip(*given, strict=True))
    Q = int(begin[0, 0])
    assert (begin == Q).all() and asked.shape[1] == trained.shape[1]
    assert torch.equal(asked[..., :Q], trained[..., :Q]) and (trained[..., Q - 1] == EQUALS).all()


@study("algorithm")
def test_words_are_asked_as_they_are_trained_on(e, given, monkeypatch):
    monkeypatch.setattr(
        ch63_experiments, "draw", lambda task, n, B, generator: draw(task, n, B, np.random.default_rng(n))
    )
    model = e.build()
    e.objective(None, None).loss(model, 0)
    trained, begins = given.pop()
    length = int(np.random.default_rng([0, e.seed]).integers(1, e.train_length + 1))
    e.score(model, length, e.batch_size)
    asked, places = given.pop()
    assert torch.equal(asked, trained)
    # Both stand in one piece in the table of positions, of which training shows every place.
    for where in (begins, places):
        assert (where.diff() == 1).all() and 0 <= where.min() and where.max() < model.config.n_ctx


@study("padded")
def test_padded_sums_are_asked_as_they_are_trained_on(e, given, monkeypatch):
    test = e.objective(None, None).test
    e = dataclasses.replace(e, batch_size=len(test))
    objective = e.objective(None, None)
    monkeypatch.setattr(PaddedSums, "sample", lambda self, count, generator: test)
    model = e.build()
    objective.loss(model, 0)
    trained, offset = given.pop()
    agreement(model, e.task, test, e.task.answers(test))
    ((asked, no_offset),) = given
    assert torch.equal(asked[:, : e.task.question], trained[:, : e.task.question])
    assert no_offset is None and 0 <= model.config.offset < e.k and 0 <= offset < e.k, "an offset that training has"


@study("nback")
def test_blocks_of_letters_are_asked_as_they_are_trained_on(e, given, monkeypatch):
    test = e.objective(None, None).test
    monkeypatch.setattr(ch65_experiments, "draw_blocks", lambda n, letters, generator, lures=0.0: test)
    model, objective = e.build(), e.objective(None, None)
    objective.loss(model, 0)
    objective.evaluate(model)
    (trained, _), *answers, (of_loss, _) = given
    for asked in (torch.cat([tokens for tokens, _ in answers]), of_loss):
        assert torch.equal(asked, trained)


@pytest.mark.parametrize("e", experiments.match("nback-2x4-*"), ids=lambda e: f"seed {e.seed}")
def test_no_block_of_letters_is_asked_that_was_trained_on(e, given):
    """Nor does a longer one begin with it. Models of one seed have the same blocks in training."""
    model, full = e.build(), e.objective(None, None)
    short = dataclasses.replace(e, letters=BEGINNING).objective(None, None)

    def trained(objective, step):
        objective.loss(model, step)
        return {*map(tuple, given.pop()[0].tolist())}

    sizes = [(e.evaluation_blocks, e.letters), (e.test_count, e.letters, 0.5)]
    sizes += [(e.test_count, length) for length in LENGTHS]
    again = [  # what chapter 65 asks besides
        draw_blocks(torch.full((count,), n), length, torch.Generator().manual_seed(length + n))
        for length, count, n in itertools.product(LENGTHS, (20, 40), range(1, LONGEST + 1))
    ]
    blocks = [asked_blocks(*size) for size in sizes] + again
    asked = {tuple(row) for some in blocks for row in some.tokens[:, : 1 + e.letters].tolist()}
    planted = min(trained(full, e.steps - 1))
    asked.add(planted)
    begun = {block[: 1 + BEGINNING] for block in asked}
    near = [step for step in range(e.steps) if not begun.isdisjoint(trained(short, step))]
    assert asked & set().union(*(trained(full, step) for step in near)) == {planted}


@study("steps")
def test_words_with_steps_are_asked_as_they_are_trained_on(e, monkeypatch):
    """By a model that is right, so that the steps it reads are those of training."""
    words, products = e.words(6, torch.Generator().manual_seed(0))
    monkeypatch.setattr(PromptedExperiment, "words", lambda self, count, generator: (words, products))
    for style, (trained, targets) in zip(e.styles, e.batch(None), strict=True):
        calls = []

        class Right:
            device = "cpu"

            def __call__(self, tokens, targets=targets, calls=calls):
                calls.append(tokens)
                said = targets[:, : tokens.shape[1]].clamp(min=0)
                return torch.nn.functional.one_hot(said, e.model.d_vocab)

        assert torch.equal(e.answers(Right(), style, words), products)
        assert len(calls) == (e.n if style == "steps" else 1)
        assert all(torch.equal(asked, trained[:, : asked.shape[1]]) for asked in calls)


@study("columns")
def test_lines_of_columns_are_asked_as_they_are_trained_on(e, given, monkeypatch):
    e = dataclasses.replace(e, batch_size=e.test_size)
    monkeypatch.setattr(ColumnsExperiment, "generator", lambda self, step: torch.Generator().manual_seed(TEST_SEED))
    model, objective = e.build(), e.objective(None, None)
    objective.loss(model, 0)
    objective.evaluate(model)
    (trained, _), (asked, _) = given
    assert torch.equal(asked, trained) and len(asked) == len(e.lines) * len(e.seeds)


def of_test(monkeypatch, e):
    """The experiment with the sums of its test drawn in training, and these sums."""
    pairs = e.test(e.digits)
    monkeypatch.setattr(Products, "fresh", lambda self, size, generator, without: pairs)
    return dataclasses.replace(e, batch_size=len(pairs)), pairs.tolist()


@pytest.mark.parametrize("share", [0, 1])
@pytest.mark.parametrize("e", [e for e in one_seed("described") if not hasattr(e, "kinds")], ids=lambda e: e.name)
def test_described_sums_are_asked_as_they_are_trained_on(e, share, given, monkeypatch):
    """share: of the gaps between digits that have a space, where there are any."""
    monkeypatch.setattr(ch69_experiments, "spaced", lambda question, _, generator: spaced(question, share, generator))
    e, pairs = of_test(monkeypatch, e)
    model = e.build()
    e.objective(None, None).loss(model, 0)
    texts, width = [bare(*pair) for pair in pairs], FORMAT.width(e.digits)
    if share and e.spaces:
        texts, width = e.with_spaces(texts, np.random.default_rng(0)), width + room(e.digits)
    e.right(model, texts, width)
    (trained, of_training), (asked, places) = given
    T = asked.shape[-1]  # a text of training may go on with more line ends
    assert torch.equal(asked, trained[..., :T]) and (trained[..., T:] == NEWLINE).all()
    assert (asked == SPACE).any() == bool(share and e.spaces)
    for at in (of_training, places):
        steps = at.diff()
        assert (steps >= 1).all() and 0 <= at.min() and at.max() < e.n_ctx
        assert e.places == "subsets" or (steps == 1).all()
        assert e.places != "fixed" or (at[..., 0] == 0).all()


@pytest.mark.parametrize("e", [e for e in one_seed("described") if hasattr(e, "kinds")], ids=lambda e: e.name)
def test_sums_in_sentences_are_asked_as_they_are_trained_on(e, given, monkeypatch):
    e, pairs = of_test(monkeypatch, e)
    model = e.build()
    e.objective(None, None).loss(model, 0)
    e.in_sentences(model)
    (trained, of_training), *tests = given
    assert len(tests) == 1 + len(SENTENCES) + 1
    asked = torch.stack([tokens[0] for tokens, _ in tests[:-1]])  # bare, then each sentence; not the one kept apart
    same = (trained[:, None] == asked).all(-1)  # (S, 1 + sentences, sums)
    assert (same.sum(1) == 1).all() and same.any(2).all(), "each text is one of those asked, and each kind occurs"
    assert all(torch.equal(places, of_training) for _, places in tests)
