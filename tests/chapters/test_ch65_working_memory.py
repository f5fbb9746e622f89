"""n-back blocks, d' and the places of a sum on one line: against loops, text, and planted answers."""

from itertools import product

import numpy as np
import pytest
import torch

from arithlib.analysis import dilution
from arithlib.models.column import ColumnConfig, ColumnTransformer
from arithlib.models.looped import LoopedConfig, LoopedTransformer
from arithlib.tasks.operands import OperandTask
from arithlib.training import AdamW
from chapters.ch61_written_sums import ALPHABET
from chapters.ch65_experiments import (
    COUNTS,
    LAST,
    MEASURES,
    ColumnsExperiment,
    NBackExperiment,
    WrittenLine,
    counts_of,
    reading,
    said,
    whereto,
    write_columns,
)
from chapters.ch65_experiments import test_blocks as blocks_of_test
from chapters.ch65_working_memory import (
    D_VOCAB,
    LETTERS,
    LONGEST,
    MATCHES,
    Line,
    adder_reading,
    d_prime,
    d_prime_of_blocks,
    draw_blocks,
    largest_weight_bound,
    probability_of_less,
)

LINES = [Line(*ways) for ways in product((False, True), repeat=3)]


def drawn(n, length=40, lures=0.0, each=50, seed=0):
    return draw_blocks(torch.full((each,), n), length, torch.Generator().manual_seed(seed), lures)


@pytest.mark.parametrize("n", range(1, LONGEST + 1))
def test_matches_and_lures_are_those_of_a_loop(n):
    blocks = drawn(n, lures=0.3)
    assert (blocks.tokens[:, 0] == LETTERS + n - 1).all()
    for tokens, match, counted, lure in zip(*(part.tolist() for part in vars(blocks).values()), strict=True):
        letters = tokens[1:]
        assert set(letters) <= set(range(LETTERS))
        for i, letter in enumerate(letters):
            same = i >= n and letter == letters[i - n]
            near = any(1 <= s <= i and letters[i - s] == letter for s in (n - 1, n + 1))
            assert (match[i], counted[i], lure[i]) == (same, i >= n, i >= n and near and not same)


def test_a_third_are_matches_and_every_other_letter_is_as_likely_as_any():
    blocks = drawn(3, each=2000, length=24)
    letters = blocks.tokens[:, 1:]
    assert float(blocks.match[:, 3:].double().mean()) == pytest.approx(MATCHES, abs=0.01)
    away = (letters[:, 3:] - letters[:, :-3])[~blocks.match[:, 3:]] % LETTERS
    assert torch.bincount(away, minlength=LETTERS).tolist()[0] == 0
    share = torch.bincount(away, minlength=LETTERS)[1:] / len(away)
    assert share == pytest.approx(np.full(LETTERS - 1, 1 / (LETTERS - 1)), abs=0.01)
    assert torch.bincount(letters.flatten()) / letters.numel() == pytest.approx(np.full(LETTERS, 1 / 8), abs=0.01)


def test_lures_are_asked_for_and_leave_the_matches_as_they_are():
    few, many = drawn(2, each=500), drawn(2, each=500, lures=1.0)
    counted = few.counted.sum()
    assert abs(int(few.match.sum()) - int(many.match.sum())) < 0.02 * counted
    assert many.lure.sum() > 1.8 * few.lure.sum()


def test_an_n_without_a_token_is_refused():
    with pytest.raises(ValueError, match="n from 7 to 7: there are tokens for 1 to 6"):
        drawn(7)


def test_d_prime_is_that_of_the_normal_distribution():
    from statistics import NormalDist

    z = NormalDist().inv_cdf
    assert d_prime(30, 40, 8, 80) == pytest.approx(z(30.5 / 41) - z(8.5 / 81))
    blocks = np.array([[8, 8, 0, 16], [4, 8, 16, 16]])  # perfect, and below chance
    each = [2 * z(0.99), z(0.5) - z(0.99)]
    assert d_prime_of_blocks(*blocks.T) == pytest.approx((each[0] - each[1]) / 2)
    assert d_prime_of_blocks(*blocks.T, absolute=False) == pytest.approx(sum(each) / 2)
    empty = np.array([*blocks, [0, 0, 3, 16]])
    assert d_prime_of_blocks(*empty.T) == pytest.approx((each[0] - each[1]) / 2)


