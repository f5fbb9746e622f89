"""How alike the blocks of a deep network are, and a penalty that makes them so (chapter 47; source 003, section 4).

Dimensions: L layers, k layers of a block.
"""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Parameter groups of a `looped.Layer`, as source 003 names them; the first three are thirds of one matrix.
GROUPS = ("Attn-Q", "Attn-K", "Attn-V", "Attn-O", "FFN-W1", "FFN-W2")


def matrices(layer: nn.Module) -> dict[str, Tensor]:
    """The weight matrices of a `looped.Layer` by group."""
    both = (layer.out.weight, layer.mlp_in.weight, layer.mlp_out.weight)
    return dict(zip(GROUPS, (*layer.qkv.weight.chunk(3), *both), strict=True))


def corresponding(layers: nn.ModuleList, k: int) -> dict[str, list[tuple[Tensor, Tensor]]]:
    """For each group, the pairs of matrices that stand at the same place of neighbouring blocks of k layers.

    Raises ValueError where the layers are not two blocks or more.
    """
    L = len(layers)
    if k < 1 or L % k or L == k:
        raise ValueError(f"{L} layers are not several blocks of {k}")
    found = [matrices(layer) for layer in layers]
    return {group: [(found[i][group], found[i + k][group]) for i in range(L - k)] for group in GROUPS}


def cosine(a: Tensor, b: Tensor) -> Tensor:
    """Cosine of two matrices as vectors; a scalar."""
    return F.cosine_similarity(a.flatten(), b.flatten(), dim=0)


def relative_distance(a: Tensor, b: Tensor) -> Tensor:
    """Squared distance over the sum of the squared norms: 0 if equal, 1 if orthogonal, 2 if opposite; a scalar."""
    return (a - b).square().sum() / (a.square().sum() + b.square().sum())


def squared_distance(a: Tensor, b: Tensor) -> Tensor:
    """Squared distance; a scalar. Unlike the relative one it is smaller, too, between matrices that are smaller."""
    return (a - b).square().sum()


def mean_over_groups(layers: nn.ModuleList, k: int, measure=cosine) -> Tensor:
    """Equation 4 averaged over groups, as equation 5 has it; a scalar.

    The L - k of equation 4 is the number of its terms, so that it is a mean.
    """
    pairs = corresponding(layers, k)
    return torch.stack([torch.stack([measure(a, b) for a, b in of]).mean() for of in pairs.values()]).mean()


def similarity_penalty(layers: nn.ModuleList, k: int, strength: float, measure: str = "cosine") -> Tensor:
    """What is added to a loss, to be minimised, so that blocks of k layers become alike; a scalar.

    Equation 5 adds the cosine with a plus sign, which drives blocks apart; that is a negative `strength` here.

    measure: "cosine", which does not see the scale of a matrix; "l2" (`relative_distance`), which sees how unequal
        two are in scale; "squared" (`squared_distance`), which sees scale itself. Raises ValueError for any other.
    """
    if measure == "cosine":
        return -strength * mean_over_groups(layers, k)
    if measure == "l2":
        return strength * mean_over_groups(layers, k, relative_distance)
    if measure == "squared":
        return strength * mean_over_groups(layers, k, squared_distance)
    raise ValueError(f"measure = {measure!r}: choose cosine, l2 or squared")


def similarities(layers: nn.ModuleList, k: int) -> Mapping[str, list[float]]:
    """Cosine of each corresponding pair, by group."""
    with torch.no_grad():
        return {group: [float(cosine(a, b)) for a, b in of] for group, of in corresponding(layers, k).items()}
