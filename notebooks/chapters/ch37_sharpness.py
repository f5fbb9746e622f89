"""Attention changed in evaluation alone: made sharper, or shown fewer columns; and what it falls on (chapter 37).

Dimensions: B problems, T tokens, L layers, R loops, H heads, n digits of an operand.
"""

import copy
import dataclasses
import math

import torch
from torch import Tensor

from arithlib.models.looped import LoopedTransformer
from arithlib.tasks.operands import Problems

# With these schemes a score is linear in the query that the weights give: a rotation is, what is added later is not.
LINEAR = ("abacus", "coupling", "learned", "none", "rotary", "abacus+rotary")


def log_law(tokens: int, trained: int) -> float:
    """log n / log n0: what scores are multiplied by in a text of n tokens, where training had at most n0.

    The longest text of training is left as it is (Bai et al. 2023, "LogN-Scaling"; after Chiang and Cholak 2022).

    >>> log_law(64, 64)
    1.0
    """
    return math.log(tokens) / math.log(trained)


@torch.no_grad()
def sharpened(model: LoopedTransformer, factor: float, heads: Tensor | None = None) -> LoopedTransformer:
    """A copy of the model in which every attention score is so many times as large, since all queries are.

    heads: (L, H) True for those that are changed; all if None. Raises ValueError for a scheme of positions that adds
    to scores or queries what no query's weights give.
    """
    c = model.config
    if c.positions not in LINEAR:
        raise ValueError(f"positions = {c.positions!r} add to scores; choose one of {', '.join(LINEAR)}")
    model = copy.deepcopy(model)
    chosen = torch.ones(c.n_layers, c.n_heads, dtype=torch.bool) if heads is None else heads
    factors = torch.where(chosen, factor, 1.0).repeat_interleave(c.d_model // c.n_heads, 1)
    for layer, each in zip(model.layers, factors, strict=True):
        layer.qkv.weight[: c.d_model] *= each[:, None]
        layer.qkv.bias[: c.d_model] *= each
    return model


def windowed(model: LoopedTransformer, columns: int) -> LoopedTransformer:
    """The same weights in a model that sees, of all digits, those at most so many columns away."""
    near = copy.deepcopy(model)
    near.config, near.positions.window = dataclasses.replace(model.config, window=columns), columns
    return near


@torch.no_grad()
def column_attention(model: LoopedTransformer, problems: Problems, offset: Tensor | None = None) -> Tensor:
    """(R, L, H) the share of attention on the two digits of a column, at the token from which its answer is written.

    A mean over columns and problems, whose operands all have the same number of digits. offset: (1, 1), the model's
    own by default.
    """
    n, before = problems.a.shape[1], int(problems.start[0]) - 1
    _, seen = model(problems.tokens[:, :-1], offset, return_activations=True)
    column = torch.arange(n)
    shares = [
        sum(pattern[:, :, before + column, first + column] for first in (0, n + 1)).mean((0, 2))
        for name, pattern in seen.items()
        if name.endswith("pattern")
    ]
    return torch.stack(shares).unflatten(0, (-1, model.config.n_layers))
