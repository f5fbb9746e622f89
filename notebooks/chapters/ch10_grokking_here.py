"""Networks that the reader's own browser trains until they grok (chapters 10 and 12): a small one, and chapter 10's.

book/_static/grokking-here.mjs trains them in a worker, as `bookkit.web_components` tells: full batch, AdamW,
gradients by hand. Each begins with the weights of a run that torch has trained, and a page says how that went. The
weights of the large one are loaded once a reader chooses it.
"""

import base64
import json
import math
from dataclasses import dataclass

import safetensors.torch

from arithlib import checkpoints, experiments
from arithlib.analysis.progress import first_step
from bookkit.web_components import asset, element, whole_source

MODULE = "grokking-here.mjs"
RUN, LARGE = "grokking-page", "grokking-s0"
LATER = "grokking-initial.mjs"
FOLLOWED = {RUN: RUN, LARGE: "grokking-live"}  # for as many steps as this run has: well past the last unseen pair


def initial_weights(name: str = RUN) -> bytes:
    """The network before its first step, as a safetensors file."""
    return safetensors.torch.save(dict(experiments.get(name).build().state_dict()))


def network(name: str = RUN) -> dict[str, object]:
    """What a page is told of one of the networks."""
    optimizer, p = experiments.get(name).optimizer, experiments.get(name).task.p
    given = {
        "name": f"modulo {p}" + (", the network of chapter 10" if name == LARGE else ""),
        "lr": optimizer.lr, "decay": optimizer.weight_decay, "warmup": optimizer.warmup_steps,
        "steps": experiments.get(FOLLOWED[name]).steps,
        "seen": base64.b64encode(experiments.get(name).task.training_bits()).decode(),
    }  # fmt: skip
    if name == LARGE:
        return given | {"src": asset(LATER, initial_weights(name))}
    return given | {"weights": base64.b64encode(initial_weights(name)).decode()}


def describe() -> str:
    """What torch made of the small one, in words."""
    run, history = experiments.get(RUN), checkpoints.read(RUN).history
    memorised, grokked = (first_step(history, f"{split}_accuracy", 1) for split in ("train", "test"))
    return (
        f"A network of {run.size()['weights']:,} weights learns to add modulo {run.task.p} from "
        f"{run.task.train_fraction:.0%} of all pairs. Trained by torch from the same start, it knows all training "
        f"pairs by step {memorised} and gets all unseen pairs right by step {grokked} of {run.steps:,}."
    )


@dataclass(frozen=True)
class GrokkingHere:
    """The networks and a button that trains one, for the last line of a cell."""

    def __repr__(self) -> str:
        return f"A network that is trained in the page, for a screen. {describe()}"

    def _repr_html_(self) -> str:
        networks = json.dumps([network(RUN), network(LARGE)])
        return element("grokking-here", {"networks": networks}, f"{self} It needs JavaScript.", MODULE)

    def page_bytes(self) -> int:
        """What weights and script add to a page that is loaded for the first time, before compression."""
        return len(whole_source(MODULE).encode()) + math.ceil(len(initial_weights()) / 3) * 4

    def later_bytes(self) -> int:
        """What the weights of the large network add once somebody chooses it."""
        return math.ceil(len(initial_weights(LARGE)) / 3) * 4
