"""The petal explorer of chapter 21: sliders that change a petal curve, with a kernel and without one.

A notebook calls `petal_explorer(...)`. By hand it answers with ipywidgets, drawn by matplotlib. In a run of the book
it answers with the element <petal-explorer>, which book/_static/petal-explorer.mjs draws in the browser: widgets need
a kernel, and a page has none. Both show the same controls, the same curve (`chapters.ch21_petals.Petal`) and the
same words.

Importing this module loads the book's style sheet.
"""

import io
import os
from dataclasses import asdict, dataclass, replace

import ipywidgets as widgets
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bookkit import style
from bookkit.web_components import element
from chapters.ch21_petals import Petal

style.use()

P = 113
PHASES = 8  # curves in a family
PRESETS = ((4, 4), (4, 32), (32, 4))  # (embedding, attention), those of the source
MODULE = "petal-explorer.mjs"

# What the sliders reach: parameter -> (lowest, highest, step).
RANGES = {"embedding": (1, 56, 1), "attention": (1, 56, 1), "amplitude": (0, 0.5, 0.01), "a": (0, P - 1, 1)}


def petal_explorer(
    embedding: int = 4,
    attention: int = 32,
    amplitude: float = 0.5,
    phase: float = 0.0,
    a: int = 0,
    family: bool = False,
) -> "PageExplorer | widgets.Widget":
    """An explorer of petal curves mod 113, for the last line of a cell; the arguments are where its sliders start.

    embedding, attention: frequencies 1 to 56. amplitude: 0 to 1/2. phase: radians, taken mod 2 pi. a: 0 to 112.
    family: whether to start with a family of curves.

    Returns widgets, or in a run of the book (BOOKKIT_RECORDS is set) what its page shows instead. Raises ValueError
    for a number that its slider cannot reach.
    """
    given = {"embedding": embedding, "attention": attention, "amplitude": amplitude, "a": a}
    for name, value in given.items():
        low, high, step = RANGES[name]
        if not low <= value <= high or (step == 1 and value != int(value)):
            kind = "a whole number" if step == 1 else "a number"
            raise ValueError(f"petal_explorer: {name}={value!r} must be {kind} from {low} to {high}")
    if not np.isfinite(phase):
        raise ValueError(f"petal_explorer: phase={phase!r} must be a finite number of radians")
    petal = Petal(**given, phase=float(phase % (2 * np.pi)), p=P)
    return PageExplorer(petal, family) if os.environ.get("BOOKKIT_RECORDS") else _widgets(petal, family)


# --- what is to be seen ---


def family_phases(petal: Petal) -> np.ndarray:
    """(8,) phases of a family in radians, evenly spread over 2 pi / n, where k_a / k_e = m / n in lowest terms.

    The closed curve at a phase 2 pi / n further on is the same curve, entered at another turn of the circle, so that
    phases over 2 pi would show each curve n times.
    """
    _, n = petal.ratio
    return petal.phase + 2 * np.pi / n * np.arange(PHASES) / PHASES


def describe(petal: Petal, family: bool = False) -> str:
    """The curve in words: frequencies in lowest terms, lobes and crossings.

    >>> describe(Petal(embedding=32, attention=4)).partition(". ")[2]
    'At almost every phase the curve has 9 lobes that meet at the marked point, and crosses itself 7 times elsewhere.'
    """
    if petal.amplitude == 0:
        return "Amplitude 0: the weight is always 1/2, and the points stand on a circle of half the size."
    m, n = petal.ratio
    crossing = "does not cross itself" if n == 1 else f"crosses itself {_times(petal.crossings)}"
    if petal.amplitude == 0.5:
        shape = f"has {petal.lobes} lobes that meet at the marked point, and {crossing} elsewhere."
    else:
        shape = (
            f"passes the marked point {_times(n)} and {crossing} elsewhere; "
            f"at amplitude 0.5 it has {petal.lobes} lobes."
        )
    words = f"Attention to embedding frequency m/n = {m}/{n} in lowest terms. At almost every phase the curve {shape}"
    if family:
        span = "a turn" if n == 1 else f"1/{n} of a turn, after which the curve repeats"
        words += f" Eight phases over {span}; the bold curve has the phase chosen."
    return words


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def draw_petal(ax: Axes, petal: Petal, family: bool = False) -> None:
    """Draw the 113 points of a petal, coloured by b, and their curve; or a family of curves, coloured by phase."""
    turn = np.exp(1j * np.linspace(0, 2 * np.pi, 200))
    ax.plot(turn.real, turn.imag, color=style.GREY, linewidth=0.7)
    if family:
        colours = style.residue_colours(P)
        _, n = petal.ratio
        for number, phase in enumerate(family_phases(petal)):
            colour = colours[int(n * phase / (2 * np.pi) * P + 1e-9) % P]
            _draw_curve(
                ax, replace(petal, phase=phase), color=colour, linewidth=1.2 if number else 3, zorder=2 - number
            )
    else:
        _draw_curve(ax, petal, color=style.GREY, linewidth=1)
        z = petal(np.arange(P))
        ax.scatter(z.real, z.imag, s=24, c=style.residue_colours(P), edgecolors=style.BLACK, linewidths=0.3, zorder=3)
    x_a = petal.point(petal.a)
    ax.plot(x_a.real, x_a.imag, "o", color=style.BLACK, markerfacecolor="none", markersize=10, zorder=4)
    ax.text(1.12 * x_a.real, 1.12 * x_a.imag, "$x_a$", ha="center", va="center")
    ax.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), aspect="equal")
    ax.axis("off")


