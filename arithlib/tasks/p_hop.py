"""p-hop induction: from the last token back to what followed its last occurrence, p times.

Source 003, definition A.1:

    find_1(v, i) = max({0} ∪ {j <= i : v_(j-1) = v_i})      hop_p(v) = v at find_p(v, n), or nothing if that is 0

Dimensions: B sequences, T tokens, V alphabet. Positions count from 1, and 0 means "nowhere", as in the definition.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from arithlib.settings import of_kind


def find(tokens: Tensor, p: int = 1) -> Tensor:
    """find_p of definition A.1 at every position.

    tokens: (B, T). p: at least 0; find_0 is the position itself. Returns (B, T) positions 1 to T, or 0 for nowhere.

    >>> find(torch.tensor([[0, 1, 2, 0, 1]]))  # the last token, 1, stood at position 2 before: what followed is at 3
    tensor([[0, 0, 0, 2, 3]])
    """
    T = tokens.shape[1]
    place = torch.arange(1, T + 1, device=tokens.device)
    # followed[b, i, j]: v_(j-1) = v_i and j <= i
    followed = torch.zeros(*tokens.shape, T, dtype=torch.bool, device=tokens.device)
    followed[:, :, 1:] = (tokens[:, :, None] == tokens[:, None, :-1]) & (place[:, None] >= place[1:])
    step = torch.nn.functional.pad((followed * place).amax(-1), (1, 0))  # (B, T + 1); from nowhere to nowhere
    found = torch.arange(T + 1, device=tokens.device).expand_as(step)
    for _ in range(p):
        found = step.gather(1, found)
    return found[:, 1:]


@of_kind("p-hop-task")
@dataclass(frozen=True)
class Hops:
    """Random sequences in which p hops lead from the last token to the answer, each to the left of the one before.

    p: number of hops, at least 1. n: tokens of a sequence, at least 2 p + 1. alphabet: V, at least 2.
    """

    p: int
    n: int = 256
    alphabet: int = 4

    def __post_init__(self):
        if self.p < 1 or self.alphabet < 2:
            raise ValueError(f"p = {self.p}, alphabet = {self.alphabet}: at least 1 hop and 2 tokens to tell apart")
        if self.n < 2 * self.p + 1:
            raise ValueError(f"n = {self.n} tokens are too few for {self.p} hops: at least {2 * self.p + 1}")

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """(count, n) tokens.

        Every hop is a pair of neighbours: a repetition of the token before the hop, and the token after it. The
        pairs are shuffled among fillers, and a filler is any token that does not end the hop too early.
        """
        p, n, V = self.p, self.n, self.alphabet
        drawn = dict(generator=generator, device=generator.device)
        change = torch.randint(1, V, (count, p + 1), **drawn)
        change[:, 0] = torch.randint(V, (count,), **drawn)
        path = change.cumsum(1) % V  # (B, p + 1) tokens met on the way; neighbours differ
        slots = torch.rand(count, n - 1 - p, **drawn).argsort(1)[:, :p].sort(1, descending=True).values
        second = (
            slots + torch.arange(p - 1, -1, -1, device=generator.device) + 2
        )  # (B, p) where each hop lands, counted from 1, rightmost first
        place = torch.arange(1, n + 1, device=generator.device)
        hop = (second[:, :, None] > place).sum(1)  # (B, T) the hops that have landed right of here
        shift = torch.randint(1, V, (count, n), **drawn)
        tokens = (path.gather(1, hop) + shift) % V  # anything but the token whose repetition is looked for
        before = place < second[:, -1:] - 1  # left of the last pair anything may stand
        tokens = torch.where(before, torch.randint(V, (count, n), **drawn), tokens)
        tokens.scatter_(1, second - 2, path[:, :-1]).scatter_(1, second - 1, path[:, 1:])
        tokens[:, -1] = path[:, 0]
        return tokens

    def answers(self, tokens: Tensor) -> Tensor:
        """(B, T) tokens -> (B,) hop_p, or -1 where p hops lead nowhere."""
        place = find(tokens, self.p)[:, -1:]
        return torch.where(place > 0, tokens.gather(1, (place - 1).clamp(min=0)), -1)[:, 0]
