"""Experiments on words over a group (chapter 45): one layer, looped, says the product so far after every letter.

The trained counterpart of theorem 2.1 of source 003, which builds such a layer by hand (chapter 43).
"""

from dataclasses import dataclass

import numpy as np
import torch

from arithlib.experiments.depth import IGNORE_INDEX, DepthExperiment, Examples
from arithlib.models.looped import LoopedConfig
from arithlib.settings import of_kind
from arithlib.tasks.group_words import Group, alternating, cyclic, symmetric

GROUPS = {group.name: group for group in (cyclic(60), alternating(5), symmetric(5))}


@of_kind("group-words")
@dataclass(frozen=True, kw_only=True)
class WordExperiment(DepthExperiment):
    """A looped layer that reads random words over a few elements of a group.

    Tests are drawn as training is, from other seeds. Nothing is held out: of the 2^16 words of 16 letters, two to
    choose from, some six in ten occur among the 64,000 of a training; of those of 24 letters, four in a thousand.

    group: a name of `GROUPS`. letters: the elements that words are made of. n: letters of a word.
    chain_of_thought: whether the product so far stands in the text after each letter.
    """

    model: LoopedConfig
    group: str
    letters: tuple[int, ...]
    n: int
    chain_of_thought: bool = False

    def examples(self, count: int, generator: torch.Generator) -> Examples:
        """Words, of which every product so far is asked: at the letter that completes it."""
        group: Group = GROUPS[self.group]
        drawn = torch.randint(len(self.letters), (count, self.n), generator=generator, device=generator.device)
        words = torch.tensor(self.letters, device=generator.device)[drawn]
        products = group.running_products(words.cpu()).to(words.device)
        start = torch.full((count, 1), group.order, device=words.device)
        if not self.chain_of_thought:
            return torch.cat([start, words], 1), torch.cat([torch.full_like(start, IGNORE_INDEX), products], 1)
        text = torch.stack([words, products], 2).flatten(1)
        asked = torch.stack([products, torch.full_like(products, IGNORE_INDEX)], 2).flatten(1)
        return torch.cat([start, text], 1), torch.cat([torch.full_like(start, IGNORE_INDEX), asked], 1)

    def batch(self, generator):
        return [self.examples(self.batch_size, generator)]

    def tests(self, count, generator):
        """Words drawn as in training, many of which occur in it: all their products right."""
        return [self.examples(count, generator)]

    @torch.no_grad()
    def finish(self, model, run):
        """accuracy_by_place: (1, L + 2, n) share right of the products of 1 to n letters, after 1 to L + 2 loops.

        At the end of training, in ten times `evaluation_count` words, drawn as in training from another seed.
        """
        generator = self.apart(1)
        tokens, targets = self.examples(10 * self.evaluation_count, generator)
        asked = targets[0] != IGNORE_INDEX
        rows = [
            [(model(part.to(model.device), loops=loops).argmax(-1).cpu() == wanted)[:, asked]
             for part, wanted in zip(tokens.split(256), targets.split(256), strict=True)]
            for loops in range(1, self.model.n_loops + 3)
        ]  # fmt: skip
        return {"accuracy_by_place": np.array([[torch.cat(row).double().mean(0).tolist() for row in rows]])}
