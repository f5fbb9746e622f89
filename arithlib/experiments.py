"""The registry: every training run of the book is one frozen dataclass with a name.

`python -m arithlib list` prints it; `python -m arithlib train NAME` runs one. What a run computes is fixed by the
fields that enter its hash, so that a checkpoint can prove which experiment it came from.
"""

import dataclasses
import difflib
import fnmatch
import hashlib
import json
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from arithlib.analysis import progress
from arithlib.analysis.fourier import coefficient_norms, fourier_basis, key_frequencies, power_spectrum, wave_rows
from arithlib.evaluation import accuracy, answer_grid, cross_entropy
from arithlib.models.grokking import GrokkingConfig, GrokkingTransformer
from arithlib.tasks.modular import ModularAddition, merge_mirrored
from arithlib.training import AdamW, Run


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One training run.

    name: how it is asked for. about: one sentence on what it is for. scale: "cpu" (minutes on two cores) or "gpu".
    steps, evaluate_every, snapshot_steps: length of the run and when it is measured and photographed.
    model_seed: initialisation; the task has its own data seed.
    """

    name: str
    about: str
    steps: int
    evaluate_every: int
    snapshot_steps: tuple[int, ...] = ()
    model_seed: int = 0
    optimizer: AdamW = AdamW()
    scale: str = "cpu"

    version: ClassVar[int] = 1  # raise when the meaning of a field changes: older checkpoints become stale
    not_hashed: ClassVar[tuple[str, ...]] = ("name", "about", "scale")

    def settings(self) -> dict:
        """Everything that decides the outcome, as plain JSON values."""
        fields = {k: v for k, v in dataclasses.asdict(self).items() if k not in self.not_hashed}
        return json.loads(json.dumps({"kind": type(self).__name__, "version": self.version} | fields))

    def hash(self) -> str:
        """Sixteen hexadecimal digits that change with any setting."""
        return hashlib.sha256(json.dumps(self.settings(), sort_keys=True).encode()).hexdigest()[:16]

    def build(self) -> nn.Module:
        """The untrained model."""
        raise TypeError(f"{type(self).__name__} does not say how to build its model")

    def objective(self, model: nn.Module, device: torch.device):
        """What `training.train` minimises and measures."""
        raise TypeError(f"{type(self).__name__} does not say what it trains on")

    def after_step(self, model: nn.Module) -> None:
        """Applied after each update, for constrained parameters."""

    def finish(self, model: nn.Module, run: Run) -> dict[str, np.ndarray]:
        """Further history that only the finished run can give, from its snapshots."""
        return {}


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
        """Losses and accuracies on both sets, squared norms, and the Fourier norms of W_E and W_L."""
        logits = model.answer_logits(self.all_pairs, self.all_mixer)
        measured = {}
        for split, weight in (("train", self.train_weight), ("test", self.test_weight)):
            measured[f"{split}_loss"] = float(cross_entropy(logits, self.answers, weight))
            measured[f"{split}_accuracy"] = accuracy(logits, self.answers, weight)
        measured["weight_norm_squared"] = float(sum(w.double().square().sum() for w in model.parameters()))
        measured["W_E_norm_squared"] = float(model.W_E.double().square().sum())
        measured["W_E_norms"] = coefficient_norms(model.W_E[: self.p].cpu()).numpy()
        measured["W_L_norms"] = coefficient_norms(model.W_L.T.cpu()).numpy()
        return measured


@dataclass(frozen=True, kw_only=True)
class GrokkingExperiment(Experiment):
    """A GrokkingTransformer on modular addition, full batch.

    frequencies: None, or the only frequencies that the residues' embeddings may use: after every update W_E is
        projected back on their circles (and the mean). Chapter 11 asks with it how many circles are needed.
    """

    task: ModularAddition = field(default_factory=ModularAddition)
    model: GrokkingConfig = field(default_factory=GrokkingConfig)
    frequencies: tuple[int, ...] | None = None

    def __post_init__(self):
        if self.task.p != self.model.p:
            raise ValueError(f"{self.name}: the task is modulo {self.task.p}, the model modulo {self.model.p}")

    def build(self):
        model = GrokkingTransformer(self.model, self.model_seed)
        self.after_step(model)
        return model

    def objective(self, model, device):
        return ModularObjective(self.task, model, device)

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


# ---- the registry ------------------------------------------------------------------------------------------------

PROGRESS_STEPS = tuple(range(0, 6000, 50)) + tuple(range(6000, 20001, 500))
SEEDS = range(5)


def _grokking():
    def grok(name, about, steps, seed=0, fraction=0.3, weight_decay=1.0, evaluate_every=50, **more):
        return GrokkingExperiment(
            name=name,
            about=about,
            steps=steps,
            evaluate_every=evaluate_every,
            model_seed=seed,
            optimizer=AdamW(weight_decay=weight_decay),
            task=ModularAddition(train_fraction=fraction, data_seed=seed),
            **more,
        )

    yield grok("grokking-live", "seed 0 again, trained while the book is built (chapter 10)", 6000, seed=0)
    for seed in range(10):
        yield grok(
            f"grokking-s{seed}", "the main model, 20,000 epochs (chapters 10 to 12)", 20_000, seed,
            snapshot_steps=PROGRESS_STEPS,
        )  # fmt: skip
    for seed in SEEDS:
        yield grok(
            f"grokking-positions-s{seed}", "with learned positions, as Nanda et al. (chapter 10)", 10_000, seed,
            model=GrokkingConfig(positions="learned"),
        )  # fmt: skip
        yield grok(
            f"grokking-layernorm-s{seed}", "with layer norm (chapter 10)", 10_000, seed,
            model=GrokkingConfig(layer_norm=True),
        )  # fmt: skip
    for weight_decay, steps in ((0.0, 20_000), (0.3, 20_000), (3.0, 6000)):
        for seed in SEEDS:
            yield grok(
                f"grokking-wd{weight_decay:g}-s{seed}", f"weight decay {weight_decay:g} (chapter 12)", steps, seed,
                weight_decay=weight_decay,
            )  # fmt: skip
    for percent, steps in ((10, 10_000), (20, 10_000), (40, 4000), (50, 3000), (60, 2500), (80, 2000)):
        for seed in SEEDS:
            yield grok(
                f"grokking-fraction{percent}-s{seed}", f"{percent} % of the pairs train (chapter 12)", steps, seed,
                fraction=percent / 100,
            )  # fmt: skip
    for count in (1, 2, 3, 4, 5):
        for seed in SEEDS:
            draw = torch.randperm(56, generator=torch.Generator().manual_seed(seed))[:count] + 1
            yield grok(
                f"grokking-circles{count}-s{seed}", f"embeddings confined to {count} random circles (chapter 11)",
                3000, seed, frequencies=tuple(sorted(draw.tolist())),
            )  # fmt: skip
    for heads in (1, 2):
        for seed in SEEDS:
            yield grok(
                f"grokking-heads{heads}-s{seed}", f"d_model split over {heads} head{'s'[: heads - 1]} (chapter 23)",
                10_000, seed, model=GrokkingConfig(n_heads=heads, d_head=128 // heads),
            )  # fmt: skip
    for seed in SEEDS:
        yield grok(
            f"grokking-reluless-s{seed}", "no ReLU: attention is the only product (chapters 23 and 24)", 40_000, seed,
            model=GrokkingConfig(activation="identity"),
        )  # fmt: skip
    gpu = dict(scale="gpu", evaluate_every=250)
    for seed in range(32):
        yield grok(f"grokking-gpu-s{seed}", "as published, 40,000 epochs; trains as one stack", 40_000, seed, **gpu)
    for weight_decay in (0.0, 0.3, 3.0):
        for seed in SEEDS:
            yield grok(
                f"grokking-gpu-wd{weight_decay:g}-s{seed}", f"weight decay {weight_decay:g}, joins that stack",
                40_000, seed, weight_decay=weight_decay, **gpu,
            )  # fmt: skip
    for percent in (10, 20):
        for seed in SEEDS:
            yield grok(
                f"grokking-gpu-fraction{percent}-s{seed}", f"{percent} % of the pairs train, 40,000 epochs", 40_000,
                seed, fraction=percent / 100, **gpu,
            )  # fmt: skip


EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _grokking()}


class UnknownExperiment(KeyError):
    """No experiment of that name."""

    def __str__(self):
        return self.args[0]


def get(name: str) -> Experiment:
    """The experiment of that name; the error names the nearest ones."""
    if name in EXPERIMENTS:
        return EXPERIMENTS[name]
    near = difflib.get_close_matches(name, EXPERIMENTS, n=3, cutoff=0.4)
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    raise UnknownExperiment(f"no experiment is called {name!r}. {hint}`python -m arithlib list` shows all.")


def match(pattern: str) -> list[Experiment]:
    """Experiments whose name fits a shell pattern, in registry order; an error if none does."""
    found = [e for e in EXPERIMENTS.values() if fnmatch.fnmatchcase(e.name, pattern)]
    return found or [get(pattern)]
