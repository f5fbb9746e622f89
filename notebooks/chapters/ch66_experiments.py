"""Experiments on written steps (chapter 66): the words of chapter 45 with products, or fillers, between the letters.

    plain     start  w1     w2     ...     the product so far is asked at every letter
    filler    start  w1 .   w2 .   ...     asked at the dot: a token more to compute in, which says nothing
    steps     start  w1 p1  w2 p2  ...     asked at the letter, and then in the text

A model that is trained on several of them is told by the first token which one is wanted, as by a prompt.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from arithlib.experiments.depth import IGNORE_INDEX, Examples
from arithlib.settings import of_kind
from chapters.ch45_experiments import GROUPS, WordExperiment

STYLES = ("plain", "filler", "steps")
EXTRA_TOKENS = len(STYLES) + 1  # after the elements of the group: the start of each style, then the filler


@of_kind("prompted-words")
@dataclass(frozen=True, kw_only=True)
class PromptedExperiment(WordExperiment):
    """A looped layer that reads words over a group in one or more of `STYLES`; each has an equal part in every batch.

    styles: which. batch_size: words of a step, all styles together.
    """

    styles: tuple[str, ...]

    def __post_init__(self):
        super().__post_init__()
        if unknown := set(self.styles) - set(STYLES):
            raise ValueError(f"styles = {self.styles}: {sorted(unknown)} is none of {', '.join(STYLES)}")

    def written(self, style: str, words: Tensor, products: Tensor) -> Examples:
        """(B, n) letters and their products so far, in a style: (B, T) tokens and what is asked after each."""
        order, ignored = GROUPS[self.group].order, torch.full_like(words, IGNORE_INDEX)
        text, asked = {
            "plain": ([words], [products]),
            "filler": ([words, torch.full_like(words, order + len(STYLES))], [ignored, products]),
            "steps": ([words, products], [products, ignored]),
        }[style]
        start = torch.full_like(words[:, :1], order + STYLES.index(style))
        return (
            torch.cat([start, torch.stack(text, 2).flatten(1)], 1),
            torch.cat([ignored[:, :1], torch.stack(asked, 2).flatten(1)], 1),
        )

    def words(self, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """(count, n) random letters, and the product of each beginning of their words."""
        drawn = torch.randint(len(self.letters), (count, self.n), generator=generator, device=generator.device)
        words = torch.tensor(self.letters, device=generator.device)[drawn]
        return words, GROUPS[self.group].running_products(words.cpu()).to(words.device)

    def batch(self, generator):
        part = self.batch_size // len(self.styles)
        return [self.written(style, *self.words(part, generator)) for style in self.styles]

    def tests(self, count, generator):
        """The same number of words in each style: all their products right, the right ones being read."""
        return [self.written(style, *self.words(count, generator)) for style in self.styles]

    @torch.no_grad()
    def finish(self, model, run):
        """Shares (1, styles) of ten times `evaluation_count` words, all styles asked the same ones.

        last: the product of the whole word is right. whole: all products are. With steps the model reads its own.
        """
        words, products = self.words(10 * self.evaluation_count, self.apart(1))
        right = torch.stack([(self.answers(model, style, words) == products) for style in self.styles])
        return {
            "last": right[..., -1].double().mean(1)[None].numpy(),
            "whole": right.all(-1).double().mean(1)[None].numpy(),
        }

    @torch.no_grad()
    def answers(self, model, style: str, words: Tensor) -> Tensor:
        """(B, n) letters -> (B, n) products as the model says them; with steps it writes them itself, one by one."""
        said = torch.zeros_like(words)
        for place in range(self.n) if style == "steps" else [self.n - 1]:
            tokens, targets = self.written(style, words, said)
            asked = (targets[0] != IGNORE_INDEX).nonzero().flatten()
            upto = int(asked[place]) + 1
            new = model(tokens[:, :upto].to(model.device))[:, asked[: place + 1]].argmax(-1).cpu()
            said[:, : place + 1] = torch.cat([said[:, :place], new[:, -1:]], 1) if style == "steps" else new
        return said


def operations(model, tokens: int) -> int:
    """Multiplications for one text of so many tokens: with all weights, and of each token with all before it.

    model: a `LoopedConfig`, all of whose layers are looped. Two for each pair of a token and one before it: the score
    and the sum that it weighs.
    """
    layers = model.n_layers * model.n_loops
    weights = layers * (4 * model.d_model**2 + 2 * model.d_model * model.d_mlp) + model.d_model * model.d_vocab
    return tokens * weights + layers * model.d_model * tokens * (tokens + 1)
