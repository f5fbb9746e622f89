"""Looped adders of which it is measured how long they know the places of digits (chapter 67)."""

from dataclasses import dataclass

import numpy as np
import torch

from arithlib.experiments.abacus import AbacusExperiment
from arithlib.settings import of_kind
from chapters.ch67_loops import addresses_read


@of_kind("probed-adder")
@dataclass(frozen=True, kw_only=True)
class ProbedAdder(AbacusExperiment):
    """An adder whose addresses are probed when it is trained.

    probed_sums: that the probe learns from, and as many others that test it. probed_loops: after so many, and all
    fewer.
    """

    probed_sums: int = 500
    probed_loops: int = 8

    @torch.no_grad()
    def finish(self, model, run):
        """And address_read: (1, loops + 1) share of addresses read, from the input and after each loop."""
        read = addresses_read(self, model, self.probed_sums, self.probed_loops)
        return super().finish(model, run) | {"address_read": np.array([read])}
