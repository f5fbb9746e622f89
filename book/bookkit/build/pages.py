"""The generated pages: the scoreboard of claims, and the environment in which the notebooks ran.

Both are MyST markdown with plain HTML inside: no script, no request, lists instead of wide tables, so that a phone
can show them. Links into notebooks are relative to book/, where the pages stand.
"""

import html
import math
import os
import platform
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import yaml

from bookkit.build.comparison import distance, drawing, left_out
from bookkit.build.execute import duration
from bookkit.build.reader_notes import OBJECTED, PLUS_MINUS
from bookkit.claims import (
    AS_LARGE,
    BECAUSE,
    INTERACTIVE,
    NOT_ATTEMPTED,
    NOT_SEEN,
    REDUCED,
    Claim,
    ClaimError,
    Measurement,
    Number,
    Scale,
    find_claim,
    load_claims,
    read_records,
    scoreboard,
    show,
    tally,
)
from bookkit.files import FileProblem, read_json
from bookkit.judge import COLOURS, anchor, badge
from bookkit.prose import written

# A source of the ledger: its key in the bibliography, and a heading. Any other source is cited by its own key.
SOURCES = {
    "000": ("loeber2024", "Everything we know about LLMs doing arithmetic"),
    "001": ("kantamneni2025", "Language models use trigonometry to do addition"),
    "002": ("wiman2025", "Notes on teaching transformers arithmetic"),
    "003": ("saunshi2025", "Reasoning with latent thoughts: looped transformers"),
    "004": ("ryanrtjj2025", "LLM arithmetic"),
    "nanda2023": ("nanda2023", "Progress measures for grokking"),
}

# A reduced setting is much smaller where ours has this part, or less, of what the source's has of any quantity.
MUCH_SMALLER, SMALL_PART = "much smaller", 1 / 100

# In the page itself: a browser that opens the page as a file loads no module from beside it.
FILTER = Path(__file__).resolve().parents[2] / "_static" / "claim-filter.mjs"

# What the record of a run holds, at least.
RUN = {
    "notebook": str, "status": str, "started": str, "seconds": int | float, "peak_memory_mb": int | float | None,
    "threads": int, "device": str, "parameters": dict, "versions": dict,
}  # fmt: skip

LEVELS = (
    f"A badge says at what scale a verdict was reached: *reduced* where ours has less than 1/{1 / AS_LARGE:.0f} of "
    f"the source's weights or examples, *{MUCH_SMALLER}* at 1/{1 / SMALL_PART:.0f} or less. "
    "In place of that it says *analogue* where another model or task stands for the source's, *arithmetic* where the "
    "claim's own numbers, text or code are checked, *proof*, or *no setting given*."
)

STYLE = """<style>
.score-bar { display: flex; gap: 2px; height: 1rem; margin: 0.4rem 0; }
.score-bar span { min-width: 3px; }
.score-key { display: inline-block; width: 0.8em; height: 0.8em; margin-right: 0.3em; }
.score-counts { display: flex; flex-wrap: wrap; gap: 0.2rem 1.1rem; margin: 0 0 1rem; padding: 0; list-style: none; }
.claim { margin: 0 0 1rem; padding: 0.7rem 0.9rem; border: 1px solid var(--pst-color-border, #888);
  border-radius: 0.5rem; overflow-wrap: anywhere; }
.claim p { margin: 0 0 0.4rem; }
.claim dl { display: grid; grid-template-columns: minmax(5.5rem, max-content) 1fr; gap: 0.1rem 0.9rem; margin: 0; }
.claim dt { font-weight: 600; }
.claim dd { margin: 0; min-width: 0; }
.claim details { margin-top: 0.4rem; }
.claim details p { margin: 0.3rem 0; }
.claim[hidden] { display: none; }
.compared { margin: 0 0 1rem; max-width: 36rem; }
.compared svg { width: 100%; height: auto; }
.compared text { font-size: 13px; fill: var(--pst-color-text-base, currentColor); }
.compared a { text-decoration: none; }
.compared .mark { font-size: 15px; font-weight: 700; }
@media (max-width: 768px) { .compared text { font-size: 16px; } .compared .mark { font-size: 20px; } }
.compared .grid, .compared .same { stroke: var(--pst-color-text-muted, #888); stroke-opacity: 0.25; fill: none; }
.compared .same { stroke-opacity: 0.9; stroke-dasharray: 5 4; }
</style>"""


