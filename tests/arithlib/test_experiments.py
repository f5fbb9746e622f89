"""The registry: one module a family, and what was shipped is what it names."""

from pathlib import Path

import pytest

from arithlib import checkpoints, experiments

ROOT = Path(__file__).parents[2]
SHIPPED = [path.stem for path in checkpoints.shipped()]


def test_names_begin_with_their_family():
    for name, experiment in experiments.EXPERIMENTS.items():
        family = name.partition("-")[0]
        assert family in experiments.FAMILIES
        assert type(experiment).__module__ == f"arithlib.experiments.{family}"


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_weights_belong_to_the_experiment_of_their_name(name):
    trained = checkpoints.read(name)
    assert trained.provenance["hash"] == experiments.get(name).hash()
    assert trained.provenance["settings"] == experiments.get(name).settings()
