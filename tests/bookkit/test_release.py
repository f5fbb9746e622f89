"""What a public project has is there, agrees with itself, and names only what exists."""

import json
import re
import subprocess
import tomllib
from datetime import date
from pathlib import Path

import pytest
import yaml

import arithlib
from bookkit.claims import load_claims

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAPERS = ["README", "CONTRIBUTING", "CHANGELOG", "CODE_OF_CONDUCT", "NOTICE", "SECURITY"]


def test_one_version_stands_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    versions = re.findall(r"^## (\S+?),? ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert PROJECT["version"] == arithlib.__version__ == str(citation["version"]) == versions[0]


def test_the_citation_has_what_the_format_asks_for():
    """Of Citation File Format 1.2.0: the required keys, no unknown one, and values of the right kind."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0" and citation["type"] == "software"
    optional = {"abstract", "date-released", "keywords", "license", "type", "version"}
    assert set(citation) <= {"authors", "cff-version", "message", "title"} | optional
    assert (
        all(set(author) == {"name"} for author in citation["authors"]) and citation["message"] and citation["title"]
    )
    assert date.fromisoformat(citation["date-released"]) and citation["license"] == ["MIT", "CC-BY-4.0"]


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
    for folder in (ROOT / "book" / "_static" / "vendor").iterdir():
        if folder.is_dir():
            assert folder.relative_to(ROOT).as_posix() in notice and (folder / "LICENSE").is_file()


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


def test_what_a_build_leaves_behind_does_not_travel_into_a_container():
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    folders = [line.removeprefix("**/").replace("*", "any") + "/" for line in lines]
    ignored = subprocess.run(["git", "check-ignore", *folders], cwd=ROOT, capture_output=True, text=True)
    assert ignored.stdout.splitlines() == folders
