"""A stack of small GPTs against the same models trained one after another (chapter 61).

    python -m arithlib bench stack_of_models

One step of training of every model, plain format, batches of 64 and of 8. Before anything is timed, the losses of both
must agree to 1e-5. Timed in turns, so that a busy machine slows both; what counts is the ratio.
"""

from dataclasses import replace

import torch
from timing import in_turns, report, summary

import presets  # noqa: F401  (registers the runs)
from arithlib import experiments
from chapters.ch61_experiments import WrittenExperiment, losses
from chapters.ch61_written_sums import Sample

ROUNDS, STEPS = 7, 3


def steps_of(e: WrittenExperiment):
    """One step of training of all models of an experiment, and their losses before it."""
    model = e.build()
    objective, optimizer = e.objective(model, "cpu"), e.optimizer.build(model.parameters())

    def step():
        optimizer.zero_grad()
        objective.loss(model, 0).backward()
        optimizer.step()

    return step, losses(model, *objective.batch(0)).detach()


def measure(models: int, batch_size: int) -> None:
    e = replace(
        experiments.get("written-plain"), samples=(Sample(1000),), seeds=tuple(range(models)), batch_size=batch_size
    )
    together, expected = steps_of(e)
    alone, found = zip(*(steps_of(replace(e, seeds=(seed,))) for seed in e.seeds), strict=True)
    torch.testing.assert_close(torch.cat(found), expected, rtol=1e-5, atol=1e-5)
    contestants = {"one after another": lambda: [step() for step in alone], "as a stack": together}
    print(f"{models} models, batches of {batch_size}")
    report(summary(in_turns(contestants, ROUNDS, STEPS), "as a stack"), "as a stack")


def main() -> None:
    torch.set_num_threads(1)
    for models, batch_size in ((12, 64), (12, 8)):
        measure(models, batch_size)


if __name__ == "__main__":
    main()
