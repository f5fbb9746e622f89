"""Check a certificate that a network adds, subtracts or multiplies all non-negative integers (chapters 71 to 79). ::

    python checker.py adder-windowed-s0.safetensors adder-windowed-s0.certificate.json

This file stands alone. It needs Python and numpy, shares no line with what made the certificate, and reads the
weights itself. It checks every number that a certificate states: checksum, contexts, cases, margins. The sentences
beside them have to be those below, word for word; what a token sees stands there, not in the weights: a window of 1,
or some places of what was written, and all else masked where the weights know no slope. It trusts that float64
arithmetic in numpy rounds as IEEE 754 says, and that numpy's exp is off by no more than 2^-50, relatively. The
chapters show why what is checked here implies the statement: chapter 72 with a window, chapter 71 without one,
chapter 78 of products, chapter 79 of differences.
"""

import argparse
import hashlib
import json
import struct
import sys

import numpy as np

VERSION = "0.1.0"  # of arithlib, whose certificates it checks
ALPHABET = "0123456789-+*=$"
DIGITS = "0123456789"
KEYS = ((0, 1), (1, 1), (2, 1), (0, 0), (1, 0))  # number and distance of the five tokens that one token may see
EXP_ERROR, SLOPE_ERROR = 2.0**-16, 2.0**-20  # granted to the program's exponentials: of scores, of slopes
ZERO_BELOW = -105.0  # the exponential of less is 0 in float32
EXACT = (2.0**-50, 2.0**-49)  # roundoff and error of exp: of float64 here, so that exact results are enclosed
FLOAT32 = (2.0**-24 * 1.001, EXP_ERROR)  # of the program, so that whatever it computes is enclosed
TINY = 1e-30  # more than underflow can cost in a sum of a thousand float32 numbers, flushed to zero or not
LIMIT = 2.0**104  # of the leading term of any sum; float32 goes on to 2^128
STATEMENT = (
    "For all integers a, b >= 0 of any length, greedy decoding of the model from the text a+b= (digits least "
    "significant first) writes the digits of their sum and then the end token."
)
HYPOTHESES = [
    "The model is what arithlib.models.column describes, with these weights, window 1, the rest masked.",
    "Sums, differences, products and quotients are those of float32 (IEEE 754, rounded to nearest), in any order, "
    "fused or not; a masked key has weight 0.",
    "The exponential of every score, as a softmax has it before the division, is relatively off by at most "
    "exp_error, in however many factors it is computed; but below 2^-126 it may be off by 2^-126 instead.",
]
SINK_HYPOTHESES = [
    "The model is what arithlib.models.column describes, with these weights, window 1 and a sink, the rest masked.",
    *HYPOTHESES[1:],
]
FADING_HYPOTHESES = [
    "The model is what arithlib.models.column describes, with these weights, window 1, far keys that decay: every "
    "token attends to itself and all before it, and those after it have weight 0. Addresses are exact integers, "
    "rounded once when they become float32.",
    "Sums, differences, products and quotients are those of float32 (IEEE 754, rounded to nearest), in any order, "
    "fused or not.",
    "The softmax subtracts the largest score. The exponential of every score, as it is before the division, is then "
    "relatively off by at most exp_error, in however many factors it is computed; but below 2^-126 it may be off by "
    "2^-126 instead, and below e^zero_below, where float32 has no numbers left, it is 0.",
    "The exponentials of log_slope are relatively off by at most slope_error.",
]
PRODUCT_STATEMENT = (
    "For all integers a, b >= 0 of any length, greedy decoding of the model from the text a*b= (digits least "
    "significant first) writes a page of long multiplication and then the end token: a row for each digit of b, each "
    "ended by =, in which every second token from the first on is a digit of the total so far, least significant "
    "first, and the others are carries. The last row has the digits of a times b, and perhaps one zero on top."
)
PRODUCT_HYPOTHESES = [
    "The model is what arithlib.models.column describes, with these weights, positions page, the rest masked.",
    *HYPOTHESES[1:],
]
DIFFERENCE_STATEMENT = (
    "For all integers a, b >= 0 of any length, greedy decoding of the model from the text a-b= (digits least "
    "significant first) writes two rows and then the end token. The first has a digit for each column, up to which "
    "it compares a with b: 0 equal, 1 less, 2 greater; so its last one compares the numbers. It is ended by =. The "
    "second has the sign of a - b, + for none, and the digits of the difference, as many as the longer number has, "
    "perhaps with zeros on top."
)
DIFFERENCE_HYPOTHESES = [
    "The model is what arithlib.models.column describes, with these weights, positions difference, the rest masked.",
    *HYPOTHESES[1:],
]
PAGE_KEYS = 6  # digits of both factors, the digit above, what stands before a digit, itself as a digit, and as a sign
DIFFERENCE_KEYS = 5  # digits of both numbers, which is less in the columns below, the sign, itself unless it is that
NUMBERS = ("exp_error", "margin", "margin_float32")
FADING_NUMBERS = (*NUMBERS, "slope_error", "zero_below", "keys", "rounding")
NO_WEIGHTS = "these are no weights of this model"
# What reading a file that is damaged, or another sort of file, may end in.
MALFORMED = (
    OSError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    struct.error,
    ArithmeticError,
    RecursionError,
)