# --- scoreboard ---


def scoreboard_markdown(root: Path, build: Path) -> str:
    """The scoreboard page of the claims under `root` and what the notebooks recorded under `build`."""
    claims = load_claims(root / "book" / "claims")
    return scoreboard_page(
        scoreboard(build / "records", claims), claims, source_numbers(root), read_not_compared(root)
    )


def read_not_compared(root: Path) -> list[dict]:
    """What book/not_compared.yaml holds, of a book that has one: reasons, and the claims for which each holds."""
    path = root / "book" / "not_compared.yaml"
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else []


def scoreboard_page(
    rows: list[dict], claims: Mapping[str, Claim], numbers: Collection[str] = (), not_compared: Sequence[dict] = ()
) -> str:
    """MyST markdown of the scoreboard: counts in all, then for each source its counts, claims measured and open.

    rows: of `bookkit.claims.scoreboard`. claims: by id, for the test and the rule behind each verdict. numbers: the
    sources that have a page of their own. not_compared: of `read_not_compared`.
    """
    counts = tally(rows)
    everything = counts.pop("all")
    measured = len(rows) - everything[NOT_ATTEMPTED]
    parts = [
        "# Scoreboard",
        f"{len(rows)} claims from {len(counts)} sources, {measured} of them measured so far. A rule, written down in "
        "`book/claims` beside the claim, computed each verdict from what a notebook measured when this book was "
        "built: *how it is decided* shows it, and the links lead to the table or the figure where the numbers can be "
        f"seen. {LEVELS} {PLUS_MINUS} {OBJECTED} `python -m bookkit score` prints the same in a terminal.",
        STYLE,
        _counts(everything),
        drawing(rows),
        left_out(not_compared),
        claim_filter(),
    ]
    # Sources with a result come first, else in the order of the ledger.
    for source in sorted(counts, key=lambda source: counts[source][NOT_ATTEMPTED] == sum(counts[source].values())):
        own = [row for row in rows if row["source"] == source]
        open_ = [row for row in own if row["verdict"] == NOT_ATTEMPTED]
        key, heading = SOURCES.get(source, (source, source))
        number = f"Source {source}: " if source.isdigit() else ""
        parts += [f"(source-{source})=\n## {number}{heading}", f"{{cite:t}}`{key}`{_page_of(source, numbers)}"]
        parts.append(_counts(counts[source]))
        parts += [_card(row, claims[row["id"]]) for row in own if row["verdict"] != NOT_ATTEMPTED]
        if open_:
            parts.append(_open_claims(open_, claims))
    return "\n\n".join(parts) + "\n"


def source_numbers(root: Path) -> list[str]:
    """The sources that have a page of their own (`bookkit.build.sources`)."""
    return sorted(path.stem for path in (root / "book" / "sources").glob("*.yaml"))


def claim_filter() -> str:
    """What chooses among the claims of a page that have `_data`; where there are no scripts, nothing."""
    return f'<claim-filter></claim-filter>\n\n<script type="module">\n{FILTER.read_text(encoding="utf-8")}</script>'


def _page_of(source: str, numbers: Collection[str]) -> str:
    """A link to the source's own page, where there is one."""
    return f" · {{ref}}`in its own order <paper-{source}>`" if source in numbers else ""


