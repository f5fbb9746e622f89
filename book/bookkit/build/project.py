"""Where things are: the folders of a checkout and the settings in book/workflow/config.yaml."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml

from bookkit.claims import repo_root


class UnknownNotebook(ValueError):
    """A notebook that book/workflow/config.yaml does not list."""


@dataclass(frozen=True)
class Project:
    """One checkout of the book, by its top folder."""

    root: Path

    @classmethod
    def find(cls) -> "Project":
        """The checkout around the current folder, or else the one this package was installed from."""
        return cls(repo_root())

    @cached_property
    def notebooks(self) -> dict[str, dict]:
        """Notebook name -> {threads, parameters, checkpoints}, as book/workflow/config.yaml lists them."""
        with (self.root / "book" / "workflow" / "config.yaml").open() as file:
            return yaml.safe_load(file)["notebooks"]

    @property
    def build(self) -> Path:
        return self.root / "book" / "_build"

    @property
    def site(self) -> Path:
        return self.build / "html"

    def notebook(self, name: str) -> Path:
        """The committed notebook, without outputs."""
        if name not in self.notebooks:
            raise UnknownNotebook(
                f"book/workflow/config.yaml lists no notebook {name!r}, only {', '.join(self.notebooks)}"
            )
        return self.root / "notebooks" / f"{name}.ipynb"

    def executed(self, name: str) -> Path:
        """The notebook as it ran."""
        return self.build / "executed" / f"{name}.ipynb"

    def records(self, name: str) -> Path:
        """What the notebook recorded: figures, claims, run.json."""
        return self.build / "records" / name
