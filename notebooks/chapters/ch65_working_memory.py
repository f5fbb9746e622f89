"""Is there a working memory in a transformer? The n-back test, and what a sum on one line asks for (chapter 65).

n-back: letters are shown one after the other, and at each the question is whether it equals the one n places before
(Kirchner 1958; for a chat model Gong, Wan and Wang 2023, arXiv 2305.03731). How well a signal is told from noise is
d' = z(hit rate) - z(false-alarm rate), with z the inverse of the normal distribution.

Dimensions: B blocks, L letters of a block, T = L + 1 tokens, H heads, S keys, N digits or answer tokens, k numbers.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from arithlib.models.column import ANSWER, ColumnTransformer, column_distance, segment_ids
from arithlib.tasks.operands import Problems

LETTERS = 8  # tokens 0 to 7
LONGEST = 6  # the largest n
D_VOCAB = LETTERS + LONGEST + 2  # letters, one token for every n, and the two answers
ANSWERS = slice(D_VOCAB - 2, D_VOCAB)  # no, yes
SPREAD = ("largest", "entropy", "gap", "bound")
MATCHES = 1 / 3  # 8 of 24 letters, or 10 of 30, in the published blocks


@dataclass
class Blocks:
    """B blocks of the n-back test.

    tokens: (B, L + 1); first the token of n, then the letters. match: (B, L) whether a letter is that of n before.
    counted: (B, L) whether there is a letter n before, so that an answer counts.
    lure: (B, L) whether a letter is no match and equals the one n - 1 or n + 1 before.
    """

    tokens: Tensor
    match: Tensor
    counted: Tensor
    lure: Tensor


def draw_blocks(n: Tensor, length: int, generator: torch.Generator, lures: float = 0.0) -> Blocks:
    """One block for each entry of n, (B,) from 1 to `LONGEST`, of `length` letters.

    A third are matches. Another letter is any of the other seven; with `lures` so many of them, where that is
    possible, are the letter n - 1 or n + 1 before. Raises ValueError for an n that has no token.
    """
    if n.min() < 1 or n.max() > LONGEST:
        raise ValueError(f"n from {int(n.min())} to {int(n.max())}: there are tokens for 1 to {LONGEST}")
    B, row = len(n), torch.arange(len(n))
    letters = torch.zeros(B, length, dtype=torch.long)
    match, lure = torch.zeros(2, B, length, dtype=torch.bool)

    def before(i, steps):
        """(B,) the letter so many steps before place i, and whether there is one."""
        there = (steps >= 1) & (steps <= i)
        return letters[row, (i - steps).clamp(0, length - 1)], there

    for i in range(length):
        share, side, lured = torch.rand(3, B, generator=generator)
        other = torch.randint(1, LETTERS, (B,), generator=generator)
        target, counted = before(i, n)
        near, near_there = before(i, n + torch.where(side < 0.5, -1, 1))
        wanted = (lured < lures) & near_there & (near != target)
        elsewhere = torch.where(wanted, near, (target + other) % LETTERS)
        anything = (other + torch.randint(0, 2, (B,), generator=generator)) % LETTERS
        letters[:, i] = torch.where(counted, torch.where(share < MATCHES, target, elsewhere), anything)
        match[:, i] = counted & (letters[:, i] == target)
        for step in (n - 1, n + 1):
            close, there = before(i, step)
            lure[:, i] |= counted & ~match[:, i] & there & (close == letters[:, i])
    tokens = torch.cat([LETTERS + n[:, None] - 1, letters], 1)
    return Blocks(tokens, match, torch.arange(length) >= n[:, None], lure)


def d_prime(hits, signals, alarms, noises):
    """z of the hit rate minus z of the false-alarm rate, one half added to each count and one to each number of
    trials (the log-linear correction, Hautus 1995). Arrays of counts of any common shape."""
    return _z((hits + 0.5) / (signals + 1)) - _z((alarms + 0.5) / (noises + 1))


def d_prime_of_blocks(hits, signals, alarms, noises, absolute: bool = True):
    """The mean over blocks, the last axis, as the released code of Gong et al. has it: rates are cut off at 0.01 and
    0.99, and of each block's d' the absolute value is taken. So it is at most 4.65, and above zero for who guesses.
    Blocks without a match are left out (the published ones have a fixed number).

    (github.com/Daniel-Gong/ChatGPT-WM at 216dbb3, analysis_across_exps.ipynb, compute_summary_stats.)
    """
    hit = np.clip(hits / np.maximum(signals, 1), 0.01, 0.99)
    alarm = np.clip(alarms / np.maximum(noises, 1), 0.01, 0.99)
    each = np.where((signals > 0) & (noises > 0), _z(hit) - _z(alarm), np.nan)
    return np.nanmean(np.abs(each) if absolute else each, -1)


def _z(rate):
    return torch.special.ndtri(torch.as_tensor(np.asarray(rate, float))).numpy()


def probability_of_less(these: np.ndarray, others: np.ndarray) -> float:
    """How often a random one of these is less than a random one of the others; ties count half (Mann and Whitney).

    Raises ValueError where there are none of either.
    """
    if len(these) == 0 or len(others) == 0:
        raise ValueError(f"{len(these)} and {len(others)} values: nothing to compare")
    others = np.sort(others)
    more = len(others) - np.searchsorted(others, these, "right")
    ties = np.searchsorted(others, these, "right") - np.searchsorted(others, these, "left")
    return float((more + ties / 2).mean() / len(others))


def largest_weight_bound(visible, gap):
    """The most that one of so many keys can get where no score lies more than `gap` below the largest one.

    Numbers, arrays or tensors.
    """
    return 1 / (1 + (visible - 1) * math.e**-gap)


def spread_of(weights: Tensor, visible: Tensor) -> dict[str, Tensor]:
    """How thinly (..., S) weights of attention are spread, where only the first `visible` (...) keys can be seen.

    Returns by name, (...) each: the largest weight, the entropy in nats, the range of the scores, and the bound on
    the largest weight that follows from it.
    """
    weights = weights.double()
    logs = weights.clamp_min(1e-38).log()  # what float32 has rounded to zero would have an infinite range
    seen = torch.arange(weights.shape[-1]) < visible[..., None]
    gap = logs.amax(-1) - logs.masked_fill(~seen, torch.inf).amin(-1)
    bound = largest_weight_bound(visible, gap)
    return dict(zip(SPREAD, (weights.amax(-1), -(weights * logs).sum(-1), gap, bound), strict=True))


@torch.no_grad()
def adder_reading(model: ColumnTransformer, problems: Problems) -> dict[str, Tensor]:
    """How an adder of chapter 71 attends at each of the N answer tokens of some sums, the right digits being read.

    Returns right (N,), whether the next token leads; near (N, H), the weight of the at most five keys of the column
    to be added and the one just done; and (N, H) `SPREAD` of all weights.
    """
    tokens = problems.tokens[:, :-1]
    logits, activations = model(tokens, return_activations=True)
    asks = problems.answer_mask[:, 1:]
    distance = column_distance(tokens)
    inside = ((distance == 0) | (distance == 1)) & (segment_ids(tokens)[:, None] <= ANSWER)
    weights = activations["pattern"].movedim(1, 2)[asks]  # (N, H, S)
    near = (weights * inside[asks][:, None]).sum(-1).double()
    visible = asks.nonzero()[:, 1:] + 1
    right = (logits.argmax(-1) == problems.tokens[:, 1:])[asks]
    return {"right": right, "near": near} | spread_of(weights, visible)


# ---- a sum on one line -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """How k numbers of N digits and their sum are written on one line.

    interleaved: the digits of a column stand together, k signs after them; else a sign after every number.
    reversed_answer, reversed_numbers: the units come first.
    """

    interleaved: bool = False
    reversed_answer: bool = False
    reversed_numbers: bool = False

    def places(self, lengths: tuple[int, ...]) -> tuple[dict[tuple[int, int], int], list[int]]:
        """Where everything stands, counted from 1, for numbers of these lengths.

        Returns {(number, column): place} of the digits, column 0 being the units, and the places of the answer's
        digits by column; the answer has one digit more than the longest number.
        """
        k, N = len(lengths), max(lengths)
        where, place = {}, 0

        def order(digits, turned):
            return range(digits) if turned else range(digits - 1, -1, -1)

        if self.interleaved:
            for column in order(N, self.reversed_numbers):
                for number in range(k):
                    if column < lengths[number]:
                        place += 1
                        where[number, column] = place
            place += k
        else:
            for number, digits in enumerate(lengths):
                for column in order(digits, self.reversed_numbers):
                    place += 1
                    where[number, column] = place
                place += 1
        answer = list(order(N + 1, self.reversed_answer))
        return where, [place + 1 + answer.index(column) for column in range(N + 1)]

    def columns(self, lengths: tuple[int, ...]) -> list[list[int]]:
        """Places of the digits of each column, units first."""
        where, _ = self.places(lengths)
        return [
            [where[number, column] for number in range(len(lengths)) if (number, column) in where]
            for column in range(max(lengths))
        ]

    def distances(self, lengths: tuple[int, ...]) -> np.ndarray:
        """(N, 2) for each column how far its nearest and its farthest digit are from the token that writes its digit
        of the answer, which is the one before that."""
        _, answer = self.places(lengths)
        return np.array([
            [answer[column] - 1 - max(places), answer[column] - 1 - min(places)]
            for column, places in enumerate(self.columns(lengths))
        ])  # fmt: skip
