"""`python -m arithlib` (or `arithlib`): list · train · ship · add · certify · eval · bench · doctor."""

import argparse
import os
import sys
import time


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit status. Expected problems print one line and return 1."""
    options = _parser().parse_args(argv)
    if not hasattr(options, "run"):
        _parser().print_help()
        return 0
    from arithlib.checkpoints import CheckpointError
    from arithlib.experiments import UnknownExperiment
    from arithlib.files import FileProblem

    try:
        return options.run(options)
    except BrokenPipeError:  # whoever reads, `head` for instance, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("\nInterrupted. The same command continues from the last saved state.", file=sys.stderr)
        return 130
    except (CheckpointError, UnknownExperiment, FileProblem, ValueError) as problem:
        print(f"arithlib: {problem}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="arithlib", description=__doc__)
    commands = parser.add_subparsers(metavar="COMMAND")

    def command(name, run, help):
        sub = commands.add_parser(name, help=help, description=help)
        sub.set_defaults(run=run)
        return sub

    listing = command("list", _list, "every experiment, and whether its weights are here")
    listing.add_argument("pattern", nargs="?", default="*", help="shell pattern of names")
    training = command("train", _train, "train an experiment into runs/ (resumes an interrupted run)")
    training.add_argument("name", help="an experiment, or a quoted shell pattern such as 'grokking-s*'")
    training.add_argument("--retrain", action="store_true", help="even if a matching checkpoint is there")
    training.add_argument("--device", help="cpu or cuda (default: cuda if there is one)")
    training.add_argument("--minutes", type=float, help="stop after so long; the same command continues")
    shipping = command("ship", _ship, "copy finished runs from runs/ to checkpoints/")
    shipping.add_argument("pattern", help="an experiment, or a quoted shell pattern such as 'grokking-s*'")
    adding = command("add", _add, "let a trained model add two numbers")
    adding.add_argument("name")
    adding.add_argument("a", type=integer)
    adding.add_argument("b", type=integer)
    proving = command("certify", _certify, "prove that an adder is right on every sum, and write its certificate")
    proving.add_argument("pattern", help="an experiment, or a quoted shell pattern such as 'adder-windowed-s*'")
    evaluating = command("eval", _eval, "loss and accuracy of a trained model, measured again")
    evaluating.add_argument("name")
    benchmarking = command("bench", _bench, "run the benchmarks of benchmarks/")
    benchmarking.add_argument("name", nargs="?", default="grokking_step", help="a module in benchmarks/")
    examining = command("doctor", _doctor, "what this machine has, which kernels work, how fast it multiplies")
    examining.add_argument("--device", help="cpu or cuda (default: cuda if there is one)")
    return parser


def _list(options) -> int:
    from arithlib import checkpoints, experiments

    found = experiments.match(options.pattern)
    print(f"{'experiment':26} {'for':4} {'training':>13}  {'weights in':12} what it is", file=sys.stderr, flush=True)
    for experiment in found:
        folder = checkpoints.find(experiment.name)
        where = "-" if folder is None else folder.name if checkpoints.is_here(experiment.name) else "unusable"
        size = f"{experiment.scale:4} {experiment.steps:>7,} steps"
        print(f"{experiment.name:26} {size}  {where:12} {experiment.about}")
    return 0


def _train(options) -> int:
    from arithlib import checkpoints, experiments
    from arithlib.training import OutOfTime

    chosen = [e for e in experiments.match(options.name) if options.retrain or not checkpoints.is_here(e.name)]
    if not chosen:
        print(f"{options.name}: matching weights are here already; --retrain makes them again.")
    else:
        deadline = None if options.minutes is None else time.perf_counter() + 60 * options.minutes
        for experiment in chosen:
            left = None if deadline is None else (deadline - time.perf_counter()) / 60
            try:
                trained = checkpoints.make(experiment.name, device=options.device, minutes=left)
            except OutOfTime as stop:
                print(stop)
                return 0
            print(f"{experiment.name}: {_finals(trained)}, {trained.provenance['seconds']:.0f} s")
    return 0


def _ship(options) -> int:
    from arithlib import checkpoints, experiments

    trained = [
        e.name for e in experiments.match(options.pattern) if (checkpoints.local_folder() / f"{e.name}.json").exists()
    ]
    if not trained:
        raise ValueError(f"runs/ holds no finished run of {options.pattern}: train it first")
    for name in trained:
        file = checkpoints.ship(name)
        print(f"{file.name}  {file.stat().st_size:,} bytes")
    return 0


def _add(options) -> int:
    from arithlib import load
    from arithlib.certify import certificates
    from arithlib.streaming import any_size

    with any_size():
        print(load(options.name).add(options.a, options.b))
    if certificate := certificates.covering(options.name):
        print(
            f"Covered by {options.name}.certificate.json: right for all integers from 0 on, whatever their length "
            f"({certificates.summary(certificate)}).",
            file=sys.stderr,
        )
    return 0


def integer(text: str) -> int:
    """A whole number of any length."""
    from arithlib.streaming import any_size

    with any_size():
        return int(text)


def _certify(options) -> int:
    from arithlib import experiments
    from arithlib.certify import certificates

    for experiment in experiments.match(options.pattern):
        path = certificates.write(experiment.name)
        certificate = certificates.covering(experiment.name)
        print(f"{path.name}: right for all numbers ({certificates.summary(certificate)})")
    return 0


def _eval(options) -> int:
    import torch

    from arithlib import checkpoints

    trained = checkpoints.load(options.name)
    objective = trained.experiment.objective(trained.model, torch.device("cpu"))
    for name, value in objective.evaluate(trained.model).items():
        if isinstance(value, float):
            print(f"{name:22} {value:.6g}")
    return 0


def _bench(options) -> int:
    import runpy

    from arithlib import checkpoints

    script = checkpoints.project_root() / "benchmarks" / f"{options.name}.py"
    if not script.exists():
        known = ", ".join(sorted(path.stem for path in script.parent.glob("*.py")))
        raise ValueError(f"no benchmark is called {options.name!r}; there are: {known}")
    sys.path.insert(0, str(script.parent))  # they share one module of clocks
    runpy.run_path(str(script), run_name="__main__")
    return 0


def _doctor(options) -> int:
    from arithlib import doctor
    from arithlib.files import choose_device

    for name, found in doctor.examine(choose_device(options.device)):
        print(f"{name:22} {found}", flush=True)
    return 0


def _finals(trained) -> str:
    final = trained.provenance["final"].items()
    return ", ".join(f"{k.replace('_', ' ')} {v:.3g}" for k, v in final if k.endswith(("loss", "accuracy", "match")))
