"""How many sums a small GPT must see: sets of sums in several formats, a study trained as one (chapter 61)."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from arithlib.experiments.base import Experiment
from arithlib.settings import of_kind
from chapters.ch61_character_gpt import CharacterGPTConfig, CharacterGPTs
from chapters.ch61_written_sums import Format, Lines, Sample, last_number, uniform_pairs

# The same for every model that reads numbers of so many digits, so that all are asked the same and trained on none.
TEST_SEED = 2307_03381
READS = ("answers", "lines", "text")
PIECE = 64  # characters of a running text that are read at once


class SumsObjective:
    """Each model's mean cross-entropy on what it is to learn of texts drawn from its own set, seeded by the step."""

    def __init__(self, experiment: "WrittenExperiment"):
        self.experiment = experiment
        asked = experiment.test_pairs()
        self.test = experiment.lines(asked)
        drawn = [sample.draw(seed, asked) for sample, seed in experiment.members]
        if experiment.curriculum:  # by the larger operand
            drawn = [pairs[pairs.max(1).argsort(kind="stable")] for pairs in drawn]
            self.largest = [pairs.max(1) for pairs in drawn]
        self.sets = [
            experiment.lines(pairs, sample.noise, seed)
            for pairs, (sample, seed) in zip(drawn, experiment.members, strict=True)
        ]
        if experiment.reads != "answers":
            self.sets = [Lines(lines.tokens, up_to_the_end(lines)) for lines in self.sets]
        if experiment.reads == "text":
            self.sets = [pieces(lines, PIECE) for lines in self.sets]

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """(S, B, T) tokens and what of them is to be learned. Equal sets give the same."""
        generator = self.experiment.generator(step)
        share = torch.rand(self.experiment.batch_size, generator=generator)
        shown = zip(self.sets, self.shown(step), strict=True)
        drawn = [lines[(share * number).long()] for lines, number in shown]
        return torch.stack([lines.tokens for lines in drawn]), torch.stack([lines.written for lines in drawn])

    def shown(self, step: int) -> list[int]:
        """How many of each set's lines, from the first, are drawn from: all, or all of the lengths taught so far."""
        if not self.experiment.curriculum:
            return [len(lines) for lines in self.sets]
        digits = self.experiment.taught(step)
        return [int(np.searchsorted(largest, 10**digits)) for largest in self.largest]

    def loss(self, model: CharacterGPTs, step: int) -> Tensor:
        batch = self.batch(step)
        if not self.experiment.dropout:
            return losses(model, *batch).sum()
        # What is dropped depends on the step alone, so that a run that is resumed goes on as it would have.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1_000_003 * self.experiment.seed + step)
            loss = losses(model.train(), *batch).sum()
        model.eval()
        return loss

    @torch.no_grad()
    def evaluate(self, model: CharacterGPTs) -> dict[str, np.ndarray]:
        """exact_match, loss: (samples, seeds) on 200 sums of the test, the right text being read."""
        right, loss = score(model, self.test[:200])
        by_member = self.experiment.by_member
        return {"exact_match": by_member(right.double().mean(1)), "loss": by_member(loss)}


def up_to_the_end(lines: Lines) -> Tensor:
    """(B, T) True up to the line end that is the last to be written."""
    return lines.written.flip(1).cummax(1).values.flip(1)


def pieces(lines: Lines, length: int) -> Lines:
    """Every piece of so many characters of the text that these lines make, one under the other; all is to be learned.

    Two lines share the line end between them.
    """
    inside = up_to_the_end(lines)
    inside[1:, 0] = False
    tokens = lines.tokens[inside].unfold(0, length, 1)
    return Lines(tokens, torch.ones_like(tokens, dtype=torch.bool))


def losses(model: CharacterGPTs, tokens: Tensor, written: Tensor, places: Tensor | None = None) -> Tensor:
    """(S,) mean cross-entropy in nats of the tokens that are to be written. places: as the model takes them."""
    logits, asked = model(tokens[..., :-1], places), written[..., 1:]
    each = F.cross_entropy(logits.flatten(0, 2), tokens[..., 1:].flatten(), reduction="none").view_as(asked)
    return (each * asked).sum((1, 2)) / asked.sum((1, 2))


@torch.no_grad()
def score(model: CharacterGPTs, lines: Lines) -> tuple[Tensor, Tensor]:
    """(S, B) whether all that each of the S models is to write of (B) lines is right, and (S,) mean losses.

    Greedy decoding writes exactly those texts right: up to a first mistake it reads the same.
    """
    tokens, written = (part.expand(len(model.W_E), -1, -1) for part in (lines.tokens, lines.written))
    return hits(model, tokens, written).all(-1), losses(model, tokens, written)


@torch.no_grad()
def hits(model: CharacterGPTs, tokens: Tensor, written: Tensor, places: Tensor | None = None) -> Tensor:
    """(S, B, T - 1) whether each token after the first is said, given those before it, or not to be written."""
    said = model(tokens[..., :-1], places).argmax(-1)
    return (said == tokens[..., 1:]) | ~written[..., 1:]


