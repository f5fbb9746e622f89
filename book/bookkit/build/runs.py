"""What was trained for a claim, in a line: the source's run, and ours beside it.

book/runs.yaml says what each source gives of its runs, with its words, and which runs here stand behind which claims.
Everything else of ours comes from the notes of the shipped checkpoints.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import yaml

from bookkit.build.digest import checkpoint_files
from bookkit.claims import Claim, ClaimError, Number, show
from bookkit.files import read_json

# What is known of a run. seconds are those of all its models together, one after the other.
FIELDS = ("width", "layers", "loops", "steps", "seeds", "seconds")
GPU = "NVIDIA"  # how the device of a note begins, if it is none of the processor


@dataclass(frozen=True)
class Theirs:
    """A run of a source: each number with the words of the text that give it.

    claims: those that are about it; where none is named, all of this source and this setting.
    """

    source: str
    setting: Mapping[str, Number]
    run: Mapping[str, tuple[Number, str]]
    claims: tuple[str, ...] = ()

    def of(self, claim: Claim) -> bool:
        same = (claim.source, claim.setting) == (self.source, self.setting)
        return same and (not self.claims or claim.id in self.claims)


@dataclass(frozen=True)
class Ours:
    """Names or globs of runs, and the claims whose measurement is on these."""

    runs: tuple[str, ...]
    claims: tuple[str, ...]


@dataclass(frozen=True)
class Runs:
    theirs: tuple[Theirs, ...] = ()
    ours: tuple[Ours, ...] = ()
    notes: Mapping[str, dict] | None = None  # of the shipped checkpoints, by name

    @classmethod
    def under(cls, root: Path) -> "Runs":
        """Those of a book; without book/runs.yaml none. Raises ClaimError for one that is not of this form."""
        path = root / "book" / "runs.yaml"
        if not path.is_file():
            return cls()
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8"))
            theirs = tuple(
                Theirs(**row | {"run": {name: (number, said) for name, (number, said) in row["run"].items()}})
                for row in content["theirs"]
            )
            ours = tuple(Ours(tuple(row["runs"]), tuple(row["claims"])) for row in content["ours"])
        except (yaml.YAMLError, TypeError, ValueError, AttributeError, KeyError) as error:
            raise ClaimError(f"book/runs.yaml cannot be read: {error}") from error
        if unknown := {name for row in theirs for name in row.run} - set(FIELDS):
            raise ClaimError(f"book/runs.yaml: unknown {sorted(unknown)}; known are {', '.join(FIELDS)}")
        wanted = {pattern for row in ours for pattern in row.runs}
        paths = [path for path in checkpoint_files(root, sorted(wanted)) if path.suffix == ".json"]
        return cls(theirs, ours, {path.stem: read_json(path) for path in paths})

    def line(self, claim: Claim, size: Mapping[str, Number] | None) -> str:
        """For the reader: the source's run and ours; empty where neither is known. size: as recorded with the claim.

        Raises ClaimError if none of our runs has as many examples as were recorded and are compared.
        """
        run = next((row.run for row in self.theirs if row.of(claim)), None)
        parts = [f"the source's: {in_words({name: [number] for name, (number, _) in run.items()})}"] if run else []
        for row in self.ours:
            if claim.id in row.claims:
                notes = self._notes(row)
                _check(claim, size, row, notes)
                parts.append(f"ours: {in_words(known(notes), where(notes))}")
        return "; ".join(parts)

    def _notes(self, row: Ours) -> list[dict]:
        """The notes of its runs. Raises ClaimError if there are none."""
        found = [note for name, note in self.notes.items() if any(fnmatchcase(name, glob) for glob in row.runs)]
        if not found:
            raise ClaimError(f"book/runs.yaml: there is no shipped run {', '.join(row.runs)}")
        return found


def _check(claim: Claim, size: Mapping[str, Number] | None, row: Ours, notes: list[dict]) -> None:
    """That the recorded number of examples, where it is compared, is that of a run."""
    if size is None or "examples" not in (claim.setting or {}):
        return
    examples = sorted({note["steps"] * note["settings"].get("batch_size", 0) for note in notes})
    if size["examples"] not in examples:
        raise ClaimError(
            f"book/runs.yaml: {', '.join(row.runs)} have {examples} examples, and claim {claim.id} was measured "
            f"on {size['examples']}"
        )


def known(notes: Iterable[Mapping]) -> dict[str, list[Number]]:
    """What the notes say under the names of FIELDS, each value once; seeds are counted, seconds added up."""
    values: dict[str, set] = {name: set() for name in FIELDS}
    seconds = 0.0
    for note in notes:
        settings = note["settings"]
        shape = settings.get("model", settings)
        values["width"].add(shape.get("d_model"))
        values["layers"].add((shape.get("n_layers") or 0, shape.get("n_loops") or 1))
        values["steps"].add(note["steps"])
        values["seeds"].update(settings.get("seeds", [settings.get("seed", 0)]))
        seconds += note["seconds"] / note.get("stack", 1)  # a stack's note has the seconds of all its models
    shapes = sorted(shape for shape in values.pop("layers") if shape[0])
    found = {name: sorted(value for value in numbers if value is not None) for name, numbers in values.items()}
    found |= {"layers": [layers for layers, _ in shapes], "loops": [loops for _, loops in shapes]}
    return found | {"seeds": [len(values["seeds"])], "seconds": [seconds]}


def where(notes: Iterable[Mapping]) -> str:
    """On what the runs were trained."""
    return "a GPU" if any(note["device"].startswith(GPU) for note in notes) else "a processor core"


def in_words(run: Mapping[str, list[Number]], device: str | None = None) -> str:
    """A run for the reader, of which everything may be unknown.

    >>> in_words({"width": [64], "layers": [1, 12], "loops": [12, 1], "seeds": [3], "seconds": [4500]}, "a GPU")
    'width 64, layers × loops 1 × 12 or 12 × 1, 3 seeds, 1.2 hours of a GPU'
    """
    parts = []
    if run.get("width"):
        parts.append(f"width {_or(map(show, run['width']))}")
    if layers := run.get("layers"):
        loops = run.get("loops") or [1] * len(layers)
        looped = [f"{k} × {n}" for k, n in zip(layers, loops, strict=True)]
        parts.append(
            f"layers × loops {_or(looped)}"
            if {*loops} != {1}
            else f"{_or(map(str, layers))} {_plural('layer', layers)}"
        )
    if run.get("steps"):
        parts.append(f"{_or(map(show, run['steps']))} steps")
    if run.get("seeds"):
        parts.append(f"{run['seeds'][0]} {_plural('seed', run['seeds'])}")
    if run.get("seconds"):
        hours = float(f"{run['seconds'][0] / 3600:.2g}")
        parts.append(f"{show(hours)} {_plural('hour', [hours])}" + (f" of {device}" if device else ""))
    return ", ".join(parts)


def _or(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def _plural(noun: str, numbers: list[Number]) -> str:
    return noun if numbers == [1] else f"{noun}s"
