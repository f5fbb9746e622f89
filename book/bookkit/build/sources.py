"""A page for each source, in its own order, for a reader who holds the paper in hand.

book/sources/NUMBER.yaml lists what the source shows, section by section, and where this book has its counterpart::

    picture: embedding-spectrum            # the figure and the words that the front page has of it
    says: Networks hold numbers on circles.  # what it is about, before what holds of it
    in_brief: Its circles are there.
    ours: Networks of its size, trained here.
    headline: [M-08, M-26]                 # the claims of its abstract or its conclusions
    errors:                                # what is wrong in it, in whose words, how it was found, and what shows it
      - {where: "§2", says: "up to P", how: reading, text: One number is off., claims: [M-03], figures: []}
    findings: [Clocks]                     # of book/findings.yaml, by their titles
    beyond: ["One more, {M-12.key_count_max} of them."]    # written like those
    sections:
      - title: 5 Inspecting periodicity
        claims: [M-11]                     # said in the text alone
        items:                             # figures, tables, numbered equations, listings
          - {label: Figure 5, shows: Norms by frequency., figures: [embedding-spectrum], claims: [M-12]}
          - {label: Listing 1, shows: A transform., chapters: [11_fourier_circles]}
          - {label: Figure 6, shows: A graph of GELU., reason: A copy of another page's graph.}

Verdicts, numbers and drawings come from the records when the page is made.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from bookkit.build.pages import (
    LEVELS,
    SOURCES,
    STYLE,
    _chapter,
    _counts,
    _data,
    _list,
    _text,
    claim_filter,
    findings,
    in_full,
    measured_in,
    read_findings,
    scaled_badge,
    source_numbers,
)  # fmt: skip
from bookkit.build.reader_notes import OBJECTED, PLUS_MINUS
from bookkit.build.runs import Runs
from bookkit.claims import (
    INTERACTIVE,
    NOT_ATTEMPTED,
    NOT_REPRODUCED,
    NOT_SEEN,
    PARTLY,
    REFUTED,
    REPRODUCED,
    VERDICTS,
    Claim,
    ClaimError,
    Measurement,
    load_claims,
    read_records,
    scoreboard,
    tally,
)
from bookkit.judge import Verdict, anchor

PAGE_STYLE = """<style>
.beside { display: grid; grid-template-columns: minmax(0, 2fr) minmax(0, 3fr); gap: 0.5rem 1.5rem; margin: 0 0 1rem; }
.beside .theirs p { margin: 0 0 0.5rem; overflow-wrap: anywhere; }
.beside.alone { grid-template-columns: minmax(0, 1fr); }
.bd-content .beside .ours img { box-sizing: border-box; width: 100%; height: auto; padding: 0.35rem !important;
  background: #fff !important; border: 1px solid #888; border-radius: 0.4rem !important; filter: none !important; }
.beside .ours p { margin: 0.2rem 0 0.8rem; font-size: 0.9em; }
.short li { margin-bottom: 0.35rem; overflow-wrap: anywhere; }
.again { margin: 0 0 1rem; }
.bd-sidebar-secondary .nav-link { overflow-wrap: anywhere; }
@media (max-width: 768px) { .beside { grid-template-columns: minmax(0, 1fr); } }
</style>"""


# --- the list ---


@dataclass(frozen=True)
class Item:
    """A figure, table, equation or listing of a source, and its counterpart here or the reason why it has none."""

    label: str
    shows: str
    figures: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    chapters: tuple[str, ...] = ()
    reason: str | None = None


@dataclass(frozen=True)
class Section:
    title: str
    claims: tuple[str, ...] = ()
    items: tuple[Item, ...] = ()


# How something wrong was found.
HOW = {
    "arithmetic": "Its own numbers say something else",
    "code": "Its code, or that of a paper it describes, does something else",
    "mathematics": "Mathematics says something else",
    "measurement": "Measured here, it comes out otherwise",
    "reading": "Its text does not agree with itself or with another text",
}


@dataclass(frozen=True)
class Slip:
    """Something wrong in a source: where, what (written like a finding), and the claims and figures that show it.

    how: one of HOW. says: the source's own words, a line of them; None for what is drawn or printed in a table.
    """

    where: str
    text: str
    how: str
    says: str | None = None
    claims: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    picture: str
    says: str
    in_brief: str
    ours: str
    headline: tuple[str, ...]
    sections: tuple[Section, ...]
    errors: tuple[Slip, ...] = ()
    findings: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()

    @property
    def items(self) -> list[Item]:
        return [item for section in self.sections for item in section.items]

    def shown_claims(self) -> set[str]:
        """The claims that its sections show; those that only the head of the page names are not among them."""
        return {id for part in (*self.sections, *self.items) for id in part.claims}

    def problems(
        self, number: str, claims: Mapping[str, Claim], figures: Mapping[str, object], chapters: Mapping[str, object]
    ) -> list[str]:
        """What is missing, stands twice or leads nowhere.

        claims: the ledger by id. figures, chapters: those that there are, by key and by name.
        """
        found = [] if number in SOURCES else ["SOURCES in book/bookkit/build/pages.py has no heading for it"]
        found += [f"{label} stands twice" for label, n in Counter(item.label for item in self.items).items() if n > 1]
        for item in self.items:
            if not (item.figures or item.claims or item.chapters or item.reason):
                found.append(f"{item.label} has neither a counterpart nor a reason")
        parts = (*self.sections, *self.items, *self.errors)
        named = {
            "claim": (claims, [*self.headline, *(id for part in parts for id in part.claims)]),
            "figure": (
                figures,
                [self.picture, *(key for part in (*self.items, *self.errors) for key in part.figures)],
            ),
            "chapter": (chapters, [name for item in self.items for name in item.chapters]),
        }
        for kind, (known, names) in named.items():
            found += [f"there is no {kind} {name}" for name in dict.fromkeys(names) if name not in known]
        found += [
            f"{slip.where}: how = {slip.how!r} is none of {', '.join(HOW)}"
            for slip in self.errors
            if slip.how not in HOW
        ]
        own = [claim.id for claim in claims.values() if claim.source == number and claim.section]
        found += [f"claim {id} is in no section" for id in own if id not in self.shown_claims()]
        return [f"book/sources/{number}.yaml: {problem}" for problem in found]


def read_source(path: Path) -> Source:
    """The list of a source. Raises ClaimError for one that is not of this form."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        sections = [
            Section(**section | {"items": tuple(Item(**item) for item in section.get("items", ()))})
            for section in content.pop("sections")
        ]
        errors = [Slip(**error) for error in content.pop("errors", ())]
        return Source(sections=tuple(sections), errors=tuple(errors), **content)
    except (yaml.YAMLError, TypeError, AttributeError, KeyError) as error:
        raise ClaimError(f"book/sources/{path.name} cannot be read: {error}") from error


