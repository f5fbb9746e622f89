"""What MLP neurons compute over all pairs, and what is left of the model without parts of it (chapter 12).

Dimensions: P residues, F neurons, D d_model. Grids are indexed (a, b, ...).
"""

import torch
from torch import Tensor

from arithlib.analysis.fourier import fourier_2d, fourier_basis, frequencies, project, sum_waves, wave_rows


@torch.no_grad()
def answer_grids(model) -> tuple[Tensor, Tensor]:
    """At '=' for every pair, float64: resid_mid (P, P, D) before the MLP, mlp_post (P, P, F) after its activation."""
    p = model.config.p
    pairs = torch.cartesian_prod(torch.arange(p), torch.arange(p))
    tokens = torch.cat([pairs, torch.full_like(pairs[:, :1], p)], 1)
    _, activations = model(tokens, return_activations=True)
    return tuple(activations[name][:, -1].double().unflatten(0, (p, p)) for name in ("resid_mid", "mlp_post"))


@torch.no_grad()
def logits_from(model, resid_mid: Tensor, mlp_post: Tensor) -> Tensor:
    """(P, P, P) logits over the residues from (P, P, D) and (P, P, F) grids, for models without a layer norm."""
    W_out, b_out, W_U = (w.double() for w in (model.W_out, model.b_out, model.W_U[:, :-1]))
    return (resid_mid + b_out) @ W_U + mlp_post @ (W_out @ W_U)


def frequency_variance(grid: Tensor) -> Tensor:
    """(P, P, F) -> (F, freqs) share of each neuron's variance over (a, b) that one frequency accounts for.

    A frequency owns eight waves: its cosine and sine in a, in b, and their four products (Nanda et al. 2023,
    section 4.3). A neuron that never changes has share 0 everywhere.
    """
    power = fourier_2d(grid).square()
    power[0, 0] = 0
    total = power.sum((0, 1))
    a_waves, b_waves = power[1:, 0].unflatten(0, (-1, 2)).sum(1), power[0, 1:].unflatten(0, (-1, 2)).sum(1)
    blocks = power[1:, 1:].unflatten(1, (-1, 2)).unflatten(0, (-1, 2)).sum((1, 3))
    products = torch.einsum("kkf->kf", blocks)
    changes = total > 1e-20 * grid.square().sum((0, 1))  # below that lies only rounding
    return ((a_waves + b_waves + products) / total.where(changes, torch.inf)).T


def readout_directions(W_L: Tensor, freqs: list[int]) -> Tensor:
    """(F, P) map from neurons to residues -> (2 m, F): the neuron directions that feed cos w_k c and sin w_k c."""
    p = W_L.shape[1]
    return (W_L.detach().double() @ fourier_basis(p)[wave_rows(freqs)].T).T


def keep_directions(mlp_post: Tensor, directions: Tensor) -> Tensor:
    """Projection of (P, P, F) neurons on the span of (m, F) directions."""
    basis, _ = torch.linalg.qr(directions.T)
    return mlp_post @ basis @ basis.T


def keep_sum_waves(mlp_post: Tensor, freqs: list[int]) -> Tensor:
    """Of each neuron only its mean and its cos, sin w_k(a + b) at the given frequencies."""
    return mlp_post.mean((0, 1)) + project(mlp_post, sum_waves(len(mlp_post), freqs))


def keep_frequencies(mlp_post: Tensor, freqs: list[int]) -> Tensor:
    """Of each neuron only its mean and the eight waves of each given frequency."""
    p = len(mlp_post)
    basis = fourier_basis(p)
    own = torch.zeros(p, p, dtype=torch.bool)
    own[0, 0] = True
    for k in freqs:
        rows = wave_rows([k])
        own[rows, 0] = own[0, rows] = True
        own[rows[0], rows] = own[rows[1], rows] = True
    coefficients = fourier_2d(mlp_post) * own[..., None]
    return torch.einsum("ia,ij...,jb->ab...", basis, coefficients, basis)


@torch.no_grad()
def without_embedding_frequencies(model, freqs: list[int]):
    """A copy of the model whose residue embeddings lack the waves at `freqs`."""
    p = model.config.p
    if not set(freqs) <= set(frequencies(p).tolist()):
        raise ValueError(f"frequencies {freqs}: at p = {p} they run from 1 to {(p - 1) // 2}")
    waves = fourier_basis(p, model.W_E.dtype)[wave_rows(freqs)]
    ablated = type(model)(model.config)
    ablated.load_state_dict(model.state_dict())
    ablated.W_E[:p] -= waves.T @ (waves @ ablated.W_E[:p])
    return ablated.eval()
