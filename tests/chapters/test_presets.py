"""The tables of runs: a module a family, and what was shipped is what they name."""

import pytest

import presets
from arithlib import checkpoints, experiments


@pytest.mark.parametrize("family", presets.FAMILIES, ids=lambda family: family.__name__)
def test_names_begin_with_their_family(family):
    names = [experiment.name for experiment in family.presets()]
    assert len(set(names)) == len(names) > 0
    assert {name.partition("-")[0] for name in names} == {family.__name__.removeprefix("presets.")}


@pytest.mark.parametrize("name", [path.stem for path in checkpoints.shipped()])
def test_shipped_weights_belong_to_the_experiment_of_their_name(name):
    trained = checkpoints.read(
        name
    )  # which compares all settings, those that the note does not know at their default
    assert trained.provenance["hash"] == experiments.get(name).hash()


def test_two_runs_of_one_name_are_refused():
    first = experiments.get("adder-live")
    experiments.register([first])
    with pytest.raises(ValueError, match="two experiments are called 'adder-live'"):
        experiments.register([experiments.get("adder-certified").__class__(**vars(first) | {"evaluate_every": 1})])