def read_sources(root: Path) -> dict[str, Source]:
    """The list of every source, by its number."""
    return {number: read_source(root / "book" / "sources" / f"{number}.yaml") for number in source_numbers(root)}


# --- the page ---


@dataclass(frozen=True)
class Found:
    """What the notebooks recorded, by which a page is filled in.

    rows: of `scoreboard`, records: of `read_records`, by claim. figures: notebook and alternative text, by key.
    runs: what was trained, there and here.
    """

    claims: Mapping[str, Claim]
    rows: Mapping[str, dict]
    records: Mapping[str, dict]
    figures: Mapping[str, tuple[str, str]]
    runs: Runs = Runs()

    @classmethod
    def under(cls, root: Path, build: Path) -> "Found":
        claims, records = load_claims(root / "book" / "claims"), build / "records"
        figures = {
            path.stem: (path.parent.parent.name, json.loads(path.read_text(encoding="utf-8"))["alt"])
            for path in sorted(records.glob("*/figures/*.json"))
            if path.parent.parent.name != INTERACTIVE
        }
        rows = {row["id"]: row for row in scoreboard(records, claims)}
        return cls(claims, rows, read_records(records), figures, Runs.under(root))


def source_pages(root: Path, build: Path) -> dict[str, bytes]:
    """The page of each source, and that of all their errors, by their places in the staging folder.

    Raises ClaimError with every problem of all lists.
    """
    if not source_numbers(root):
        return {}
    found = Found.under(root, build)
    sources = read_sources(root)
    chapters = {path.stem: path for path in (root / "notebooks").glob("*.ipynb")}
    problems = [
        problem
        for number, source in sources.items()
        for problem in source.problems(number, found.claims, found.figures, chapters)
    ]
    texts = {finding["title"]: in_full(finding) for finding in read_findings(root)}
    corrections = yaml.safe_load((root / "book" / "corrections.yaml").read_text(encoding="utf-8"))
    unknown = {id for entry in corrections for id in entry["claims"]} - {*found.claims}
    problems += [f"book/corrections.yaml: there is no claim {id}" for id in sorted(unknown)]
    if problems:
        raise ClaimError("\n".join(problems))
    made = {f"book/source-{number}": source_page(number, source, found, texts) for number, source in sources.items()}
    made["book/errors"] = errors_page(sources, corrections, found)
    return {f"{name}.md": text.encode() for name, text in made.items()}


