"""An interpreter of RASP-L, a language of what attention does easily (Zhou et al. 2023, arXiv 2310.16028, section 3).

A program takes the tokens of a text and gives, at every place, the token that comes next. It is a straight line of
the primitives below. Sequences are of two kinds: tokens, of a small finite set (8 bits), on which any function may
work, and indices (places and counts), which may be compared and moved by one, and nothing else. Attention is causal.

Dimensions: B texts, T places.
"""

from dataclasses import dataclass

import numpy as np

COMPARISONS = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
NOTHING = -1  # the index of no place, the token of no meaning


class NotRaspL(TypeError):
    """A program does what RASP-L cannot express."""


@dataclass(eq=False)
class Seq:
    """values: (B, T). kind: "token" or "index". trace: the primitives that the program has used so far."""

    values: np.ndarray
    kind: str
    trace: list


@dataclass(eq=False)
class Selector:
    """chosen: (B, T, T) whether the query at place i selects the key at place j, never one that comes later."""

    chosen: np.ndarray
    trace: list


def _refuse(operation):
    def method(*_):
        raise NotRaspL(f"{operation}: a program is a straight line of primitives, and Python sees no values")

    return method


for _name in "add radd sub rsub mul mod floordiv eq ne lt le gt ge and or invert bool iter len getitem".split():
    setattr(Seq, f"__{_name}__", _refuse(_name))


def _new(primitive, values, kind, used):
    used.trace.append(primitive)
    if kind == "token" and not (-128 <= values.min() and values.max() <= 127):
        raise NotRaspL(f"{primitive} gives {values.min()} to {values.max()}: a token has 8 bits")
    return Seq(values.astype(np.int16), kind, used.trace)


def apply(f, *used):
    """f of what stands at each place of (values, kind); of tokens by a table of what occurs, as an MLP would."""
    arrays, kinds = zip(*used, strict=True)
    if f in COMPARISONS and len(set(kinds)) == 1:
        return f(*arrays)
    if "index" in kinds:
        raise NotRaspL("indices can be compared with indices, by one of COMPARISONS, or moved by one; nothing else")
    code = sum((array.astype(np.int32) + 128) * 256**i for i, array in enumerate(arrays))
    table = np.zeros(256 ** len(arrays), np.int64)
    for entry in np.flatnonzero(np.bincount(code.ravel("K"))):
        table[entry] = f(*(int(entry) // 256**i % 256 - 128 for i in range(len(arrays))))
    return table[code]


def tokens(texts):
    """(B, T) texts: where a program begins. It is no primitive.

    Texts lie next to each other in memory (and so does what is computed from them), not the places of one text: each
    primitive does the same to every text, in long runs.
    """
    return Seq(np.asfortranarray(texts, np.int16), "token", [])


def indices(x):
    """Every place, from 0 on."""
    return _new("indices", np.broadcast_to(np.arange(x.values.shape[1]), x.values.shape), "index", x)


def full(x, token):
    """One token everywhere."""
    return _new("full", np.full_like(x.values, token), "token", x)


def tok_map(x, f):
    """Any function of a token, place by place."""
    return _new("tok_map", apply(f, (x.values, x.kind)), "token", x)


def seq_map(x, y, f):
    """Any function of two tokens, or a comparison of two indices, place by place."""
    return _new("seq_map", apply(f, (x.values, x.kind), (y.values, y.kind)), "token", x)


def step(x, by):
    """The successor (by = 1) or predecessor (by = -1) of every index."""
    if x.kind != "index" or by not in (1, -1):
        raise NotRaspL(f"step by {by} of kind {x.kind}: an index moves by one, to its successor or predecessor")
    return _new("step", x.values + by, "index", x)


def select(keys, queries, f):
    """Which keys each query selects, f(key, query) of all that do not come later."""
    k, q = keys.values[:, None, :], queries.values[:, :, None]
    if f in COMPARISONS or "index" in (keys.kind, queries.kind):
        chosen = apply(f, (k, keys.kind), (q, queries.kind))
    else:  # for one token of the queries at a time, f is a function of the key: T times fewer pairs to look up
        chosen = np.False_
        for token in np.unique(q).tolist():
            row = apply(lambda key, token=token: f(key, token), (k, keys.kind))
            chosen = chosen | (q == token) & row.astype(bool)
    keys.trace.append("select")
    return Selector(chosen & np.tri(chosen.shape[1], dtype=bool), keys.trace)


def sel_width(selector):
    """How many places each query selects: an index."""
    return _new("sel_width", selector.chosen.sum(2, dtype=np.int16), "index", selector)


def aggr(selector, x, how="max", default=NOTHING):
    """The max, min or mean (of tokens, rounded down) of what each query selects; `default` where that is nothing."""
    if how == "mean" and x.kind == "index":
        raise NotRaspL("mean of indices: that would be arithmetic; choose max or min")
    values, chosen = x.values[:, None, :], selector.chosen
    if how == "mean":
        found = (values * chosen).sum(2) // np.maximum(chosen.sum(2), 1)
    else:
        extreme, beyond = (np.max, -(2**14)) if how == "max" else (np.min, 2**14)
        found = extreme((values - beyond) * chosen, 2) + beyond  # beyond all values where a place is not chosen
    return _new("aggr", np.where(chosen.any(2), found, default), x.kind, selector)