def test_d_prime_finds_a_planted_distance():
    generator, shift = np.random.default_rng(0), 1.7
    yes_to_signals = (generator.normal(shift, 1, 40_000) > 0.6).sum()
    yes_to_noise = (generator.normal(0, 1, 40_000) > 0.6).sum()
    assert d_prime(yes_to_signals, 40_000, yes_to_noise, 40_000) == pytest.approx(shift, abs=0.05)


def test_how_often_one_is_less_counts_pairs():
    generator = np.random.default_rng(0)
    these, others = generator.integers(5, size=30), generator.integers(6, size=40)
    slow = np.mean([(a < b) + (a == b) / 2 for a in these for b in others])
    assert probability_of_less(these, others) == pytest.approx(slow)
    with pytest.raises(ValueError, match="0 and 40 values"):
        probability_of_less(these[:0], others)


def test_no_softmax_exceeds_the_bound_and_one_reaches_it():
    scores = torch.randn(200, 12, dtype=torch.double, generator=torch.Generator().manual_seed(0)) * 3
    gap = (scores.amax(1) - scores.amin(1)).numpy()
    bound = largest_weight_bound(12, gap)
    assert (scores.softmax(1).amax(1).numpy() <= bound).all()
    scores[:, 1:] = scores[:, :1] - 2.0
    assert scores.softmax(1).amax(1).numpy() == pytest.approx(largest_weight_bound(12, 2.0))


def test_adders_are_read_as_chapter_71_reads_them():
    problems = OperandTask(max_digits=6).sample(20, torch.Generator().manual_seed(0))
    network = ColumnTransformer(ColumnConfig("full", d_model=8, n_heads=2, d_mlp=16), 0).double()
    found, known = adder_reading(network, problems), dilution.read(network, problems.a, problems.b)
    order = known.row.sort(stable=True).indices
    torch.testing.assert_close(found["near"], known.near[order])
    assert torch.equal(found["right"], known.margin[order] > 0)
    assert (found["largest"] <= found["bound"] + 1e-12).all()
    entropy_of_even = known.visible[order].double().log()[:, None]
    assert (found["entropy"] <= entropy_of_even + 1e-12).all() and (found["entropy"] > 0.5 * entropy_of_even).all()


def text_of(line, numbers):
    """A sum as text, written by hand."""
    k, N = len(numbers), len(numbers[0])
    if line.interleaved:
        columns = ["".join(number[i] for number in numbers) for i in range(N)]
        question = "".join(columns[::-1] if line.reversed_numbers else columns) + "+" * (k - 1)
    else:
        question = "+".join(number[::-1] if line.reversed_numbers else number for number in numbers)
    total = f"{sum(map(int, numbers)):0{N + 1}}"
    return question + "=" + (total[::-1] if line.reversed_answer else total)


@pytest.mark.parametrize("line", LINES)
def test_lines_are_written_as_by_hand(line):
    numbers = torch.randint(10, (20, 3, 5), generator=torch.Generator().manual_seed(1))
    tokens = write_columns(numbers, line)
    for row, said_tokens in zip(numbers.tolist(), tokens.tolist(), strict=True):
        by_hand = text_of(line, ["".join(map(str, digits[::-1])) for digits in row])
        assert "".join(ALPHABET[token] for token in said_tokens) == by_hand


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("lengths", [(8, 8, 8), (2, 5), (4, 1, 3)])
def test_distances_are_those_on_a_line_of_marked_digits(line, lengths):
    where, answer = line.places(lengths)
    assert len(set(where.values())) == sum(lengths)
    marked = {place: mark for mark, place in where.items()} | {p: ("=", c) for c, p in enumerate(answer)}
    for column, (near, far) in enumerate(line.distances(lengths)):
        written_by = answer[column] - 1
        away = [written_by - p for p, mark in marked.items() if mark[1] == column and mark[0] != "="]
        assert (near, far) == (min(away), max(away))
        assert line.columns(lengths)[column] == [p for p, m in sorted(marked.items()) if m[1] == column][:-1]


def test_three_numbers_of_eight_digits_have_the_places_of_the_source():
    assert Line().columns((8, 8, 8))[:2] == [[8, 17, 26], [7, 16, 25]]


def model(n_layers=1, seed=0):
    return LoopedTransformer(
        LoopedConfig(
            d_model=8, n_heads=2, d_mlp=8, n_layers=n_layers, n_loops=1, positions="rotary", injection="none",
            d_vocab=D_VOCAB,
        ),
        seed,
    )  # fmt: skip


