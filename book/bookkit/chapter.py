"""What a notebook talks to: figures, claims and numbers that are shown and recorded in one call.

Records go to the folder named by BOOKKIT_RECORDS, which the run of the book sets for each notebook, and to
book/_build/records/interactive when a reader works by hand::

    figures/<key>.json .npz .svg .png    what was drawn, from what
    claims/<id>.json                     what was measured, and the verdict

In a run of the book a key, a claim or a glued name that comes again with other content is an error; by hand,
running a cell again simply replaces what it recorded. Importing this module loads the book's style sheet.
"""

import html
import io
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from bookkit import claims as _claims
from bookkit import style
from bookkit.claims import Claim, ClaimError, Measurement
from bookkit.files import write_atomic

style.use()

KEY = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
ALT_AT_LEAST = 20
POINTS_AT_LEAST = 7  # the smallest text of a figure
SVG_AT_MOST = 2_000_000
FINEST_TOLERANCE = 1e-6  # baselines keep six significant digits of a float
DPI = 100

# Sign, word and colour: no reader depends on one of them alone.
SIGNS = {"reproduced": "✓", "partly": "◐", "not reproduced": "✗", "refuted": "✗", "not attempted": "○"}
COLOURS = {
    "reproduced": style.GREEN,
    "partly": style.ORANGE,
    "not reproduced": style.PURPLE,
    "refuted": style.VERMILLION,
    "not attempted": style.GREY,
}

# What this run has recorded: {records folder: {(kind, name): content}}. Not read back from disk, where an
# earlier run may have left something else.
_recorded: dict[Path, dict[tuple[str, str], object]] = {}


class ChapterError(ValueError):
    """A figure, claim or number a notebook may not record like this; the message says why and what to do."""


def records_folder() -> Path:
    """Where this notebook's records go."""
    if folder := os.environ.get("BOOKKIT_RECORDS"):
        return Path(folder)
    return _claims.repo_root() / "book" / "_build" / "records" / _claims.INTERACTIVE


def _remember(kind: str, name: str, content) -> None:
    """Note that this run recorded `name`. Raises ChapterError if it already did, with other content."""
    seen = _recorded.setdefault(records_folder(), {})
    if "BOOKKIT_RECORDS" in os.environ and seen.get((kind, name), content) != content:
        raise ChapterError(f"{kind} {name!r} was recorded before in this notebook with other content: rename one")
    seen[kind, name] = content


def _write(path: Path, content) -> None:
    """Atomically, bytes as they are and anything else as readable JSON. Raises FileProblem."""
    if not isinstance(content, bytes):
        content = (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()
    write_atomic(path, content)


# --- figures ---


def figure(
    key: str,
    fig: Figure,
    *,
    data: Mapping[str, object],
    alt: str,
    caption: str,
    tolerance: float | Mapping[str, float] = 1e-5,
    bands: Mapping[str, tuple[float, float]] | None = None,
    pixels: bool = False,
) -> None:
    """Show a figure and record what it shows, so that a later run can be compared with this one.

    key: kebab-case, unique in the book. One figure a cell; it is closed afterwards.

    data: the plotted numbers by name: scalars, arrays or torch tensors. Say what is missing with a numpy masked
    array; any other NaN or infinity is an error.

    alt: what a reader who cannot see the figure needs to know, at least 20 characters. caption: how to read it, and
    what to notice.

    tolerance: allowed change of an entry relative to its largest absolute value; for all entries or by name.

    bands: for a figure drawn from a live training: (low, high) between which every number of a named entry must lie.
    Entries without a band are then recorded but not compared.

    pixels: also compare the picture; for figures without training in them.

    Raises ChapterError, and keeps what was recorded before, for anything above that does not hold, an axis without a
    label, overlapping tick labels, text below 7 points or a blank plot; FileProblem if the records cannot be written.
    """
    if not KEY.fullmatch(key):
        raise ChapterError(f"figure key {key!r} must be kebab-case, like loss-curves")
    if len(alt.strip()) < ALT_AT_LEAST:
        raise ChapterError(
            f"figure {key}: alt text {alt!r} is too short; "
            f"say in {ALT_AT_LEAST} characters or more what the figure shows"
        )
    if not caption.strip():
        raise ChapterError(f"figure {key}: the caption is empty; say how to read the figure and what to notice")
    if not data:
        raise ChapterError(f"figure {key}: data is empty; give the plotted numbers by name")
    arrays = {str(name): _array(key, str(name), values) for name, values in data.items()}
    tolerances = _tolerances(key, tolerance, arrays)
    record = {
        "alt": alt,
        "bands": _bands(key, bands or {}, arrays),
        "caption": caption,
        "data": {name: {"dtype": str(array.dtype), "shape": list(array.shape)} for name, array in arrays.items()},
        "matplotlib": version("matplotlib"),
        "pixels": pixels,
        "tolerance": tolerances,
    }
    svg, png = _render(fig, "svg"), _render(fig, "png")
    if len(svg) > SVG_AT_MOST:
        raise ChapterError(
            f"figure {key}: {len(svg) / 1e6:.1f} MB of SVG, limit 2; draw many points with rasterized=True"
        )
    record["structure"] = structure(key, fig)
    smallest = _smallest_text(key, fig)
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)

    _remember("figure", key, (packed.getvalue(), json.dumps(record, sort_keys=True)))
    folder = records_folder() / "figures"
    _write(folder / f"{key}.npz", packed.getvalue())
    _write(folder / f"{key}.svg", svg)
    _write(folder / f"{key}.png", png)
    _write(folder / f"{key}.json", record)  # last: a record with a JSON file is complete

    from IPython.display import display

    display(
        {"image/svg+xml": svg.decode(), "text/plain": alt},
        raw=True,
        metadata={
            "arithlib": {
                "figure": key,
                "alt": alt,
                "caption": caption,
                "inches": float(fig.get_figwidth()),
                "points": smallest,
            }
        },
    )
    plt.close(fig)  # or the inline backend would show it a second time


