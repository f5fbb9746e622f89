"""The hop stepper of chapter 43: the loops of `arithlib.models.constructions.Hopper`, one at a time, in the browser.

book/_static/hop-stepper.mjs draws it, as `bookkit.web_components` tells.
"""

from dataclasses import dataclass

import torch

from arithlib.models.constructions import Hopper
from bookkit.web_components import element

LETTERS = "abcd"
LONGEST, MOST = 40, 31  # letters of a text, hops
MODULE = "hop-stepper.mjs"


@dataclass(frozen=True)
class HopStepper:
    """A stepper for the last line of a cell; text and number of hops are where it starts.

    text: 1 to 40 of the letters a to d. hops: p, 1 to 31. Raises ValueError for anything else.
    """

    text: str
    hops: int

    def __post_init__(self):
        if not 1 <= len(self.text) <= LONGEST or set(self.text) - set(LETTERS):
            raise ValueError(f"text = {self.text!r}: 1 to {LONGEST} of the letters {LETTERS}")
        if self.hops not in range(1, MOST + 1):
            raise ValueError(f"hops = {self.hops!r}: a whole number from 1 to {MOST}")

    def __repr__(self) -> str:
        return (
            f"A stepper through the loops that solve {self.hops} hops in the text {self.text}, for a screen. "
            f"{describe(self.text, self.hops, Hopper(self.hops, len(self.text)).loops)}"
        )

    def _repr_html_(self) -> str:
        words = f"{self} It needs JavaScript; the figure beneath does not."
        return element("hop-stepper", {"text": self.text, "hops": self.hops}, words, MODULE)


def states(text: str, p: int) -> tuple[list[list[int]], list[list[str]]]:
    """Pointers (places from 1, 0 for nowhere) and carried letters before and after each loop, by the weights."""
    hopper = Hopper(p, len(text))
    pointers, carried = hopper.states(torch.tensor([[LETTERS.index(letter) for letter in text]]))
    letters = [*LETTERS, ""]  # -1, no token, is the last of them
    return pointers[:, 0].tolist(), [[letters[token] for token in row] for row in carried[:, 0].tolist()]


def describe(text: str, p: int, loop: int) -> str:
    """One state in words.

    >>> describe("abcab", 1, 2)
    'After loop 2 of 2 every pointer leads 2 hops away. The last place carries c, from 1 hop away: the answer.'
    """
    _, carried = states(text, p)
    if loop == 0:
        return "Before the first loop no place points anywhere, and each carries its own letter."
    last = len(carried) - 1
    reach = f"After loop {loop} of {last} every pointer leads {_count(2 ** (loop - 1))} away."
    letter, done = carried[loop][-1], _count(p % 2 ** (loop - 1))
    if not letter:
        leads = "leads" if done == "1 hop" else "lead"
        return f"{reach} The last place carries nothing, because {done} {leads} nowhere."
    return f"{reach} The last place carries {letter}, from {done} away{': the answer.' if loop == last else '.'}"


def _count(hops: int) -> str:
    return f"{hops} hop" if hops == 1 else f"{hops} hops"
