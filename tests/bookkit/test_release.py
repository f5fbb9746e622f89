"""What a public project has is there, agrees with itself, and names only what exists."""

import json
import re
import shlex
import subprocess
import tomllib
from datetime import date
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

import arithlib
from bookkit.build import pins
from bookkit.claims import load_claims

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAPERS = ["README", "CONTRIBUTING", "CHANGELOG", "CODE_OF_CONDUCT", "NOTICE", "SECURITY"]


def jobs(workflow):
    return yaml.safe_load((ROOT / ".github" / "workflows" / f"{workflow}.yml").read_text(encoding="utf-8"))["jobs"]


def test_one_version_stands_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    versions = re.findall(r"^## (\S+?),? ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert PROJECT["version"] == arithlib.__version__ == str(citation["version"]) == versions[0]


def test_the_citation_has_a_date_once_the_changes_have_one():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    state = re.search(r"^## \S+, (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[1]
    assert str(citation.get("date-released", "unreleased")) == state
    assert state == "unreleased" or date.fromisoformat(state)


def test_the_citation_has_what_the_format_asks_for():
    """Of Citation File Format 1.2.0: the required keys, no unknown one, and values of the right kind."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0" and citation["type"] == "software"
    optional = {"abstract", "date-released", "keywords", "license", "type", "version"}
    assert set(citation) <= {"authors", "cff-version", "message", "title"} | optional
    assert (
        all(set(author) == {"name"} for author in citation["authors"]) and citation["message"] and citation["title"]
    )
    assert citation["license"] == ["MIT", "CC-BY-4.0"]


def test_the_package_says_of_itself_what_the_citation_and_continuous_integration_say():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert PROJECT["authors"] == citation["authors"] and PROJECT["keywords"] == citation["keywords"]
    pythons = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r"Python :: 3\.", name)]
    assert pythons == jobs("book")["test"]["strategy"]["matrix"]["python"]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_file_that_a_paper_links_to_is_there(paper):
    text = (ROOT / f"{paper}.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (ROOT / target).exists(), target


def test_the_licence_is_that_of_the_package():
    assert PROJECT["license"] == "MIT" and (ROOT / "LICENSE").read_text(encoding="utf-8").startswith("MIT License\n")
    assert all((ROOT / name).is_file() for name in PROJECT["license-files"])


def test_whatever_is_vendored_is_noticed_with_its_licence():
    notice = (ROOT / "NOTICE.md").read_text(encoding="utf-8")
    for place in ("book/_static/vendor", "tests/vendor"):
        folders = [path for path in (ROOT / place).iterdir() if path.is_dir()]
        assert folders, place
        for folder in folders:
            assert f"{place}/{folder.name}/" in notice and (folder / "LICENSE").is_file()


def test_the_oldest_and_the_newest_versions_allowed_have_to_work_and_only_what_is_to_come_may_fail():
    assert not any("continue-on-error" in job for job in jobs("book").values())
    assert all(job["continue-on-error"] for job in jobs("weekly").values())
    library, publish = jobs("book")["library"], jobs("book")["publish"]
    assert "library" in publish["needs"]
    oldest, newest = (
        [Requirement(r) for r in row["packages"].split()] for row in library["strategy"]["matrix"]["include"]
    )
    allowed = {r.name: r.specifier for r in map(Requirement, PROJECT["dependencies"])}
    for pin in oldest:
        (version,), (floor,) = pin.specifier, allowed[pin.name]
        assert (version.operator, floor.operator) == ("==", ">=") and Version(version.version) == Version(
            floor.version
        )
    assert {r.name for r in oldest} == {r.name for r in newest} == {name for name, found in allowed.items() if found}
    assert not any(r.specifier for r in newest)


@pytest.mark.parametrize("workflow", ["book", "weekly"])
def test_the_library_is_tested_as_the_wheel_alone(workflow):
    build, install, test = [step["run"] for step in jobs(workflow)["library"]["steps"] if "run" in step]
    assert "pip wheel --no-deps --wheel-dir dist ." in build
    ahead = "--pre --extra-index-url https://download.pytorch.org/whl/nightly/cpu "
    assert (ahead in install) == (workflow == "weekly")
    packages = re.sub(r"\$\{\{.*?\}\}", "torch numpy", install.split("pip install ")[1].replace(ahead, ""))
    wheel, *others = shlex.split(packages)
    of_tests = {"setuptools"} | {Requirement(r).name for r in PROJECT["optional-dependencies"]["test"]}
    assert wheel == "dist/*.whl" and {Requirement(r).name for r in others} <= of_tests | {"torch", "numpy"}
    assert test == "pytest --override-ini pythonpath=tests --numprocesses logical tests/arithlib"


def test_issue_forms_can_be_filled_in():
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        if path.name == "config.yml":
            continue
        assert form["name"] and form["description"]
        fields = [field for field in form["body"] if field["type"] != "markdown"]
        assert len({field["id"] for field in fields}) == len(fields) and all(f["attributes"]["label"] for f in fields)
        assert any(field.get("validations", {}).get("required") for field in fields)
        for field in fields:
            if field["id"] == "claim":
                assert field["attributes"]["placeholder"] in load_claims()


def test_containers_run_the_same_set_up_as_a_clone():
    """What cannot be built here is checked as far as it goes: what they call and the files they name exist."""
    docker = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    given = set(re.findall(r"^ARG (\w+)", docker, re.MULTILINE))
    assert set(re.findall(r"--build-arg (\w+)=", docker)) <= given
    assert set(re.findall(r"\$\{?([A-Z]\w*)", docker)) <= given
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    assert (ROOT / ".devcontainer" / container["build"]["dockerfile"]).resolve() == ROOT / "Dockerfile"
    assert f"useradd --create-home {container['remoteUser']}" in docker
    (home,) = re.findall(r"^WORKDIR (\S+)", docker, re.MULTILINE)  # where the image has its environment
    assert f"ln -s {home}/.venv .venv" in container["postCreateCommand"]
    for text in (docker, container["postCreateCommand"]):
        assert "bash book/workflow/setup.sh" in text
    for name in re.findall(r"[\w/-]+\.(?:ipynb|txt|sh)\b", docker + json.dumps(container)):
        assert (ROOT / name.removeprefix("/lab/tree/")).is_file(), name  # as JupyterLab addresses it


def test_the_image_is_built_once_a_week_where_that_can_be_done():
    steps = [step["run"] for step in jobs("weekly")["container"]["steps"] if "run" in step]
    assert any("hadolint" in step and step.endswith("< Dockerfile") for step in steps)
    (tag,) = [step.split()[3] for step in steps if re.fullmatch(r"docker build --tag \S+ \.", step)]
    inside = [step for step in steps if step.startswith(f"docker run --rm {tag} ")]
    assert any(step.endswith(" .venv/bin/arithlib doctor") for step in inside)
    (chapter,) = [step.split()[-1] for step in inside if "-m bookkit.build.execute" in step]
    assert (ROOT / "notebooks" / f"{chapter}.ipynb").is_file()


def test_the_container_for_a_gpu_compiles_with_the_cuda_that_torch_was_built_with():
    locked = pins.read((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    majors = {name.rpartition("-cu")[2] for name in locked if re.fullmatch(r"nvidia-.*-cu\d+", name)}
    majors.add(locked["nvidia-cuda-runtime"].partition(".")[0])
    docker = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert set(re.findall(r"nvidia/cuda:(\d+)\.", docker)) == majors and len(majors) == 1


def test_wherever_the_kernel_for_gpus_is_installed_its_build_may_see_torch():
    found = subprocess.run(
        ["git", "grep", "-hE", r"pip install .*-r (requirements-gpu\.txt|\"\$EXTRA\")"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    lines = found.stdout.splitlines()
    assert len(lines) >= 4 and all("--no-build-isolation" in line for line in lines)


def test_what_a_build_leaves_behind_does_not_travel_into_a_container():
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    folders = [line.removeprefix("**/").replace("*", "any") + "/" for line in lines]
    ignored = subprocess.run(["git", "check-ignore", *folders], cwd=ROOT, capture_output=True, text=True)
    assert ignored.stdout.splitlines() == folders
