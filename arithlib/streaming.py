"""Sums of any length by a transformer with relative column positions, in time linear in the digits.

The model's forward compares every token with every earlier one, most of them at weight zero. Here the three numbers
lie below one another, and each answer token gathers the few keys that can have weight.

    number 0    . 3 2 1 .
    number 1    + 6 5 4 .       `.` is absent
    number 2    = 9 7 5 $

Dimensions: B sums, L columns (index 0, the signs, to one past the answer), N answer tokens of all sums, S keys of a
token, H heads, K d_head, D d_model, V vocabulary.
"""

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from arithlib.evaluation import distinct, logit_margin
from arithlib.models.column import ANSWER, RELATIVE, WINDOWED, ColumnTransformer
from arithlib.tasks.operands import add as add_digits
from arithlib.tasks.operands import digits_of, lengths_of
from arithlib.tokenizer import ABSENT, ALPHABET, END, EQUALS, PLUS

# Every key that an answer token can have, by number.
KEY_TOKENS = {0: [*range(10)], 1: [*range(10), PLUS], ANSWER: [*range(10), EQUALS]}
# Number and distance of the keys in a window of one column, and which of them is the answer token itself.
WINDOW_SLOTS, OWN = ((0, 1), (1, 1), (ANSWER, 1), (0, 0), (1, 0)), 2
WINDOW_NUMBER, WINDOW_DISTANCE = torch.tensor(WINDOW_SLOTS).unbind(1)
# Numbers of this many answer tokens at once: enough for full speed, little enough for any machine.
TOKENS_A_PASS = 32_768
# Of so few keys, as a window has, few contexts differ, and each is asked once; then more tokens are best at once.
MOST_KEYS_TO_COMPARE = 14  # a number of 64 bits holds these and the token to write
CONTEXTS_A_PASS = 1_000_000


# ---- layout ------------------------------------------------------------------------------------------------------


def columns(a: Tensor, b: Tensor) -> Tensor:
    """(B, N) digits of two operands -> (B, 3, N + 3) tokens of both and of their sum, or ABSENT."""
    B, N = a.shape
    place = torch.arange(N + 2, device=a.device)

    def line(digits, sign, end):
        length = lengths_of(digits)[:, None]
        tokens = F.pad(digits, (0, N + 2 - digits.shape[1]))
        tokens = torch.where(place < length, tokens, torch.where(place == length, end, ABSENT))
        return F.pad(tokens, (1, 0), value=sign)

    return torch.stack([line(a, ABSENT, ABSENT), line(b, PLUS, ABSENT), line(add_digits(a, b), EQUALS, END)], 1)


def slots(model: ColumnTransformer, longest: int) -> tuple[Tensor, Tensor]:
    """(S,) numbers and (S,) distances of all keys that can have weight when numbers have at most `longest` digits."""
    window, reach = model.config.window, min(reach_of(model), longest)
    operand, answer = range(-reach, window + reach + 1), range(1, window + reach + 1)
    pairs = [(number, distance) for number in (0, 1) for distance in operand] + [(ANSWER, d) for d in answer]
    return torch.tensor(pairs).unbind(1)


@torch.no_grad()
def reach_of(model: ColumnTransformer) -> float:
    """Steps beyond the window after which a key has weight exactly zero in float32.

    A key loses slope times steps, and exp(-104) is rounded to zero. The token itself is always seen, so the best
    score is at least its own; content scores lie within +-c. Raises ValueError for other positions than RELATIVE.
    """
    positions = model.config.positions
    if positions not in RELATIVE:
        raise ValueError(f"positions = {positions!r}: sums are streamed where they are one of {', '.join(RELATIVE)}")
    if positions != "alibi":
        return 0 if positions in WINDOWED else math.inf
    c = model.score_table().abs().amax((0, 1, 2))
    own = model.near[:, ANSWER, 1]
    return math.ceil(float(((104 + 2 * c - own) / model.log_slope.exp()).max()))