def _array(key: str, name: str, values) -> np.ndarray:
    """Plotted numbers as an array, masked ones as NaN. Raises ChapterError for anything but finite reals."""
    if hasattr(values, "detach"):  # torch, whose bfloat16 numpy does not know
        values = values.detach().cpu()
        values = values.double().numpy() if values.is_floating_point() else values.numpy()
    try:
        array = np.ma.asarray(values)
    except ValueError as error:
        raise ChapterError(f"figure {key}: data[{name!r}] is no array of numbers: {error}") from error
    if array.dtype.kind not in "biuf" or array.size == 0:
        raise ChapterError(
            f"figure {key}: data[{name!r}] must hold real numbers, found {array.size} of type {array.dtype}; "
            "split complex numbers into real and imaginary parts"
        )
    if not np.isfinite(array.compressed()).all():
        raise ChapterError(
            f"figure {key}: data[{name!r}] holds NaN or infinity; if that is meant, use np.ma.masked_invalid"
        )
    return array.astype(float).filled(np.nan) if np.ma.is_masked(array) else array.data


def _tolerances(key: str, tolerance, arrays: Mapping[str, np.ndarray]) -> dict[str, float]:
    by_name = dict(tolerance) if isinstance(tolerance, Mapping) else dict.fromkeys(arrays, tolerance)
    _known(key, "tolerance", by_name, arrays)
    by_name = {name: float(by_name.get(name, 1e-5)) for name in arrays}
    for name, value in by_name.items():
        if arrays[name].dtype.kind == "f" and not FINEST_TOLERANCE <= value < 1:
            raise ChapterError(
                f"figure {key}: tolerance {value} of {name!r} must lie in [1e-6, 1): six digits are kept"
            )
    return by_name


def _bands(key: str, bands, arrays: Mapping[str, np.ndarray]) -> dict[str, list[float]]:
    _known(key, "bands", bands, arrays)
    for name, (low, high) in bands.items():
        if not low <= high:
            raise ChapterError(f"figure {key}: band of {name!r} must be (low, high), found ({low}, {high})")
    return {name: [float(low), float(high)] for name, (low, high) in bands.items()}


def _known(key: str, what: str, given, arrays) -> None:
    if unknown := set(given) - set(arrays):
        raise ChapterError(f"figure {key}: {what} for {sorted(unknown)}, but data has {sorted(arrays)}")


def _render(fig: Figure, format: str) -> bytes:
    """The figure's bytes; the same figure gives the same bytes."""
    file = io.BytesIO()
    about = {"Date": None, "Creator": None} if format == "svg" else {"Software": None}
    with mpl.rc_context({"svg.hashsalt": "arithlib", "svg.fonttype": "path", "savefig.bbox": None}):
        fig.savefig(file, format=format, dpi=DPI, metadata=about, facecolor="white")
    return file.getvalue()


