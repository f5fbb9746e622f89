"""`arithlib` or `python -m arithlib`: list, train, ship, add, subtract, multiply, certify, eval, bench, doctor."""

import argparse
import json
import os
import re
import sys
import time

import arithlib

OPERATIONS = {"add": "adds", "subtract": "subtracts", "multiply": "multiplies"}


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
    parser.add_argument("--version", action="version", version=f"%(prog)s {arithlib.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND")

    def command(name, run, help):
        sub = commands.add_parser(name, help=help, description=help)
        sub.set_defaults(run=run)
        return sub

    listing = command(
        "list", _list, "the families of experiments, or the experiments of a pattern, and what of them is here"
    )
    listing.add_argument("pattern", nargs="?", help="a quoted shell pattern of names, such as 'grokking-s*'")
    training = command("train", _train, "train an experiment into runs/ (resumes an interrupted run)")
    training.add_argument("name", help="an experiment, or a quoted shell pattern such as 'grokking-s*'")
    training.add_argument("--retrain", action="store_true", help="even if a matching checkpoint is there")
    training.add_argument("--device", help="cpu or cuda (default: cuda if there is one)")
    training.add_argument("--minutes", type=float, help="stop after so long; the same command continues")
    shipping = command("ship", _ship, "copy finished runs from runs/ to checkpoints/")
    shipping.add_argument("pattern", help="an experiment, or a quoted shell pattern such as 'grokking-s*'")
    for name in OPERATIONS:
        asking = command(name, _answer, f"let a trained model {name} two numbers")
        asking.set_defaults(operation=name)
        asking.add_argument("name")
        asking.add_argument("a", type=integer)
        asking.add_argument("b", type=integer)
    proving = command("certify", _certify, "prove that a model is right at every length, and write its certificate")
    proving.add_argument("pattern", help="an experiment, or a quoted shell pattern such as 'adder-windowed-s*'")
    evaluating = command("eval", _eval, "loss and accuracy of a trained model, measured again")
    evaluating.add_argument("name")
    benchmarking = command("bench", _bench, "run the benchmarks of benchmarks/")
    benchmarking.add_argument("name", nargs="?", default="grokking_step", help="a module in benchmarks/")
    examining = command("doctor", _doctor, "what this machine has, which kernels work, how fast it multiplies")
    examining.add_argument("--device", help="cpu or cuda (default: cuda if there is one)")
    return parser


def _list(options) -> int:
    if options.pattern is None:
        return _list_families()
    found = _matching(options.pattern)
    print(f"{'experiment':26} {'for':4} {'training':>13}  {'here':14} what it is", file=sys.stderr, flush=True)
    for experiment in found:
        size = f"{experiment.scale:4} {experiment.steps:>7,} steps"
        print(f"{experiment.name:26} {size}  {_here(experiment.name):14} {experiment.about}")
    return 0


def _list_families() -> int:
    """How many experiments each family has, and what of them is here: by one line, since there may be hundreds."""
    families = {}
    for experiment in _matching("*"):
        here = _here(experiment.name).removesuffix(", runs")
        families.setdefault(experiment.name.partition("-")[0], []).append(here)
    print(f"{'experiments':14} {'how many':>8}  {'weights':>8}  measured alone", file=sys.stderr, flush=True)
    for family, here in families.items():
        print(f"{family + '-*':14} {len(here):>8}  {here.count('weights'):>8}  {here.count('measured'):>14}")
    print("arithlib list 'grokking-*' lists those of a pattern, arithlib list '*' all of them.", file=sys.stderr)
    return 0


def _matching(pattern: str) -> list:
    """The experiments of a pattern, those among them that a reader trained from a program of their own."""
    from arithlib import checkpoints, experiments

    experiments.register(checkpoints.own())
    return experiments.match(pattern)


def _here(name: str) -> str:
    """What is here of an experiment: "weights", or "measured" where that is all; ", runs" if it was trained here."""
    from arithlib import checkpoints

    if (folder := checkpoints.find(name)) is None:
        return "-"
    if not checkpoints.is_here(name):
        return "unusable"
    kept = "weights" if checkpoints.holds_weights(name, folder) else "measured"
    return f"{kept}, runs" if folder == checkpoints.local_folder() else kept


