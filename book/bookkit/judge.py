"""What a notebook measured for a claim, recorded and judged by the rule of the ledger."""

import html
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bookkit import claims as ledger
from bookkit import style
from bookkit.claims import Claim, ClaimError, Measurement, Number, Scale
from bookkit.records import ChapterError, recorded, records_folder, remember, write

# Sign, word and colour: no reader depends on one of them alone.
SIGNS = {
    "reproduced": "✓",
    "partly": "◐",
    "not reproduced": "✗",
    "not seen at reduced scale": "◌",
    "refuted": "≠",
    "not attempted": "○",
}
COLOURS = {
    "reproduced": style.GREEN,
    "partly": style.ORANGE,
    "not reproduced": style.PURPLE,
    "not seen at reduced scale": style.SKY,
    "refuted": style.VERMILLION,
    "not attempted": style.GREY,
}


@dataclass(frozen=True)
class Verdict:
    """A claim, what was measured for it, and what its rule makes of that. Shows itself as one line."""

    claim: Claim
    measurement: Measurement
    verdict: str
    scale: Scale
    note: str | None = None

    def __str__(self) -> str:
        return f"{self.claim.id} {self.verdict}: {self.sentence()}"

    __repr__ = __str__

    def ours(self) -> str:
        """The measurement, its spread and its scale in words."""
        beside = filter(None, (self.measurement.spread(self.claim), str(self.scale)))
        words = f"{self.measurement.text(self.claim)} ({'; '.join(beside)})"
        return f"{words}. {self.note}" if self.note else words

    def said(self) -> str:
        """What the source says; of a question, also the answer."""
        return " ".join(filter(None, (self.claim.statement, self.claim.answer(self.verdict))))

    def sentence(self) -> str:
        """What the source says, its number and ours."""
        return f"{self.said()} Source: {self.claim.published or 'no number'}. Ours: {self.ours()}"

    def _repr_markdown_(self) -> str:
        return f"{SIGNS[self.verdict]} **{self.claim.id} {self.verdict}.** {self.sentence()}"

    def _repr_html_(self) -> str:
        text = html.escape(self.sentence())
        return f'<p class="verdict">{badge(self.verdict)} <strong>{self.claim.id}</strong> {text}</p>'


def badge(verdict: str) -> str:
    """A verdict as HTML: sign and word beside a bar in its colour."""
    bar = f"border-left:0.4em solid {COLOURS[verdict]};padding-left:0.4em;white-space:nowrap"
    return f'<strong class="badge-verdict" style="{bar}">{SIGNS[verdict]}&nbsp;{verdict}</strong>'


def anchor(id: str) -> str:
    """The HTML id of a claim's row in its chapter's verdict table: M-08 -> claim-m-08."""
    return f"claim-{id.lower()}"


def published(id: str) -> float | Mapping[str, float]:
    """The number (or named numbers) of a source, from the ledger. Raises ClaimError if it gives none."""
    found = ledger.find_claim(ledger.load_claims(), id)
    if found.value is None:
        raise ClaimError(f"claim {id} has no published value in book/claims (published: {found.published!r})")
    return found.value


def claim(
    id: str,
    measured,
    *,
    unit: str | None = None,
    size: Mapping[str, Number] | None = None,
    figure: str | None = None,
    note: str | None = None,
) -> Verdict:
    """Record what was measured for a claim and return the verdict of its rule in book/claims.

    measured: a number or bool; a list, one entry a seed; or a mapping of named numbers and lists, shown in its order
    under the `labels` of book/claims. If a list has an entry for anything but a seed, `per` says so there.
    size: of what was measured, the quantities that the claim's `setting` gives of the source's run.
    note: a remark for the reader, shown beside the numbers.
    figure: key of a figure recorded before, in which the measurement can be seen.

    Raises ClaimError for an unknown id, a measurement that is not finite numbers, a rule that cannot judge it, or a
    size that cannot be compared with the setting; ChapterError for a figure that was not recorded.
    """
    found = ledger.find_claim(ledger.load_claims(), id)
    folder = records_folder()
    if figure and not (folder / "figures" / f"{figure}.json").is_file():
        raise ChapterError(f"claim {id}: no figure {figure!r} was recorded yet; call figure({figure!r}, ...) first")
    measurement, scale = Measurement.of(measured, unit), Scale.of(found, size)
    result = Verdict(found, measurement, ledger.verdict(found, measurement, scale), scale, note)
    numbers = dict.fromkeys(("mean", "sd", "min", "max")) | measurement.statistics()
    record = numbers | {
        "n": measurement.n(found),
        "figure": figure,
        "id": id,
        "measured": measurement.measured,
        "note": note,
        "notebook": folder.name,
        "scale": str(scale),
        "size": None if size is None else dict(size),
        "unit": unit,
        "verdict": result.verdict,
    }
    remember("claim", id, record)
    write(folder / "claims" / f"{id}.json", record)
    recorded[folder]["verdict", id] = result
    return result


def lead(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
    """Difference of the means of two groups of runs, at least two in each, and its standard error.

    The groups may differ in size and in spread (Welch 1947).
    """
    groups = [np.asarray(values, float) for values in (ours, theirs)]
    error = np.sqrt(sum(values.var(ddof=1) / len(values) for values in groups))
    return float(groups[0].mean() - groups[1].mean()), float(error)


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
            source = f"{row.said()} Published: {row.claim.published or 'no number'}."
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
            f'<div style="flex:3 1 14em">{html.escape(row.said())}</div>'
            f'<div style="flex:3 1 14em">Published: {html.escape(row.claim.published or "no number")}.<br>'
            f"Ours: {html.escape(row.ours())}</div></li>"
            for row in self.rows
        )
        return f'<ul class="verdicts" style="list-style:none;margin:0;padding:0">{rows}</ul>'


def verdicts(*ids: str) -> VerdictTable:
    """The table of claims measured in this run, in the order given. Raises ChapterError for any other."""
    seen = recorded.get(records_folder(), {})
    if missing := [id for id in ids if ("verdict", id) not in seen]:
        raise ChapterError(f"verdicts: {', '.join(missing)} not measured in this run; call claim(...) first")
    return VerdictTable(tuple(seen["verdict", id] for id in ids), in_book="BOOKKIT_RECORDS" in os.environ)
