"""Where an adder with learned rows or rotary angles ends: foreseen from short sums, and measured (chapter 77).

What an answer token reads depends on the keys of two columns, which short sums show, and on how much attention all
others take, which follows from the weights: at column j a key of sort u (number and token) weighs exp(q k(u, j)), and
random digits are a tenth of each. So a long sum can be foreseen without one, place by place, for any address.

Dimensions: B sums, L columns, N answer tokens of all sums, S near keys, U sorts of far keys, H heads, K d_head, V
vocabulary.
"""

import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from arithlib.analysis.dilution import NUMBER, TOKEN, Reading, expected_presence
from arithlib.evaluation import logit_margin
from arithlib.models.column import ANSWER, ColumnTransformer, column_distance, segment_ids
from arithlib.models.positions import number_index
from arithlib.streaming import WINDOW_DISTANCE, WINDOW_NUMBER, columns
from arithlib.tasks.operands import Problems
from arithlib.tokenizer import ABSENT

# Patterns of so many entries, and scores of so many far keys, fit into any memory.
WEIGHTS_A_PASS = 10_000_000


@dataclass(frozen=True)
class Placed(Reading):
    """A reading that knows where: index (N,) of the answer token in its number, 0 for `=`."""

    index: Tensor


@torch.no_grad()
def read(model: ColumnTransformer, problems: Problems, offset: int = 0, reach: int | None = None) -> Placed:
    """Give the right answers and see what the model would write after every token, in float64.

    offset, reach: as in the model's forward.
    """
    model, T = copy.deepcopy(model).double(), problems.tokens.shape[1]
    at_once = max(1, WEIGHTS_A_PASS // (model.config.n_heads * T * T))
    parts = []
    for first in range(0, len(problems), at_once):
        part = problems[first : first + at_once]
        tokens, following, asks = part.tokens[:, :-1], part.tokens[:, 1:], part.answer_mask[:, 1:]
        logits, activations = model(tokens, torch.tensor([[offset]]), reach, return_activations=True)
        index, distance = number_index(tokens), column_distance(tokens)
        inside = ((distance == 0) | (distance == 1)) & (segment_ids(tokens) <= ANSWER)[:, None]
        near = (activations["pattern"] * inside[:, None]).sum(-1).movedim(1, -1)
        row, place = asks.nonzero().unbind(1)
        margin = logit_margin(logits[asks], following[asks])
        parts.append((row + first, place + 1, margin, near[asks], index[asks]))
    return Placed(*map(torch.cat, zip(*parts, strict=True)))


@torch.no_grad()
def extrapolate(
    model: ColumnTransformer, a: Tensor, b: Tensor, digits: int, offset: int = 0, reach: int | None = None
) -> Placed:
    """What `read` should find in random sums of `digits` digits, from what is near in short ones alone.

    a, b: (B, N) digits of short numbers, all of N digits. Their first two columns and their last two are thought to
    stand where the long numbers begin and end, and those between evenly spread over the rest; what is far is taken at
    its expectation, every digit a tenth of each. offset, reach: as in `read`.
    Raises ValueError for operands that are shorter than others, too few columns, or a table that ends before.
    """
    N = a.shape[1]
    if N < 4 or not (a[:, -1].all() and b[:, -1].all()):
        raise ValueError(f"operands of {N} digits: all need the same number, 4 or more, and no leading zero")
    model, lines = copy.deepcopy(model).double(), columns(a, b)
    row, place = (lines[:, ANSWER, 1:] != ABSENT).nonzero().unbind(1)
    between = (place >= 2) & (place < N - 2)
    index = torch.where(place < 2, place, place + digits - N)
    index[between] = torch.linspace(2, digits - 3, int(between.sum())).round().long()
    query, right = lines[row, ANSWER, place], lines[row, ANSWER, place + 1]
    near = lines[row[:, None], WINDOW_NUMBER, place[:, None] + 1 - WINDOW_DISTANCE]
    column = torch.arange(digits + 3)
    far = model.project(TOKEN, NUMBER, model.address_at(TOKEN, column[:, None], offset))[2:]
    present = expected_presence(digits)[:, 0].log()
    at_once = max(1, WEIGHTS_A_PASS // present.numel() // model.config.n_heads)
    found = [
        _attend(model, *chunk, far, present, offset, reach)
        for chunk in zip(*(x.split(at_once) for x in (query, right, near, index)), strict=True)
    ]
    return Placed(row, 2 * digits + 2 + index, *map(torch.cat, zip(*found, strict=True)), index)


def _attend(model, query, right, near, index, far, present, offset, reach):
    """Margins (N,) and shares of the near keys (N, H) of answer tokens at these indices.

    far: keys and values (L, U, H, K) of every sort in every column. present: (L, U) log of how many there are.
    """
    x, q, _, _ = model.project(query, torch.tensor(ANSWER), model.address_at(query, index, offset))
    place = index[:, None] + 1 - WINDOW_DISTANCE
    tokens = near.clamp(min=0)
    near_keys = model.project(tokens, WINDOW_NUMBER, model.address_at(tokens, place, offset))[2:]
    ahead = (torch.arange(len(present)) - index[:, None])[..., None]
    seen = (ahead < 0) | ((ahead > 1) & (NUMBER != ANSWER))
    if reach is not None:
        seen &= (ahead >= -reach) & (ahead <= 1 + reach)
    scores = torch.cat([
        torch.einsum("nhk,nshk->nsh", q, near_keys[0]),
        torch.einsum("nhk,luhk->nluh", q, far[0]).flatten(1, 2),
    ], 1) / q.shape[-1] ** 0.5  # fmt: skip
    S = near.shape[1]
    scores[:, :S].masked_fill_((near == ABSENT)[..., None], -torch.inf)
    scores[:, S:] += torch.where(seen, present, -torch.inf).flatten(1)[..., None]
    pattern = scores.softmax(1)
    z = torch.einsum("nsh,nshk->nhk", pattern[:, :S], near_keys[1])
    z += torch.einsum("nuh,uhk->nhk", pattern[:, S:], far[1].expand_as(far[0]).flatten(0, 1))
    logits = model.unembedding(model.add_neurons(x + model.out(z.flatten(1))))
    return logit_margin(logits, right), pattern[:, :S].sum(1)


def shares_right(tokens: Placed) -> tuple[float, float]:
    """The share of answer tokens that are right, and of sums, if tokens go wrong independently of each other.

    tokens: of sums of one length; every index counts alike. A token that not every sum has, after a carry out, counts
    as often as it occurs.
    """
    count, wrong = (torch.bincount(tokens.index, weights=w) for w in (None, (tokens.margin <= 0).double()))
    often = torch.ones_like(wrong)
    often[-1] = count[-1] / count[0]
    wrong *= often / count.clamp(min=1)
    return float(1 - wrong.sum() / often.sum()), float((1 - wrong).prod())


@torch.no_grad()
def scores_of(model: ColumnTransformer, asking: Tensor, column: Tensor, offset: int = 0) -> Tensor:
    """Scores of digits, (..., 3, 10, 10, H): by number and digit of the key, and digit of the answer token.

    asking, column: indices of answer tokens and of keys, shapes (...) that broadcast.
    """
    model, digit = copy.deepcopy(model).double(), torch.arange(10)
    number = torch.arange(3)[:, None]
    _, q, _, _ = model.project(digit, torch.tensor(ANSWER), model.address_at(digit, asking[..., None], offset))
    _, _, k, _ = model.project(digit, number, model.address_at(digit, column[..., None, None], offset))
    return torch.einsum("...qhk,...ndhk->...ndqh", q, k) / q.shape[-1] ** 0.5
