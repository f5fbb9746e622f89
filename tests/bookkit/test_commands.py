"""The commands that make and show the book."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path

import pytest
from filelock import FileLock

from bookkit import claims
from bookkit.__main__ import main as bookkit
from bookkit.build import commands
from bookkit.build.project import Project

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(tmp_path, monkeypatch):
    project = Project(tmp_path / "a book")
    project.site.mkdir(parents=True)
    (project.root / "_toc.yml").write_text("format: jb-book\nroot: book/index\n")
    monkeypatch.setattr(Project, "find", lambda: project)
    return project


@pytest.fixture
def ran(monkeypatch):
    """Commands that would have been run; their exit statuses come from `ran.status`, then 0."""

    class Ran(list):
        status = []

    ran = Ran()

    def run(command, folder):
        ran.append(command)
        return ran.status.pop(0) if ran.status else 0

    monkeypatch.setattr(commands, "run", run)
    return ran


@pytest.mark.parametrize("name", ["book", "test", "reproduce"])
def test_help_is_given_without_beginning_anything(project, ran, capsys, name):
    assert bookkit(["book", "--cores", "1"]) == 0 and len(ran) == 1
    assert bookkit([name, "--cores", "1", "--help"]) == 0
    assert len(ran) == 1 and "urther arguments go to" in capsys.readouterr().out


def bookkit_in_a_shell(command):
    """What `... -m bookkit` and the rest of a command line leave, in this checkout."""
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; '{sys.executable}' -m bookkit {command}"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "book")},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("command", ["score", "score --json", ""])
def test_whoever_reads_may_stop_reading(command):
    done = bookkit_in_a_shell(f"{command} | true")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_scores_as_json_have_every_claim_and_its_scale():
    rows = json.loads(bookkit_in_a_shell("score --json").stdout)
    assert {row["id"] for row in rows} == {*claims.load_claims(ROOT / "book" / "claims")}
    assert all(row["scale"] is None or {*row["scale"]} == {"kind", "factors"} for row in rows)


def test_claims_of_chapters_that_have_not_run_are_told_from_those_that_nobody_tests(project, monkeypatch, capsys):
    monkeypatch.chdir(project.root)
    ledger = project.root / "book" / "claims"
    ledger.mkdir()
    row = {"source": "004", "statement": "It groks.", "test": "Look.", "tier": "C"}
    tested = row | {"basis": "proof", "rule": {"reproduced": "mean > 0", "otherwise": "refuted"}}
    (ledger / "004.yaml").write_text(json.dumps([row | {"id": "M-01"}, tested | {"id": "M-02"}]))
    assert bookkit(["score"]) == 0
    heads, counts, _ = (line.split("  ") for line in capsys.readouterr().out.splitlines())
    assert [word.strip() for word in heads if word] == ["source", "not run yet", "not attempted"]
    assert [word.strip() for word in counts if word.strip()] == ["004", "1", "1"]
    assert bookkit(["score", "--json"]) == 0
    verdicts = [row["verdict"] for row in json.loads(capsys.readouterr().out)]
    assert verdicts == ["not attempted", "not run yet"]


@pytest.mark.parametrize("end", ["ok", "failed", "killed at first", "killed later", "damaged"])
def test_the_scores_say_which_chapter_did_not_run_to_its_end(project, monkeypatch, capsys, end):
    monkeypatch.chdir(project.root)
    ledger = project.root / "book" / "claims"
    ledger.mkdir()
    row = {"source": "004", "statement": "It groks.", "test": "Look.", "tier": "C", "basis": "proof", "id": "M-01"}
    (ledger / "004.yaml").write_text(json.dumps([row | {"rule": {"reproduced": "mean > 0", "otherwise": "refuted"}}]))
    records = project.records("10_grokking")
    (records / "claims").mkdir(parents=True)
    record = {"id": "M-01", "measured": 1.0, "unit": None, "verdict": "reproduced", "scale": None, "size": None}
    (records / "claims" / "M-01.json").write_text(json.dumps(record | {"figure": None}))
    os.utime(records / "claims" / "M-01.json", (1000, 1000))
    if end != "killed at first":
        status = "failed" if end == "failed" else "ok"
        (records / "run.json").write_text("{" if end == "damaged" else json.dumps({"status": status}))
        os.utime(records / "run.json", (999, 999) if end == "killed later" else (1001, 1001))
    assert bookkit(["score"]) == 0
    said = capsys.readouterr()
    assert "M-01  reproduced" in said.out
    assert ("10_grokking did not run to its end" in said.err) == (end != "ok")


def test_book_says_where_the_site_is_and_how_to_open_it(project, ran, capsys):
    assert commands.book(["--dry-run"]) == 0
    assert "book" in ran[0] and ran[0][-1] == "--dry-run"
    assert capsys.readouterr().out == "", "a dry run builds no book"
    (project.site / "index.html").write_text("<h1>Circles</h1>")
    assert commands.book([]) == 0
    said = capsys.readouterr().out
    assert str(project.site / "index.html") in said and "make serve" in said


def test_a_failed_build_is_not_announced_as_a_book(project, ran, capsys):
    ran.status = [1]
    assert commands.book([]) == 1
    assert capsys.readouterr().out == ""


def test_test_builds_the_book_and_then_runs_every_test(project, ran):
    ran.status = [0, 5]
    assert commands.test(["-k", "fourier"]) == 5
    assert "book" in ran[0]
    assert ran[1][:3] == [sys.executable, "-m", "pytest"] and ran[1][-2:] == ["-k", "fourier"]


def test_test_stops_when_the_book_cannot_be_built(project, ran):
    ran.status = [1]
    assert commands.test([]) == 1
    assert len(ran) == 1


def test_reproduce_reads_the_weights_it_trained(project, ran):
    assert commands.reproduce([]) == 0
    assert "reproduce" in ran[0] and "retrained=true" in ran[0]


def test_two_builds_do_not_work_in_one_folder(project, ran, capsys):
    with FileLock(project.build / ".lock"):
        assert commands.book([]) == 1
    assert ran == [] and "Another build is at work" in capsys.readouterr().err


def test_a_build_that_cannot_write_says_so_before_it_begins(project, ran, capsys):
    project.build.rename(project.root / "moved")
    project.build.write_text("a file where a folder should be")
    assert commands.book([]) == 1
    assert ran == [] and "cannot write to" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk that is always full")
def test_a_full_disk_is_found_before_a_build_begins(project, ran, capsys, monkeypatch):
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda dir: open("/dev/full", "wb"))
    assert commands.book([]) == 1
    assert ran == [] and "No space left on device. Nothing was run. Free some space" in capsys.readouterr().err


def test_baselines_are_written_from_a_book_that_was_built(project, ran, capsys):
    ran.status = [1]
    assert commands.baselines([]) == 1
    assert commands.baselines([]) == 1, "there are no records to take"
    assert "no figure is recorded" in capsys.readouterr().err


def test_a_command_runs_where_it_is_told_and_its_status_is_returned(tmp_path):
    script = "import pathlib, sys; pathlib.Path('here').touch(); sys.exit(3)"
    assert commands.run([sys.executable, "-c", script], tmp_path) == 3
    assert (tmp_path / "here").exists()


def test_serve_without_a_book_says_how_to_build_it(project, capsys):
    assert commands.serve([]) == 1
    assert "make book" in capsys.readouterr().err


def test_the_site_is_served_to_this_machine_only_and_at_another_port_if_one_is_taken(project):
    (project.site / "index.html").write_text("<h1>Circles</h1>")
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(commands.server(project.site, 0))
        second = stack.enter_context(commands.server(project.site, first.server_port))
        assert second.server_port != first.server_port
        assert {first.server_address[0], second.server_address[0]} == {"127.0.0.1"}
        threading.Thread(target=second.serve_forever, daemon=True).start()
        with urllib.request.urlopen(f"http://127.0.0.1:{second.server_port}/index.html") as page:
            assert page.read() == b"<h1>Circles</h1>"
        second.shutdown()


def test_whoever_publishes_a_port_of_a_container_names_the_address_to_listen_at(project, monkeypatch, capsys):
    (project.site / "index.html").write_text("<h1>Circles</h1>")
    listened = []

    def interrupt(server):
        listened.append(server.server_address[0])
        raise KeyboardInterrupt

    monkeypatch.setattr(commands.ThreadingHTTPServer, "serve_forever", interrupt)
    for arguments in ([], ["--host", "0.0.0.0"]):
        assert commands.serve(["--port", "0", "--no-browser", *arguments]) == 0
    assert listened == ["127.0.0.1", "0.0.0.0"]


@pytest.fixture
def chapters(project):
    (project.root / "_toc.yml").write_text("chapters:\n- file: notebooks/10_waves\n- file: notebooks/11_sums\n")


@pytest.mark.parametrize("chapter", ["11", "11_sums"])
def test_page_makes_that_page_alone_and_shows_it(project, chapters, ran, monkeypatch, chapter):
    shown = []
    monkeypatch.setattr(commands, "show", lambda site, place, options: shown.append((site, place)) or 0)
    assert commands.page([chapter]) == 0
    assert "book/_build/page/11_sums/html/notebooks/11_sums.html" in ran[0]
    assert shown == [(project.build / "page" / "11_sums" / "html", "notebooks/11_sums.html")]
    ran.status = [1]
    assert commands.page([chapter]) == 1
    assert len(shown) == 1, "a chapter that failed is not shown"


@pytest.mark.parametrize(
    ("given", "near"),
    [
        ("12", "11_sums, 10_waves"),
        ("wave", "10_waves"),
        ("?", "none"),
    ],
)
def test_page_of_a_chapter_that_is_not_there_names_those_near_it(project, chapters, ran, capsys, given, near):
    assert bookkit(["page", given]) == 2 and ran == []
    said = f"_toc.yml lists no chapter {given!r}; near it: {near}. They are all in notebooks/.\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("arguments, opened", [([], 1), (["--no-browser"], 0)])
def test_serve_opens_a_browser_unless_told_not_to(project, monkeypatch, capsys, arguments, opened):
    (project.site / "index.html").write_text("<h1>Circles</h1>")
    addresses = []

    def interrupt(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(commands.ThreadingHTTPServer, "serve_forever", interrupt)
    monkeypatch.setattr(commands.webbrowser, "open", addresses.append)
    assert commands.serve(["--port", "0", *arguments]) == 0
    assert len(addresses) == opened
    assert "http://localhost:" in capsys.readouterr().out
