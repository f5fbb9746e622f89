"""What a part of a model does: put another value in its place and see what becomes of the answer (chapter 51).

Patching compares two prompts (Kantamneni and Tegmark 2025, footnotes 1 and 4). On the corrupted one the model gives
another answer; an activation of the clean one is put in; and the effect is how much the logit of the clean answer
rises. The model's forward pass takes edits by name, as `arithlib.models.decoder.Decoder` does:

    model(tokens, edits={name: function}, return_activations=True) -> logits (B, V), {name: activation (B, ...)}

Dimensions: B pairs of prompts, T tokens, N numbers, D the space of an activation, C columns or directions, V tokens.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from arithlib.analysis.helix import orthonormal

Where = tuple | slice | int | type(Ellipsis)  # indexes an activation after its batch dimension; ... is all of it


@dataclass(frozen=True)
class Pairs:
    """Clean and corrupted prompts (B, T), and the answers (B,) to the clean ones."""

    clean: Tensor
    corrupted: Tensor
    answers: Tensor

    def __len__(self) -> int:
        return len(self.answers)


# ---- edits -------------------------------------------------------------------------------------------------------


def put(values: Tensor, where: Where = ...) -> Callable[[Tensor], Tensor]:
    """The edit that sets activation[:, where] to `values`.

    >>> put(torch.ones(1, 2), 0)(torch.zeros(1, 3, 2))  # both entries of token 0
    tensor([[[1., 1.],
             [0., 0.],
             [0., 0.]]])
    """

    def edit(x: Tensor) -> Tensor:
        index = (slice(None), *(where if isinstance(where, tuple) else (where,)))
        x = x.clone()
        x[index] = values.to(x.dtype)
        return x

    return edit


def remove(directions: Tensor, mean: Tensor, where: Where = ...) -> Callable[[Tensor], Tensor]:
    """The edit that takes `directions` (C, D) out of activation[:, where], but not out of its mean (D,)."""
    basis = torch.linalg.svd(directions.double(), full_matrices=False)[2].to(mean.dtype)  # (C, D) orthonormal

    def edit(x: Tensor) -> Tensor:
        index = (slice(None), *(where if isinstance(where, tuple) else (where,)))
        x = x.clone()
        x[index] = x[index] - (x[index] - mean) @ basis.T @ basis
        return x

    return edit


def random_directions(D: int, count: int, generator: torch.Generator) -> Tensor:
    """(count, D) normal directions, the control of `remove`: their span is uniform among those of its dimension."""
    return torch.randn(count, D, generator=generator)


# ---- effects -----------------------------------------------------------------------------------------------------


@torch.no_grad()
def effect(model, pairs: Pairs, edits: Mapping[str, Callable]) -> Tensor:
    """(B,) logit of the clean answer on the corrupted prompt with these edits, minus the same without."""
    rows = torch.arange(len(pairs))
    return (model(pairs.corrupted, edits) - model(pairs.corrupted))[rows, pairs.answers]


@torch.no_grad()
def total_effects(model, pairs: Pairs, name: str, places: Iterable[Where]) -> Tensor:
    """(places, B) activation patching: the effect of the clean activation at each place, by all the ways it has."""
    rows = torch.arange(len(pairs))
    clean = model(pairs.clean, return_activations=True)[1][name]
    before = model(pairs.corrupted)[rows, pairs.answers]
    after = [model(pairs.corrupted, {name: _put_own(clean, where)})[rows, pairs.answers] for where in places]
    return torch.stack(after) - before


def total_effect(model, pairs: Pairs, name: str, where: Where = ...) -> Tensor:
    """(B,) `total_effects` at one place."""
    return total_effects(model, pairs, name, [where])[0]


@torch.no_grad()
def direct_effect(model, pairs: Pairs, name: str, others: Iterable[str], where: Where = ...) -> Tensor:
    """(B,) path patching: as `total_effect`, with the activations `others` held at what the corrupted prompt gives.

    With all other parts that read what `name` writes among them, only its direct way to the logits is left.
    """
    clean = model(pairs.clean, return_activations=True)[1][name]
    corrupted = model(pairs.corrupted, return_activations=True)[1]
    held = {other: put(corrupted[other]) for other in others if other != name}
    return effect(model, pairs, held | {name: _put_own(clean, where)})


def attribution(model, pairs: Pairs, names: Iterable[str]) -> dict[str, Tensor]:
    """Attribution patching: for each name, the effect of every entry to first order, from one gradient.

    (clean - corrupted activation) times the gradient of the clean answer's logit on the corrupted prompt (Nanda 2023,
    "Attribution patching"). Each result has the activation's shape; sums over entries estimate their joint effect.
    """
    clean = model(pairs.clean, return_activations=True)[1]
    logits, corrupted = model(pairs.corrupted, return_activations=True)
    names = list(names)
    score = logits[torch.arange(len(pairs)), pairs.answers].sum()
    gradients = torch.autograd.grad(score, [corrupted[name] for name in names])
    return {
        name: ((clean[name] - corrupted[name]) * gradient).detach()
        for name, gradient in zip(names, gradients, strict=True)
    }


def _put_own(values: Tensor, where: Where) -> Callable[[Tensor], Tensor]:
    index = (slice(None), *(where if isinstance(where, tuple) else (where,)))
    return put(values[index], where)


# ---- what to put in ----------------------------------------------------------------------------------------------


def fitted(x: Tensor, columns: Tensor, seen: Tensor | None = None) -> Tensor:
    """Vectors x (N, D) as functions of the number (N, C) and a constant describe them, by least squares.

    With the scores of principal components as columns it is x reduced to these components.
    seen: (N,) True for the numbers that the fit may use; the others are placed by it. None for all.
    """
    design = torch.cat([torch.ones(len(columns), 1, dtype=torch.float64), columns.double()], 1)
    seen = torch.ones(len(x), dtype=torch.bool) if seen is None else seen
    return design @ torch.linalg.lstsq(design[seen], x[seen].double(), driver="gelsd").solution


def strongest_periods(x: Tensor, numbers: Tensor, count: int, step: float = 1 / 2000) -> list[float]:
    """The periods whose waves explain most of x (N, D), beside a line: found one after the other, strongest first.

    Frequencies are multiples of `step` (turns a number) from 1/N to 1/2, so that a period need not divide the range.
    A period within half a turn over the range of one already chosen is not another.
    """
    N, span = len(numbers), float(numbers.max() - numbers.min()) + 1
    frequencies = torch.arange(round(1 / span / step), round(1 / 2 / step) + 1) * step
    angle = 2 * torch.pi * numbers.double() * frequencies[:, None]
    waves = torch.stack([angle.cos(), angle.sin()], -1)  # (frequencies, N, 2)
    chosen: list[int] = []
    for _ in range(count):
        known = orthonormal(torch.cat([numbers.double()[:, None], *waves[chosen]], 1))
        known = torch.cat([known, torch.full((N, 1), N**-0.5, dtype=torch.float64)], 1)
        left = x.double() - known @ (known.T @ x.double())
        new = waves - known @ (known.T @ waves)
        both = new.mT @ left  # (frequencies, 2, D)
        power = (torch.linalg.pinv(new.mT @ new, rtol=1e-6, hermitian=True) * (both @ both.mT)).sum((-1, -2))
        for near in chosen:
            power[(frequencies - frequencies[near]).abs() < 0.5 / span] = 0
        chosen.append(int(power.argmax()))
    return [float(1 / frequencies[i]) for i in chosen]
