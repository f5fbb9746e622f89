"""How to cite a chapter: an entry for BibTeX at its end, of what CITATION.cff says of the whole book."""

import re
from pathlib import Path

import yaml
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

FILE = "CITATION.cff"
SPECIAL = re.compile(r"([&%$#_])")  # what TeX reads as something else
BOX = """````{{admonition}} Cite this chapter
:class: dropdown cite
{message}

```bibtex
{entry}
```
````"""


def add_citation(notebook: NotebookNode, name: str, root: Path, address: str | None) -> None:
    """End a chapter, in place, with how to cite it; nothing where the book has no CITATION.cff."""
    if not (root / FILE).is_file():
        return
    about = yaml.safe_load((root / FILE).read_text(encoding="utf-8"))
    title = notebook.cells[0].source.partition("\n")[0].removeprefix("# ")
    text = BOX.format(message=about["message"], entry=bibtex(name, title, about, address))
    notebook.cells.append(new_markdown_cell(text, id="cite-this-chapter"))


def bibtex(name: str, title: str, about: dict, address: str | None) -> str:
    """The entry of a chapter. about: of CITATION.cff. address: of the repository, None where it has none."""
    number = name.partition("_")[0]
    authors = " and ".join(
        f"{{{one['name']}}}" if "name" in one else f"{one['family-names']}, {one['given-names']}"
        for one in about["authors"]
    )
    released = about.get("date-released")
    fields = {
        "author": authors,
        "title": SPECIAL.sub(r"\\\1", title),
        "chapter": number,
        "booktitle": SPECIAL.sub(r"\\\1", about["title"]),
        "year": str(released)[:4] if released else None,
        "note": f"Version {about['version']}" + ("" if released else ", not yet released"),
        "url": address,
    }
    lines = "".join(f"  {key:9} = {{{value}}},\n" for key, value in fields.items() if value)
    return f"@incollection{{arithlib-{number},\n{lines}}}"
