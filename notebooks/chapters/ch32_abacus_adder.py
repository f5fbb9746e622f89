"""A small adder with Abacus addresses in the browser: move its offset, its loops and its addresses (chapters 32, 33).

book/_static/abacus-adder.mjs runs it, as `bookkit.web_components` tells.

Dimensions: B texts, T tokens, D d_model, R rows of the address table, L lengths.
"""

import base64
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import safetensors.torch
import torch
from torch import Tensor

from arithlib import checkpoints
from arithlib.exact_match import length_grid
from arithlib.models.looped import LoopedTransformer
from arithlib.models.positions import PositionTerms, number_index
from arithlib.tokenizer import ALPHABET, END, EQUALS
from bookkit.web_components import element, whole_source

MODULE = "abacus-adder.mjs"
NETWORK = "abacus-page"
ROWS = 40  # of the address table, as many as a page carries
DIGITS = 14  # of the longest number that is taken
OFFSETS = ROWS - DIGITS - 2  # offsets that leave a row for every digit of a sum, from 0
LOOPS, SHIFT = 6, 3  # the most loops, and the farthest that the second number's addresses are moved
LARGEST = 2**15 - 1


# ---- weights -----------------------------------------------------------------------------------------------------


def pack(model: LoopedTransformer) -> dict[str, Tensor]:
    """What the page carries: matrices as whole numbers of 16 bits with one scale each, vectors as they are.

    Of the address table the first ROWS rows.
    """
    packed = {}
    for name, weight in model.state_dict().items():
        weight = weight[:ROWS] if name == "positions.rows.weight" else weight
        if weight.ndim == 2:
            scale = weight.abs().max() / LARGEST
            packed |= {name: (weight / scale).round().short(), f"{name}.scale": scale[None]}
        else:
            packed[name] = weight
    return packed


@lru_cache
def _shipped() -> tuple[LoopedTransformer, dict[str, Tensor]]:
    """The network as a page has it, and what the page is given."""
    model = checkpoints.load(NETWORK).model
    packed = pack(model)
    state = model.state_dict()
    for name, weight in packed.items():
        if not name.endswith(".scale"):
            whole = weight.float() * packed[f"{name}.scale"] if weight.ndim == 2 else weight
            state[name][: len(whole)] = whole
    model.load_state_dict(state)
    return model, packed


def page_adder() -> LoopedTransformer:
    """The network as a page has it: its weights are those of the checkpoint to 16 bits."""
    return _shipped()[0]


@lru_cache
def page_grid(count: int = 10) -> np.ndarray:
    """(L, L) share of right sums of 1 to DIGITS digits in either number, at the network's own offset and loops."""
    experiment, lengths = checkpoints.read(NETWORK).experiment, range(1, DIGITS + 1)
    return length_grid(page_adder(), experiment.task, lengths, lengths, count=count)


# ---- the sum -----------------------------------------------------------------------------------------------------


def addresses_of(tokens: Tensor, offset: int, shift: int = 0) -> Tensor:
    """(B, T) tokens of sums -> (B, T) rows: Abacus addresses, those of the second number moved by `shift`.

    No address of a digit is less than 1.
    """
    index = number_index(tokens)
    second = (tokens == ALPHABET.index("+")).cumsum(1).bool() & ~(tokens == EQUALS).cumsum(1).bool()
    return torch.where(index > 0, (index + offset + shift * second).clamp(min=1), 0)


@torch.no_grad()
def logits_of(model: LoopedTransformer, tokens: Tensor, rows: Tensor, loops: int) -> Tensor:
    """(B, T) tokens and rows of the address table -> (B, T, V) logits of the next token."""
    e = model.embedding(tokens) + model.positions.rows(rows)
    return model.logits(model.states(e, PositionTerms(), loops)[-1])


def write(a: str, b: str, offset: int, loops: int, shift: int = 0) -> tuple[str, list[float]]:
    """What the network writes, as text from the last digit to the first, and the probability of each of its tokens.

    The end token is among these; writing stops at one digit more than any sum of these numbers has.
    """
    model = page_adder()
    text = [ALPHABET.index(sign) for sign in f"{a[::-1]}+{b[::-1]}="]
    start, most = len(text), max(len(a), len(b)) + 2
    probabilities = []
    while len(probabilities) < most and text[-1] != END:
        tokens = torch.tensor([text])
        chance = logits_of(model, tokens, addresses_of(tokens, offset, shift), loops)[0, -1].softmax(-1)
        text.append(int(chance.argmax()))
        probabilities.append(float(chance.max()))
    return "".join(ALPHABET[token] for token in text[start:] if token != END), probabilities


def describe(a: str, b: str, offset: int, loops: int, shift: int = 0) -> str:
    """What becomes of a + b, in words.

    >>> describe("57", "24", 6, 2)
    '57 + 24: the network writes 81. That is right.'
    """
    written, _ = write(a, b, offset, loops, shift)
    right = str(int(a) + int(b))
    verdict = "That is right." if written[::-1] == right else f"That is wrong: it is {right}."
    return f"{int(a)} + {int(b)}: the network writes {written[::-1] or 'nothing'}. {verdict}"


# ---- the element -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AbacusAdder:
    """The adder at work, for the last line of a cell; numbers, offset, loops and shift are where it starts.

    a, b: of at most DIGITS digits. offset: of all addresses, up to OFFSETS. loops: up to LOOPS. shift: of the
    second number's addresses, up to SHIFT either way. Raises ValueError for anything else.
    """

    a: int
    b: int
    offset: int = 6
    loops: int = 2
    shift: int = 0

    def __post_init__(self):
        limits = {
            "a": (0, 10**DIGITS - 1), "b": (0, 10**DIGITS - 1), "offset": (0, OFFSETS), "loops": (1, LOOPS),
            "shift": (-SHIFT, SHIFT),
        }  # fmt: skip
        for name, (least, most) in limits.items():
            if not isinstance(getattr(self, name), int) or not least <= getattr(self, name) <= most:
                raise ValueError(f"{name} = {getattr(self, name)!r}: an integer from {least} to {most} is taken")

    def __repr__(self) -> str:
        told = describe(str(self.a), str(self.b), self.offset, self.loops, self.shift)
        return f"A small adder with Abacus addresses, for a screen. {told}"

    def _repr_html_(self) -> str:
        experiment, (model, packed) = checkpoints.read(NETWORK).experiment, _shipped()
        given = {
            "a": self.a, "b": self.b, "offset": self.offset, "loops": self.loops, "shift": self.shift,
            "heads": model.config.n_heads, "digits": DIGITS, "trained": experiment.task.max_digits,
            "last": experiment.offsets.k - 1 + experiment.task.max_digits, "own": model.config.offset,
            "own_loops": model.config.n_loops,
            "grid": " ".join(f"{100 * share:.0f}" for share in page_grid().flatten()),
            "weights": base64.b64encode(safetensors.torch.save(packed)).decode(),
        }  # fmt: skip
        return element("abacus-adder", given, f"{self} It needs JavaScript.", MODULE)

    def page_bytes(self) -> int:
        """What weights and script add to a page that is loaded for the first time, before compression."""
        script = len(whole_source(MODULE).encode())
        return script + math.ceil(len(safetensors.torch.save(_shipped()[1])) / 3) * 4
