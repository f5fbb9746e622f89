"""The kernels compute one function; flash refuses clearly where it cannot run."""

import sys
import types

import pytest
import torch

from arithlib.models import attention
from arithlib.models.attention import FlashUnavailable, attend


class OnGpu(torch.Tensor):
    """A tensor of this machine that says it were on another."""

    device = torch.device("cuda")


def on_gpu_by_name(*tensors):
    return [x.as_subclass(OnGpu) for x in tensors]


def qkv(T=5, S=9, dtype=torch.float32, seed=0):
    g = torch.Generator().manual_seed(seed)
    return [torch.randn(2, length, 3, 8, generator=g).to(dtype) for length in (T, S, S)]


def slow(q, k, v, bias):
    z = torch.zeros_like(q, dtype=torch.float64)
    B, T, H, K = q.shape
    first = k.shape[1] - T
    for b in range(B):
        for h in range(H):
            for t in range(T):
                seen = first + t + 1
                scores = k[b, :seen, h].double() @ q[b, t, h].double() / K**0.5
                if bias is not None:
                    scores = scores + bias[h, t, :seen].double()
                z[b, t, h] = scores.softmax(0) @ v[b, :seen, h].double()
    return z


@pytest.mark.parametrize(("T", "S"), [(9, 9), (5, 9), (1, 9), (1, 1)])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("kernel", ["eager", "sdpa"])
@pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-5), (torch.bfloat16, 4e-2)])
def test_every_kernel_is_softmax_over_the_keys_not_after_the_query(kernel, T, S, biased, dtype, atol):
    q, k, v = qkv(T, S, dtype)
    bias = torch.randn(3, T, S, generator=torch.Generator().manual_seed(1)) if biased else None
    z, pattern = attend(q, k, v, kernel, bias)
    torch.testing.assert_close(z.double(), slow(q, k, v, bias), atol=atol, rtol=0)
    assert (pattern is not None) == (kernel == "eager")


def test_the_pattern_is_causal_and_sums_to_one():
    _, pattern = attend(*qkv(), "eager")
    assert pattern.shape == (2, 3, 5, 9)
    torch.testing.assert_close(pattern.sum(-1), torch.ones(2, 3, 5))
    assert (pattern.triu(5) == 0).all() and (pattern.tril(4) > 0).sum() == pattern.tril(4).count_nonzero()


def test_gradients_agree():
    grads = []
    for kernel in ("eager", "sdpa"):
        leaves = [x.requires_grad_() for x in qkv(9, 9)]
        attend(*leaves, kernel)[0].square().sum().backward()
        grads.append([leaf.grad for leaf in leaves])
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


def test_flash_on_a_machine_without_it_and_unknown_kernels_are_refused():
    with pytest.raises(FlashUnavailable, match="needs a CUDA device, not cpu: use 'sdpa' or 'eager'"):
        attend(*qkv(), "flash")
    with pytest.raises(ValueError, match="'fast': choose one of eager, sdpa, flash"):
        attend(*qkv(), "fast")


@pytest.mark.parametrize("version", [2, 4])
def test_either_flash_package_is_found_and_used(monkeypatch, version):
    """A stand-in with each package's way of returning: 2.x the output, 4 also the log-sum-exp."""
    package, cute = types.ModuleType("flash_attn"), types.ModuleType("flash_attn.cute")
    calls = []

    def flash_attn_func(q, k, v, causal):
        calls.append(q.dtype)
        q, k, v = (x.as_subclass(torch.Tensor) for x in (q, k, v))
        z = attend(q.float(), k.float(), v.float(), "eager")[0].to(q.dtype)
        return z if version == 2 else (z, None)

    (package if version == 2 else cute).flash_attn_func = flash_attn_func
    monkeypatch.setitem(sys.modules, "flash_attn", package)
    monkeypatch.setitem(sys.modules, "flash_attn.cute", cute)
    attention._flash_function.cache_clear()
    try:
        assert attention._flash_function() is flash_attn_func
        z = attend(*on_gpu_by_name(*qkv()), "flash")[0]
        assert z.dtype == torch.float32
        torch.testing.assert_close(z.as_subclass(torch.Tensor), attend(*qkv(), "eager")[0], atol=4e-2, rtol=0)
        for half in (torch.float16, torch.bfloat16):
            assert attend(*on_gpu_by_name(*qkv(dtype=half)), "flash")[0].dtype == half
        assert calls == [torch.bfloat16, torch.float16, torch.bfloat16]
    finally:
        attention._flash_function.cache_clear()


def test_a_gpu_without_the_package_is_told_what_to_install(monkeypatch):
    monkeypatch.setattr(attention, "_flash_function", lambda: None)
    with pytest.raises(FlashUnavailable, match="flash-attn .2.x. or flash-attn-4.*requirements-gpu.txt"):
        attend(*on_gpu_by_name(*qkv()), "flash")


@pytest.mark.parametrize(
    ("inputs", "bias", "why"),
    [
        (qkv(), torch.zeros(3, 5, 9), "adds no bias.*: use 'sdpa' or 'eager'"),
        (torch.zeros(3, 1, 4, 1, 264).unbind(), None, "heads of up to 256 numbers, not 264: use 'sdpa' or 'eager'"),
        (qkv(dtype=torch.float64), None, "not torch.float64: use 'sdpa' or 'eager', or convert the model"),
    ],
    ids=["bias", "head", "float64"],
)
def test_what_flash_cannot_compute_is_refused_and_not_computed_otherwise(monkeypatch, inputs, bias, why):
    monkeypatch.setattr(attention, "_flash_function", lambda: lambda *_, causal: pytest.fail("it was called"))
    with pytest.raises(FlashUnavailable, match=why):
        attend(*on_gpu_by_name(*inputs), "flash", bias)


def test_the_largest_head_reaches_the_package(monkeypatch):
    monkeypatch.setattr(attention, "_flash_function", lambda: lambda q, k, v, causal: q)
    assert attend(*on_gpu_by_name(*torch.ones(3, 1, 4, 1, 256).unbind()), "flash")[0].shape == (1, 4, 1, 256)