def contexts(lines: Tensor, number: Tensor, distance: Tensor, start: int, stop: int) -> tuple[Tensor, Tensor, Tensor]:
    """What decides the answer tokens of columns start to stop - 1 of (B, 3, L) lines, all sums together.

    number, distance: (S,) as `slots` gives them. Returns (N,) queries, (N, S) keys and (N,) tokens to write next.
    """
    index = torch.arange(start, stop)[:, None] + 1 - distance
    inside = (index >= 0) & (index < lines.shape[2])
    keys = torch.where(inside, lines[:, number, index.clamp(0, lines.shape[2] - 1)], ABSENT)
    query, following = lines[:, ANSWER, start:stop], lines[:, ANSWER, start + 1 : stop + 1]
    asks = following != ABSENT
    return query[:, : asks.shape[1]][asks], keys[:, : asks.shape[1]][asks], following[asks]


# ---- the model on contexts ---------------------------------------------------------------------------------------


def context_logits(model: ColumnTransformer, query: Tensor, keys: Tensor, number: Tensor, distance: Tensor) -> Tensor:
    """(N,) answer tokens and (N, S) keys, in these numbers at these distances -> (N, V), as the model's forward."""
    return model.unembedding(model.add_neurons(context_mid(model, query, keys, number, distance)))


def context_mid(model: ColumnTransformer, query: Tensor, keys: Tensor, number: Tensor, distance: Tensor) -> Tensor:
    """As `context_logits`, but the residual stream (N, D) between attention and MLP."""
    tokens, absent = keys.clamp(min=0), (keys == ABSENT)[..., None]
    scores = model.score_table()[query[:, None], number, tokens] + model.bias_at(number, distance)
    scores = scores * model.sharpness((keys != ABSENT).sum(1))[:, None, None]
    scores = scores.masked_fill(absent, -torch.inf)
    if model.config.positions == "window-sink":
        scores = torch.cat([scores, model.sink.expand(len(scores), 1, -1)], 1)
    pattern = scores.softmax(1)[:, : keys.shape[1]]
    x, _, _, v = model.token_tables()
    z = torch.einsum("nsh,nshk->nhk", pattern, v[number, tokens])
    return x[ANSWER, query] + model.out(z.flatten(1))


