"""Small transformers that are trained on n-back, and on sums whose columns stand together or apart (chapter 65)."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from arithlib.experiments.base import Experiment
from arithlib.models.looped import LoopedConfig, LoopedTransformer
from arithlib.settings import of_kind
from chapters.ch61_character_gpt import CharacterGPTConfig, CharacterGPTs
from chapters.ch61_written_sums import ALPHABET
from chapters.ch65_working_memory import (
    ANSWERS,
    LONGEST,
    SPREAD,
    Blocks,
    Line,
    d_prime,
    d_prime_of_blocks,
    draw_blocks,
    probability_of_less,
    spread_of,
)

LENGTHS = (24, 48, 96, 192)  # letters; training has the first
LAST = 8  # so many letters at the end of a block, where the context is as long as the block
TEST_SEED = 2305_03731
COUNTS = ("hits", "signals", "alarms", "noises")
MEASURES = ("needed", *SPREAD)


class NBackObjective:
    """Mean cross-entropy of yes and no at every letter that has one n before it; n is drawn for each block."""

    def __init__(self, experiment: "NBackExperiment"):
        self.experiment, self.test = experiment, test_blocks(experiment.evaluation_blocks, experiment.letters)

    def loss(self, model: LoopedTransformer, step: int) -> Tensor:
        generator = self.experiment.generator(step)
        n = torch.randint(1, LONGEST + 1, (self.experiment.batch_size,), generator=generator)
        return cross_entropy(model, draw_blocks(n, self.experiment.letters, generator))

    @torch.no_grad()
    def evaluate(self, model: LoopedTransformer) -> dict[str, float | np.ndarray]:
        """loss: on a test. d_prime: (n,) with the log-linear correction, all blocks of the test together.
        d_prime_of_blocks: (n,) as the paper's code has it.
        """
        counts = counts_of(self.test, said(model, self.test))
        return {
            "loss": float(cross_entropy(model, self.test)), "d_prime": d_prime(*counts.sum(1).T),
            "d_prime_of_blocks": d_prime_of_blocks(*np.moveaxis(counts, -1, 0)),
        }  # fmt: skip


def cross_entropy(model: LoopedTransformer, blocks: Blocks) -> Tensor:
    logits = model(blocks.tokens)[:, 1:, ANSWERS][blocks.counted]
    return F.cross_entropy(logits, blocks.match[blocks.counted].long())


def test_blocks(each: int, letters: int, lures: float = 0.0) -> Blocks:
    """So many blocks of every n, one n after the other; the same for all models."""
    n = torch.arange(1, LONGEST + 1).repeat_interleave(each)
    return draw_blocks(n, letters, torch.Generator().manual_seed(TEST_SEED + letters + round(100 * lures)), lures)


@torch.no_grad()
def said(model: LoopedTransformer, blocks: Blocks) -> Tensor:
    """(B, L) whether the model says yes."""
    parts = [model(part)[:, 1:, ANSWERS].argmax(-1).bool() for part in blocks.tokens.split(128)]
    return torch.cat(parts)


def counts_of(blocks: Blocks, yes: Tensor) -> np.ndarray:
    """Counts (n, blocks, 4) of `COUNTS` where an answer counts, for blocks as `test_blocks` makes them."""
    match, counted = blocks.match, blocks.counted
    each = [(yes & match), match, (yes & counted & ~match), (counted & ~match)]
    return torch.stack([part.sum(1) for part in each], -1).unflatten(0, (LONGEST, -1)).numpy()


@torch.no_grad()
def reading(model: LoopedTransformer, blocks: Blocks, n: int, chosen: int | None = None):
    """How the head that reads the letter n before attends, at the last eight letters of blocks all of this n.

    chosen: the head, counted over all layers; None takes the one that gives that letter the most.
    Returns the head, a dict of (B, 8) `MEASURES`: the weight of the letter that is needed, the largest weight, the
    entropy in nats, the range of the scores, and the bound on the largest weight that follows from it; and (B, 8)
    whether the answer is right.
    """
    logits, activations = model(blocks.tokens, return_activations=True)
    patterns = [activations[f"loops.0.layers.{layer}.pattern"] for layer in range(model.config.n_layers)]
    T = blocks.tokens.shape[1]
    query = torch.arange(T - LAST, T)
    pattern = torch.cat(patterns, 1)[:, :, query]  # (B, H of all layers, 8, T)
    needed = pattern[:, :, torch.arange(LAST), query - n]
    head = int(needed.mean((0, 2)).argmax()) if chosen is None else chosen
    measured = {"needed": needed[:, head].double()} | spread_of(pattern[:, head], query + 1)
    right = logits[:, query][..., ANSWERS].argmax(-1).bool() == blocks.match[:, query - 1]
    return head, measured, right


@torch.no_grad()
def whereto(model: LoopedTransformer, blocks: Blocks, n: int, head: int) -> np.ndarray:
    """(4,) mean weights of a head, counted over all layers, at the last eight letters of blocks all of this n.

    On the letter n before, on others at distances that training had, on letters further back, and on the token of n.
    """
    _, activations = model(blocks.tokens, return_activations=True)
    layer, head = divmod(head, model.config.n_heads)
    T = blocks.tokens.shape[1]
    query, key = torch.arange(T - LAST, T)[:, None], torch.arange(T)
    weight = activations[f"loops.0.layers.{layer}.pattern"][:, head, T - LAST :]
    back = query - key
    parts = [back == n, (back < LENGTHS[0]) & (back != n) & (key > 0), (back >= LENGTHS[0]) & (key > 0)]
    parts.append((key == 0).expand_as(back))
    return torch.stack([(weight * part).sum(-1).mean() for part in parts]).double().numpy()


@of_kind("n-back")
@dataclass(frozen=True, kw_only=True)
class NBackExperiment(Experiment):
    """One model for n from 1 to 6: the first token says n, and then letters follow.

    letters: of a block, in training and as published. test_count: blocks of each n in the tests of the end.
    """

    model: LoopedConfig
    letters: int = 24
    batch_size: int = 64
    evaluation_blocks: int = 32
    test_count: int = 50

    network = LoopedTransformer

    def objective(self, model, device):
        return NBackObjective(self)

    @torch.no_grad()
    def finish(self, model, run):
        """The tests of the end, each with a first axis of one.

        plain, lured: (n, blocks, 4) `COUNTS` of blocks as in training, and with half of what is no match made lures.
        lure_alarms: (n, 4) of the lured ones: alarms at lures, lures, alarms at others, others.
        longer: (lengths, n, 4) counts at the last eight letters of blocks of `LENGTHS`.
        attention: (lengths, n, 5) means of `MEASURES` there. less: (lengths, n, 3) how often an answer that is
        wrong had less weight on its letter than one that is right, and of how many wrong and right ones; a half
        where there are none of either.
        """
        plain, lured = (test_blocks(self.test_count, self.letters, lures) for lures in (0.0, 0.5))
        yes = said(model, lured)
        other = lured.counted & ~lured.match & ~lured.lure
        at = [(yes & lured.lure), lured.lure, (yes & other), other]
        lure_alarms = torch.stack([part.sum(1) for part in at], -1).unflatten(0, (LONGEST, -1)).sum(1).numpy()
        longer, attention, less = (np.zeros((len(LENGTHS), LONGEST, k)) for k in (len(COUNTS), len(MEASURES), 3))
        heads = [None] * LONGEST
        for row, length in enumerate(LENGTHS):
            blocks = test_blocks(self.test_count, length)
            for n in range(1, LONGEST + 1):
                part = slice((n - 1) * self.test_count, n * self.test_count)
                own = Blocks(*(each[part] for each in vars(blocks).values()))
                heads[n - 1], measured, right = reading(model, own, n, heads[n - 1])
                match = own.match[:, -LAST:]
                at = (right & match), match, (~right & ~match), ~match
                longer[row, n - 1] = [int(each.sum()) for each in at]
                attention[row, n - 1] = [float(measured[name].mean()) for name in MEASURES]
                wrong_ones, right_ones = measured["needed"][~right].numpy(), measured["needed"][right].numpy()
                both = len(wrong_ones) and len(right_ones)
                share = probability_of_less(wrong_ones, right_ones) if both else 0.5
                less[row, n - 1] = share, len(wrong_ones), len(right_ones)
        found = {
            "plain": counts_of(plain, said(model, plain)), "lured": counts_of(lured, yes), "lure_alarms": lure_alarms,
            "longer": longer, "attention": attention, "less": less, "heads": np.array(heads),
        }  # fmt: skip
        return {name: values[None] for name, values in found.items()}


# ---- sums --------------------------------------------------------------------------------------------------------

PLUS, EQUALS = ALPHABET.index("+"), ALPHABET.index("=")


def write_columns(numbers: Tensor, line: Line) -> Tensor:
    """(B, k, N) digits, units first -> (B, T) tokens of the line: numbers, signs, `=` and the N + 1 digits of a sum.

    Raises ValueError for more numbers than a carry of one digit allows.
    """
    B, k, N = numbers.shape
    if k > 10:
        raise ValueError(f"{k} numbers: a carry has one digit with at most 10")
    where, answer = line.places((N,) * k)
    tokens = torch.full((B, max(answer)), PLUS)
    for (number, column), place in where.items():
        tokens[:, place - 1] = numbers[:, number, column]
    tokens[:, min(answer) - 2] = EQUALS
    carry = torch.zeros(B, dtype=torch.long)
    for column, place in enumerate(answer):
        total = carry + (numbers[:, :, column].sum(1) if column < N else 0)
        tokens[:, place - 1], carry = total % 10, total // 10
    return tokens


class ColumnsObjective:
    """Each model's mean cross-entropy on the digits of the sum; all models have the same sums at a step."""

    def __init__(self, experiment: "ColumnsExperiment"):
        self.experiment = experiment
        self.test = experiment.tokens(torch.Generator().manual_seed(TEST_SEED), experiment.test_size)

    def digits(self, model: CharacterGPTs, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """(S, B, N + 1, V) logits of the digits of the sum, and (S, B, N + 1) what they are."""
        asked = self.experiment.digits + 1
        return model(tokens[..., :-1])[..., -asked:, :], tokens[..., -asked:]

    def loss(self, model: CharacterGPTs, step: int) -> Tensor:
        tokens = self.experiment.tokens(self.experiment.generator(step), self.experiment.batch_size)
        logits, targets = self.digits(model, tokens)
        return F.cross_entropy(logits.flatten(0, 2), targets.flatten()) * len(tokens)

    @torch.no_grad()
    def evaluate(self, model: CharacterGPTs) -> dict[str, np.ndarray]:
        """(lines, seeds) each: loss, digits right and exact match, the right digits being read."""
        logits, targets = self.digits(model, self.test)
        each = F.cross_entropy(logits.flatten(0, 2), targets.flatten(), reduction="none").view_as(targets)
        right = logits.argmax(-1) == targets
        measured = {"loss": each.mean((1, 2)), "digit": right.double().mean((1, 2)), "exact": right.all(-1)}
        shape = (len(self.experiment.lines), len(self.experiment.seeds))
        exact = measured["exact"].double().mean(1)
        return {k: v.reshape(shape).numpy() for k, v in (measured | {"exact": exact}).items()}


@of_kind("line")
@dataclass(frozen=True)
class WrittenLine:
    """Settings of a `Line`."""

    interleaved: bool = False
    reversed_answer: bool = True
    reversed_numbers: bool = False

    def line(self) -> Line:
        return Line(**vars(self))


@of_kind("columns")
@dataclass(frozen=True, kw_only=True)
class ColumnsExperiment(Experiment):
    """Small GPTs that add several numbers written on one line, in several ways, trained as one stack.

    lines: the ways. seeds: of the weights, the same for each way. digits: of every number, with leading zeros.
    numbers: how many are added.
    """

    lines: tuple[WrittenLine, ...]
    seeds: tuple[int, ...]
    digits: int = 8
    numbers: int = 3
    batch_size: int = 32
    test_size: int = 200
    d_model: int = 32
    n_layers: int = 2
    n_heads: int = 4

    def build(self):
        config = CharacterGPTConfig(self.width, self.d_model, self.n_layers, self.n_heads)
        return CharacterGPTs(config, self.seeds * len(self.lines))

    @property
    def width(self) -> int:
        """T of a line, the same for all."""
        return self.numbers * (self.digits + 1) + self.digits + 1

    def tokens(self, generator: torch.Generator, size: int) -> Tensor:
        """(S, size, T) the same random sums, as each model has them written."""
        numbers = torch.randint(10, (size, self.numbers, self.digits), generator=generator)
        written = torch.stack([write_columns(numbers, way.line()) for way in self.lines])
        return written.repeat_interleave(len(self.seeds), 0)

    def size(self):
        """Of one model."""
        weights = sum(weight[0].numel() for weight in self.build().parameters())
        return {"weights": weights, "examples": self.steps * self.batch_size}

    def objective(self, model, device):
        return ColumnsObjective(self)
