"""Whether the figures of the book still show what they showed, and its claims have the verdicts that they had.

Each figure's record (see `bookkit.figures.figure`) is compared with the baseline committed for it:

1. data: every number within the tolerance of its entry; in a figure of a live training, within its bands;
2. structure: axes, labels, legends, numbers of artists; and the tolerances and bands themselves, so that nobody
   widens them in passing;
3. pixels: for figures that ask for it, where matplotlib has the version that drew the baseline.

Of a claim the verdict alone is compared, with that in `verdicts.json`: its numbers stand in figures.

Baselines are JSON, made to be read in a diff: sorted, six significant digits, long arrays as a summary and a sample.
`make baselines` writes them on purpose; nothing else does.
"""

import base64
import html
import io
import json
import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from matplotlib.image import imread, imsave

from bookkit.claims import INTERACTIVE
from bookkit.files import FileProblem, read_json, write_atomic

DIGITS = 6
IN_FULL = 400  # entries of an array that a baseline lists one by one
SAMPLE = 64
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
# Relative to a scale of zero nothing may change; this much is rounding.
ROUNDING = 1e-12
# Levels of 255: the last bits of a number may shift the edge of a line by one or two.
PIXEL_LEVELS = 3
VERDICTS = "verdicts.json"
ON_PURPOSE = "if this change is meant, run `make baselines` and commit the result"


# What the record of a figure holds, at least, and what reading damaged arrays may end in.
RECORD = {"bands": dict, "data": dict, "matplotlib": str, "pixels": bool, "structure": dict, "tolerance": dict}
DAMAGED = (OSError, ValueError, LookupError, TypeError, EOFError, NotImplementedError, BadZipFile, zlib.error)


class RegressionError(RuntimeError):
    """Records or baselines that cannot be compared; the message says which and what to do."""


@dataclass(frozen=True)
class Change:
    """One thing about one figure that is not as its baseline says."""

    figure: str  # NN_topic/key; of a claim NN_topic/id
    level: str  # data, structure, pixels, claims or baseline
    quantity: str
    baseline: object = None
    now: object = None
    relative: float | None = None  # difference over the scale of the quantity

    def __str__(self) -> str:
        text = f"{self.figure} [{self.level}] {self.quantity}"
        if self.baseline is not None or self.now is not None:
            text += f": baseline {_show(self.baseline)}, now {_show(self.now)}"
        return text + (f" (difference {self.relative:.2g} of its scale)" if self.relative is not None else "")


def _show(value) -> str:
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


# --- what a baseline holds ---


def baseline_of(record: dict, arrays: dict[str, np.ndarray]) -> dict:
    """The baseline of a figure: what of its record is compared, in a form fit for a diff."""
    live = bool(record["bands"])
    baseline = {
        "bands": record["bands"],
        # Bands are the whole baseline of a live training: its numbers differ from machine to machine.
        "data": {name: {} if live else summarise(array) for name, array in arrays.items()},
        "pixels": record["pixels"],
        "structure": record["structure"],
        "tolerance": record["tolerance"],
    }
    return baseline | ({"matplotlib": record["matplotlib"]} if record["pixels"] else {})


def summarise(array: np.ndarray) -> dict:
    """An array as JSON: shape and all values up to `IN_FULL` of them, else moments, quantiles and an even sample.

    Missing entries (NaN) are null, and counted in a long array.
    """
    values = array.ravel()
    if values.size <= IN_FULL:
        return {"shape": list(array.shape), "values": _numbers(values)}
    present = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    result = {"shape": list(array.shape), "missing": int(values.size - present.size)}
    if present.size:
        moments = {"mean": present.mean(), "sd": present.std(), "min": present.min(), "max": present.max()}
        result |= {name: _number(value) for name, value in moments.items()}
        result["quantiles"] = _numbers(np.quantile(present.astype(float), QUANTILES))
    result["sample"] = _numbers(values[np.linspace(0, values.size - 1, SAMPLE).round().astype(int)])
    return result


def _numbers(values) -> list:
    return [_number(value) for value in values]


def _number(value: np.generic):
    """A JSON number: integers and booleans as they are, floats to six significant digits, NaN as null."""
    value = value.item()
    if isinstance(value, float):
        return None if math.isnan(value) else float(f"{value:.{DIGITS}g}")
    return int(value)