def test_counts_are_those_of_a_loop():
    blocks = blocks_of_test(3, 10)
    yes = torch.rand(blocks.match.shape, generator=torch.Generator().manual_seed(0)) < 0.5
    counts = counts_of(blocks, yes)
    assert counts.shape == (LONGEST, 3, len(COUNTS))
    for row, (match, counted, answer) in enumerate(
        zip(blocks.match.tolist(), blocks.counted.tolist(), yes.tolist(), strict=True)
    ):
        slow = np.zeros(4, int)
        for m, c, y in zip(match, counted, answer, strict=True):
            slow += [m and c and y, m and c, c and not m and y, c and not m]
        assert counts.reshape(-1, 4)[row].tolist() == slow.tolist()


def test_what_is_read_of_attention_is_what_the_pattern_says():
    network, n = model(2), 2
    blocks = drawn(n, length=12, each=3)
    head, measured, right = reading(network, blocks, n)
    with torch.no_grad():
        _, activations = network(blocks.tokens, return_activations=True)
    patterns = torch.cat([activations[f"loops.0.layers.{layer}.pattern"] for layer in range(2)], 1)
    weights = patterns[:, :, torch.arange(13 - LAST, 13), torch.arange(13 - LAST, 13) - n]
    assert head == int(weights.mean((0, 2)).argmax()) and set(measured) == set(MEASURES)
    assert reading(network, blocks, n, 1)[0] == 1
    for block, place in product(range(3), range(LAST)):
        visible = 13 - LAST + place + 1
        row = patterns[block, head, visible - 1, :visible].double()
        entropy = -sum(w * np.log(w) for w in row.tolist())
        gap = float((row.max() / row.min()).log())
        expected = (row[visible - 1 - n], row.max(), entropy, gap, largest_weight_bound(visible, gap))
        assert [float(measured[name][block, place]) for name in MEASURES] == pytest.approx(list(map(float, expected)))
    assert torch.equal(right, (said(network, blocks) == blocks.match)[:, -LAST:])


def test_where_weight_goes_is_a_sum_over_distances():
    network, n = model(2), 3
    blocks = drawn(n, length=40, each=2)
    parts = np.array([whereto(network, blocks, n, head) for head in range(4)])
    assert parts.sum(1) == pytest.approx(np.ones(4))
    with torch.no_grad():
        _, activations = network(blocks.tokens, return_activations=True)
    weight, slow = activations["loops.0.layers.1.pattern"][:, 0], np.zeros(4)
    for block, query, key in product(range(2), range(33, 41), range(41)):
        back = query - key
        place = 3 if key == 0 else 0 if back == n else 1 if back < 24 else 2
        slow[place] += float(weight[block, query, key]) / 16
    assert parts[2] == pytest.approx(slow, abs=1e-6)


def test_a_run_learns_and_measures_what_it_promises():
    run = NBackExperiment(
        name="x", about="x", steps=3, evaluate_every=3, optimizer=AdamW(warmup_steps=1), model=model().config,
        letters=10, batch_size=4, evaluation_blocks=2, test_count=2,
    )  # fmt: skip
    objective, network = run.objective(None, None), run.build()
    assert objective.evaluate(network)["d_prime"].shape == (LONGEST,)
    first, again, other = (objective.loss(network, step).item() for step in (1, 1, 2))
    assert np.isfinite(first) and first == again != other


def test_all_models_of_a_stack_have_the_same_sums_in_their_own_way():
    run = ColumnsExperiment(
        name="x", about="x", steps=3, evaluate_every=3, optimizer=AdamW(warmup_steps=1), digits=2, numbers=2,
        lines=(WrittenLine(), WrittenLine(interleaved=True)), seeds=(0, 1), d_model=8, n_layers=1, n_heads=2,
        test_size=6,
    )  # fmt: skip
    tokens = run.tokens(torch.Generator().manual_seed(0), 5)
    assert tokens.shape == (4, 5, run.width) and torch.equal(tokens[0], tokens[1])
    assert torch.equal(tokens[1].sort(-1).values, tokens[2].sort(-1).values) and not torch.equal(tokens[1], tokens[2])
    measured = run.objective(None, None).evaluate(run.build())
    assert {name: value.shape for name, value in measured.items()} == dict.fromkeys(
        ("loss", "digit", "exact"), (2, 2)
    )
    alike = run.build()
    assert torch.equal(alike.W_E[0], alike.W_E[2]) and not torch.equal(alike.W_E[0], alike.W_E[1])