def source_page(number: str, source: Source, found: Found, texts: Mapping[str, str]) -> str:
    """MyST markdown of the page of one source. texts: the findings of the front page by their titles."""
    key, heading = SOURCES[number]
    own = [row for row in found.rows.values() if row["source"] == number]
    parts = [
        f"(paper-{number})=\n# {heading}",
        "What holds in this source, what does not, and each of its figures beside ours. It is source "
        f"{number}, {{cite:t}}`{key}`. First come its main claims and their verdicts, then the whole "
        f"[section by section](#section-by-section). All {len(own)} claims, with their rules, are on the "
        f"{{ref}}`scoreboard <source-{number}>`. {PLUS_MINUS} {OBJECTED}",
        f"**What it says.** {source.says}",
        f"**What *ours* is.** {source.ours}",
        STYLE,
        PAGE_STYLE,
        _counts(tally(own)["all"]),
        *_head(number, source, found),
        *_new(source, found, texts),
        "## Section by section",
        "For each figure, table, equation or listing stands here in words what it shows, and what this book has made "
        f"in its place; the claims stand below. {LEVELS}",
        claim_filter(),
    ]
    shown: set[str] = set()
    for section in source.sections:
        parts.append(f"## {_plain(section.title)}")
        for item in section.items:
            parts += [f"### {_plain(item.label)}", *_beside(item, found), *_claims(item.claims, found, shown)]
        of_items = {id for item in section.items for id in item.claims}
        parts += _claims(tuple(id for id in section.claims if id not in of_items), found, shown)
    return "\n\n".join(parts) + "\n"


def _head(number: str, source: Source, found: Found) -> Iterator[str]:
    """What holds of its main claims, what does not (of all its claims, if refuted), and what is wrong in it."""
    refuted = [id for id, row in found.rows.items() if row["source"] == number and row["verdict"] == REFUTED]
    verdicts = {id: found.rows[id]["verdict"] for id in dict.fromkeys([*source.headline, *refuted])}
    printed = {id for id in verdicts if found.claims[id].basis == "arithmetic"}
    held = {id for id in verdicts if verdicts[id] in (REPRODUCED, PARTLY)}
    failed = {id for id in verdicts if verdicts[id] in (NOT_REPRODUCED, REFUTED)}
    lists = {
        "Main claims that hold, in full or in part": held - printed,
        "What holds in its own numbers, text or code": held & printed,
        "What does not hold": failed - printed,
        "What does not hold in its own numbers, text or code": failed & printed,
        "What was not seen at reduced scale": {id for id in verdicts if verdicts[id] == NOT_SEEN},
        "What was not tested": {id for id in verdicts if verdicts[id] == NOT_ATTEMPTED},
    }
    for title, listed in lists.items():
        if ids := sorted((id for id in verdicts if id in listed), key=lambda id: VERDICTS.index(verdicts[id])):
            entries = "".join(_entry(found.claims[id], found.rows[id]) for id in ids)
            yield f"## {title}\n\n" + f'<ul class="short">{entries}</ul>'
    if source.errors:
        texts = [f"{_said(slip)} {evidence(slip.figures, slip.claims, found)}" for slip in source.errors]
        yield "## What is wrong in it\n\n" + findings(texts, found.records, found.claims)
        yield (
            "Beside those of the other sources, and with how each was found: {doc}`errors`. At its end stands "
            "[where we were wrong](errors.md#where-we-were-wrong)."
        )


