"""Tiny adders trained together: one scaffold has one shape, whatever size comes out of it (chapter 73). ::

    python -m chapters.ch73_ensemble "tiny-*"

Weights are stacked along a first axis S, and each model has its own batches, its own mask and its own loss, as if it
were trained alone; only the rounding differs. Fifteen cost little more than three.
"""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, vmap

from arithlib import checkpoints, experiments
from arithlib.training import train
from chapters.ch73_experiments import HARDEST_EVERY, TinyExperiment, TinyObjective


class Ensemble(nn.Module):
    """S models of one size as one module; parameter `name` has shape (S, ...)."""

    def __init__(self, models: list[nn.Module]):
        super().__init__()
        self.names = [name for name, _ in models[0].named_parameters()]
        states = [dict(model.named_parameters()) for model in models]
        stacked = {name: torch.stack([state[name].detach() for state in states]) for name in self.names}
        self.stacked = nn.ParameterDict(
            {name.replace(".", "/"): nn.Parameter(value) for name, value in stacked.items()}
        )

    def weights(self) -> dict[str, Tensor]:
        return {name: self.stacked[name.replace(".", "/")] for name in self.names}


class EnsembleObjective:
    """The sum of each model's own loss, so that each gets its own gradient."""

    def __init__(self, parts: list[TinyObjective]):
        self.parts = parts
        self.kept = {name: torch.stack([part.kept[name] for part in parts]) for name in parts[0].kept}
        answering = parts[0].answering
        self.logits = vmap(
            lambda weights, keys: functional_call(answering, {f"model.{n}": w for n, w in weights.items()}, (keys,))
        )

    def loss(self, model: Ensemble, step: int) -> Tensor:
        if self.parts[0].hard is None or step % HARDEST_EVERY == 0:
            self._hand_out(model)
        situations = torch.stack([part.batch(step) for part in self.parts])
        share = self.parts[0].share
        weights = {name: value * (share + (1 - share) * self.kept[name]) for name, value in model.weights().items()}
        logits = self.logits(weights, situations[..., :-1])
        return len(self.parts) * F.cross_entropy(logits.flatten(0, 1), situations[..., -1].flatten())

    @torch.no_grad()
    def evaluate(self, model: Ensemble) -> dict[str, np.ndarray]:
        """Each model's own measurements, stacked along a first axis."""
        self._hand_out(model)
        measured = [part.evaluate(part.answering.model) for part in self.parts]
        return {name: np.array([m[name] for m in measured]) for name in measured[0]}

    @torch.no_grad()
    def _hand_out(self, model):
        """To each model its own weights."""
        for index, part in enumerate(self.parts):
            for name, value in part.answering.model.named_parameters():
                value.copy_(model.weights()[name][index])


def make(names: list[str]) -> list[checkpoints.Trained]:
    """Train tiny adders of one scaffold together; one checkpoint each, in runs/."""
    chosen = [experiments.get(name) for name in names]
    first = chosen[0]
    for experiment in chosen:
        alike = isinstance(experiment, TinyExperiment) and experiment.scaffold == first.scaffold
        if not alike or experiment.optimizer != first.optimizer:
            raise ValueError(f"{experiment.name} cannot be trained together with {first.name}")
    device, folder = torch.device("cpu"), checkpoints.local_folder()
    models = [experiment.build() for experiment in chosen]
    parts = [experiment.objective(model, device) for experiment, model in zip(chosen, models, strict=True)]
    ensemble = Ensemble(models)
    run = train(
        ensemble, EnsembleObjective(parts), first.optimizer, first.steps, evaluate_every=first.evaluate_every,
        state=folder / "ensemble.state.safetensors", label=f"{len(chosen)} models",
    )  # fmt: skip
    trained = []
    for index, (experiment, part) in enumerate(zip(chosen, parts, strict=True)):
        model = experiment.kept_model(part.answering.model).eval()
        history = {name: values if name == "step" else values[:, index] for name, values in run.history.items()}
        note = checkpoints.provenance(experiment, history, run.seconds, device, stack=len(chosen))
        trained.append(checkpoints.Trained(experiment, model, history, note))
        checkpoints.write(trained[-1], folder)
    (folder / "ensemble.state.safetensors").unlink(missing_ok=True)
    return trained


if __name__ == "__main__":
    make([experiment.name for pattern in sys.argv[1:] for experiment in experiments.match(pattern)])
