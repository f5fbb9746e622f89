"""What every experiment has: a name, a length, seeds, and a hash of all that decides its outcome."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import nn

from arithlib.training import AdamW, Run


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One training run.

    name: how it is asked for. about: one sentence on what it is for. scale: "cpu" (minutes on two cores) or "gpu".
    steps, evaluate_every, snapshot_steps: length of the run and when it is measured and photographed.
    model_seed: initialisation; the task has its own data seed.
    ships_weights: whether the book keeps the trained weights, or of many small runs only what was measured.
    """

    name: str
    about: str
    steps: int
    evaluate_every: int
    snapshot_steps: tuple[int, ...] = ()
    model_seed: int = 0
    optimizer: AdamW = AdamW()
    scale: str = "cpu"
    ships_weights: bool = True

    version: ClassVar[int] = 1  # raise when the meaning of a field changes: older checkpoints become stale
    shares_batches: ClassVar[bool] = False  # whether the objective computes only this process's rows of a batch
    not_hashed: ClassVar[tuple[str, ...]] = ("name", "about", "scale", "ships_weights")

    def settings(self) -> dict:
        """Everything that decides the outcome, as plain JSON values."""
        fields = {k: v for k, v in dataclasses.asdict(self).items() if k not in self.not_hashed}
        return json.loads(json.dumps({"kind": type(self).__name__, "version": self.version} | fields))

    def hash(self) -> str:
        """Sixteen hexadecimal digits that change with any setting."""
        return hashlib.sha256(json.dumps(self.settings(), sort_keys=True).encode()).hexdigest()[:16]

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
