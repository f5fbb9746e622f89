"""What Coq has proven of the book's operations (chapters 72, 78 and 79): statements, and the record of its check."""

import hashlib
import json
import re
from pathlib import Path

PROOFS = Path(__file__).resolve().parents[2] / "proofs"


def sources() -> dict[str, str]:
    """The proofs by name of file, in the order in which Coq reads them."""
    names = json.loads((PROOFS / "record.json").read_text(encoding="utf-8"))["files"]
    return {name: (PROOFS / f"{name}.v").read_text(encoding="utf-8") for name in names}


def statement(theorem: str) -> str:
    """A theorem as it stands in the proofs. Raises KeyError where there is none of this name.

    >>> print(statement("how_many_of_pages"))
    Theorem how_many_of_pages : N.of_nat (length page_table) = 12640%N.
    """
    for text in sources().values():
        if found := re.search(rf"^Theorem {theorem} :.*?\.(?=\nProof\.)", text, re.DOTALL | re.MULTILINE):
            return found[0]
    raise KeyError(theorem)


def recorded() -> dict:
    """What Coq said, as `proofs/check.py --record` wrote it down.

    Raises ValueError where the proofs have changed since.
    """
    record = json.loads((PROOFS / "record.json").read_text(encoding="utf-8"))
    if hashlib.sha256("".join(sources().values()).encode()).hexdigest() != record["sources"]:
        raise ValueError("the proofs have changed since Coq looked at them: make prove ARGS=--record")
    return record
