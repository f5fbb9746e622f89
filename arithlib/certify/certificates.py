"""Certificates: what was proven of which weights, as a file beside them that others can check (chapter 72).

NAME.certificate.json lies beside NAME.safetensors. `python -m arithlib certify NAME` makes it, and
`python arithlib/certify/checker.py NAME.safetensors NAME.certificate.json` checks it without this package.
"""

import hashlib
import json
import math
from pathlib import Path

from arithlib import checkpoints
from arithlib.certify.addition import ProofError, examine, reachable, text
from arithlib.certify.balls import FUNCTION_ERROR
from arithlib.files import write_atomic
from arithlib.tokenizer import ALPHABET

STATEMENT = (
    "For all integers a, b >= 0 of any length, greedy decoding of the model from the text a+b= (digits least "
    "significant first) writes the digits of their sum and then the end token."
)
HYPOTHESES = [
    "The model is what arithlib.models.addressed describes, with these weights, window 1, the rest masked.",
    "Sums, differences, products and quotients are those of float32 (IEEE 754, rounded to nearest), in any order, "
    "fused or not; a masked key has weight 0.",
    "The exponential of every score, as a softmax has it before the division, is relatively off by at most "
    "exp_error, in however many factors it is computed.",
]


def path_of(name: str, folder: Path) -> Path:
    """The certificate of a checkpoint in that folder, whether it is there or not."""
    return folder / f"{name}.certificate.json"


def certify(name: str) -> dict:
    """Prove that a checkpoint adds, and return its certificate.

    Raises ProofError naming a sum on which that is not proven, ValueError for a model that is no windowed adder.
    """
    trained = checkpoints.read(name)
    met, found = reachable(), examine(trained.model)
    if len(found.open):
        worst = int(found.open[0])
        a, b = met.witness(worst)
        raise ProofError(
            f"{name} is not proven right in {len(found.open)} of {len(met.contexts)} contexts; the worst is "
            f"{text(met.contexts[worst])!r}, met in {a} + {b}, where the right token leads by {found.lead[worst]:.3g}"
        )
    lines = [text(context) + ALPHABET[token] for context, token in zip(met.contexts, met.right, strict=True)]
    worst = int(found.lead.argmin())
    # Another enclosure of the same roundings, such as the checker's, may be wider: a quarter more is granted to it.
    assured = found.assured - (found.lead - found.assured) / 4
    return {
        "checkpoint": name,
        "sha256": trained.provenance["sha256"],
        "statement": STATEMENT,
        "hypotheses": HYPOTHESES,
        "exp_error": FUNCTION_ERROR,
        "contexts": {"count": len(lines), "sha256": hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()},
        "margin": _below(found.lead[worst]),
        "margin_at": text(met.contexts[worst]),
        "margin_float32": _below(assured.min()),
    }


def write(name: str) -> Path:
    """Prove and write beside the weights; returns the file. Raises as `certify` does."""
    certificate, path = certify(name), path_of(name, checkpoints.find(name))
    write_atomic(path, (json.dumps(certificate, indent=2) + "\n").encode())
    return path


def covering(name: str) -> dict | None:
    """The certificate of a checkpoint as it is now; None where there is none, or it is about other weights."""
    folder = checkpoints.find(name)
    if folder is None or not path_of(name, folder).exists():
        return None
    certificate = json.loads(path_of(name, folder).read_text())
    return certificate if certificate["sha256"] == checkpoints.read(name, folder).provenance["sha256"] else None


def _below(margin: float) -> float:
    """A number with two decimals that is smaller by 1/100 to 2/100: room for how a checker rounds."""
    return (math.floor(100 * margin) - 1) / 100
