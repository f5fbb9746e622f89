"""The pinned versions in requirements.txt, and how they are raised."""

import re
import subprocess
import sys
from pathlib import Path

# For every system and every Python that the book runs on; nothing is installed.
COMPILE = ["uv", "pip", "compile", "--universal", "--python-version", "3.11", "--no-header", "--quiet"]
PIN = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)
HELD = "# held"


def read(text: str) -> dict[str, str]:
    """Package -> version, of every pin in a file of requirements, or of `uv`'s answer; names in lower case."""
    return {name.lower().replace("_", "-"): version for name, version in PIN.findall(text)}


def raised(text: str, newest: dict[str, str]) -> str:
    """A file of requirements with these versions; comments, order and held pins stay."""

    def line(found: re.Match) -> str:
        return f"{found[1]}=={newest.get(found[1].lower().replace('_', '-'), found[2])}"

    lines = text.splitlines(keepends=True)
    return "".join(each if each.rstrip().endswith(HELD) else PIN.sub(line, each) for each in lines)


def update(root: Path) -> int:
    """Raise the pins of requirements.txt to the newest versions that fit together; returns the status of `uv`."""
    path = root / "requirements.txt"
    text = path.read_text(encoding="utf-8")
    wanted = [
        each.split("#")[0] if each.rstrip().endswith(HELD) else PIN.sub(r"\1", each) for each in text.splitlines()
    ]
    answer = subprocess.run([*COMPILE, "-"], cwd=root, input="\n".join(wanted), capture_output=True, text=True)
    if answer.returncode:
        print(answer.stderr, file=sys.stderr)
        return answer.returncode
    path.write_text(raised(text, read(answer.stdout)), encoding="utf-8")
    return 0
