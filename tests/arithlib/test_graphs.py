"""Grade-school problems against an evaluator that reads the printed text, and templates against all there are."""

import dataclasses
import math
import re
from fractions import Fraction
from itertools import permutations, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from short_runs import seeded

from arithlib.tasks.graphs import NOWHERE, Graphs, count_templates, read, solve, template, terms

SMALL = Graphs(6, depth=3, constants=2, terms=2, factor_share=0.0, levels=3, width=2)
TASKS = [Graphs(), SMALL, Graphs(6, depth=2, terms=3, factor_share=0.5, levels=2, width=3, p=5)]
PRINTED = (
    "E#I := 4. E#J := E#I. K#N := I#N + J#O + F#K. F#K := E#J. J#O := F#K + K#O + E#J. H#J := E#J + F#K. "
    "I#P := L#M + I#N + K#O. I#M := J#O + J#P + F#K. J#P := H#J - F#K. L#M := I#N + J#P + F#K. "
    "I#N := 2 * J#P + H#J + E#I. K#O := J#P + I#N + E#J. I#P?"
)


def by_python(text, p):
    """The answer by Python's own arithmetic: names are replaced by their definitions until only numbers are left."""
    *lines, asked = re.split(r"\.\s*", text.rstrip("?"))
    known = dict(line.split(" := ") for line in lines)
    while "#" in asked:
        asked = re.sub(r"\w#\w", lambda match: f"({known[match[0]]})", asked)
    return eval(asked) % p


def texts(task, problems, seed=0):
    asked = task.asked(problems, seeded(seed))[:, None]
    tokens, _ = task.write(problems, asked, seeded(seed))
    return [task.text(row) for row in tokens], task.values(problems).gather(1, asked)[:, 0].tolist(), asked


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("held_out", [False, True])
def test_every_answer_is_that_of_the_text(task, held_out):
    problems = task.sample(60, seeded(), held_out)
    written, answers, _ = texts(task, problems)
    assert [by_python(text, task.p) for text in written] == answers
    assert [solve(*read(text), task.p)[read(text)[1]] for text in written] == answers


def test_the_printed_example_does_not_give_its_printed_answer():
    definitions, asked = read(PRINTED)
    assert solve(definitions, asked)[asked] == by_python(PRINTED, 7) == 6
    repaired = definitions | {"I#N": "2J#P+2H#J+2E#I"}
    assert solve(repaired, asked)[asked] == 0
    assert list(solve(repaired, asked).values()) == [4, 4, 4, 1, 4, 4, 5, 5, 0]


@pytest.mark.parametrize("task", TASKS)
def test_a_depth_is_the_longest_way_down_to_a_constant(task):
    problems = task.sample(200, seeded())
    for names, depth, operands in zip(
        *(t.tolist() for t in (problems.names, problems.depth, problems.operands)), strict=True
    ):
        assert len(set(names)) == task.parameters
        for i, row in enumerate(operands):
            used = [j for j in row if j >= 0]
            assert len(set(used)) == len(used) <= task.terms and all(j < i for j in used)
            assert depth[i] == 1 + max((depth[j] for j in used), default=-1)
    assert set(problems.depth.amax(1).tolist()) == set(range(1, task.depth + 1))


def test_every_depth_is_asked_as_often_as_the_others_that_a_problem_has():
    problems = SMALL.sample(6000, seeded())
    deep = problems[problems.depth.amax(1) == 3]
    found = deep.depth.gather(1, SMALL.asked(deep, seeded())[:, None])[:, 0].bincount(minlength=4) / len(deep)
    assert ((found - 0.25).abs() < 0.05).all()
    some = SMALL.sample(50, seeded(), depth=2)
    assert (some.depth.gather(1, SMALL.asked(some, seeded(), 2)[:, None]) == 2).all()


def test_nothing_vanishes_so_that_answers_are_uniform():
    drawn = SMALL.draw(3000, seeded())
    gone = SMALL.vanish(drawn)
    zero = torch.ones_like(drawn.depth, dtype=torch.bool)
    for seed in range(12):  # what is 0 for a dozen draws of the constants
        constants = torch.randint(7, drawn.depth.shape, generator=seeded(seed)) * (drawn.depth == 0)
        zero &= SMALL.values(dataclasses.replace(drawn, constants=constants)) == 0
    assert 0 < gone.sum() < 3000 and zero.any(1).equal(gone)
    problems = SMALL.sample(7000, seeded())
    share = SMALL.values(problems).flatten().bincount(minlength=7) / problems.names.numel()
    assert ((share - 1 / 7).abs() < 0.015).all()


def test_evaluation_is_apart_from_training_however_a_problem_is_written():
    task = Graphs(2, depth=1, terms=1, factor_share=0.0, levels=2, width=2)  # small enough to meet everything
    definitions = [
        {frozenset(read(text)[0].items()) for text in texts(task, task.sample(3000, seeded(1), held_out))[0]}
        for held_out in (False, True)
    ]
    assert definitions[0] and definitions[1] and not definitions[0] & definitions[1]
    problems = SMALL.draw(4000, seeded())
    kept = SMALL.kept_from_training(problems)
    assert abs(float(kept.double().mean()) - 1 / 16) < 0.015
    turned = dataclasses.replace(problems, operands=problems.operands.flip(2), factors=problems.factors.flip(2))
    assert kept.equal(SMALL.kept_from_training(turned))


