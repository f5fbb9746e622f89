"""Addresses in the plane: what each token sees, and that the fast ways are the forward."""

import dataclasses
import math
import random

import pytest
import torch
import torch.nn.functional as F

from arithlib import checkpoints, experiments
from arithlib.experiments.planar import PlanarExperiment, beyond, encode
from arithlib.models.planar import (
    ADDRESSES,
    PlanarConfig,
    PlanarTransformer,
    answer_mask,
    contexts,
    continued,
    margins,
    right_by_line,
    table_address,
    total,
)  # fmt: skip
from arithlib.tasks.totals import LAYOUTS, RunningTotals
from arithlib.tokenizer import END, CharacterTokenizer
from arithlib.training import ScheduledAdamW, train

TINY = dict(d_model=8, n_heads=2, d_mlp=16)
FAMILY = experiments.match("planar-*")
QUICK = PlanarExperiment(
    name="planar-tiny", about="a test", steps=60, evaluate_every=30, batch_size=16, evaluation_count=20,
    task=RunningTotals(max_digits=2, max_count=2), model=PlanarConfig(**TINY),
    optimizer=ScheduledAdamW(lr=1e-2, steps=60, warmup_steps=2),
)  # fmt: skip


def model(addresses="plane", **more):
    return PlanarTransformer(PlanarConfig(**TINY, addresses=addresses, **more), seed=1).eval().requires_grad_(False)


def tokens_of(text):
    return torch.tensor([CharacterTokenizer().encode(text, end=False)])


def sums(layout="rows", count=6):
    rng = random.Random(3)
    return [RunningTotals(layout=layout).sample(rng) for _ in range(count)]


def by_hand(m, tokens):
    """Logits of one text, query by query and key by key."""
    part, line, index = (row[0].tolist() for row in table_address(tokens[None]))
    c, x = m.config, m.embedding(tokens)
    if c.addresses == "label":
        x = x + torch.stack([m.lines.weight[min(at, c.reach - 1)] for at in line])
    q, k, v = m.qkv(x).unflatten(-1, (3, c.n_heads, -1)).unbind(1)
    logits = []
    for t in range(len(tokens)):
        seen = {}
        for s in range(t + 1):
            up, left = line[t] - line[s], index[t] + 1 - index[s]
            near = range(c.window + 1)
            if c.addresses == "plane" and up in near and left in near:
                seen[s] = (part[s] * len(near) + up) * len(near) + left
            elif c.addresses in ("label", "index") and left in near:
                seen[s] = part[s] * len(near) + left
            elif c.addresses == "token":
                seen[s] = min(t - s, c.reach)
        z = []
        for h in range(c.n_heads):
            scores = [q[t, h] @ k[s, h] / math.sqrt(k.shape[-1]) + m.near[slot, h] for s, slot in seen.items()]
            values = [v[s, h] + m.near_value[slot, h] for s, slot in seen.items()]
            z.append(torch.stack(scores).softmax(0) @ torch.stack(values))
        mid = x[t] + m.out(torch.cat(z))
        logits.append(m.unembedding(mid + m.mlp_out(m.mlp_in(mid).relu())))
    return torch.stack(logits)


def test_addresses_are_those_of_the_docstring():
    part, line, index = (row[0].tolist() for row in table_address(tokens_of("21+43+5=21=64=15=$")))
    assert part == [0] * 7 + [1] * 11
    assert line == [0, 0, 1, 1, 1, 2, 2, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3]
    assert index == [1, 2, 0, 1, 2, 0, 1, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 0]


@pytest.mark.parametrize("addresses", ADDRESSES)
@pytest.mark.parametrize("more", [{}, {"window": 2, "reach": 3}])
def test_the_forward_is_the_definition(addresses, more):
    made = model(addresses, **more).double()
    for numbers in sums(count=3):
        tokens = encode(RunningTotals(), [numbers])
        torch.testing.assert_close(made(tokens)[0], by_hand(made, tokens[0]))


@pytest.mark.parametrize("window", [1, 2])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_contexts_give_the_logits_of_the_forward(layout, window):
    made, tokens = model(window=window), encode(RunningTotals(layout=layout), sums(layout))
    query, keys, following, row = contexts(tokens, window)
    asked, place = answer_mask(tokens).nonzero().unbind(1)
    torch.testing.assert_close(made.context_logits(query, keys), made(tokens)[asked, place])
    assert torch.equal(query, tokens[asked, place]) and torch.equal(row, asked)
    assert torch.equal(following, tokens[asked, place + 1])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_answer_token_in_the_plane_depends_on_seven_tokens_alone(layout):
    made, text = model(), RunningTotals(layout=layout).write([123, 456, 789])
    tokens = tokens_of(text)
    slots = made.slots(tokens)[0]
    for place in answer_mask(tokens)[0].nonzero()[:, 0].tolist():
        seen = set((slots[place] >= 0).nonzero()[:, 0].tolist())
        assert place in seen and len(seen) <= 7 and max(seen) == place
        for changed in range(place + 1):
            if tokens[0, changed] < 10:  # a sign would change addresses
                other = tokens.clone()
                other[0, changed] = (tokens[0, changed] + 1) % 10
                same = torch.equal(made(other)[0, place], made(tokens)[0, place])
                assert same == (changed not in seen), (place, changed)


def test_a_margin_is_positive_where_every_step_of_the_answer_is_the_most_likely():
    task = RunningTotals()
    for addresses in ADDRESSES:
        made, tokens = model(addresses), encode(task, sums())
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
    for addresses in ADDRESSES:
        experiment = dataclasses.replace(QUICK, model=PlanarConfig(**TINY, addresses=addresses))
        made = experiment.build()
        rng = random.Random(7)
        tokens = encode(QUICK.task, [QUICK.task.sample(rng) for _ in range(16)])
        asks = answer_mask(tokens)[:, :-1]
        expected = F.cross_entropy(made(tokens)[:, :-1][asks], tokens[:, 1:][asks])
        torch.testing.assert_close(experiment.objective(made, None).loss(made, 7), expected)


def test_right_tokens_by_line_are_those_that_the_forward_makes_most_likely():
    for addresses in ("plane", "token"):
        made, tokens = model(addresses), encode(RunningTotals(), sums())
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


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"n_heads": 3}, "multiple"), ({"window": 0}, "at least 1"), ({"addresses": "polar"}, "plane, label, index")],
)
def test_impossible_configurations_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        PlanarConfig(**{**TINY, **wrong})
