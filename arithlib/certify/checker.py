"""Check a certificate that a network adds every pair of non-negative integers, of every length (chapter 72). ::

    python checker.py adder-windowed-s0.safetensors adder-windowed-s0.certificate.json

This file stands alone. It needs Python and numpy, shares no line with what made the certificate, and reads the
weights itself. It checks every number that a certificate states: checksum, contexts, margins. The sentences beside
them are for people; that window is 1 and all else masked stands there, not in the weights. It trusts that float64
arithmetic in numpy rounds as IEEE 754 says, and that numpy's exp is off by no more than 2^-50, relatively. The
chapter shows why what is checked here implies the statement.
"""

import hashlib
import json
import struct
import sys

import numpy as np

ALPHABET = "0123456789-+*=$"
DIGITS = "0123456789"
KEYS = ((0, 1), (1, 1), (2, 1), (0, 0), (1, 0))  # number and distance of the five tokens that one token may see
LAYERS = ("mlp_in", "mlp_out", "qkv", "unembedding")
LAYOUT = sorted(
    ["embedding.weight", "near", "numbers.weight", "out.weight"]
    + [f"{layer}.{part}" for layer in LAYERS for part in ("bias", "weight")]
)
EXP_ERROR = 2.0**-16  # granted to the program's exponentials
EXACT = (2.0**-50, 2.0**-49)  # roundoff and error of exp: of float64 here, so that exact results are enclosed
FLOAT32 = (2.0**-24 * 1.001, EXP_ERROR)  # of the program, so that whatever it computes is enclosed
TINY = 1e-34  # more than underflow can cost in a sum of a thousand float32 numbers, flushed to zero or not


class Rejected(Exception):
    """The certificate does not hold; the message says why."""


def demand(condition, problem):
    if not condition:
        raise Rejected(problem)


def read(path):
    """The float32 tensors of a safetensors file: an 8-byte length, a JSON header, raw little-endian numbers."""
    with open(path, "rb") as file:
        content = file.read()
    start = 8 + struct.unpack("<Q", content[:8])[0]
    tensors = {}
    for name, about in json.loads(content[8:start]).items():
        if name.startswith("model/"):
            demand(about["dtype"] == "F32", f"{name} is not float32")
            first, last = about["data_offsets"]
            values = np.frombuffer(content[start + first : start + last], "<f4").astype(np.float64)
            demand(np.isfinite(values).all(), f"{name} is not finite")
            tensors[name.removeprefix("model/")] = values.reshape(about["shape"])
    demand(sorted(tensors) == LAYOUT and tensors["near"].shape[1:] == (4, 2), "these are no weights of this model")
    return tensors, hashlib.sha256(content).hexdigest()