@torch.no_grad()
def margins(model: ColumnTransformer, a: Tensor, b: Tensor) -> Tensor:
    """(B, N) digits -> (B,) by how much the right token of a + b beats the next best, at the closest of its places.

    The right answer is given token by token; where the margin is positive, greedy decoding writes exactly it.
    """
    lines = columns(a, b)
    number, distance = slots(model, lines.shape[2])
    own = ((number == ANSWER) & (distance == 1)).nonzero()[0, 0]
    few_differ = len(number) <= MOST_KEYS_TO_COMPARE
    span = max(1, (CONTEXTS_A_PASS if few_differ else TOKENS_A_PASS) // len(a))
    smallest = torch.full((len(a),), torch.inf)
    for start in range(0, lines.shape[2] - 1, span):
        stop = min(start + span, lines.shape[2] - 1)
        query, keys, following = contexts(lines, number, distance, start, stop)
        if few_differ:
            keys, following, which = distinct(keys, following)
            query = keys[:, own]
        lead = logit_margin(context_logits(model, query, keys, number, distance), following)
        if few_differ:
            lead = lead[which]
        rows = (lines[:, ANSWER, start + 1 : stop + 1] != ABSENT).nonzero()[:, 0]
        smallest.scatter_reduce_(0, rows, lead, "amin")
    return smallest


# ---- decoding ----------------------------------------------------------------------------------------------------


class Stream:
    """One answer token at a time, from tables of every token's keys and values; greedy decoding of one sum.

    The tables fold the score of every (query, slot, key) and the value of every key through `out`: a step costs the
    same at every length, and remembers S tokens. As an index, ABSENT is the last entry of a table; its score is minus
    infinity.
    """

    @torch.no_grad()
    def __init__(self, model: ColumnTransformer, longest: int):
        number, distance = slots(model, longest)
        x, _, _, v = model.token_tables()
        scores = model.score_table()[:, number] + model.bias_at(number, distance)[:, None]
        heads = model.out.weight.unflatten(1, (model.config.n_heads, -1))
        values = torch.einsum("nvhk,dhk->nvhd", v, heads)[number]
        self.number, self.distance = number.numpy(), distance.numpy()
        self.slot, self.scaled = np.arange(len(number)), model.config.positions == "log-scaled"
        self.sink = model.sink.numpy() if model.config.positions == "window-sink" else -math.inf
        self.x = x[ANSWER].numpy()
        self.scores = F.pad(scores, (0, 0, 0, 1), value=-torch.inf).numpy()  # (V, S, V + 1, H)
        self.values = F.pad(values, (0, 0, 0, 0, 0, 1)).numpy()  # (S, V + 1, H, D)
        layers = (model.mlp_in, model.mlp_out, model.unembedding)
        self.weights = [(layer.weight.numpy().T.copy(), layer.bias.numpy()) for layer in layers]

    def logits(self, query: int, keys: np.ndarray) -> np.ndarray:
        """A token and its (S,) keys, ABSENT where there is none -> (V,)."""
        (w_in, b_in), (w_out, b_out), (w_u, b_u) = self.weights
        scores = self.scores[query, self.slot, keys]
        if self.scaled:
            scores = scores * math.log((keys != ABSENT).sum())
        top = np.maximum(scores.max(0), self.sink)
        weights = np.exp(scores - top)
        weights /= weights.sum(0) + np.exp(self.sink - top)
        mid = self.x[query] + weights.ravel() @ self.values[self.slot, keys].reshape(weights.size, -1)
        return (mid + np.maximum(mid @ w_in + b_in, 0) @ w_out + b_out) @ w_u + b_u

    def decode(self, a: np.ndarray, b: np.ndarray) -> Iterator[int]:
        """(N,) and (M,) digits, least significant first -> the tokens of the answer, without its end token.

        Stops at the end token, after any other token that is no digit (it would open a fourth number), or two tokens
        after the longer operand: no sum has so many.
        """
        longest, pad = max(len(a), len(b)), len(self.slot)
        lines = np.full((3, longest + 3 + 2 * pad), ABSENT)
        lines[0, pad + 1 : pad + 1 + len(a)], lines[1, pad + 1 : pad + 1 + len(b)] = a, b
        lines[1, pad], lines[2, pad] = PLUS, EQUALS
        token, places = EQUALS, pad + 1 - self.distance
        for index in range(longest + 2):
            token = int(self.logits(token, lines[self.number, places + index]).argmax())
            if token == END:
                return
            yield token
            if token >= 10:
                return
            lines[2, pad + index + 1] = token


def add(model: ColumnTransformer, a: int, b: int) -> int:
    """a + b as the model writes it, integers of any size.

    Raises ValueError for what is no integer of at least 0, for an answer that is no number, and for a model whose
    positions are not RELATIVE.
    """
    for operand in (a, b):
        if not isinstance(operand, int) or isinstance(operand, bool):
            raise ValueError(f"{operand!r} is no integer: the model adds integers of 0 or more")
        if operand < 0:
            raise ValueError("a negative operand: the model adds integers of 0 or more")
    with any_size():
        x, y = (digits_of([operand])[0].numpy() for operand in (a, b))
        longest = max(len(x), len(y))
        text = "".join(ALPHABET[token] for token in Stream(model, longest).decode(x, y))
        if len(text) > longest + 1:
            raise ValueError(f"the model writes {text[-40:]!r} at the end of {len(text):,} digits, and no end token")
        if not text.isdigit():
            raise ValueError(f"the model answers with {text[:40]!r} (least-significant digit first): no number")
        return int(text[::-1])


@contextmanager
def any_size():
    """Lift Python's limit of 4,300 digits between integers and text, and put it back."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(limit)
