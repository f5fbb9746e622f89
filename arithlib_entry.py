"""Where the command `arithlib` begins: whoever stops it with Ctrl-C reads one line, whenever that is.

It is no part of the package, since whatever is imported from there imports torch first, which takes seconds.
"""

import os
import signal
import sys

INTERRUPTED = 130
MESSAGE = "\nInterrupted. The same command continues from the last saved state."


def main() -> int:
    """Run one command of `arithlib.cli`; returns the exit status."""
    on_interrupt(leave)
    from arithlib import cli

    try:
        on_interrupt(unwind)
        status = cli.main()
        on_interrupt(signal.SIG_IGN)  # the work is done, and Python's own end takes a moment
        return status
    except KeyboardInterrupt:
        print(MESSAGE, file=sys.stderr)
        return INTERRUPTED


def on_interrupt(handler) -> None:
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:  # as a shell starts what it runs in the background
        signal.signal(signal.SIGINT, handler)


def leave(number, frame):
    """Nothing that is imported can catch this, compiled modules that turn any exception into their own among them."""
    os.write(2, f"{MESSAGE}\n".encode())
    os._exit(INTERRUPTED)


def unwind(number, frame):
    """Whoever is at work may clean up, once: a second Ctrl-C ends it."""
    signal.signal(signal.SIGINT, leave)
    raise KeyboardInterrupt
