"""Two proofs that a grokked model adds all residues modulo p: by enumeration, and a shorter one (chapter 72).

The enumeration runs the model on every pair of residues. The shorter proof asks most pairs less: it splits the matrix
that carries the neurons to the answers into a few Fourier waves and a rest, computes the waves, and bounds the rest
by its norm, in the spirit of compact proofs (Gross et al. 2024). Only where that bound is too weak it enumerates.

Dimensions: B pairs a <= b (a model without positions treats a and b alike), P residues, H heads, F d_mlp.
"""

from dataclasses import dataclass

import numpy as np

from arithlib.analysis.fourier import fourier_basis, power_spectrum, wave_rows
from arithlib.certify.ball_arithmetic import Ball, einsum, relu, softmax
from arithlib.models.grokking import GrokkingTransformer


def unordered_pairs(p: int) -> np.ndarray:
    """(B, 2) every pair of residues a <= b."""
    return np.stack(np.triu_indices(p), 1)


@dataclass(frozen=True)
class Inside:
    """Balls around what a float32 program computes at '=': mid (B, D), neurons (B, F), logits (B, P)."""

    mid: Ball
    neurons: Ball
    logits: Ball


def run(model: GrokkingTransformer, pairs: np.ndarray) -> Inside:
    """The model on (B, 2) pairs of residues, every rounding enclosed, matrices applied in the order of `forward`.

    Raises ValueError for a model with positions, with layer norm, or without a ReLU.
    """
    c = model.config
    if (c.activation, c.positions, c.layer_norm) != ("relu", "none", False):
        raise ValueError("this proof is about the model of source 004: ReLU, no positions, no layer norm")
    w = {name: Ball.exact(value.detach().cpu().double().numpy()) for name, value in model.state_dict().items()}
    x = w["W_E"]
    q = einsum("d,hdk->hk", x[-1], w["W_Q"])
    k, v = (einsum("rd,hdk->rhk", x, w[name]) for name in ("W_K", "W_V"))
    scores = einsum("rhk,hk->rh", k, q, roundings=4).map(lambda part: part / c.d_head**0.5)
    seen = np.concatenate([pairs, np.full((len(pairs), 1), c.p)], 1)
    pattern = softmax(scores[seen].map(lambda part: part.swapaxes(1, 2)))
    z = einsum("bht,bthk->bhk", pattern, v[seen])
    mid = einsum("bhk,hkd->bd", z, w["W_O"], x[-1])
    neurons = relu(einsum("bd,df->bf", mid, w["W_in"], w["b_in"]))
    after = einsum("bf,fd->bd", neurons, w["W_out"], w["b_out"], mid)
    return Inside(mid, neurons, einsum("bd,dv->bv", after, w["W_U"])[:, : c.p])


# ---- the shorter proof -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shortened:
    """What the shorter proof gives with so many frequencies.

    lead: (B,) a lower bound on how far the right answer is ahead, in exact arithmetic.
    operations: multiplications that it costs for all pairs together; enumerated: those of running the model instead.
    """

    frequencies: int
    lead: np.ndarray
    operations: int
    enumerated: int

    @property
    def proven(self) -> np.ndarray:
        """(B,) where the lead is positive; what float64 may add by rounding is far below the threshold."""
        return self.lead > 1e-6

    @property
    def with_the_rest_enumerated(self) -> int:
        """Multiplications of this proof, together with running the model on every pair that it leaves open."""
        return self.operations + int((~self.proven).sum()) * self.enumerated // len(self.lead)


def shorten(model: GrokkingTransformer, inside: Inside, frequencies: int) -> Shortened:
    """Bound every lead by the strongest waves of W_L = W_out W_U, read along the answers, and the norm of the rest.

    With W_L = W_L R^T R + E, where the rows of R are the kept waves, and m the mean of the neurons over all pairs ::

        n W_L = (n W_L R^T) R + m E + (n - m) E,      |(n - m) (E_c - E_c')| <= |n - m| |E_c - E_c'| .
    """
    p, (B, F) = model.config.p, inside.neurons.mid.shape
    w = {name: value.detach().double().numpy() for name, value in model.state_dict().items()}
    W_U = w["W_U"][:, :p]
    W_L = w["W_out"] @ W_U
    strongest = (power_spectrum(model.W_L.T).argsort(descending=True)[:frequencies] + 1).tolist()
    R = fourier_basis(p)[[0, *wave_rows(strongest)]].numpy()
    rest = W_L - W_L @ R.T @ R
    n, mean = inside.neurons.mid, inside.neurons.mid.mean(0)
    right = unordered_pairs(p).sum(1) % p
    low = (inside.mid.mid + w["b_out"]) @ W_U + n @ (W_L @ R.T) @ R + mean @ rest
    apart = np.linalg.norm(rest.T[:, None] - rest.T, axis=2)  # (P, P) of every two answers
    reach = np.linalg.norm(n - mean, axis=1)[:, None] * apart[right]
    lead = low[np.arange(B), right][:, None] - low - reach
    lead[np.arange(B), right] = np.inf
    to_neurons = 2 * model.config.n_heads * (F + p)  # two tokens, each head carries its row to neurons and answers
    once = F * p * (len(R) + p)  # W_L R^T, and the distance of every two answers
    each = to_neurons + len(R) * (F + p) + F + p
    return Shortened(frequencies, lead.min(1), once + B * each, B * (to_neurons + F * p))