def _draw_curve(ax: Axes, petal: Petal, **look) -> None:
    z = petal.closed()
    z = np.append(z, z[0])
    ax.plot(z.real, z.imag, **look)


# --- with a kernel ---


def _widgets(petal: Petal, family: bool) -> widgets.Widget:
    """Sliders, buttons, a picture and a sentence, joined up."""
    wide = {"style": {"description_width": "10em"}, "layout": widgets.Layout(width="26em")}

    def whole(name: str, label: str) -> widgets.IntSlider:
        low, high, step = RANGES[name]
        value = int(getattr(petal, name))
        return widgets.IntSlider(value=value, min=low, max=high, step=step, description=label, **wide)

    low, high, step = RANGES["amplitude"]
    controls = {
        "embedding": whole("embedding", "Embedding frequency"),
        "attention": whole("attention", "Attention frequency"),
        "phase": widgets.FloatSlider(
            value=petal.phase / np.pi, min=0, max=2, step=0.01, description="Phase (multiples of π)", **wide
        ),
        "amplitude": widgets.FloatSlider(
            value=petal.amplitude, min=low, max=high, step=step, description="Amplitude", **wide
        ),
        "a": whole("a", "Fixed number a"),
        "family": widgets.Checkbox(value=family, description="Family of curves"),
    }
    picture = widgets.Image(format="png", layout=widgets.Layout(width="28em", max_width="100%"))
    words = widgets.HTML()

    def show(_change=None) -> None:
        values = {name: control.value for name, control in controls.items()}
        asked = values.pop("family")
        now = Petal(**values | {"phase": values["phase"] * np.pi}, p=P)
        picture.value = _png(now, asked)
        words.value = describe(now, asked)

    def preset(pair: tuple[int, int]) -> widgets.Button:
        button = widgets.Button(description=f"{pair[0]}, {pair[1]}", tooltip="embedding, attention")

        def choose(_button) -> None:
            controls["embedding"].value, controls["attention"].value = pair

        button.on_click(choose)
        return button

    # One step of 0.02 pi every 200 ms, about what a picture takes.
    play = widgets.Play(min=0, max=198, step=2, interval=200, repeat=True, description="Play the phase")
    play.observe(lambda change: setattr(controls["phase"], "value", change["new"] / 100), "value")
    for control in controls.values():
        control.observe(show, "value")
    show()
    presets = widgets.HBox([preset(pair) for pair in PRESETS])
    return widgets.HBox(
        [picture, widgets.VBox([*controls.values(), presets, play, words], layout=widgets.Layout(max_width="28em"))],
        layout=widgets.Layout(flex_flow="row wrap", align_items="center"),
    )


def _png(petal: Petal, family: bool) -> bytes:
    fig = Figure(figsize=(5, 5))
    draw_petal(fig.add_subplot(), petal, family)
    picture = io.BytesIO()
    fig.savefig(picture, format="png")
    return picture.getvalue()


# --- without a kernel ---


@dataclass(frozen=True)
class PageExplorer:
    """The explorer on a page of the book; without JavaScript and on paper, words stand in its place."""

    petal: Petal
    family: bool

    def __repr__(self) -> str:
        p = self.petal
        return (
            f"An explorer of petal curves, for a screen. It starts at embedding frequency {p.embedding}, attention "
            f"frequency {p.attention}, phase {p.phase / np.pi:.2f} π, amplitude {p.amplitude:.2f} and a = {p.a}. "
            f"{describe(p, self.family)}"
        )

    def _repr_html_(self) -> str:
        values = {name: value for name, value in asdict(self.petal).items() if name != "p"}
        attributes = values | ({"family": ""} if self.family else {})
        words = f"{self} It needs JavaScript; the figure beneath does not."
        return element("petal-explorer", attributes, words, MODULE)