def _counts(counts: Mapping[str, int]) -> str:
    """A bar, and the same in words: the words are the bar's legend."""
    there = {verdict: count for verdict, count in counts.items() if count}
    words = ", ".join(f"{count} {verdict}" for verdict, count in there.items())
    bar = "".join(
        f'<span style="flex:{count};background:{COLOURS[verdict]}"></span>' for verdict, count in there.items()
    )
    items = "".join(
        f'<li><span class="score-key" style="background:{COLOURS[verdict]}" aria-hidden="true"></span>'
        f"{count} {verdict}</li>"
        for verdict, count in there.items()
    )
    return (
        f'<div class="score-bar" role="img" aria-label="{words}">{bar}</div>\n<ul class="score-counts">{items}</ul>'
    )


def _card(row: dict, claim: Claim) -> str:
    """One measured claim: what is said, what was published, what we found, where, and what made the verdict."""
    answer = claim.answer(row["verdict"])
    entries = {"answer": _text(answer)} if answer else {}
    entries |= {
        "published": _text(row["published"] or "no number"),
        "ours": _text(row["measured"]) + (f" <small>({_text(row['spread'])})</small>" if row["spread"] else ""),
        "compared": _compared(row),
        "scale": _text(scale_words(row["scale"])),
        "measured in": measured_in(row),
    }
    entries = {name: value for name, value in entries.items() if value}
    if claim.remark:
        entries["remark"] = _text(claim.remark)
    head = f"<p>{scaled_badge(row)} <strong>{row['id']}</strong> {_text(row['statement'])}</p>"
    return f'<div class="claim" id="{anchor(row["id"])}"{_data(row)}>{head}{_list(entries)}{_decided(claim)}</div>'


def _compared(row: dict) -> str:
    """The pairs of numbers by which the claims are sorted; empty where nothing is compared."""
    pairs = row["beside"] or ()
    said = (
        (f"{name.replace('_', ' ')}: " if len(pairs) > 1 else "") + f"{show(theirs)} published, {show(ours)} here"
        for name, theirs, ours in pairs
    )
    return _text("; ".join(said))


def measured_in(row: dict) -> str:
    """Links to a measured claim's verdict in its chapter, and to its figure."""
    page = f"../notebooks/{row['notebook']}.html"
    where = f'<a href="{page}#{anchor(row["id"])}">{_chapter(row["notebook"])}</a>'
    return where + (f', <a href="{page}#{row["figure"]}">its figure</a>' if row["figure"] else "")


def level(scale: Scale) -> str:
    """The kind of a scale, in which a reduced one and one that is much smaller are two."""
    much = scale.kind == REDUCED and min(scale.factors.values()) <= SMALL_PART
    return MUCH_SMALLER if much else scale.kind


def scale_words(scale: Scale, least: bool = False) -> str:
    """A scale and how much smaller ours is: in every quantity, or in that with the least part alone."""
    factors = dict(sorted(scale.factors.items(), key=lambda item: item[1])[:1]) if least else scale.factors
    return level(scale) + str(Scale(scale.kind, factors)).removeprefix(scale.kind)


def scaled_badge(row: dict) -> str:
    """The badge of a verdict and at what scale it was reached, so that one does not read either for the other."""
    if row["scale"] is None:
        return badge(row["verdict"])
    words = scale_words(row["scale"], least=True)
    if row["verdict"] == NOT_SEEN:  # which says itself that it is reduced
        words = words.removeprefix(f"{REDUCED}: ")
    return f"{badge(row['verdict'])} <small>({_text(words)})</small>"


def _data(row: dict) -> str:
    """What `claim_filter` chooses by, as data attributes."""
    number = f"Source {row['source']}" if row["source"].isdigit() else row["source"]
    data = {"source": number, "verdict": row["verdict"], "scale": row["scale"] and level(row["scale"])}
    apart = distance(row["beside"])
    data |= {"chapter": row["notebook"], "distance": "Infinity" if apart == math.inf else apart}
    return "".join(f' data-{name}="{_text(value)}"' for name, value in data.items() if value is not None)


def _decided(claim: Claim) -> str:
    """Folded: the test of a claim, its rule in words and numbers, and why the rule is what it is."""
    published = claim.published_names()
    entries = {f"{verdict} if": _text(readable(rule, published)) for verdict, rule in claim.conditions().items()}
    entries["otherwise"] = claim.rule["otherwise"]
    if BECAUSE in claim.rule:
        entries["because"] = _text(claim.rule[BECAUSE])
    return f"<details><summary>how it is decided</summary><p>{_text(claim.test)}</p>{_list(entries)}</details>"


