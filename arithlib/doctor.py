"""What a machine has for this library: versions, device, attention kernels, and how fast it multiplies matrices."""

import os
import platform
import time
from collections.abc import Iterator

import torch

import arithlib
from arithlib import checkpoints
from arithlib.files import device_name
from arithlib.models.attention import KERNELS, FlashUnavailable, attend

SUM = (99999999999999999999, 1)


def examine(device: torch.device) -> Iterator[tuple[str, str]]:
    """What there is on this machine, and what of it works on this device, one (name, finding) after another."""
    yield "arithlib", f"{arithlib.__version__} on Python {platform.python_version()}, {platform.platform()}"
    yield "torch", f"{torch.__version__}, {torch.get_num_threads()} threads on {os.cpu_count()} cores"
    yield "device", describe(device)
    for kernel in KERNELS:
        yield f"attention, {kernel}", try_kernel(kernel, device)
    # Only a GPU is asked to train in half precision.
    for dtype in (torch.float32, torch.bfloat16) if device.type == "cuda" else (torch.float32,):
        yield f"products, {str(dtype).removeprefix('torch.')}", f"{product_rate(device, dtype) / 1e9:,.0f} GFLOP/s"
    a, b = SUM
    yield "adder-certified", f"{a} + {b} = {checkpoints.load('adder-certified').add(a, b)}"


def describe(device: torch.device) -> str:
    """Its name; of a GPU also its memory, its compute capability and the CUDA that torch was built with."""
    if device.type == "cpu":
        return f"cpu ({platform.machine()})" + ("" if torch.cuda.is_available() else "; torch finds no GPU")
    found = torch.cuda.get_device_properties(device)
    return (
        f"{device_name(device)}, {found.total_memory / 2**30:.0f} GiB, capability {found.major}.{found.minor}, "
        f"CUDA {torch.version.cuda}"
    )


def try_kernel(kernel: str, device: torch.device) -> str:
    """How far an attention kernel is from the one that is written out, on a small problem, gradients included.

    Or why it cannot run.
    """
    B, T, S, H, K = 2, 32, 64, 4, 32
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(B, n, H, K, generator=generator).to(device).requires_grad_() for n in (T, S, S)]
    upstream = torch.randn(B, T, H, K, generator=generator).to(device)

    def found(kernel):
        z, _ = attend(*inputs, kernel)
        return z.detach(), *torch.autograd.grad(z, inputs, upstream)

    try:
        ours = found(kernel)
    except FlashUnavailable as problem:
        return f"not here: {problem}"
    except Exception as problem:  # a package may be there and be made for other cards; some raise, some assert
        return f"fails: {str(problem).partition(chr(10))[0] or type(problem).__name__}"
    error = max(float((a - b).abs().max()) for a, b in zip(ours, found("eager"), strict=True))
    return f"works; off by at most {error:.1g} (entries of size 1)"


def product_rate(device: torch.device, dtype: torch.dtype, repeats: int = 10) -> float:
    """Floating-point operations a second of a square matrix product, the best of some."""
    n = 8192 if device.type == "cuda" else 1024
    a, b = torch.randn(2, n, n, device=device).to(dtype)
    return 2 * n**3 / min(_seconds(lambda: a @ b, device) for _ in range(repeats))


def _seconds(work, device: torch.device) -> float:
    """What it takes; a GPU is waited for, before and after."""
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    wait()
    started = time.perf_counter()
    work()
    wait()
    return time.perf_counter() - started
