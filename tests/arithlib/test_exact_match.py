"""One forward pass tells what greedy decoding would write; planted models get exactly the score they earn."""

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from arithlib import checkpoints
from arithlib.decoding import greedy
from arithlib.exact_match import TOKENS_A_PASS, error_by_carry_chain, length_grid, score
from arithlib.models.looped import LoopedConfig, LoopedTransformer
from arithlib.models.positions import SCHEMES, Offsets
from arithlib.tasks.operands import OperandTask, carries, lengths_of
from arithlib.tokenizer import END
from arithlib.training import AdamW

TINY = LoopedConfig(d_model=32, n_heads=2, d_mlp=64, n_layers=1, n_loops=2, n_rows=64, n_ctx=64, offset=2)
TASK = OperandTask(max_digits=1)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def half_trained(scheme="abacus"):
    """A model that gets some one-digit sums right and others wrong."""
    model = LoopedTransformer(dataclasses.replace(TINY, positions=scheme))
    optimizer = AdamW(lr=5e-3, weight_decay=0.0).build(model.parameters())
    for step in range(120):
        batch = TASK.sample(64, generator(step))
        optimizer.zero_grad()
        logits = model(batch.tokens[:, :-1]).transpose(1, 2)
        losses = nn.functional.cross_entropy(logits, batch.tokens[:, 1:], reduction="none")
        losses[batch.answer_mask[:, 1:]].mean().backward()
        optimizer.step()
    return model


@pytest.mark.parametrize("scheme", ["abacus", "abacus-qk", "none"])
def test_teacher_forcing_finds_exactly_the_sums_that_greedy_decoding_gets_right(scheme):
    assert scheme in SCHEMES
    model = half_trained(scheme)
    problems = TASK.from_numbers([(a, b) for a in range(10) for b in range(10)])
    exact = score(model, problems).exact
    written = greedy(model, problems.prompts(), 3)
    padded = torch.cat([problems.tokens, problems.tokens.new_full((100, 3), END)], 1)[:, 4:7]
    assert torch.equal(exact, (written == padded[:, : written.shape[1]]).all(1))
    assert 0 < exact.sum() < 100


def test_redrawn_offsets_are_scored_as_they_are_decoded():
    model, policy = half_trained(), Offsets("redrawn", k=6)
    problems = TASK.from_numbers([(a, b) for a in range(10) for b in range(10)])
    exact = score(model, problems, offsets=policy, generator=generator(5)).exact
    written = greedy(model, problems.prompts(), 3, offsets=policy, generator=generator(5))
    assert torch.equal(exact, (written == problems.tokens[:, 4:7]).all(1))
    assert 0 < exact.sum() < 100


def plainly(model, problems, policies):
    """Whether each sum is written right: one sum, one place and one offset at a time."""
    exact = []
    for row in range(len(problems)):
        one, right = problems[[row]], True
        for place in range(int(one.start), int(one.stop)):
            with torch.enable_grad():  # the products as torch takes them
                logits = [model(one.tokens[:, :place], torch.tensor([[p.value]])) for p in policies]
            log_prob = torch.stack([x[0, -1].double().log_softmax(-1) for x in logits]).mean(0)
            right &= int(log_prob.argmax()) == int(one.tokens[0, place])
        exact.append(right)
    return torch.tensor(exact)


@pytest.mark.parametrize("name", [None, "abacus-cpu-s0", "abacus-source-ten-s0"])
def test_sums_of_many_lengths_are_scored_as_one_by_one(name):
    model = checkpoints.load(name).model if name else half_trained()
    longest = 24 if name else 1
    lengths = torch.randint(1, longest + 1, (10, 2), generator=generator())
    problems = OperandTask().problems(lengths, generator())
    for values in ((2,), (0, 20)):
        policies = [Offsets("fixed", value=value) for value in values]
        exact = score(model, problems, offsets=policies).exact
        assert torch.equal(exact, plainly(model, problems, policies)) and exact.any()


@pytest.mark.parametrize("others", [[], [Offsets("fixed", value=1)]])
def test_a_sum_is_left_at_its_last_wrong_token_if_no_more_is_asked(others):
    model, policies = half_trained(), [Offsets("redrawn", k=6), *others]
    problems = OperandTask(max_digits=2).sample(100, generator())
    whole = score(model, problems, offsets=policies)
    least = score(model, problems, offsets=policies, until_wrong=True)
    assert torch.equal(least.exact, whole.exact) and 0 < whole.exact.sum() < 100
    wrong = ~whole.right & whole.mask
    left = (wrong.flip(1).int().cumsum(1).flip(1) - wrong.int() > 0) | ~whole.mask
    assert least.log_probability[left].isnan().all() and left[whole.mask].any()
    torch.testing.assert_close(least.log_probability[~left].float(), whole.log_probability[~left].float())


def test_several_offsets_decide_together_in_scoring_as_in_decoding():
    model, policies = half_trained(), [Offsets("fixed", value=value) for value in (0, 2, 9)]
    problems = TASK.from_numbers([(a, b) for a in range(10) for b in range(10)])
    together = score(model, problems, offsets=policies)
    written = greedy(model, problems.prompts(), 3, offsets=policies)
    assert torch.equal(together.exact, (written == problems.tokens[:, 4:7]).all(1))
    alone = [score(model, problems, offsets=policy) for policy in policies]
    torch.testing.assert_close(together.log_probability, torch.stack([s.log_probability for s in alone]).mean(0))
    assert not torch.equal(together.exact, alone[0].exact)
    with pytest.raises(ValueError, match="no offset policy"):
        score(model, problems, offsets=[])
    with pytest.raises(ValueError, match="needs address"):
        score(model, problems, offsets=[*policies, Offsets("fixed", value=62)])


