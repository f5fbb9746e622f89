"""`python -m bookkit COMMAND`; `make` calls the same commands."""

import inspect
import os
import sys

from bookkit.build import commands

COMMANDS = (
    commands.book,
    commands.page,
    commands.test,
    commands.serve,
    commands.pdf,
    commands.reproduce,
    commands.baselines,
    commands.score,
    commands.verify,
    commands.links,
    commands.lock,
)
PASSING_ON = (commands.book, commands.test, commands.reproduce)  # their arguments go to another program


def main(arguments: list[str]) -> int:
    """Run one command with its own arguments; returns the exit status."""
    try:
        status = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads, `head` for instance, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


def _run(arguments: list[str]) -> int:
    known = {command.__name__: command for command in COMMANDS}
    if arguments and arguments[0] in known:
        command, passed = known[arguments[0]], arguments[1:]
        if command not in PASSING_ON or not {"--help", "-h"} & {*passed}:
            return command(passed)
        print(f"usage: python -m bookkit {arguments[0]} [arguments]\n\n{inspect.getdoc(command)}")
        return 0
    print("usage: python -m bookkit COMMAND [arguments]\n")
    for name, command in known.items():
        print(f"  {name:10} {command.__doc__.splitlines()[0]}")
    return 0 if arguments in ([], ["--help"], ["-h"]) else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
