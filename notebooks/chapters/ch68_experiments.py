"""What a small GPT learns of multiplication, by format: a study of several seeds trained as one (chapter 68).

Dimensions: S seeds, B texts, T tokens, L lengths of operands, N products of a test, R steps of a scratchpad.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from arithlib.experiments.base import Experiment
from arithlib.settings import of_kind
from chapters.ch61_character_gpt import CharacterGPTConfig, CharacterGPTs
from chapters.ch61_experiments import losses, score
from chapters.ch61_written_sums import Lines
from chapters.ch68_written_products import ProductFormat, Products, last_number, of_lengths, times_seen

TEST_SEED = 2403_05845


class ProductsObjective:
    """Mean cross-entropy on what is to be written. Each model has its own products, seeded by the step."""

    def __init__(self, experiment: "ProductsExperiment"):
        self.experiment = e = experiment
        digits = e.products.digits
        self.tests = e.products.tests((digits, digits), e.test_size, TEST_SEED)
        self.without = np.concatenate(list(self.tests.values()))
        self.pools = [e.lines(e.products.pooled(seed, self.without)) for seed in e.seeds if e.products.pool]
        # Twenty of every pair of lengths, all in one.
        self.sample = e.lines(np.concatenate([pairs[:20] for pairs in self.tests.values()]))

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """(S, B, T) texts and what of them is to be written."""
        e = self.experiment
        return tuple(
            map(torch.stack, zip(*(self._of_seed(index, step) for index in range(len(e.seeds))), strict=True))
        )

    def _of_seed(self, index, step):
        e = self.experiment
        generator = np.random.default_rng([step, e.seed, e.seeds[index]])
        if e.products.pool:
            lines = self.pools[index][torch.from_numpy(generator.integers(e.products.pool, size=e.batch_size))]
        else:
            lines = e.lines(e.products.fresh(e.batch_size, generator, self.without))
        # A text ends with line ends. Brought to its front, they move it to a later place of the table of positions.
        T = lines.tokens.shape[1]
        moved = torch.from_numpy(generator.integers(e.room + 1, size=(e.batch_size, 1)))
        place = (torch.arange(T) - moved) % T
        return lines.tokens.gather(1, place), lines.written.gather(1, place)

    def loss(self, model: CharacterGPTs, step: int) -> Tensor:
        return losses(model, *self.batch(step)).sum()

    @torch.no_grad()
    def evaluate(self, model: CharacterGPTs) -> dict[str, np.ndarray]:
        """exact_match, loss: (S,) on twenty products of every pair of lengths, the right text being read."""
        right, loss = score(model, self.sample)
        return {"exact_match": right.double().mean(1).numpy(), "loss": loss.numpy()}


@of_kind("written-products-study")
@dataclass(frozen=True, kw_only=True)
class ProductsExperiment(Experiment):
    """A small GPT for each seed, trained on written products of operands of up to `products.digits` digits.

    longest: digits of the longest operands in tests. Texts of training begin at a random place of a table of
    positions that is as long as the longest text of a test, so that training shows every position.
    test_size: products of every pair of lengths in tests, or a fifth of those there are.
    unseen_size: of products of the longest length of training that are not in a model's pool, how many are compared
    with those that are (`finish`).
    """

    format: ProductFormat
    products: Products
    longest: tuple[int, int]
    seeds: tuple[int, ...]
    batch_size: int = 64
    d_model: int = 64
    n_layers: int = 3
    test_size: int = 100
    unseen_size: int = 0

    @property
    def room(self) -> int:
        """How many places later than the first a text of training may begin."""
        return self.format.width(*self.longest) - self.format.width(self.products.digits, self.products.digits)

    def lines(self, pairs: np.ndarray) -> Lines:
        """As text, T being all positions that there are."""
        return self.format.write(pairs, self.format.width(*self.longest))

    def build(self):
        config = CharacterGPTConfig(self.format.width(*self.longest), self.d_model, self.n_layers)
        return CharacterGPTs(config, self.seeds)

    def size(self):
        """Of one model: its weights, and the products that it is trained on, each as often as it is drawn."""
        weights = sum(weight[0].numel() for weight in self.build().parameters())
        return {"weights": weights, "examples": self.steps * self.batch_size}

    def objective(self, model, device):
        return ProductsObjective(self)

    @torch.no_grad()
    def answers(self, model: CharacterGPTs, pairs: np.ndarray) -> np.ndarray:
        """(N, 2) operands -> (S, N) whether the last number that a model writes by itself is the product."""
        lines, S = self.lines(pairs), len(self.seeds)
        begin = lines.written.int().argmax(1)
        said = model.complete(lines.tokens.expand(S, -1, -1), begin.expand(S, -1))
        right = [last_number(text) for text in lines.tokens]
        return np.array(
            [[last_number(text) == one for text, one in zip(texts, right, strict=True)] for texts in said]
        )

    @torch.no_grad()
    def finish(self, model, run):
        """Measured at the end, each (1, S, ...).

        by_lengths: (*longest) share of products whose last number is right as the models write them by themselves.
        With a pool, trained: share of the products of training whose text is right in every token, given those
        before it. With unseen_size, N: right (N) whether a text not trained on is right in every token, and seen (N)
        how often the rarest of its partial products was trained on.
        """
        measured = {}
        tests = self.products.tests(self.longest, self.test_size, TEST_SEED)
        shares = [self.answers(model, pairs).mean(1) for pairs in tests.values()]
        measured["by_lengths"] = np.stack(shares, 1).reshape(len(self.seeds), *self.longest)
        if self.products.pool:
            right = [
                torch.cat([score(model, lines[i : i + 1000])[0][index] for i in range(0, len(lines), 1000)])
                for index, lines in enumerate(self.objective(model, None).pools)
            ]
            measured["trained"] = torch.stack(right).double().mean(1).numpy()
        if self.unseen_size:
            both = np.array([self._unseen(model, index) for index in range(len(self.seeds))], np.int16)
            measured |= {"right": both[:, 0], "seen": both[:, 1]}
        return {name: values[None] for name, values in measured.items()}

    def _unseen(self, model, index):
        """(N,) right and (N,) seen of the model of one seed."""
        n, seed = self.products.digits, self.seeds[index]
        without = np.concatenate(list(self.products.tests((n, n), self.test_size, TEST_SEED).values()))
        pool = self.products.pooled(seed, without)
        drawn = of_lengths(n, n, 4 * self.unseen_size, np.random.default_rng([TEST_SEED, seed]))
        pairs = drawn[~self.products.among(drawn, pool)][: self.unseen_size]
        right, _ = score(model, self.lines(pairs))
        return right[index].numpy(), times_seen(pairs, pool)
