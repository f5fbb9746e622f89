"""Runs a command that may stall, and runs it once more if it does.

A message between a notebook's kernel and the program that runs it can be lost; both then wait for ever (issue 711 of
papermill and issue 1554 of ipykernel tell of it). No notebook computes for as long as the limit, so a command that
reaches it is stopped, with everything it started. Each of those processes says where it stood before it ends. A
command may also find out by itself that it stalls; it then ends with the status `STALLED`.

It waits beside every notebook, so it is run by its path and imports nothing of the package: that takes half a second.
"""

import argparse
import os
import signal
import subprocess
import sys
import time

import psutil

TRIES = 2
STALLED = 124  # as coreutils' timeout has it


def stop(process: subprocess.Popen) -> None:
    """End a process and all it started; those that are Python's write their tracebacks to stderr first."""
    parent = psutil.Process(process.pid)
    family = [parent, *parent.children(recursive=True)]
    for member in family:
        try:
            member.send_signal(signal.SIGABRT if os.name == "posix" else signal.SIGTERM)
        except psutil.NoSuchProcess:
            pass
    for member in psutil.wait_procs(family, timeout=10)[1]:
        member.kill()
    process.wait()


def run(command: list[str], limit: float) -> int:
    """Exit status of the command; STALLED where it took longer than `limit` seconds each time. Ctrl-C reaches it."""
    for attempt in range(1, TRIES + 1):
        process = subprocess.Popen(command, env=os.environ | {"PYTHONFAULTHANDLER": "1"})
        begin = time.monotonic()
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            stop(process)
            status = STALLED
        except KeyboardInterrupt:
            process.wait()
            return 130
        if status != STALLED:
            return status
        then = "once more" if attempt < TRIES else "that was the last try"
        after = round(time.monotonic() - begin)
        print(f"stopped after {after} s, for it seemed to stall: {then}", file=sys.stderr, flush=True)
    return STALLED


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("limit", type=float, help="seconds after which the command counts as stalled")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what to run")
    options = parser.parse_args(arguments)
    return run(options.command, options.limit)


if __name__ == "__main__":
    sys.exit(main())
