"""Eleven ways to write a sum, token by token, and how far back each token has to look (chapters 60, 61 and 65).

The texts are those of the chapters that test them, without line ends, end tokens and filling. What a token has to be
read from is defined here, once, by the rule of written addition:

    a digit of the sum    the digits of its column, and the carry into it
    a carry               the token that writes it. Else the digits of the column below; and if they sum to nine, the
                          digit of the sum written there (0 tells a carry), or, if there is none yet, the carry into
                          that column, and so on down
    a copy                the last token that holds the same
    an index hint         the last hint of this column or of one beside it: hints count on

Which column comes next is taken as known. A token is written at the place of the one before it, so distances count
from there, as in `chapters.ch65_working_memory.Line`: the token just before is 0 back.

book/_static/format-explorer.mjs writes and measures the same in a page, as `bookkit.web_components` tells.
"""

import html
import json
import re
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_letters

import numpy as np

from arithlib.tasks.operands import OperandTask
from arithlib.tokenizer import ALPHABET, END
from bookkit.web_components import element, whole_source
from chapters.ch60_cut_sums import Cut, token_text
from chapters.ch61_written_sums import Format
from chapters.ch63_tasks import HINTS, NUMBERS, addition
from chapters.ch69_described_sums import FORMAT, spaced

MODULE = "format-explorer.mjs"
DIGITS = 12  # of the longest number that is taken
DRAWS = 8  # of random spaces and hints that a page has
SHARE = 0.5  # of the gaps between digits that hold a space
SPACE = "␣"  # what a space is shown as
HINT = dict(zip(range(NUMBERS, NUMBERS + HINTS), ascii_letters, strict=False))
COLUMNS = """units, tens, hundreds, thousands, ten thousands, hundred thousands, millions, ten millions,
hundred millions, billions, ten billions, hundred billions, trillions""".replace("\n", " ").split(", ")
STEP = re.compile(r"(\d*)\+(\d*),(\d*)c(\d)(?::(\d)\+(\d)\+(\d)=(\d)(\d))?")  # of a detailed scratchpad


# --- the texts, as the chapters write them: tokens of the question and of the answer ---


def _characters(style, padded=False):
    def write(a, b, draw):
        form = Format(style, len(str(max(a, b))) if padded else 0)
        return [*form.question(a, b)], [*form.answer(a, b)]

    return write


def _cut(cut, commas=None):
    def write(a, b, draw):
        numbers = np.array([a, b, a + b])
        pieces = [
            [token_text(token, cut.size) for token in cut.tokens(numbers[[i]], DIGITS + 1, at)[0] if token >= 0]
            for i, at in enumerate((commas, commas, None))
        ]
        return [*pieces[0], "+", *pieces[1], "="], pieces[2]

    return write


def _all_reversed(a, b, draw):
    tokens = OperandTask(reverse="all").from_numbers([(a, b)]).tokens[0].tolist()
    text = "".join(ALPHABET[token] for token in tokens).partition(ALPHABET[END])[0]
    question, sign, answer = text.partition("=")
    return [*question, sign], [*answer]


def _hinted(a, b, draw):
    width = len(str(max(a, b)))
    pair = np.array([[[int(digit) for digit in f"{number:0{width}}"] for number in (a, b)]])
    question, answer = (part[0].tolist() for part in addition(True, True)(pair, np.random.default_rng(draw)))
    signs = HINT | {digit: str(digit) for digit in range(10)}
    return [*(signs.get(token, "+") for token in question), "="], [signs[token] for token in answer]


def _spaced(a, b, draw):
    question = spaced(FORMAT.question(a, b), SHARE, np.random.default_rng(draw))
    return [*question.replace(" ", SPACE)], [*FORMAT.answer(a, b)]


@dataclass(frozen=True)
class Way:
    """How sums are written.

    write: two numbers and the number of a draw -> tokens of the question and of the answer.
    numbers_up, answer_up: whether the operands, and the sum, begin with the units.
    """

    write: object
    numbers_up: bool = False
    answer_up: bool = False


WAYS = {
    "plain": Way(_characters("plain")),
    "zero-padded": Way(_characters("plain", padded=True)),
    "answer reversed": Way(_characters("reversed"), answer_up=True),
    "all reversed": Way(_all_reversed, numbers_up=True, answer_up=True),
    "simplified scratchpad": Way(_characters("simplified")),
    "detailed scratchpad": Way(_characters("detailed")),
    "index hints": Way(_hinted, answer_up=True),
    "commas": Way(_cut(Cut(), np.array([True]))),
    "threes from the left": Way(_cut(Cut(3, "left"))),
    "threes from the right": Way(_cut(Cut(3, "right"))),
    "random spaces": Way(_spaced, answer_up=True),
}