def _entry(claim: Claim, row: dict) -> str:
    """A claim's badge and what the source says; of a question, also the answer, and of what fails, also why."""
    said = _text(" ".join(filter(None, (claim.statement, claim.answer(row["verdict"])))))
    if claim.remark and row["verdict"] in (NOT_REPRODUCED, REFUTED):
        said += f"<br><small>{_text(claim.remark)}</small>"
    return f'<li>{scaled_badge(row)} <a href="#{anchor(claim.id)}">{claim.id}</a> {said}</li>'


def evidence(figures: tuple[str, ...], claims: tuple[str, ...], found: Found) -> str:
    """Links to the figures and verdicts that show something, in MyST; to the source's page for what was only read."""
    links = [f"{{numref}}`{key}`" for key in figures]
    for id in claims:
        row = found.rows[id]
        if row["notebook"] is None:
            links.append(f'by reading alone, at <a href="source-{row["source"]}.html#{anchor(id)}">{id}</a>')
        else:
            page = f"../notebooks/{row['notebook']}.html"
            links.append(f'<a href="{page}#{anchor(id)}">{id} in {_chapter(row["notebook"])}</a>')
    return f"<small>Shown: {', '.join(links)}.</small>"


# --- on the front page ---


def tally_markdown(root: Path, build: Path) -> str:
    """How many claims were measured, and how many of them have each verdict, in a sentence.

    Of those that hold in part it says how many a smaller setting, or another model or task, allows no more of.
    """
    rows = [row for row in Found.under(root, build).rows.values() if row["verdict"] != NOT_ATTEMPTED]
    counts = tally(rows)["all"]
    smaller = sum(row["verdict"] == PARTLY and row["scale"].is_smaller for row in rows)
    more = {PARTLY: f" ({smaller} of them smaller or in a stand-in)"} if smaller else {}
    there = ", ".join(f"{count} {verdict}{more.get(verdict, '')}" for verdict, count in counts.items() if count)
    return f"The verdicts on [{sum(counts.values())} claims](scoreboard.md): {there}."


def cards_markdown(root: Path, build: Path) -> str:
    """A card for each source: a picture, a sentence, its bar of verdicts, and the way to its page."""
    found = Found.under(root, build)
    counts = tally(list(found.rows.values()))
    cards = [STYLE, ":::::{grid} 1 1 2 2\n:gutter: 3\n:class-container: sources"]
    for number, source in read_sources(root).items():
        key, heading = SOURCES[number]
        claims = f"{{ref}}`{sum(counts[number].values())} claims <source-{number}>`"
        cards += [
            f"::::{{grid-item-card}} {number} · {{ref}}`{heading} <paper-{number}>`",
            _drawing(source.picture, found),
            f"{source.in_brief} {{cite:t}}`{key}`, {claims}:",
            _counts(counts[number]),
            "::::",
        ]
    return "\n\n".join([*cards, ":::::"])


# --- the page of errors ---


def errors_page(sources: Mapping[str, Source], corrections: list[dict], found: Found) -> str:
    """MyST markdown: everything wrong that was found in the sources, in their words, and then in this book itself.

    corrections: of book/corrections.yaml, each a text like a finding and the claims whose chapters show it.
    """
    counts = Counter(slip.how for source in sources.values() for slip in source.errors)
    ways = "\n".join(f"| {said} | {counts[how]} |" for how, said in HOW.items() if counts[how])
    parts = [
        "# Errors in the sources",
        f"In the sources we found {counts.total()} things that are wrong, or that do not agree. Most are slips of "
        "the pen, and none is a reason not to read a source: only what is written down so exactly can be checked so "
        "closely. Each stands here with the words in question, what is wrong with them, and the figure or verdict "
        "that shows it; a few were found by reading alone. Where we were wrong ourselves stands at the end.",
        f"| what is the matter | entries |\n| --- | ---: |\n{ways}",
    ]
    for number, source in sources.items():
        if source.errors:
            parts += [
                f"## {SOURCES[number][1]}",
                f"{{ref}}`Its own page <paper-{number}>`; {{cite:t}}`{SOURCES[number][0]}`.",
            ]
            texts = (_slip(slip, found) for slip in source.errors)
            parts.append(findings([*texts], found.records, found.claims))
    texts = (f"{entry['text']} {evidence((), entry['claims'], found)}" for entry in corrections)
    parts += ["## Where we were wrong", findings([*texts], found.records, found.claims)]
    return "\n\n".join(parts) + "\n"


