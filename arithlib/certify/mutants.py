"""Adders that pass random tests and are wrong somewhere: what tests see, and what a proof sees (chapter 72).

Dimensions: B sums, N digits, C contexts.
"""

import copy

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from arithlib.certify.addition import reachable
from arithlib.models.column import ANSWER, ColumnTransformer
from arithlib.streaming import OWN, WINDOW_DISTANCE, WINDOW_NUMBER, columns, context_logits, contexts
from arithlib.tokenizer import ABSENT


def visits(a: Tensor, b: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """(B, N) digits of operands -> the contexts that these sums meet, as places in `reachable()`, and their sums.

    Returns (M,) places and (M,) rows of a and b.
    """
    lines = columns(a, b)
    _, keys, _ = contexts(lines, WINDOW_NUMBER, WINDOW_DISTANCE, 0, lines.shape[2] - 1)
    asks = lines[:, ANSWER, 1:] != ABSENT
    base = 17 ** np.arange(len(WINDOW_NUMBER))[::-1]
    known = (reachable().contexts + 1) @ base
    return np.searchsorted(known, (keys.numpy() + 1) @ base), asks.nonzero()[:, 0].numpy()


def rounded(model: ColumnTransformer, levels: int) -> ColumnTransformer:
    """A copy whose every tensor is rounded to 2 * levels + 1 evenly spaced values, from its largest to minus that."""
    mutant = copy.deepcopy(model)
    with torch.no_grad():
        for weight in mutant.parameters():
            step = weight.abs().max() / levels
            weight.copy_((weight / step).round() * step)
    return mutant


def answers(model: ColumnTransformer) -> np.ndarray:
    """(C,) the token that the model writes in each reachable context."""
    seen = torch.from_numpy(reachable().contexts)
    with torch.no_grad():
        return context_logits(model, seen[:, OWN], seen, WINDOW_NUMBER, WINDOW_DISTANCE).argmax(1).numpy()


def adversarial_finetune(model: ColumnTransformer, place: int, token: int, steps: int = 300) -> ColumnTransformer:
    """A copy trained to write `token` in one context, and to stay right in all others.

    A batch holds that context, 500 at random, and the 500 others that were hardest when it was last looked.
    """
    mutant, met = copy.deepcopy(model), reachable()
    seen, wanted = torch.from_numpy(met.contexts), torch.from_numpy(met.right).clone()
    wanted[place] = token
    optimizer = torch.optim.Adam(mutant.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(0)

    def losses(chosen):
        logits = context_logits(mutant, seen[chosen, OWN], seen[chosen], WINDOW_NUMBER, WINDOW_DISTANCE)
        return F.cross_entropy(logits, wanted[chosen], reduction="none")

    for step in range(steps):
        if step % 20 == 0:
            with torch.no_grad():
                hardest = losses(torch.arange(len(seen))).topk(500).indices
        anywhere = torch.randint(len(seen), (500,), generator=generator)
        chosen = torch.cat([torch.tensor([place]), hardest, anywhere])
        optimizer.zero_grad()
        losses(chosen).mean().backward()
        optimizer.step()
    return mutant
