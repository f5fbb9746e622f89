"""What every figure and verdict of the book rests on, as one file in the site; and whether a site keeps to it.

`provenance.json` holds, for each chapter, the commit, the parameters, versions and seconds of its run, the sha256 of
its source, of the checkpoints and other files that it names, of the data and the drawing of each figure, and its
verdicts; and, once the site is built, the sha256 of each page. `provenance/NAME.json` repeats what concerns one
chapter.
"""

import hashlib
import importlib.metadata
import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from bookkit.build import pages, regression
from bookkit.build.digest import checkpoint_files, file_digest
from bookkit.build.project import Project
from bookkit.files import FileProblem, read_json, write_atomic

FILE = "provenance.json"
PARTS = "provenance"
OFFERED = ("json", "svg")  # the data and the drawing of each figure
RUN = ("started", "seconds", "peak_memory_mb", "device", "threads", "parameters", "versions")


def gather(project: Project, published: Mapping[str, bytes]) -> dict:
    """Everything that provenance.json says, of the records and the sources as they are now.

    published: the files that the site offers, among them figures/KEY.json and figures/KEY.svg.
    """
    packages = {found.name: found.version for found in importlib.metadata.distributions()}
    return {
        "commit": commit(project.root),
        "machine": pages.machine(),
        "packages": dict(sorted(packages.items(), key=lambda item: item[0].lower())),
        "chapters": {name: _chapter(project, name, published) for name in project.notebooks},
    }


def _chapter(project: Project, name: str, published: Mapping[str, bytes]) -> dict:
    records = project.records(name)
    run, claims = pages.read_run(records), [read_json(path) for path in sorted((records / "claims").glob("*.json"))]
    return {
        "source": file_digest(project.notebook(name)),
        **{key: run[key] for key in RUN},
        "checkpoints": checkpoints(project, name),
        "files": files(project, name),
        "figures": {
            path.stem: {kind: _sha256(published[f"figures/{path.stem}.{kind}"]) for kind in OFFERED}
            for path in sorted((records / "figures").glob("*.svg"))
            if f"figures/{path.name}" in published
        },
        "claims": {claim["id"]: {key: claim[key] for key in ("verdict", "n", "scale")} for claim in claims},
    }


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def checkpoints(project: Project, name: str) -> dict[str, str]:
    """The shipped files that a chapter names, by place below the top, with their sha256."""
    return _digests(project.root, checkpoint_files(project.root, project.notebooks[name]["checkpoints"]))


def files(project: Project, name: str) -> dict[str, str]:
    """What else a chapter says that it reads, by place below the top, with its sha256."""
    found = {path for pattern in project.notebooks[name]["files"] for path in project.root.glob(pattern)}
    return _digests(project.root, (path for path in found if path.is_file()))


def pages_of(site: Path) -> dict[str, str]:
    """The pages of a site, by place in it, with their sha256."""
    return _digests(site, site.rglob("*.html"))


def _digests(folder: Path, paths: Iterable[Path]) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): file_digest(path) for path in sorted(paths)}


def publish(project: Project) -> None:
    """Put what staging gathered into the site that was just built, and its pages with it."""
    write(project.site, read_json(project.build / "stage" / FILE) | {"pages": pages_of(project.site)})


def write(site: Path, stated: Mapping) -> None:
    """The whole, and what a reader of one chapter wants of it."""
    write_atomic(site / FILE, json.dumps(stated, indent=1).encode())
    for name in stated["chapters"]:
        write_atomic(site / PARTS / f"{name}.json", _part(stated, name))


def _part(stated: Mapping, name: str) -> bytes:
    page = stated["pages"].get(f"notebooks/{name}.html")
    return json.dumps({"commit": stated["commit"], "page": page} | stated["chapters"][name], indent=1).encode()


def commit(root: Path) -> str | None:
    """The commit of the checkout, with a plus if files differ from it; None where that is not known."""
    try:
        head = subprocess.run(["git", "-C", root, "rev-parse", "HEAD"], capture_output=True, text=True)
        changed = subprocess.run(["git", "-C", root, "status", "--porcelain"], capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return head.stdout.strip() + "+" * bool(changed.stdout) if head.returncode == 0 else None


def verify(project: Project, site: Path) -> list[str]:
    """Where a published site is not what its own provenance.json says, or not what this checkout holds.

    Raises FileProblem for a provenance.json that is damaged, or that an older version of this wrote.
    """
    try:
        return list(_problems(project, site, read_json(site / FILE)))
    except (TypeError, LookupError, AttributeError) as error:
        raise FileProblem(f"{site.name}/{FILE} is damaged ({error!r}): build the book again") from error


def _problems(project: Project, site: Path, stated: dict) -> Iterator[str]:
    shown = {path.name: path for kind in OFFERED for path in (site / "_downloads").glob(f"*/*.{kind}")}
    judged = regression.verdicts_before(project.root / "tests" / "baselines")
    for name, chapter in stated["chapters"].items():
        if name not in project.notebooks:
            yield f"{name}: this checkout has no such chapter"
            continue
        if file_digest(project.notebook(name)) != chapter["source"]:
            yield f"{name}: the chapter of this checkout is another"
        part = site / PARTS / f"{name}.json"
        if not part.is_file() or part.read_bytes() != _part(stated, name):
            yield f"{name}: {PARTS}/{part.name} does not repeat what {FILE} says"
        here, there = checkpoints(project, name) | files(project, name), chapter["checkpoints"] | chapter["files"]
        for place in _differing(here, there):
            yield f"{name}: {place} of this checkout is another, or only one of the two has it"
        for key, figure in chapter["figures"].items():
            for kind, digest in figure.items():
                offered = shown.get(f"{key}.{kind}")
                if offered is None or file_digest(offered) != digest:
                    yield f"{name}: the site's {key}.{kind} is not what the chapter made"
        for id, claim in chapter["claims"].items():
            before = judged.get(f"{name}/{id}")
            if claim["verdict"] != before:
                yield f"{name}: claim {id} is {claim['verdict']!r} on the site, and {before!r} in the baselines here"
    for part in sorted({path.stem for path in (site / PARTS).glob("*")} - stated["chapters"].keys()):
        yield f"{PARTS}/{part}.json: {FILE} has no such chapter"
    for name in project.notebooks.keys() - stated["chapters"].keys():
        yield f"{name}: the site has no such chapter"
    for place in _differing(pages_of(site), stated["pages"]):
        yield f"{place}: this page is not the one that was built, or only one of the two is there"


def _differing(here: Mapping[str, str], there: Mapping[str, str]) -> list[str]:
    return sorted(place for place in here.keys() | there.keys() if here.get(place) != there.get(place))
