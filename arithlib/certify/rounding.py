"""How far a float32 program can be from an adder without a window, whatever the length of the sum (chapter 71).

A token of the unwindowed adder reads a mean over all tokens. Means stay within the range of what they average,
however many that are, and so does what rounding does to them. Three things could grow with the length, and none does:

- *The number of terms.* Weights fall by a factor e^-slope a step. Relative to the largest they are soon below
  e^-105, where float32 has no numbers left: they come out as 0, and adding zeros rounds nothing.
- *The error of a score.* It grows with the distance, by a share of slope times steps; the weight falls faster.
- *Addresses*, which are integers: exact, and rounded once where they become float32.

Dimensions: Q answer tokens that ask, T sorts of token that can be read, H heads, K d_head, D d_model, F d_mlp.
"""

from dataclasses import dataclass

import numpy as np

from arithlib.certify.addition import token_tables
from arithlib.certify.ball_arithmetic import FUNCTION_ERROR, UNIT, einsum, gamma
from arithlib.certify.tail_bounds import require_fading
from arithlib.models.column import ANSWER, ColumnTransformer
from arithlib.streaming import KEY_TOKENS
from arithlib.tokenizer import END, EQUALS

SLOPE_ERROR = 2.0**-20  # 16 units in the last place of the slopes, which are exponentials of weights
ZERO_BELOW = -105.0  # half of the smallest float32 above 0 is e^-104 or so
TINY = 1e-30  # more than underflow can cost in sums of some thousand float32 numbers below 10^4
ASKING = [*range(10), EQUALS]
SIDES = 5  # two operands ahead, three numbers behind: no more than one token of each at any distance


@dataclass(frozen=True)
class Rounding:
    """lead: by how much the lead of one token over another can differ from its exact value, logits, in any text.

    keys: at most so many tokens have a weight that float32 can tell from 0.
    """

    lead: float
    keys: int


def rounding(model: ColumnTransformer) -> Rounding:
    """What any float32 program can be off by, at any length. Raises ValueError for a model that does not fade."""
    require_fading(model)
    weights, tables, q, k, v = token_tables(model)
    w = {name: ball.mid for name, ball in weights.items()}
    H, D = model.config.n_heads, model.config.d_model
    K = D // H
    numbers, tokens = np.array([(number, token) for number, sorts in KEY_TOKENS.items() for token in sorts]).T
    x, q, k, v = tables[ANSWER, ASKING], q[ANSWER, ASKING], k[numbers, tokens], v[numbers, tokens]

    off, fading, keys = _of_patterns(w, einsum("qhk,thk->qth", q.map(lambda part: part / K**0.5), k, roundings=5))
    moved = np.einsum("dhk,thk->thd", w["out.weight"].reshape(D, H, K), v.mid)

    def astray(layer):
        """(Q, M) what shifted weights do to layer (M, D) of the mean: a mean moves within the range of its values."""
        read = moved @ layer.T
        return (off + 2 * fading) @ (read.max(0) - read.min(0)) / 2

    # Norm, quotient and product; all heads in one sum, after `out` or before it; what was there.
    roundings = gamma(keys + keys * H + D + K + 6)
    out = np.abs(w["out.weight"]).reshape(D, H, K)
    size = np.einsum("dhk,thk->thd", out, v.size).max(0).sum(0) + x.size
    mid_off = np.einsum("dhk,hk->d", out, v.rad.max(0)) + x.rad + roundings * size + TINY
    size = size + mid_off + astray(np.eye(D))
    enter, leave, read = w["mlp_in.weight"], w["mlp_out.weight"], w["unembedding.weight"]
    summed = gamma(D + 2) * (size @ np.abs(enter).T + np.abs(w["mlp_in.bias"]))
    pre_off = astray(enter) + mid_off @ np.abs(enter).T + summed
    pre = x.mid @ enter.T + w["mlp_in.bias"] + (moved @ enter.T).max(0).sum(0)
    hidden = np.maximum(pre + pre_off, 0)
    size = size + hidden @ np.abs(leave).T + np.abs(w["mlp_out.bias"])
    post_off = gamma(leave.shape[1] + 2) * size
    logit_off = gamma(D + 2) * ((size + post_off) @ np.abs(read).T + np.abs(w["unembedding.bias"]))

    most = 0.0
    for right in (*range(10), END):
        toward = np.delete(read[right] - read, right, 0)
        through = pre_off @ np.abs(toward @ leave).T + astray(toward) + (mid_off + post_off) @ np.abs(toward).T
        most = max(most, float((through + logit_off[:, [right]] + np.delete(logit_off, right, 1)).max()))
    return Rounding(most * (1 + 1e-6), keys)


def _of_patterns(w, content):
    """How far weights can be off, relatively, before they are normalised; content: (Q, T, H) scores.

    Returns (Q, H) for all keys alike; (Q, H) a bound on what is added by distance, a share of slope times steps, in
    the mean over the keys; and the number of keys that have weight.
    """
    K, slope = w["embedding.weight"].shape[1] // len(w["near"]), np.exp(w["log_slope"])
    near = w["near"][:, :3].reshape(len(slope), -1)
    # Where the asking token stands among those that are read, it is the answer's: after both operands.
    first = sum(len(sorts) for number, sorts in KEY_TOKENS.items() if number != ANSWER)
    asking = np.arange(len(ASKING))
    own = content.mid[asking, first + asking] + w["near"][:, ANSWER, 1]
    range_ = np.ptp(content.mid, 1) + np.maximum(near.max(1), 0) - np.minimum(near.min(1), 0)
    off = content.rad.max(1) + gamma(K + 6) * np.abs(near).max(1) + UNIT * range_ - np.log1p(-FUNCTION_ERROR)
    share = SLOPE_ERROR + gamma(K + 10)
    keys = SIDES * (1 + int(np.floor((1 - ZERO_BELOW + range_) / (slope * (1 - share))).max()))
    # Steps below m count fully; from there on, weights are bounded by a series against the token's own.
    ratio, m = np.exp(-slope * (1 - share)), np.arange(1, 40)[:, None, None]
    largest = SIDES * np.exp(content.mid.max(1) - own + 2 * off)
    tail = largest * ratio**m * (m / (1 - ratio) + ratio / (1 - ratio) ** 2)
    return off, share * (slope * (m - 1 + tail)).min(0), keys
