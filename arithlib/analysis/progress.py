"""Progress measures of grokking (chapter 12; Nanda et al. 2023, section 5).

Dimensions: P residues; a logit grid is (P, P, P): a, b, candidate answer.
"""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from arithlib.analysis.fourier import project, sum_waves
from arithlib.evaluation import cross_entropy


def first_step(history: Mapping[str, np.ndarray], name: str, at_least: float) -> int:
    """First evaluated step at which the measurement `name` reaches a value; the last step if it never does."""
    reached = np.asarray(history[name]) >= at_least
    return int(history["step"][np.argmax(reached) if reached.any() else -1])


def mean_at_end(history: Mapping[str, np.ndarray], name: str, steps: int) -> float:
    """Mean of the measurement `name` over the last so many steps, for one that swings."""
    step = np.asarray(history["step"])
    return float(np.asarray(history[name])[step > step[-1] - steps].mean())


def answer_table(p: int) -> Tensor:
    """(P, P) the answer (a + b) mod p of every pair."""
    n = torch.arange(p)
    return (n[:, None] + n) % p


def restrict(logits: Tensor, freqs: list[int]) -> Tensor:
    """Keep of a (P, P, P) logit grid only its mean over pairs and its waves in a + b at `freqs`."""
    waves = sum_waves(len(logits), freqs)
    return project(logits, waves) + logits.mean((0, 1))


def exclude(logits: Tensor, freqs: list[int]) -> Tensor:
    """Remove from a (P, P, P) logit grid its waves in a + b at `freqs`."""
    return logits - project(logits, sum_waves(len(logits), freqs))


def grid_loss(logits: Tensor, mask: Tensor | None = None) -> float:
    """Cross-entropy of a (P, P, P) logit grid over all pairs, or over those of a (P, P) mask."""
    p = len(logits)
    mask = torch.ones(p, p, dtype=torch.bool) if mask is None else mask
    return float(cross_entropy(logits[mask], answer_table(p)[mask]))


def clock_template(p: int, freqs: list[int]) -> Tensor:
    """(m, P, P, P) cos w_k(a + b - c) for each of the m frequencies: the logits of an ideal Clock."""
    n = torch.arange(p)
    phase = (n[:, None, None] + n[:, None] - n) % p
    k = torch.tensor(freqs, dtype=torch.float64)[:, None, None, None]
    return (2 * torch.pi * k * phase / p).cos()


def variance_explained(x: Tensor, fit: Tensor) -> float:
    """Share of the variance of x that `fit` accounts for: one minus the sum of
    squares of x - fit over that of x - mean(x)."""
    return float(1 - (x - fit).square().sum() / (x - x.mean()).square().sum())


def clock_fit(logits: Tensor, freqs: list[int]) -> tuple[Tensor, Tensor]:
    """Least-squares sum_k alpha_k cos w_k(a + b - c) for a (P, P, P) logit grid centred over answers.

    A softmax ignores a shift that is common to all answers, so each pair's mean over answers is removed first.
    Returns alpha (m,) and the fitted grid. The cosines are orthogonal over the grid, so each alpha is one projection.
    """
    centred = logits - logits.mean(-1, keepdim=True)
    template = clock_template(len(logits), freqs)
    alpha = torch.einsum("mabc,abc->m", template, centred) / template.square().sum((1, 2, 3))
    return alpha, torch.einsum("m,mabc->abc", alpha, template)
