"""What the order and the format of the digits decide: two more ways to train, and how a curve is read (chapter 61).

Dimensions: S models, B texts, T tokens, N operands, E evaluations.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from arithlib.settings import of_kind
from chapters.ch61_character_gpt import CharacterGPTConfig, CharacterGPTs
from chapters.ch61_experiments import SumsObjective, WrittenExperiment
from chapters.ch61_written_sums import ALPHABET, NEWLINE, Sample


@of_kind("set-of-sums-of-equal-lengths")
@dataclass(frozen=True)
class EqualLengths(Sample):
    """A random set of sums of which both operands have as many digits: 345 + 678, and not 12 + 345."""

    def draw(self, seed: int, without: np.ndarray) -> np.ndarray:
        """(size, 2) operands in random order. Sums of unequal lengths are left out as if a test had them."""
        numbers = np.arange(10**self.digits)
        lengths = np.char.str_len(numbers.astype(str))
        unequal = np.argwhere(lengths[:, None] != lengths)
        return super().draw(seed, np.concatenate([without.reshape(-1, 2), unequal]))


class PackedObjective(SumsObjective):
    """As published (NanoGPT's way): a model reads so many characters of its set from anywhere and learns them all."""

    def __init__(self, experiment: "PackedExperiment"):
        super().__init__(experiment)
        self.streams = [stream(lines.tokens) for lines in self.sets]

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """(S, B, T) pieces of the streams, T = context, all of which is to be written."""
        e = self.experiment
        share = torch.rand(e.batch_size, 1, generator=e.generator(step))
        places = torch.arange(e.context)
        pieces = [text[((share * len(text)).long() + places) % len(text)] for text in self.streams]
        tokens = torch.stack(pieces)
        return tokens, torch.ones_like(tokens, dtype=torch.bool)


def stream(tokens: Tensor) -> Tensor:
    """(N, T) sums as text -> all of them as one text, with one line end between two."""
    text = tokens.flatten()
    fill = (text == NEWLINE) & (text.roll(1) == NEWLINE)
    return text[~fill]


@of_kind("packed-sums-study")
@dataclass(frozen=True, kw_only=True)
class PackedExperiment(WrittenExperiment):
    """The same study with the sums of a set behind one another, read from anywhere. context: characters at a time."""

    context: int = 40

    def build(self):
        config = CharacterGPTConfig(self.context, self.d_model, self.n_layers)
        return CharacterGPTs(config, tuple(seed for _, seed in self.members))

    def objective(self, model, device):
        return PackedObjective(self)

    def finish(self, model, run):
        """Also bare: (1, samples, seeds) share of the test that is right where the prompt lacks its line end."""
        lines = self.lines(self.test_pairs())
        bare = self.completed(model, lines.tokens[:, 1:], lines.written[:, 1:])
        return super().finish(model, run) | {"bare": bare[None]}

    @torch.no_grad()
    def completed(self, model: CharacterGPTs, tokens: Tensor, written: Tensor) -> np.ndarray:
        """(B, T) texts, of which `written` is the model's part -> (samples, seeds) share that it writes right."""
        begin, S = written.int().argmax(1), len(self.members)
        said = torch.cat([
            model.complete(text.expand(S, -1, -1), first.expand(S, -1))
            for text, first in zip(tokens.split(100), begin.split(100), strict=True)
        ], 1)  # fmt: skip
        return self.by_member(((said == tokens) | ~written).all(-1).double().mean(1))


def prompts(experiment: WrittenExperiment, pairs: np.ndarray) -> list[str]:
    """What a model is given of each of (N, 2) operands, in training and in a test."""
    lines = experiment.lines(pairs)
    return [
        "".join(ALPHABET[token] for token in tokens[: int(written.int().argmax())].tolist())
        for tokens, written in zip(lines.tokens, lines.written, strict=True)
    ]


def sums_needed(sizes, shares, level: float) -> float:
    """The number of sums from which on a share of the test is right, on a line between log sizes.

    sizes, shares: (N,). The smallest size where the share is reached there, so that it is an upper bound then.
    Raises ValueError where it is never reached.
    """
    sizes, shares = np.asarray(sizes, float), np.asarray(shares, float)
    reached = np.flatnonzero(shares >= level)
    if len(reached) == 0:
        raise ValueError(f"{shares.tolist()} at {sizes.tolist()} sums never reach {level}")
    i = int(reached[0])
    if i == 0:
        return float(sizes[0])
    part = (level - shares[i - 1]) / (shares[i] - shares[i - 1])
    return float(sizes[i - 1] * (sizes[i] / sizes[i - 1]) ** part)


def first_step(step: np.ndarray, values: np.ndarray, level: float) -> float:
    """The step of (E,) at which values (E,) are first at `level` or above, on a line between; the last if never."""
    above = np.flatnonzero(values >= level)
    if len(above) == 0:
        return float(step[-1])
    i = int(above[0])
    if i == 0:
        return float(step[0])
    part = (level - values[i - 1]) / (values[i] - values[i - 1])
    return float(step[i - 1] + part * (step[i] - step[i - 1]))


def steps_of_fall(step: np.ndarray, loss: np.ndarray, first: int) -> float:
    """How many steps a loss takes from nine tenths to one tenth of its fall after step `first`, (E,) both."""
    step, loss = step[step >= first], loss[step >= first]
    done = (loss[0] - loss) / (loss[0] - loss.min())
    return first_step(step, done, 0.9) - first_step(step, done, 0.1)


def local_contexts(digits: int, forward: bool, kinds: int = 100, undecided: int = 10) -> int:
    """How many local situations a model meets that writes the columns of a sum one by one.

    Least significant first it needs the digits of a column and the carry, which the column before it shows. Most
    significant first it has to look as far down as the carry is not decided: below digits that sum to nine.

    kinds: of columns, 100 pairs of digits or 19 sums of two. undecided: of these, those that sum to nine, 10 or 1.
    """
    if not forward:
        return kinds + 2 * kinds * (digits - 1)
    carries, total = 1, kinds  # ways in which the carry into a column is decided; the lowest column has none
    for _ in range(digits - 1):
        carries = kinds - undecided + undecided * carries
        total += kinds * carries
    return total