# --- what each token holds: (kind, column) of a digit of a, b or the sum, of a carry into a column, or of a hint ---


def _number(tokens, kind, up=False, lowest=0):
    """For each token of a number, its digits by column; a hint belongs to the digit after it."""
    width = sum(len(token) for token in tokens if token.isdecimal())
    holds, done = [], 0
    for token in tokens:
        digits = len(token) if token.isdecimal() else 0
        order = range(done, done + (digits or 1))
        columns = [lowest + (i if up else width - 1 - i) for i in order]
        if digits or token.isalpha():
            holds.append(tuple((kind if digits else "hint", column) for column in columns))
        else:
            holds.append(())
        done += digits
    return holds


def _step(text, column):
    """Of one step of a scratchpad, up to its semicolon; of a detailed one, what is left, done and computed."""
    if "+" not in text:
        return [(("sum", column),), (), (("carry", column + 1),)]
    left, right, done, _, *computed = STEP.fullmatch(text).groups()
    holds = [*_number(left, "a", lowest=column), (), *_number(right, "b", lowest=column), (), *_number(done, "sum")]
    holds += [(), (("carry", column),)]
    if computed[0]:
        first, second, carry = (((kind, column),) for kind in ("a", "b", "carry"))
        holds += [(), first, (), second, (), carry, (), (("carry", column + 1),), (("sum", column),)]
    return holds


def _holds(way, question, answer):
    """For each token what it holds."""
    plus = question.index("+")
    holds = [
        *_number(question[:plus], "a", way.numbers_up),
        (),
        *_number(question[plus + 1 : -1], "b", way.numbers_up),
        (),
    ]
    *steps, _ = "".join(answer).split(";")
    for column, step in enumerate(steps):
        holds += [*_step(step, column), ()]
    return [*holds, *_number(answer[len(holds) - len(question) :], "sum", way.answer_up)]


# --- what each token has to be read from ---


def _read(kind, column, held, nines):
    """Places of the tokens that one thing has to be read from. held: where each was last written."""

    def found(*names):
        return {held[name] for name in names if name in held}

    if kind == "hint":
        beside = found(*(("hint", near) for near in (column - 1, column, column + 1)))
        return {max(beside)} if beside else set()
    if (kind, column) in held or kind in ("a", "b"):
        return found((kind, column))
    if kind == "sum":
        return found(("a", column), ("b", column)) | _read("carry", column, held, nines)
    below = column - 1
    if below < 0:
        return set()
    carried = _read("sum" if ("sum", below) in held else "carry", below, held, nines) if below in nines else set()
    return found(("a", below), ("b", below)) | carried


@dataclass(frozen=True)
class Text:
    """A sum as tokens, `asked` of them its question.

    holds: for each token what it says, as (kind, column). sources: for each token of the answer the places, rising,
    of those that it has to be read from; none for signs, constants, and the question.
    """

    tokens: tuple[str, ...]
    asked: int
    holds: tuple[tuple[tuple[str, int], ...], ...]
    sources: tuple[tuple[int, ...], ...]

    def distance(self, place: int) -> int | None:
        """How far back the farthest source of a token stands; None if it has none."""
        return place - 1 - self.sources[place][0] if self.sources[place] else None

    def summary(self) -> dict[str, int]:
        """Tokens in all; of the distances the longest, the sum and the number; the most sources of one token."""
        far = [away for place in range(len(self.tokens)) if (away := self.distance(place)) is not None]
        return {
            "tokens": len(self.tokens), "longest": max(far), "sum": sum(far), "number": len(far),
            "most": max(map(len, self.sources)),
        }  # fmt: skip

    def describe(self, place: int) -> str:
        """One token of the answer in words.

        >>> written("plain", 128, 367).describe(8)
        '4, the hundreds of the sum: 4 tokens are needed, the farthest 7 back.'
        """
        if not self.holds[place]:
            return f"{self.tokens[place]}, a sign."
        kind, highest = self.holds[place][0]
        lowest = self.holds[place][-1][1]
        column = COLUMNS[highest] if highest == lowest else f"{COLUMNS[highest]} to {COLUMNS[lowest]}"
        said = {
            "a": f"the {column} of the first number, again",
            "b": f"the {column} of the second number, again",
            "sum": f"the {column} of the sum",
            "carry": f"the carry into the {column}",
            "hint": f"the name of the {column}",
        }[kind]
        count = len(self.sources[place])
        if not count:
            needed = "no token is needed."
        elif count == 1:
            needed = f"1 token is needed, {self.distance(place)} back."
        else:
            needed = f"{count} tokens are needed, the farthest {self.distance(place)} back."
        return f"{self.tokens[place]}, {said}: {needed}"


