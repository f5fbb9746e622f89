"""A book of two chapters, as if already executed, for the tests of staging, building and checking."""

import json
import shutil
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from bookkit.claims import Claim, Measurement, Scale
from bookkit.judge import Verdict

REPOSITORY = Path(__file__).resolve().parents[2]
KEY = "tiny-wave"
# What a careless template would run.
HOSTILE = '"><script>alert("here")</script><img src="x.png" onerror="alert(1)">'
ALT = f"A wave that rises from zero to one and falls back to minus one; {HOSTILE} is text"


def figure_output(svg: str, key: str = KEY) -> nbformat.NotebookNode:
    caption = "One period of $\\sin x$; watch the **zero** in the middle."
    note = {"figure": key, "alt": ALT, "caption": caption, "inches": 5.6, "points": 11.0}
    data = {"image/svg+xml": svg, "text/plain": "<Figure>"}
    return new_output("display_data", data=data, metadata={"bookkit": note})


def glue_output(name: str, text: str) -> nbformat.NotebookNode:
    prefix = "application/papermill.record/"
    note = {"scrapbook": {"name": name, "mime_prefix": prefix}}
    return new_output("display_data", data={f"{prefix}text/plain": text}, metadata=note)


def claim_output(statement: str) -> nbformat.NotebookNode:
    """What a cell that ends in `claim(...)` puts out."""
    claim = Claim(id="W-01", source="000", statement=statement, test="height", tier="A")
    shown = Verdict(claim, Measurement.of(1.0), "reproduced", Scale("arithmetic", {}))
    data = {"text/plain": repr(shown), "text/markdown": shown._repr_markdown_(), "text/html": shown._repr_html_()}
    return new_output("execute_result", data=data)


def draw(folder: Path) -> str:
    """Record the wave in `folder` as `figure(...)` would; returns its SVG."""
    x = np.linspace(0, 2 * np.pi, 20)
    figure, axes = plt.subplots(figsize=(6, 3))
    axes.plot(x, np.sin(x))
    folder.mkdir(parents=True)
    figure.savefig(folder / f"{KEY}.svg", metadata={"Date": None})
    plt.close(figure)
    np.savez(folder / f"{KEY}.npz", x=x, y=np.sin(x), peak=1.0)
    (folder / f"{KEY}.json").write_text(json.dumps({"alt": ALT}))
    return (folder / f"{KEY}.svg").read_text()


def write(path: Path, cells: list, **metadata) -> None:
    notebook = new_notebook(cells=cells)
    notebook.metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"},
        **metadata,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)


def sources(cells: list) -> list:
    """The same cells as the repository keeps them: without outputs and counts."""
    kept = []
    for cell in cells:
        if cell.metadata.get("tags") == ["injected-parameters"]:
            continue
        kept.append(cell.copy())
        if cell.cell_type == "code":
            kept[-1].update(outputs=[], execution_count=None)
    return kept


RUN = {
    "status": "ok",
    "started": "2026-01-31T12:34:56+00:00",
    "seconds": 93.4,
    "peak_memory_mb": 1234.5,
    "parameters": {"retrain": True},
    "threads": 1,
    "versions": {"python": "3.11.7"},
    "device": "cpu",
    "error": None,
}


def make_tiny_book(root: Path) -> Path:
    """Write the book under `root`, executed and recorded; returns its build folder."""
    build = root / "book" / "_build"
    svg = draw(build / "records" / "10_waves" / "figures")
    (build / "rulegraph.svg").write_text(svg)
    (build / "layers.svg").write_text(svg)
    progress = "\rtraining:  50%|#####     | 5/10 [00:01<00:01,  4.9it/s]\rtraining: 100%|##########| 10/10\n"
    chapter = [
        new_markdown_cell(
            "# Waves\n\nA wave $y = \\sin x$, and again\n\n$$\\oint e^{i\\theta}\\,d\\theta = 0.$$\n\n"
            "See {numref}`tiny-wave`, of {glue:text}`steps` steps."
        ),
        new_code_cell("retrain = False", execution_count=1, metadata={"tags": ["parameters"]}),
        new_code_cell("retrain = True", execution_count=2, metadata={"tags": ["injected-parameters"]}),
        new_code_cell(
            "from arithlib.tasks.modular import ModularAddition\n\ntask = ModularAddition()", execution_count=3
        ),
        new_code_cell(
            "train()",
            execution_count=4,
            metadata={"papermill": {"duration": 1.0}},
            outputs=[
                new_output("stream", name="stderr", text=progress),
                new_output("stream", name="stdout", text=f"saved {root}/runs/wave\n"),
                new_output(
                    "display_data",
                    data={"application/vnd.jupyter.widget-view+json": {"model_id": "1"}, "text/plain": "HBox()"},
                ),
            ],
        ),
        new_code_cell(
            "print(words)",
            execution_count=5,
            outputs=[new_output("stream", name="stdout", text=f"printed {HOSTILE}\n")],
        ),
        new_code_cell("words", outputs=[new_output("execute_result", {"text/plain": HOSTILE})], execution_count=6),
        new_code_cell("claim(...)", execution_count=7, outputs=[claim_output(f"It rises. {HOSTILE}")]),
        new_code_cell(
            "figure(...)", execution_count=8, metadata={"tags": ["hide-input"]}, outputs=[figure_output(svg)]
        ),
        new_code_cell("glue(...)", execution_count=9, outputs=[glue_output("steps", "'4,500'")]),
        new_markdown_cell(
            "```{exercise}\n:label: flip\nFlip the wave.\n```\n\n"
            "```{solution} flip\n:class: dropdown\nUse $-\\sin x$.\n```"
        ),
    ]
    opening = [
        new_markdown_cell("# Opening\n\nBefore {doc}`/notebooks/10_waves`."),
        new_code_cell("1 + 1", execution_count=1),
    ]
    for name, cells in (("00_opening", opening), ("10_waves", chapter)):
        write(root / "notebooks" / f"{name}.ipynb", sources(cells))
        write(build / "executed" / f"{name}.ipynb", cells, papermill={"input_path": f"{root}/notebooks/{name}.ipynb"})
        (build / "records" / name).mkdir(parents=True, exist_ok=True)
        (build / "records" / name / "run.json").write_text(json.dumps(RUN | {"notebook": name}))

    shutil.copy(REPOSITORY / "_config.yml", root)
    shutil.copytree(REPOSITORY / "book" / "_static", root / "book" / "_static")
    toc = {
        "format": "jb-book",
        "root": "book/index",
        "chapters": [
            {"file": name}
            for name in (
                "notebooks/00_opening",
                "notebooks/10_waves",
                "book/scoreboard",
                "book/environment",
                "book/api",
            )
        ],
    }
    (root / "_toc.yml").write_text(yaml.safe_dump(toc))
    (root / "book" / "index.md").write_text(
        "# A tiny book\n\nAfter {cite}`fourier1822`: [waves](../notebooks/10_waves.ipynb).\n\n"
        "```{bibliography}\n```\n"
    )
    (root / "book" / "api.md").write_text(
        "# Library\n\n```{eval-rst}\n.. automodule:: arithlib.tasks.modular\n   :members:\n```\n"
    )
    (root / "book" / "references.bib").write_text(
        "@book{fourier1822,\n author={Fourier, Joseph},\n title={The heat},\n publisher={Didot},\n year={1822}}\n"
    )
    return build
