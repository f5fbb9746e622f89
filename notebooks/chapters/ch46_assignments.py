"""Variables that are given values, directly or through others: `a1b2cbda;d1c2` (source 003, section 3.1).

The source writes a=1, b=2, c=b, d=a, d=1; without the signs a small model has half as much to read. It asks for one
variable; here every variable of the last level is asked in turn, so that a text teaches more than once, and the first
one is tested.

Dimensions: B problems, C chains side by side, L levels (depth + 1), T tokens.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from chapters.ch46_text import encode

CHAINS = 3


@dataclass(frozen=True)
class Assignments:
    """Three chains of assignments.

    depth: 0 gives the variables that are asked their values, 1 a variable that has one, 2 a variable that has such a
        one; at most 7, with which the letters end.
    """

    depth: int

    def __post_init__(self):
        if not 0 <= self.depth <= 7:
            raise ValueError(f"depth = {self.depth}: 26 letters do for 0 to 7")

    @property
    def width(self) -> int:
        """T."""
        return 2 * CHAINS * (self.depth + 2) + 2

    @property
    def answers(self) -> list[slice]:
        """Where the answers stand, in the order of the questions."""
        start = self.width - 2 * CHAINS
        return [slice(place, place + 1) for place in range(start, self.width, 2)]

    @property
    def sources(self) -> list[int]:
        """Where variables stand that are given to others, level by level; (C depth,)."""
        return list(range(2 * CHAINS + 1, 2 * CHAINS * (self.depth + 1), 2))

    def values(self, tokens: Tensor) -> Tensor:
        """(B, C depth) values of the variables at `sources`, found by following them one level at a time.

        >>> from chapters.ch46_text import decode, encode
        >>> decode(Assignments(1).values(torch.tensor([encode("m9c1d8smndtc;t1n8s9")]))[0])
        '981'
        """
        told = tokens[:, : 2 * CHAINS * (self.depth + 1)].unflatten(1, (-1, CHAINS, 2))
        left, right = told.unbind(-1)  # (B, L, C)
        known, found = right[:, 0], [right[:, 0, :0]]
        for level in range(1, self.depth + 1):
            same = right[:, level, :, None] == left[:, level - 1, None]  # (B, C, C), one of each row
            known = (same * known[:, None]).sum(-1)
            found.append(known)
        return torch.cat(found, 1)

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """(count, T) tokens: a line for each level, values first; then the questions with their answers.

        >>> from chapters.ch46_text import decode
        >>> decode(Assignments(1).sample(1, torch.Generator().manual_seed(0))[0])
        'm9c1d8smndtc;t1n8s9\\n'
        """
        L = self.depth + 1

        def drawn(of, many):  # (B, many) different ones out of so many
            return torch.rand(count, of, generator=generator, device=generator.device).argsort(1)[:, :many]

        names = (drawn(26, CHAINS * L) + encode("a")[0]).view(count, L, CHAINS)
        values = drawn(10, CHAINS) + encode("0")[0]
        parts = [(names[:, 0], values)]
        for level in range(1, L):
            source = drawn(CHAINS, CHAINS)
            values = values.gather(1, source)
            parts.append((names[:, level], names[:, level - 1].gather(1, source)))
        order = drawn(CHAINS, CHAINS)
        parts.append((names[:, -1].gather(1, order), values.gather(1, order)))
        left, right = (torch.stack(side, 1) for side in zip(*parts, strict=True))  # (B, L + 1, C)
        text = torch.stack([left, right], -1).flatten(1)
        mark, end = (text.new_full((count, 1), encode(sign)[0]) for sign in ";\n")
        return torch.cat([text[:, : 2 * CHAINS * L], mark, text[:, 2 * CHAINS * L :], end], 1)
