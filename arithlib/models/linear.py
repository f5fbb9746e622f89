"""Matrix products on a CPU by oneDNN, with their gradients, and chosen entries of one.

torch itself asks MKL, which keeps to AVX2 on processors that are not Intel's; oneDNN uses
their wider instructions. It arranges the weights anew for every call, which few rows do not repay.
"""

import warnings

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

FEWEST_ROWS = 32


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None, gelu: bool = False) -> Tensor:
    """(..., I) x, (O, I) weight and (O,) bias -> (..., O), as `torch.nn.functional.linear`, to rounding.

    gelu: apply the GELU to it, which costs little before the result leaves the caches.
    """
    suited = x.device.type == "cpu" and x.dtype == torch.float32 and x.shape[:-1].numel() >= FEWEST_ROWS
    if not (suited and _has_onednn()) or torch.is_autocast_enabled("cpu"):  # which keeps half as much for backward
        y = F.linear(x, weight, bias)
    elif torch.is_grad_enabled():
        y = _Product.apply(x, weight, bias)
    else:
        return _onednn(x, weight, bias, "gelu" if gelu else "none")
    return F.gelu(y) if gelu else y


def _has_onednn() -> bool:
    # Asked last: a compiler of graphs, which a GPU has, cannot look into it and would stop at every product.
    return torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled


def _onednn(x, weight, bias=None, then="none"):
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, then, [], "none")


class _Product(torch.autograd.Function):
    """All three products of a linear layer's step by oneDNN: forward, and the gradients of x and of the weight."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return _onednn(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        rows, grads = x.flatten(0, -2), grad.flatten(0, -2)
        return (
            _onednn(grad, weight.T) if of_x else None,
            _onednn(grads.T, rows.T) if of_weight else None,
            grads.sum(0) if of_bias else None,
        )


def entries_of_product(x: Tensor, y: Tensor, columns: Tensor) -> Tensor:
    """(B, I) x, (I, S) y and (B, n) columns -> (B, n) the entries of x @ y in these columns of each row.

    MKL computes no others, where torch has it; elsewhere the whole product is made.
    """
    if x.device.type != "cpu" or not torch.backends.mkl.is_available():
        return (x @ y).gather(1, columns)
    rows, per_row = columns.shape
    with warnings.catch_warnings(category=UserWarning, action="ignore"):  # of the layout: it "is in beta state"
        wanted = torch.sparse_csr_tensor(
            torch.arange(0, columns.numel() + 1, per_row), columns.flatten(), x.new_zeros(columns.numel()),
            (rows, y.shape[1]), check_invariants=False,
        )  # fmt: skip
    return torch.sparse.sampled_addmm(wanted, x, y).values().view(rows, per_row)


class Linear(nn.Linear):
    """The layer of that product."""

    def forward(self, x: Tensor, gelu: bool = False) -> Tensor:
        return product(x, self.weight, self.bias, gelu)
