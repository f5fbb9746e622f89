"""Programs in RASP-L against brute force, what the language refuses, and the models' places and texts."""

import inspect
from itertools import permutations, product

import numpy as np
import pytest
import torch

from chapters import ch63_rasp_l as rasp
from chapters.ch61_character_gpt import CharacterGPTConfig, CharacterGPTs
from chapters.ch63_experiments import AlgorithmExperiment
from chapters.ch63_programs import (
    PROGRAMS,
    before,
    parity,
    parity_unrolled,
    run,
)
from chapters.ch63_tasks import (
    END,
    EQUALS,
    HINTS,
    NUMBERS,
    PLUS,
    START,
    TASKS,
    draw,
    every,
    text,
)

TEXTS = np.array([[3, 1, 4, 1, 5], [2, 7, 1, 8, 2]])


def written(text):
    """A text as Python writes it: what is asked, and the answer, without hints."""
    tokens = [token for token in text.tolist() if not NUMBERS <= token < NUMBERS + HINTS]
    assert tokens[0] == START and tokens[-1] == END
    middle = tokens.index(EQUALS)
    return tokens[1:middle], tokens[middle + 1 : -1]


def answer_of(task, asked):
    """By Python alone."""
    if task == "count":
        return list(range(asked[0], asked[1] + 1))
    if task == "mode":
        return [max(asked, key=asked.count)]
    if task.startswith("copy"):
        return asked
    if task == "sort":
        return sorted(asked)
    if task == "parity":
        return [sum(asked) % 2]
    if task == "parity-steps":
        return [sum(asked[: n + 1]) % 2 for n in range(len(asked))]
    middle = asked.index(PLUS)
    a, b = (int("".join(map(str, part))) for part in (asked[:middle], asked[middle + 1 :]))
    digits = [int(digit) for digit in f"{a + b:0{middle}}"]
    return digits[::-1] if "reversed" in task else digits


@pytest.mark.parametrize("task", TASKS)
def test_texts_say_what_python_says(task):
    for n in (1, 2, 6):
        for each in draw(task, n, 20, np.random.default_rng(n))[0]:
            asked, answer = written(each)
            assert answer == answer_of(task, asked)


@pytest.mark.parametrize("task", [task for task in PROGRAMS if not task.startswith("add")])
def test_programs_write_every_short_text_and_are_as_long_for_every_length(task):
    lengths = set()
    for n in (1, 2, 3, 4):
        right, trace = run(PROGRAMS[task], *every(task, n))
        assert right.all()
        lengths.add(len(trace))
    assert len(lengths) == 1


@pytest.mark.parametrize("task", [task for task in PROGRAMS if task.startswith("add")])
def test_programs_add_all_patterns_of_column_sums(task):
    for n in (1, 3):
        right, _ = run(PROGRAMS[task], *every(task, n))
        assert right.all() and len(right) == 19**n
    broken = lambda x: rasp.tok_map(PROGRAMS[task](x), lambda t: 3 if t == 4 else t)  # noqa: E731
    assert not run(broken, *every(task, 1))[0].all()


@pytest.mark.parametrize("task", [task for task in PROGRAMS if task.startswith("add")])
def test_what_programs_write_of_a_sum_depends_on_its_column_sums_alone(task):
    """5 + 4 as 9 + 0: so that one pair for each pattern of column sums says what all pairs would."""
    generator = np.random.default_rng(0)
    for n in (1, 2, 3, 4):
        pairs = generator.integers(10, size=(100, 2, n))
        total = pairs.sum(1)
        first = generator.integers(np.maximum(total - 9, 0), np.minimum(total, 9) + 1)
        others = np.stack([first, total - first], 1)
        said, traces = [], []
        for each in (pairs, others):
            texts, Q = text(task, each, np.random.default_rng(n))  # with the same hints
            x = rasp.tokens(texts)
            said.append(PROGRAMS[task](x).values[:, Q - 1 : -1])
            traces.append(x.trace)
        assert (pairs != others).any((1, 2)).mean() > 0.5 and np.array_equal(*said) and traces[0] == traces[1]


@pytest.mark.parametrize("task", [task for task in PROGRAMS if task.startswith("add")])
def test_programs_add_all_pairs_of_two_digits(task):
    digits = np.array(list(product(range(10), repeat=4))).reshape(-1, 2, 2)
    for part in np.split(digits, 5):  # what a head selects takes T * T bytes for each text
        right, _ = run(PROGRAMS[task], *text(task, part, np.random.default_rng(0)))
        assert right.all() and len(right) == 2000


def test_every_text_is_every_text_once():
    texts, _ = every("copy-unique", 3)
    assert len(np.unique(texts, axis=0)) == len(texts) == len(list(permutations(range(4), 3)))
    texts, _ = every("parity", 4)
    assert {tuple(text[1:5]) for text in texts.tolist()} == set(product((0, 1), repeat=4))


