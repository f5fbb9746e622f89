"""What a model that reads slots answers in a context, the keys that a token sees (chapters 78 and 79).

Dimensions: N contexts, R slots, V vocabulary.
"""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from arithlib.evaluation import logit_margin
from arithlib.models.column import ColumnTransformer, own_token

AT_ONCE = 2**16  # contexts whose activations are in memory together


def context_logits(model: ColumnTransformer, keys: Tensor) -> Tensor:
    """(N, R) keys -> (N, V) logits at the token that asks: those of the forward, sooner."""
    return model.slot_logits(own_token(model.config.positions, keys), keys)


@torch.no_grad()
def context_margins(model: ColumnTransformer, keys: Tensor, following: Tensor) -> Tensor:
    """(N, R) keys, (N,) tokens to write -> (N,) by how much each leads the next best, logits."""
    parts = zip(keys.split(AT_ONCE), following.split(AT_ONCE), strict=True)
    return torch.cat([logit_margin(context_logits(model, part), right) for part, right in parts])


def remembered(model: ColumnTransformer) -> Callable[..., int]:
    """What the model writes in a context of R tokens; it is asked once about each."""

    @cache
    @torch.no_grad()
    def answer(*keys: int) -> int:
        return int(context_logits(model, torch.tensor([keys])).argmax())

    return answer
