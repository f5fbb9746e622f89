"""A book of one chapter on another subject goes from notebook to checked site, where there is no arithlib."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from tiny_book import REPOSITORY


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The book, with this repository's looks and workflow, after `page 10` and `book` of `python -m bookkit`."""
    root = shutil.copytree(Path(__file__).with_name("needle_book"), tmp_path_factory.mktemp("a") / "needle")
    shutil.copytree(REPOSITORY / "book" / "_static", root / "book" / "_static")
    for name in ("_config.yml", "book/workflow/Snakefile"):
        shutil.copy(REPOSITORY / name, root / name)
    shadows = tmp_path_factory.mktemp("shadows")
    trace = shadows / "imported"  # for somebody may catch the error
    for name in ("arithlib", "chapters", "presets"):
        program = f"import pathlib\npathlib.Path({str(trace)!r}).touch()\nraise ImportError('there is no {name}')\n"
        (shadows / f"{name}.py").write_text(program)
    found = os.pathsep.join(map(str, (shadows, REPOSITORY / "book")))
    alone = (
        "from bookkit.build import commands\ncommands.show = lambda *_: 0\nraise SystemExit(commands.page(['10']))"
    )
    for command in (["-c", alone], ["-m", "bookkit", "book"]):
        answer = subprocess.run(
            [sys.executable, *command],
            cwd=root,
            env=os.environ | {"PYTHONPATH": found},
            capture_output=True,
            text=True,
        )
        assert answer.returncode == 0, answer.stdout + answer.stderr
    assert not trace.exists(), f"something imported arithlib, chapters or presets\n{answer.stderr}"
    return root


def page(built: Path, name: str) -> BeautifulSoup:
    return BeautifulSoup((built / "book" / "_build" / "html" / name).read_text("utf8"), "html.parser")


def test_every_step_of_the_workflow_was_passed(built):
    build = built / "book" / "_build"
    assert (build / "checked").is_file()
    run = json.loads((build / "records" / "10_needle" / "run.json").read_text("utf8"))
    assert (run["status"], run["parameters"]) == ("ok", {"throws": 20_000})


def test_its_chapter_shows_figure_number_and_verdict(built):
    chapter = page(built, "notebooks/10_needle.html")
    assert chapter.find("figure", id="needle-share").img["alt"].startswith("A jagged line")
    throws, share = (span.get_text() for span in chapter.select(".pasted-text"))
    assert throws == "20,000" and abs(float(share) - 0.637) < 0.0102
    assert "reproduced" in chapter.find(id="claim-b-01").get_text()


def test_its_scoreboard_leads_to_the_chapter(built):
    assert page(built, "book/scoreboard.html").find("a", href="../notebooks/10_needle.html#claim-b-01")


def test_its_chapter_was_built_for_itself_and_ran_once(built):
    build = built / "book" / "_build"
    alone = build / "page" / "10_needle" / "html"
    assert not (alone / "book" / "scoreboard.html").exists()
    chapter = BeautifulSoup((alone / "notebooks" / "10_needle.html").read_text("utf8"), "html.parser")
    assert chapter.find("figure", id="needle-share") and "reproduced" in chapter.find(id="claim-b-01").get_text()
    made = (alone / "notebooks" / "10_needle.html").stat().st_mtime
    assert (build / "executed" / "10_needle.ipynb").stat().st_mtime < made < (build / "checked").stat().st_mtime


def test_the_script_that_enlarges_figures_is_where_there_are_some(built):
    loads = {
        name: bool(page(built, name).select("script[src*=enlarge]"))
        for name in ("notebooks/10_needle.html", "book/index.html")
    }
    assert loads == {"notebooks/10_needle.html": True, "book/index.html": False}
