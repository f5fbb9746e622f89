"""From executed notebooks to what Jupyter Book reads: one folder, laid out like the repository.

`stage` is the gate in front of the book. Jupyter Book shows whatever a notebook holds, tracebacks and stale outputs
included, and says nothing; so an executed notebook is refused here unless it ran to its end from its present code.
What passes is cleaned (progress bars, widget state, papermill's notes, absolute paths) and each figure gets the
caption, label and alternative text that its `figure(...)` call recorded.
"""

import json
import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import nbformat
import numpy as np
import yaml
from nbformat import NotebookNode

from bookkit.build import addresses, citation, in_short, pages, provenance, reader_notes, social_cards, sources
from bookkit.build.project import Project, files_in
from bookkit.claims import ClaimError
from bookkit.files import FileProblem

NO_PAGES = {"bookkit", "claims", "sources", "workflow"}  # folders of book/ that hold none
BESIDE = {"book/glossary", "book/references"}  # pages that every chapter leans on
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
# On a phone of 360 pixels: the width of a drawing inside its card, the card's edges, and the smallest text that is
# read with ease.
PHONE_PIXELS, CARD_PIXELS, TEXT_PIXELS = 315, 13, 8.5
# Places of the front page that are filled in.
MADE_HERE = {
    b"<!-- tally -->": sources.tally_markdown,
    b"<!-- headlines -->": pages.headlines_markdown,
    b"<!-- findings -->": pages.findings_markdown,
    b"<!-- sources -->": sources.cards_markdown,
}
CLONE = b"<!-- clone -->"  # on the page that says how to run the book
SHOWN_HERE = re.compile(rb"<!-- output of (\S+) in (notebooks/\S+\.ipynb) -->")  # a cell's, by its id
# On the page of the environment, and in a file beside the pages: of the whole book, which alone has these two.
MADE = f' · {{{{ref}}}}`how it was made <made-{{0}}>` · <a href="../{provenance.PARTS}/{{0}}.json">provenance</a>'
PROGRESS = re.compile(r"\d+%\|.*\|.*\d|\d+(it|s)/(s|it)\b")


class StagingError(RuntimeError):
    """An executed notebook that must not be published; the message lists every reason."""


def stage(root: Path, build: Path) -> Path:
    """Assemble `build`/stage from the pages under `root` and the executed notebooks and records under `build`.

    Returns the staging folder. Raises StagingError, with every reason at once, when a notebook has not been executed,
    failed, or was executed from other code than the present one; the folder then stays as it was.
    """
    root, build = root.resolve(), build.resolve()
    project, files = Project(root), _prose(root, build)
    problems = []
    address = addresses.repository(root)
    for source in sorted((root / "notebooks").glob("*.ipynb")):
        try:
            files |= _staged_notebook(source, build, root, MADE.format(source.stem), address)
        except StagingError as error:
            problems.append(str(error))
    if problems:
        raise StagingError("\n".join(problems))
    for name, page in (("scoreboard", pages.scoreboard_markdown), ("environment", pages.environment_markdown)):
        files[f"book/{name}.md"] = page(root, build).encode()
    files["_toc.yml"] = yaml.safe_dump(_numbered(project, project.contents), sort_keys=False).encode()
    files |= sources.source_pages(root, build)
    if in_short.PAGE in files_in(project.contents):
        chapters = {name: nbformat.reads(files[f"notebooks/{name}.ipynb"].decode(), 4) for name in project.notebooks}
        try:
            files[f"{in_short.PAGE}.md"] = in_short.in_short_page(project.contents, chapters).encode()
        except LookupError as error:
            raise StagingError(str(error)) from None
    for drawing, place in (("rulegraph", "book"), ("layers", "book/api")):
        if (root / place).is_dir():  # a book without a library has no pages about one
            files[f"{place}/{drawing}.svg"] = (build / f"{drawing}.svg").read_bytes()
    for mark, made in MADE_HERE.items():
        if mark in files.get("book/index.md", b""):
            files["book/index.md"] = files["book/index.md"].replace(mark, made(root, build).encode())
    if "book/index.md" in files:
        files["book/index.md"] = SHOWN_HERE.sub(lambda mark: _output(files, *mark.groups()), files["book/index.md"])
    if CLONE in files.get("book/how_to_run.md", b""):
        told = files["book/how_to_run.md"].replace(CLONE, addresses.clone(root).encode())
        files["book/how_to_run.md"] = told
    files |= social_cards.cards(root, build, files)
    files[provenance.FILE] = json.dumps(provenance.gather(project, files), indent=1).encode()
    folder = build / "stage"
    make_folder(folder, files)
    (folder / "_toc.yml").touch()  # which tells the workflow that the rest is as new
    return folder


