"""Small GPTs on sums whose digits are described by other places, or stand in sentences (chapter 69).

Dimensions: S seeds, B texts, T characters, C places of a table, L lengths of operands, N sums of a test.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from arithlib.experiments.base import Experiment
from arithlib.settings import of_kind
from chapters.ch61_character_gpt import CharacterGPTConfig, CharacterGPTs
from chapters.ch61_experiments import hits, losses
from chapters.ch61_written_sums import as_lines
from chapters.ch67_loops import LinearProbe
from chapters.ch68_written_products import Products
from chapters.ch69_described_sums import (
    ALPHABET,
    FORMAT,
    OTHER_SENTENCE,
    PLACES,
    SENTENCES,
    asked_for_words,
    bare,
    draw_places,
    room,
    sentence,
    spaced,
)

TEST_SEED = 2311_14737
KINDS = ("bare", "sentences", "words")


class TextsObjective:
    """Mean cross-entropy on what is to be written. Each model has its own texts, seeded by the step."""

    def __init__(self, experiment: "TextsExperiment"):
        self.experiment = e = experiment
        self.without = np.concatenate([e.test(digits) for digits in range(1, e.digits + 1)])
        self.sample = e.asked([bare(a, b) for a, b in e.test(e.digits)], FORMAT.width(e.digits))

    def batch(self, step: int) -> tuple[Tensor, Tensor, Tensor]:
        """(S, B, T) texts, what of them is to be written, and their places."""
        e = self.experiment
        generators = [np.random.default_rng([step, e.seed, seed]) for seed in e.seeds]
        drawn = [e.drawn(e.operands.fresh(e.batch_size, g, self.without), g) for g in generators]
        return tuple(map(torch.stack, zip(*drawn, strict=True)))

    def loss(self, model: CharacterGPTs, step: int) -> Tensor:
        return losses(model, *self.batch(step)).sum()

    @torch.no_grad()
    def evaluate(self, model: CharacterGPTs) -> dict[str, np.ndarray]:
        """exact_match, loss: (S,) on bare sums of the longest operands of training, the right text being read."""
        right = hits(model, *self.sample).all(-1)
        return {"exact_match": right.double().mean(1).numpy(), "loss": losses(model, *self.sample).numpy()}


@dataclass(frozen=True, kw_only=True)
class TextsExperiment(Experiment):
    """A small GPT for each seed, trained on fresh sums of operands of 1 to `digits` digits, none of them of a test.

    Both operands have each length as often, and answers are lowest digit first. places: one of `PLACES`, in training
    and in tests. n_ctx: rows of the table of positions. test_size: sums of each length in tests, or a fifth of those
    there are.
    """

    digits: int
    seeds: tuple[int, ...]
    n_ctx: int
    places: str = "fixed"
    positions: str = "learned"
    batch_size: int = 64
    d_model: int = 64
    n_layers: int = 3
    test_size: int = 200

    def __post_init__(self):
        super().__post_init__()
        if self.places not in PLACES:
            raise ValueError(f"places = {self.places!r}: choose one of {', '.join(PLACES)}")

    @property
    def operands(self) -> Products:
        """Drawn as those of chapter 68 are."""
        return Products(self.digits)

    def test(self, digits: int) -> np.ndarray:
        """(N, 2) operands, both of so many digits."""
        return Products(max(self.digits, digits)).test(digits, digits, self.test_size, TEST_SEED)

    def drawn(self, pairs: np.ndarray, generator: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """(B, 2) operands -> (B, T) texts of training, what of them is to be written, and their places."""
        raise TypeError(f"{type(self).__name__} does not say what its texts are")

    def asked(self, texts: list[tuple[str, str]], width: int, places: Tensor | None = None) -> list[Tensor]:
        """N questions with answers -> for each of S models the same (N, T) texts, what is to be written, places."""
        lines = as_lines(texts, width, ALPHABET)
        if places is None:
            generator = np.random.default_rng([TEST_SEED, width])
            places = draw_places(self.places, (len(texts), width), self.n_ctx, generator)
        return [part.expand(len(self.seeds), -1, -1) for part in (lines.tokens, lines.written, places)]

    def right(self, model: CharacterGPTs, texts: list[tuple[str, str]], width: int) -> np.ndarray:
        """(S,) share of texts of which all that is to be written is right."""
        return hits(model, *self.asked(texts, width)).all(-1).double().mean(1).numpy()

    def in_sentences(self, model: CharacterGPTs) -> dict[str, np.ndarray]:
        """Share right of the same sums of operands of the longest length of training.

        bare: (S,) without words. sentences: (S, 4) in each of `SENTENCES`. other: (S,) in that of no training.
        """
        pairs = self.test(self.digits).tolist()
        bare_sums, *inside, other = [
            self.right(model, [bare(*pair) if one is None else sentence(one, *pair) for pair in pairs], self.width)
            for one in (None, *SENTENCES, OTHER_SENTENCE)
        ]
        return {"bare": bare_sums, "sentences": np.stack(inside, 1), "other": other}

    @property
    def width(self) -> int:
        """T of the longest sentence."""
        nines = 10**self.digits - 1
        return max(len("".join(sentence(one, nines, nines))) for one in (*SENTENCES, OTHER_SENTENCE)) + 2

    def build(self):
        config = CharacterGPTConfig(
            self.n_ctx, self.d_model, self.n_layers, d_vocab=len(ALPHABET), positions=self.positions
        )
        return CharacterGPTs(config, self.seeds)

    def size(self):
        """Of one model: its weights, and the texts that it is trained on."""
        weights = sum(weight[0].numel() for weight in self.build().parameters())
        return {"weights": weights, "examples": self.steps * self.batch_size}

    def objective(self, model, device):
        return TextsObjective(self)


@of_kind("described-sums-study")
@dataclass(frozen=True, kw_only=True)
class PlacesExperiment(TextsExperiment):
    """Bare sums, with other places or other spaces.

    spaces: whether gaps between digits of operands hold spaces, in a share of them that each text draws anew.
    further: how many digits longer than training tests go.
    """

    spaces: bool = False
    further: int = 2

    def drawn(self, pairs, generator):
        texts, width = [bare(a, b) for a, b in pairs.tolist()], FORMAT.width(self.digits)
        if self.spaces:
            texts, width = self.with_spaces(texts, generator), width + room(self.digits)
        lines = as_lines(texts, width, ALPHABET)
        return lines.tokens, lines.written, draw_places(self.places, lines.tokens.shape, self.n_ctx, generator)

    def with_spaces(self, texts: list[tuple[str, str]], generator: np.random.Generator) -> list[tuple[str, str]]:
        return [(spaced(question, generator.random(), generator), answer) for question, answer in texts]

    @torch.no_grad()
    def finish(self, model, run):
        """Measured at the end, each (1, S, ...), the right text being read as far as it goes.

        by_length: (L) share of sums of two operands of 1, 2, ... digits, without spaces, whose answer and line end
        are right. characters: (L, longest answer with its line end) share of characters right by their place in the
        answer. moved: share right of the sums of the longest operands of training that have no digit more than these,
        in fixed places moved by one: every place is one that training had. spaced: as by_length, with spaces in the
        operands. place_read: (layers + 1), at fixed places without spaces, as that method says. And what
        `in_sentences` measures.
        """
        lengths = range(1, self.digits + self.further + 1)
        tests = [[bare(a, b) for a, b in self.test(digits).tolist()] for digits in lengths]
        by_length, characters = [], np.full((len(self.seeds), len(lengths), lengths[-1] + 2), np.nan)
        for row, (digits, texts) in enumerate(zip(lengths, tests, strict=True)):
            tokens, written, places = self.asked(texts, FORMAT.width(digits))
            right = hits(model, tokens, written, places)
            by_length.append(right.all(-1).double().mean(1).numpy())
            characters[:, row, : digits + 2] = by_place(right, written[0, :, 1:], digits + 2)
        measured = {"by_length": np.stack(by_length, 1), "characters": characters}
        short = [(question, answer) for question, answer in tests[self.digits - 1] if len(answer) == self.digits]
        width = FORMAT.width(self.digits) - 1
        later = torch.arange(1, width + 1).expand(len(short), -1)
        right = hits(model, *self.asked(short, width, later)).all(-1)
        measured["moved"] = right.double().mean(1).numpy()
        if self.spaces:
            generator = np.random.default_rng([TEST_SEED, 1])
            measured["spaced"] = np.stack([
                self.right(model, self.with_spaces(texts, generator), FORMAT.width(digits) + room(digits))
                for digits, texts in zip(lengths, tests, strict=True)
            ], 1)  # fmt: skip
        if self.places == "fixed" and not self.spaces:
            measured["place_read"] = self.place_read(model)
        measured |= self.in_sentences(model)
        return {name: values[None] for name, values in measured.items()}

    @torch.no_grad()
    def place_read(self, model: CharacterGPTs) -> np.ndarray:
        """(S, layers + 1) share of characters whose place a linear probe reads, after the embedding and each layer.

        It learns from `test_size` texts as in training and is tested on as many others; none has a sum of a test.
        """
        generator = np.random.default_rng([TEST_SEED, 2])
        taken = np.concatenate([self.test(digits) for digits in range(1, self.digits + 1)])
        halves = []
        for _ in range(2):
            pairs = self.operands.fresh(self.test_size, generator, taken)
            tokens, written, places = self.drawn(pairs, generator)
            # The last line end is written, and not read.
            read = torch.arange(tokens.shape[1]) < tokens.shape[1] - 1 - written.int().flip(1).argmax(1, keepdim=True)
            streams = model.streams(*(part.expand(len(self.seeds), -1, -1) for part in (tokens, places)))
            halves.append(([stream[:, read] for stream in streams], places[read]))
            taken = np.concatenate([taken, pairs])
        (seen, label), (unseen, asked) = halves
        shares = [
            [LinearProbe(x, label).share_right(y, asked) for x, y in zip(*layer, strict=True)]
            for layer in zip(seen, unseen, strict=True)
        ]
        return np.array(shares).T


def by_place(right: Tensor, written: Tensor, places: int) -> np.ndarray:
    """(S, N, T) hits, (N, T) what is to be written -> (S, places) share right at the first, second, ... of it.

    Over the texts that have the place.
    """
    nth = torch.where(written, written.cumsum(1) - 1, -1)
    share = [right[:, nth == place].double().mean(1) for place in range(places)]
    return torch.stack(share, 1).numpy()


@of_kind("sums-in-sentences-study")
@dataclass(frozen=True, kw_only=True)
class SentencesExperiment(TextsExperiment):
    """Bare sums and sums in sentences, a text of training being of each of `kinds` as often.

    bare: 12+34=64. sentences: one of `SENTENCES` with its answer. words: a sentence of which the model learns all
    words and is told no answer.
    """

    kinds: tuple[str, ...]

    def __post_init__(self):
        super().__post_init__()
        if unknown := set(self.kinds) - set(KINDS):
            raise ValueError(f"kinds = {sorted(unknown)}: choose of {', '.join(KINDS)}")

    def drawn(self, pairs, generator):
        kinds = generator.choice(self.kinds, len(pairs))
        templates = generator.choice(SENTENCES, len(pairs))
        texts = [
            bare(a, b) if kind == "bare" else sentence(template, a, b)
            for (a, b), kind, template in zip(pairs.tolist(), kinds, templates, strict=True)
        ]
        lines = as_lines(texts, self.width, ALPHABET)
        words = torch.from_numpy(kinds == "words")[:, None]
        written = torch.where(words, asked_for_words(lines), lines.written)
        return lines.tokens, written, draw_places(self.places, lines.tokens.shape, self.n_ctx, generator)

    @torch.no_grad()
    def finish(self, model, run):
        """What `in_sentences` measures, each (1, S, ...)."""
        return {name: values[None] for name, values in self.in_sentences(model).items()}
