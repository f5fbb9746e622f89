"""The helix viewer of chapter 50: numbers on a line and a circle, turned by hand, in the browser.

book/_static/helix-viewer.mjs draws it, as `bookkit.web_components` tells.

Dimensions: N numbers, C columns of `arithlib.analysis.helix.helix_columns`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
import torch

from arithlib.analysis.helix import radius_spread
from bookkit import style
from bookkit.web_components import element

MODULE = "helix-viewer.mjs"
HEIGHT = 1.3  # from the middle to the ends of the line, in radii of a circle


@dataclass(frozen=True)
class HelixViewer:
    """A viewer for the last line of a cell.

    clouds: by name, numbers (N,) and their coordinates (N, C) as `fitted_coordinates` gives them; the first is shown
    first. periods: of the columns, in their order, period 2 among them as the one column it is. turn, tilt: degrees,
    where the viewer starts. Raises ValueError where numbers and coordinates do not fit together.
    """

    clouds: Mapping[str, tuple]
    periods: tuple[int, ...] = (2, 5, 10, 100)
    turn: int = 20
    tilt: int = 30

    def __post_init__(self):
        columns = 1 + sum(1 if T == 2 else 2 for T in self.periods)
        for name, (numbers, points) in self.clouds.items():
            if tuple(points.shape) != (len(numbers), columns):
                raise ValueError(f"{name}: {len(numbers)} numbers and {columns} columns, found {tuple(points.shape)}")

    @property
    def data(self) -> dict:
        """What the element draws: its circles, colours, and of each cloud the numbers and their places in space."""
        circles = sorted((T for T in self.periods if T != 2), reverse=True)
        clouds = [
            {
                "name": name,
                "numbers": [int(n) for n in numbers],
                "places": {T: np.round(self.places(name, T), 3).tolist() for T in circles},
            }
            for name, (numbers, _) in self.clouds.items()
        ]
        largest = max(max(cloud["numbers"]) for cloud in clouds)
        colours = mpl.colormaps[style.SEQUENTIAL](np.arange(largest + 1) / largest)
        return {
            "circles": circles,
            "height": HEIGHT,
            "colours": [mpl.colors.to_hex(colour) for colour in colours],
            "clouds": clouds,
        }

    def places(self, name: str, T: int) -> np.ndarray:
        """(N, 3) cosine and sine of a period, and the line, put upright from -HEIGHT to HEIGHT."""
        points = np.asarray(self.clouds[name][1], dtype=float)
        column = 1 + sum(1 if earlier == 2 else 2 for earlier in self.periods[: self.periods.index(T)])
        return np.column_stack([points[:, column : column + 2], HEIGHT * (2 * points[:, 0] - 1)])

    def __repr__(self) -> str:
        first, T = next(iter(self.clouds)), self.data["circles"][0]
        return (
            f"A viewer for a screen, to turn the numbers in the fitted directions, for the periods "
            f"{', '.join(map(str, self.data['circles']))}; {' or '.join(self.clouds)}. It starts with this: "
            f"{describe(self.places(first, T), T, first, self.turn, self.tilt)}"
        )

    def _repr_html_(self) -> str:
        data = json.dumps(self.data, separators=(",", ":"))
        words = f"{self} It needs JavaScript; the figure above does not."
        return element("helix-viewer", {"turn": self.turn, "tilt": self.tilt, "data": data}, words, MODULE)


def describe(places: np.ndarray, T: int, name: str, turn: int, tilt: int) -> str:
    """One view in words, with how round the circle is."""
    spread = float(radius_spread(torch.tensor(places[:, :2])))
    side = "above" if tilt >= 0 else "below"
    return (
        f"The line and the circle of period {T}, {name}, from {turn} degrees around and {abs(tilt)} {side}. The "
        f"distance from the axis varies by {spread:.2f} of its mean: 0 on a circle, about 0.52 in a cloud."
    )
