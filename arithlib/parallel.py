"""One training on several devices: each process takes its share of every batch, and the gradients are added up.

    torchrun --nproc-per-node 2 -m arithlib train abacus-gpu-s0

Every process draws the same batch from the same seed and computes its own rows, so the sum of the gradients is that
of one process, up to the rounding of a different order. All of them read the run's folder.
"""

import os

import torch
import torch.distributed as dist
from torch import nn


def size() -> int:
    """How many processes train together; 1 where none were launched."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Which of them this is, from 0; the first one writes files and shows progress."""
    return dist.get_rank() if size() > 1 else 0


def join(device: torch.device) -> torch.device:
    """Join the processes that `torchrun` launched, if it did; returns the device of this one."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return device
    on_gpu = device.type == "cuda"
    if on_gpu:
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    if not dist.is_initialized():
        dist.init_process_group("nccl" if on_gpu else "gloo")
    return device


def sum_gradients(model: nn.Module) -> None:
    """Replace each gradient by its sum over the processes, in one message."""
    if size() == 1:
        return
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
    for gradient, total in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
        gradient.copy_(total.view_as(gradient))


def any_process(flag: bool, device: torch.device) -> bool:
    """Whether it holds for any of the processes, so that all of them stop together."""
    if size() == 1:
        return flag
    flags = torch.tensor(float(flag), device=device)
    dist.all_reduce(flags)
    return bool(flags)


def wait() -> None:
    """Until every process is here: what the first one wrote, the others can read."""
    if size() > 1:
        dist.barrier()