# --- reading ---


def _records(records: Path) -> dict[str, Path]:
    """The JSON file of every figure recorded by a notebook of the book, by NN_topic/key."""
    paths = sorted(records.glob("*/figures/*.json"))
    found = {f"{path.parent.parent.name}/{path.stem}": path for path in paths}
    found = {name: path for name, path in found.items() if not name.startswith(f"{INTERACTIVE}/")}
    if not found:
        raise RegressionError(f"no figure is recorded under {records.name}: run the notebooks first (make book)")
    keys: dict[str, str] = {}
    for name in found:
        notebook, key = name.split("/")
        if key in keys:
            raise RegressionError(f"two notebooks record figure {key!r}: {keys[key]} and {notebook}; rename one")
        keys[key] = notebook
    return found


def _baselines(baselines: Path) -> dict[str, Path]:
    return {f"{path.parent.name}/{path.stem}": path for path in sorted(baselines.glob("*/*.json"))}


def _json(path: Path) -> dict:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise RegressionError(f"{path.parent.name}/{path.name} is damaged ({error}); make it again") from error


def _load(path: Path) -> tuple[dict, dict[str, np.ndarray]]:
    """A figure's record and arrays. Nothing in the npz file is unpickled."""
    name = f"{path.parent.parent.name}/{path.stem}"
    try:
        with path.with_suffix(".npz").open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            record, arrays = read_json(path, RECORD), {key: file[key] for key in file.files}
    except (FileProblem, *DAMAGED) as error:
        raise RegressionError(f"the record of {name} is damaged; run its chapter again") from error
    return record, arrays


def _picture(path: Path) -> np.ndarray:
    """(height, width, 3) levels 0 to 255."""
    return (imread(path)[..., :3] * 255).round().astype(int)


# --- comparing ---


def compare(records: Path, baselines: Path) -> list[Change]:
    """Every change between what the notebooks recorded and the committed baselines; none is an empty list.

    A figure without a baseline and a baseline without its figure are changes too.
    Raises RegressionError if there is nothing to compare, or a file is damaged.
    """
    now, before = _records(records), _baselines(baselines)
    changes = [Change(name, "baseline", "missing: a new figure") for name in now.keys() - before.keys()]
    changes += [Change(name, "baseline", "stale: no notebook draws it") for name in before.keys() - now.keys()]
    for name in now.keys() & before.keys():
        changes += _compare_figure(name, now[name], before[name])
    return sorted(changes, key=lambda change: change.figure)


def _compare_figure(name: str, record_path: Path, baseline_path: Path) -> list[Change]:
    record, arrays = _load(record_path)
    baseline = _json(baseline_path)
    current = baseline_of(record, arrays)
    changes = [
        Change(name, "structure", quantity, old, new)
        for what in ("structure", "tolerance", "bands", "pixels")
        for quantity, old, new in _differences(baseline[what], current[what], what)
    ]
    before, now = sorted(baseline["data"]), sorted(current["data"])
    if before != now:
        changes.append(Change(name, "data", "names", before, now))
    for entry in (entry for entry in now if entry in before):
        if not record["bands"] and not baseline["bands"]:
            tolerance = baseline["tolerance"].get(entry, 0.0)
            changes += _compare_data(name, entry, baseline["data"][entry], current["data"][entry], tolerance)
        if entry in record["bands"]:
            changes += _compare_band(name, entry, arrays[entry], record["bands"][entry])
    if record["pixels"] and baseline.get("matplotlib") == record["matplotlib"]:
        changes += _compare_pixels(name, record_path.with_suffix(".png"), baseline_path.with_suffix(".png"))
    return changes


