"""The tables of runs: a module a family. What was shipped is what they name: tests/arithlib/test_front_door.py."""

import pytest

import presets
from arithlib import experiments
from bookkit.claims import load_claims


@pytest.mark.parametrize("family", presets.FAMILIES, ids=lambda family: family.__name__)
def test_names_begin_with_their_family(family):
    names = [experiment.name for experiment in family.presets()]
    assert len(set(names)) == len(names) > 0
    assert {name.partition("-")[0] for name in names} == {family.__name__.removeprefix("presets.")}


def test_two_runs_of_one_name_are_refused():
    first = experiments.get("adder-live")
    experiments.register([first])
    with pytest.raises(ValueError, match="two experiments are called 'adder-live'"):
        experiments.register([experiments.get("adder-certified").__class__(**vars(first) | {"evaluate_every": 1})])


def test_the_settings_of_the_ledger_are_those_of_the_published_sizes():
    """Weights as counted in a model of that size, examples as the sources give them."""
    claims = load_claims()
    value = {id: claims[id].value for id in ("A-23", "P-20", "P-38", "L-11", "L-31", "L-52")}
    adder, of_003 = value["A-23"]["batches"] * value["A-23"]["batch"], value["L-52"]["steps"] * value["L-52"]["batch"]

    def weights(name):
        return experiments.get(name).size()["weights"]

    expected = [
        {"weights": weights("grokking-s0")},
        {"weights": weights("abacus-gpu-source-s0")},
        {"weights": weights("abacus-gpu-source-s0"), "examples": adder},
        {"weights": value["P-20"]["standard_million"] * 10**6},
        {"weights": value["P-38"]["parameters_million"] * 10**6},
        {"weights": weights("depth-gpu-add-12x1-s0"), "examples": value["L-11"]["examples"]},
        {"weights": weights("depth-gpu-hop16-6x1-s0"), "examples": of_003},
        {"weights": weights("graphs-gpu-8x1-s0"), "examples": of_003},
        {"weights": value["L-31"]["parameters_billion"] * 10**9},
    ]
    found = [dict(claim.setting) for claim in claims.values() if claim.rule and claim.setting]
    assert {tuple(one.items()) for one in found} == {tuple(one.items()) for one in expected}
