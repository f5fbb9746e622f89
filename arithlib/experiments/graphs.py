"""Experiments on symbolic grade-school problems (chapter 42): k layers looped L times, source 003, table 2.

arithlib train "graphs-*x*-s0"        the six shapes of one seed: five minutes on one idle core
arithlib train --queue gpu --minutes 25 --out results      the published width and size of problem, on a GPU
"""

from dataclasses import dataclass

import numpy as np
import torch

from arithlib.experiments.base import Experiment
from arithlib.experiments.depth import UNASKED, DepthExperiment, Examples, shapes
from arithlib.models.looped import LoopedConfig, LoopedTransformer
from arithlib.settings import of_kind
from arithlib.tasks.graphs import NOWHERE, Graphs
from arithlib.training import ScheduledAdamW


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

    def build(self) -> LoopedTransformer:
        """Its vocabulary is that of the task."""
        return LoopedTransformer(self.model, self.model_seed)

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
        objective = self.objective(model, next(model.parameters()).device)
        generator = torch.Generator(objective.device).manual_seed(2**31 + 1 + self.data_seed)
        tests = self.tests(5 * self.evaluation_count, generator)
        loops = range(1, self.model.n_loops + 3)
        return {
            "accuracy_by_loops": np.array(
                [[[objective.accuracy(model, *examples, loops=r) for examples in tests] for r in loops]]
            )
        }

    def _written(self, problems, asked, generator, everywhere=False):
        tokens, due = self.task.write(problems, asked, generator, everywhere)
        return tokens, torch.where(due == NOWHERE, UNASKED, due)


# ---- presets -----------------------------------------------------------------------------------------------------

SEEDS = range(3)
SHAPES = tuple(sorted({*shapes(4), (1, 2)}))  # of depth 4, the looped ones with both their partners
PUBLISHED = ((8, 1), (1, 1), (1, 2), (1, 4), (1, 8), (2, 1), (2, 2), (2, 4), (4, 1), (4, 2))  # the rows of table 2


def presets() -> list[Experiment]:
    """Every experiment of this family, in the order in which `arithlib list` prints them."""
    small = dict(
        task=Graphs(5, depth=2, constants=3, terms=2, factor_share=0.0, levels=3, width=2), everywhere=True,
        steps=1600, lr=3e-3, width=(64, 4), batch_size=32, evaluation_count=100,
        about="five parameters, asked to depth 2 (chapter 42)",
    )  # fmt: skip
    large = dict(
        task=Graphs(), steps=10_000, lr=1e-3, width=(128, 8), batch_size=256, scale="gpu",
        about="twelve parameters: three minutes", ships_weights=False,
    )  # fmt: skip
    ours = [
        _preset("graphs", s, seed, ships_weights=s == (1, 4) and seed < 2, **small) for seed in SEEDS for s in SHAPES
    ]
    return ours + [
        _preset("graphs-gpu", s, seed, value=(7 if 1 in s else 3) - seed, **large)
        for seed in SEEDS
        for s in PUBLISHED
    ]


def _preset(name, shape, seed, *, steps, lr, width, task, **more):
    (k, loops), (d_model, n_heads) = shape, width
    return GraphExperiment(
        name=f"{name}-{k}x{loops}-s{seed}",
        task=task,
        steps=steps,
        evaluate_every=steps // 20,
        model_seed=seed,
        data_seed=seed,
        model=LoopedConfig(
            d_model=d_model, n_heads=n_heads, d_mlp=4 * d_model, n_layers=k, n_loops=loops,
            positions="rotary", injection="none", d_vocab=len(task.words),
        ),
        optimizer=ScheduledAdamW(lr=lr, steps=steps, warmup_steps=steps // 20),
        **more,
    )  # fmt: skip
