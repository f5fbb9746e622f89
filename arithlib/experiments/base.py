"""What every experiment has: a name, a length, seeds, and settings that say all that decides its outcome."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from arithlib import settings
from arithlib.training import AdamW, Run


class NotAnAdder(ValueError):
    """A model was asked for a sum and was trained on something else."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One training run.

    name: how it is asked for. about: one sentence on what it is for. scale: "cpu" (minutes on two cores) or "gpu".
    steps, evaluate_every, snapshot_steps: length of the run and when it is measured and photographed.
    model_seed: initialisation; the task has its own data seed.
    ships_weights: whether the book keeps the trained weights, or of many small runs only what was measured.
    """

    name: str = settings.remark()
    about: str = settings.remark()
    steps: int
    evaluate_every: int
    snapshot_steps: tuple[int, ...] = ()
    model_seed: int = 0
    optimizer: AdamW = AdamW()
    scale: str = settings.remark("cpu")
    ships_weights: bool = settings.remark(True)

    def settings(self) -> dict:
        """Everything that decides the outcome, as plain JSON values; `settings.from_json` reads it back."""
        return settings.to_json(self)

    def hash(self) -> str:
        """Sixteen hexadecimal digits that change with any setting; an option at its default changes nothing."""
        return settings.identity(self)

    def build(self) -> nn.Module:
        """The untrained model."""
        raise TypeError(f"{type(self).__name__} does not say how to build its model")

    def objective(self, model: nn.Module, device: torch.device):
        """What `training.train` minimises and measures."""
        raise TypeError(f"{type(self).__name__} does not say what it trains on")

    def kept_model(self, model: nn.Module) -> nn.Module:
        """What a checkpoint holds of a trained model: all of it, unless some was there for training alone."""
        return model

    def after_step(self, model: nn.Module) -> None:
        """Applied after each update, for constrained parameters."""

    def finish(self, model: nn.Module, run: Run) -> dict[str, np.ndarray]:
        """Further history that only the finished run can give, from its snapshots."""
        return {}

    def add(self, model: nn.Module, a: int, b: int) -> int:
        """a + b as the trained model writes it, by greedy decoding, in the form that it was trained on.

        Raises NotAnAdder where that is no sum of two numbers, and ValueError for operands that cannot be written in
        that form, or an answer that is no number.
        """
        raise NotAnAdder(f"{self.name} adds no two numbers: it was trained on {self.about}")