class Rejected(Exception):
    """The certificate does not hold; the message says why."""


def demand(condition, problem):
    if not condition:
        raise Rejected(problem)


def demand_words_and_numbers(certificate, fading, sink, does):
    statement, hypotheses = {
        "adds": (STATEMENT, FADING_HYPOTHESES if fading else SINK_HYPOTHESES if sink else HYPOTHESES),
        "multiplies": (PRODUCT_STATEMENT, PRODUCT_HYPOTHESES),
        "subtracts": (DIFFERENCE_STATEMENT, DIFFERENCE_HYPOTHESES),
    }[does]
    demand(certificate["statement"] == statement, "the certificate states something else")
    demand(certificate["hypotheses"] == hypotheses, "the certificate assumes something else")
    for name in FADING_NUMBERS if fading else NUMBERS:
        # To Python True is 1; and infinitely many keys are as many as one likes.
        is_number = type(certificate[name]) in (int, float) and np.isfinite(float(certificate[name]))
        demand(is_number, f"{name} is no number")


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
    demand({"embedding.weight", "mlp_in.bias", "near"} <= {*tensors}, NO_WEIGHTS)
    shapes = {name: values.shape for name, values in tensors.items() if name not in ("log_slope", "sink")}
    V, F = len(ALPHABET), tensors["mlp_in.bias"].size
    keys = len(tensors["near"]) if "near_value" in tensors else 0  # of which a token has one each
    demand(keys in (0, PAGE_KEYS, DIFFERENCE_KEYS), NO_WEIGHTS)
    D, H = tensors["embedding.weight"].size // V, tensors["near"].size // (keys or 8)
    demand(H > 0 and D % H == 0 and shapes == layout(V, H, D, F, keys), NO_WEIGHTS)
    demand(all(tensors[name].shape == (H,) for name in ("log_slope", "sink") if name in tensors), NO_WEIGHTS)
    demand(("log_slope" in tensors) + ("sink" in tensors) + (keys > 0) <= 1, NO_WEIGHTS)
    largest = max(np.abs(values).max() for values in tensors.values())
    # Embedding, value, output, both layers of neurons and unembedding: a logit is the largest sum of all.
    demand(2 * max(D, F) ** 5 * largest**6 < LIMIT, "numbers are so large, or so many, that float32 could overflow")
    return tensors, hashlib.sha256(content).hexdigest()


