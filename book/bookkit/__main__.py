"""`python -m bookkit COMMAND`; `make` calls the same commands."""

import sys

from bookkit.build import commands

COMMANDS = (
    commands.book,
    commands.page,
    commands.test,
    commands.serve,
    commands.reproduce,
    commands.baselines,
    commands.score,
    commands.verify,
    commands.links,
    commands.lock,
)


def main(arguments: list[str]) -> int:
    """Run one command with its own arguments; returns the exit status."""
    known = {command.__name__: command for command in COMMANDS}
    if arguments and arguments[0] in known:
        return known[arguments[0]](arguments[1:])
    print("usage: python -m bookkit COMMAND [arguments]\n")
    for name, command in known.items():
        print(f"  {name:10} {command.__doc__.splitlines()[0]}")
    return 0 if arguments in ([], ["--help"], ["-h"]) else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
