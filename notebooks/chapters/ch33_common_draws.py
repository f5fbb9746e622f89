"""Offsets redrawn from two ranges, measured with common draws, so that most passes serve both (chapter 33).

Dimensions: B sums, T tokens, V vocabulary.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from arithlib.models.looped import LoopedTransformer
from arithlib.models.positions import Offsets


@dataclass(frozen=True)
class CommonDraws(Offsets):
    """Uniform draws from 0 to k - 1, of which those below `near` are the same, draw by draw, for every k >= near.

    Each policy by itself is as if drawn by `Offsets`; of two, given generators of one seed, the difference has less
    noise.
    """

    near: int = 1

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        near, wide = (
            torch.randint(most, (count, 1), generator=generator, device=generator.device)
            for most in (self.near, self.k)
        )
        return torch.where(wide < self.near, near, wide)


class Remembering:
    """A model that reads no text a second time under the same offset, where the next token alone is asked for."""

    def __init__(self, model: LoopedTransformer):
        self.model, self.known = model, {}

    def __getattr__(self, name):
        return getattr(self.model, name)

    def __call__(self, tokens: Tensor, offset: Tensor, loops: int | None = None, *, since: int = 0) -> Tensor:
        """(B, T) tokens and (B, 1) offsets -> (B, T - since, V) logits, as the model's own."""
        if since < tokens.shape[1] - 1:
            return self.model(tokens, offset, loops, since=since)
        asked = [(loops, *row) for row in torch.cat([tokens, offset], 1).tolist()]
        new = [index for index, text in enumerate(asked) if text not in self.known]
        if new:
            logits = self.model(tokens[new], offset[new], loops, since=since)
            self.known |= {asked[index]: of_one for index, of_one in zip(new, logits, strict=True)}
        return torch.stack([self.known[text] for text in asked])