def written(name: str, a: int, b: int, draw: int = 0) -> Text:
    """a + b in one of `WAYS`; draw: seed of random spaces and hints.

    >>> written("plain", 57, 48).sources[6:]  # 1 needs both columns, 0 and 5 theirs and what is below
    ((0, 1, 3, 4), (0, 1, 3, 4), (1, 4))
    """
    question, answer = WAYS[name].write(a, b, draw)
    holds = _holds(WAYS[name], question, answer)
    nines = {c for c in range(DIGITS) if a // 10**c % 10 + b // 10**c % 10 == 9}
    held, sources = {}, []
    for place, names in enumerate(holds):
        needed = set() if place < len(question) else set().union(*(_read(*one, held, nines) for one in names))
        sources.append(tuple(sorted(needed)))
        held |= dict.fromkeys(names, place)
    return Text((*question, *answer), len(question), tuple(holds), tuple(sources))


def mean(summary: dict[str, int]) -> str:
    """The mean distance, one decimal, halves up: the same digits as in the browser."""
    tenths = (20 * summary["sum"] + summary["number"]) // (2 * summary["number"])
    return f"{tenths // 10}.{tenths % 10}"


# --- in a page ---


@lru_cache
def drawn() -> list[dict[str, object]]:
    """For each draw: a bit for each gap between digits, 1 for a space, and where hints begin, by digits."""
    gaps = [np.random.default_rng(draw).random(2 * (DIGITS - 1)) < SHARE for draw in range(DRAWS)]
    begins = [
        [written("index hints", 10**n - 1, 0, draw).tokens[0] for n in range(1, DIGITS + 1)] for draw in range(DRAWS)
    ]
    return [
        {"spaces": "".join(str(int(bit)) for bit in bits), "hints": [ascii_letters.index(letter) for letter in row]}
        for bits, row in zip(gaps, begins, strict=True)
    ]


@dataclass(frozen=True)
class FormatExplorer:
    """The explorer, for the last line of a cell; numbers and formats are where it starts.

    a, b: of at most `DIGITS` digits. shown: of `WAYS`, those whose tokens are shown at first.
    Raises ValueError for anything else.
    """

    a: int
    b: int
    shown: tuple[str, ...] = ("plain", "answer reversed", "simplified scratchpad", "detailed scratchpad")

    def __post_init__(self):
        for name in ("a", "b"):
            number = getattr(self, name)
            if not isinstance(number, int) or not 0 <= number < 10**DIGITS:
                raise ValueError(f"{name} = {number!r}: an integer of at most {DIGITS} digits is taken")
        if not self.shown or set(self.shown) - WAYS.keys():
            raise ValueError(f"shown = {self.shown!r}: one or more of {', '.join(WAYS)}")

    def __repr__(self) -> str:
        return (
            f"An explorer of {len(WAYS)} formats of {self.a} + {self.b}, for a screen: tokens in all, and how many "
            "tokens back a token of the answer has to look."
        )

    def _repr_html_(self) -> str:
        given = {
            "a": self.a, "b": self.b, "digits": DIGITS, "shown": json.dumps(self.shown), "draws": json.dumps(drawn()),
        }  # fmt: skip
        words = f"{self} It needs JavaScript; this table does not."
        return element("format-explorer", given, words, MODULE, self.table())

    def table(self) -> str:
        """Markup of all texts with their summaries, for where no script runs, and for paper."""
        rows = []
        for name in WAYS:
            text = written(name, self.a, self.b)
            of = text.summary()
            cells = (of["most"], of["tokens"], of["longest"], mean(of))
            row = "".join(f"<td>{cell}</td>" for cell in cells)
            # Without a width of its own, the longest text would be a column of single tokens on a phone.
            tokens = f'<td style="min-width: 14rem; text-align: left">{html.escape(" ".join(text.tokens))}</td>'
            rows.append(f'<tr><th scope="row">{name}</th>{tokens}{row}</tr>')
        heads = ("format", "text", "most tokens needed", "tokens", "farthest back", "mean distance")
        head = "".join(f'<th scope="col">{one}</th>' for one in heads)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"

    def page_bytes(self) -> int:
        """What the script adds to a page that is loaded for the first time, before compression."""
        return len(whole_source(MODULE).encode())
