"""Losses and scores that every chapter reports in the same way."""

import torch
from torch import Tensor


def per_example_loss(logits: Tensor, answers: Tensor) -> Tensor:
    """(B, V) logits, (B,) answers -> (B,) cross-entropy in nats, computed in float64.

    float32 rounds a small per-example loss to a multiple of 1.2e-7, which is of the order of a grokked model's loss:
    chapter 10 shows the floor. (A published implementation says float64 in a comment and casts to float32.)
    """
    return -logits.double().log_softmax(-1).gather(-1, answers[..., None])[..., 0]


def cross_entropy(logits: Tensor, answers: Tensor, weights: Tensor | None = None) -> Tensor:
    """Mean (or weighted mean) of `per_example_loss`, a float64 scalar. weights: (B,), need not sum to one."""
    losses = per_example_loss(logits, answers)
    return losses.mean() if weights is None else (losses * weights).sum() / weights.sum()


def accuracy(logits: Tensor, answers: Tensor, weights: Tensor | None = None) -> float:
    """Share of examples whose largest logit is the answer's."""
    right = (logits.argmax(-1) == answers).double()
    return float(right.mean() if weights is None else (right * weights).sum() / weights.sum())


def logit_margin(logits: Tensor, right: Tensor) -> Tensor:
    """(..., V) logits and (...) right tokens -> (...) by how much these lead the next best, negative if not."""
    right = right[..., None]
    return logits.gather(-1, right)[..., 0] - logits.scatter(-1, right, -torch.inf).amax(-1)


def distinct(keys: Tensor, following: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(N, R) tokens or -1 and (N,) tokens to write -> the same without repetition, and (N,) which of them each is.

    Of the millions of contexts of a long text few differ.
    """
    rows = torch.cat([keys, following[:, None]], 1)
    code = ((rows + 1) * 16 ** torch.arange(rows.shape[1])).sum(1)  # sorting numbers is faster than sorting rows
    different, which = code.unique(return_inverse=True)
    example = rows.new_empty(len(different)).scatter_(0, which, torch.arange(len(rows)))
    return keys[example], following[example], which


@torch.no_grad()
def answer_grid(model, p: int) -> Tensor:
    """(P, P, P) float64 logits over the residues for every pair (a, b) of a modular-addition model."""
    pairs = torch.cartesian_prod(torch.arange(p), torch.arange(p))
    return model.answer_logits(pairs)[:, :p].double().unflatten(0, (p, p))
