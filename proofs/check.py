"""Have Coq check the proofs of this folder, and compare its lists of contexts with the certificates'.

`make prove`. Needs Python and Coq 8.16 or later, nothing else; builds in a temporary folder, in a minute or two.
With --record it also notes what was checked, for chapters 72, 78 and 79 to show.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Each needs some of those before it.
FILES = ("Numbers", "Model", "Contexts", "Adder", "Weights", "Network", "Slots", "Difference", "Product", "Report")
# What Report.v prints lists about, in its order: first all contexts of each, then what is seen in one text of each.
# A list of logits follows.
OPERATIONS = ("a+b=", "a-b=", "a*b=")
TOKENS = "0123456789-+*=$."  # by their hexadecimal digit there
RECORD = HERE / "record.json"
CLOSED = "Closed under the global context"


def digest_of_sources() -> str:
    """SHA-256 of the proofs as they are now, whatever the line ends of a checkout."""
    sources = "".join((HERE / f"{name}.v").read_text(encoding="utf-8") for name in FILES)
    return hashlib.sha256(sources.encode()).hexdigest()


def prove(folder: Path = HERE) -> dict:
    """What Coq says to the proofs in `folder`: theorems without assumptions, the contexts of each operation as
    certificates name them, the token in each slot after each token of one text, and the network's logits in some
    contexts, in multiples of 2^-20.

    Raises RuntimeError with Coq's words where a proof fails, or a theorem rests on an axiom.
    """
    with tempfile.TemporaryDirectory() as build:
        for name in FILES:
            shutil.copy(folder / f"{name}.v", build)
            command = ["coqc", "-q", "-Q", ".", "Adder", f"{name}.v"]
            done = subprocess.run(command, cwd=build, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"Coq does not accept {name}.v:\n{done.stdout}{done.stderr}")
    about, *printed = done.stdout.split("     = [")
    report = (folder / "Report.v").read_text(encoding="utf-8")
    theorems = re.findall(r"\w+", re.search(r"^Definition theorems :=\s*\(([\w,\s]+)\)\.", report, re.M)[1])
    if about.splitlines() != [CLOSED]:
        raise RuntimeError(f"a theorem rests on more than Coq's logic:\n{about}")
    lists = [[coded(number) for number in re.findall(r"\d+", one)] for one in printed[: 2 * len(OPERATIONS)]]
    logits = [one for part in printed[2 * len(OPERATIONS) :] for one in re.findall(r"(\d+),\s*\[(.*?)\]", part, re.S)]
    version = subprocess.run(["coqc", "--print-version"], capture_output=True, text=True, check=True).stdout
    return {
        "coq": version.split()[0],
        "files": list(FILES),
        "sources": digest_of_sources(),
        "closed": theorems,
        "contexts": {text: named(map(tokens, lines)) for text, lines in zip(OPERATIONS, lists, strict=False)},
        "seen": {
            text: [dict(zip(line[::2], tokens(line[1::2]), strict=True)) for line in lines]
            for text, lines in zip(OPERATIONS, lists[len(OPERATIONS) :], strict=False)
        },
        "logits": {
            tokens(coded(context)): [int(logit) for logit in re.findall(r"-?\d+", values)]
            for context, values in logits
        },
    }


def coded(entry: str) -> str:
    """The hexadecimal digits of an entry that Report.v prints."""
    return f"{int(entry):x}"[1:]


def tokens(codes: str) -> str:
    """Hexadecimal digits as tokens, a dot for none."""
    return "".join(TOKENS[int(code, 16)] for code in codes)


def named(lines: Iterable[str]) -> dict:
    """How a certificate names such a list of contexts and right tokens."""
    lines = sorted(lines)
    return {"count": len(lines), "sha256": hashlib.sha256("\n".join(lines).encode()).hexdigest()}


def others(contexts: dict) -> list[str]:
    """The shipped certificates that name other contexts than Coq has for their operation."""
    paths = sorted((HERE.parent / "checkpoints").rglob("*.certificate.json"))
    if not paths:
        raise RuntimeError("there is no certificate to compare with")
    found = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    return [name for name, one in found.items() if one["contexts"] != contexts[operation(one)]]


def operation(certificate: dict) -> str:
    """Which of OPERATIONS a certificate is about."""
    return next(text for text in OPERATIONS if f"the text {text} " in certificate["statement"])


def main():
    if shutil.which("coqc") is None:
        sys.exit("Coq is missing: apt-get install coq, brew install coq, or see https://coq.inria.fr/download")
    try:
        found = prove()
        different = others(found["contexts"])
    except RuntimeError as problem:
        sys.exit(str(problem))
    if different:
        sys.exit(f"Coq finds other contexts than {', '.join(different)}")
    if "--record" in sys.argv[1:]:
        RECORD.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(f"Coq {found['coq']} accepts {len(FILES)} files; {len(found['closed'])} theorems rest on no axiom.")
    counts = ", ".join(f"{one['count']:,} ({text})" for text, one in found["contexts"].items())
    print(f"Its contexts are those of every shipped certificate: {counts}.")


if __name__ == "__main__":
    main()
