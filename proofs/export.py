"""The weights of one adder, and enclosures of the exponentials of its scores, as Coq has them in Weights.v.

`python3 proofs/export.py` writes that file anew. Needs Python alone.
"""

import hashlib
import json
import struct
from decimal import Decimal, localcontext
from fractions import Fraction
from math import ceil, floor
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKPOINT = "compact-18-s3-settled"
PATH = HERE.parent / "checkpoints" / "compact" / f"{CHECKPOINT}.safetensors"

BITS = 27  # weights are whole multiples of 2^-27
UNIT = 18  # ends of enclosures are whole multiples of 2^-18
OFF = Fraction(1, 2**16)  # as wide as this, relatively, to both sides
TOKENS = (*(f"Digit d{digit}" for digit in range(10)), "Minus", "Plus", "Times", "Equals", "End")
NUMBERS, DISTANCES = ("0%nat", "1%nat", "2%nat", "_"), ("0%nat", "_")


def tensors(content: bytes) -> dict[str, list[Fraction]]:
    """The numbers of each tensor of a safetensors file, row by row, as exact fractions."""
    start = 8 + struct.unpack("<Q", content[:8])[0]
    found = {}
    for name, about in json.loads(content[8:start]).items():
        if name.startswith("model/"):
            first, last = about["data_offsets"]
            values = struct.unpack(f"<{(last - first) // 4}f", content[start + first : start + last])
            found[name.removeprefix("model/")] = [Fraction(value) for value in values]
    return found


def exponential(score: Fraction) -> tuple[Fraction, Fraction]:
    """Two fractions with exp(score) between them, 10^-40 apart or less.

    The standard library has the exponential of a decimal number rightly rounded to as many digits as asked for.
    """
    with localcontext() as context:
        context.prec = 60
        found = Fraction((Decimal(score.numerator) / Decimal(score.denominator)).exp())  # a float32 fits: exact
    return found * (1 - Fraction(1, 10**50)), found * (1 + Fraction(1, 10**50))


def enclosure(score: Fraction) -> tuple[int, int]:
    """Multiples of 2^-UNIT, outside all that is off exp(score) by OFF at most."""
    low, high = exponential(score)
    return floor(low * (1 - OFF) * 2**UNIT), ceil(high * (1 + OFF) * 2**UNIT)


def whole(value: Fraction) -> int:
    """In multiples of 2^-BITS. Raises ValueError where it is none."""
    units = value * 2**BITS
    if units.denominator != 1:
        raise ValueError(f"{float(value)} is no multiple of 2^-{BITS}")
    return int(units)


def pairs(values: list) -> list[tuple]:
    return list(zip(values[::2], values[1::2], strict=True))


def coq(value) -> str:
    """An integer, or nested pairs of them."""
    if isinstance(value, tuple):
        return f"({', '.join(map(coq, value))})"
    return str(value)


def by_case(name: str, of: dict[str, str], kind: str, cases: dict[str, object]) -> str:
    """A function of variables of these types, by what it is for each case."""
    variables = " ".join(f"({variable} : {its})" for variable, its in of.items())
    lines = "\n".join(f"  | {case} => {coq(value)}" for case, value in cases.items())
    return f"Definition {name} {variables} : {kind} :=\n  match {', '.join(of)} with\n{lines}\n  end."


def constant(name: str, kind: str, value) -> str:
    return f"Definition {name} : {kind} := {coq(value)}."


def written(content: bytes) -> str:
    """Weights.v for a file of weights. Raises ValueError where tokens have a say in scores."""
    w = {name: [whole(value) for value in values] for name, values in tensors(content).items()}
    if any(w["qkv.weight"][:8]) or any(w["qkv.bias"][:4]):
        raise ValueError("queries or keys are not zero")
    near, sink = tensors(content)["near"], tensors(content)["sink"][0]
    slots = [f"{number}, {distance}" for number in NUMBERS for distance in DISTANCES]

    def matrix(name, rows=slice(None)):
        return tuple(pairs(w[name])[rows])

    def of_token(values):
        return dict(zip(TOKENS, values, strict=True))

    parts = [
        f"""(** * The weights of one network

    Written by [export.py] from the weights of {CHECKPOINT}, a file whose SHA-256 is
    {hashlib.sha256(content).hexdigest()}.

    A weight is a float32 number, hence a whole multiple of a power of two: here all are multiples of
    2^-[weight_bits]. Queries and keys are zero in this network, so that the score of a key is [near], by its number
    and its distance, whatever the tokens are. *)

From Adder Require Export Model.
Open Scope Z_scope.""",
        constant("weight_bits", "Z", BITS),
        by_case("embedding", {"t": "token"}, "Z * Z", of_token(pairs(w["embedding.weight"]))),
        by_case(
            "number_embedding", {"n": "nat"}, "Z * Z", dict(zip(NUMBERS, pairs(w["numbers.weight"]), strict=True))
        ),
        constant("value_weight", "(Z * Z) * (Z * Z)", matrix("qkv.weight", slice(4, 6))),
        constant("value_bias", "Z * Z", tuple(w["qkv.bias"][4:])),
        constant("out_weight", "(Z * Z) * (Z * Z)", matrix("out.weight")),
        constant("neuron_in", "(Z * Z) * (Z * Z)", matrix("mlp_in.weight")),
        constant("neuron_in_bias", "Z * Z", tuple(w["mlp_in.bias"])),
        constant("neuron_out", "(Z * Z) * (Z * Z)", matrix("mlp_out.weight")),
        constant("neuron_out_bias", "Z * Z", tuple(w["mlp_out.bias"])),
        by_case("unembedding", {"t": "token"}, "Z * Z", of_token(pairs(w["unembedding.weight"]))),
        by_case("unembedding_bias", {"t": "token"}, "Z", of_token(w["unembedding.bias"])),
        f"""(** ** Scores, and their exponentials

    Of a key by number and distance, and of the sink. Coq does not use [near] and [sink], but what Python says of
    their exponentials: that they lie between these two multiples of 2^-[exp_bits]. An exponential that is off by a
    part in {OFF.denominator:,} still does. *)""",
        by_case("near", {"number": "nat", "distance": "nat"}, "Z", dict(zip(slots, map(whole, near), strict=True))),
        constant("sink", "Z", whole(sink)),
        constant("exp_bits", "Z", UNIT),
        by_case(
            "exp_near",
            {"number": "nat", "distance": "nat"},
            "Z * Z",
            dict(zip(slots, map(enclosure, near), strict=True)),
        ),
        constant("exp_sink", "Z * Z", enclosure(sink)),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    (HERE / "Weights.v").write_text(written(PATH.read_bytes()), encoding="utf-8")
