"""Experiments on sorting and OR: what is measured, and where in the grids it stands."""

from dataclasses import replace

import pytest
import torch

from arithlib import experiments
from arithlib.tasks.bitwise import Or
from arithlib.training import train

SORTING, OR = experiments.get("aligned-sort-both-s0"), experiments.get("aligned-or-one-abacus-s0")


def briefly(experiment, steps):
    optimizer = replace(experiment.optimizer, steps=steps, warmup_steps=1)
    experiment = replace(experiment, steps=steps, optimizer=optimizer, evaluation_count=20)
    model = experiment.build()
    objective = experiment.objective(model, torch.device("cpu"))
    return experiment, model, train(model, objective, optimizer, steps, evaluate_every=steps, progress=False)


def test_cells_of_the_grid_stand_where_their_sizes_do():
    experiment = replace(SORTING, sizes=((2, 5, 3), (1, 6)))
    numbers = experiment._grid(experiment.build(), lambda problems, scores: problems.stop - problems.start - 1)
    assert numbers[0].tolist() == [[2, 2], [5, 5], [3, 3]]
    digits = experiment._grid(experiment.build(), lambda problems, scores: (problems.a > 0).any(2).sum(1))
    assert (digits[0, :, 0] == 1).all() and (digits[0, :, 1] > 2).all()


def test_an_order_is_right_only_where_every_place_is():
    easy = replace(SORTING, task=replace(SORTING.task, max_numbers=2), sizes=((1, 2), (1, 2)), batch_size=16)
    experiment, model, run = briefly(easy, 30)
    measured = experiment.finish(model, run)
    order, places = measured["exact_match_grid"], measured["place_grid"]
    assert order.shape == (1, 2, 2) and places.shape == (1, 2, 2, 3)
    assert (order <= places[..., :2].min(-1) + 1e-9).all() and places.max() > 0
    assert (places[0, 0, :, 2] == 0).all()  # a list of one number has its end token second, and nothing third
    lengths = measured["length_grid"]
    assert lengths.shape == places.shape and lengths.sum(-1) == pytest.approx(1)
    assert (order[0, 0] <= lengths[0, 0, :, 1]).all() and (order[0, 1] <= lengths[0, 1, :, 2]).all()


def test_what_greedy_decoding_gets_right_is_what_one_pass_says():
    easy = replace(OR, task=Or(2, "random"), sizes=((1, 2), (1, 3)), batch_size=16)
    experiment, model, run = briefly(easy, 80)
    written = experiment.finish(model, run)["fault_grid"]
    scored = super(type(experiment), experiment).finish(model, run)["exact_match_grid"]
    assert written.shape == (1, 2, 2, 5) and written.sum(-1) == pytest.approx(1)
    assert written[..., 0] == pytest.approx(scored) and 0 < scored.mean() < 1


def test_a_run_is_the_same_again():
    first, again = (briefly(OR, 3)[1].state_dict() for _ in range(2))
    assert all(torch.equal(first[name], again[name]) for name in first)


@pytest.mark.parametrize("kind", ["sort", "or-one"])
def test_what_is_compared_is_trained_alike(kind):
    group = [e for e in experiments.match(f"aligned-{kind}-*") if e.data_seed == 0]
    assert len(group) >= 3
    assert (
        len({(e.steps, e.optimizer, e.task, e.batch_size, e.model.d_model, e.sizes, e.offsets) for e in group}) == 1
    )
    assert len({e.model.n_layers * e.model.n_loops for e in group}) == 1
