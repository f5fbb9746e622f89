"""One training loop for every experiment of the book.

An experiment hands the loop an *objective*: something that gives a loss for a step and numbers for an evaluation.
Both depend on the step alone (a sampled batch is seeded by the step), so a run that was killed continues from its
last saved state to the bit-identical result on the same machine.
"""

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn
from tqdm.auto import tqdm

from arithlib.files import load_tensors, save_tensors
from arithlib.settings import of_kind


@of_kind("adamw")
@dataclass(frozen=True)
class AdamW:
    """Decoupled weight decay on every parameter (Loshchilov and Hutter 2019), with a linear warm-up.

    The defaults are those of Nanda et al. 2023: learning rate 1e-3, betas (0.9, 0.98), ten steps of warm-up.

    schedule: what the rate does afterwards: "constant", "cosine" (falls to zero over the run) or "trapezoid" (falls
        to zero along a line, over the last `decay_steps`).
    clip_norm: gradients of a larger norm are scaled down to it; None leaves them.
    """

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 1.0
    warmup_steps: int = 10
    schedule: str = "constant"
    decay_steps: int = 0
    clip_norm: float | None = None

    def __post_init__(self):
        if self.schedule not in ("constant", "cosine", "trapezoid"):
            raise ValueError(f"schedule = {self.schedule!r}: choose one of constant, cosine, trapezoid")

    @classmethod
    def cosine(cls, lr: float, steps: int, **more) -> "AdamW":
        """As transformers are commonly trained: a twentieth of the steps to warm up, then a cosine down to zero."""
        common = dict(schedule="cosine", warmup_steps=steps // 20, weight_decay=0.01, clip_norm=1.0)
        return cls(lr, **common | more)

    def build(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.AdamW(parameters, self.lr, self.betas, weight_decay=self.weight_decay, fused=True)

    def require(self, steps: int) -> None:
        """Raises ValueError for a run that is too short for this schedule."""
        if self.schedule != "constant" and steps <= self.warmup_steps + self.decay_steps:
            raise ValueError(
                f"{steps} steps leave nothing between {self.warmup_steps} steps of warm-up "
                f"and {self.decay_steps} of decay"
            )

    def lr_at(self, step: int, steps: int) -> float:
        """The learning rate at one of the steps of a run."""
        share = 1.0
        if self.schedule == "cosine":
            done = max(step - self.warmup_steps, 0) / (steps - self.warmup_steps)
            share = (1 + math.cos(math.pi * done)) / 2
        elif self.schedule == "trapezoid" and self.decay_steps:
            share = min((steps - step) / self.decay_steps, 1.0)
        return self.lr * min((step + 1) / max(self.warmup_steps, 1), 1.0) * share


@of_kind("settled")
@dataclass(frozen=True)
class Settled:
    """When a run has shown what it is there for: all unseen examples right, and weights that hardly shrink any more.

    share, steps: by less than this share of their squared norm, over so many steps.
    """

    share: float = 0.02
    steps: int = 100

    def reached(self, history: dict[str, list]) -> bool:
        """Whether it is so at the last evaluation; needs `test_accuracy` and `weight_norm_squared`."""
        step, norm = history["step"], history["weight_norm_squared"]
        before = step[-1] - self.steps
        if history["test_accuracy"][-1] < 1 or before not in step:
            return False
        return norm[-1] > (1 - self.share) * norm[step.index(before)]


class Objective(Protocol):
    """What an experiment minimises and measures."""

    def loss(self, model: nn.Module, step: int) -> Tensor:
        """The scalar training loss of this step."""

    def evaluate(self, model: nn.Module) -> dict[str, float | np.ndarray]:
        """Named measurements of the model as it is; the same names and shapes at every call."""


@contextmanager
def subnormals_as_zero() -> Iterator[None]:
    """While this lasts, numbers below the normal ones (2^-126 in float32) count as zero in this thread.

    So small are the gradients of a model that is nearly certain, and some processors compute with them several times
    slower: a step of a grokked model takes a quarter of the time without them.
    """
    were_zero = bool(torch.tensor(2.0**-126) / 2 == 0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(were_zero)


class OutOfTime(Exception):
    """A run was asked to stop before its last step; its state is saved, and the same call continues it."""


@dataclass
class Run:
    """What a training leaves behind.

    history: name -> (E,) or (E, ...) array, one entry an evaluation; `step` holds the steps.
    snapshots: step -> the parameters then. seconds: training time over all sittings.
    """

    history: dict[str, np.ndarray]
    snapshots: dict[int, dict[str, Tensor]]
    seconds: float


@subnormals_as_zero()
def train(
    model: nn.Module,
    objective: Objective,
    optimizer: AdamW,
    steps: int,
    *,
    evaluate_every: int,
    snapshot_steps: Iterable[int] = (),
    state: Path | None = None,
    save_every: float = 30.0,
    label: str = "training",
    progress: bool | None = None,
    after_step: Callable[[nn.Module], None] | None = None,
    minutes: float | None = None,
    until: Settled | None = None,
) -> Run:
    """Train `model` in place for `steps` steps; evaluated at step 0, every `evaluate_every` and at the last.

    state: file that holds the run so far. It is written at most every `save_every` seconds, atomically, and read at
        the start, so that an interrupted run loses no more than that. Removing it is the caller's business.
    snapshot_steps: steps at which the parameters are kept (0 is before the first step).
    progress: None shows a bar where somebody watches: on a terminal, or in a notebook run by hand.
    after_step: applied to the model after each update, for constrained parameters.
    minutes: stop after so long, with the state saved, by raising OutOfTime.
    until: end the run at the first evaluation at which this is reached.
    """
    optimizer.require(steps)
    torch_optimizer = optimizer.build(model.parameters())
    history: dict[str, list] = {"step": []}
    snapshots: dict[int, dict[str, Tensor]] = {}
    snapshot_steps = set(snapshot_steps)
    first, earlier_seconds = 0, 0.0
    if state is not None and state.exists():
        first, earlier_seconds, history, snapshots = _restore(state, model, torch_optimizer)

    started = last_saved = time.perf_counter()
    bar = tqdm(
        total=steps,
        initial=first,
        desc=label,
        unit="step",
        **bar_options(progress),
    )
    try:
        for step in range(first, steps + 1):
            if len(history["step"]) == 0 or history["step"][-1] != step:
                if step % evaluate_every == 0 or step == steps:
                    measured = {"step": step} | objective.evaluate(model)
                    for name, value in measured.items():
                        history.setdefault(name, []).append(value)
                    bar.set_postfix_str(_summary(measured), refresh=False)
            if until is not None and history["step"][-1] == step and until.reached(history):
                steps = step
            if step in snapshot_steps and step not in snapshots:
                snapshots[step] = {k: v.detach().cpu().clone() for k, v in model.state_dict().items()}
            late = minutes is not None and time.perf_counter() - started > 60 * minutes
            due = late or time.perf_counter() - last_saved > save_every or step == steps
            if state is not None and due:
                seconds = earlier_seconds + time.perf_counter() - started
                _save(state, step, seconds, model, torch_optimizer, history, snapshots)
                last_saved = time.perf_counter()
            if step == steps:
                break
            if late:
                raise OutOfTime(f"{label}: {step:,} of {steps:,} steps are done. The same command continues.")

            for group in torch_optimizer.param_groups:
                group["lr"] = optimizer.lr_at(step, steps)
            torch_optimizer.zero_grad()
            loss = objective.loss(model, step)
            loss.backward()
            if optimizer.clip_norm is not None:
                nn.utils.clip_grad_norm_(model.parameters(), optimizer.clip_norm)
            torch_optimizer.step()
            if after_step is not None:
                after_step(model)
            bar.update()
    finally:
        bar.close()
    seconds = earlier_seconds + time.perf_counter() - started
    return Run({name: np.array(values) for name, values in history.items()}, snapshots, seconds)


def bar_options(shown: bool | None) -> dict:
    """Whether tqdm shows a bar: where nobody says, wherever somebody watches, unless TQDM_DISABLE is set."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shown is None and (sys.stderr.isatty() or hasattr(shell, "kernel")):
        return {}
    return {"disable": not shown}


def _summary(measured: dict) -> str:
    shown = ((name, value) for name, value in measured.items() if name != "step" and np.ndim(value) == 0)
    return ", ".join(f"{name.replace('_', ' ')} {value:.3g}" for name, value in list(shown)[:4])


def _save(path, step, seconds, model, optimizer, history, snapshots):
    tensors = {f"model/{k}": v for k, v in model.state_dict().items()}
    for index, slots in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{index}/{slot}": value for slot, value in slots.items()}
    tensors |= {f"history/{k}": torch.from_numpy(np.array(v)) for k, v in history.items()}
    for at, parameters in snapshots.items():
        tensors |= {f"snapshot/{at}/{k}": v for k, v in parameters.items()}
    tensors["step"] = torch.tensor(step)
    tensors["seconds"] = torch.tensor(seconds, dtype=torch.float64)
    save_tensors(path, tensors)


def _restore(path, model, optimizer):
    tensors, _ = load_tensors(path)
    groups: dict[str, dict] = {"model": {}, "optimizer": {}, "history": {}, "snapshot": {}}
    for name, value in tensors.items():
        kind, _, rest = name.partition("/")
        if kind in groups:
            groups[kind][rest] = value
    model.load_state_dict(groups["model"])
    optimizer_state: dict[int, dict[str, Tensor]] = {}
    for name, value in groups["optimizer"].items():
        index, slot = name.split("/")
        optimizer_state.setdefault(int(index), {})[slot] = value
    optimizer.load_state_dict({"state": optimizer_state, "param_groups": optimizer.state_dict()["param_groups"]})
    history = {k: list(v.numpy()) for k, v in groups["history"].items()}
    snapshots: dict[int, dict[str, Tensor]] = {}
    for name, value in groups["snapshot"].items():
        at, key = name.split("/", 1)
        snapshots.setdefault(int(at), {})[key] = value
    return int(tensors["step"]), float(tensors["seconds"]), history, snapshots
