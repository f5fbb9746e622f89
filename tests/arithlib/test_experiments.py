"""Tables of runs, and the random numbers that each run draws."""

import torch

from arithlib.experiments import GrokkingExperiment, sweep
from arithlib.training import AdamW

RUN = GrokkingExperiment(name="small", about="a test", steps=20, evaluate_every=10)


def draws(generator):
    return torch.randint(2**62, (2,), generator=generator).tolist()


def test_a_sweep_is_every_variant_with_every_seed():
    runs = list(sweep(RUN, {"": {}, "decayed": dict(optimizer=AdamW(weight_decay=3.0))}, range(2)))
    assert [run.name for run in runs] == ["small-s0", "small-s1", "small-decayed-s0", "small-decayed-s1"]
    assert [run.seed for run in runs] == [0, 1, 0, 1]
    assert [run.optimizer.weight_decay for run in runs] == [1, 1, 3, 3]
    assert len({run.hash() for run in runs}) == 4 and runs[0].hash() == RUN.hash()


def test_a_step_draws_the_same_again_and_no_other_step_or_test_does():
    one, other = sweep(RUN, {"": {}}, (0, 1))
    assert draws(one.generator(7)) == draws(one.generator(7))
    generators = [run.generator(step) for run in (one, other) for step in range(50)]
    generators += [run.apart(which) for run, which in ((one, 0), (one, 1), (other, 1))]
    assert len({tuple(draws(generator)) for generator in generators}) == len(generators)