def _differences(old, new, where: str):
    """(where, old, new) for every leaf in which two JSON values differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _differences(old.get(key), new.get(key), f"{where}.{key}")
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"number of {where}", len(old), len(new)
        for number, (first, second) in enumerate(zip(old, new, strict=False), 1):
            yield from _differences(first, second, f"{where} {number}")
    elif old != new:
        yield where, old, new


def _compare_data(name: str, entry: str, old: dict, new: dict, tolerance: float) -> list[Change]:
    """At most one change for each quantity of a summary: the largest."""
    for exact in ("shape", "missing"):
        if old.get(exact) != new.get(exact):
            return [Change(name, "data", f"{entry} {exact}", old.get(exact), new.get(exact))]
    numbers = [abs(value) for value in _leaves(old) if value is not None]
    scale = max(numbers, default=0.0)
    changes = []
    for quantity in sorted(old.keys() - {"shape", "missing"}):
        before, after = _leaves(old[quantity]), _leaves(new[quantity])
        if [value is None for value in before] != [value is None for value in after]:
            changes.append(Change(name, "data", f"{entry} {quantity}: other entries are missing (null)"))
            continue
        pairs = [(b, a) for b, a in zip(before, after, strict=True) if b is not None]
        worst = max(pairs, key=lambda pair: abs(pair[1] - pair[0]), default=(0.0, 0.0))
        difference = abs(worst[1] - worst[0])
        if difference > tolerance * scale + ROUNDING:
            relative = difference / scale if scale else math.inf
            changes.append(Change(name, "data", f"{entry} {quantity}", *worst, relative))
    return changes


def _leaves(value) -> list:
    if isinstance(value, dict):
        return [leaf for key, part in value.items() if key not in ("shape", "missing") for leaf in _leaves(part)]
    return list(value) if isinstance(value, list) else [value]


def _compare_band(name: str, entry: str, array: np.ndarray, band: list[float]) -> list[Change]:
    low, high = band
    outside = array[~((array >= low) & (array <= high)) & ~np.isnan(array)]
    if not outside.size:
        return []
    return [Change(name, "data", f"{entry} leaves its band", band, float(outside[np.abs(outside - low).argmax()]))]


def _compare_pixels(name: str, now: Path, before: Path) -> list[Change]:
    if not before.is_file():
        return [Change(name, "pixels", "the baseline's picture is missing")]
    old, new = _picture(before), _picture(now)
    if old.shape != new.shape:
        return [Change(name, "pixels", "size", list(old.shape[:2]), list(new.shape[:2]))]
    moved = int((np.abs(old - new).max(axis=-1) > PIXEL_LEVELS).sum())
    return [Change(name, "pixels", f"{moved} of {old[..., 0].size} pixels differ")] if moved else []


def verdicts(records: Path) -> dict[str, str]:
    """What the notebooks of the book made of each claim, by NN_topic/claim."""
    paths = sorted(path for path in records.glob("*/claims/*.json") if path.parent.parent.name != INTERACTIVE)
    return {f"{path.parent.parent.name}/{path.stem}": _json(path)["verdict"] for path in paths}


def compare_verdicts(records: Path, baselines: Path) -> list[Change]:
    """Every claim whose verdict is not that of the baselines; one that is gone or new is a change, too."""
    now, before = verdicts(records), verdicts_before(baselines)
    names = sorted(name for name in now.keys() | before.keys() if now.get(name) != before.get(name))
    return [Change(name, "claims", "verdict", before.get(name, "none"), now.get(name, "none")) for name in names]


def verdicts_before(baselines: Path) -> dict[str, str]:
    """The verdicts of the baselines, by NN_topic/claim; none where none were taken."""
    return _json(baselines / VERDICTS) if (baselines / VERDICTS).exists() else {}


# --- on purpose ---


def update_baselines(records: Path, baselines: Path) -> list[str]:
    """Make the baselines say what the notebooks recorded; returns a line for each one added, changed or removed.

    A baseline that still holds is left as it is, so that a diff shows only what changed.
    Raises RegressionError, changing nothing, if a notebook failed: its figures would be lost.
    """
    for run in sorted(records.glob("*/run.json")):
        if (status := _json(run).get("status")) != "ok":
            raise RegressionError(
                f"{run.parent.name} is {status!r}: mend it and run it again before `make baselines`"
            )
    now, before = _records(records), _baselines(baselines)
    lines = []
    for name, path in now.items():
        target = baselines / f"{name}.json"
        if name in before and not _outdated(name, path, target):
            continue
        record, arrays = _load(path)
        content = json.dumps(baseline_of(record, arrays), indent=1, sort_keys=True, ensure_ascii=False)
        write_atomic(target, f"{content}\n".encode())
        if record["pixels"]:
            write_atomic(target.with_suffix(".png"), path.with_suffix(".png").read_bytes())
        else:
            target.with_suffix(".png").unlink(missing_ok=True)
        lines.append(f"{'changed' if name in before else 'added'} {name}")
    for name in sorted(before.keys() - now.keys()):
        before[name].unlink()
        before[name].with_suffix(".png").unlink(missing_ok=True)
        lines.append(f"removed {name}")
    if changed := compare_verdicts(records, baselines):
        content = json.dumps(verdicts(records), indent=1, ensure_ascii=False)
        write_atomic(baselines / VERDICTS, f"{content}\n".encode())
        lines += map(str, changed)
    return lines


def _outdated(name: str, record: Path, baseline: Path) -> bool:
    """Changed, or its picture drawn by another matplotlib than the one at hand."""
    same_version = _json(baseline).get("matplotlib", _json(record)["matplotlib"]) == _json(record)["matplotlib"]
    return not same_version or bool(_compare_figure(name, record, baseline))


# --- reports ---


def report(changes: list[Change]) -> str:
    """The changes for a terminal, grouped by figure; one line if there are none."""
    if not changes:
        return "every figure agrees with its baseline"
    changed = {change.figure for change in changes}
    what = "claims" if all(change.level == "claims" for change in changes) else "figures"
    lines = [f"{len(changed)} {what} do not agree with their baselines; {ON_PURPOSE}:"]
    return "\n".join(lines + [f"  {change}" for change in changes])


def write_html_report(changes: list[Change], records: Path, baselines: Path, path: Path) -> None:
    """One self-contained page: of each changed figure the baseline, the present, their difference, and numbers."""
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>Changed figures</title>",
        "<meta name='viewport' content='width=device-width'>",
        "<style>body{font:16px sans-serif;margin:1rem}figure{display:inline-block;margin:0.5rem;max-width:100%}"
        "img{max-width:100%;border:1px solid #999}table{border-collapse:collapse}td,th{border:1px solid #999;"
        "padding:0.2rem 0.5rem;text-align:left;overflow-wrap:anywhere}</style>",
        f"<h1>Changed figures</h1><p>{html.escape(report(changes).splitlines()[0])}</p>",
    ]
    for name in sorted({change.figure for change in changes}):
        parts.append(f"<h2>{html.escape(name)}</h2>")
        notebook, key = name.split("/")
        now, before = records / notebook / "figures" / f"{key}.png", baselines / f"{name}.png"
        for title, picture in _pictures(before, now):
            source = base64.b64encode(picture).decode()
            alt = f"{title}: {name}"
            parts.append(
                f"<figure><figcaption>{title}</figcaption>"
                f"<img alt='{html.escape(alt)}' src='data:image/png;base64,{source}'></figure>"
            )
        parts.append("<table><tr><th>level<th>quantity<th>baseline<th>now<th>difference / scale")
        for change in (change for change in changes if change.figure == name):
            relative = "" if change.relative is None else f"{change.relative:.2g}"
            cells = (change.level, change.quantity, _show(change.baseline), _show(change.now), relative)
            parts.append("<tr>" + "".join(f"<td>{html.escape(cell)}" for cell in cells))
        parts.append("</table>")
    write_atomic(path, "\n".join(parts).encode())


def _pictures(before: Path, now: Path):
    """(title, PNG bytes) of baseline, now and, where both are there and of one size, their difference."""
    for title, path in (("baseline", before), ("now", now)):
        if path.is_file():
            yield title, path.read_bytes()
    if before.is_file() and now.is_file():
        old, new = _picture(before), _picture(now)
        if old.shape == new.shape:
            yield "difference", _highlight(old, new)


def _highlight(old: np.ndarray, new: np.ndarray) -> bytes:
    """The new picture pale, every pixel that moved in red."""
    pale = 200 + new // 5
    pale[np.abs(old - new).max(axis=-1) > PIXEL_LEVELS] = (213, 0, 0)
    file = io.BytesIO()
    imsave(file, pale.astype(np.uint8), format="png")
    return file.getvalue()
