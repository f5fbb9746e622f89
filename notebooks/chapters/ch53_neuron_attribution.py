"""What single neurons read, and which answers they promote (chapter 53; nostalgebraist 2020, "interpreting GPT").

For decoders as in `arithlib.models.decoder`, whose answer is one token. Frequencies are in turns a number.

Dimensions: B pairs of prompts, L layers, F neurons, D d_model, N numbers, Q frequencies.
"""

import torch
from torch import Tensor

from arithlib.analysis.helix import orthonormal
from arithlib.analysis.patching import Pairs
from arithlib.models.decoder import Decoder, normalise


@torch.no_grad()
def neuron_effects(model: Decoder, pairs: Pairs) -> Tensor:
    """(L, F) direct effect of each neuron on the last token, mean over the pairs.

    As `patching.direct_effect` with every other part held: what the neuron writes reaches the logits by the residual
    stream alone, so that its change can be added to the last level, and no layer is run again.
    """
    L = model.config.n_layers
    clean, corrupted = (model(tokens, return_activations=True)[1] for tokens in (pairs.clean, pairs.corrupted))
    final = corrupted[f"resid.{L}"][:, -1]
    answer = model.W_U[:, pairs.answers].T  # (B, D)
    before = (normalise(final) * answer).sum(-1)
    effects = []
    for layer, block in enumerate(model.blocks):
        change = (clean[f"{layer}.mlp_post"] - corrupted[f"{layer}.mlp_post"])[:, -1]
        with_each = final[:, None] + change[..., None] * block.W_out  # (B, F, D)
        effects.append(((normalise(with_each) * answer[:, None]).sum(-1) - before[:, None]).mean(0))
    return torch.stack(effects)


@torch.no_grad()
def neuron_lens(model: Decoder, numbers: Tensor) -> Tensor:
    """(L, F, N) what one unit of each neuron adds to the logits of these numbers, but for the scale of its norm."""
    written = torch.stack([block.W_out for block in model.blocks])
    return (written - written.mean(-1, keepdim=True)) @ model.W_U[:, numbers]


def strongest(effects: Tensor, share: float) -> Tensor:
    """(n,) effects -> indices of the fewest that together have that share of the sum of all, strongest first."""
    order = effects.argsort(descending=True)
    reached = effects[order].cumsum(0) >= share * effects.sum()
    return order[: int(reached.int().argmax()) + 1]


def spectrum(curves: Tensor, frequencies: Tensor) -> Tensor:
    """(..., N) functions of the number -> (..., Q) power of their waves, without their straight line."""
    numbers = torch.arange(curves.shape[-1], dtype=torch.float64)
    return _power(_without(curves.double(), numbers[:, None]), numbers, frequencies)


def sum_spectrum(grids: Tensor, frequencies: Tensor) -> Tensor:
    """(..., N, N) functions of a and b -> (..., Q) power of their waves in a + b, without constant and lines."""
    N = grids.shape[-1]
    a, b = torch.cartesian_prod(*[torch.arange(N, dtype=torch.float64)] * 2).T
    return _power(_without(grids.double().flatten(-2), torch.stack([a, b], 1)), a + b, frequencies)


def folded(frequencies: Tensor) -> Tensor:
    """Frequencies as whole numbers show them, between 0 and 1/2: f, 1 - f and 1 + f look the same.

    >>> folded(torch.tensor([0.25, 0.75, 1.5]))
    tensor([0.2500, 0.2500, 0.5000])
    """
    return (frequencies - frequencies.round()).abs()


def agree(first: Tensor, second: Tensor, tolerance: float = 0.0075) -> float:
    """Share of the frequencies `first` (n,) that are, folded, within the tolerance of their partner in `second` (n,).

    With `first` as (n, 1) and `second` as (m,), the share that is near any of the m.
    """
    near = (folded(first) - folded(second)).abs() <= tolerance
    return float((near.any(1) if near.dim() > 1 else near).double().mean())


def _without(values: Tensor, columns: Tensor) -> Tensor:
    """(..., n) without their mean and what the columns (n, C) explain."""
    centred = values - values.mean(-1, keepdim=True)
    basis = orthonormal(columns)
    return centred - centred @ basis @ basis.T


def _power(values: Tensor, numbers: Tensor, frequencies: Tensor) -> Tensor:
    angle = 2 * torch.pi * numbers[:, None] * frequencies.double()
    return (values @ angle.cos()).square() + (values @ angle.sin()).square()
