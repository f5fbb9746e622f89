"""The flash-attn package beside torch's own attention, into benchmarks/flash_attention.json (chapter 82).

    arithlib bench flash_attention

Two minutes on one card: how far each is from float64, a training step of the adder with each, and attention alone at
three lengths of text, forward and backward.
"""

import datetime
import json
import time
from importlib import metadata
from pathlib import Path

import torch

from arithlib import experiments
from arithlib.doctor import describe
from arithlib.files import write_atomic
from arithlib.models.attention import attend
from benchmarks.on_gpu import ADDER, gpu, seconds_a_step

KERNELS = ("sdpa", "flash")
SHAPES = ((8, 65, 65, 8, 64), (8, 20, 65, 8, 64), (8, 1, 65, 8, 64), (2, 200, 200, 16, 32))  # B, T, S, H, K
LENGTHS = (64, 512, 2048)
TOKENS = 2**17  # of the texts of a length together
ROUNDS = 2


def errors(
    kernels: tuple[str, ...], B: int, T: int, S: int, H: int, K: int, device: torch.device
) -> dict[str, float]:
    """How far each kernel is in bfloat16 from attention written out in float64.

    The largest of four distances, of the output and the three gradients, each as a share of the true one's length.
    """
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(B, n, H, K, generator=generator).to(device, torch.bfloat16) for n in (T, S, S)]
    upstream = torch.randn(B, T, H, K, generator=generator).to(device)

    def found(kernel, dtype):
        leaves = [x.to(dtype).requires_grad_() for x in inputs]
        z = attend(*leaves, kernel)[0]
        return [x.detach().double() for x in (z, *torch.autograd.grad(z, leaves, upstream.to(dtype)))]

    true = found("eager", torch.float64)
    return {
        kernel: max(
            float((ours - x).norm() / x.norm()) for ours, x in zip(found(kernel, torch.bfloat16), true, strict=True)
        )
        for kernel in kernels
    }


def seconds_alone(
    kernel: str, T: int, tokens: int, device: torch.device, warmup: int = 3, repeats: int = 10
) -> float:
    """Mean time of attention over texts of T tokens, 8 heads of 64 in bfloat16, forward and backward."""
    shape = (tokens // T, T, 8, 64)
    inputs = [torch.randn(shape, device=device, dtype=torch.bfloat16).requires_grad_() for _ in range(3)]

    def several(times):
        for _ in range(times):
            attend(*inputs, kernel)[0].sum().backward()
        if device.type == "cuda":
            torch.cuda.synchronize()

    several(warmup)
    started = time.perf_counter()
    several(repeats)
    return (time.perf_counter() - started) / repeats


def measure(
    adder: str, kernels: tuple[str, ...], device: torch.device, tokens: int = TOKENS, rounds: int = ROUNDS, **length
) -> dict:
    """All numbers of the page. adder: name of a run. length: `warmup` and `steps` of its steps."""
    run = experiments.get(adder)
    return {
        "device": describe(device),
        "torch": torch.__version__,
        "made": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "errors": {"{} x {} x {} x {} x {}".format(*shape): errors(kernels, *shape, device) for shape in SHAPES},
        "adder_step_seconds": {
            way: _by_turns(
                kernels, rounds, lambda k, c=compiled: seconds_a_step(run, device, compiled=c, kernel=k, **length)
            )
            for way, compiled in (("as written", False), ("compiled", True))
        },
        "alone_seconds": {
            str(T): _by_turns(kernels, 1, lambda k, T=T: seconds_alone(k, T, tokens, device)) for T in LENGTHS
        },
    }


def _by_turns(kernels, rounds, seconds):
    taken = {kernel: [] for kernel in kernels}
    for _ in range(rounds):
        for kernel in kernels:
            taken[kernel].append(seconds(kernel))
    return taken


def package() -> str:
    """The flash-attn package that is measured, and its version. Raises ValueError where there is none.

    Of two, the one that the kernel prefers.
    """
    for name in ("flash-attn", "flash-attn-4"):
        try:
            return f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue
    raise ValueError("neither flash-attn (2.x) nor flash-attn-4 is installed: install requirements-gpu.txt")


def main() -> None:
    device = gpu()
    found = {"package": package()} | measure(ADDER, KERNELS, device)
    target = Path(__file__).with_suffix(".json")
    write_atomic(target, (json.dumps(found, indent=1) + "\n").encode())
    print(target)


if __name__ == "__main__":
    main()
