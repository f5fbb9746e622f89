"""Attention made sharper in evaluation alone, and how much of it falls on the column that is added (chapter 37).

Dimensions: B problems, T tokens, L layers, R loops, H heads, n digits of an operand.
"""

import copy
import math

import torch
from torch import Tensor

from arithlib.models.looped import LoopedTransformer
from arithlib.tasks.operands import Problems

# With these schemes nothing but queries and keys enters a score.
IN_EMBEDDING = ("abacus", "coupling", "learned", "none")


def log_law(tokens: int, trained: int) -> float:
    """log n / log n0: what scores are multiplied by in a text of n tokens, where training had at most n0.

    Chiang and Cholak 2022, section 5.3, multiply by log n; Nakanishi 2025, equation 2, learns the factor before it.
    This one leaves the longest text of training as it is.

    >>> log_law(64, 64)
    1.0
    """
    return math.log(tokens) / math.log(trained)


@torch.no_grad()
def sharpened(model: LoopedTransformer, factor: float) -> LoopedTransformer:
    """A copy of the model in which every attention score is so many times as large: all queries are.

    Raises ValueError for positions that enter scores in another way.
    """
    if model.config.positions not in IN_EMBEDDING:
        raise ValueError(
            f"positions = {model.config.positions!r} enter scores; one of {', '.join(IN_EMBEDDING)} do not"
        )
    model = copy.deepcopy(model)
    for layer in model.layers:
        for parameter in (layer.qkv.weight, layer.qkv.bias):
            parameter[: model.config.d_model] *= factor
    return model


@torch.no_grad()
def column_attention(model: LoopedTransformer, problems: Problems, offset: Tensor | None = None) -> Tensor:
    """(R L, H) the share of attention on the two digits of a column, at the token from which its answer is written.

    A mean over columns and problems, whose operands all have the same number of digits. offset: (1, 1), the model's
    own by default.
    """
    n, before = problems.a.shape[1], int(problems.start[0]) - 1
    _, seen = model(problems.tokens[:, :-1], offset, return_activations=True)
    writes = before + torch.arange(n)
    shares = [
        sum(pattern[:, :, writes, first + torch.arange(n)] for first in (0, n + 1)).mean((0, 2))
        for name, pattern in seen.items()
        if name.endswith("pattern")
    ]
    return torch.stack(shares)