def test_parity_is_refused_and_unrolled_is_right_up_to_its_length_only():
    with pytest.raises(rasp.NotRaspL, match="indices can be compared"):
        run(parity, *every("parity", 3))
    right, short = run(lambda x: parity_unrolled(x, 4), *every("parity", 4))
    assert right.all()
    beyond, long = run(lambda x: parity_unrolled(x, 3), *every("parity", 5))
    assert 0.4 < beyond.mean() < 0.6 and len(short) > len(long)


def test_the_interpreter_has_less_than_a_hundred_lines():
    assert sum(bool(line.strip()) for line in inspect.getsource(rasp).splitlines()) < 100


@pytest.mark.parametrize("f", [lambda k, q: k * q > 3, lambda k, q: k - q, np.greater])
def test_selectors_choose_pair_by_pair(f):
    x = rasp.tokens(TEXTS)
    y = rasp.tok_map(x, lambda t: t % 3)
    chosen = rasp.select(x, y, f).chosen
    for row, query, key in np.ndindex(chosen.shape):
        expected = key <= query and bool(f(x.values[row, key], y.values[row, query]))
        assert chosen[row, query, key] == expected


def test_primitives_do_what_loops_do():
    x = rasp.tokens(TEXTS)
    chosen = rasp.select(x, x, lambda k, q: k < q)
    width, most, mean = rasp.sel_width(chosen), rasp.aggr(chosen, x), rasp.aggr(chosen, x, "mean")
    for row in range(2):
        for place in range(5):
            found = [t for t in TEXTS[row, : place + 1] if t < TEXTS[row, place]]
            assert width.values[row, place] == len(found)
            assert most.values[row, place] == max(found, default=-1)
            assert mean.values[row, place] == (sum(found) // len(found) if found else -1)
    assert before(x, 2).values.tolist() == [[-1, -1, 3, 1, 4], [-1, -1, 2, 7, 1]]
    assert [name for name in x.trace[:4]] == ["select", "sel_width", "aggr", "aggr"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda x: x + 1, "add: a program is a straight line"),
        (lambda x: 1 if x == 3 else 0, "eq: "),
        (lambda x: [t for t in x], "iter: "),
        (lambda x: range(len(x)), "len: "),
        (lambda x: not x, "bool: "),
        (lambda x: rasp.tok_map(rasp.indices(x), lambda i: i - 3), "indices can be compared"),
        (lambda x: rasp.seq_map(rasp.indices(x), rasp.indices(x), lambda i, j: i - j), "indices can be compared"),
        (lambda x: rasp.seq_map(rasp.indices(x), x, np.equal), "indices can be compared"),
        (lambda x: rasp.step(rasp.indices(x), 2), "step by 2 of kind index"),
        (lambda x: rasp.step(x, 1), "step by 1 of kind token"),
        (lambda x: rasp.tok_map(x, lambda t: 100 * t), "a token has 8 bits"),
        (lambda x: rasp.aggr(rasp.select(x, x, np.equal), rasp.indices(x), "mean"), "mean of indices"),
    ],
)
def test_what_cannot_be_expressed_is_refused(wrong, message):
    with pytest.raises(rasp.NotRaspL, match=message):
        wrong(rasp.tokens(TEXTS))


@pytest.mark.parametrize("task", PROGRAMS)
def test_programs_are_causal(task):
    texts, _ = draw(task, 4, 5, np.random.default_rng(0))
    changed = texts.copy()
    changed[:, -2:] = 7
    said = [PROGRAMS[task](rasp.tokens(each)).values[:, :-2] for each in (texts, changed)]
    assert np.array_equal(*said)


def test_models_read_the_places_where_their_texts_begin():
    models = CharacterGPTs(CharacterGPTConfig(9, d_model=8, n_layers=1, n_heads=2, d_vocab=6), (0, 1))
    tokens = torch.randint(6, (2, 3, 4), generator=torch.Generator().manual_seed(0))
    said = models(tokens, (torch.tensor([5, 2])[:, None, None] + torch.arange(4)).expand(2, 3, 4))
    with torch.no_grad():
        models.W_pos[0, :4], models.W_pos[1, :4] = models.W_pos[0, 5:9].clone(), models.W_pos[1, 2:6].clone()
    torch.testing.assert_close(said, models(tokens))


def test_scores_count_answers_right_in_every_token():
    experiment = AlgorithmExperiment(
        name="x", about="x", task="copy-unique", train_length=3, test_lengths=(3, 5), seeds=(0, 1), steps=2,
        evaluate_every=1, test_size=6, d_model=8, n_layers=1,
    )  # fmt: skip
    models = experiment.build()
    assert models.config.n_ctx == (2 * 5 + 3) + (2 * 3 + 3)
    right, loss = experiment.score(models, 3, 6)
    assert not right.any() and loss.shape == (2,)
    texts, written, shift = experiment.objective(models, None).batch(0)
    assert written.sum() == 2 * 32 * ((texts.shape[2] - 3) // 2 + 1) and (0 <= shift).all()


def test_what_there_is_not_is_named():
    with pytest.raises(ValueError, match="task = 'add': choose one of count, mode"):
        draw("add", 3, 1, np.random.default_rng(0))
    with pytest.raises(ValueError, match="length 99: 1 to 29"):
        draw("sort", 99, 1, np.random.default_rng(0))