def layout(V, H, D, F, keys):
    """The shapes of V tokens, H heads, D dimensions, F neurons; keys: places that have values of their own."""
    layers = {"mlp_in": (F, D), "mlp_out": (D, F), "qkv": (3 * D, D), "unembedding": (V, D)}
    weights = {f"{name}.weight": shape for name, shape in layers.items()}
    biases = {f"{name}.bias": shape[:1] for name, shape in layers.items()}
    others = {"embedding.weight": (V, D), "out.weight": (D, D)}
    places = {"near": (H, 4, 2), "numbers.weight": (4, D)}
    if keys:
        places = {"near": (keys, H), "near_value": (keys, H, D // H)}
    return weights | biases | others | places


def sha256_of(lines):
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


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


def page_contexts():
    """{six characters: the one to write next} for all that right pages of long multiplication can show.

    Of the place asked for: the digits of both factors, the digit above, what stands before the digit that asks, and
    that digit; or, after a carry or a sign, this. "." is what does not exist. The carries of a row are followed from
    its sign on until nothing new turns up; a row's digit of the second factor stays the same.
    """
    found = {f"..{above}..=": "$" for above in DIGITS}
    for b in DIGITS:
        for before in "=0":  # below the places of the first factor, where nothing is carried
            for above in DIGITS:
                at_one_place(found, ".", b, above, before)
        for rows in (".", DIGITS):  # above the first row stands nothing
            carries, new = set(), {"=" if rows == "." else "0"}
            while new:
                carries |= new
                new = {at_one_place(found, a, b, above, c) for c in new for a in DIGITS for above in rows} - carries
            for carry in carries - {"="}:
                at_one_place(found, ".", b, ".", carry)
    return found


def at_one_place(found, a, b, above, before):
    """What is written at one place, noted in `found`, and after it; returns the carry into the next."""
    product = 0 if a == "." else int(a) * int(b)
    tens, digit = divmod(product + sum(int(x) for x in (above, before) if x in DIGITS), 10)
    after = "=" if a == above == "." else str(tens)
    for context, right in ((f"{a}{b}{above}..{before}", str(digit)), (f"{a}{b}{above}{before}{digit}.", after)):
        demand(found.setdefault(context, right) == right, "one context, two answers")
    return str(tens)


def difference_contexts():
    """{five characters: the one to write next} for all that right texts of differences can show.

    The digits of both numbers in the column asked for, which number is less below it, the sign, and the token that
    asks unless it is the sign. "." is what does not exist. With a sign in mind, columns are followed until nothing
    new turns up: their digits, which is less so far, the digit written. A sign that the end would belie is given up
    there, or as soon as the smaller number is seen to be longer.
    """
    found = {f"..{less}.=": "-" if less == "1" else "+" for less in "012"}
    for sign in "+-":
        new, seen = {(".", ".", "=", ".", None)}, set()
        while new:
            seen |= new
            new = {state for one in new for state in next_column(found, sign, *one)} - seen
    return found


def next_column(found, sign, a, b, less, written, first):
    """What can come after a column of these digits, noted in `found`. first: whether it is the first, None before."""
    below = "." if first is None else less
    for c in next_digits(a, first):
        for d in next_digits(b, first):
            larger, smaller = (d, c) if sign == "-" else (c, d)
            if larger == "." and (smaller != "." or (less == "1") != (sign == "-")):
                continue
            x, y = (int(digit) if digit in DIGITS else 0 for digit in (larger, smaller))
            digit = str((x - y - (below == ("2" if sign == "-" else "1"))) % 10)
            x, y = (y, x) if sign == "-" else (x, y)
            less_here = "1" if x < y else "2" if x > y else below.replace(".", "0")
            compared, subtracted = ("=", "$") if c + d == ".." else (less_here, digit)
            for context, right in ((f"{c}{d}..{less}", compared), (f"{c}{d}{below}{sign}{written}", subtracted)):
                demand(found.setdefault(context, right) == right, "one context, two answers")
            if c + d != "..":
                yield c, d, less_here, digit, first is None


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
    """The least possible lead of the right token over every other: (C, keys) tokens or -1, (C,) tokens -> (C,)."""
    C, D, by_place = len(seen), w["embedding.weight"].shape[1], "near_value" in w

    def layer(x, name, *added):
        return linear(x, w[f"{name}.weight"], unit, [w[f"{name}.bias"]] * 2, *added)

    if by_place:  # every token has one vector, and is known by its place among the keys
        keys, own = seen.shape[1], np.where(seen[:, -1] < 0, seen[:, -2], seen[:, -1])
        number = np.zeros(keys, int)
        x, near = [w["embedding.weight"][None]] * 2, w["near"]
    else:  # and of every token in each of three numbers
        own, (number, distance), keys = seen[:, 2], np.array(KEYS).T, len(KEYS)
        embedded = w["embedding.weight"] + w["numbers.weight"][:3, None]
        x, near = widen(embedded, embedded, 1, np.abs(embedded), unit), w["near"][:, number, distance].T
    asked, H = number[2], near.shape[1]
    qkv = layer([part.reshape(-1, D) for part in x], "qkv")
    q, k, v = ([part.reshape(-1, len(ALPHABET), 3, H, D // H)[:, :, i] for part in qkv] for i in range(3))
    products = times([part[asked, own][:, None] for part in q], [part[number, seen] for part in k])
    scale = (D // H) ** -0.5
    size = largest(products).sum(-1) * scale + np.abs(near)
    low, high = widen(*(part.sum(-1) * scale + near for part in products), D // H + 6, size, unit)
    there = (seen >= 0)[..., None]
    if "sink" in w:  # one more key that is always there; what is read of it is 0
        low, high = (np.concatenate([part, np.broadcast_to(w["sink"], (C, 1, H))], 1) for part in (low, high))
        there, keys = np.pad(there, ((0, 0), (0, 1), (0, 0)), constant_values=True), keys + 1
    top = np.where(there, high, -np.inf).max(1, keepdims=True)
    slack = 1 + exp_error + unit * (16 + 2 * np.where(there, top - low, 0).max(1, keepdims=True))
    low, high = np.where(there, np.exp(low - top), 0) / slack, np.where(there, np.exp(high - top), 0) * slack
    others = 1 - np.eye(keys)  # a key's share is least where it is least and all others are largest
    shares = low / (low + others @ high) / slack, high / (high + others @ low) * slack
    shares = [share[:, : seen.shape[1]] for share in shares]
    read = [[part[number, seen] for part in v]]
    if by_place:
        read.append([w["near_value"]] * 2)
    products = [times([share[..., None] for share in shares], values) for values in read]
    size = sum(largest(each).sum(1) for each in products)
    z = [sum(each[i].sum(1) for each in products) for i in (0, 1)]
    # Five keys at most: on a page of long multiplication, what asks is a digit or a sign.
    z = widen(*z, D // H + 5 * len(read) * H + 5 * len(read), size, unit)
    mid = linear([part.reshape(C, D) for part in z], w["out.weight"], unit, [part[asked, own] for part in x])
    post = layer([np.maximum(part, 0) for part in layer(mid, "mlp_in")], "mlp_out", mid)
    low, high = layer(post, "unembedding")
    rivals = np.where(np.arange(len(ALPHABET)) == right[:, None], -np.inf, high)
    return low[np.arange(C), right] - rivals.max(1)


def check_windowed(weights, certificate, found):
    """What a certificate with a window states besides its contexts."""
    found = sorted(found.items())
    seen = np.array([[ALPHABET.find(token) for token in context] for context, _ in found])
    right = np.array([ALPHABET.index(token) for _, token in found])
    exact, float32 = (leads(weights, seen, right, *arithmetic) for arithmetic in (EXACT, FLOAT32))
    for name, lead in (("margin", exact), ("margin_float32", float32)):
        worst = int(lead.argmin())
        demand(0 < certificate[name] <= lead[worst], f"{name} is {lead[worst]:.6g} at {found[worst]}, not as stated")
    worst = found[int(exact.argmin())][0]
    demand(certificate["margin_at"] == worst, f"the smallest margin is at {worst}, not where the certificate says")


# ---- without a window --------------------------------------------------------------------------------------------

READ = {0: DIGITS, 1: DIGITS + "+", 2: DIGITS + "="}  # what a token can read, by number
SORTS = np.array([(number, ALPHABET.index(token)) for number, tokens in READ.items() for token in tokens]).T
ASKING = [ALPHABET.index(token) for token in READ[2]]  # these are the last of SORTS, in the same order
RIGHT = [ALPHABET.index(token) for token in DIGITS + "$"]
TOKEN = np.full(128, -1)
TOKEN[[ord(character) for character in ALPHABET]] = range(len(ALPHABET))
A_PASS, MOST_COLUMNS = 1000, 6  # cases at once; columns known, at which to give up


class Fading:
    """An adder whose tokens read all others; each step of distance costs a slope of score.

    Q tokens that ask, T = 32 sorts of token that can be read, H heads, D, F, V as the sizes of the weights.
    """

    def __init__(self, w):
        (self.H, _, _), self.D, self.w = w["near"].shape, w["embedding.weight"].shape[1], w
        self.slope = np.exp(w["log_slope"])
        self.x = w["embedding.weight"] + w["numbers.weight"][:3, None]
        q, k, v = self.split(self.x @ w["qkv.weight"].T + w["qkv.bias"])
        self.score = np.einsum("qhk,nvhk->qnvh", q[2], k) * (self.D // self.H) ** -0.5
        heads = w["out.weight"].reshape(self.D, self.H, -1)
        self.out = np.einsum("dhk,nvhk->nvhd", heads, v)  # what a head adds, for each token read
        self.sorts = self.out[*SORTS]  # (T, H, D)
        self.toward = w["unembedding.weight"][:, None] - w["unembedding.weight"]  # (V, V, D) right less rival
        self.reads = self.toward @ w["mlp_out.weight"]  # (V, V, F) what each neuron adds to that

    def split(self, part):
        return np.moveaxis(part.reshape(3, -1, 3, self.H, self.D // self.H), 2, 0)

    def leads(self, behind, ahead, right):
        """(C, K, 3) columns and (C, M, 2) pairs of tokens or -1 -> the least lead, whatever else there is, for each.

        Also (C,) what the unknown behind can weigh, and ahead. Neurons that the unknown cannot switch are linear, so
        that it does worst as one token; of the others each is counted at its worst.
        """
        w, (C, K, _), M, own = self.w, behind.shape, ahead.shape[1], behind[:, 0, 2]
        places = [(n, 1 + i) for i in range(K) for n in range(3)] + [(n, -i) for i in range(M) for n in range(2)]
        number, distance = np.array(places).T
        seen = np.concatenate([behind.reshape(C, -1), ahead.reshape(C, -1)], 1)
        steps = np.maximum(distance - 1, -distance).clip(0)[:, None]
        bias = np.where(steps, -steps * self.slope, w["near"][:, number, distance.clip(0, 1)].T)
        weight = np.exp(self.score[own[:, None], number, seen] + bias) * (seen >= 0)[..., None]
        total = weight.sum(1)
        strongest = [np.exp(self.score[:, n, TOKEN[[*map(ord, READ[n])]]].max(1))[own] for n in range(3)]
        digits = np.exp(self.score[:, :2, :10].max(2))[own]  # signs stand behind
        series = [np.exp(-self.slope * known) / (1 - np.exp(-self.slope)) for known in (K, M)]
        back = (behind[:, -1, 2] != ALPHABET.index("="))[:, None] * sum(strongest) * series[0]
        on = sum((ahead[:, -1, n] >= 0)[:, None] * digits[:, n] for n in (0, 1)) * series[1]
        share = (back + on) / (total + back + on)

        read = (weight / total[:, None])[..., None]
        known = sum(read[:, place] * self.out[n, seen[:, place]] for place, n in enumerate(number))
        mid = self.x[2, own] + known.sum(1)
        pre = mid @ w["mlp_in.weight"].T + w["mlp_in.bias"]
        entering, there = self.sorts @ w["mlp_in.weight"].T, known @ w["mlp_in.weight"].T
        farthest = np.maximum(entering.max(0) - there, there - entering.min(0))
        reach = np.einsum("ch,chf->cf", share, farthest)
        steady, unsure = pre >= reach, np.abs(pre) < reach
        rise, fall = (unsure * (np.maximum(pre + by, 0) - np.maximum(pre, 0)) for by in (reach, -reach))
        logits = mid + np.maximum(pre, 0) @ w["mlp_out.weight"].T + w["mlp_out.bias"]
        logits = logits @ w["unembedding.weight"].T + w["unembedding.bias"]
        readable, least = self.sorts.reshape(-1, self.D), np.full(C, np.inf)
        for rival in range(len(ALPHABET)):
            toward, read = self.toward[right, rival], self.reads[right, rival]
            gradient = toward + (read * steady) @ w["mlp_in.weight"]
            worst = (readable @ gradient.T).reshape(-1, self.H, C).min(0).T
            change = share * np.minimum(worst - np.einsum("cd,chd->ch", gradient, known), 0)
            lead = logits[np.arange(C), right] - logits[:, rival] + change.sum(1)
            lead += (np.minimum(read, 0) * rise + np.maximum(read, 0) * fall).sum(1)
            least = np.where(right == rival, least, np.minimum(least, lead))
        return least, back.max(1), on.max(1)

    def astray(self, unit, exp_error, slope_error):
        """How far the lead of one token over another can be from its exact value, in any text, and of how many keys.

        A mean of any number of values stays among them; shifted weights move it by half the range of the values at
        most, for each unit of shift in the exponent. So all sizes here are those of single tokens.
        """
        w, H, D, K = self.w, self.H, self.D, self.D // self.H
        x = widen(self.x, self.x, 1, np.abs(self.x), unit)
        qkv = linear([part.reshape(-1, D) for part in x], w["qkv.weight"], unit, [w["qkv.bias"]] * 2)
        q, k, v = zip(*map(self.split, qkv), strict=True)
        k, v = ([part[*SORTS] for part in pair] for pair in (k, v))
        products = times([part[2, ASKING][:, None] for part in q], k)
        near = w["near"][:, :3].reshape(H, -1)
        size = largest(products).sum(-1) * K**-0.5 + np.abs(near).max(1)
        low, high = widen(*(part.sum(-1) * K**-0.5 for part in products), K + 6, size, unit)
        exact = self.score[ASKING][:, *SORTS]
        own = exact[range(len(ASKING)), range(-len(ASKING), 0)] + near[:, 5]
        spread = exact.max(1) - exact.min(1) + np.maximum(near.max(1), 0) - np.minimum(near.min(1), 0)
        shift = np.maximum(high - exact, exact - low).max(1) + 1.01 * (unit * spread + exp_error)
        share = slope_error + 1.01 * (K + 10) * unit  # of slope times steps: this much more for each far token
        demand(size.max() < 500 and shift.max() < 0.5, "scores are beyond what exp can take, or too uncertain")
        keys = 5 * (1 + int(((1 - ZERO_BELOW + spread) / self.slope / (1 - share)).max()))
        first, ratio = np.arange(1, 40)[:, None, None], np.exp(-self.slope * (1 - share))
        rest = 5 * np.exp(exact.max(1) - own + 2 * shift) * ratio**first
        rest *= first / (1 - ratio) + ratio / (1 - ratio) ** 2
        shift = shift + 2 * share * (self.slope * (first - 1 + rest)).min(0)

        def moved(reads):
            values = self.sorts @ reads.T
            return shift @ (values.max(0) - values.min(0)) / 2

        heads = np.abs(w["out.weight"]).reshape(D, H, K)
        size = np.einsum("dhk,thk->thd", heads, largest(v)).max(0).sum(0) + np.abs(self.x[2, ASKING])
        off = np.einsum("dhk,hk->d", heads, (v[1] - v[0]).max(0)) / 2 + unit * size
        roundings = keys * (H + 1) + D + K + 6
        # n roundings come to n u / (1 - n u) at most, which is below 1.001 n u for these.
        demand(roundings * unit < 9e-4, f"{keys} keys have weight, too many for this bound")
        off = 1.001 * (off + roundings * unit * size) + TINY
        size = size + off + moved(np.eye(D))
        enter, leave, read = (np.abs(w[f"{name}.weight"]) for name in ("mlp_in", "mlp_out", "unembedding"))
        pre_off = moved(w["mlp_in.weight"]) + off @ enter.T
        pre_off += 1.001 * (D + 2) * unit * (size @ enter.T + np.abs(w["mlp_in.bias"]))
        pre = (self.x[2, ASKING] @ w["mlp_in.weight"].T) + w["mlp_in.bias"]
        pre = np.maximum(pre + (self.sorts @ w["mlp_in.weight"].T).max(0).sum(0) + pre_off, 0)
        size = size + pre @ leave.T + np.abs(w["mlp_out.bias"])
        off = off + 1.001 * (leave.shape[1] + 2) * unit * size
        last = 1.01 * (D + 2) * unit * (size @ read.T + np.abs(w["unembedding.bias"]))
        toward = self.toward[RIGHT].reshape(-1, D)
        pairs = pre_off @ np.abs(toward @ w["mlp_out.weight"]).T + moved(toward) + off @ np.abs(toward).T
        return (pairs + (last[:, RIGHT, None] + last[:, None]).reshape(len(ASKING), -1)).max(), keys


def tokens_of(texts, width):
    return TOKEN[np.frombuffer("".join(texts).encode(), np.uint8)].reshape(len(texts), -1, width)


def settle(fading, found, margin):
    """Split cases until each leads by more than `margin` -> how many there are, and the texts of those split.

    A case: known columns from the token's own backwards, the pairs of digits ahead, what to write. Where it is open,
    it is split by all that can stand next, on the side where the unknown can weigh more.
    """
    before, after = {}, {}
    for context, right in found.items():
        if right != "$":
            before.setdefault(context[3:] + right, set()).add(context[:3])
        if context[2] != "=":
            after.setdefault(context[:2], set()).add(context[3:])
    split, settled = [], 0
    levels = {(1, 1): [(context[:3], context[3:], right) for context, right in found.items()]}
    while levels:
        known = min(levels, key=sum)
        cases, more_behind, more_ahead = levels.pop(known), [], []
        demand(sum(known) <= MOST_COLUMNS, f"{len(cases)} cases are open after {MOST_COLUMNS} columns")
        for some in (cases[first : first + A_PASS] for first in range(0, len(cases), A_PASS)):
            behind, ahead, right = zip(*some, strict=True)
            found_out = fading.leads(tokens_of(behind, 3), tokens_of(ahead, 2), tokens_of(right, 1)[:, 0, 0])
            settled += int((found_out[0] > margin).sum())
            for place in np.flatnonzero(~(found_out[0] > margin)):
                lead, back, on = (values[place] for values in found_out)
                columns, pairs, token = some[place]
                split.append(f"{columns}/{pairs}{token}")
                demand(back + on > 0, f"the lead is {lead:.6g} at {split[-1]}, and nothing else is there")
                if back >= on:
                    more_behind += [(columns + column, pairs, token) for column in before[columns[-3:]]]
                else:
                    more_ahead += [(columns, pairs + pair, token) for pair in after[pairs[-2:]]]
        for wider, cases in (((known[0] + 1, known[1]), more_behind), ((known[0], known[1] + 1), more_ahead)):
            if cases:
                levels.setdefault(wider, []).extend(cases)
    return settled, split


def check_fading(weights, certificate, found):
    """What a certificate without a window states besides its contexts."""
    demand(certificate["slope_error"] == SLOPE_ERROR, "the certificate grants another error to slopes")
    demand(certificate["zero_below"] == ZERO_BELOW, "the certificate has float32 end elsewhere")
    fading, margin = Fading(weights), certificate["margin"]
    (here, _), (rounding, keys) = fading.astray(*EXACT, EXACT[1]), fading.astray(*FLOAT32, SLOPE_ERROR)
    demand(rounding <= certificate["rounding"], f"rounding is {rounding:.6g}, not as stated")
    demand(keys <= certificate["keys"], f"{keys} keys have weight, not as stated")
    left = margin - certificate["rounding"] - 16 * here  # what is computed here may be off, too
    demand(0 < certificate["margin_float32"] <= left, f"margin_float32 is {left:.6g}, not as stated")
    settled, split = settle(fading, found, margin)
    stated = {"count": settled, "split": len(split), "sha256": sha256_of(split)}
    demand(certificate["cases"] == stated, "these are not the cases that have to be told apart")


def check(weights_path, certificate_path):
    """What the network is proven to do if the certificate holds; otherwise `Rejected` says what does not."""
    with open(certificate_path, encoding="utf-8") as file:
        certificate = json.load(file)
    weights, sha256 = read(weights_path)
    demand(("cases" in certificate) == ("log_slope" in weights), NO_WEIGHTS)
    demand(certificate["sha256"] == sha256, "the certificate is about other weights")
    by_place, fading = "near_value" in weights, "log_slope" in weights
    does = {PAGE_KEYS: "multiplies", DIFFERENCE_KEYS: "subtracts"}[len(weights["near"])] if by_place else "adds"
    demand_words_and_numbers(certificate, fading, "sink" in weights, does)
    demand(certificate["exp_error"] == EXP_ERROR, "the certificate grants another error to exp")
    found = {"adds": contexts, "multiplies": page_contexts, "subtracts": difference_contexts}[does]()
    stated = certificate["contexts"]
    digest = sha256_of(context + token for context, token in found.items())
    demand(stated == {"count": len(found), "sha256": digest}, "these are not the contexts that occur")
    (check_fading if fading else check_windowed)(weights, certificate, found)
    return does


def main():
    """The command: asked about two files, its exit status is 0 only for a certificate that holds."""
    parser = argparse.ArgumentParser(
        description="Check a certificate that a network adds, subtracts or multiplies all numbers from 0 on.",
        epilog="Prints ACCEPTED, or REJECTED and why on stderr with exit status 1. Needs Python and numpy alone.",
    )
    parser.add_argument("weights", metavar="WEIGHTS.safetensors", help="the network")
    parser.add_argument("certificate", metavar="CERTIFICATE.json", help="what is claimed of it")
    parser.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    options = parser.parse_args()
    try:
        does = check(options.weights, options.certificate)
    except Rejected as problem:
        sys.exit(f"REJECTED: {problem}")
    except MALFORMED as problem:
        why = " ".join(f"{type(problem).__name__}: {problem}".split())
        sys.exit(f"REJECTED: not a file of weights and its certificate ({why})")
    print(f"ACCEPTED: {does} every pair of non-negative integers")


if __name__ == "__main__":
    main()
