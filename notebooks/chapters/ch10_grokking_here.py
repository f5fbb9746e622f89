"""A small network that the reader's own browser trains until it groks (chapters 10 and 12).

book/_static/grokking-here.mjs trains it, as `bookkit.web_components` tells: full batch, AdamW, gradients by hand. It
begins with the weights of the run `grokking-page`, which torch has trained, and a page says how that went.
"""

import base64
import math
from dataclasses import dataclass

import numpy as np
import safetensors.torch

from arithlib import checkpoints, experiments
from arithlib.analysis.progress import first_step
from bookkit.web_components import element, whole_source

MODULE = "grokking-here.mjs"
RUN = "grokking-page"


def initial_weights() -> bytes:
    """The network before its first step, as a safetensors file."""
    return safetensors.torch.save(dict(experiments.get(RUN).build().state_dict()))


def training_bits() -> bytes:
    """One bit for each pair (a, b), row by row, whether it trains; the highest bit of a byte comes first."""
    return np.packbits(experiments.get(RUN).task.train_mask.numpy()).tobytes()


def describe() -> str:
    """What torch made of this run, in words."""
    run, history = experiments.get(RUN), checkpoints.read(RUN).history
    memorised, grokked = (first_step(history, f"{split}_accuracy", 1) for split in ("train", "test"))
    return (
        f"A network of {run.size()['weights']:,} weights learns to add modulo {run.task.p} from "
        f"{run.task.train_fraction:.0%} of all pairs. Trained by torch from the same start, it knows all training "
        f"pairs by step {memorised} and gets all unseen pairs right by step {grokked} of {run.steps:,}."
    )


@dataclass(frozen=True)
class GrokkingHere:
    """The network and a button that trains it, for the last line of a cell."""

    def __repr__(self) -> str:
        return f"A network that is trained in the page, for a screen. {describe()}"

    def _repr_html_(self) -> str:
        run = experiments.get(RUN)
        given = {
            "lr": run.optimizer.lr, "decay": run.optimizer.weight_decay, "warmup": run.optimizer.warmup_steps,
            "steps": run.steps,
            "seen": base64.b64encode(training_bits()).decode(),
            "weights": base64.b64encode(initial_weights()).decode(),
        }  # fmt: skip
        return element("grokking-here", given, f"{self} It needs JavaScript.", MODULE)

    def page_bytes(self) -> int:
        """What weights and script add to a page that is loaded for the first time, before compression."""
        return len(whole_source(MODULE).encode()) + math.ceil(len(initial_weights()) / 3) * 4