def stage_page(project: Project, name: str) -> Path:
    """The staging folder of one executed chapter, with the book's first page and those that explain and cite."""
    root, build = project.root.resolve(), project.build.resolve()
    contents = project.contents
    chapters = [f"notebooks/{name}", *(page for page in files_in(contents) if page in BESIDE)]
    toc = {"format": contents["format"], "root": contents["root"], "chapters": [{"file": page} for page in chapters]}
    chapter = _staged_notebook(project.notebook(name).resolve(), build, root, address=addresses.repository(root))
    files = _prose(root, build) | chapter
    files["_toc.yml"] = yaml.safe_dump(_numbered(project, toc), sort_keys=False).encode()
    folder = project.page(name) / "stage"
    make_folder(folder, files)
    return folder


def make_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make `folder` hold these files and no others. What is the same keeps its time stamp, by which Sphinx goes."""
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        if path.relative_to(folder).as_posix() not in files:
            path.unlink()
    for name, content in files.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def _numbered(project: Project, entry):
    """The table of contents with each chapter's own number before its title, which is then what the side bar says."""
    if isinstance(entry, list):
        return [_numbered(project, item) for item in entry]
    if not isinstance(entry, dict):
        return entry
    found = {key: _numbered(project, value) for key, value in entry.items()}
    number, _, _ = (name := Path(entry.get("file", "")).name).partition("_")
    if number.isdigit() and name in project.notebooks:
        heading = nbformat.read(project.notebook(name), as_version=4).cells[0].source.partition("\n")[0]
        found["title"] = f"{number} · {heading.removeprefix('# ')}"
    return found


def _prose(root: Path, build: Path) -> dict[str, bytes]:
    """Settings, table of contents and the pages under book/, by path below the staging folder."""
    files = {"_config.yml": addresses.config(root), "_toc.yml": (root / "_toc.yml").read_bytes()}
    for path in sorted((root / "book").rglob("*")):
        code = path.relative_to(root / "book").parts[0] in NO_PAGES
        if path.is_file() and build not in path.parents and not path.name.startswith(".") and not code:
            files[path.relative_to(root).as_posix()] = path.read_bytes()
    return files


def _output(files: Mapping[str, bytes], cell: bytes, notebook: bytes) -> bytes:
    """What the page shows of a cell of a staged notebook: its output in HTML, as a directive."""
    known = nbformat.reads(files.get(notebook.decode(), b'{"cells": []}').decode(), 4).cells
    for output in (output for one in known if one.id == cell.decode() for output in one.outputs):
        if html := output.get("data", {}).get("text/html"):
            return b"```{raw} html\n" + html.encode() + b"\n```"
    raise StagingError(f"book/index.md shows {cell.decode()} of {notebook.decode()}, which puts out no HTML")