@of_kind("written-sums-study")
@dataclass(frozen=True, kw_only=True)
class WrittenExperiment(Experiment):
    """Small GPTs on every one of several sets of sums, with several seeds: S = samples x seeds models as one.

    format: how the sums are written. samples: the sets, all with operands of at most as many digits. seeds: of the
    weights and of what a set holds. test_size: sums of every kind in tests.
    reads: one of `READS`, what a model is trained on: single sums, of which it learns the answers or the whole lines,
    or all of any piece of the running text that the sums of its set make.
    curriculum: sums whose longer operand has one digit come first, then also those of two, and so on (`taught`).
    dropout: of the models in training, as `CharacterGPTConfig` says.
    """

    format: Format
    samples: tuple[Sample, ...]
    seeds: tuple[int, ...]
    batch_size: int = 64
    d_model: int = 64
    n_layers: int = 3
    test_size: int = 500
    reads: str = "answers"
    curriculum: bool = False
    dropout: float = 0.0

    def __post_init__(self):
        super().__post_init__()
        if self.reads not in READS:
            raise ValueError(f"reads = {self.reads!r}: choose one of {', '.join(READS)}")
        if self.curriculum and self.reads == "text":
            raise ValueError("a running text has no short sums to begin with: leave out its curriculum")

    def taught(self, step: int) -> int:
        """Digits of the longest sums at this step of a curriculum: one, then two after a sixth of the steps (if all
        have up to three), then three after a third. With D digits the parts are 1 / 2D of the steps.
        """
        return min(2 * self.digits * step // self.steps + 1, self.digits)

    @property
    def digits(self) -> int:
        """Of the longest operands in training."""
        return self.samples[0].digits

    @property
    def members(self) -> list[tuple[Sample, int]]:
        """The set and the seed of each of the S models."""
        return [(sample, seed) for sample in self.samples for seed in self.seeds]

    def by_member(self, values: Tensor) -> np.ndarray:
        """(S, ...) -> (samples, seeds, ...)."""
        return values.unflatten(0, (len(self.samples), len(self.seeds))).numpy()

    def test_pairs(self) -> np.ndarray:
        """(test_size, 2) operands that are in no set of training."""
        return uniform_pairs(self.digits, self.test_size, TEST_SEED)

    def lines(self, pairs: np.ndarray, noise: tuple[str, ...] = (), seed: int = 0) -> Lines:
        """The sums as text: as wide as the longest of training, or as the longest of these where that is wider."""
        digits = max(self.digits, len(str(pairs.max())))
        return self.format.write(pairs, self.format.width(digits), noise, seed)

    def build(self):
        longest = max(self.format.width(self.digits + 1), PIECE if self.reads == "text" else 0)
        config = CharacterGPTConfig(longest, self.d_model, self.n_layers, dropout=self.dropout)
        return CharacterGPTs(config, tuple(seed for _, seed in self.members)).eval()

    def size(self):
        """Of one model: its weights, and the texts that it is trained on, each as often as it is drawn."""
        weights = sum(weight[0].numel() for weight in self.build().parameters())
        return {"weights": weights, "examples": self.steps * self.batch_size}

    def objective(self, model, device):
        return SumsObjective(self)

    @torch.no_grad()
    def finish(self, model, run):
        """Shares (1, samples, seeds, ...) of sums whose last number is right as the models write them by themselves.

        answered: of the test. by_length: (..., digits + 1) of sums whose longer operand has 1, 2, ... digits; of the
        shorter ones many are in the sets. unseen: of sums of two numbers that occur in none; nan where all may.
        bare: of the test without the line end before it, if the models read a running text.
        """
        same = [self.test_pairs()] * len(self.members)
        by_length = [
            self.answers(model, [of_length(digits, self.test_size)] * len(self.members))
            for digits in range(1, self.digits + 2)
        ]
        unseen = np.full((len(self.samples), len(self.seeds)), np.nan)
        missing = [sample.missing(seed) for sample, seed in self.members]
        if all(map(len, missing)):
            drawn = np.random.default_rng(TEST_SEED).random((self.test_size, 2))
            unseen = self.answers(model, [numbers[(drawn * len(numbers)).astype(int)] for numbers in missing])
        measured = {"answered": self.answers(model, same), "by_length": np.stack(by_length, -1), "unseen": unseen}
        if self.reads == "text":
            measured["bare"] = self.answers(model, same, bare=True)
        return {name: values[None] for name, values in measured.items()}

    def answers(self, model: CharacterGPTs, pairs: list[np.ndarray], bare: bool = False) -> np.ndarray:
        """S times (B, 2) operands -> (samples, seeds) share of sums whose last number is right.

        bare: the text begins with the sum, and not with the line end before it.
        """
        lines = [self.lines(part) for part in pairs]
        tokens = torch.stack([part.tokens[:, bare:] for part in lines])
        begin = torch.stack([part.written[:, bare:].int().argmax(1) for part in lines])
        parts = zip(tokens.split(100, 1), begin.split(100, 1), strict=True)
        said = torch.cat([model.complete(*part) for part in parts], 1)
        right = [
            [last_number(one) == last_number(other) for one, other in zip(*texts, strict=True)]
            for texts in zip(said, tokens, strict=True)
        ]
        return self.by_member(torch.tensor(right).double().mean(1))

    @torch.no_grad()
    def add(self, model, a, b):
        """As the first model of the stack writes it."""
        lines, S = self.lines(np.array([[a, b]])), len(self.members)
        begin = lines.written.int().argmax(1).expand(S, 1)
        answer = last_number(model.complete(lines.tokens.expand(S, -1, -1), begin)[0, 0])
        if not answer.isdecimal():
            raise ValueError(f"the model answers {answer!r}: no number")
        return int(answer[::-1] if self.format.style == "reversed" else answer)


def of_length(digits: int, size: int) -> np.ndarray:
    """(size, 2) operands, the longer of which has so many digits; of the longest in training all are in no set.

    They are those of the test of so many digits that have them all, and its first ones again where it has too few.
    """
    pairs = uniform_pairs(digits, size, TEST_SEED)
    long = pairs[pairs.max(1) >= (10 ** (digits - 1) if digits > 1 else 0)]
    return np.resize(long, (size, 2))
