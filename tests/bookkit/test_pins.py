"""requirements.lock is what requirements.txt leads to, and raising pins leaves the rest of the file as it is."""

import re
import stat
from pathlib import Path

import pytest

from bookkit.build import commands, pins
from bookkit.build.project import Project

ROOT = Path(__file__).resolve().parents[2]
TEXT = """# Why this one.
torch==2.13.0
sphinx==7.4.7  # held
PyYAML==6.0.3
unknown==1.0  # nobody answers for it
"""


def test_the_lock_has_every_pin_and_a_checksum_of_every_package():
    locked = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    versions = pins.read(locked)
    for name, version in pins.read((ROOT / "requirements.txt").read_text(encoding="utf-8")).items():
        assert versions[name] == version, f"{name}: run `make lock`"
    for entry in re.split(r"\n(?=\S)", locked):
        assert "--hash=sha256:" in entry, entry
    assert len(versions) > 100 and "://" not in locked


def test_pins_are_raised_and_all_else_stays():
    newest = {"torch": "2.15.0", "pyyaml": "6.1", "sphinx": "9.0.4", "numpy": "2.5"}
    assert pins.raised(TEXT, newest) == TEXT.replace("2.13.0", "2.15.0").replace("6.0.3", "6.1")


@pytest.fixture
def uv(tmp_path, monkeypatch):
    """A stand-in for uv that keeps what it was asked and given; returns (folder of a book, those two files)."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "uv"
    program.write_text(
        '#!/bin/sh\necho "$*" >>asked\ncase "$*" in *-) cat >given; printf "torch==2.15.0\\n" ;; esac\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    (tmp_path / "requirements.txt").write_text(TEXT)
    monkeypatch.setattr(Project, "find", classmethod(lambda cls: Project(tmp_path)))
    return tmp_path


def test_an_update_asks_for_the_newest_but_for_what_is_held_and_then_locks(uv):
    assert commands.lock(["--update"]) == 0
    asked = (uv / "given").read_text().split("\n")
    assert [line.strip() for line in asked[1:]] == [
        "torch",
        "sphinx==7.4.7",
        "PyYAML",
        "unknown  # nobody answers for it",
    ]
    assert (uv / "requirements.txt").read_text() == TEXT.replace("2.13.0", "2.15.0")
    assert (uv / "asked").read_text().splitlines()[-1].endswith("--output-file requirements.lock requirements.txt")


def test_locking_alone_raises_nothing(uv):
    assert commands.lock([]) == 0
    assert (uv / "requirements.txt").read_text() == TEXT and not (uv / "given").exists()


def test_without_uv_it_says_what_to_install(uv, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    assert commands.lock([]) == 1 and "pip install uv" in capsys.readouterr().err