def contexts():
    """{five characters: the one to write next} for all that correct prefixes of all sums can show.

    A state is what the next column depends on: the digits of this one, what was written, the carry, whether it is
    the first. "." is the place of a digit that does not exist. The set of states grows until it is closed.
    """
    found, new = {}, {(".", "+", "=", 0, None)}
    seen = set(new)
    while new:
        reached = set()
        for a, b, written, carry, first in new:
            for c in next_digits("." if first is None else a, first):
                for d in next_digits("." if first is None else b, first):
                    total = carry + sum(int(digit) for digit in c + d if digit != ".")
                    right = "$" if c + d == ".." and carry == 0 else str(total % 10)
                    demand(found.setdefault(a + b + written + c + d, right) == right, "one context, two answers")
                    if right != "$":
                        reached.add((c, d, right, total // 10, first is None))
        new = reached - seen
        seen |= new
    return found


def next_digits(digit, first):
    """What may follow: a number has a first digit, and ends after any but a zero, or after its first."""
    if first is None:
        return DIGITS
    if digit == ".":
        return "."
    return DIGITS + "." if digit != "0" or first else DIGITS


# ---- intervals: pairs of arrays, the least and the largest possible value ----------------------------------------


def widen(low, high, roundings, size, unit):
    off = 1.001 * roundings * unit * size + TINY
    return low - off, high + off


def largest(x):
    return np.maximum(np.abs(x[0]), np.abs(x[1]))


def linear(x, weight, unit, *added):
    """weight x and whatever is added to it, a bias or the residual stream, in any order, for (C, n) intervals."""
    up, down = np.maximum(weight, 0).T, np.minimum(weight, 0).T
    low, high = (x[i] @ up + x[1 - i] @ down + sum(part[i] for part in added) for i in (0, 1))
    size = largest(x) @ np.abs(weight).T + sum(map(largest, added))
    return widen(low, high, weight.shape[1] + len(added) + 1, size, unit)


def times(x, y):
    corners = [x[i] * y[j] for i in (0, 1) for j in (0, 1)]
    return np.minimum.reduce(corners), np.maximum.reduce(corners)


def leads(w, seen, right, unit, exp_error):
    """The least possible lead of the right token over every other: (C, 5) tokens or -1, (C,) tokens -> (C,)."""
    C, (H, _, _), D = len(seen), w["near"].shape, w["embedding.weight"].shape[1]

    def layer(x, name, *added):
        return linear(x, w[f"{name}.weight"], unit, [w[f"{name}.bias"]] * 2, *added)

    embedded = w["embedding.weight"] + w["numbers.weight"][:3, None]  # of every token in each of three numbers
    x = widen(embedded, embedded, 1, np.abs(embedded), unit)
    qkv = layer([part.reshape(-1, D) for part in x], "qkv")
    q, k, v = ([part.reshape(3, -1, 3, H, D // H)[:, :, i] for part in qkv] for i in range(3))
    own, number = seen[:, 2], np.array([number for number, _ in KEYS])
    products = times([part[2, own][:, None] for part in q], [part[number, seen] for part in k])
    near, scale = np.stack([w["near"][:, number, distance] for number, distance in KEYS]), (D // H) ** -0.5
    size = largest(products).sum(-1) * scale + np.abs(near)
    low, high = widen(*(part.sum(-1) * scale + near for part in products), D // H + 6, size, unit)
    there = (seen >= 0)[..., None]
    top = np.where(there, high, -np.inf).max(1, keepdims=True)
    slack = 1 + exp_error + unit * (16 + 2 * np.where(there, top - low, 0).max(1, keepdims=True))
    low, high = np.where(there, np.exp(low - top), 0) / slack, np.where(there, np.exp(high - top), 0) * slack
    others = 1 - np.eye(len(KEYS))  # a key's share is least where it is least and all others are largest
    share_low, share_high = low / (low + others @ high) / slack, high / (high + others @ low) * slack
    products = times((share_low[..., None], share_high[..., None]), [part[number, seen] for part in v])
    z = widen(*(part.sum(1) for part in products), D // H + 5 * H + 5, largest(products).sum(1), unit)
    mid = linear([part.reshape(C, D) for part in z], w["out.weight"], unit, [part[2, own] for part in x])
    post = layer([np.maximum(part, 0) for part in layer(mid, "mlp_in")], "mlp_out", mid)
    low, high = layer(post, "unembedding")
    rivals = np.where(np.arange(len(ALPHABET)) == right[:, None], -np.inf, high)
    return low[np.arange(C), right] - rivals.max(1)


def check(weights_path, certificate_path):
    """None if the certificate holds; otherwise `Rejected` says what does not."""
    with open(certificate_path, encoding="utf-8") as file:
        certificate = json.load(file)
    weights, sha256 = read(weights_path)
    demand(certificate["sha256"] == sha256, "the certificate is about other weights")
    demand(certificate["exp_error"] == EXP_ERROR, "the certificate grants another error to exp")
    found = sorted(contexts().items())
    digest = hashlib.sha256("\n".join(context + token for context, token in found).encode()).hexdigest()
    stated = certificate["contexts"]
    demand(stated["count"] == len(found) and stated["sha256"] == digest, "these are not the contexts that occur")
    seen = np.array([[ALPHABET.find(token) for token in context] for context, _ in found])
    right = np.array([ALPHABET.index(token) for _, token in found])
    exact, float32 = (leads(weights, seen, right, *arithmetic) for arithmetic in (EXACT, FLOAT32))
    for name, lead in (("margin", exact), ("margin_float32", float32)):
        worst = int(lead.argmin())
        demand(0 < certificate[name] <= lead[worst], f"{name} is {lead[worst]:.6g} at {found[worst]}, not as stated")
    worst = found[int(exact.argmin())][0]
    demand(certificate["margin_at"] == worst, f"the smallest margin is at {worst}, not where the certificate says")


if __name__ == "__main__":
    try:
        check(*sys.argv[1:])
    except Rejected as problem:
        sys.exit(f"REJECTED: {problem}")
    print("ACCEPTED: adds every pair of non-negative integers")
