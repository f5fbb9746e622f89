"""Figures that are shown and recorded in one call. Importing this module loads the book's style sheet."""

import io
import json
import re
from collections.abc import Mapping
from importlib.metadata import version

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.text import Text

from bookkit import style
from bookkit.records import ChapterError, records_folder, remember, write

style.use()

KEY = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
ALT_AT_LEAST = 20
POINTS_AT_LEAST = 7  # the smallest text of a figure
SVG_AT_MOST = 2_000_000
FINEST_TOLERANCE = 1e-6  # baselines keep six significant digits of a float
DPI = 100


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
    svg, png = _vector(fig), _picture(fig)
    if len(svg) > SVG_AT_MOST:
        raise ChapterError(
            f"figure {key}: {len(svg) / 1e6:.1f} MB of SVG, limit 2; draw many points with rasterized=True"
        )
    record["structure"] = structure(key, fig)
    smallest = _smallest_text(key, fig)
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)

    remember("figure", key, (packed.getvalue(), json.dumps(record, sort_keys=True)))
    folder = records_folder() / "figures"
    write(folder / f"{key}.npz", packed.getvalue())
    write(folder / f"{key}.svg", svg)
    write(folder / f"{key}.png", png)
    write(folder / f"{key}.json", record)  # last: a record with a JSON file is complete

    from IPython.display import display

    display(
        {"image/svg+xml": svg.decode(), "text/plain": alt},
        raw=True,
        metadata={
            "bookkit": {
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


def _vector(fig: Figure) -> bytes:
    """The figure as SVG; the same figure gives the same bytes."""
    file, canvas = io.BytesIO(), fig.canvas
    fig.set(dpi=DPI, facecolor="white")
    with mpl.rc_context({"svg.hashsalt": "arithlib", "svg.fonttype": "path"}):
        # Not by `savefig`, which draws everything twice: once to lay it out, which drawing does anyway.
        FigureCanvasSVG(fig).print_svg(file, metadata={"Date": None, "Creator": None})
    fig.set_canvas(canvas)
    return file.getvalue()


def _picture(fig: Figure) -> bytes:
    """The figure as PNG, likewise. It stays drawn on its canvas, where its structure is looked at."""
    file = io.BytesIO()
    fig.set(dpi=DPI, facecolor="white")
    fig.canvas.draw()
    plt.imsave(file, fig.canvas.buffer_rgba(), format="png", metadata={"Software": None})
    return file.getvalue()


def structure(key: str, fig: Figure) -> dict:
    """What a figure consists of, however it is rendered: axes, labels, legends, numbers of artists.

    Raises ChapterError if it has no axes, an unlabelled axis, overlapping tick labels or a blank plot.
    """
    if fig.stale:
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
