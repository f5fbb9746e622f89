"""Experiments on depth without parameters (part 4): k layers looped L times beside k layers, and beside k L layers.

Written (k x L) below, (k ⊗ L) in source 003, section 2.1, table 1. All models of a task are trained alike.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from arithlib.decoding import greedy
from arithlib.experiments.base import Experiment, half_precision
from arithlib.models.looped import LoopedConfig, LoopedTransformer
from arithlib.settings import of_kind
from arithlib.tasks.multi_operand import ManyOperands
from arithlib.tasks.p_hop import Hops, find
from arithlib.tokenizer import END

IGNORE_INDEX = -100  # a target that the loss and the score pass over
Examples = tuple[Tensor, Tensor]  # (B, T) tokens, and (B, T) what is to be said after each, or IGNORE_INDEX


class DepthObjective:
    """Mean cross-entropy of all that is asked, over fresh examples at every step, seeded by the step.

    On a GPU in bfloat16.
    """

    def __init__(self, experiment: "DepthExperiment", model: LoopedTransformer, device: torch.device):
        self.experiment, self.device = experiment, device
        self.tests = experiment.tests(experiment.evaluation_count, experiment.apart(device=device))

    def loss(self, model: LoopedTransformer, step: int) -> Tensor:
        parts = self.experiment.batch(self.experiment.generator(step, self.device))
        with half_precision(self.device):
            losses = [_cross_entropy(model(tokens), targets) for tokens, targets in parts]
        return torch.stack(losses).mean()

    def evaluate(self, model: LoopedTransformer) -> dict[str, float | np.ndarray]:
        """accuracy: mean over the tests of the experiment. accuracies: (C,) of each of them."""
        accuracies = np.array([self.accuracy(model, *examples) for examples in self.tests])
        return {"accuracy": float(accuracies.mean()), "accuracies": accuracies}

    @torch.no_grad()
    def accuracy(self, model: LoopedTransformer, tokens: Tensor, targets: Tensor, loops: int | None = None) -> float:
        """Share of examples with everything right that is asked; the model reads the right answer as it goes.

        That is the share that greedy decoding gets right, too: up to its first mistake it reads the same tokens.
        """
        right = []
        for part, wanted in zip(tokens.split(256), targets.split(256), strict=True):
            with half_precision(self.device):
                said = model(part, loops=loops).argmax(-1)
            right.append(((said == wanted) | (wanted == IGNORE_INDEX)).all(1))
        return float(torch.cat(right).double().mean())


def _cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), ignore_index=IGNORE_INDEX)


@dataclass(frozen=True, kw_only=True)
class DepthExperiment(Experiment):
    """A (k x L) model on one of the tasks of source 003.

    batch_size: examples of a step. evaluation_count: examples of each test, drawn from another seed; more at the end.
    """

    model: LoopedConfig
    batch_size: int
    evaluation_count: int = 200

    network = LoopedTransformer

    def objective(self, model, device):
        return DepthObjective(self, model, device)

    def batch(self, generator: torch.Generator) -> list[Examples]:
        """The examples of one step, in parts of one length each."""
        raise TypeError(f"{type(self).__name__} does not say what it trains on")

    def tests(self, count: int, generator: torch.Generator) -> list[Examples]:
        """`count` examples of each kind that training has."""
        raise TypeError(f"{type(self).__name__} does not say what it is tested on")


@of_kind("multi-operand")
@dataclass(frozen=True, kw_only=True)
class AdditionExperiment(DepthExperiment):
    """Sums of n numbers; each n of `counts` has an equal part in every batch.

    further: counts that training does not have, between and beyond the others; tested at the end.
    """

    task: ManyOperands = field(default_factory=ManyOperands)
    counts: tuple[int, ...] = (2, 4, 8, 16, 32)
    further: tuple[int, ...] = (24, 40, 64)

    def examples(self, n: int, count: int, generator: torch.Generator) -> Examples:
        """Sums of n numbers, of which the answer and its first end token are asked."""
        tokens = self.task.write(self.task.sample(n, count, generator))
        targets = tokens[:, 1:].clone()
        targets[:, : self.task.question_width(n) - 1] = IGNORE_INDEX
        targets[(tokens[:, :-1] == END)] = IGNORE_INDEX
        return tokens[:, :-1], targets

    def batch(self, generator):
        return [self.examples(n, self.batch_size // len(self.counts), generator) for n in self.counts]

    def tests(self, count, generator):
        return [self.examples(n, count, generator) for n in self.counts]

    def add(self, model, a, b):
        return self.task.read(greedy(model, self.task.ask([a, b]), self.task.answer_width(2) + 1)[0])

    def finish(self, model, run):
        """accuracy_by_count: (1, C) for all counts, trained and further, in ascending order."""
        objective = self.objective(model, model.device)
        generator = self.apart(1, model.device)
        counts = sorted(self.counts + self.further)
        return {
            "accuracy_by_count": np.array(
                [[objective.accuracy(model, *self.examples(n, 5 * self.evaluation_count, generator)) for n in counts]]
            )
        }


@of_kind("p-hop")
@dataclass(frozen=True, kw_only=True)
class HopExperiment(DepthExperiment):
    """p-hop induction, the answer after the last token.

    everywhere: also learn hop_p of every earlier token that has one (Sanford et al. 2024); it is never tested there.
    """

    task: Hops
    everywhere: bool = False

    def examples(self, count: int, generator: torch.Generator) -> Examples:
        """Sequences, of which the answer alone is asked."""
        tokens = self.task.sample(count, generator)
        targets = torch.full_like(tokens, IGNORE_INDEX)
        targets[:, -1] = self.task.answers(tokens)
        return tokens, targets

    def batch(self, generator):
        if not self.everywhere:
            return [self.examples(self.batch_size, generator)]
        tokens = self.task.sample(self.batch_size, generator)
        place = find(tokens, self.task.p)
        return [(tokens, torch.where(place > 0, tokens.gather(1, (place - 1).clamp(min=0)), IGNORE_INDEX))]

    def tests(self, count, generator):
        return [self.examples(count, generator)]

    def finish(self, model, run):
        """accuracy_by_loops: (1, L + 2) after 1 to L + 2 loops, at the end."""
        objective = self.objective(model, model.device)
        examples = self.examples(5 * self.evaluation_count, self.apart(1, model.device))
        loops = range(1, self.model.n_loops + 3)
        return {"accuracy_by_loops": np.array([[objective.accuracy(model, *examples, loops=r) for r in loops]])}
