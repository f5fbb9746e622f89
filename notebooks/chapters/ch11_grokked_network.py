"""The grokked network of part 1 in the browser: every step from two numbers to 113 logits (chapters 11 and 24).

book/_static/grokked-network.mjs runs it, as `bookkit.web_components` tells. A page carries it folded
(`arithlib.analysis.folded`), and loads the snapshots of its training when a reader asks for one.
"""

import base64
import json
import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

import safetensors.torch
import torch
from torch import Tensor

from arithlib import checkpoints, experiments
from arithlib.analysis.folded import Folded, pack, unpack
from arithlib.analysis.fourier import key_frequencies, power_spectrum
from arithlib.evaluation import logit_margin
from bookkit.web_components import asset, element, whole_source

MODULE = "grokked-network.mjs"
NETWORK = "grokking-s0"
LATER = "grokked-snapshots.mjs"
SNAPSHOTS = "grokking-epochs"  # its training again, kept at some steps


@lru_cache
def _shipped(network: str) -> tuple[dict[str, Tensor], list[int]]:
    model = checkpoints.load(network).model
    keys = key_frequencies(power_spectrum(model.W_E[: model.config.p]))
    return pack(model, keys), keys


@lru_cache
def snapshots() -> dict[int, dict[str, Tensor]]:
    """The network while it was trained: step -> what the page carries of it then."""
    found: dict[int, dict[str, Tensor]] = {}
    for key, table in checkpoints.read(SNAPSHOTS).history.items():
        step, _, name = key.partition("/")
        if name:
            found.setdefault(int(step), {})[name] = torch.from_numpy(table)
    return dict(sorted(found.items()))


def snapshot_bytes() -> bytes:
    """All of them as one safetensors file, each table called STEP/NAME."""
    return safetensors.torch.save(
        {f"{step}/{name}": table for step, packed in snapshots().items() for name, table in packed.items()}
    )


def training() -> list[tuple[int, str]]:
    """Each snapshot's step, the network itself being the last, and how it fared in words, as measured in training."""
    again, whole = checkpoints.read(SNAPSHOTS), checkpoints.read(NETWORK)
    steps = whole.experiment.steps
    return [(step, _fared(again, step, steps)) for step in snapshots()] + [(steps, _fared(whole, steps, steps))]


def _fared(trained, step: int, steps: int) -> str:
    share = {split: float(trained.at(step, f"{split}_accuracy")) for split in ("train", "test")}
    loss = {split: float(trained.at(step, f"{split}_loss")) for split in ("train", "test")}
    percent = {split: f"{math.floor(1000 * x) / 10:.1f} %" if x < 1 else "100 %" for split, x in share.items()}
    return (
        f"Step {step:,} of {steps:,}. Training pairs: {percent['train']} right, loss {loss['train']:.2g}. "
        f"Unseen pairs: {percent['test']} right, loss {loss['test']:.2g}."
    )


def page_network(network: str = NETWORK) -> Folded:
    """The network as a page has it."""
    return unpack(_shipped(network)[0])


@dataclass(frozen=True)
class GrokkedNetwork:
    """The network at work, for the last line of a cell; the two numbers are where it starts.

    a, b: integers from 0 to 112; ValueError for anything else.
    """

    a: int
    b: int
    network: str = NETWORK

    def __post_init__(self):
        p = page_network(self.network).p
        for name in ("a", "b"):
            if not isinstance(getattr(self, name), int) or not 0 <= getattr(self, name) < p:
                raise ValueError(f"{name} = {getattr(self, name)!r}: the network adds integers from 0 to {p - 1}")

    def __repr__(self) -> str:
        return f"The grokked network, for a screen. {describe(self.a, self.b, network=self.network)}"

    def _repr_html_(self) -> str:
        packed, keys = _shipped(self.network)
        given = {
            "a": self.a,
            "b": self.b,
            "frequencies": " ".join(map(str, keys)),
            "seen": base64.b64encode(experiments.get(self.network).task.training_bits()).decode(),
            "weights": base64.b64encode(safetensors.torch.save(packed)).decode(),
        }
        if self.network == NETWORK:
            given["history"] = json.dumps(training())
            given["snapshots"] = asset(LATER, snapshot_bytes())
        return element("grokked-network", given, f"{self} It needs JavaScript.", MODULE)

    def page_bytes(self) -> int:
        """What weights, training pairs and script add to a page before anybody looks back, before compression."""
        script = len(whole_source(MODULE).encode())
        carried = (
            safetensors.torch.save(_shipped(self.network)[0]),
            experiments.get(self.network).task.training_bits(),
        )
        return script + sum(math.ceil(len(part) / 3) * 4 for part in carried)

    def later_bytes(self) -> int:
        """What the snapshots add once somebody looks back."""
        return math.ceil(len(snapshot_bytes()) / 3) * 4


@torch.no_grad()
def describe(a: int, b: int, removed: Collection[int] = (), network: str = NETWORK) -> str:
    """What the network answers, in words; `removed` frequencies are taken out of its embedding.

    >>> describe(37, 58).partition(", ahead")[0]
    '37 + 58, an unseen pair: the highest logit is that of 95'
    """
    net = page_network(network).without(removed)
    logits = net.logits(torch.tensor([[a, b]]))[0]
    best, second = logits.topk(2).indices.tolist()
    lead = math.floor(10 * float(logit_margin(logits, torch.tensor(best)))) / 10
    pair = "a training pair" if experiments.get(network).task.train_mask[a * net.p + b] else "an unseen pair"
    right = (a + b) % net.p
    verdict = "That is right" if best == right else f"That is wrong: it is {right}"
    return (
        f"{a} + {b}, {pair}: the highest logit is that of {best}, ahead of {second} by {lead:.1f}. "
        f"{verdict}, modulo {net.p}."
    )


@torch.no_grad()
def count_right(net: Folded) -> int:
    """How many of the P^2 pairs the network gets right."""
    pairs = torch.cartesian_prod(torch.arange(net.p), torch.arange(net.p))
    return int((net.logits(pairs).argmax(1) == pairs.sum(1) % net.p).sum())
