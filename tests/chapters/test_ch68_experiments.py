"""Studies of written products: where a text begins changes nothing of it, and scores are those of greedy decoding."""

import numpy as np
import pytest
import torch
from short_runs import trained

from arithlib.training import AdamW
from chapters.ch61_experiments import score
from chapters.ch61_written_sums import NEWLINE
from chapters.ch68_experiments import ProductsExperiment
from chapters.ch68_written_products import ProductFormat, Products


def tiny(**more):
    settings = dict(
        name="products-tiny", about="a test", steps=30, evaluate_every=30, format=ProductFormat(reverse=True),
        products=Products(1, pool=80), longest=(2, 1), seeds=(0, 1), batch_size=8, d_model=16, n_layers=1,
        test_size=10, optimizer=AdamW(lr=1e-2, warmup_steps=2, schedule="cosine"),
    )  # fmt: skip
    return ProductsExperiment(**settings | more)


def stripped(tokens, written):
    """A text without the line ends around it, and what of that is to be written."""
    inside = np.flatnonzero(tokens != NEWLINE)
    part = slice(inside[0] - 1, inside[-1] + 2)
    return tokens[part].tolist(), written[part].tolist()


@pytest.mark.parametrize("products", [Products(1, pool=80), Products(2)])
def test_texts_of_training_are_those_of_a_test_moved(products):
    e = tiny(products=products, longest=(3, 2), batch_size=64)
    tokens, written = e.objective(None, None).batch(3)
    begins = set()
    for text, asked in zip(tokens.flatten(0, 1), written.flatten(0, 1), strict=True):
        body, wanted = stripped(text.numpy(), asked.numpy())
        question = "".join(str(token) if token < 10 else "*" for token in body[1 : body.index(11)])
        line = e.lines(np.array([list(map(int, question.split("*")))]))
        assert (body, wanted) == stripped(line.tokens[0].numpy(), line.written[0].numpy())
        assert asked.sum() == line.written.sum()
        begins.add(int((text != NEWLINE).int().argmax()) - 1)
    assert begins == set(range(e.room + 1)), "every place, the one of tests among them"


def test_seeds_have_products_of_their_own_and_a_step_has_always_the_same():
    objective = tiny().objective(None, None)
    tokens, _ = objective.batch(5)
    assert not torch.equal(tokens[0], tokens[1]) and torch.equal(objective.batch(5)[0], tokens)
    assert torch.equal(tiny(seeds=(1,)).objective(None, None).batch(5)[0][0], tokens[1])


@pytest.mark.parametrize("steps", [False, True])
def test_right_as_read_is_right_as_written(steps):
    """A text is read to be right in every token exactly where greedy decoding writes it."""
    e = tiny(steps=150, format=ProductFormat(reverse=True, steps=steps), d_model=32)
    model, _ = trained(e)
    pairs = np.stack(np.divmod(np.arange(100), 10), 1)
    lines = e.lines(pairs)
    right, _ = score(model, lines)
    said = model.complete(lines.tokens.expand(2, -1, -1), lines.written.int().argmax(1).expand(2, -1))
    assert torch.equal(right, (said == lines.tokens).all(-1))
    assert 0 < right.double().mean() < 1, "else this compares nothing"
    assert np.array_equal(e.answers(model, pairs), right.numpy()), "products of one digit are one number"


def test_what_a_finished_run_measures():
    e = tiny()
    model, run = trained(e)
    found = e.finish(model, run)
    assert {name: values.shape for name, values in found.items()} == {"by_lengths": (1, 2, 2, 1), "trained": (1, 2)}
    test = e.products.test(2, 1, e.test_size, 2403_05845)
    assert found["by_lengths"][0, :, 1, 0] == pytest.approx(e.answers(model, test).mean(1))
    pool = e.objective(model, None).pools[1]
    assert found["trained"][0, 1] == pytest.approx(score(model, pool)[0][1].double().mean().item())
    assert "trained" not in tiny(products=Products(1)).finish(model, run)


def test_products_that_are_compared_with_a_pool_are_not_in_it():
    e = tiny(products=Products(1, pool=40), unseen_size=25)
    model, run = trained(e)
    found = e.finish(model, run)
    assert found["right"].shape == found["seen"].shape == (1, 2, 25)
    # A product of one digit has one partial product, itself: in no pool that it is not in.
    assert (found["seen"] == 0).all()
