"""Certificates: what was proven of which weights, as a file beside them that others can check (chapters 71 to 79).

NAME.certificate.json lies beside NAME.safetensors. `arithlib certify NAME` makes it, and
`python arithlib/certify/checker.py NAME.safetensors NAME.certificate.json` checks it without this package.
"""

import hashlib
import json
import math
from pathlib import Path

from arithlib import checkpoints
from arithlib.certify import written
from arithlib.certify.addition import ProofError, examine, lead_with_sink, reachable, text
from arithlib.certify.ball_arithmetic import FUNCTION_ERROR
from arithlib.certify.case_split import prove
from arithlib.certify.rounding import SLOPE_ERROR, ZERO_BELOW, rounding
from arithlib.files import write_atomic
from arithlib.models.column import ColumnTransformer
from arithlib.tokenizer import ALPHABET

STATEMENT = (
    "For all integers a, b >= 0 of any length, greedy decoding of the model from the text a+b= (digits least "
    "significant first) writes the digits of their sum and then the end token."
)
ARITHMETIC = (
    "Sums, differences, products and quotients are those of float32 (IEEE 754, rounded to nearest), in any order, "
)
HYPOTHESES = [
    "The model is what arithlib.models.column describes, with these weights, window 1, the rest masked.",
    ARITHMETIC + "fused or not; a masked key has weight 0.",
    "The exponential of every score, as a softmax has it before the division, is relatively off by at most "
    "exp_error, in however many factors it is computed; but below 2^-126 it may be off by 2^-126 instead.",
]
SINK_HYPOTHESES = [
    "The model is what arithlib.models.column describes, with these weights, window 1 and a sink, the rest masked.",
    *HYPOTHESES[1:],
]
UNWINDOWED_HYPOTHESES = [
    "The model is what arithlib.models.column describes, with these weights, window 1, far keys that decay: every "
    "token attends to itself and all before it, and those after it have weight 0. Addresses are exact integers, "
    "rounded once when they become float32.",
    ARITHMETIC + "fused or not.",
    "The softmax subtracts the largest score. The exponential of every score, as it is before the division, is then "
    "relatively off by at most exp_error, in however many factors it is computed; but below 2^-126 it may be off by "
    "2^-126 instead, and below e^zero_below, where float32 has no numbers left, it is 0.",
    "The exponentials of log_slope are relatively off by at most slope_error.",
]
PRODUCT_STATEMENT = (
    "For all integers a, b >= 0 of any length, greedy decoding of the model from the text a*b= (digits least "
    "significant first) writes a page of long multiplication and then the end token: a row for each digit of b, each "
    "ended by =, in which every second token from the first on is a digit of the total so far, least significant "
    "first, and the others are carries. The last row has the digits of a times b, and perhaps one zero on top."
)
PRODUCT_HYPOTHESES = [
    "The model is what arithlib.models.column describes, with these weights, positions page, the rest masked.",
    *HYPOTHESES[1:],
]
DIFFERENCE_STATEMENT = (
    "For all integers a, b >= 0 of any length, greedy decoding of the model from the text a-b= (digits least "
    "significant first) writes two rows and then the end token. The first has a digit for each column, up to which "
    "it compares a with b: 0 equal, 1 less, 2 greater; so its last one compares the numbers. It is ended by =. The "
    "second has the sign of a - b, + for none, and the digits of the difference, as many as the longer number has, "
    "perhaps with zeros on top."
)
DIFFERENCE_HYPOTHESES = [
    "The model is what arithlib.models.column describes, with these weights, positions difference, the rest masked.",
    *HYPOTHESES[1:],
]
# Of models that write out in full: the statement that is proven of them, and what it rests on.
WRITING = {
    "page": (PRODUCT_STATEMENT, PRODUCT_HYPOTHESES),
    "difference": (DIFFERENCE_STATEMENT, DIFFERENCE_HYPOTHESES),
}
ANOTHER = "train it longer, or take another seed or model (`arithlib list 'adder-*'` shows some)"
# A margin this much above what rounding can do makes few cases, and leaves room for how a checker bounds rounding.
BEYOND_ROUNDING = 1.5


def shipped() -> list[Path]:
    """The certificates that lie beside shipped checkpoints, by name."""
    paths = (path_of(note.stem, note.parent) for note in checkpoints.shipped())
    return [path for path in paths if path.exists()]


def path_of(name: str, folder: Path) -> Path:
    """The certificate of a checkpoint in that folder, whether it is there or not."""
    return folder / f"{name}.certificate.json"


