"""A page of every chapter's box *In short*, in reading order, with the numbers of the runs that the chapters show."""

import re
from collections.abc import Mapping

from nbformat import NotebookNode

from bookkit.build.glued import GLUED, glued_texts
from bookkit.build.project import files_in

PAGE = "book/in-short"
# What a chapter writes, in a markdown cell tagged `in-short`: a directive, its class, text, and the closing fence.
BOX = re.compile(r"```\{admonition\} In short\n:class: in-short\n(?P<text>.+?)\n```", re.DOTALL)
# A link to a chapter beside its own, which this page in another folder reaches by another way.
BESIDE = re.compile(r"\]\((?=[^/()]+\.ipynb)")
MARKUP = re.compile(r"([\\`*_{}\[\]<>$#~])")


def in_short_page(contents: dict, notebooks: Mapping[str, NotebookNode]) -> str:
    """MyST markdown: for each chapter with a box its title, which leads to it, its question, and what the box says.

    contents: of _toc.yml, whose parts become headings. notebooks: executed ones by name. Raises LookupError for
    a number in a box that its notebook did not glue.
    """
    parts = [
        "# In short",
        "What each chapter asks, what it found, how sure that is, and what it means. Every number was taken from the "
        "run that the chapter shows; the title leads to it.",
    ]
    for part in contents.get("parts", ()):
        names = [name.removeprefix("notebooks/") for name in files_in(part)]
        entries = [entry(name, notebooks[name]) for name in names if name in notebooks and box(notebooks[name])]
        if entries:
            parts += [f"## {part['caption']}", *entries]
    return "\n\n".join(parts) + "\n"


def entry(name: str, notebook: NotebookNode) -> str:
    """A chapter's number and title, as a heading that leads to it, its question and its box, numbers filled in."""
    heading, _, question = notebook.cells[0].source.partition("\n")
    numbers = {key: MARKUP.sub(r"\\\1", text) for key, text in glued_texts(notebook.cells)}
    text = f"{question}\n\n{box(notebook)}"
    if missing := sorted(set(GLUED.findall(text)) - set(numbers)):
        raise LookupError(f"{name}.ipynb says {missing} in short, which it does not glue")
    text = BESIDE.sub("](../notebooks/", GLUED.sub(lambda found: numbers[found[1]], text))
    number, title = name.partition("_")[0], heading.removeprefix("# ")
    return f"### [{number} · {title}](../notebooks/{name}.ipynb)\n\n{text.strip()}"


def box(notebook: NotebookNode) -> str | None:
    """What stands in the box of a chapter; None without one."""
    boxes = [cell for cell in notebook.cells if "in-short" in cell.metadata.get("tags", ())]
    found = (BOX.fullmatch(cell.source.strip()) for cell in boxes)
    return next((match["text"] for match in found if match), None)
