"""Ctrl-C ends the command with one line that says how to go on, whatever it is doing just then."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import arithlib_entry

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")

CALLED = "import sys, arithlib_entry\nsys.exit(arithlib_entry.main())"
# As a compiled module may do where an exception meets it half-way through its own import.
IMPORTING = """
import time
print("ready", flush=True)
try:
    time.sleep(3600)
except BaseException as error:
    raise ImportError("torch is broken") from error
"""
TRAINING = """
import dataclasses
from pathlib import Path
from arithlib import checkpoints, experiments
from test_abacus_experiments import TINY

experiments.EXPERIMENTS["endless"] = dataclasses.replace(TINY, name="endless", steps=10**9)
checkpoints.local_folder = lambda: Path("runs")
"""
CLINGING = """
import time

def main():
    while True:
        try:
            print("ready", flush=True)
            time.sleep(3600)
        except KeyboardInterrupt:
            pass
"""
ANSWERING = """
def main():
    print("ready", flush=True)
    return int(input())
"""
ENDING = """
import atexit

def main():
    atexit.register(lambda: print("ready", flush=True) or input())
    return 5
"""


@pytest.fixture
def start(tmp_path):
    """Starts a program in an empty folder, where modules of such content come before those that are installed."""
    running = []

    def start(program, *arguments, modules=None):
        for place, content in (modules or {}).items():
            path = tmp_path / "before" / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        places = [tmp_path / "before", Path(arithlib_entry.__file__).parent, Path(__file__).parent]
        process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, places))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def with_main(content):
    return {"arithlib/__init__.py": "", "arithlib/cli.py": content}


def ended(process, answer=""):
    """The exit status of a process that was given this to read, what it printed since, and what it complained of."""
    printed, complained = process.communicate(answer, timeout=300)
    return process.returncode, printed, complained


ONE_LINE = (130, "", arithlib_entry.MESSAGE + "\n")


def test_while_torch_is_imported(start):
    process = start(CALLED, "list", modules={"torch.py": IMPORTING})
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert ended(process) == ONE_LINE


def test_during_a_training(start):
    process = start(TRAINING + CALLED, "train", "endless", "--device", "cpu")
    assert process.stdout.readline().startswith("Training endless (a test): 1,000,000,000 steps.")
    process.send_signal(signal.SIGINT)
    assert ended(process) == ONE_LINE


def test_what_does_not_end_at_once_is_ended_by_the_second(start):
    process = start(CALLED, modules=with_main(CLINGING))
    for _ in range(2):
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
    assert ended(process) == ONE_LINE


def test_a_command_in_the_background_of_a_script_goes_on(start):
    ignoring = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    process = start(ignoring + CALLED, modules=with_main(ANSWERING))
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert ended(process, "3\n") == (3, "", "")


def test_a_command_that_is_done_ends_as_it_would_have(start):
    process = start(CALLED, modules=with_main(ENDING))
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert ended(process, "\n") == (5, "", "")
