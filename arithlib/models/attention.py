"""Causal attention by three interchangeable kernels: one to read, one for every machine, one for speed on a GPU.

`eager` writes the weights out and returns the pattern; `sdpa` is torch's own; `flash` is the flash-attn package,
where it is installed. Tests hold them equal. A model begins with `sdpa`: on an H100 it is the faster one for texts as
short as sums, and the only fast one that a compiled layer takes in (benchmarks/flash_attention.json).

Dimensions: B batch, T queries, S keys, H heads, K d_head. The T queries stand at the last T of the S places.
"""

import functools
import importlib
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

KERNELS = ("eager", "sdpa", "flash")
LARGEST_FLASH_HEAD = 256


class FlashUnavailable(RuntimeError):
    """The flash kernel was asked for where it cannot run; the message says why and what to use instead."""


def attend(
    q: Tensor, k: Tensor, v: Tensor, kernel: str = "sdpa", bias: Tensor | None = None
) -> tuple[Tensor, Tensor | None]:
    """What each query reads: softmax(q k / sqrt(K) + bias) v over the keys at its place and before.

    q: (B, T, H, K). k, v: (B, S, H, K). bias: (H, T, S) or (B, 1 or H, T, S) added to the scores, or None.
    Returns z (B, T, H, K) and the pattern (B, H, T, S), which only `eager` has; None otherwise.
    `flash` computes in half precision: what is float32 is rounded to bfloat16 and comes back as float32.
    Raises FlashUnavailable, or ValueError for a kernel of another name.
    """
    if kernel == "eager":
        return _eager(q, k, v, bias)
    if kernel == "sdpa":
        return _sdpa(q, k, v, bias), None
    if kernel == "flash":
        return _flash(q, k, v, bias), None
    raise ValueError(f"attention kernel {kernel!r}: choose one of {', '.join(KERNELS)}")


def _visible(T: int, S: int, device: torch.device) -> Tensor:
    """(T, S) True where a query may look."""
    return torch.ones(T, S, dtype=torch.bool, device=device).tril(S - T)


def _eager(q, k, v, bias):
    scores = torch.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
    if bias is not None:
        scores = scores + bias.to(scores.dtype)
    visible = _visible(q.shape[1], k.shape[1], q.device)
    pattern = scores.masked_fill(~visible, -torch.inf).softmax(-1)
    return torch.einsum("bhts,bshk->bthk", pattern, v), pattern


def _sdpa(q, k, v, bias):
    T, S = q.shape[1], k.shape[1]
    mask = None
    if bias is not None:
        mask = bias.to(q.dtype).masked_fill(~_visible(T, S, q.device), -torch.inf)
    elif 1 < T < S:  # torch's own causal mask puts the first query at the first key, not at the last T
        mask = _visible(T, S, q.device)
    # Not the condition itself: to a compiler of graphs a length is a symbol, and attention wants True or False.
    causal = True if mask is None and T > 1 else False  # noqa: SIM210
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal).transpose(1, 2)


def _flash(q, k, v, bias):
    if q.device.type != "cuda":
        raise FlashUnavailable(f"attention kernel 'flash' needs a CUDA device, not {q.device}: use 'sdpa' or 'eager'")
    function = _flash_function()
    if function is None:
        raise FlashUnavailable(
            "attention kernel 'flash' needs the package flash-attn (2.x) or flash-attn-4, and neither can be "
            "imported: install requirements-gpu.txt, or use 'sdpa' or 'eager'"
        )
    if bias is not None:
        raise FlashUnavailable(
            "attention kernel 'flash' adds no bias to the scores (FIRE and a window do): use 'sdpa' or 'eager'"
        )
    if q.shape[-1] > LARGEST_FLASH_HEAD:
        raise FlashUnavailable(
            f"attention kernel 'flash' takes heads of up to {LARGEST_FLASH_HEAD} numbers, not {q.shape[-1]}: "
            "use 'sdpa' or 'eager'"
        )
    if q.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise FlashUnavailable(
            f"attention kernel 'flash' takes bfloat16, float16, and float32 rounded to bfloat16, not {q.dtype}: "
            "use 'sdpa' or 'eager', or convert the model (`model.float()`)"
        )
    # Autocast leaves some inputs in float32. The source casts those to float16; bfloat16 cannot overflow.
    half = torch.bfloat16 if q.dtype == torch.float32 else q.dtype
    out = function(q.to(half), k.to(half), v.to(half), causal=True)
    return (out[0] if isinstance(out, tuple) else out).to(q.dtype)  # version 4 also returns the log-sum-exp


@functools.cache
def _flash_function() -> Callable | None:
    """flash_attn_func of whichever version is installed: both put the last query at the last key."""
    for module in ("flash_attn", "flash_attn.cute"):
        try:
            return importlib.import_module(module).flash_attn_func
        except (ImportError, AttributeError):
            continue
    return None
