"""A step that stalls is stopped with all it started, tells where it stood, and is tried once more."""

import re
import subprocess
import sys
import time

import nbformat
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from bookkit.build import watchdog

PYTHON = [sys.executable, "-c"]


def test_what_ends_in_time_keeps_its_status(capfd):
    assert watchdog.main(["600", *PYTHON, "print('counted')"]) == 0
    assert watchdog.main(["600", *PYTHON, "raise SystemExit(3)"]) == 3
    assert capfd.readouterr().out == "counted\n"


def test_what_computes_nothing_is_stopped_long_before_the_limit(forgetful, monkeypatch, capfd):
    command, seen = forgetful
    monkeypatch.setattr(watchdog, "QUIET", 0.5)
    monkeypatch.setattr(watchdog, "LEAST", 0.5)  # the start of a program is over once it computes for less than half
    monkeypatch.setattr(watchdog, "TRIES", 20)  # a busy machine may keep it from starting
    assert watchdog.run(command, limit=3600) == 0
    assert "seemed to stall: once more" in capfd.readouterr().err
    assert not psutil.pid_exists(int(seen.read_text()))


@pytest.mark.parametrize("inner", ["burn()", "import subprocess, sys; subprocess.run([sys.executable, '-c', BURN])"])
def test_what_computes_is_left_alone_itself_or_by_a_child(inner, monkeypatch):
    burn = "import time\nwhile time.process_time() < 2.5: pass"
    program = burn if inner == "burn()" else inner.replace("BURN", repr(burn))
    monkeypatch.setattr(watchdog, "QUIET", 1.0)
    assert watchdog.run([*PYTHON, program], limit=3600) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="processor time is lost where nobody waits for a child")
def test_time_that_is_lost_with_a_child_is_no_stalling(monkeypatch):
    burn = "import time\nwhile time.process_time() < 3: pass"
    program = f"""
import signal, subprocess, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", {burn!r}]).wait()
begin = time.process_time()
while time.process_time() - begin < 1.5: pass
"""
    monkeypatch.setattr(watchdog, "QUIET", 1.0)
    assert watchdog.run([*PYTHON, program], limit=3600) == 0


@pytest.fixture
def forgetful(tmp_path):
    """A command whose child never ends the first time; its marks lie in the folder."""
    child = f"""
import os, pathlib, time
def waits_for_a_lost_message():
    pathlib.Path({str(tmp_path / "half")!r}).write_text(str(os.getpid()))
    os.replace({str(tmp_path / "half")!r}, {str(tmp_path / "seen")!r})
    time.sleep(3600)
waits_for_a_lost_message()
"""
    program = f"""
import pathlib, subprocess, sys
if pathlib.Path({str(tmp_path / "seen")!r}).exists():
    raise SystemExit(0)
subprocess.Popen([sys.executable, "-c", {child!r}]).wait()
"""
    return [*PYTHON, program], tmp_path / "seen"


def test_a_stalled_one_is_stopped_with_its_children_and_tried_again(forgetful, monkeypatch, capfd):
    command, seen = forgetful
    wait = subprocess.Popen.wait

    def until_it_stalls(process, timeout=None):
        """The limit is reached as soon as the child waits, however long a busy machine takes to get there."""
        while timeout is not None and process.poll() is None and not seen.exists():
            time.sleep(0.05)
        return wait(process, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", until_it_stalls)
    assert watchdog.run(command, limit=4) == 0
    said = capfd.readouterr().err
    assert "seemed to stall: once more" in said
    assert not psutil.pid_exists(int(seen.read_text()))
    if sys.platform != "win32":
        assert "waits_for_a_lost_message" in said


def test_the_kernel_of_a_notebook_says_where_it_stood(tmp_path, capfd):
    mark = tmp_path / "reached"
    cells = [
        new_code_cell(f"mark = {str(mark)!r}", metadata={"tags": ["parameters"]}),
        new_code_cell("import time\ndef waits():\n    open(mark, 'w').close()\n    time.sleep(600)\nwaits()"),
    ]
    nbformat.write(new_notebook(cells=cells), tmp_path / "10_waves.ipynb")
    program = f"""
from pathlib import Path
from bookkit.build.execute import execute_notebook
here = Path({str(tmp_path)!r})
execute_notebook(here / "10_waves.ipynb", here / "executed" / "10_waves.ipynb", here / "records")
"""
    process = subprocess.Popen([*PYTHON, program])
    begin = time.monotonic()
    while not mark.exists() and time.monotonic() - begin < 600:
        time.sleep(0.2)
    watchdog.stop(process)
    assert mark.exists()
    if sys.platform != "win32":
        assert re.search(r"line \d in waits", capfd.readouterr().err)


def test_one_that_stalls_each_time_has_failed(capfd):
    assert watchdog.run([*PYTHON, "import time; time.sleep(3600)"], limit=0.5) == watchdog.STALLED
    assert capfd.readouterr().err.count("seemed to stall") == watchdog.TRIES


def test_one_that_says_itself_that_it_stalled_is_tried_again(tmp_path, capfd):
    seen = tmp_path / "seen"
    program = f"""
import pathlib
seen = pathlib.Path({str(seen)!r})
if not seen.exists():
    seen.touch()
    raise SystemExit({watchdog.STALLED})
"""
    assert watchdog.run([*PYTHON, program], limit=600) == 0
    assert "once more" in capfd.readouterr().err


def test_an_interruption_reaches_the_command(monkeypatch, tmp_path):
    """Ctrl-C goes to the whole terminal: the command cleans up, and this waits until it has."""
    cleaned, wait = tmp_path / "cleaned", subprocess.Popen.wait

    def interrupted(process, timeout=None):
        if timeout is not None:
            raise KeyboardInterrupt
        return wait(process)

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    assert watchdog.run([*PYTHON, f"open({str(cleaned)!r}, 'w')"], limit=600) == 130
    assert cleaned.exists()
