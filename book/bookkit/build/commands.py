"""The commands that make and show the book: `python -m bookkit` with book, page, test, serve, reproduce, ...

`make` calls the same ones. Each takes its arguments and returns an exit status.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import webbrowser
from dataclasses import asdict
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from filelock import FileLock, Timeout

from bookkit import claims
from bookkit.build import pins
from bookkit.build.project import Project, UnknownNotebook
from bookkit.files import FileProblem, check_writable, read_json

COVER = "11_fourier_circles/figures/embedding-circles.svg"  # the figure on the README's front
THIS_MACHINE = "127.0.0.1"


def book(args: list[str]) -> int:
    """Run the notebooks that need it, build the site, check it. Further arguments go to Snakemake."""
    project = Project.find()
    status = run_workflow(project, "book", args)
    # A dry run succeeds without one.
    if status == 0 and (project.site / "index.html").is_file():
        print(f"\nThe book is in {project.site}\nRead it with `make serve` (or `python -m bookkit serve`),")
        print(f"or open this file in a browser: {project.site / 'index.html'}")
    return status


def test(args: list[str]) -> int:
    """Make the book, then run every test against it, test files side by side. Further arguments go to pytest."""
    project = Project.find()
    pytest = [sys.executable, "-m", "pytest", "--numprocesses", "logical", "--dist", "loadfile"]
    # Files of many tests would come first, and those of few and long ones last: then one process runs on alone.
    pytest.append("--no-loadscope-reorder")
    return run_workflow(project, "book", []) or run([*pytest, *args], project.root)


def page(args: list[str]) -> int:
    """Run one chapter, if it needs that, and show its page alone: `page 10` or `page 10_grokking`."""
    parser = show_options("page", page.__doc__)
    parser.add_argument("chapter", help="its number or its name")
    options = parser.parse_args(args)
    project = Project.find()
    try:
        name = project.chapter(options.chapter)
    except UnknownNotebook as error:
        print(error, file=sys.stderr)
        return 2
    site, place = project.page(name) / "html", f"notebooks/{name}.html"
    target = (site / place).relative_to(project.root).as_posix()
    return run_workflow(project, target, []) or show(site, place, options)


def serve(args: list[str]) -> int:
    """Show the built book in a browser, served to this machine only unless --host says otherwise."""
    options = show_options("serve", serve.__doc__).parse_args(args)
    site = Project.find().site
    if not (site / "index.html").is_file():
        print(f"There is no book in {site} yet. Build it first: make book", file=sys.stderr)
        return 1
    return show(site, "", options)


def reproduce(args: list[str]) -> int:
    """Train everything this machine can, into runs/, and make the book from it. Further arguments go to Snakemake."""
    return run_workflow(Project.find(), "reproduce", ["--config", "retrained=true", *args])


def score(args: list[str]) -> int:
    """Print the scoreboard: every claim and its verdict. --json: as a JSON list."""
    parser = argparse.ArgumentParser(prog="python -m bookkit score", description=score.__doc__)
    parser.add_argument("--json", action="store_true", help="as a JSON list")
    options = parser.parse_args(args)
    ledger, project = claims.load_claims(), Project.find()
    rows = claims.scoreboard(project.build / "records", ledger)
    for row in rows:
        if row["notebook"] is None and ledger[row["id"]].rule:  # before a whole build
            row["verdict"] = claims.NOT_RUN
    print(json.dumps(rows, indent=2, default=asdict) if options.json else claims.score_table(rows))
    for name in sorted({row["notebook"] for row in rows if row["notebook"]}):
        if not ran_to_the_end(project.records(name)):
            print(f"{name} did not run to its end: only the verdicts that it came to are above", file=sys.stderr)
    return 0


def ran_to_the_end(records: Path) -> bool:
    """Whether the last run of a chapter did: it writes run.json when it stops, and does not if it is killed."""
    run = records / "run.json"
    latest = max(claim.stat().st_mtime for claim in records.glob("claims/*.json"))
    try:
        return run.stat().st_mtime >= latest and read_json(run, {"status": str})["status"] == "ok"
    except (FileNotFoundError, FileProblem):
        return False


def baselines(args: list[str]) -> int:
    """Make the book, then take its figures as the baselines that later ones are compared with."""
    argparse.ArgumentParser(prog="python -m bookkit baselines", description=baselines.__doc__).parse_args(args)
    from bookkit.build import regression

    project = Project.find()
    if status := run_workflow(project, "book", []):
        return status
    try:
        lines = regression.update_baselines(project.build / "records", project.root / "tests" / "baselines")
    except regression.RegressionError as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(lines) or "every figure agrees with its baseline; nothing to write")
    shutil.copyfile(project.build / "records" / COVER, project.root / "book" / "_static" / "cover.svg")
    return 0


def verify(args: list[str]) -> int:
    """Hold a built or published site against its own provenance.json and against this checkout."""
    parser = argparse.ArgumentParser(prog="python -m bookkit verify", description=verify.__doc__)
    project = Project.find()
    parser.add_argument("site", nargs="?", type=Path, default=project.site, help="folder (default book/_build/html)")
    site = parser.parse_args(args).site
    from bookkit.build import provenance

    if not (site / provenance.FILE).is_file():
        print(f"{site} holds no {provenance.FILE}: build the book first, or name a site's folder", file=sys.stderr)
        return 1
    try:
        problems = provenance.verify(project, site)
    except FileProblem as problem:
        print(problem, file=sys.stderr)
        return 1
    print("\n".join(problems) or "The site is what its chapters made, and rests on what is in this checkout.")
    return 1 if problems else 0


def links(args: list[str]) -> int:
    """Ask every address on other hosts that the built book links to whether it is there. Needs a network."""
    argparse.ArgumentParser(prog="python -m bookkit links", description=links.__doc__).parse_args(args)
    project = Project.find()
    if not (project.build / "stage" / "_toc.yml").is_file():
        print("There is no book yet. Build it first: make book", file=sys.stderr)
        return 1
    from bookkit.build import site

    return site.check_links(project)


def pdf(args: list[str]) -> int:
    """Print the built book into one PDF, with a browser that this machine has."""
    argparse.ArgumentParser(prog="python -m bookkit pdf", description=pdf.__doc__).parse_args(args)
    from bookkit.build import browser

    try:
        from bookkit.build import pdf as paper
    except ModuleNotFoundError as error:
        print(f"This needs {error.name}: python -m pip install -r requirements-pdf.txt", file=sys.stderr)
        return 1
    try:
        print(f"The book is in {paper.make(Project.find())}")
    except (browser.NoBrowser, paper.NotBuilt, FileProblem) as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


def lock(args: list[str]) -> int:
    """Write requirements.lock: every package that requirements.txt leads to, on any system, with its checksums.

    --update: raise the pins of requirements.txt first, to the newest versions that fit together; a line that ends in
    `# held` stays.
    """
    parser = argparse.ArgumentParser(prog="python -m bookkit lock", description=lock.__doc__)
    parser.add_argument("--update", action="store_true", help="raise the pins of requirements.txt first")
    update, root = parser.parse_args(args).update, Project.find().root
    if shutil.which("uv") is None:
        print("This needs uv (https://docs.astral.sh/uv): python -m pip install uv", file=sys.stderr)
        return 1
    if update and (status := pins.update(root)):
        return status
    return run([*pins.COMPILE, "--generate-hashes", "--output-file", "requirements.lock", "requirements.txt"], root)


# -------------------------------------------------------------------------------------------------- plumbing


def run_workflow(project: Project, target: str, args: list[str]) -> int:
    """Bring a target of book/workflow/Snakefile up to date; returns Snakemake's exit status."""
    try:  # Snakemake would say it in some hundred lines
        check_writable(project.build)
    except FileProblem as problem:
        print(problem, file=sys.stderr)
        return 1
    command = [sys.executable, "-m", "snakemake", target, "--snakefile", "book/workflow/Snakefile", "--cores", "all"]
    # Long ones first: a chapter that starts last would run on alone. Snakemake also makes what it is told to prefer,
    # so that this is only for targets that need all chapters.
    everything = target in ("book", "chapters", "reproduce")
    first = [
        project.executed(name) for name, settings in project.notebooks.items() if settings["first"] and everything
    ]
    command += ["--prioritize", *(os.path.relpath(path, project.root) for path in first)] if first else []
    # Snakemake's own lock outlives a killed build; the one below does not.
    command += ["--nolock", "--rerun-incomplete", "--keep-going", "--quiet", "host", "progress", "reason", "rules"]
    try:
        with FileLock(project.build / ".lock", timeout=0):
            return run([*command, *args], project.root)
    except Timeout:
        print(f"Another build is at work in {project.build}; wait for it or stop it.", file=sys.stderr)
        return 1