STATISTICS = {
    "mean": "mean",
    "sd": "spread",
    "median": "median",
    "min": "smallest",
    "max": "largest",
    "n": "number of",
}
SIGNS = {"**": "^", "<=": "≤", ">=": "≥", "==": "=", "!=": "≠", "*": "×", "-": "−"}


def readable(expression: str, published: Mapping[str, Number]) -> str:
    """A rule for people: published numbers in place of their names, statistics in words, signs as in print.

    >>> readable("loss_mean <= 2 * value and min(n, loss_n) >= 5", {"value": 4000})
    'mean loss ≤ 2 × 4,000 and min(number, number of loss) ≥ 5'
    """

    def word(match: re.Match) -> str:
        name = match[0]
        if name in published:
            return show(published[name])
        measured, _, statistic = name.rpartition("_")
        if statistic not in STATISTICS:
            return name
        return f"{STATISTICS[statistic]} {measured}" if measured else STATISTICS[statistic].removesuffix(" of")

    expression = re.sub(r"\b[A-Za-z_]\w*\b(?!\()", word, " ".join(expression.split()))
    return re.sub(r"\*\*|[<>=!]=|[*-]", lambda match: SIGNS[match[0]], expression)


def _open_claims(rows: list[dict], claims: Mapping[str, Claim]) -> str:
    items = "".join(
        f'<li id="{anchor(row["id"])}"{_data(row)}><strong>{row["id"]}</strong> {_text(row["statement"])}'
        + (f" <small>Published: {_text(row['published'])}.</small>" if row["published"] else "")
        + f" <small>{_text(claims[row['id']].test)}</small></li>"
        for row in rows
    )
    return f"<details><summary>{len(rows)} not attempted</summary><ul>{items}</ul></details>"


def _list(entries: Mapping[str, str]) -> str:
    """Names and values, the values being HTML."""
    return f"<dl>{''.join(f'<dt>{name}</dt><dd>{value}</dd>' for name, value in entries.items())}</dl>"


def _text(text: str) -> str:
    """Escaped, and on one line: a blank line would end the HTML block."""
    return html.escape(" ".join(str(text).split()))


def _chapter(name: str) -> str:
    """A notebook by the number that the side bar has before its title; appendices are those from 90 on."""
    return f"{'appendix' if name.startswith('9') else 'chapter'} {_text(name.partition('_')[0])}"


# --- findings ---

NUMBER = re.compile(r"\{([A-Z]+-\d+)\.(\w+)(?::([^{}]*))?\}")


def read_findings(root: Path) -> list[dict[str, str]]:
    """What book/findings.yaml holds: of each finding its title, a line and the full text."""
    return yaml.safe_load((root / "book" / "findings.yaml").read_text(encoding="utf-8"))


def in_full(finding: dict[str, str]) -> str:
    """Title and text."""
    return f"**{finding['title']}.** {finding['text']}"


def headlines_markdown(root: Path, build: Path) -> str:
    """The findings as a numbered list, a line each, their numbers taken from the records under `build`."""
    lines = [f"**{finding['title']}:** {finding['line']}." for finding in read_findings(root)]
    return findings(lines, read_records(build / "records"), load_claims(root / "book" / "claims"))


def findings_markdown(root: Path, build: Path) -> str:
    """The findings in full as a numbered list, their numbers taken from the records under `build`."""
    texts = list(map(in_full, read_findings(root)))
    return findings(texts, read_records(build / "records"), load_claims(root / "book" / "claims"))