def _train(options) -> int:
    from arithlib import checkpoints
    from arithlib.training import OutOfTime

    chosen = [e for e in _matching(options.name) if options.retrain or not checkpoints.is_here(e.name)]
    if not chosen:
        print(f"{options.name}: matching weights are here already; --retrain makes them again.")
    else:
        deadline = None if options.minutes is None else time.perf_counter() + 60 * options.minutes
        for experiment in chosen:
            left = None if deadline is None else (deadline - time.perf_counter()) / 60
            print(checkpoints.announcement(experiment.name, options.device), flush=True)
            try:
                trained = checkpoints.make(experiment.name, device=options.device, minutes=left)
            except OutOfTime as stop:
                print(stop)
                return 0
            print(f"{experiment.name}: {_finals(trained)}, {trained.provenance['seconds']:.0f} s")
    return 0


def _ship(options) -> int:
    from arithlib import checkpoints

    trained = [e.name for e in _matching(options.pattern) if (checkpoints.local_folder() / f"{e.name}.json").exists()]
    if not trained:
        raise ValueError(f"runs/ holds no finished run of {options.pattern}: train it first")
    for name in trained:
        file = checkpoints.ship(name)
        print(f"{file}  {file.stat().st_size:,} bytes")
    return 0


def _answer(options) -> int:
    from arithlib import load
    from arithlib.certify import certificates
    from arithlib.experiments import NotItsTask
    from arithlib.streaming import any_size

    trained = load(options.name)
    known = digits_in_training(trained.experiment)
    with any_size():
        longest = len(str(max(options.a, options.b)))
        longer = known is not None and longest > known
        trained_on = f"{options.name} was trained on numbers of up to {known} digits, the longest here has {longest}"
        try:
            answer = getattr(trained, options.operation)(options.a, options.b)
        except NotItsTask as problem:
            raise ValueError(_instead(trained, options.operation) or problem) from problem
        except ValueError as problem:
            why = re.sub(r"(\d{12})\d{20,}", r"\1...", str(problem))
            raise ValueError(f"{trained_on}: {why}" if longer else why) from problem
        print(answer)
    if modulus := getattr(getattr(trained.experiment, "task", None), "p", None):  # else 31 is an odd sum of 45 and 99
        print(f"Modulo {modulus}.", file=sys.stderr)
    certificate = certificates.covering(options.name)
    if longer and not certificate:
        print(f"Longer than in training: {trained_on}.", file=sys.stderr)
    if certificate:
        print(
            f"Covered by {options.name}.certificate.json: right for all integers from 0 on, whatever their length "
            f"({certificates.summary(certificate)}).",
            file=sys.stderr,
        )
    return 0


def _instead(trained, operation: str) -> str:
    """What a model that does not do this can be asked; "" where that is nothing."""
    from arithlib.experiments import NotItsTask

    name = trained.experiment.name
    for other, does in OPERATIONS.items():
        try:
            getattr(trained, other)(1, 1)
        except NotItsTask:
            continue
        except ValueError:  # it tries, and writes no number
            pass
        return f"{name} does not {operation}; it {does}: use `arithlib {other} {name} A B`"
    return ""


def digits_in_training(experiment) -> int | None:
    """The digits of the longest number that a run was trained on; None where its settings say nothing of digits."""
    if hasattr(experiment, "sums"):  # each number a token
        return len(str(experiment.sums.n_numbers - 1))
    settings = (vars(experiment), vars(getattr(experiment, "task", experiment)))
    return next((each[name] for name in ("max_digits", "digits") for each in settings if name in each), None)


def integer(text: str) -> int:
    """A whole number of any length."""
    from arithlib.streaming import any_size

    with any_size():
        return int(text)


def _certify(options) -> int:
    from arithlib.certify import certificates
    from arithlib.certify.addition import ProofError

    unproven = 0
    for experiment in _matching(options.pattern):
        try:
            path = certificates.write(experiment.name)
        except ProofError as problem:  # the others of the pattern may be proven all the same
            unproven += 1
            print(f"arithlib: {problem}", file=sys.stderr)
            continue
        summary = certificates.summary(json.loads(path.read_text(encoding="utf-8")))
        print(f"{path}: right at every length ({summary})")
    return min(unproven, 1)


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

    folder = checkpoints.project_root() / "benchmarks"
    known = sorted(path.stem for path in folder.glob("*.py"))
    if not known:
        raise ValueError("benchmarks need a clone of the repository, and do not come with an installed arithlib")
    if options.name not in known:
        raise ValueError(f"no benchmark is called {options.name!r}; there are: {', '.join(known)}")
    sys.path.insert(0, str(folder))  # they share one module of clocks
    runpy.run_path(str(folder / f"{options.name}.py"), run_name="__main__")
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