def run(command: list[str], folder: Path) -> int:
    """Run a command in `folder` with this environment's programs first; Ctrl-C lets it finish its clean-up."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    process = subprocess.Popen(command, cwd=folder, env=os.environ | {"PATH": path})
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.wait()
        print("\nInterrupted. The same command goes on from here.", file=sys.stderr)
        return 130


def show_options(command: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m bookkit {command}", description=description)
    waits = "open none; the address is printed, and served until Ctrl-C"
    parser.add_argument("--no-browser", action="store_true", help=waits)
    parser.add_argument("--port", type=int, default=8000, help="first port to try (default 8000)")
    reach = "address to listen at (default 127.0.0.1, for this machine only; 0.0.0.0 in a container)"
    parser.add_argument("--host", default=THIS_MACHINE, help=reach)
    return parser


def show(site: Path, place: str, options: argparse.Namespace) -> int:
    """Serve a site until Ctrl-C, and open one of its pages."""
    with server(site, options.port, options.host) as httpd:
        address = f"http://localhost:{httpd.server_port}/{place}"
        print(f"Read it at {address} (Ctrl-C stops)", flush=True)
        if not options.no_browser:
            webbrowser.open(address)
        try:
            httpd.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0


def server(site: Path, port: int, host: str = THIS_MACHINE) -> ThreadingHTTPServer:
    """An HTTP server for `site`, by default for this machine only, at `port` or, if that is taken, any free port."""
    handler = partial(SimpleHTTPRequestHandler, directory=site)
    try:
        return ThreadingHTTPServer((host, port), handler)
    except OSError:
        return ThreadingHTTPServer((host, 0), handler)
