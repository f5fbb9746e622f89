"""Runs a command that may stall, and runs it once more if it does.

A message between a notebook's kernel and the program that runs it can be lost; both then wait for ever (issue 711 of
papermill and issue 1554 of ipykernel tell of it). So a command that computes nothing for two minutes is stopped, with
everything it started, and so is one that reaches the limit, for which no notebook computes. Each of those processes
says where it stood before it ends. A command may also find out by itself that it stalls; it then ends with the status
`STALLED`.

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
# Waiting costs a kernel and its runner 0.0005 s of processor time a second, with their heartbeats.
QUIET, LEAST = 120.0, 0.01  # seconds; seconds of processor time a second


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


def computed(process: subprocess.Popen) -> float:
    """Seconds of processor time of a process and all it started, those that have ended too."""
    seconds = 0.0
    for member in [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]:
        try:
            times = member.cpu_times()
        except psutil.NoSuchProcess:  # it ended just now: its parent has its time
            continue
        seconds += times.user + times.system + times.children_user + times.children_system
    return seconds


def wait(process: subprocess.Popen, limit: float) -> int:
    """Its exit status; STALLED, and it is stopped, if it takes longer than `limit` seconds or computes nothing."""
    begin, before = time.monotonic(), 0.0
    while True:
        window = min(QUIET, limit - (time.monotonic() - begin))
        try:
            return process.wait(max(window, 0.0))
        except subprocess.TimeoutExpired:
            now = computed(process)
            # It falls when a process ends that nobody waits for, whose time is lost: then, too, something happened.
            change, before = abs(now - before), now
            if time.monotonic() - begin >= limit or change < LEAST * window:
                stop(process)
                return STALLED


def run(command: list[str], limit: float) -> int:
    """Exit status of the command; STALLED where it stalled or reached the limit each time. Ctrl-C reaches it."""
    for attempt in range(1, TRIES + 1):
        process = subprocess.Popen(command, env=os.environ | {"PYTHONFAULTHANDLER": "1"})
        begin = time.monotonic()
        try:
            status = wait(process, limit)
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