def _staged_notebook(
    source: Path, build: Path, root: Path, links: str = "", address: str | None = None
) -> dict[str, bytes]:
    """The staged notebook, data of its figures and what its elements load later, by path below the staging folder.

    links: what stands under each figure behind those to its files. address: of the repository, if it has one.
    """
    executed = build / "executed" / source.name
    if not executed.exists():
        raise StagingError(f"{source.name} has not been executed: expected {executed}; run `make book`")
    notebook, present = read_executed(executed), nbformat.read(source, as_version=4)
    problems = refusals(notebook, present)
    if problems:
        raise StagingError("\n".join(f"{source.name}, {problem}" for problem in problems))
    renew_prose(notebook, present)
    clean(notebook, root)
    try:
        keys = add_figure_metadata(notebook, links)
    except StagingError as error:
        raise StagingError(f"{source.name}, {error}") from None
    except (TypeError, LookupError, AttributeError) as error:
        raise StagingError(f"{source.name}: what its figures recorded is damaged; execute it again") from error
    reader_notes.add_reader_notes(notebook, glossary=(root / "book" / "glossary.md").is_file())
    citation.add_citation(notebook, source.stem, root, address)
    figures = build / "records" / source.stem / "figures"
    files = {}
    for key in keys:
        try:
            with np.load(figures / f"{key}.npz") as arrays:
                files[f"figures/{key}.json"] = _readable_json({name: arrays[name] for name in arrays.files})
            files[f"figures/{key}.svg"] = (figures / f"{key}.svg").read_bytes()
        except FileNotFoundError as error:
            raise StagingError(
                f"{source.name} shows figure '{key}' but recorded no data for it: {error.filename} is missing; "
                "execute the notebook again"
            ) from None
    for asset in (build / "records" / source.stem / "assets").glob("*"):
        files[f"book/_static/{asset.name}"] = asset.read_bytes()
    files[f"notebooks/{source.name}"] = nbformat.writes(notebook).encode()
    return files


def read_executed(path: Path) -> NotebookNode:
    """An executed notebook. Raises StagingError for a damaged one."""
    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
    except (ValueError, LookupError, TypeError, AttributeError, nbformat.ValidationError) as error:
        raise StagingError(f"{path.name} is damaged; execute it again") from error
    return notebook


def refusals(executed: NotebookNode, source: NotebookNode) -> list[str]:
    """Why this executed notebook must not be published; empty when nothing is wrong."""
    ran = [cell.source for cell in _code(executed) if not _is_injected(cell)]
    if ran != [cell.source for cell in _code(source)]:
        return ["it was executed from another source than the present one; execute it again"]
    problems = []
    for number, cell in enumerate(executed.cells):
        if cell.cell_type != "code":
            continue
        for output in cell.outputs:
            if output.output_type == "error":
                problems.append(f"cell {number} failed: {output.ename}: {output.evalue}")
        if cell.source.strip() and cell.execution_count is None:
            problems.append(f"cell {number} was not executed: {cell.source.strip().splitlines()[0]!r}")
    return problems


def renew_prose(executed: NotebookNode, source: NotebookNode) -> None:
    """Put the present text, in place, between the code that was executed: no edit of it changes what was computed."""
    ran = _code(executed)
    executed.cells = []
    for cell in source.cells:
        if cell.cell_type == "code":
            cell = ran.pop(0)
        executed.cells.append(cell)
        if ran and _is_injected(ran[0]):
            executed.cells.append(ran.pop(0))


