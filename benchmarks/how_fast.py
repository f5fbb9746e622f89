"""All that the page "How fast" shows, in one run on one machine, into benchmarks/how_fast.json.

    arithlib bench how_fast

Some five minutes on two cores. What building the book takes is on its page on the environment.
"""

import datetime
import json
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import adder
import grokking_step
import million_digits
import torch
from timing import growth, in_turns, summary

from arithlib import checkpoints, experiments
from arithlib.files import write_atomic
from bookkit.build.pages import machine

ROOT = Path(__file__).resolve().parents[1]


def together(counts=(1, 2, 4, 8)) -> dict:
    """Seconds of a training step of so many tiny adders, one after another and as one stack (chapter 73)."""
    from chapters.ch73_ensemble import Ensemble, EnsembleObjective

    chosen = [experiments.get(f"tiny-4x8-s{seed % 5}") for seed in range(max(counts))]

    def one_by_one(parts, models):
        for part, model in zip(parts, models, strict=True):
            part.loss(model, 0).backward()

    def as_one(ensemble, objective):
        objective.loss(ensemble, 0).backward()

    runs = {}
    for count in counts:
        models = [experiment.build() for experiment in chosen[:count]]
        parts = [e.objective(model, torch.device("cpu")) for e, model in zip(chosen, models, strict=False)]
        ensemble, objective = Ensemble(models), EnsembleObjective(parts)
        runs[count] = partial(one_by_one, parts, models)
        runs[f"{count} stacked"] = lambda ensemble=ensemble, objective=objective: objective.loss(
            ensemble, 0
        ).backward()
    medians = {name: row["seconds"] for name, row in summary(in_turns(runs, 5, 10), counts[0]).items()}
    return {
        "alone": growth(counts, [medians[count] for count in counts]),
        "stacked": growth(counts, [medians[f"{count} stacked"] for count in counts]),
    }


def formats(styles=("plain", "reversed", "simplified", "detailed")) -> dict:
    """Seconds of a training step of every study of chapter 61: its models one after another, and as a stack."""
    found = {}

    def step(parts):
        for model, objective in parts:
            objective.loss(model, 0).backward()

    for style in styles:
        study = experiments.get(f"written-{style}")
        alone = [replace(study, samples=(sample,), seeds=(seed,)) for sample, seed in study.members]
        parts = {
            name: [(one.build(), one.objective(None, torch.device("cpu"))) for one in studies]
            for name, studies in (("one by one", alone), ("as a stack", [study]))
        }
        runs = {name: partial(step, each) for name, each in parts.items()}
        ways = summary(in_turns(runs, 5, 2), "as a stack")
        found[style] = {"models": len(alone), "steps": study.steps, "ways": ways}
    return found


def memory(lengths=(10_000, 100_000, 1_000_000)) -> dict:
    """Peak megabytes of a process that decodes and checks one sum, by its digits, less those of ten digits."""
    peaks = []
    for n in (10, *lengths):
        code = f"import sys; sys.path.insert(0, {str(ROOT / 'benchmarks')!r}); import million_digits\n"
        code += f"million_digits.measure(lengths=({n}, {n + 1}))\n"
        # Not getrusage: a new process starts with its parent's peak there.
        code += "print(*(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT)
        peaks.append(int(done.stdout.split()[-1]) / 1024)
    return {"sizes": list(lengths), "megabytes": [peak - peaks[0] for peak in peaks[1:]], "base": peaks[0]}


def main() -> None:
    made = datetime.datetime.now(datetime.UTC).date().isoformat()
    found = {"machine": machine() | {"torch": torch.__version__, "made": made}}
    torch.set_num_threads(2)
    found["grokking"] = grokking_step.contest() | {"by_width": grokking_step.by_width()}
    torch.set_num_threads(1)
    experiment, model = experiments.get(adder.NAME), checkpoints.load(adder.NAME).model
    found["adder"] = adder.training(experiment)
    found["adder"]["evaluation"] = adder.evaluation(model, experiment.task)
    found["adder"]["by_digits"] = adder.by_digits(model, experiment.task)
    found["adder"]["grids"] = adder.grid(model, experiment)
    found["together"] = together()
    found["formats"] = formats()
    found["million"] = million_digits.measure()
    found["memory"] = memory()
    target = ROOT / "benchmarks" / "how_fast.json"
    write_atomic(target, (json.dumps(found, indent=1) + "\n").encode())
    print(target)


if __name__ == "__main__":
    main()
