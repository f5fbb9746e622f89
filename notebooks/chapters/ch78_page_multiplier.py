"""A network that multiplies on a page, in the browser: step through what it sees and writes (chapters 68 and 78).

book/_static/long-multiplication.mjs runs it, as `bookkit.web_components` tells. The weights are those of the
checkpoint, every bit of them, so that its certificate is about them.
"""

import base64
import math
from dataclasses import dataclass
from functools import lru_cache

import safetensors.torch

from arithlib import checkpoints
from bookkit.web_components import element, whole_source
from chapters.ch78_long_multiplication import continued

MODULE = "long-multiplication.mjs"
NETWORK = "pages-s0"
DIGITS = 8  # of the longest factor that is taken


@lru_cache
def _shipped():
    """The trained network, and its weights as a page is given them."""
    trained = checkpoints.load(NETWORK)
    return trained, safetensors.torch.save({k: v.contiguous() for k, v in trained.model.state_dict().items()})


def describe(a: int, b: int) -> str:
    """What becomes of a times b, in words.

    >>> describe(512, 439)
    '512 × 439: the network writes 224768, in 31 tokens. That is right.'
    """
    trained = _shipped()[0]
    task = trained.experiment.task
    question = task.ask(a, b)
    page = continued(trained.model, question, limit=10_000)
    says, written = task.read(page), len(page) - len(question)
    verdict = "That is right." if says == a * b else f"That is wrong: it is {a * b}."
    return f"{a} × {b}: the network writes {says}, in {written} tokens. {verdict}"


@dataclass(frozen=True)
class PageMultiplier:
    """The network at work, for the last line of a cell; the factors and the step are where it starts.

    a, b: of at most DIGITS digits. step: tokens of the page that are shown. Raises ValueError for anything else.
    """

    a: int
    b: int
    step: int = 13

    def __post_init__(self):
        for name, most in (("a", 10**DIGITS - 1), ("b", 10**DIGITS - 1), ("step", 10_000)):
            if not isinstance(getattr(self, name), int) or not 0 <= getattr(self, name) <= most:
                raise ValueError(f"{name} = {getattr(self, name)!r}: an integer from 0 to {most} is taken")

    def __repr__(self) -> str:
        return f"A network that multiplies on a page, for a screen. {describe(self.a, self.b)}"

    def _repr_html_(self) -> str:
        trained, weights = _shipped()
        given = {
            "a": self.a, "b": self.b, "step": self.step, "digits": DIGITS, "heads": trained.model.config.n_heads,
            "weights": base64.b64encode(weights).decode(),
        }  # fmt: skip
        return element("long-multiplication", given, f"{self} It needs JavaScript.", MODULE)

    def page_bytes(self) -> int:
        """What weights and script add to a page that is loaded for the first time, before compression."""
        return len(whole_source(MODULE).encode()) + math.ceil(len(_shipped()[1]) / 3) * 4