def certify(name: str) -> dict:
    """Prove that a checkpoint adds, subtracts, or multiplies on a page, and return its certificate.

    Raises ProofError naming a sum, a context or a bound, for which that is not proven, ValueError for a model that is
    neither an adder with a window of one column, or far keys that decay, nor one that reads differences or pages.
    """
    trained = checkpoints.load(name)
    if not isinstance(trained.model, ColumnTransformer):
        raise ValueError(
            f"{name} is a {type(trained.model).__name__}: only a ColumnTransformer can be certified, such as those "
            "that `arithlib list 'adder-*'` shows"
        )
    positions = trained.model.config.positions
    if positions in WRITING:
        statement, (contexts, right), proof = WRITING[positions][0], written.reachable(trained.model), _written
    else:
        statement, contexts, right = STATEMENT, reachable().contexts, reachable().right
        proof = _unwindowed if positions == "alibi" else _windowed
    lines = [text(context) + ALPHABET[token] for context, token in zip(contexts, right, strict=True)]
    return {
        "checkpoint": name,
        "sha256": trained.provenance["sha256"],
        "statement": statement,
        **proof(name, trained.model, {"count": len(lines), "sha256": _sha256(lines)}),
    }


def _windowed(name, model, contexts):
    met, found = reachable(), examine(model)
    if len(found.open):
        a, b = met.witness(int(found.open[0]))
        raise _unproven(name, met.contexts, found, f"met in {a} + {b}, ")
    if model.config.positions != "window-sink":
        return _leads(HYPOTHESES, contexts, met.contexts, found, found.granted.min())
    least = lead_with_sink(model, found)
    if least <= 0:
        raise ProofError(
            f"{name} is right in every context, but with room for its checker by {least:.3g} only: {ANOTHER}"
        )
    return _leads(SINK_HYPOTHESES, contexts, met.contexts, found, least)


def _written(name, model, contexts):
    (met, _), found = written.reachable(model), written.examine(model)
    if len(found.open):
        raise _unproven(name, met, found)
    return _leads(WRITING[model.config.positions][1], contexts, met, found, found.granted.min())


def _unproven(name, met, found, where=""):
    worst = int(found.open[0])
    return ProofError(
        f"{name} is not proven right in {len(found.open)} of {len(met)} contexts; the worst is {text(met[worst])!r}, "
        f"{where}where the right token leads by {found.lead[worst]:.3g}: {ANOTHER}"
    )


def _leads(hypotheses, contexts, met, found, least):
    """What is stated where every context is assured. least: the least lead in float32."""
    worst = int(found.lead.argmin())
    return {
        "hypotheses": hypotheses,
        "exp_error": FUNCTION_ERROR,
        "contexts": contexts,
        "margin": _below(found.lead[worst]),
        "margin_at": text(met[worst]),
        "margin_float32": _below(least),
    }


def _unwindowed(name, model, contexts):
    """By cases: contexts, told apart by further columns until what is unknown can take no lead below `margin`."""
    off = rounding(model)
    granted = math.ceil(100 * 1.25 * off.lead) / 100
    margin = math.ceil(2 * (granted + BEYOND_ROUNDING)) / 2
    proof = prove(model, least=margin)
    if not proof.complete:
        raise ProofError(
            f"{name} is not proven: without a window, a lead of {margin} logits is not assured in every case (the "
            f"least is {proof.lead:.3g}), and rounding can cost {off.lead:.3g}: {ANOTHER}"
        )
    return {
        "hypotheses": UNWINDOWED_HYPOTHESES,
        "exp_error": FUNCTION_ERROR,
        "slope_error": SLOPE_ERROR,
        "zero_below": ZERO_BELOW,
        "contexts": contexts,
        "cases": {
            "count": sum(proof.cases.values()) - len(proof.split),
            "split": len(proof.split),
            "sha256": _sha256(proof.split),
        },
        "keys": off.keys,
        "margin": margin,
        "rounding": granted,
        "margin_float32": _below(margin - granted),
    }


def _sha256(lines) -> str:
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def write(name: str) -> Path:
    """Prove and write beside the weights, or here if those are part of an installed package; returns the file.

    Raises as `certify` does.
    """
    certificate, folder = certify(name), checkpoints.find(name)
    if folder == checkpoints.WEIGHTS and not checkpoints.is_checkout():
        folder = Path.cwd()
    path = path_of(name, folder)
    write_atomic(path, (json.dumps(certificate, indent=2) + "\n").encode())
    return path


def covering(name: str) -> dict | None:
    """The certificate of a checkpoint as it is now; None where there is none, or it is about other weights."""
    folder = checkpoints.find(name)
    if folder is None or not path_of(name, folder).exists():
        return None
    certificate = json.loads(path_of(name, folder).read_text(encoding="utf-8"))
    return certificate if certificate["sha256"] == checkpoints.read(name, folder).provenance["sha256"] else None


def summary(certificate: dict) -> str:
    """What it rests on, in one line."""
    cases = f" in {certificate['cases']['count']:,} cases" if "cases" in certificate else ""
    return (
        f"{certificate['contexts']['count']:,} contexts{cases}, margin at least {certificate['margin']}, "
        f"in float32 {certificate['margin_float32']}"
    )


def _below(margin: float) -> float:
    """A number with two decimals that is smaller by 1/100 to 2/100: room for how a checker rounds."""
    return (math.floor(100 * margin) - 1) / 100
