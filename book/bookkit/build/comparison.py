"""Published numbers against ours, as one drawing of the scoreboard: a mark for every pair that can be compared."""

import html
import math
from collections.abc import Iterable, Sequence

from bookkit.claims import show
from bookkit.judge import COLOURS, SIGNS, anchor

# Of the drawing in pixels: its side, the room for numbers at its left and bottom, and that at the other sides.
SIDE, EDGE, REST = 560, 56, 14
SMALLEST = 1e-2  # what is smaller, zero and negative numbers too, stands on the edge


def distance(beside: Iterable[tuple[str, float, float]]) -> float | None:
    """The largest factor between a published number and ours, as powers of ten; None where nothing is compared.

    Infinite where one of a pair is zero, or their signs differ.
    """
    apart = [0.0 if theirs == ours else _apart(theirs, ours) for _, theirs, ours in beside or ()]
    return max(apart, default=None)


def _apart(theirs: float, ours: float) -> float:
    return abs(math.log10(ours / theirs)) if theirs * ours > 0 else math.inf


def drawing(rows: list[dict]) -> str:
    """SVG in HTML, both axes logarithmic; each mark leads to the card of its claim. Empty without a pair.

    rows: of `claims.scoreboard`.
    """
    pairs = [(row, *pair) for row in rows for pair in row["beside"] or ()]
    if not pairs:
        return ""
    powers = [math.log10(max(number, SMALLEST)) for _, _, *both in pairs for number in both]
    low = math.floor(min(powers))
    high = max(math.ceil(max(powers)), low + 1)

    def place(number: float) -> float:
        """Pixels from the origin."""
        return (math.log10(max(number, SMALLEST)) - low) / (high - low) * (SIDE - EDGE - REST)

    lines, far = [], SIDE - REST
    for power in range(low, high + 1, 2):
        at, words = place(10.0**power), _power(power)
        x, y = EDGE + at, far - EDGE + REST - at
        lines.append(f'<path d="M{x:.1f} {REST}V{far - EDGE + REST}M{EDGE} {y:.1f}H{far}" class="grid"/>')
        lines.append(f'<text x="{x:.1f}" y="{far - EDGE + 32}" text-anchor="middle">{words}</text>')
        lines.append(f'<text x="{EDGE - 6}" y="{y + 4:.1f}" text-anchor="end">{words}</text>')
    ground = far - EDGE + REST
    marks = [
        f'<a href="#{anchor(row["id"])}" tabindex="-1"><title>{_words(row, name, theirs, ours)}</title>'
        f'<text class="mark" x="{EDGE + place(theirs):.1f}" y="{ground - place(ours) + 5:.1f}" text-anchor="middle" '
        f'style="fill:{COLOURS[row["verdict"]]}">{SIGNS[row["verdict"]]}</text></a>'
        for row, name, theirs, ours in pairs
    ]
    within = sum(_apart(theirs, ours) <= math.log10(1.1) or theirs == ours for _, _, theirs, ours in pairs)
    words = (
        f"{len(pairs)} published numbers and ours on logarithmic axes: {within} pairs within a tenth of each other"
    )
    return (
        f'<figure class="compared"><svg viewBox="0 0 {SIDE} {SIDE}" role="group" aria-label="{words}.">'
        f'{"".join(lines)}<path class="same" d="M{EDGE} {ground}L{far} {REST}"/>{"".join(marks)}'
        f'<text x="{(EDGE + far) / 2}" y="{SIDE - 4}" text-anchor="middle">published</text>'
        f'<text transform="translate(12 {(ground + REST) / 2}) rotate(-90)" text-anchor="middle">ours</text></svg>'
        f"<figcaption>{words}. A mark is the verdict on its claim, and leads to it; on the line ours is the "
        "published one. Many of those below it were measured in a smaller setting. Numbers below "
        f"{SMALLEST:g}, zero and negative ones among them, stand at {SMALLEST:g}.</figcaption></figure>"
    )


def left_out(reasons: Sequence[dict]) -> str:
    """Folded: which claims with a published number are not drawn, and why. Empty without one.

    reasons: of book/not_compared.yaml, each a reason and the claims for which it holds.
    """
    if not reasons:
        return ""
    items = "".join(
        f"<li>{html.escape(entry['reason'])} <small>{', '.join(map(_link, entry['claims']))}</small></li>"
        for entry in reasons
    )
    count = sum(len(entry["claims"]) for entry in reasons)
    words = f"{count} more claims have a published number with nothing of ours beside it: why"
    return f"<details><summary>{words}</summary><ul>{items}</ul></details>"


def _link(id: str) -> str:
    return f'<a href="#{anchor(id)}">{id}</a>'


def _power(power: int) -> str:
    superscript = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{10**power:g}" if -2 <= power <= 2 else f"10{superscript}"


def _words(row: dict, name: str, theirs: float, ours: float) -> str:
    what = "" if name == "value" else f", {name.replace('_', ' ')}"
    return html.escape(f"{row['id']}{what}: published {show(theirs)}, ours {show(ours)} ({row['verdict']})")
