"""Proof that a windowed adder is right on every pair of integers of every length (chapter 72).

A token of the windowed model sees at most five others, wherever it stands. So there are finitely many *contexts*, and
what the model does in all of them decides what it does on every sum. Of a written answer digit c of column i the
slots of its context are ::

    slot        0: a_i    1: b_i    2: c_i    3: a_(i+1)    4: b_(i+1)
    number         0         1         2         0             1
    distance       1         1         1         0             0

and of '=' they are nothing, '+', '=' itself, and the first digits of both operands.

Dimensions: C contexts, S = 5 slots, H heads, K d_head, V vocabulary.
"""

from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from arithlib.certify import checker
from arithlib.certify.ball_arithmetic import Ball, einsum, margin, relu, softmax
from arithlib.models.column import ANSWER, WINDOWED, ColumnTransformer
from arithlib.streaming import OWN, WINDOW_SLOTS
from arithlib.tokenizer import ABSENT, ALPHABET, END, EQUALS, PLUS


class ProofError(ValueError):
    """A statement that is not proven; the message says where the proof fails."""


# ---- what can be met ---------------------------------------------------------------------------------------------


class Column(NamedTuple):
    """All that the next column depends on: two digits, the one written under them, the carry out of them.

    place: 0 for the signs before the first column, 1 for the first, 2 for every later one.
    """

    a: int
    b: int
    written: int
    carry: int
    place: int


def following(digit: int, place: int) -> list[int]:
    """What can stand in a number after `digit`. None ends before its first digit, nor on a zero, but for 0 itself."""
    if digit == ABSENT and place > 0:
        return [ABSENT]
    may_end = place > 0 and (digit != 0 or place == 1)
    return [*range(10), *([ABSENT] if may_end else [])]


@dataclass(frozen=True)
class Reachable:
    """Every context that a correct prefix of some sum can show, and how it comes about.

    contexts: (C, S) tokens, ABSENT where the number has ended, in lexical order. right: (C,) the token that has to
        come next.
    """

    contexts: np.ndarray
    right: np.ndarray
    _columns: dict[tuple, Column]
    _before: dict[Column, Column]

    def witness(self, place: int) -> tuple[int, int]:
        """A sum in which context number `place` is met, by a shortest way to its column."""
        context = tuple(self.contexts[place].tolist())
        column, digits = self._columns[context], [context[3:]]
        while column.place > 0:
            digits.append((column.a, column.b))
            column = self._before[column]
        numbers = []
        for number in zip(*digits, strict=True):
            goes_on = number[0] == 0 and len(number) > 1  # no number of several digits begins with a zero
            numbers.append(int("1" * goes_on + "".join(str(digit) for digit in number if digit != ABSENT)))
        return numbers[0], numbers[1]


