"""Running totals on a grid: the fast ways give the numbers of the forward, and training uses them."""

import dataclasses
import random

import pytest
import torch
import torch.nn.functional as F

from arithlib import checkpoints, experiments
from arithlib.models.column import GRID, ColumnConfig, ColumnTransformer, table_address
from arithlib.tokenizer import END, CharacterTokenizer
from arithlib.training import AdamW, train
from chapters.ch74_experiments import PlanarExperiment, beyond, encode
from chapters.ch74_grid import answer_mask, contexts, continued, margins, right_by_line, total
from chapters.ch74_running_totals import LAYOUTS, RunningTotals

TINY = dict(d_model=8, n_heads=2, d_mlp=16)
FAMILY = experiments.match("planar-*")
QUICK = PlanarExperiment(
    name="planar-tiny", about="a test", steps=60, evaluate_every=30, batch_size=16, evaluation_count=20,
    task=RunningTotals(max_digits=2, max_count=2), model=ColumnConfig("grid", **TINY),
    optimizer=AdamW.cosine(1e-2, 60, warmup_steps=2),
)  # fmt: skip


def model(positions="grid", **more):
    return ColumnTransformer(ColumnConfig(positions, **TINY, **more), seed=1).eval().requires_grad_(False)


def tokens_of(text):
    return torch.tensor([CharacterTokenizer().encode(text, end=False)])


def sums(layout="rows", count=6):
    rng = random.Random(3)
    return [RunningTotals(layout=layout).sample(rng) for _ in range(count)]


@pytest.mark.parametrize("window", [1, 2])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_contexts_give_the_logits_of_the_forward(layout, window):
    made, tokens = model(window=window), encode(RunningTotals(layout=layout), sums(layout))
    query, keys, following = contexts(tokens, window)
    asked, place = answer_mask(tokens).nonzero().unbind(1)
    torch.testing.assert_close(made.slot_logits(query, keys), made(tokens)[asked, place])
    assert torch.equal(query, tokens[asked, place])
    assert torch.equal(following, tokens[asked, place + 1])


def test_a_margin_is_positive_where_every_step_of_the_answer_is_the_most_likely():
    task = RunningTotals()
    for positions in GRID:
        made, tokens = model(positions), encode(task, sums())
        logits = made(tokens)
        found = margins(made, tokens)
        for row, text in enumerate(tokens):
            worst = min(
                float(
                    logits[row, place, text[place + 1]]
                    - logits[row, place].index_fill(0, text[place + 1], -1e9).max()
                )
                for place in answer_mask(tokens)[row].nonzero()[:, 0].tolist()
            )
            assert float(found[row]) == pytest.approx(worst, abs=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_decoding_from_the_table_of_cells_is_greedy_decoding_by_the_forward(layout):
    made, task = model(), RunningTotals(layout=layout)
    for numbers in sums(layout, 4):
        prompt = task.ask(numbers)
        tokens = tokens_of(prompt)
        for _ in range(12):
            tokens = torch.cat([tokens, made(tokens)[:, -1:].argmax(-1)], 1)
            if tokens[0, -1] == END:
                break
        assert continued(made, prompt, 12) == CharacterTokenizer().decode(tokens[0].tolist())


def test_the_loss_is_that_of_the_forward_on_the_answer():
    for positions in GRID:
        experiment = dataclasses.replace(QUICK, model=ColumnConfig(positions, **TINY))
        made = experiment.build()
        rng = random.Random(7)
        tokens = encode(QUICK.task, [QUICK.task.sample(rng) for _ in range(16)])
        asks = answer_mask(tokens)[:, :-1]
        expected = F.cross_entropy(made(tokens)[:, :-1][asks], tokens[:, 1:][asks])
        torch.testing.assert_close(experiment.objective(made, None).loss(made, 7), expected)


def test_right_tokens_by_line_are_those_that_the_forward_makes_most_likely():
    for positions in ("grid", "distance"):
        made, tokens = model(positions), encode(RunningTotals(), sums())
        line, chosen = table_address(tokens)[1], made(tokens).argmax(-1)
        hits = {at: [] for at in range(int(line.max()) + 1)}
        for row, place in answer_mask(tokens).nonzero().tolist():
            hits[int(line[row, place])].append(float(chosen[row, place] == tokens[row, place + 1]))
        expected = [sum(hit) / len(hit) for hit in hits.values()]
        torch.testing.assert_close(right_by_line(made, tokens), torch.tensor(expected).double())


def test_sums_beyond_training_have_the_sizes_of_their_names():
    for name, (digits, count) in zip(beyond(QUICK.task), ((2, 2), (4, 2), (2, 4), (4, 4)), strict=True):
        drawn = beyond(QUICK.task, 50)[name]
        assert {len(numbers) for numbers in drawn} == {count}
        assert max(len(str(number)) for numbers in drawn for number in numbers) == digits


def test_training_lowers_the_loss():
    made = QUICK.build()
    run = train(made, QUICK.objective(made, None), QUICK.optimizer, QUICK.steps, evaluate_every=QUICK.evaluate_every)
    assert run.history["loss"][-1] < 0.9 * run.history["loss"][0]


def test_compared_variants_have_the_same_budget_and_all_see_small_sums_alone():
    assert len(FAMILY) >= 19
    assert {(e.batch_size, e.task.max_digits, e.task.max_count) for e in FAMILY} == {(48, 5, 4)}
    layouts = [e for e in FAMILY if e.name.startswith(("planar-rows", "planar-columns"))]
    assert {e.steps for e in layouts} == {3000} and {e.steps for e in FAMILY if e not in layouts} == {1500}


def test_a_shipped_model_adds_many_numbers_and_a_blind_one_says_so():
    made, rng = checkpoints.load("planar-rows-s0").model, random.Random(4)
    numbers = [rng.randrange(10**12) for _ in range(9)]
    assert total(made, RunningTotals(), numbers) == sum(numbers)
    torch.nn.init.zeros_(made.unembedding.weight)
    with pytest.raises(ValueError):
        total(made, RunningTotals(), numbers)