def structure(key: str, fig: Figure) -> dict:
    """What a figure consists of, however it is rendered: axes, labels, legends, numbers of artists.

    Raises ChapterError if it has no axes, an unlabelled axis, overlapping tick labels or a blank plot.
    """
    fig.canvas.draw()
    axes = [ax for ax in fig.axes if ax.get_visible()]
    if not axes:
        raise ChapterError(f"figure {key} has no axes: it is blank")
    for number, ax in enumerate(axes, 1):
        if ax.axison and ax.name == "rectilinear":
            _check_labels(f"figure {key}, axes {number}", fig, ax)
    _check_drawn(key, fig, axes)
    return {
        "axes": [_describe(ax) for ax in axes],
        "size": [float(inches) for inches in fig.get_size_inches()],
        "title": fig.get_suptitle(),
    }


def _describe(ax: Axes) -> dict:
    legend = ax.get_legend()
    return {
        "axis": ax.axison,
        "collections": len(ax.collections),
        "images": len(ax.images),
        "legend": [text.get_text() for text in legend.get_texts()] if legend else [],
        "lines": len(ax.lines),
        "patches": len(ax.patches),
        "projection": ax.name,
        "texts": len(ax.texts),
        "title": ax.get_title() or ax.get_title("left"),
        "xlabel": ax.get_xlabel(),
        "xscale": ax.get_xscale(),
        "ylabel": ax.get_ylabel(),
        "yscale": ax.get_yscale(),
    }


def _check_labels(where: str, fig: Figure, ax: Axes) -> None:
    """An axis that shows tick labels says what they are, and they can be read. Raises ChapterError."""
    for axis, own, common in (
        (ax.xaxis, ax.get_xlabel(), fig.get_supxlabel()),
        (ax.yaxis, ax.get_ylabel(), fig.get_supylabel()),
    ):
        if not axis.get_visible():  # the twin of another axis
            continue
        ticks = [label for label in axis.get_ticklabels(which="both") if label.get_visible() and label.get_text()]
        name = axis.axis_name
        if ticks and not (own or common):
            raise ChapterError(f"{where}: the {name} axis has no label; set_{name}label with quantity and unit")
        boxes = [label.get_window_extent() for label in ticks if not label.get_rotation() % 180]
        start = "x0" if name == "x" else "y0"
        boxes = sorted((box for box in boxes if _inside(box, axis, ax)), key=lambda box: getattr(box, start))
        if any(first.overlaps(second) for first, second in zip(boxes, boxes[1:], strict=False)):
            raise ChapterError(f"{where}: tick labels of the {name} axis overlap; use fewer ticks or shorter labels")


def _inside(box, axis, ax: Axes) -> bool:
    """Whether a tick label stands along the visible part of its axis; matplotlib keeps some beyond it."""
    frame = ax.get_window_extent().padded(1)
    if axis.axis_name == "x":
        return frame.x0 <= (box.x0 + box.x1) / 2 <= frame.x1
    return frame.y0 <= (box.y0 + box.y1) / 2 <= frame.y1


def _check_drawn(key: str, fig: Figure, axes: list[Axes]) -> None:
    """Hiding what an axes draws must change its pixels. Raises ChapterError for a blank one."""
    with_artists = np.asarray(fig.canvas.buffer_rgba()).copy()
    layout = fig.get_layout_engine()
    fig.set_layout_engine("none")  # nothing may move while the artists are hidden
    hidden = [artist for ax in axes for artist in _artists(ax) if artist.get_visible()]
    for artist in hidden:
        artist.set_visible(False)
    fig.canvas.draw()
    changed = (np.asarray(fig.canvas.buffer_rgba()) != with_artists).any(axis=-1)
    for artist in hidden:
        artist.set_visible(True)
    fig.set_layout_engine(layout)
    for number, ax in enumerate(axes, 1):
        x0, y0, x1, y1 = ax.get_window_extent().extents.round().astype(int)
        height = changed.shape[0]
        if not changed[max(height - y1, 0) : height - y0, max(x0, 0) : x1].any():
            raise ChapterError(
                f"figure {key}, axes {number} is blank: nothing is drawn, or it lies outside the limits"
            )