def test_tokens_are_right_aligned_and_a_seed_fixes_them():
    problems = SMALL.sample(20, seeded())
    asked = torch.rand(20, 6, generator=seeded()).argsort(1)
    tokens, due = SMALL.write(problems, asked, seeded())
    blank = tokens == SMALL.sign(" ")
    assert (blank[:, 1:] <= blank[:, :-1]).all() and (tokens[:, -7] == SMALL.sign("?")).all()
    assert (tokens[:, -6:] == SMALL.first_name + problems.names.gather(1, asked)).all()
    assert (due[:, -6:] == SMALL.values(problems).gather(1, asked)).all() and (due[:, :-6] == NOWHERE).all()
    assert tokens.equal(SMALL.write(SMALL.sample(20, seeded()), asked, seeded())[0])
    assert len(SMALL.words) == len(set(SMALL.words)) == tokens.max() + 1


@pytest.mark.parametrize("task", TASKS)
def test_what_is_due_everywhere_is_what_can_be_worked_out_from_the_text_so_far(task):
    problems = task.sample(30, seeded())
    tokens, due = task.write(problems, task.asked(problems, seeded())[:, None], seeded(), everywhere=True)
    used = range(task.first_name, task.first_name + task.n_names)
    for row, values in zip(tokens.tolist(), due.tolist(), strict=True):
        for place, (token, value) in enumerate(zip(row, values, strict=True)):
            assert value == NOWHERE or token in used
            if token not in used:
                continue
            before = max(q for q in range(place) if row[q] >= used.stop or task.words[row[q]] == "?")
            written = task.text(torch.tensor([*row[:before], task.sign("?"), token]))
            try:
                assert value == solve(*read(written), task.p)[task.words[token]]
            except (KeyError, ValueError):  # something is not defined yet, or nothing at all is
                assert value == NOWHERE


@pytest.mark.parametrize(("formula", "found"), [
    ("2J#P+2H#J", [(2, "J#P"), (2, "H#J")]), ("13", [(1, "13")]), ("E#I - 3 * F#K", [(1, "E#I"), (-3, "F#K")]),
])  # fmt: skip
def test_terms_are_read(formula, found):
    assert terms(formula) == found


@pytest.mark.parametrize("formula", ["", "E#I * F#K", "2 * (E#I + F#K)"])
def test_what_is_no_sum_is_refused(formula):
    with pytest.raises(ValueError, match="no sum"):
        terms(formula)


def every_template(steps, most):
    """All templates of so many steps, by trying every definition of every parameter (plain sums)."""
    names = [f"A#{chr(66 + i)}" for i in range(steps)]
    choices = [[c for a in range(most + 1) for c in permutations(range(i), a)] for i in range(steps)]
    found = set()
    for chosen in product(*choices):
        problem = {n: "+".join(names[j] for j in c) or "0" for n, c in zip(names, chosen, strict=True)}
        if len(solve(problem, names[-1])) == steps:
            found.add(template(problem, names[-1]))
    return found


@pytest.mark.parametrize("most", [1, 2, 3])
def test_templates_are_counted_as_enumeration_finds_them(most):
    assert count_templates(5, [1] * (most + 1)) == [len(every_template(steps, most)) for steps in range(1, 6)]


def test_signs_and_factors_multiply_the_count():
    counted = count_templates(4, [1, 2, 4])  # each definition with or without a factor, and each later term + or -
    forms = {0: 1, 1: 2, 2: 4}
    for steps in range(1, 5):
        shapes = every_template(steps, 2)
        of = [
            math.prod(forms[len(re.findall("[a-z]", line.split(":=")[1]))] for line in t.split(";")) for t in shapes
        ]
        assert counted[steps - 1] == sum(of)


def test_graphs_without_the_order_of_terms_are_at_least_those_counted_with_weights():
    bound = count_templates(5, [Fraction(1, math.factorial(a)) for a in range(3)])
    for steps in range(1, 6):
        graphs = {least_name(operands_of(t)) for t in every_template(steps, 2)}
        assert 0.3 * len(graphs) < bound[steps - 1] <= len(graphs)


def least_name(graph):
    """The same for all graphs that differ in the names of their steps only."""
    names, last = list(graph)[:-1], list(graph)[-1]
    ways = ({**dict(zip(names, order, strict=True)), last: len(names)} for order in permutations(range(len(names))))
    return min(tuple(sorted((way[n], tuple(sorted(way[x] for x in graph[n]))) for n in graph)) for way in ways)


def operands_of(text):
    """What each step of a template needs."""
    steps = [line.split(":=") for line in text.split(";")]
    return {name: frozenset(re.findall("[a-z]", formula)) for name, formula in steps}


@settings(max_examples=20)
@given(st.integers(0, 1000))
def test_a_template_knows_neither_names_nor_numbers_nor_order(seed):
    problems = SMALL.sample(1, seeded(seed))
    changed = type(problems)(
        (problems.names + 1) % SMALL.n_names, problems.depth, (problems.constants + 3) % 7 * (problems.depth == 0),
        problems.operands, problems.factors,
    )  # fmt: skip
    asked = SMALL.asked(problems, seeded(seed))[:, None]
    one, other = (SMALL.text(SMALL.write(q, asked, seeded(s))[0][0]) for q, s in ((problems, 1), (changed, 2)))
    assert template(*read(one)) == template(*read(other))


@pytest.mark.parametrize(
    "wrong", [{"depth": 12}, {"depth": 0}, {"terms": 0}, {"p": 6}, {"levels": 7}, {"parameters": 60}]
)
def test_what_cannot_be_drawn_is_refused(wrong):
    with pytest.raises(ValueError, match="at least|parameters"):
        Graphs(**wrong)
