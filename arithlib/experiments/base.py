"""What every experiment has: a name, a length, seeds, and settings that say all that decides its outcome."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import nn

from arithlib import settings
from arithlib.training import AdamW, Run, Settled, train


class NotItsTask(ValueError):
    """A model was asked for an operation that it was not trained on."""


class NotAnAdder(NotItsTask):
    """A model was asked for a sum and was trained on something else."""


class NotAMultiplier(NotItsTask):
    """A model was asked for a product and was trained on something else, or not to be asked one at a time."""


class NotASubtractor(NotItsTask):
    """A model was asked for a difference and was trained on something else, or not to be asked one at a time."""


def half_precision(device: torch.device) -> torch.autocast:
    """Products in bfloat16 where that device is a GPU, and nothing else changed."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One training run.

    name: how it is asked for. about: one sentence on what it is for. scale: "cpu" (minutes on two cores) or "gpu".
    steps, evaluate_every, snapshot_steps: length of the run and when it is evaluated and its weights are kept.
    until: what ends the run before that many steps.
    seed: of the initialisation and of what is drawn at each step; what a task holds out has a seed of its own.
    ships_weights: whether the book keeps the trained weights, or of many small runs only what was measured.
    """

    name: str = settings.remark()
    about: str = settings.remark()
    steps: int
    evaluate_every: int
    snapshot_steps: tuple[int, ...] = ()
    until: Settled | None = None
    seed: int = 0
    optimizer: AdamW = AdamW()
    scale: str = settings.remark("cpu")
    ships_weights: bool = settings.remark(True)

    def settings(self) -> dict:
        """Everything that decides the outcome, as plain JSON values; `settings.from_json` reads it back."""
        return settings.to_json(self)

    def hash(self) -> str:
        """Sixteen hexadecimal digits that change with any setting; an option at its default changes nothing."""
        return settings.identity(self)

    network: ClassVar[type[nn.Module]]  # which the settings `model` describe

    def __post_init__(self):
        self.optimizer.require(self.steps)
        if self.until is not None and self.optimizer.schedule != "constant":
            raise ValueError(f"{self.name}: a {self.optimizer.schedule} schedule ends with the run and not before")

    def build(self) -> nn.Module:
        """The untrained model."""
        return self.network(self.model, self.seed)

    def size(self) -> dict[str, int]:
        """How large the run is: weights of its model, and examples it is trained on where these come in batches."""
        weights = sum(weight.numel() for weight in self.build().parameters())
        return {"weights": weights} | (
            {"examples": self.steps * self.batch_size} if hasattr(self, "batch_size") else {}
        )

    def generator(self, step: int, device: torch.device | str = "cpu") -> torch.Generator:
        """The random numbers of one step of training; a run that continues draws them again."""
        return torch.Generator(device).manual_seed((1_000_003 * self.seed + step) % 2**32)

    def apart(self, which: int = 0, device: torch.device | str = "cpu") -> torch.Generator:
        """Random numbers of tests, which are those of no step; `which` tells one test from another."""
        return torch.Generator(device).manual_seed(2**31 + which + self.seed)

    def objective(self, model: nn.Module, device: torch.device):
        """What `training.train` minimises and measures."""
        raise TypeError(f"{type(self).__name__} does not say what it trains on")

    def fit(self, model: nn.Module, device: torch.device, **sitting) -> Run:
        """Train the model. sitting: what `training.train` wants to know of where, how long and how loudly."""
        return train(
            model,
            self.objective(model, device),
            self.optimizer,
            self.steps,
            evaluate_every=self.evaluate_every,
            snapshot_steps=self.snapshot_steps,
            after_step=self.after_step,
            until=self.until,
            **sitting,
        )

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
        raise NotAnAdder(f"{self.name} adds no two numbers. What it is: {self.about}")

    def multiply(self, model: nn.Module, a: int, b: int) -> int:
        """Their product, in the same way. Raises NotAMultiplier, and ValueError as `add` does."""
        raise NotAMultiplier(f"{self.name} cannot be asked for a product. What it is: {self.about}")

    def subtract(self, model: nn.Module, a: int, b: int) -> int:
        """a - b, in the same way. Raises NotASubtractor, and ValueError as `add` does."""
        raise NotASubtractor(f"{self.name} cannot be asked for a difference. What it is: {self.about}")


def sweep(run: Experiment, variants: dict[str, dict], seeds: Iterable[int]) -> Iterator[Experiment]:
    """The rows of a table: every variant of a run with every seed, called NAME-VARIANT-sSEED.

    variants: by name, the fields in which each differs from `run`; the one called "" is `run` itself.
    """
    for variant, changes in variants.items():
        for seed in seeds:
            yield replace(run, name=f"{run.name}{variant and '-'}{variant}-s{seed}", seed=seed, **changes)
