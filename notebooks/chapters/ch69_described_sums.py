r"""Sums whose digits are described by other places: moved, spread, spaced out, or inside a sentence (chapter 69).

    fixed       \n12+34=64\n         characters 0 to 9 have places 0 to 9 (answers lowest digit first)
    shifts      \n12+34=64\n         ... places 17 to 26, from a random begin on
    subsets     \n12+34=64\n         ... places 2, 5, 6, 11, ..., a random subset of the table, sorted
    spaces      \n1 2+34=64\n        fixed places; gaps between digits of operands hold a space at random
    sentence    \nadd 12 to 34. you get 64\n

Dimensions: B texts, T characters of the longest, C places of a table.
"""

from string import ascii_lowercase

import numpy as np
import torch
from torch import Tensor

from chapters.ch61_written_sums import ALPHABET as SIGNS
from chapters.ch61_written_sums import Format, Lines

ALPHABET = SIGNS + " ." + "".join(letter for letter in ascii_lowercase if letter not in SIGNS)
PLACES = ("fixed", "shifts", "subsets")
FORMAT = Format("reversed")
# Those that are trained on, and one that is in no training.
SENTENCES = (
    "add {a} to {b}. you get ",
    "{a} and {b} make ",
    "ann {a}, bob {b}. both ",
    "{a} figs, {b} more. now ",
)
OTHER_SENTENCE = "bob {a} and ann {b}. both "


def text(tokens: Tensor) -> str:
    """(T,) tokens -> the text between its first and its last line ends."""
    return "".join(ALPHABET[token] for token in tokens.tolist()).strip("\n")


def bare(a: int, b: int) -> tuple[str, str]:
    """Question and answer of a sum.

    >>> bare(12, 34)
    ('12+34=', '64')
    """
    return FORMAT.question(a, b), FORMAT.answer(a, b)


def sentence(template: str, a: int, b: int) -> tuple[str, str]:
    """The same in words."""
    return template.format(a=a, b=b), FORMAT.answer(a, b)


def spaced(question: str, share: float, generator: np.random.Generator) -> str:
    """The question with a space in so large a share of the gaps between two digits.

    >>> spaced("123+4=", 1, np.random.default_rng(0))
    '1 2 3+4='
    """
    after = [*question[1:], ""]
    return "".join(
        one + " " * (one.isdigit() and other.isdigit() and generator.random() < share)
        for one, other in zip(question, after, strict=True)
    )


def room(digits: int) -> int:
    """Spaces that the operands of so many digits can take."""
    return 2 * (digits - 1)


def draw_places(kind: str, size: tuple[int, int], n_ctx: int, generator: np.random.Generator) -> Tensor:
    """(B, T) places below C of `size` B, T characters. kind: one of `PLACES`. Each row rises."""
    B, T = size
    if kind == "subsets":
        return torch.from_numpy(np.sort(generator.random((B, n_ctx)).argsort(1)[:, :T], 1))
    begin = generator.integers(n_ctx - T + 1, size=(B, 1)) if kind == "shifts" else np.zeros((B, 1), int)
    return torch.from_numpy(begin + np.arange(T))


def asked_for_words(lines: Lines) -> Tensor:
    """(B, T) True for what stands before the answer, the first line end left out: a text without its answer."""
    at = torch.arange(lines.tokens.shape[1])
    return (at >= 1) & (at < lines.written.int().argmax(1, keepdim=True))
