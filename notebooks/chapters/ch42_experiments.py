"""Experiments on symbolic grade-school problems (chapter 42): k layers looped L times, source 003, table 2."""

from dataclasses import dataclass

import numpy as np
import torch

from arithlib.experiments.depth import IGNORE_INDEX, DepthExperiment, Examples
from arithlib.models.looped import LoopedConfig
from arithlib.settings import of_kind
from chapters.ch42_igsm import NOWHERE, Graphs


@of_kind("igsm")
@dataclass(frozen=True, kw_only=True)
class GraphExperiment(DepthExperiment):
    """A (k x L) model that reads a problem and names the value of a parameter.

    everywhere: training asks for every parameter of a problem, in random order, and for the value of every name that
        is used, as soon as it can be worked out; tests ask for one parameter, at the end.
    """

    model: LoopedConfig
    task: Graphs
    everywhere: bool = False

    def examples(self, count: int, generator: torch.Generator, depth: int | None = None) -> Examples:
        """Problems that training never has, of which one parameter is asked: of that depth, or of any."""
        problems = self.task.sample(count, generator, held_out=True, depth=depth)
        return self._written(problems, self.task.asked(problems, generator, depth)[:, None], generator)

    def batch(self, generator):
        problems = self.task.sample(self.batch_size, generator)
        asked = self.task.asked(problems, generator)[:, None]
        if self.everywhere:
            asked = torch.rand(problems.names.shape, generator=generator, device=generator.device).argsort(1)
        return [self._written(problems, asked, generator, self.everywhere)]

    def tests(self, count, generator):
        """One for each depth of the parameter asked, from 0."""
        return [self.examples(count, generator, depth) for depth in range(self.task.depth + 1)]

    def finish(self, model, run):
        """accuracy_by_loops: (1, L + 2, depths) after 1 to L + 2 loops, at the end."""
        objective = self.objective(model, model.device)
        generator = self.apart(1, objective.device)
        tests = self.tests(5 * self.evaluation_count, generator)
        loops = range(1, self.model.n_loops + 3)
        return {
            "accuracy_by_loops": np.array(
                [[[objective.accuracy(model, *examples, loops=r) for examples in tests] for r in loops]]
            )
        }

    def _written(self, problems, asked, generator, everywhere=False):
        tokens, due = self.task.write(problems, asked, generator, everywhere)
        return tokens, torch.where(due == NOWHERE, IGNORE_INDEX, due)
