"""What a graphics card does of this book's training, into benchmarks/on_gpu.json (chapter 82).

    arithlib bench on_gpu

Two minutes on one card: seconds of a training step of runs at the published width, of the adder's step by the ways to
compute it, and operations a second beside those of one large matrix product.
"""

import datetime
import json
import statistics
import time
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from arithlib import experiments
from arithlib.doctor import describe, product_rate, try_kernel
from arithlib.experiments import Experiment, abacus
from arithlib.files import choose_device, write_atomic
from arithlib.models.attention import KERNELS
from chapters.ch82_published_tables import petaflops

ADDER = "abacus-gpu-s0"
OTHERS = ("depth-gpu-add-12x1-s0", "depth-gpu-add-1x1-s0", "depth-gpu-hop16-6x1-s0")


def gpu() -> torch.device:
    """The graphics card. Raises ValueError where there is none: on a CPU all this takes hours."""
    if (device := choose_device(None)).type != "cuda":
        raise ValueError("this benchmark is about a graphics card, and torch finds none here: see `arithlib doctor`")
    return device


def seconds_a_step(
    run: Experiment, device: torch.device, groups: int = 1, compiled: bool = True, kernel: str | None = None,
    warmup: int = 6, steps: int = 20,
) -> float:  # fmt: skip
    """Median over `steps` steps of training, each waited for; whatever is compiled is compiled before.

    groups: of similar length, in which an adder's batch is computed.
    """
    usual, abacus.GROUPS = abacus.GROUPS, dict.fromkeys(abacus.GROUPS, groups)
    model = run.build().to(device)
    objective = run.objective(model, device)
    model.kernel = kernel or model.kernel
    optimizer, taken = run.optimizer.build(model.parameters()), []
    with torch.compiler.set_stance("default" if compiled else "force_eager"):
        for step in range(warmup + steps):
            started = time.perf_counter()
            optimizer.zero_grad()
            objective.loss(model, step).backward()
            nn.utils.clip_grad_norm_(model.parameters(), run.optimizer.clip_norm)
            optimizer.step()
            if device.type == "cuda":
                torch.cuda.synchronize()
            taken.append(time.perf_counter() - started)
    abacus.GROUPS = usual
    return statistics.median(taken[warmup:])


def measure(adder: str, others: tuple[str, ...], device: torch.device, **length) -> dict:
    """All numbers of the page. adder, others: names of runs. length: `warmup` and `steps`."""
    run = experiments.get(adder)
    ways = {
        "compiled": seconds_a_step(run, device, **length),
        "compiled, two groups": seconds_a_step(run, device, groups=2, **length),
        "compiled, three groups": seconds_a_step(run, device, groups=3, **length),
        "compiled, twice the batch": seconds_a_step(replace(run, batch_size=2 * run.batch_size), device, **length),
        "as written": seconds_a_step(run, device, compiled=False, **length),
        "as written, eager attention": seconds_a_step(run, device, compiled=False, kernel="eager", **length),
    }
    steps = {adder: ways["compiled"]}
    steps |= {name: seconds_a_step(experiments.get(name), device, **length) for name in others}
    return {
        "device": describe(device),
        "torch": torch.__version__,
        "made": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "product_teraflops": product_rate(device, torch.bfloat16) / 1e12,
        "kernels": {kernel: try_kernel(kernel, device) for kernel in KERNELS},
        "adder_step_seconds": ways,
        "runs": {
            name: {
                "seconds": seconds,
                "teraflops": 1000 * petaflops(experiments.get(name)) / experiments.get(name).steps / seconds,
            }
            for name, seconds in steps.items()
        },
    }


def main() -> None:
    found = measure(ADDER, OTHERS, gpu())
    target = Path(__file__).with_suffix(".json")
    write_atomic(target, (json.dumps(found, indent=1) + "\n").encode())
    print(target)


if __name__ == "__main__":
    main()
