"""Have Coq check the proofs of this folder, and compare its list of contexts with the certificates'.

`make prove`. Needs Python and Coq 8.16 or later, nothing else; builds in a temporary folder, in some 20 seconds.
With --record it also notes what was checked, for chapter 72 to show.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FILES = ("Numbers", "Model", "Contexts", "Adder", "Report")  # each needs those before it
RECORD = HERE / "record.json"
CLOSED = "Closed under the global context"


def digest_of_sources() -> str:
    """SHA-256 of the proofs as they are now, whatever the line ends of a checkout."""
    sources = "".join((HERE / f"{name}.v").read_text(encoding="utf-8") for name in FILES)
    return hashlib.sha256(sources.encode()).hexdigest()


def prove(folder: Path = HERE) -> dict:
    """What Coq says to the proofs in `folder`: what was asked about its assumptions, and the contexts as certificates
    name them.

    Raises RuntimeError with Coq's words where a proof fails, or a theorem rests on an axiom.
    """
    with tempfile.TemporaryDirectory() as build:
        for name in FILES:
            shutil.copy(folder / f"{name}.v", build)
            command = ["coqc", "-q", "-Q", ".", "Adder", f"{name}.v"]
            done = subprocess.run(command, cwd=build, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"Coq does not accept {name}.v:\n{done.stdout}{done.stderr}")
    about, _, printed = done.stdout.partition("     = [")  # the list is the last that Report.v prints
    theorems = re.findall(r"^Print Assumptions (\w+)\.", (folder / "Report.v").read_text(encoding="utf-8"), re.M)
    if about.splitlines() != [CLOSED] * len(theorems):
        raise RuntimeError(f"a theorem rests on more than Coq's logic:\n{about}")
    lines = sorted(re.findall(r'"(.{6})"', printed))
    version = subprocess.run(["coqc", "--print-version"], capture_output=True, text=True, check=True).stdout
    return {
        "coq": version.split()[0],
        "sources": digest_of_sources(),
        "closed": theorems,
        "contexts": {"count": len(lines), "sha256": hashlib.sha256("\n".join(lines).encode()).hexdigest()},
    }


def others(contexts: dict) -> list[str]:
    """The shipped certificates of sums that name other contexts than these; Coq proves nothing of others."""
    paths = sorted((HERE.parent / "checkpoints").rglob("*.certificate.json"))
    found = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    of_sums = {name: certificate for name, certificate in found.items() if "text a+b=" in certificate["statement"]}
    if not of_sums:
        raise RuntimeError("there is no certificate to compare with")
    return [name for name, certificate in of_sums.items() if certificate["contexts"] != contexts]


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
    print(f"Its {found['contexts']['count']:,} contexts are those of every shipped certificate.")


if __name__ == "__main__":
    main()
