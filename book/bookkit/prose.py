"""What a notebook says in words that a run computes: its numbers, and where its weights come from."""

import html
import re
from dataclasses import dataclass

from bookkit.records import ChapterError, remember

POWER = re.compile(r"(?<![\w.])(\d(?:\.\d+)?)e([+-]\d+)\b")  # as Python's formats write it: 5.4e-07
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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

    trained: one or several models, as a rule the seeds of one experiment, whose `provenance` is the note of how each
        was made: name, scale, steps, seconds, device, threads, machine, torch, made.
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


def written(value, fmt: str = "") -> str:
    """A number, in this format, or a text as the prose has it.

    A hyphen in front of a number becomes a minus sign; one between two characters, as in 4-digit or 2-5, stays. A
    power of ten is raised. A percent sign is set off from its number by a space at which no line ends.

    >>> written(-5.4e-7, ".1e").replace("\N{NO-BREAK SPACE}", " ")
    '−5.4 × 10⁻⁷'
    """
    text = value if isinstance(value, str) else format(value, fmt)
    text = POWER.sub(_raised, text)
    text = re.sub(r"(?<![\w)])-(?=\.?\d)", "−", text)
    return re.sub(r"(?<=\d)%", "\N{NO-BREAK SPACE}%", text)


def _raised(found: re.Match) -> str:
    times = "\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}"
    return f"{found[1]}{times}10{str(int(found[2])).translate(RAISED)}"


def glue(name: str, value, fmt: str = ".3g") -> None:
    """Make a number or text available to the notebook's prose, as ``{glue:text}`name```.

    value: a string, or a number (Python, numpy or torch), to be `written` with `fmt`.
    """
    import myst_nb

    text = written(value.item() if hasattr(value, "item") else value, fmt)
    remember("glued", name, text)
    # A str shows itself in quotation marks, and the page evaluates what it is shown: '4,500' comes out as it went in,
    # 4,500 as a pair and 0.10 without its zero.
    myst_nb.glue(name, text, display=False)
