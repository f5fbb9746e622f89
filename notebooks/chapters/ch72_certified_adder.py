"""The certified adder of chapter 72: any two numbers added by the proven network, and its proof, in the browser.

book/_static/certified-adder.mjs runs it, as `bookkit.web_components` tells.
"""

import base64
import json
import math
from dataclasses import dataclass

import numpy as np
import torch

from arithlib import checkpoints
from arithlib.certify import certificates
from arithlib.evaluation import logit_margin
from arithlib.streaming import WINDOW_DISTANCE, WINDOW_NUMBER, add, columns, context_logits, contexts
from arithlib.tasks.operands import digits_of
from bookkit.web_components import element

MODULE = "certified-adder.mjs"
NETWORK = "adder-certified"
ENDS = 30  # digits at either end of a number that are shown of long ones


@dataclass(frozen=True)
class CertifiedAdder:
    """An adder for the last line of a cell; the two numbers are where it starts.

    a, b: integers of 0 or more; ValueError for anything else. proof: whether its proof is there to be checked, too.
    """

    a: int
    b: int
    proof: bool = True

    def __post_init__(self):
        for name in ("a", "b"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 0:
                raise ValueError(f"{name} = {getattr(self, name)!r}: the network adds integers of 0 or more")

    def __repr__(self) -> str:
        return f"The certified adder, for a screen. {describe(self.a, self.b)}"

    def _repr_html_(self) -> str:
        words = f"{self} It needs JavaScript."
        weights = checkpoints.find(NETWORK).joinpath(f"{NETWORK}.safetensors").read_bytes()
        given = {
            "a": self.a,
            "b": self.b,
            "weights": base64.b64encode(weights).decode(),
            "certificate": json.dumps(certificates.covering(NETWORK)),
        }
        return element("certified-adder", given | ({} if self.proof else {"brief": ""}), words, MODULE)


@torch.no_grad()
def describe(a: int, b: int) -> str:
    """What becomes of a + b, in words.

    >>> describe(95, 17)[:61]
    'The network writes 95 + 17 = 112. That is right. It met 4 dif'
    """
    model = checkpoints.load(NETWORK).model
    written, right = add(model, a, b), a + b
    verdict = "That is right." if written == right else f"That is wrong: the sum is {shown(right)}."
    lines = columns(*digits_of([a, b]).split(1))
    query, keys, following = contexts(lines, WINDOW_NUMBER, WINDOW_DISTANCE, 0, lines.shape[2] - 1)
    lead = logit_margin(context_logits(model, query, keys, WINDOW_NUMBER, WINDOW_DISTANCE), following).min()
    met = len(np.unique(keys, axis=0))
    return (
        f"The network writes {shown(a)} + {shown(b)} = {shown(written)}. {verdict} "
        f"It met {met:,} different situations (what it sees of the digits at once); what it wrote was ahead of all "
        f"else by at least {math.floor(10 * lead) / 10:.1f} logits."
    )


def shown(number: int) -> str:
    """A number as it is written, and of a long one both ends."""
    digits = str(number)
    if len(digits) <= 2 * ENDS:
        return digits
    return f"{digits[:ENDS]} … {digits[-ENDS:]} ({len(digits):,} digits)"
