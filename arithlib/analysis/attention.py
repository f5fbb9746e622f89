"""What the heads of the grokking model do at '=', for every pair at once (chapter 20; source 004, section 6).

Dimensions: P residues, H heads, K d_head, D d_model. Grids are indexed (a, b, ...). All results are float64.
"""

import torch
from torch import Tensor

from arithlib.analysis.fourier import fourier_basis, wave_rows


@torch.no_grad()
def attention_grid(model) -> tuple[Tensor, Tensor]:
    """pattern (P, P, 3, H), the attention from '=' to a, b and '='; values v (P, H, K) of the residues.

    Raises ValueError for a model with positions, where a residue has another value in each place.
    """
    p = model.config.p
    if model.config.positions != "none":
        raise ValueError("a model with positions has two values for each residue; analyse one without")
    _, pattern, v = model.attention_at_equals(torch.cartesian_prod(torch.arange(p), torch.arange(p)))
    return pattern.double().unflatten(0, (p, p)), v[:p].double()


def head_scores(pattern: Tensor) -> Tensor:
    """(P, P, 3, H) attention -> (P, H) score of each residue, centred: attention is a softmax over two of them.

    ln(pattern_a / pattern_b) = s_a - s_b exactly, so a mean over b leaves s_a and a constant.
    """
    return (pattern[:, :, 0].log() - pattern[:, :, 1].log()).mean(1)


def weight_on_a(scores: Tensor) -> Tensor:
    """(P, H) scores -> (P, P, H) alpha = 1 / (1 + exp(s_b - s_a)), what a receives of the attention on a and b."""
    return (scores[:, None] - scores[None]).sigmoid()


def mix(alpha: Tensor, v: Tensor) -> Tensor:
    """(P, P, H) weights and (P, H, K) values -> (P, P, H, K) alpha v_a + (1 - alpha) v_b."""
    return alpha[..., None] * v[:, None] + (1 - alpha[..., None]) * v[None]


def keep_waves(x: Tensor, freqs: list[int]) -> Tensor:
    """Of a function (P, ...) of one residue only its mean and its waves at `freqs`."""
    basis = fourier_basis(len(x))[[0, *wave_rows(freqs)]]
    return torch.einsum("wp,wq,q...->p...", basis, basis, x.double())
