"""Which situations the training of an adder has met: its batches are drawn again (chapter 72)."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from arithlib.certify.addition import reachable
from arithlib.certify.mutants import visits
from arithlib.experiments.adder import AdderExperiment
from arithlib.tasks.operands import OperandTask


@dataclass(frozen=True)
class _Drawn(OperandTask):
    """Draws as `OperandTask` does and does not write the text, which takes most of the time."""

    def write(self, a: Tensor, b: Tensor, operation: Tensor) -> tuple[Tensor, Tensor]:
        return a, b


def batches(experiment: AdderExperiment, steps: int) -> tuple[Tensor, Tensor]:
    """(steps * batch_size, N) digits of both operands in the first steps of training, least significant first."""
    task = _Drawn(**vars(experiment.task))
    drawn = [task.sample(experiment.batch_size, experiment.generator(step)) for step in range(steps)]
    a, b = map(torch.cat, zip(*drawn, strict=True))
    return a, b


def times_met(experiment: AdderExperiment, steps: int) -> np.ndarray:
    """(C,) how often the first steps of training have asked for the token after each reachable context."""
    places, _ = visits(*batches(experiment, steps))
    return np.bincount(places, minlength=len(reachable().contexts))
