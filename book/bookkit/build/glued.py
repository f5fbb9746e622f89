"""The numbers that a notebook made available to its prose (`bookkit.prose.glue`), as its outputs hold them."""

import ast
import re
from collections.abc import Iterable, Iterator

GLUED = re.compile(r"{glue:text}`([^`]+)`")


def glued_texts(cells: Iterable[dict]) -> Iterator[tuple[str, str]]:
    """Names and texts. cells: of a notebook, as dictionaries."""
    for output in (output for cell in cells for output in cell.get("outputs", [])):
        if name := output.get("metadata", {}).get("scrapbook", {}).get("name"):
            recorded = "".join(next(text for kind, text in output["data"].items() if kind.endswith("text/plain")))
            quoted = re.fullmatch(r"(['\"]).*\1", recorded, re.DOTALL)
            yield name, ast.literal_eval(recorded) if quoted else recorded
