"""Many small models trained as one: parameters stacked along a first axis S, one kernel launch for all.

A grokking model is far too small to fill a GPU. Experiments that differ only in seeds and weight decay share every
shape, so their stack is one batched model, and the same loop trains it.
"""

import dataclasses
import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from arithlib import checkpoints, experiments
from arithlib.evaluation import per_example_loss
from arithlib.experiments import GrokkingExperiment, ModularObjective
from arithlib.files import choose_device
from arithlib.models.grokking import GrokkingTransformer
from arithlib.training import AdamW, Run, train


class _Answering(nn.Module):
    """`answer_logits` as a forward pass, which is what functional_call can call."""

    def __init__(self, model: GrokkingTransformer):
        super().__init__()
        self.model = model

    def forward(self, pairs: Tensor) -> Tensor:
        return self.model.answer_logits(pairs)


class Stack(nn.Module):
    """S models of one config as one module; parameter `name` has shape (S, ...)."""

    def __init__(self, models: list[GrokkingTransformer]):
        super().__init__()
        stacked, _ = stack_module_state(models)
        self.stacked = nn.ParameterDict({name: nn.Parameter(value.detach()) for name, value in stacked.items()})
        self.template = [_Answering(models[0])]  # in a list: its own parameters are not this module's

    def answer_logits(self, pairs: Tensor) -> Tensor:
        """(S, B, 2) pairs, each model its own -> (S, B, V) logits at '='."""
        parameters = {f"model.{name}": value for name, value in self.stacked.items()}
        return vmap(lambda p, x: functional_call(self.template[0], p, (x,)))(parameters, pairs)

    def unstack(self, index: int) -> dict[str, Tensor]:
        """The parameters of one model of the stack."""
        return {name: value[index].detach().clone() for name, value in self.stacked.items()}


@dataclass(frozen=True)
class StackedAdamW(AdamW):
    """AdamW whose weight decay differs along the stack. decays: one a model."""

    decays: tuple[float, ...] = ()

    def build(self, parameters):
        parameters = list(parameters)
        optimizer = torch.optim.AdamW(parameters, self.lr, self.betas, weight_decay=0.0, fused=True)
        decays = torch.tensor(self.decays, device=parameters[0].device)

        @torch.no_grad()
        def decay(optimizer, args, kwargs):
            keep = 1 - optimizer.param_groups[0]["lr"] * decays
            for parameter in parameters:
                parameter.mul_(keep.view(-1, *[1] * (parameter.ndim - 1)))

        optimizer.register_step_pre_hook(decay)
        return optimizer


class StackedObjective:
    """The sum over the stack of each model's own loss, so that each gets its own gradient.

    Models see different training pairs; shorter lists are padded with pairs of weight zero.
    """

    def __init__(self, parts: list[ModularObjective], models: list[GrokkingTransformer], compile: bool):
        self.parts, self.models = parts, models
        longest = max(len(part.pairs) for part in parts)

        def pad(x):
            return torch.cat([x, x.new_zeros(longest - len(x), *x.shape[1:])])

        self.pairs = torch.stack([pad(part.pairs) for part in parts])
        self.answers = torch.stack([pad(part.pair_answers) for part in parts])
        weights = torch.stack([pad(part.weights) for part in parts])
        self.weights = weights / weights.sum(1, keepdim=True)
        self.step_loss = torch.compile(self._loss) if compile else self._loss

    def _loss(self, model: Stack) -> Tensor:
        logits = model.answer_logits(self.pairs)
        return (per_example_loss(logits, self.answers) * self.weights).sum()

    def loss(self, model: Stack, step: int) -> Tensor:
        return self.step_loss(model)

    def evaluate(self, model: Stack) -> dict[str, np.ndarray]:
        """Each model's own measurements, stacked along a first axis."""
        measured = []
        for index, (part, single) in enumerate(zip(self.parts, self.models, strict=True)):
            single.load_state_dict(model.unstack(index))
            measured.append(part.evaluate(single))
        return {name: np.array([m[name] for m in measured]) for name in measured[0]}


def make(
    names: list[str], folder: Path | None = None, *, device: str | None = None, compile: bool | None = None
) -> list[checkpoints.Trained]:
    """Train experiments that differ only in seeds and weight decay as one stack; one checkpoint each.

    compile: None compiles the loss on a GPU only.
    """
    chosen = [experiments.get(name) for name in names]
    _require_alike(chosen)
    first = chosen[0]
    folder = folder or checkpoints.local_folder()
    device = choose_device(device)
    models = [experiment.build().to(device) for experiment in chosen]
    stack = Stack(models)
    objective = StackedObjective(
        [experiment.objective(model, device) for experiment, model in zip(chosen, models, strict=True)],
        models,
        compile=device.type == "cuda" if compile is None else compile,
    )
    settings = dataclasses.asdict(first.optimizer) | {"weight_decay": 0.0}
    optimizer = StackedAdamW(**settings, decays=tuple(e.optimizer.weight_decay for e in chosen))
    together = hashlib.sha256("".join(e.hash() for e in chosen).encode()).hexdigest()[:16]
    state = folder / f"stack-{together}.state.safetensors"
    run = train(
        stack,
        objective,
        optimizer,
        first.steps,
        evaluate_every=first.evaluate_every,
        snapshot_steps=first.snapshot_steps,
        state=state,
        label=f"{len(chosen)} models",
    )
    trained = [_finish(index, e, stack, run, folder, device, len(chosen)) for index, e in enumerate(chosen)]
    state.unlink(missing_ok=True)
    return trained


def _finish(index, experiment, stack, run, folder, device, size) -> checkpoints.Trained:
    model = experiment.build()
    model.load_state_dict({name: value.cpu() for name, value in stack.unstack(index).items()})
    history = {name: values if name == "step" else values[:, index] for name, values in run.history.items()}
    snapshots = {
        step: {name.removeprefix("stacked."): value[index] for name, value in parameters.items()}
        for step, parameters in run.snapshots.items()
    }
    own = Run(history, snapshots, run.seconds)
    history = history | experiment.finish(model, own)
    note = checkpoints.provenance(experiment, history, run.seconds, device, stack=size)
    trained = checkpoints.Trained(experiment, model.eval(), history, note)
    checkpoints.write(trained, folder)
    return trained


def _require_alike(chosen: list[GrokkingExperiment]) -> None:
    def shape(experiment):
        return dataclasses.replace(
            experiment,
            name="",
            about="",
            model_seed=0,
            task=dataclasses.replace(experiment.task, data_seed=0),
            optimizer=dataclasses.replace(experiment.optimizer, weight_decay=0.0),
        )

    for experiment in chosen:
        if not isinstance(experiment, GrokkingExperiment) or experiment.frequencies is not None:
            raise ValueError(f"{experiment.name} cannot join a stack: only unconstrained grokking experiments can")
        if shape(experiment) != shape(chosen[0]):
            raise ValueError(
                f"{experiment.name} and {chosen[0].name} differ in more than seeds and weight decay: "
                "train them in separate stacks"
            )
