"""How alike the blocks of a deep network are, and a penalty that makes them so (chapter 47; source 003, section 4).

Dimensions: L layers, k layers of a block, S models.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

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


def of_pairs(layers: nn.ModuleList, k: int, measure=cosine) -> Tensor:
    """(groups, pairs) measure of each corresponding pair."""
    return torch.stack([torch.stack([measure(a, b) for a, b in of]) for of in corresponding(layers, k).values()])


def mean_over_groups(layers: nn.ModuleList, k: int, measure=cosine) -> Tensor:
    """Equation 4 averaged over groups, as equation 5 has it; a scalar.

    The L - k of equation 4 is the number of its terms, so that it is a mean.
    """
    return of_pairs(layers, k, measure).mean()


def similarity_penalty(layers: nn.ModuleList, k: int, strength: float | Tensor, measure: str = "cosine") -> Tensor:
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
        return dict(zip(GROUPS, of_pairs(layers, k).tolist(), strict=True))


# ---- many small models -------------------------------------------------------------------------------------------


@contextmanager
def _products_of_stacks() -> Iterator[None]:
    """Matrix products by torch itself, which takes stacks; oneDNN does not."""
    before = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.enabled = False
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = before


class _Alone(nn.Module):
    """A loss of a model as a forward pass, which is what functional_call can call."""

    def __init__(self, model: nn.Module, loss: Callable):
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, *batch):
        return self.loss(self.model, *batch)


def train_together(models: Sequence[nn.Module], loss: Callable, batches: Callable, steps: int) -> Tensor:
    """Train S models of one shape in place, each as it would be alone but for rounding; S cost little more than one.

    By Adam, at a rate that falls from 0.01 to a fiftieth of it.
    loss: of a model and its batch the loss, a scalar, and a tensor to keep. batches: step -> tensors (S, ...).
    Returns what was kept, (steps, S, ...).
    """
    alone, kept = _Alone(models[0], loss), []
    weights, _ = stack_module_state(models)
    losses = vmap(lambda own, *batch: functional_call(alone, {f"model.{name}": w for name, w in own.items()}, batch))
    optimizer = torch.optim.Adam(weights.values(), lr=0.01, fused=True)
    decay = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0.02, steps)
    kernel, models[0].kernel = models[0].kernel, "eager"  # torch's fused attention takes no stacks either
    with _products_of_stacks():
        for step in range(steps):
            of_each, seen = losses(weights, *batches(step))
            kept.append(seen.detach())
            optimizer.zero_grad()
            of_each.sum().backward()
            optimizer.step()
            decay.step()
    models[0].kernel = kernel
    for index, model in enumerate(models):
        model.load_state_dict({name: stacked[index] for name, stacked in weights.items()})
    return torch.stack(kept)