def _smallest_text(key: str, fig: Figure) -> float:
    """Size of the smallest text in points. Raises ChapterError where it cannot be read."""
    texts = [text for text in fig.findobj(Text) if text.get_visible() and text.get_text().strip()]
    smallest = min(texts, key=Text.get_fontsize, default=Text(0, 0, fontsize=mpl.rcParams["font.size"]))
    if smallest.get_fontsize() < POINTS_AT_LEAST:
        raise ChapterError(
            f"figure {key}: {smallest.get_text()!r} has {smallest.get_fontsize():.1f} points; "
            f"text is at least {POINTS_AT_LEAST} points, or nobody reads it"
        )
    return float(smallest.get_fontsize())


def _artists(ax: Axes) -> list:
    return [*ax.lines, *ax.collections, *ax.images, *ax.patches, *ax.texts, *ax.tables]


# --- claims ---


@dataclass(frozen=True)
class Verdict:
    """A claim, what was measured for it, and what its rule makes of that. Shows itself as one line."""

    claim: Claim
    measurement: Measurement
    verdict: str
    scale: str
    note: str | None = None

    def __str__(self) -> str:
        return f"{self.claim.id} {self.verdict}: {self.sentence()}"

    __repr__ = __str__

    def ours(self) -> str:
        """The measurement, its spread and its scale in words."""
        beside = filter(None, (self.measurement.spread(self.claim), f"{self.scale} preset"))
        words = f"{self.measurement.text(self.claim)} ({'; '.join(beside)})"
        return f"{words}. {self.note}" if self.note else words

    def sentence(self) -> str:
        """What the source says, its number and ours."""
        return f"{self.claim.statement} Source: {self.claim.published or 'no number'}. Ours: {self.ours()}"

    def _repr_markdown_(self) -> str:
        return f"{SIGNS[self.verdict]} **{self.claim.id} {self.verdict}.** {self.sentence()}"

    def _repr_html_(self) -> str:
        text = html.escape(self.sentence())
        return f'<p class="verdict">{badge(self.verdict)} <strong>{self.claim.id}</strong> {text}</p>'


def badge(verdict: str) -> str:
    """A verdict as HTML: sign and word beside a bar in its colour."""
    bar = f"border-left:0.4em solid {COLOURS[verdict]};padding-left:0.4em;white-space:nowrap"
    return f'<strong class="badge-verdict" style="{bar}">{SIGNS[verdict]} {verdict}</strong>'


def anchor(id: str) -> str:
    """The HTML id of a claim's row in its chapter's verdict table: M-08 -> claim-m-08."""
    return f"claim-{id.lower()}"


def published(id: str) -> float | Mapping[str, float]:
    """The number (or named numbers) of a source, from the ledger. Raises ClaimError if it gives none."""
    found = _claims.find_claim(_claims.load_claims(), id)
    if found.value is None:
        raise ClaimError(f"claim {id} has no published value in book/claims (published: {found.published!r})")
    return found.value


def claim(
    id: str,
    measured,
    *,
    unit: str | None = None,
    scale: str = "cpu",
    figure: str | None = None,
    note: str | None = None,
) -> Verdict:
    """Record what was measured for a claim and return the verdict of its rule in book/claims.

    measured: a number or bool; a list, one entry a seed; or a mapping of named numbers and lists, shown in its order
    under the `labels` of book/claims. If a list has an entry for anything but a seed, `per` says so there.
    scale: "cpu" or "gpu", the preset measured. note: a remark for the reader, shown beside the numbers.
    figure: key of a figure recorded before, in which the measurement can be seen.

    Raises ClaimError for an unknown id, a measurement that is not finite numbers, or a rule that cannot judge it;
    ChapterError for another scale, or a figure that was not recorded.
    """
    found = _claims.find_claim(_claims.load_claims(), id)
    if scale not in ("cpu", "gpu"):
        raise ChapterError(f'claim {id}: scale must be "cpu" or "gpu", found {scale!r}')
    folder = records_folder()
    if figure and not (folder / "figures" / f"{figure}.json").is_file():
        raise ChapterError(f"claim {id}: no figure {figure!r} was recorded yet; call figure({figure!r}, ...) first")
    measurement = Measurement.of(measured, unit)
    result = Verdict(found, measurement, _claims.verdict(found, measurement), scale, note)
    numbers = dict.fromkeys(("mean", "sd", "min", "max")) | measurement.statistics()
    record = numbers | {
        "n": measurement.n(found),
        "figure": figure,
        "id": id,
        "measured": measurement.measured,
        "note": note,
        "notebook": folder.name,
        "scale": scale,
        "unit": unit,
        "verdict": result.verdict,
    }
    _remember("claim", id, record)
    _write(folder / "claims" / f"{id}.json", record)
    _recorded[folder]["verdict", id] = result
    return result


