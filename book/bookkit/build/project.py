"""Where things are: the folders of a checkout and the chapters with their settings."""

import difflib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml

from bookkit.claims import repo_root

DEFAULTS = {"checkpoints": [], "files": [], "threads": 1, "first": False, "parameters": {}}


class UnknownNotebook(ValueError):
    """A notebook that _toc.yml does not list."""


class BadSettings(ValueError):
    """A notebook whose metadata says something that nobody reads."""


def files_in(entry) -> list[str]:
    """Every `file` in a table of contents, in reading order."""
    if isinstance(entry, list):
        return [name for item in entry for name in files_in(item)]
    if isinstance(entry, dict):
        own = [entry["file"]] if "file" in entry else []
        return own + [name for value in entry.values() for name in files_in(value)]
    return []


@dataclass(frozen=True)
class Project:
    """One checkout of the book, by its top folder."""

    root: Path

    @classmethod
    def find(cls) -> "Project":
        """The checkout around the current folder, or else the one this package was installed from."""
        return cls(repo_root())

    @cached_property
    def contents(self) -> dict:
        """The table of contents, as _toc.yml has it."""
        return yaml.safe_load((self.root / "_toc.yml").read_text(encoding="utf-8"))

    @cached_property
    def notebooks(self) -> dict[str, dict]:
        """Chapters in reading order, as _toc.yml lists them: notebook name -> what its metadata says under `bookkit`.

        checkpoints: names or globs of the trained models it loads; files: paths or globs of what else it reads. When
        the content of one changes, it runs again. parameters: values for its parameters cell, where they differ from
        its own. threads: cores it computes with. first: whether it takes so long that it starts before others.
        Raises BadSettings for any other key.
        """
        chapters = [Path(name) for name in files_in(self.contents) if name.startswith("notebooks/")]
        return {path.name: self._settings(path) for path in chapters}

    def _settings(self, path: Path) -> dict:
        try:
            content = json.loads((self.root / path).with_suffix(".ipynb").read_text(encoding="utf-8"))
        except FileNotFoundError:
            content = {"metadata": {}}
        given = content["metadata"].get("bookkit", {})
        if unknown := set(given) - set(DEFAULTS):
            raise BadSettings(f"{path}: its metadata has {sorted(unknown)}; known are {sorted(DEFAULTS)}")
        return DEFAULTS | given

    @property
    def build(self) -> Path:
        return self.root / "book" / "_build"

    @property
    def site(self) -> Path:
        return self.build / "html"

    def chapter(self, given: str) -> str:
        """The notebook that a reader means by its name or its number, such as 10."""
        found = [name for name in self.notebooks if given in (name, name.partition("_")[0])]
        if len(found) != 1:
            raise self._unknown(given)
        return found[0]

    def notebook(self, name: str) -> Path:
        """The committed notebook, without outputs."""
        if name not in self.notebooks:
            raise self._unknown(name)
        return self.root / "notebooks" / f"{name}.ipynb"

    def _unknown(self, given: str) -> UnknownNotebook:
        names = {name.partition("_")[0] if given.isdigit() else name: name for name in self.notebooks}
        near = ", ".join(names[key] for key in difflib.get_close_matches(given, names, cutoff=0.5))
        return UnknownNotebook(
            f"_toc.yml lists no chapter {given!r}; near it: {near or 'none'}. They are all in notebooks/."
        )

    def page(self, name: str) -> Path:
        """The folder of a chapter's page alone: its own stage and site."""
        return self.build / "page" / name

    def executed(self, name: str) -> Path:
        """The notebook as it ran."""
        return self.build / "executed" / f"{name}.ipynb"

    def records(self, name: str) -> Path:
        """What the notebook recorded: figures, claims, run.json."""
        return self.build / "records" / name