def _code(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _is_injected(cell: NotebookNode) -> bool:
    """Whether papermill put the cell there, right behind the one tagged `parameters`."""
    return "injected-parameters" in cell.metadata.get("tags", [])


def clean(notebook: NotebookNode, root: Path) -> None:
    """Remove, in place, what belongs to the run and not to the page.

    Progress bars and widgets (which need a kernel) go, anything else a widget output holds stays; so do papermill's
    metadata and the place on disk where the notebook ran.
    """
    places = [(f"{root}/", ""), (str(root), "."), (str(Path.home()), "~")]
    notebook.metadata = NotebookNode(
        {key: value for key, value in notebook.metadata.items() if key in ("kernelspec", "language_info")}
    )
    for cell in notebook.cells:
        tags = list(cell.metadata.get("tags", []))
        if "injected-parameters" in tags:
            tags.append("hide-input")
        cell.metadata = NotebookNode({"tags": tags} if tags else {})
        if cell.cell_type == "code":
            cell.outputs = [output for output in map(_clean_output, cell.outputs) if output is not None]
            for output in cell.outputs:
                _replace_places(output, places)


def _clean_output(output: NotebookNode) -> NotebookNode | None:
    if output.output_type == "stream":
        # A terminal shows only what follows the last carriage return of a line.
        lines = [line.rstrip("\r").rpartition("\r")[2] for line in output.text.split("\n")]
        if output.name == "stderr":
            lines = [line for line in lines if not PROGRESS.search(line)]
        output.text = "\n".join(lines)
        return output if output.text.strip() else None
    if WIDGET_VIEW in output.get("data", {}):
        del output.data[WIDGET_VIEW]
        # The text form of a widget, `IntSlider(value=3)`, tells a reader nothing.
        return output if set(output.data) - {"text/plain"} else None
    return output


def _replace_places(output: NotebookNode, places: list[tuple[str, str]]) -> None:
    holder = output if output.output_type == "stream" else output.data
    for key, text in holder.items():
        if isinstance(text, str):
            for place, name in places:
                text = text.replace(place, name)
            holder[key] = text


def add_figure_metadata(notebook: NotebookNode, links: str = "") -> list[str]:
    """Turn each output of `figure(...)` into a numbered, captioned figure with alternative text.

    Returns the keys of the figures in order. Raises StagingError when a cell shows a figure beside something else:
    MyST-NB would give both the same label.
    """
    keys = []
    for number, cell in enumerate(notebook.cells):
        # What `glue` stores is taken out of the cell before it is drawn.
        shown = [
            output
            for output in cell.get("outputs", [])
            if output.output_type != "stream" and not output.metadata.get("scrapbook", {}).get("mime_prefix")
        ]
        figures = [output for output in shown if "bookkit" in output.metadata]
        if not figures:
            continue
        note = figures[0].metadata["bookkit"]
        if len(shown) > 1:
            raise StagingError(
                f"cell {number} shows figure '{note['figure']}' and {len(shown) - 1} more; "
                "give each a cell of its own"
            )
        key = note["figure"]
        figures[0].data = NotebookNode({"image/svg+xml": figures[0].data["image/svg+xml"]})
        downloads = f"{{download}}`data </figures/{key}.json>` · {{download}}`drawing </figures/{key}.svg>`{links}"
        cell.metadata["mystnb"] = {
            "figure": {"name": key, "caption": f"{note['caption']}\n\n{downloads}"},
            "image": {"alt": note["alt"]} | _on_a_phone(note),
        }
        keys.append(key)
    return keys


def _on_a_phone(note: dict) -> dict:
    """Options of a figure whose smallest text a phone would show too small: the width that it keeps there (book.css).

    It scrolls sideways, by no more than that text needs. Its width is for phones alone, so that it is no thumbnail.
    """
    needed = TEXT_PIXELS * 72 * note["inches"] / note["points"]
    if needed <= PHONE_PIXELS:
        return {}
    return {"classes": "wide no-scaled-link", "width": f"{math.ceil(needed + CARD_PIXELS)}px"}


def _readable_json(arrays: dict[str, np.ndarray]) -> bytes:
    """The plotted arrays as JSON, six significant digits, for readers without numpy; NaN becomes null."""

    def plain(value):
        if isinstance(value, list):
            return [plain(entry) for entry in value]
        return float(f"{value:.6g}") if np.isfinite(value) else None

    return json.dumps({name: plain(array.astype(float).tolist()) for name, array in arrays.items()}).encode()


def main() -> int:
    project = Project.find()
    try:
        stage(project.root, project.build)
    except (StagingError, FileProblem, ClaimError) as error:
        print(f"\nNot published:\n{error}\n", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
