"""Public entries of AdderBoard, run again outside this repository (chapter 73; November 2026).

Each entry ran by its own program, as published at the commit that is named, in its own number format; those for mlx
were rewritten for torch in float32, and agreed with mlx on the board's sums in every answer. For the programs ask
their authors; the sums that fail can be checked there. Three sets of sums: the board's own test, ten by hand and
10,000 random ones (seed 2025); random sums; and sums that are hard on purpose (long carries, digits 0, 1 and 9, 4 and
5, few digits). Then, from the sums with the least lead, one or two digits were changed again and again.

A lead is by how much the right digit exceeds all others, in the entry's own logits, at any of its steps. The weights
of evindor's entry are those of its web page, which are rounded to six decimals.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import bookkit
from bookkit.tables import Table

BOARD = 10_010  # sums of the board's own test
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Entry:
    """One entry.

    board: how many of BOARD are right. random, hard: sums tried, and wrong. near: sums tried near those of the least
        lead. fails: a sum that it gets wrong, or None where none was found. source: repository, file and commit.
    """

    trained: bool
    parameters: int
    author: str
    board: int
    random: tuple[int, int]
    hard: tuple[int, int]
    near: int
    lead: float
    fails: str | None
    source: str


_MEASURED = """
hand      2 kswain98     10010 288000   0 372000    0  512000   0.0312 -
    anadim/AdderBoard submission_2p.py e39ac7f6
hand      4 kswain98     10010 212000   0 252000    0  548000   0.0312 -
    anadim/AdderBoard submission_4p.py 6b8931dc
hand      6 zcbtrak      10010  84000   0  96000    0  256000   0.0368 -
    zcbtrak/6P-coordinate-descent submission_6p_handcoded.py be8ab89e
hand      7 Kiguli       10010 208000   0 220000    0  496000   0.0312 -
    Kiguli/AdderBoard submission_7p_fixedmask.py ebdc0244
hand      7 Kiguli       10010 192000   0 280000    0  416000   0.0312 -
    Kiguli/AdderBoard submission_7p_relu.py ebdc0244
hand      8 kswain98     10010 232000   0 312000    0  664000   0.0312 -
    kswain98/AdderBoard submission.py a263efe7
hand     10 lokimorty    10010 268000   0 360000    0  620000   0.0312 -
    Kiguli/AdderBoard Lokimorty_10p.py 042febec
hand     12 lokimorty    10010 244000   0 280000    0  516000   0.0312 -
    Kiguli/AdderBoard Lokimorty_12p.py 042febec
hand     20 yieldthought 10010 336000   0 280000    0  696000   0.0547 -
    Kiguli/AdderBoard yieldthought_20p.py 042febec
hand     27 Wonderfall   10010 352000   0 388000    0  500000   0.0547 -
    Kiguli/AdderBoard Wonderfall_27p.py 042febec
hand     28 jacobli99    10010  84000   0 108000    0  224000 0.000122 -
    Kiguli/AdderBoard SeuperHakkerJa_28p.py 042febec
hand     33 fblissjr     10010  68000   0  72000    0  164000    0.991 -
    fblissjr/AdderBoard submission_1l.py 120903ad
hand     36 alexlitz     10010  32000   0  44000  331   68000   -4e+10 5545544444+5444455555
    gist 0d5efbccf443fb0e8136b8f5bd85140a
hand     50 lichengliu03 10010 356000   0 440000    0  316000   0.0196 -
    Kiguli/AdderBoard lichengliu03_50p.py 042febec
hand     66 cosminscn    10010 200000   0 184000    0  392000   0.0156 -
    Kiguli/AdderBoard cosminscn_66p.py 042febec
hand     93 jacobli99    10010  52000   0  64000    0  104000 0.000122 -
    Kiguli/AdderBoard SeuperHakkerJa_93p.py 042febec
trained   6 zcbtrak      10010 116000   0 184000    0  204000   0.0235 -
    zcbtrak/6P-coordinate-descent submission_gpu_trained.py 44e2fa1d
trained  39 lokimorty    10001 104000  40 292000 2116  152000   -0.373 4852919719+6296009553
    Kiguli/AdderBoard Lokimorty_39p.py 042febec
trained  49 warlockee    10009 152000  35 236000   25  704000   -0.449 9430888744+9589815734
    warlockee/AdderBoard submission_49p.py 306ce9b4
trained  58 warlockee    10010 536000   0 496000    0 1120000    0.264 -
    warlockee/AdderBoard submission_58p_warlockee.py 36587415
trained  62 warlockee    10004 524000 224 488000 3243 1176000    -2.85 9143384501+737874597
    warlockee/AdderBoard submission_62p_warlockee.py 15628b45
trained  67 evindor      10010 864000   0 788000    0 1384000    0.137 -
    evindor/MicroAdder submission_67p.py d28ff3a7
trained 140 dimopep      10010 500000   0 572000    0 1436000     1.51 -
    Kiguli/AdderBoard dimopep_140p.py 042febec
trained 162 fblissjr     10010 112000   0  72000    0  472000     1.92 -
    fblissjr/AdderBoard submission_trained.py a8c31c1c
trained 262 lichengliu03 10005 588000 180 528000 4849 1112000   -0.859 519397816+2384862507
    lichengliu03/digit-addition-262p submission_262p.py d820a687
"""


def _entries(lines: list[str]) -> Iterator[Entry]:
    for measured, source in zip(lines[::2], lines[1::2], strict=True):
        how, parameters, author, board, *counts, near, lead, fails = measured.split()
        drawn, drawn_wrong, hard, hard_wrong = map(int, counts)
        yield Entry(
            trained=how == "trained",
            parameters=int(parameters),
            author=author,
            board=int(board),
            random=(drawn, drawn_wrong),
            hard=(hard, hard_wrong),
            near=int(near),
            lead=float(lead),
            fails=None if fails == "-" else fails,
            source=source.strip(),
        )


ENTRIES = tuple(_entries(_MEASURED.strip().splitlines()))


def with_power(number: str) -> str:
    """A number as Python writes it, with a minus sign and a power of ten.

    >>> with_power("-4e+10")
    '−4 · 10¹⁰'
    """
    digits, _, exponent = number.partition("e")
    power = f" · 10{str(int(exponent)).translate(RAISED)}" if exponent else ""
    return digits.replace("-", "−") + power


def share(wrong: int, tried: int) -> str:
    """Wrong sums in percent, two digits of it."""
    return f"{100 * wrong / tried:.2g}" if wrong else "0"


def table(entries: tuple[Entry, ...]) -> Table:
    """Entries, but for their sources; those that fail come first."""
    wrong = "board, %", "random, %", "hard, %"
    return bookkit.table(
        ("entry", "size", "made", *wrong, "tried, M", "least lead", "fails on"),
        (
            (
                one.author,
                one.parameters,
                "trained" if one.trained else "by\u00a0hand",
                share(BOARD - one.board, BOARD),
                share(one.random[1], one.random[0]),
                share(one.hard[1], one.hard[0]),
                (one.random[0] + one.hard[0] + one.near) / 1e6,
                with_power(f"{one.lead:.2g}"),
                (one.fails or "none\u00a0found").replace("+", " + "),
            )
            for one in sorted(entries, key=lambda one: one.fails is None)
        ),
        ".2f",
        caption="Board, random, hard: share of the sums there that are wrong.",
    )
