"""Variable assignments, followed by hand."""

import pytest
from short_runs import seeded

from chapters.ch46_assignments import CHAINS, Assignments
from chapters.ch46_text import decode


def follow(text):
    """Value of each variable of `a1b2cbda;...` and how many steps away it is."""
    values, steps = {}, {}
    told = text.partition(";")[0]
    for name, source in zip(told[::2], told[1::2], strict=True):
        assert name not in values, "a variable is assigned twice"
        direct = source.isdigit()
        values[name] = source if direct else values[source]
        steps[name] = 0 if direct else steps[source] + 1
    return values, steps


@pytest.mark.parametrize("depth", [0, 1, 2, 7])
def test_every_answer_is_the_one_that_the_assignments_give(depth):
    task = Assignments(depth)
    tokens = task.sample(60, seeded())
    assert tokens.shape == (60, task.width)
    for row in tokens:
        text = decode(row)
        values, steps = follow(text)
        asked = text.partition(";")[2].rstrip("\n")
        assert [values[name] for name in asked[::2]] == list(asked[1::2])
        assert {steps[name] for name in asked[::2]} == {depth} and len(set(asked[::2])) == CHAINS
        assert [text[place] for place in task.answers] == list(asked[1::2])
        assert len(set(asked[1::2])) == CHAINS and text.endswith("\n") and text.count(";") == 1


@pytest.mark.parametrize("depth", [0, 1, 2, 7])
def test_the_values_of_all_sources_are_those_that_the_assignments_give(depth):
    task = Assignments(depth)
    tokens = task.sample(60, seeded())
    assert len(task.sources) == CHAINS * depth
    for row, found in zip(tokens, task.values(tokens), strict=True):
        text = decode(row)
        assert [follow(text)[0][text[place]] for place in task.sources] == list(decode(found))


def test_neither_the_first_value_nor_the_first_name_gives_the_answer_away():
    tokens = Assignments(1).sample(3000, seeded())
    first = (tokens[:, Assignments(1).answers[0]][:, 0] == tokens[:, 1]).double().mean()
    assert abs(first - 1 / 3) < 0.04


def test_texts_are_seeded():
    draw = [Assignments(2).sample(5, seeded(seed)) for seed in (3, 3, 4)]
    assert draw[0].equal(draw[1]) and not draw[0].equal(draw[2])


@pytest.mark.parametrize("depth", [-1, 8])
def test_there_are_letters_for_depth_7_only(depth):
    with pytest.raises(ValueError, match="26 letters"):
        Assignments(depth)
