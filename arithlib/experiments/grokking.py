"""Experiments on modular addition (part 1 and 2): the networks that grok."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from arithlib.analysis import progress
from arithlib.analysis.folded import pack_within
from arithlib.analysis.fourier import coefficient_norms, fourier_basis, key_frequencies, power_spectrum, wave_rows
from arithlib.evaluation import accuracy, answer_grid, cross_entropy
from arithlib.experiments.base import Experiment
from arithlib.models.grokking import GrokkingConfig, GrokkingTransformer
from arithlib.settings import of_kind
from arithlib.tasks.modular import ModularAddition, merge_mirrored


class ModularObjective:
    """Full-batch cross-entropy on the training pairs of a modular-addition task.

    A model without positions treats (a, b) and (b, a) alike, so mirrored pairs are one row with weight two.
    """

    def __init__(self, task: ModularAddition, model: GrokkingTransformer, device: torch.device):
        self.p = task.p
        mask = task.train_mask
        if model.config.positions == "none":
            self.all_pairs, _ = merge_mirrored(task.pairs)
            train_weight, test_weight = self._counts(mask), self._counts(~mask)
        else:
            self.all_pairs = task.pairs
            train_weight, test_weight = mask.double(), (~mask).double()
        trains = train_weight > 0
        self.all_pairs, answers = self.all_pairs.to(device), task.answers(self.all_pairs).to(device)
        self.train_weight, self.test_weight = train_weight.to(device), test_weight.to(device)
        self.answers = answers
        self.pairs, self.pair_answers = self.all_pairs[trains], answers[trains]
        self.weights = self.train_weight[trains]
        mixable = not model.config.layer_norm
        self.mixer = model.mixer(self.pairs) if mixable else None
        self.all_mixer = model.mixer(self.all_pairs) if mixable else None

    def _counts(self, mask: Tensor) -> Tensor:
        """How many of the ordered pairs under `mask` fold into each row of `all_pairs`."""
        counts = mask.view(self.p, self.p).double()
        a, b = self.all_pairs.T
        return torch.where(a == b, counts[a, b], counts[a, b] + counts[b, a])

    def loss(self, model, step):
        return cross_entropy(model.answer_logits(self.pairs, self.mixer), self.pair_answers, self.weights)

    @torch.no_grad()
    def evaluate(self, model):
        """Losses and accuracies on both sets, squared norms, and the Fourier norms of W_E."""
        logits = model.answer_logits(self.all_pairs, self.all_mixer)
        measured = {}
        for split, weight in (("train", self.train_weight), ("test", self.test_weight)):
            measured[f"{split}_loss"] = float(cross_entropy(logits, self.answers, weight))
            measured[f"{split}_accuracy"] = accuracy(logits, self.answers, weight)
        measured["weight_norm_squared"] = float(sum(w.double().square().sum() for w in model.parameters()))
        measured["W_E_norm_squared"] = float(model.W_E.double().square().sum())
        measured["W_E_norms"] = coefficient_norms(model.W_E[: self.p].cpu()).numpy()
        return measured


@of_kind("grokking")
@dataclass(frozen=True, kw_only=True)
class GrokkingExperiment(Experiment):
    """A GrokkingTransformer on modular addition, full batch.

    frequencies: None, or the only frequencies that the residues' embeddings may use: after every update W_E is
        projected back on their circles (and the mean). Chapter 11 asks with it how many circles are needed.
    """

    task: ModularAddition = field(default_factory=ModularAddition)
    model: GrokkingConfig = field(default_factory=GrokkingConfig)
    frequencies: tuple[int, ...] | None = None

    network = GrokkingTransformer

    def __post_init__(self):
        super().__post_init__()
        if self.task.p != self.model.p:
            raise ValueError(f"{self.name}: the task is modulo {self.task.p}, the model modulo {self.model.p}")

    def build(self):
        model = super().build()
        self.after_step(model)
        return model

    def objective(self, model, device):
        return ModularObjective(self.task, model, device)

    @torch.no_grad()
    def add(self, model, a, b):
        """(a + b) mod p: the most likely residue after `a b =`."""
        p = self.task.p
        if not (a < p and b < p):
            raise ValueError(f"a = {a}, b = {b}: this model adds residues 0 to {p - 1} modulo {p}")
        return int(model.answer_logits(torch.tensor([[a, b]], device=model.W_E.device))[0, :p].argmax())

    @torch.no_grad()
    def after_step(self, model):
        if self.frequencies is None:
            return
        p = self.task.p
        waves = fourier_basis(p, model.W_E.dtype)[[0, *wave_rows(self.frequencies)]].to(model.W_E.device)
        model.W_E[:p] = waves.T @ (waves @ model.W_E[:p])

    @torch.no_grad()
    def finish(self, model, run):
        """Restricted and excluded loss at each snapshot, for the key frequencies of the finished model."""
        if not run.snapshots:
            return {}
        freqs = key_frequencies(power_spectrum(model.W_L.T.cpu()))
        train = self.task.train_mask.view(self.task.p, self.task.p)
        then = GrokkingTransformer(self.model)
        measured = {"progress_step": [], "restricted_loss": [], "excluded_loss": [], "clock_variance": []}
        for step, parameters in sorted(run.snapshots.items()):
            then.load_state_dict(parameters)
            logits = answer_grid(then, self.task.p)
            centred = logits - logits.mean(-1, keepdim=True)
            measured["progress_step"].append(step)
            measured["restricted_loss"].append(progress.grid_loss(progress.restrict(logits, freqs)))
            measured["excluded_loss"].append(progress.grid_loss(progress.exclude(logits, freqs), train))
            clock = progress.clock_fit(logits, freqs)[1]
            measured["clock_variance"].append(progress.variance_explained(centred, clock))
        return {name: np.array(values) for name, values in measured.items()}


@of_kind("grokking-snapshots")
@dataclass(frozen=True, kw_only=True)
class GrokkingSnapshots(GrokkingExperiment):
    """A run of which each snapshot is kept, folded small enough for a page: as history STEP/TABLE.

    circles: the frequencies on whose circles the tokens are kept.
    bound: how far either of its products may move a snapshot's logits, as `analysis.folded.pack_within` has it.
    """

    circles: tuple[int, ...]
    bound: float

    def finish(self, model, run):
        then, measured = GrokkingTransformer(self.model), {}
        for step, parameters in sorted(run.snapshots.items()):
            then.load_state_dict(parameters)
            packed = pack_within(then, self.circles, self.bound)
            measured |= {f"{step}/{name}": table.numpy() for name, table in packed.items()}
        return measured


class GrokkingModels(nn.Module):
    """S models of one size as one module; each parameter has their axis first, (S, ...)."""

    def __init__(self, models: Iterable[GrokkingTransformer]):
        super().__init__()
        states = [model.state_dict() for model in models]
        self.stacked = nn.ParameterDict(
            {name: nn.Parameter(torch.stack([state[name] for state in states])) for name in states[0]}
        )

    def one(self, index: int) -> dict[str, Tensor]:
        """The parameters of one model, which `GrokkingTransformer.load_state_dict` takes."""
        return {name: value[index].detach() for name, value in self.stacked.items()}


class _AtEquals(nn.Module):
    """What a model answers as a forward pass, which is what functional_call can call."""

    def __init__(self, model: GrokkingTransformer):
        super().__init__()
        self.model = model

    def forward(self, pairs):
        return self.model.answer_logits(pairs)


class StackObjective:
    """The sum of each model's own loss on its own pairs, so that each gets its own gradient."""

    def __init__(self, alone: list[GrokkingExperiment], device: torch.device):
        self.answering = alone[0].build().to(device)
        self.parts = [each.objective(self.answering, device) for each in alone]
        # Ordered pairs, since of these every model has as many.
        self.pairs = torch.stack([each.task.pairs[each.task.train_mask] for each in alone]).to(device)
        self.answers = self.pairs.sum(-1) % alone[0].task.p
        at_equals = _AtEquals(self.answering)
        self.logits = vmap(
            lambda weights, pairs: functional_call(
                at_equals, {f"model.{name}": value for name, value in weights.items()}, (pairs,)
            )
        )

    def loss(self, model, step):
        logits = self.logits(dict(model.stacked), self.pairs)
        return len(self.pairs) * cross_entropy(logits.flatten(0, 1), self.answers.flatten())

    @torch.no_grad()
    def evaluate(self, model):
        """What `ModularObjective` measures of each, along a first axis; and the mean accuracy on unseen pairs."""
        measured = []
        for index, part in enumerate(self.parts):
            self.answering.load_state_dict(model.one(index))
            measured.append(part.evaluate(self.answering))
        together = {name: np.array([each[name] for each in measured]) for name in measured[0]}
        return {"mean_test_accuracy": float(together["test_accuracy"].mean())} | together


@of_kind("grokking-stack")
@dataclass(frozen=True, kw_only=True)
class GrokkingStack(Experiment):
    """Several GrokkingTransformers trained at once, each as it would be alone but for rounding.

    models: how many. The first has `seed` and the pairs of `task`; each further one has the next seeds of both.
    """

    models: int
    task: ModularAddition = field(default_factory=ModularAddition)
    model: GrokkingConfig = field(default_factory=GrokkingConfig)

    def alone(self, index: int) -> GrokkingExperiment:
        """The run of one of the models by itself."""
        return GrokkingExperiment(
            name=f"{self.name}-{index}", about=self.about, steps=self.steps,
            evaluate_every=self.evaluate_every, seed=self.seed + index, optimizer=self.optimizer, model=self.model,
            task=replace(self.task, data_seed=self.task.data_seed + index),
        )  # fmt: skip

    def build(self):
        return GrokkingModels(self.alone(index).build() for index in range(self.models))

    def objective(self, model, device):
        return StackObjective([self.alone(index) for index in range(self.models)], device)

    def add(self, model, a, b):
        """As the first model of the stack says it."""
        first = self.alone(0).build()
        first.load_state_dict(model.one(0))
        return self.alone(0).add(first, a, b)
