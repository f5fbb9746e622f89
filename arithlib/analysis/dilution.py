"""How attention thins out over long sums: all keys of a column transformer, in linear time (chapter 71).

Without a window each answer token attends to the whole text. But far keys differ in few ways: their number, their
token, and by how far they have faded. So the keys behind a token, of each *sort* (number and token), sum up to ::

    mass[i] = sum over j < i of present[j] r^(i - j) = r (mass[i - 1] + present[i - 1]),      r = exp(-slope),

one such recurrence for each sort and head, and one from the other end for the keys ahead. With r = 1 it counts. All
of softmax is then a sum over near keys and sorts, as short at every length; a test holds it equal to the forward.

Dimensions: B sums, L columns, N answer tokens of all sums, S near keys, U sorts of far keys, H heads, K d_head, D
d_model, V vocabulary.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from arithlib.evaluation import logit_margin
from arithlib.models.column import ANSWER, ColumnTransformer
from arithlib.streaming import KEY_TOKENS, WINDOW_DISTANCE, WINDOW_NUMBER, columns
from arithlib.tokenizer import ABSENT

NUMBER, TOKEN = torch.tensor([(number, token) for number, tokens in KEY_TOKENS.items() for token in tokens]).unbind(1)
# The masses of so many columns fit into any memory, and the scores of so many tokens into a cache.
COLUMNS_A_PASS, TOKENS_A_PASS = 100_000, 1000


@dataclass(frozen=True)
class Fix:
    """What is changed about attention, in evaluation alone.

    slope: what a far key loses of its score with each step of distance, instead of the model's own; 0 nothing,
        infinity all (a window). None leaves it.
    scale: number of visible keys -> factor on all scores, instead of the model's own. Towards infinity this is hard
        attention.
    lift: number of visible keys -> what the scores of near keys gain.
    """

    slope: float | None = None
    scale: Callable[[Tensor], Tensor] | None = None
    lift: Callable[[Tensor], Tensor] = torch.zeros_like


@dataclass(frozen=True)
class Reading:
    """What a model does at every answer token of some sums, in the order of their rows.

    row: (N,) the sum. visible: (N,) how many keys the token has. margin: (N,) by how much the right token leads.
    near: (N, H) share of attention that the keys of the window get.
    """

    row: Tensor
    visible: Tensor
    margin: Tensor
    near: Tensor

    def margins(self) -> Tensor:
        """(B,) the smallest margin of each sum; greedy decoding writes it where that is positive."""
        smallest = torch.full((int(self.row.max()) + 1,), torch.inf, dtype=self.margin.dtype)
        return smallest.scatter_reduce(0, self.row, self.margin, "amin")


class Tables:
    """All that one layer of attention can read, in float64. Scores are those of an answer token.

    content: (V, U, H) scores of far keys by sort; near: (V, 3, V, 2, H) those of near ones by number, token and
    distance, with their bias. values: (4, V, H, K). slope: (H,), 0 for bounded scores and infinite for a window.
    """

    @torch.no_grad()
    def __init__(self, model: ColumnTransformer):
        if model.config.window != 1:
            raise ValueError(f"window = {model.config.window}: this analysis is about a window of one column")
        if model.config.positions == "window-sink":
            raise ValueError("positions = 'window-sink': this analysis knows no sink")
        self.model = model = copy.deepcopy(model).double()
        self.x, _, _, self.values = model.token_tables()
        scores = model.score_table()[:, : ANSWER + 1]
        self.content = scores[:, NUMBER, TOKEN]
        self.near = scores[:, :, :, None] + model.near[:, : ANSWER + 1].permute(1, 2, 0)[:, None]
        if model.config.positions == "alibi":
            self.slope = model.log_slope.exp()
        else:
            slope = torch.inf if model.config.positions == "window" else 0.0
            self.slope = torch.full((model.config.n_heads,), slope, dtype=torch.double)

    def score_range(self) -> Tensor:
        """(H,) the largest minus the smallest score that any key can have, before it fades and is scaled."""
        used = torch.cat([self.near.flatten(0, 3), self.content.flatten(0, 1)])
        return used.amax(0) - used.amin(0)

    def logits(self, query: Tensor, z: Tensor) -> Tensor:
        """(N,) answer tokens and (N, H, K) what their heads read -> (N, V)."""
        return self.model.unembedding(self.model.add_neurons(self.x[ANSWER, query] + self.model.out(z.flatten(1))))


def presence(lines: Tensor) -> Tensor:
    """(B, 3, L) columns -> (L, B, U) one where a key of this sort stands in this column."""
    return (lines[:, NUMBER] == TOKEN[:, None]).permute(2, 0, 1).double()


def expected_presence(digits: int) -> Tensor:
    """(L, 1, U) how often each sort stands in a column of a sum of two random numbers, all digits alike."""
    present = torch.zeros(digits + 3, 1, len(TOKEN), dtype=torch.double)
    is_digit = TOKEN < 10
    present[1 : digits + 1, :, is_digit] = 0.1
    present[0, :, ~is_digit] = 1.0
    return present


def masses(present: Tensor, slope: Tensor) -> Tensor:
    """(L, B, U) presence -> (L, B, U, H): of every sort, how many keys are far from column i, times their fading.

    slope: (H,) as in `Tables`. An answer token sees no further answer, and all of both operands.
    Of heads that all fade alike there is one, (L, B, U, 1).
    """
    slope = slope[:1] if (slope == slope[0]).all() else slope
    present = present[..., None]
    operands = present * (NUMBER != ANSWER)[:, None]
    ratio = (-slope).exp()
    total = torch.empty(*present.shape[:3], len(slope), dtype=torch.double)
    state = total[0].zero_()
    for i in range(1, len(total)):  # behind: of column i those are far that stand before it
        state = torch.add(state, present[i - 1], out=total[i]).mul_(ratio)
    state = torch.zeros_like(state)
    for i in range(len(total) - 3, -1, -1):  # ahead: column i + 1 is near, those after it are far
        total[i] += state.add_(operands[i + 2]).mul_(ratio)
    return total


@torch.no_grad()
def read(model: ColumnTransformer, a: Tensor, b: Tensor, fix: Fix | None = None) -> Reading:
    """Give the right answers of a + b, (B, N) digits each, and see what the model would write after every token."""
    tables, fix = Tables(model), fix or Fix()
    slope = tables.slope if fix.slope is None else torch.full_like(tables.slope, fix.slope)
    at_once = max(1, COLUMNS_A_PASS // (a.shape[1] + 3))
    parts = []
    for first in range(0, len(a), at_once):
        lines = columns(a[first : first + at_once], b[first : first + at_once])
        mass = masses(presence(lines), slope)
        length = (lines[:, :2] != ABSENT).sum((1, 2))
        asks = (lines[:, ANSWER, 1:] != ABSENT).nonzero()  # tokens that have one to write next
        for row, place in (chunk.unbind(1) for chunk in asks.split(TOKENS_A_PASS)):
            visible = length[row] + place + 1
            parts.append((row + first, visible, *_attend(tables, lines, row, place, mass[place, row], visible, fix)))
    return Reading(*map(torch.cat, zip(*parts, strict=True)))


@torch.no_grad()
def predict(model: ColumnTransformer, a: Tensor, b: Tensor, digits: int, fix: Fix | None = None) -> Reading:
    """What `read` should find in random sums of `digits` digits, from what is near in short ones alone.

    a, b: (B, N) digits of short numbers, all of N digits. Their inner columns are thought to stand evenly spread
    over the long numbers; what is far is taken at its expectation, every digit a tenth of each.
    Raises ValueError for operands that are shorter than others, or too few inner columns.
    """
    B, N = a.shape
    if N < 4 or not (a[:, -1].all() and b[:, -1].all()):
        raise ValueError(f"operands of {N} digits: all need the same number, 4 or more, and no leading zero")
    tables, fix = Tables(model), fix or Fix()
    slope = tables.slope if fix.slope is None else torch.full_like(tables.slope, fix.slope)
    lines, mass = columns(a, b), masses(expected_presence(digits), slope)[:, 0]
    row, place = torch.cartesian_prod(torch.arange(B), torch.arange(2, N - 2)).unbind(1)
    there = torch.linspace(2, digits - 3, len(row)).round().long()
    visible = 2 * digits + 2 + there
    return Reading(row, visible, *_attend(tables, lines, row, place, mass[there], visible, fix))


def _attend(tables, lines, row, place, mass, visible, fix):
    """Margins (N,) and shares of the window (N, H) of answer tokens at these places of these rows."""
    query, right = lines[row, ANSWER, place], lines[row, ANSWER, place + 1]
    scale, lift = (of(visible.double())[:, None, None] for of in (fix.scale or tables.model.sharpness, fix.lift))
    keys = lines[row[:, None], WINDOW_NUMBER, place[:, None] + 1 - WINDOW_DISTANCE]
    near = scale * tables.near[query[:, None], WINDOW_NUMBER, keys, WINDOW_DISTANCE] + lift
    near = near.masked_fill((keys == ABSENT)[..., None], -torch.inf)
    far = scale * tables.content[query] + mass.log()
    largest = torch.maximum(near.amax(1), far.amax(1))[:, None]
    near, far = (near - largest).exp(), (far - largest).exp()
    Z, W = near.sum(1), far.sum(1)
    z = torch.einsum("nsh,nshk->nhk", near, tables.values[WINDOW_NUMBER, keys])
    z += torch.einsum("nuh,uhk->nhk", far, tables.values[NUMBER, TOKEN])
    logits = tables.logits(query, z / (Z + W)[..., None])
    return logit_margin(logits, right), Z / (Z + W)


def crossing(lengths: list[int], values: Tensor, level: float) -> float:
    """Where values (L,) that start above `level` first fall to it, on a straight line between log lengths.

    Raises ValueError where they do not start above it, or never fall to it.
    """
    below = (values <= level).nonzero()
    if len(below) == 0 or below[0] == 0:
        raise ValueError(f"{values.tolist()} at {lengths} do not fall from above {level} to below it")
    i = int(below[0])
    share = float((values[i - 1] - level) / (values[i - 1] - values[i]))
    return lengths[i - 1] * (lengths[i] / lengths[i - 1]) ** share
