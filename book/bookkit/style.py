"""How the figures of the book look: one style sheet, colours by role, cyclic colours for residues.

Residues and phases wear `CYCLIC`, amounts `SEQUENTIAL`, differences `DIVERGING` centred at zero.
The colours are those of Okabe and Ito, which readers of every colour vision can tell apart.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import CenteredNorm
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MultipleLocator

BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, YELLOW, BLACK, GREY = "#E69F00", "#56B4E9", "#F0E442", "#000000", "#7F7F7F"

# A role keeps its colour throughout the book.
TRAIN, TEST = BLUE, VERMILLION
KEY_FREQUENCY, OTHER_FREQUENCY = GREEN, GREY

CYCLIC, SEQUENTIAL, DIVERGING = "twilight", "viridis", "RdBu_r"
PALEST = 0.29  # relative luminance of a mark; at 0.3 it has the 3 : 1 on white that WCAG 2.1 (1.4.11) asks for


def use() -> None:
    """Load the book's style sheet; `bookkit.figures` does so when it is imported."""
    plt.style.use(Path(__file__).with_name("book.mplstyle"))


def residue_colours(p: int) -> np.ndarray:
    """One colour for each residue mod p, on a circle: 0 and p - 1 are neighbours.

    Returns (p, 4) RGBA in [0, 1]: twilight, a little darker and no paler than `PALEST`, as its palest colours vanish
    on white. Raises ValueError for p < 1.
    """
    if p < 1:
        raise ValueError(f"residue_colours needs a modulus p >= 1, got {p}")
    colours = plt.get_cmap(CYCLIC)(np.arange(p) / p) * [0.85, 0.85, 0.85, 1.0]
    luminance = colours[:, :3] ** 2.2 @ [0.2126, 0.7152, 0.0722]
    colours[:, :3] *= np.minimum(1, PALEST / luminance)[:, None] ** (1 / 2.2)
    return colours


def centred(values) -> dict:
    """Keywords for `imshow` or `pcolormesh` that show signed `values`: diverging, zero in the middle."""
    return {"cmap": DIVERGING, "norm": CenteredNorm(0, max(float(np.abs(values).max()), 1e-12))}


def _multiple_of_pi(value: float, _position=None) -> str:
    """Text of a tick at a multiple of pi / 2: 0, π/2, π, -3π/2, ..."""
    halves = round(2 * value / np.pi)
    if halves == 0:
        return "0"
    sign, halves = ("−" if halves < 0 else ""), abs(halves)
    if halves % 2:
        return f"{sign}{'' if halves == 1 else halves}π/2"
    return f"{sign}{'' if halves == 2 else halves // 2}π"


def phase_axis(ax: Axes, axis: str = "x", step: float = np.pi / 2) -> None:
    """Ticks of a phase axis (radians) at multiples of `step`, written as multiples of π.

    axis: "x" or "y"; step: pi / 2 or a multiple of it.
    """
    which = {"x": ax.xaxis, "y": ax.yaxis}[axis]
    which.set_major_locator(MultipleLocator(step))
    which.set_major_formatter(FuncFormatter(_multiple_of_pi))


def seed_band(ax: Axes, x, ys, colour: str = TRAIN, label: str | None = None) -> None:
    """Draw every seed faint and their mean bold.

    x: (T,); ys: (seeds, T). The label goes to the mean, so that the legend has one line a quantity.
    Raises ValueError if the shapes do not fit.
    """
    x, ys = np.asarray(x), np.asarray(ys)
    if ys.ndim != 2 or ys.shape[1:] != x.shape:
        raise ValueError(f"seed_band expects ys of shape (seeds, {len(x)}) for x of {len(x)}, got {ys.shape}")
    ax.plot(x, ys.T, color=colour, alpha=0.3, linewidth=0.8)
    ax.plot(x, ys.mean(axis=0), color=colour, linewidth=2.2, label=label)


def length_heatmap(ax: Axes, grid, lengths, trained: int, **more) -> None:
    """Shares (n, n) of right answers over the lengths of both numbers, the lengths of training outlined.

    lengths: the n digits of rows and columns, rising. trained: the longest of training; the outline holds the whole
    cells of at most so many digits. more: for seaborn's `heatmap`.
    """
    import seaborn as sns  # here, since the models do without it

    sns.heatmap(
        grid, ax=ax, vmin=0, vmax=1, cmap=SEQUENTIAL, square=True, xticklabels=lengths, yticklabels=lengths, **more
    )
    ax.invert_yaxis()
    inside = sum(length <= trained for length in lengths)
    ax.add_patch(Rectangle((0, 0), inside, inside, fill=False, edgecolor=BLACK, linewidth=2))
    every = max(1, len(lengths) // 5)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks([i + 0.5 for i in range(every - 1, len(lengths), every)], lengths[every - 1 :: every])
    ax.tick_params(axis="both", rotation=0)