def findings(texts: list[str], records: Mapping[str, dict], claims: Mapping[str, Claim]) -> str:
    """The texts as a numbered list, with {CLAIM.NAME:FORMAT} filled in by the names that a rule uses.

    published_NAME is what the source says. Raises ClaimError for a claim that was not measured, or another name.
    """

    def number(match: re.Match) -> str:
        id, name, form = match.groups()
        if id not in records:
            raise ClaimError(f"book/findings.yaml: claim {id} was not measured")
        published = {f"published_{key}": value for key, value in find_claim(claims, id).published_names().items()}
        values = published | Measurement.of(records[id]["measured"]).names()
        if name not in values:
            raise ClaimError(f"book/findings.yaml: claim {id} has no {name}, only {', '.join(values)}")
        return written(values[name], form or "")

    return "\n".join(f"1. {NUMBER.sub(number, ' '.join(text.split()))}" for text in texts)


# --- environment ---


def environment_markdown(root: Path, build: Path) -> str:
    """The environment page of the runs recorded under `build`, on this machine."""
    paths = sorted((build / "records").glob("*/run.json"))
    runs = [read_run(path.parent) for path in paths if path.parent.name != INTERACTIVE]
    return environment_page(runs, machine())


def read_run(records: Path) -> dict:
    """What a notebook's run.json says of its run. Raises FileProblem for a damaged one."""
    run = read_json(records / "run.json", RUN)
    if not all(isinstance(number, str) for number in run["versions"].values()):
        raise FileProblem(f"{records.name}/run.json is damaged (in versions): make it again")
    return run


def machine() -> dict[str, str]:
    """This machine as a reader may know it: processor, cores, memory, system; no names and no paths."""
    facts = {"processor": _processor(), "cores": str(os.cpu_count()), "system": _system()}
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        facts["memory"] = f"{memory / 2**30:.0f} GiB"
    return facts


def _processor() -> str:
    """The processor's model where Linux tells it, else its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{models[0]} ({platform.machine()})" if models else platform.machine()


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):  # not Linux, or one that does not say
        return f"{platform.system()} {platform.release()}"


def environment_page(runs: list[dict], machine: Mapping[str, str]) -> str:
    """MyST markdown of the environment page: machine, versions, and time, memory and status of each notebook.

    runs: contents of run.json files. machine: names and values, as `machine` gives them.
    """
    device = ", ".join(dict.fromkeys(run["device"] for run in runs)) or "none"
    versions: dict[str, dict[str, None]] = {}
    for run in runs:
        for name, number in run["versions"].items():
            versions.setdefault(name, {})[number] = None
    total = sum(run["seconds"] for run in runs)
    parts = [
        "# Environment",
        "Where this copy of the book was made, and how long that took. Models trained elsewhere say so beside their "
        "figures. What each chapter rests on, file by file with its sha256, is in "
        '<a href="../provenance.json">provenance.json</a>; `make verify` holds a copy of this site against it.',
        "## Machine",
        "\n".join(f"- **{name}:** {value}" for name, value in (machine | {"trained on": device}).items()),
        "## Versions",
        "\n".join(f"- **{name}:** {', '.join(numbers)}" for name, numbers in sorted(versions.items())),
        "## Notebooks",
        f"{len(runs)} notebooks, {duration(total)} in all. Peak memory is that of the notebook's process.",
        "\n\n".join(map(_run_card, runs)),
    ]
    return "\n\n".join([*parts[:1], STYLE, *parts[1:]]) + "\n"


def _run_card(run: dict) -> str:
    parameters = ", ".join(f"{name} = {value!r}" for name, value in run["parameters"].items())
    memory = run["peak_memory_mb"]
    entries = {
        "status": run["status"],
        "time": f"{duration(run['seconds'])} on {run['threads']} thread{'s' if run['threads'] > 1 else ''}",
        "peak memory": f"{show(round(memory))} MB" if memory else "not known here",
        "parameters": parameters or "none",
        "started": f"{run['started'][:16].replace('T', ' ')} UTC",
    }
    pairs = _list({name: _text(value) for name, value in entries.items()})
    name = run["notebook"]
    heading = f"(made-{name})=\n### [{name}](../notebooks/{name}.ipynb)"
    return f'{heading}\n\n<div class="claim">{pairs}</div>'