@lru_cache
def reachable() -> Reachable:
    """Follow every possible column from the signs on, until no new one turns up.

    There are finitely many columns in this sense, while there is no end of sums.
    Raises ProofError if one context asks for two different tokens: then no model with this window can add.
    """
    signs = Column(ABSENT, PLUS, EQUALS, carry=0, place=0)
    before, waiting, columns, continuation = {signs: signs}, deque([signs]), {}, {}
    while waiting:
        column = waiting.popleft()
        last = (ABSENT, ABSENT) if column == signs else (column.a, column.b)
        for a, b in product(*(following(digit, column.place) for digit in last)):
            total = max(a, 0) + max(b, 0) + column.carry
            token = END if a == b == ABSENT and total == 0 else total % 10
            context = (column.a, column.b, column.written, a, b)
            columns.setdefault(context, column)
            if continuation.setdefault(context, token) != token:
                raise ProofError(f"context {text(context)} asks for both {continuation[context]} and {token}")
            after = Column(a, b, token, total // 10, min(column.place + 1, 2))
            if token != END and after not in before:
                before[after] = column
                waiting.append(after)
    contexts = sorted(continuation)
    return Reachable(np.array(contexts), np.array([continuation[c] for c in contexts]), columns, before)


def text(context) -> str:
    """Five characters for five slots, '.' where the number has ended.

    >>> text((7, 8, 5, 3, ABSENT))
    '7853.'
    """
    return "".join("." if token == ABSENT else ALPHABET[token] for token in context)


# ---- what the model does there -----------------------------------------------------------------------------------


def token_tables(model: ColumnTransformer) -> tuple[dict[str, Ball], Ball, Ball, Ball, Ball]:
    """`ColumnTransformer.token_tables` of the first three numbers, with every rounding of a float32 program enclosed.

    Returns all weights, the residual stream (3, V, D), and queries, keys and values (3, V, H, K).
    """
    weights = {name: Ball.exact(value.detach().cpu().double().numpy()) for name, value in model.state_dict().items()}
    x = weights["embedding.weight"][None] + weights["numbers.weight"][: ANSWER + 1, None]
    qkv = einsum("nvi,oi->nvo", x, weights["qkv.weight"], weights["qkv.bias"])
    qkv = qkv.map(lambda part: part.reshape(*part.shape[:2], 3, model.config.n_heads, -1))
    return weights, x, *(qkv[:, :, i] for i in range(3))


def slot_logits(
    weights, x: Ball, q: Ball, k: Ball, v: Ball, near: Ball, absent, near_value: Ball | None = None
) -> Ball:
    """(C, V) logits of tokens that ask S slots, with every rounding of a float32 program enclosed.

    x (C, D), q (C, H, K) of the tokens that ask; k, v (C, S, H, K) of what is in the slots; absent (C, S), where
    nothing is. near (S, H) is added to scores, near_value (S, H, K) to values.
    """
    C, S, H, K = k.mid.shape

    def linear(x: Ball, name: str, *added: Ball) -> Ball:
        return einsum("ci,oi->co", x, weights[f"{name}.weight"], weights[f"{name}.bias"], *added)

    # A program may divide by sqrt(K) before the product, after it, or half each: four more roundings at most.
    scores = einsum("chk,cshk->csh", q.map(lambda part: part / K**0.5), k, near, roundings=4)
    absent = absent[..., None]
    scores = Ball(np.where(absent, -np.inf, scores.mid), np.where(absent, 0, scores.rad))
    pattern = softmax(scores.map(lambda part: part.swapaxes(1, 2)))
    # It may also carry the values through `out` before they are mixed: K and S H roundings more on the way.
    roundings = K + S * H
    if near_value is not None:  # what tokens and slots say is read at once or apart, which costs two more
        pattern = pattern.map(lambda part: np.concatenate([part, part], 2))
        said = near_value.map(lambda part: np.broadcast_to(part, (C, S, H, K)))
        v = Ball(np.concatenate([v.mid, said.mid], 1), np.concatenate([v.rad, said.rad], 1))
        roundings += S * H + 2
    z = einsum("chs,cshk->chk", pattern, v, roundings=roundings).map(lambda part: part.reshape(C, H * K))
    mid = einsum("ci,oi->co", z, weights["out.weight"], x)
    return linear(linear(relu(linear(mid, "mlp_in")), "mlp_out", mid), "unembedding")


def token_logits(model: ColumnTransformer, contexts: np.ndarray, asking: np.ndarray) -> Ball:
    """`slot_logits` of a model of GRID, where a token has one vector whatever number it is in.

    (C, S) contexts, ABSENT where a slot is empty, (C,) the tokens that ask -> (C, V).
    """
    weights = {name: Ball.exact(value.detach().cpu().double().numpy()) for name, value in model.state_dict().items()}
    x = weights["embedding.weight"]
    qkv = einsum("vi,oi->vo", x, weights["qkv.weight"], weights["qkv.bias"])
    qkv = qkv.map(lambda part: part.reshape(len(part), 3, model.config.n_heads, -1))
    q, k, v = (qkv[:, i] for i in range(3))
    absent = contexts == ABSENT
    near, near_value = weights["near"], weights["near_value"]
    return slot_logits(weights, x[asking], q[asking], k[contexts], v[contexts], near, absent, near_value)


def logits(model: ColumnTransformer, contexts: np.ndarray) -> Ball:
    """(C, S) contexts -> (C, V) logits at the query, with every rounding of a float32 program enclosed.

    Raises ValueError for a model whose tokens see more than these slots.
    """
    if model.config.positions not in WINDOWED or model.config.window != 1:
        raise ValueError("contexts have five slots only where window = 1 and everything else is masked")
    weights, x, q, k, v = token_tables(model)
    (number, distance), own = np.array(WINDOW_SLOTS).T, contexts[:, OWN]
    near = weights["near"].map(lambda part: part[:, number, distance].T)
    keys, values, absent = k[number, contexts], v[number, contexts], contexts == ABSENT
    if "sink" in weights:  # a slot that is never empty, of key and value zero
        one_more = [(0, 0), (0, 1), (0, 0), (0, 0)]
        keys, values = (each.map(lambda part: np.pad(part, one_more)) for each in (keys, values))
        near = Ball.exact(np.concatenate([near.mid, weights["sink"].mid[None]]))
        absent = np.pad(absent, [(0, 0), (0, 1)])
    return slot_logits(weights, x[ANSWER, own], q[ANSWER, own], keys, values, near, absent)


@dataclass(frozen=True)
class Examination:
    """What a model does in every reachable context.

    lead: (C,) by how much the right token leads all others in exact arithmetic, up to rounding of float64.
    assured: (C,) the least lead of any float32 program that the balls cover.
    """

    lead: np.ndarray
    assured: np.ndarray

    @property
    def open(self) -> np.ndarray:
        """Contexts in which the right token is not assured, the worst first."""
        return np.argsort(self.assured)[: int((self.assured <= 0).sum())]

    @property
    def granted(self) -> np.ndarray:
        """(C,) what a certificate may state: another enclosure of the same roundings, such as its checker's, may be
        wider by a quarter."""
        return self.assured - (self.lead - self.assured) / 4


def examine(model: ColumnTransformer) -> Examination:
    """Run a windowed model on all reachable contexts. Raises ValueError as `logits` does."""
    met = reachable()
    return Examination(*margin(logits(model, met.contexts), met.right))


def lead_with_sink(model: ColumnTransformer, found: Examination) -> float:
    """What a certificate may state of the least lead in float32, if the model has a sink and was found so.

    Then the checker's enclosure may be wider by more than a quarter, so that it is asked, too.
    """
    met, weights = reachable(), {name: weight.double().numpy() for name, weight in model.state_dict().items()}
    checked = checker.leads(weights, met.contexts, met.right, *checker.FLOAT32)
    return float(min(found.granted.min(), checked.min()))