def _slip(slip: Slip, found: Found) -> str:
    return f"{_said(slip)} *{HOW[slip.how]}.* {evidence(slip.figures, slip.claims, found)}"


def _said(slip: Slip) -> str:
    """Where it stands, the source's words, and what is wrong with them: no answer without what it answers."""
    words = f" It says: <q>{_text(slip.says)}</q>." if slip.says else ""
    return f"**{slip.where}.**{words} {slip.text}"


# --- parts of a source's page ---


def _new(source: Source, found: Found, texts: Mapping[str, str]) -> Iterator[str]:
    """What nobody had seen before: findings of the front page, and more that concern this source alone."""
    if unknown := [title for title in source.findings if title not in texts]:
        raise ClaimError(f"book/findings.yaml has no finding {', '.join(map(repr, unknown))}")
    chosen = [texts[title] for title in source.findings]
    if chosen or source.beyond:
        yield "## What is new here\n\n" + findings([*chosen, *source.beyond], found.records, found.claims)


def _beside(item: Item, found: Found) -> Iterator[str]:
    """What the source shows in words, and beside it our drawings, each a link to its place in its chapter."""
    theirs = f"<p>{_text(item.shows)}</p>"
    if item.chapters:
        links = (f'<a href="../notebooks/{name}.html">{_chapter(name)}</a>' for name in item.chapters)
        theirs += f"<p>Here in {', '.join(links)}.</p>"
    if item.reason:
        theirs += f"<p><em>{_text(item.reason)}</em></p>"
    yield f'<div class="beside{"" if item.figures else " alone"}"><div class="theirs">{theirs}</div>'
    if item.figures:
        yield '<div class="ours">'
        for key in item.figures:
            yield _drawing(key, found)
            yield f"{{numref}}`{key}` in [](../notebooks/{found.figures[key][0]}.ipynb)"
        yield "</div>"
    yield "</div>"


def _drawing(key: str, found: Found) -> str:
    """A figure of a chapter, small; it leads to its place there."""
    notebook, alt = found.figures[key]
    options = {"alt": " ".join(alt.split()), "target": f"../notebooks/{notebook}.html#{key}"}
    written = yaml.safe_dump(options, allow_unicode=True, width=float("inf"))
    return f"```{{image}} /figures/{key}.svg\n---\n{written}---\n```"


def _claims(ids: tuple[str, ...], found: Found, shown: set[str]) -> Iterator[str]:
    """A card for each claim that no earlier part has shown, and links to the others."""
    again = [id for id in ids if id in shown]
    if again:
        links = (f'{scaled_badge(found.rows[id])} <a href="#{anchor(id)}">{id}</a>' for id in again)
        yield f'<p class="again">Above: {" · ".join(links)}</p>'
    for id in ids:
        if id not in shown:
            shown.add(id)
            yield _card(found.rows[id], found.claims[id], found.records.get(id), found.runs)


def _card(row: dict, claim: Claim, record: dict | None, runs: Runs) -> str:
    """One claim: what is said and published, what we found, and where; without a record, what was published."""
    answer = claim.answer(row["verdict"])
    entries = {"answer": _text(answer)} if answer else {}
    entries |= {"published": _text(claim.published or "no number")}
    if record:
        measurement = Measurement.of(record["measured"], record["unit"])
        ours = Verdict(claim, measurement, row["verdict"], row["scale"], record.get("note")).ours()
        entries["ours"] = _text(ours)
        if line := runs.line(claim, record["size"]):
            entries["trained"] = _text(line)
        entries["measured in"] = measured_in(row)
    if claim.remark:
        entries["remark"] = _text(claim.remark)
    how = f' <a href="scoreboard.html#{anchor(claim.id)}">how it is decided</a>' if record else ""
    head = f"<p>{scaled_badge(row)} <strong>{claim.id}</strong> {_text(claim.statement)}{how}</p>"
    return f'<div class="claim" id="{anchor(claim.id)}"{_data(row)}>{head}{_list(entries)}</div>'


def _plain(text: str) -> str:
    """A heading in which every sign stands for itself."""
    return re.sub(r"([\\`*_{}\[\]<>&$|#~])", r"\\\1", " ".join(text.split()))