class Adder(nn.Module):
    """Writes every sum of its batch right, but for the columns and sums it is told to spoil."""

    def __init__(self, spoil=lambda a, b, column: False, digits=12):
        super().__init__()
        self.spoil, self.digits, self.device = spoil, digits, torch.device("cpu")
        self.offsets, self.positions = Offsets("fixed"), LoopedTransformer(TINY).positions

    def forward(self, tokens, offset, loops=None, cache=None, since=0):
        logits = torch.zeros(*tokens.shape, 15)
        for row, text in enumerate(tokens.tolist()):
            plus, equals = text.index(11), text.index(13)
            a, b = (int("".join(map(str, reversed(x)))) for x in (text[:plus], text[plus + 1 : equals]))
            answer = [*map(int, reversed(str(a + b))), END]
            for column, token in enumerate(answer):
                if equals + column < len(text):
                    logits[row, equals + column, 12 if self.spoil(a, b, column) else token] = 20
        return logits


def test_a_perfect_adder_has_full_marks_and_perplexity_one():
    problems = OperandTask(max_digits=6).sample(50, generator())
    scores = score(Adder(), problems)
    assert scores.exact.all() and scores.perplexity.max() < 1 + 1e-6
    assert scores.error_by_place.nan_to_num().max() == 0


def test_an_error_in_one_column_shows_there():
    problems = OperandTask(max_digits=6).problems(torch.full((40, 2), 6), generator())
    scores = score(Adder(lambda a, b, column: column == 2 and a % 2 == 0), problems)
    even = problems.a[:, 0] % 2 == 0
    assert torch.equal(scores.exact, ~even) and 0 < even.sum() < 40
    assert scores.error_by_place[:6].tolist() == pytest.approx([0, 0, float(even.double().mean()), 0, 0, 0])


def test_perplexity_is_the_reciprocal_geometric_mean_over_the_tokens_of_each_answer():
    problems = TASK.from_numbers([(1, 1), (999_999, 1), (5, 5)])

    class Even(Adder):
        def forward(self, tokens, *_, **__):
            return torch.zeros(*tokens.shape, 15)

    assert score(Even(), problems).perplexity.tolist() == pytest.approx([15, 15, 15])


def test_a_grid_finds_the_cells_that_fail():
    grid = length_grid(Adder(lambda a, b, column: len(str(b)) == 3), OperandTask(), [1, 4], [2, 3, 5], count=4)
    assert grid.tolist() == [[1, 0, 1], [1, 0, 1]]


def test_a_grid_may_choose_its_offsets_by_the_longer_operand():
    asked = []

    def offsets(digits):
        asked.append(digits)
        return [Offsets("fixed", value=digits)]

    grid = length_grid(
        Adder(lambda a, b, column: len(str(b)) == 3), OperandTask(), [1, 4], [2, 3, 5], count=4, offsets=offsets
    )
    assert grid.tolist() == [[1, 0, 1], [1, 0, 1]] and asked == [2, 3, 4, 5]


def test_a_grid_is_the_same_under_any_number_of_cells_a_pass_and_loops_can_be_chosen(monkeypatch):
    model = half_trained()
    whole = length_grid(model, TASK, [1, 2], [1], count=200)
    monkeypatch.setitem(TOKENS_A_PASS, "cpu", 40)
    assert np.array_equal(whole, length_grid(model, TASK, [1, 2], [1], count=200))
    assert 0 < whole[0, 0] < 1
    assert not np.array_equal(whole, length_grid(model, TASK, [1, 2], [1], count=200, loops=1))


def test_errors_are_counted_by_the_longest_carry_chain():
    problems = OperandTask(max_digits=4).sample(300, generator())
    chains = torch.tensor([0] * 300)
    for row, carry in enumerate(carries(problems.a, problems.b).tolist()):
        columns = (problems.a + problems.b)[row].tolist()
        run = 0
        for column, into in enumerate(carry[1:]):
            run = 0 if not into else 1 if columns[column] > 9 else run + 1
            chains[row] = max(int(chains[row]), run)
    error, total = error_by_carry_chain(problems, score(Adder(lambda a, b, column: a > b), problems))
    assert total.tolist() == torch.bincount(chains).tolist()
    larger = torch.tensor([int("".join(map(str, reversed(x)))) for x in problems.a.tolist()]) > torch.tensor(
        [int("".join(map(str, reversed(x)))) for x in problems.b.tolist()]
    )
    for chain, share in enumerate(error):
        assert share == pytest.approx(float(larger[chains == chain].double().mean()), nan_ok=True)


def test_addresses_beyond_the_table_are_refused_before_they_are_looked_up():
    long = OperandTask().problems(torch.tensor([[62, 1]]), generator())
    assert int(lengths_of(long.a)) == 62
    with pytest.raises(ValueError, match="needs address 64; the table ends at 63"):
        score(LoopedTransformer(TINY), long)
