"""What the tests of several families of experiments share: a generator with a seed, and a training of a few steps."""

import torch

from arithlib.training import train


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def trained(experiment):
    """The model of an experiment after its steps, and the run."""
    model = experiment.build()
    made = experiment.objective(model, torch.device("cpu"))
    return model, train(
        model, made, experiment.optimizer, experiment.steps, evaluate_every=experiment.evaluate_every, progress=False
    )
