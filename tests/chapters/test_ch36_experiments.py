"""Experiments on sorting and OR: what is measured, and where in the grids it stands."""

import itertools
from dataclasses import replace

import pytest
import torch

from arithlib import experiments
from arithlib.exact_match import score
from arithlib.models.positions import number_index
from arithlib.training import train
from chapters.ch36_bitwise_or import FAULTS, Or
from chapters.ch36_experiments import ENSEMBLE

SORTING, OR = experiments.get("aligned-sort-both-s0"), experiments.get("aligned-or-one-abacus-s0")


def briefly(experiment, steps):
    optimizer = replace(experiment.optimizer, warmup_steps=1)
    experiment = replace(experiment, steps=steps, optimizer=optimizer, evaluation_count=20)
    model = experiment.build()
    objective = experiment.objective(model, torch.device("cpu"))
    return experiment, model, train(model, objective, optimizer, steps, evaluate_every=steps, progress=False)


def test_cells_of_the_grid_stand_where_their_sizes_do():
    experiment = replace(SORTING, sizes=((2, 5, 3), (1, 6)))
    numbers = experiment._grid(lambda problems: problems.stop - problems.start - 1)
    assert numbers[0].tolist() == [[2, 2], [5, 5], [3, 3]]
    digits = experiment._grid(lambda problems: (problems.a > 0).any(2).sum(1))
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


def test_ensembles_keep_the_longest_on_trained_rows_and_are_the_models_own_without_addresses():
    trained = OR.task.sample(1000, torch.Generator().manual_seed(0)).tokens
    last_row = int(number_index(trained).max()) + OR.offsets.largest
    longest = max(OR.sizes[0])
    ensemble = [offset.value for offset in OR.offset_ensemble(OR.build(), longest)]
    assert ensemble == list(range(last_row - longest))  # a row more than the digits need
    assert len(ensemble) == ENSEMBLE
    unaddressed = replace(OR, model=replace(OR.model, positions="fire")).build()
    assert OR.offset_ensemble(unaddressed, longest) == [unaddressed.offsets]


def test_what_greedy_decoding_gets_right_is_what_one_pass_says():
    easy = replace(OR, task=Or(2, "one"), sizes=((1, 2), (1, 3)), batch_size=16)
    experiment, model, run = briefly(easy, 60)
    measured = experiment.finish(model, run)
    alone, together = measured["fault_grid"], measured["together_grid"]
    assert alone.shape == (ENSEMBLE, 2, 2, len(FAULTS)) and alone.sum(-1) == pytest.approx(1)
    assert together.shape == (1, 2, 2, len(FAULTS)) and 0 < alone[..., 0].mean() < 1
    for (row, i), (column, j) in itertools.product(enumerate((1, 2)), enumerate((1, 3))):
        problems = experiment.task.every(torch.tensor([[i, j]]))
        ensemble = experiment.offset_ensemble(model, max(i, j))
        for offset, share in zip(ensemble, alone[:, row, column, 0], strict=True):
            assert share == pytest.approx(float(score(model, problems, offsets=offset).exact.double().mean()))
        scored = score(model, problems, offsets=ensemble)
        assert together[0, row, column, 0] == pytest.approx(float(scored.exact.double().mean()))


def test_lengths_of_what_is_written_go_with_its_faults():
    easy = replace(OR, task=Or(2, "one"), sizes=((1, 2), (1, 2)), batch_size=16)
    experiment, model, run = briefly(easy, 30)
    measured = experiment.finish(model, run)
    alone, lengths = measured["fault_grid"].mean(0), measured["length_grid"]
    assert lengths.shape == (1, 2, 6) and lengths.sum(-1) == pytest.approx(1)
    # The pairs in order: longest 1 is the first cell alone, longest 2 the mean of the others.
    right_length = alone[..., [FAULTS.index("right"), FAULTS.index("wrong bits")]].sum(-1)
    assert lengths[0, 0, 1] == pytest.approx(right_length[0, 0])
    assert lengths[0, 1, 2] == pytest.approx((right_length.sum() - right_length[0, 0]) / 3)


def test_a_run_is_the_same_again():
    first, again = (briefly(OR, 3)[1].state_dict() for _ in range(2))
    assert all(torch.equal(first[name], again[name]) for name in first)


@pytest.mark.parametrize("kind", ["sort", "or-one"])
def test_what_is_compared_is_trained_alike(kind):
    group = [e for e in experiments.match(f"aligned-{kind}-*") if e.seed == 0]
    assert len(group) >= 3
    assert (
        len({(e.steps, e.optimizer, e.task, e.batch_size, e.model.d_model, e.sizes, e.offsets) for e in group}) == 1
    )
    assert {e.model.n_layers * e.model.n_loops for e in group if "single" not in e.name} == {2}


def test_the_looped_sorter_computes_like_one_control_and_weighs_as_much_as_the_other():
    looped, standard, single = (experiments.get(f"aligned-sort-{kind}-s0") for kind in ("looped", "both", "single"))
    weights = [sum(p.numel() for p in e.build().parameters()) for e in (looped, standard, single)]
    assert weights[0] == weights[2] < weights[1]
    assert looped.model.n_layers * looped.model.n_loops == standard.model.n_layers * standard.model.n_loops
    assert len({e.model.positions for e in (looped, standard, single)}) == 1