@dataclass(frozen=True)
class VerdictTable:
    """Claims of a chapter, in order, each row an anchor that the scoreboard links to.

    In the book a row links back to its card there, which says how it is decided; by hand there is no such page.
    """

    rows: tuple[Verdict, ...]
    in_book: bool = False

    def __repr__(self) -> str:
        return "\n".join(map(str, self.rows))

    def _repr_markdown_(self) -> str:
        lines = ["| claim | the source | ours |", "| --- | --- | --- |"]
        for row in self.rows:
            source = f"{row.claim.statement} Published: {row.claim.published or 'no number'}."
            cells = (f"{row.claim.id} {SIGNS[row.verdict]} **{row.verdict}**", source, row.ours())
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        # Cells that stand side by side on a screen and below one another on a phone, with or without a style sheet.
        row_style = "display:flex;flex-wrap:wrap;gap:0.2em 1.2em;margin:0;padding:0.6em 0;border-top:1px solid #8888"
        how = '<br><a href="../book/scoreboard.html#{}">how it is decided</a>' if self.in_book else ""
        rows = "".join(
            f'<li id="{anchor(row.claim.id)}" style="{row_style}">'
            f'<div style="flex:0 0 11em">{badge(row.verdict)}<br><strong>{row.claim.id}</strong>'
            f"{how.format(anchor(row.claim.id))}</div>"
            f'<div style="flex:3 1 14em">{html.escape(row.claim.statement)}</div>'
            f'<div style="flex:3 1 14em">Published: {html.escape(row.claim.published or "no number")}.<br>'
            f"Ours: {html.escape(row.ours())}</div></li>"
            for row in self.rows
        )
        return f'<ul class="verdicts" style="list-style:none;margin:0;padding:0">{rows}</ul>'


def verdicts(*ids: str) -> VerdictTable:
    """The table of claims measured in this run, in the order given. Raises ChapterError for any other."""
    seen = _recorded.get(records_folder(), {})
    if missing := [id for id in ids if ("verdict", id) not in seen]:
        raise ChapterError(f"verdicts: {', '.join(missing)} not measured in this run; call claim(...) first")
    return VerdictTable(tuple(seen["verdict", id] for id in ids), in_book="BOOKKIT_RECORDS" in os.environ)


# --- where the weights come from ---


@dataclass(frozen=True)
class Provenance:
    """Where the weights of a figure come from, in one line."""

    line: str

    def __repr__(self) -> str:
        return self.line

    def _repr_html_(self) -> str:
        return f'<p class="provenance"><small>{html.escape(self.line)}</small></p>'


def provenance(*trained) -> Provenance:
    """One line on how models were trained: experiment, scale, runs, steps, time, device, versions, date.

    trained: one or several `arithlib.checkpoints.Trained`, as a rule the seeds of one experiment.
    """
    if not trained:
        raise ChapterError("provenance: no trained model given")
    notes = [one.provenance for one in trained]

    def each(key: str) -> str:
        return ", ".join(dict.fromkeys(str(note[key]) for note in notes))

    names = notes[0]["name"] if len(notes) == 1 else f"{notes[0]['name']} to {notes[-1]['name']} ({len(notes)} runs)"
    steps = ", ".join(dict.fromkeys(f"{note['steps']:,}" for note in notes))
    seconds = sum(note["seconds"] for note in notes)
    return Provenance(
        f"Trained: {names} · {each('scale')} preset · {steps} steps · {seconds:,.0f} s "
        f"in all on {each('device')} ({each('threads')} threads, {each('machine')}) "
        f"· torch {each('torch')} · {each('made')}"
    )


# --- numbers in prose ---


def glue(name: str, value, fmt: str = ".3g") -> None:
    """Make a number or text available to the notebook's prose, as ``{glue:text}`name```.

    value: a string, or a number (Python, numpy or torch), written with `fmt`. A hyphen in front of a number, in a
        string, too, becomes a minus sign; one between two characters, as in 4-digit or 2-5, stays.
    """
    import myst_nb

    if hasattr(value, "item"):
        value = value.item()
    text = re.sub(r"(?<![\w)])-(?=\.?\d)", "−", value if isinstance(value, str) else format(value, fmt))
    _remember("glued", name, text)
    # A str shows itself in quotation marks, and the page evaluates what it is shown: '4,500' comes out as it went in,
    # 4,500 as a pair and 0.10 without its zero.
    myst_nb.glue(name, text, display=False)
