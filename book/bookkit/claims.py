"""The claims of the sources, and the rules that turn a measurement into a verdict.

`book/claims/` holds every claim, a file a source. A rule is arithmetic and comparison over named numbers, parsed and
walked here (never handed to `eval`); it decides the verdict of a measurement. Nobody types a verdict::

    rule:
      because: One run, read from a plot, is good to a factor of 2.
      reproduced: "0.5 * value <= median <= 2 * value"
      partly: "median <= 4 * value"
      otherwise: not reproduced

Names a rule may use: `value` (the published number, or the names of a published mapping); of a measured
number or list `values`, `n`, `mean`, `sd`, `median`, `min`, `max`; of a measured mapping its own names, and
for a list in it called `x` also `x_n`, `x_mean`, `x_sd`, `x_median`, `x_min`, `x_max`. An `sd` needs two values.
Functions: abs, min, max, all, any, len.

What a measurement says about the claim depends on its setting. A claim with a rule has either the numbers that the
source gives of its own, which are compared with ours, or a word for what no number can say::

    setting:                               # quantities of the source's run
      weights: 122000000
    basis: analogue                        # another model or task stands for the source's
    basis: arithmetic                      # the claim's own numbers, texts or code are checked
    basis: proof                           # a construction, or every case that there is
    basis: no setting given                # the claim names none, such as an open question

What a smaller setting or an analogue does not show is not thereby refuted: "not seen at reduced scale".

How a reader sees the numbers stands there too::

    labels:                                # of a single measured number or list: one text
      key_count: "{} key frequencies"      # {} is the number; without it the number follows the text
      carries_seen: null                   # read by the rule, not shown
    per: seed                              # what a list has an entry for; by name where that differs
"""

import ast
import difflib
import math
import operator
import re
import statistics
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from bookkit.files import FileProblem, read_json

REPRODUCED, PARTLY, NOT_REPRODUCED, NOT_SEEN, REFUTED, NOT_RUN, NOT_ATTEMPTED = VERDICTS = (
    "reproduced",
    "partly",
    "not reproduced",
    "not seen at reduced scale",
    "refuted",
    "not run yet",  # in a terminal alone: a page is made when its chapters have run
    "not attempted",
)
# How the setting of a measurement relates to that of its claim: computed from numbers, or said.
SAME, REDUCED = "same setting", "reduced"
ANALOGUE, ARITHMETIC, PROOF, OPEN = BASES = ("analogue", "arithmetic", "proof", "no setting given")
SCALES = (SAME, REDUCED, *BASES)
AS_LARGE = 0.5  # from this part of every published quantity on, a setting counts as the same
BECAUSE = "because"  # the key of a rule under which it says why its thresholds are what they are
STATISTICS = ("n", "mean", "sd", "median", "min", "max")
# What the record of a claim holds, at least.
RECORD = {
    "id": str, "measured": dict | list | int | float, "unit": str | None, "verdict": str, "scale": str | None,
    "size": dict | None, "figure": str | None,
}  # fmt: skip
INTERACTIVE = "interactive"  # the folder of records made by hand, outside any notebook run of the book

Number = int | float
Value = Number | list[Number]


class ClaimError(ValueError):
    """A claim, rule, measurement or record that cannot be used; the message says which and what to do."""


# --- the ledger ---


@dataclass(frozen=True)
class Claim:
    """One checkable statement of a source, as it stands in the ledger."""

    id: str
    source: str  # "000" to "004", or the bibliography key of another paper
    statement: str
    test: str
    tier: str
    labels: str | Mapping[str, str | None] | None = None  # how a reader sees what is measured
    per: str | Mapping[str, str] | None = None  # a noun in the singular: what a list has an entry for
    section: str | None = None
    published: str | None = None  # text shown to the reader; None if the source gives none
    value: Number | Mapping[str, Number] | None = None  # what `published` means to a rule
    chapter: str | None = None  # the notebook that tests it
    remark: str | None = None
    setting: Mapping[str, Number] | None = None  # quantities of the source's run, such as its weights
    basis: str | None = None  # of BASES, where there are no such quantities
    compare: Mapping[str, str] | None = None  # published numbers, and what a rule calls ours of the same thing
    rule: Mapping[str, str] | None = None
    answers: Mapping[str, str] | None = None  # where the statement is a question: what a verdict says to it

    def __post_init__(self):
        for name in ("id", "source", "statement", "test", "tier"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name).strip():
                raise ClaimError(f"claim {self.id}: {name} must be text, found {getattr(self, name)!r}")
        for name in ("section", "published", "chapter", "remark"):
            if not isinstance(getattr(self, name), str | None):
                raise ClaimError(f"claim {self.id}: {name} must be text (quote it), found {getattr(self, name)!r}")
        for name, number in self.published_names().items():
            if not is_number(number) or not name.isidentifier():
                raise ClaimError(
                    f"claim {self.id}: value must be a number or names of numbers, found {name}: {number!r}"
                )
        for key in ("labels", "per"):
            texts = getattr(self, key)
            texts = list(texts.values()) if isinstance(texts, Mapping) else [texts]
            if not all(isinstance(text, str | None) for text in texts):
                raise ClaimError(
                    f"claim {self.id}: {key} must be a text or names of texts (quote them), found {texts}"
                )
        if unknown := set(self.compare or {}) - set(self.published_names()):
            raise ClaimError(f"claim {self.id}: compare names {sorted(unknown)}, which value does not have")
        if unknown := set(self.answers or {}) - set(VERDICTS):
            raise ClaimError(f"claim {self.id}: an answer goes with a verdict, and {sorted(unknown)} is none")
        if self.rule is not None:
            self._check_rule()
            self._check_setting()

    def _check_setting(self) -> None:
        if (self.setting is None) == (self.basis is None):
            raise ClaimError(f"claim {self.id}: a claim with a rule has either a setting or a basis")
        if self.basis is not None and self.basis not in BASES:
            raise ClaimError(f"claim {self.id}: basis is one of {', '.join(BASES)}, not {self.basis!r}")
        if self.basis == ANALOGUE and self.rule["otherwise"] == REFUTED:
            raise ClaimError(f"claim {self.id}: an analogue refutes nothing; let the rule end in {NOT_REPRODUCED!r}")
        quantities = {} if self.setting is None else self.setting
        if self.setting is not None and not (
            isinstance(quantities, Mapping)
            and quantities
            and all(is_number(value) and value > 0 for value in quantities.values())
        ):
            raise ClaimError(f"claim {self.id}: setting must be names of positive numbers, found {self.setting!r}")

    def _check_rule(self) -> None:
        if unknown := set(self.rule) - {BECAUSE, REPRODUCED, PARTLY, "otherwise"}:
            raise ClaimError(
                f"claim {self.id}: a rule has because, reproduced, partly, otherwise, not {sorted(unknown)}"
            )
        if REPRODUCED not in self.rule or self.rule.get("otherwise") not in (NOT_REPRODUCED, REFUTED):
            raise ClaimError(
                f"claim {self.id}: a rule needs 'reproduced', and 'otherwise': {NOT_REPRODUCED} or {REFUTED}"
            )
        for expression in self.conditions().values():
            if "value" in names(expression, self.id) and "value" not in self.published_names():
                raise ClaimError(
                    f"claim {self.id}: rule {expression!r} uses value, but the claim has no single value"
                )

    def conditions(self) -> dict[str, str]:
        """The rule's expressions by the verdict they give, in the order in which they are tried."""
        return {verdict: str(self.rule[verdict]) for verdict in (REPRODUCED, PARTLY) if verdict in self.rule}

    def answer(self, verdict: str) -> str | None:
        """What this verdict says to the question that the statement is; None if it is none."""
        return (self.answers or {}).get(verdict)

    def label(self, name: str) -> str | None:
        """What a reader sees for a named measurement, with {} for its number; None for one that is not shown."""
        labels = self.labels if isinstance(self.labels, Mapping) else {}
        return _template(labels.get(name, name.replace("_", " ")))

    def noun(self, name: str | None = None) -> str:
        """What the measured list called `name`, or the only one, has an entry for; "value" where nothing is said."""
        per = self.per.get(name) if isinstance(self.per, Mapping) else self.per
        return per or "value"

    def published_names(self) -> dict[str, Number]:
        """The published numbers under the names a rule calls them by."""
        if self.value is None:
            return {}
        return dict(self.value) if isinstance(self.value, Mapping) else {"value": self.value}


def _template(label: str | None) -> str | None:
    return label if label is None or "{}" in label else f"{label}: {{}}"


def repo_root() -> Path:
    """The checkout of a book, which holds book/claims: around the working folder, or else around this package.

    Raises ClaimError if there is none.
    """
    for start in (Path.cwd(), Path(__file__).resolve().parent):
        for folder in (start, *start.parents):
            if (folder / "book" / "claims").is_dir():
                return folder
    raise ClaimError("book/claims not found: work inside a clone of the book, or install it from one (pip -e)")


def read_rows(folder: Path) -> list[tuple[str, object]]:
    """The rows of every YAML file of a folder, each with its file's name, in the order of these.

    Raises ClaimError for a broken file.
    """
    return list(_rows(_files(folder)))


def load_claims(folder: Path | None = None) -> dict[str, Claim]:
    """All claims by id, in the order of the files and their rows (default: the checkout's book/claims).

    Raises ClaimError for anything there that is not a well-formed, uniquely named claim.
    """
    return dict(_claims(_files(folder or repo_root() / "book" / "claims")))


# Parsed and checked once for the same contents: a chapter asks for its claims a hundred times. (Not by time stamps,
# which two writes in quick succession may share.)
Files = tuple[tuple[str, bytes], ...]


def _files(folder: Path) -> Files:
    return tuple((path.name, path.read_bytes()) for path in sorted(folder.glob("*.yaml")))


@cache
def _rows(files: Files) -> list[tuple[str, object]]:
    import yaml

    rows = []
    for name, content in files:
        try:
            # In C it takes a tenth of the time.
            found = yaml.load(content, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except yaml.YAMLError as error:
            raise ClaimError(f"{name} is not valid YAML: {error}") from error
        if not isinstance(found, list):
            raise ClaimError(f"{name} must be a list of claims, found {type(found).__name__}")
        rows += ((name, row) for row in found)
    return rows


@cache
def _claims(files: Files) -> dict[str, Claim]:
    known = {field.name for field in fields(Claim)}
    claims: dict[str, Claim] = {}
    stands_in: dict[str, str] = {}
    for file, entry in _rows(files):
        if not isinstance(entry, dict) or "id" not in entry:
            raise ClaimError(f"every claim is a mapping with an id, found {entry!r}")
        if unknown := set(entry) - known:
            raise ClaimError(f"claim {entry['id']}: unknown keys {sorted(unknown)}; known are {sorted(known)}")
        if missing := {"source", "statement", "test", "tier"} - set(entry):
            raise ClaimError(f"claim {entry['id']}: missing {sorted(missing)}")
        if entry["id"] in claims:
            raise ClaimError(f"claim {entry['id']} stands twice: in {stands_in[entry['id']]} and in {file}")
        claims[entry["id"]], stands_in[entry["id"]] = Claim(**entry), file
    return claims


def find_claim(claims: Mapping[str, Claim], id: str) -> Claim:
    """The claim called `id`. Raises ClaimError that names ids like it."""
    if id in claims:
        return claims[id]
    near = difflib.get_close_matches(id.upper(), claims, n=4, cutoff=0.5)
    raise ClaimError(f"no claim {id!r} in book/claims; near it: {', '.join(near) or 'none'}")


# --- measurements ---


def is_number(value) -> bool:
    """Finite int, float or bool, as JSON can hold it."""
    return isinstance(value, int | float) and math.isfinite(value)


def summary(values: list[Number]) -> dict[str, Number]:
    """n, mean, median, min, max of a list, and from two values on the sample standard deviation sd."""
    result = {
        "n": len(values),
        "mean": statistics.fmean(values),
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
    }
    return result | ({"sd": statistics.stdev(values)} if len(values) > 1 else {})


@dataclass(frozen=True)
class Measurement:
    """What a notebook measured for one claim: one number, one number a seed, or several named ones."""

    measured: Value | Mapping[str, Value]
    unit: str | None = None

    @classmethod
    def of(cls, measured, unit: str | None = None) -> "Measurement":
        """From Python, numpy or torch numbers, sequences of them, or a mapping of either.

        Raises ClaimError for an empty list, text, NaN or infinity.
        """
        if isinstance(measured, Mapping):
            return cls({str(name): _plain(value, str(name)) for name, value in measured.items()}, unit)
        return cls(_plain(measured, "measured"), unit)

    def statistics(self) -> dict[str, Number]:
        """`summary` of a number or list; nothing of a mapping, whose lists may count different things."""
        return {} if isinstance(self.measured, Mapping) else summary(_as_list(self.measured))

    def names(self) -> dict[str, Value]:
        """Everything a rule can call by name, beside what was published."""
        if not isinstance(self.measured, Mapping):
            return {"values": _as_list(self.measured)} | self.statistics()
        result = dict(self.measured)
        for name, value in self.measured.items():
            if isinstance(value, list):
                result |= {f"{name}_{key}": number for key, number in summary(value).items()}
        return result

    def beside(self, claim: Claim) -> list[tuple[str, Number, Number]]:
        """(name, published number, ours) for all that the claim says can be compared. Raises ClaimError."""
        published, measured = claim.published_names(), self.names()
        if missing := set((claim.compare or {}).values()) - set(measured):
            raise ClaimError(f"claim {claim.id}: compare names {sorted(missing)}, which was not measured")
        return [(name, published[name], measured[ours]) for name, ours in (claim.compare or {}).items()]

    def shown(self, claim: Claim) -> dict[str, Value]:
        """The named measurements that a reader sees, in the order in which they were measured."""
        return {name: value for name, value in self.measured.items() if claim.label(name) is not None}

    def n(self, claim: Claim) -> int | dict[str, int]:
        """How many values were measured: one number if that is the same for all that is shown, else by name."""
        if not isinstance(self.measured, Mapping):
            return len(_as_list(self.measured))
        counts = {name: len(_as_list(value)) for name, value in self.shown(claim).items()}
        return counts if len(set(counts.values())) > 1 else max(counts.values(), default=1)

    def text(self, claim: Claim) -> str:
        """For the reader: "4,120 ± 310 epochs", "accuracy: 1 (n = 1 seed); loss: 0.02 ± 0.01 (n = 5 seeds)"."""
        if not isinstance(self.measured, Mapping):
            label = _template(claim.labels) if isinstance(claim.labels, str) else f"{{}} {self.unit or ''}".rstrip()
            return label.replace("{}", _text(self.measured, claim.noun()))
        common, parts = self._common(claim), []
        for name, value in self.shown(claim).items():
            part = claim.label(name).replace("{}", _text(value, claim.noun(name)))
            own_count = isinstance(value, list) and not common
            parts.append(f"{part} ({_counted(value, claim.noun(name))})" if own_count else part)
        return "; ".join(parts)

    def spread(self, claim: Claim) -> str:
        """For the reader, beside `text`: "n = 5 seeds, 3,800 to 4,500".

        Empty for a number that was measured once, and where `text` says for each list what it counts.
        """
        if isinstance(self.measured, Mapping):
            return self._common(claim)
        if not isinstance(self.measured, list):
            return ""
        numbers, count = self.statistics(), _counted(self.measured, claim.noun())
        if "sd" not in numbers or isinstance(numbers["min"], bool):
            return count
        return f"{count}, {show(numbers['min'])} to {show(numbers['max'])}"

    def _common(self, claim: Claim) -> str:
        """The count that holds for every named measurement, as "n = 5 seeds"; empty if there is no such one."""
        counts = {
            _counted(value, claim.noun(name)) if isinstance(value, list) else ""
            for name, value in self.shown(claim).items()
        }
        return counts.pop() if len(counts) == 1 else ""


def _counted(values: list, noun: str) -> str:
    """What a list counts: "n = 5 seeds", "n = 1 key frequency", "n = 9 circles in a head"."""
    if len(values) != 1:
        first, *rest = re.split(r"(?= of | in )", noun, maxsplit=1)
        noun = (f"{first[:-1]}ies" if first.endswith("y") else f"{first}s") + "".join(rest)
    return f"n = {len(values)} {noun}"


def _as_list(value: Value) -> list[Number]:
    return value if isinstance(value, list) else [value]


def _plain(value, name: str) -> Value:
    """`value` as a plain number or list of numbers. Raises ClaimError."""
    if hasattr(value, "tolist"):  # numpy and torch
        value = value.tolist()
    if isinstance(value, list | tuple):
        value = [item.item() if hasattr(item, "item") else item for item in value]
        if not value:
            raise ClaimError(f"{name} is an empty list: nothing was measured")
    for number in _as_list(value):
        if not is_number(number):
            raise ClaimError(
                f"{name} must be finite numbers, found {number!r}; count failures instead of averaging them"
            )
    return value


def show(number: Number) -> str:
    """A number with three significant digits, or all digits of an integer: 4,120; 0.0213; 1.5e-07."""
    if isinstance(number, bool):
        return "yes" if number else "no"
    if isinstance(number, int) or (abs(number) >= 1000 and abs(number) < 1e7):
        return f"{number:,.0f}".replace("-", "−")
    return f"{number:.3g}".replace("-", "−")


def _text(value: Value, noun: str) -> str:
    if not isinstance(value, list):
        return show(value)
    if all(isinstance(item, bool) for item in value):
        return f"yes in {sum(value)} of {len(value)}"
    if len(value) <= 3 and noun not in ("seed", "value"):  # the mean of two variants says less than the two
        return ", ".join(map(show, value))
    numbers = summary(value)
    return show(numbers["mean"]) + (f" ± {show(numbers['sd'])}" if "sd" in numbers else "")


# --- scale ---


@dataclass(frozen=True)
class Scale:
    """How the setting of a measurement relates to that of its claim.

    kind: one of SCALES. factors: by quantity, ours over the source's, where the source gives it.
    """

    kind: str
    factors: Mapping[str, float]

    @classmethod
    def of(cls, claim: Claim, size: Mapping[str, Number] | None) -> "Scale":
        """From our quantities, under the names that the claim's setting has.

        Raises ClaimError if one of these is missing, or if there is no setting to compare `size` with.
        """
        if claim.setting is None:
            if size is not None:
                raise ClaimError(f"claim {claim.id} has no setting in book/claims to compare {dict(size)} with")
            return cls(claim.basis, {})
        if missing := claim.setting.keys() - (size or {}).keys():
            raise ClaimError(f"claim {claim.id}: size must say our {', '.join(sorted(missing))}; found {size}")
        factors = {name: size[name] / theirs for name, theirs in claim.setting.items()}
        return cls(SAME if min(factors.values()) >= AS_LARGE else REDUCED, factors)

    def __str__(self) -> str:
        if self.kind != REDUCED:
            return self.kind
        return f"{self.kind}: {', '.join(_part(name, factor) for name, factor in self.factors.items())}"

    @property
    def is_smaller(self) -> bool:
        """Whether what is not seen here might be seen in the source's setting."""
        return self.kind in (REDUCED, ANALOGUE)


def _part(name: str, factor: float) -> str:
    """A quantity beside the source's: "1/280 of the weights", "3 times the examples"."""
    if factor > 0.95:
        return f"as many {name}" if factor < 1.05 else f"{factor:.2g} times the {name}"
    return f"1/{show(float(f'{1 / factor:.2g}'))} of the {name}"


# --- rules ---

FUNCTIONS = {"abs": abs, "min": min, "max": max, "all": all, "any": any, "len": len}

OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    # As floats: a tower of powers then overflows at once instead of counting for hours.
    ast.Pow: math.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


@cache
def parse(expression: str, id: str) -> ast.expr:
    """The syntax tree of a rule's expression. Raises ClaimError for anything outside the small language."""
    try:
        tree = ast.parse(expression, mode="eval").body
    except SyntaxError as error:
        raise ClaimError(f"claim {id}: rule {expression!r} is not an expression: {error.msg}") from error
    for node in ast.walk(tree):
        if not _allowed(node):
            raise ClaimError(
                f"claim {id}: rule {expression!r} may not hold {ast.unparse(node) or type(node).__name__}; "
                f"only numbers, names, + - * / **, comparisons, and, or, not, lists, {', '.join(FUNCTIONS)}"
            )
    return tree


def _allowed(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=value):
            return is_number(value)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return name in FUNCTIONS and bool(args)
        case ast.BoolOp() | ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.Name() | ast.List() | ast.Tuple():
            return True
        case ast.And() | ast.Or() | ast.Load():
            return True
    return type(node) in OPERATORS


def names(expression: str, id: str) -> set[str]:
    """The numbers an expression reads: `min` in `min(values)` is a function, in `min > 0` a number."""
    tree = parse(expression, id)
    functions = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node not in functions}


def evaluate(expression: str, values: Mapping[str, Value], id: str) -> bool:
    """Truth of a rule's expression over named `values`.

    Raises ClaimError naming claim and expression for a missing name, a division by zero or a wrong type.
    """

    def walk(node: ast.expr):
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return values[name]
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [walk(item) for item in items]
            case ast.Call(func=ast.Name(id=name), args=args):
                return FUNCTIONS[name](*map(walk, args))
            case ast.BoolOp(op=ast.And(), values=parts):
                return all(walk(part) for part in parts)
            case ast.BoolOp(values=parts):
                return any(walk(part) for part in parts)
            case ast.UnaryOp(op=op, operand=operand):
                return OPERATORS[type(op)](walk(operand))
            case ast.BinOp(left=left, op=op, right=right):
                return OPERATORS[type(op)](walk(left), walk(right))
            case ast.Compare(left=left, ops=ops, comparators=rights):
                operands = [walk(operand) for operand in (left, *rights)]
                pairs = zip(ops, operands, operands[1:], strict=False)
                return all(OPERATORS[type(op)](first, second) for op, first, second in pairs)

    try:
        result = walk(parse(expression, id))
    except KeyError as error:
        raise ClaimError(
            f"claim {id}: rule {expression!r} reads {error.args[0]!r}, which was not measured; "
            f"there are {', '.join(sorted(values))}"
        ) from error
    except (ArithmeticError, TypeError, ValueError) as error:
        raise ClaimError(f"claim {id}: rule {expression!r} cannot be evaluated: {error}") from error
    if not isinstance(result, bool):
        raise ClaimError(
            f"claim {id}: rule {expression!r} gives {result!r}, not true or false: compare it with something"
        )
    return result


def verdict(claim: Claim, measurement: Measurement, scale: Scale) -> str:
    """The verdict of the claim's rule on a measurement, its conditions tried from top to bottom.

    Where none holds and the setting is smaller than the source's, or another one, the claim is not seen rather than
    not reproduced or refuted. Raises ClaimError if the claim has no rule, or its rule cannot be evaluated on what was
    measured.
    """
    if claim.rule is None:
        raise ClaimError(f"claim {claim.id} has no rule: write one in book/claims before measuring it")
    published, measured = claim.published_names(), measurement.names()
    if both := published.keys() & measured.keys():
        raise ClaimError(f"claim {claim.id}: {sorted(both)} are published and measured names at once; rename one")
    for result, expression in claim.conditions().items():
        if evaluate(expression, published | measured, claim.id):
            return result
    return NOT_SEEN if scale.is_smaller else claim.rule["otherwise"]


# --- records and scoreboard ---


def read_records(records_root: Path) -> dict[str, dict]:
    """The claim records of all notebooks by claim id; those made by hand are not part of the book.

    Raises ClaimError for an unreadable record, or a claim that two notebooks measured.
    """
    records: dict[str, dict] = {}
    for path in sorted(records_root.glob("*/claims/*.json")):
        notebook = path.parent.parent.name
        if notebook == INTERACTIVE:
            continue
        try:
            record = read_json(path, RECORD)
        except FileProblem as problem:
            raise ClaimError(f"record {notebook}/claims/{path.name} is damaged: run {notebook} again") from problem
        if record["id"] in records:
            raise ClaimError(
                f"claim {record['id']} was measured by {records[record['id']]['notebook']} and by {notebook}"
            )
        records[record["id"]] = record | {"notebook": notebook}
    return records


def scoreboard(records_root: Path, claims: Mapping[str, Claim] | None = None) -> list[dict]:
    """One row for each claim of the ledger, in its order; without a record the verdict is "not attempted".

    Keys: id, source, statement, published, measured, n, spread, verdict, scale (a `Scale`), beside (as of
    `Measurement.beside`), notebook, figure.
    Raises ClaimError for a record whose claim is gone, or whose verdict its rule no longer gives.
    """
    claims = load_claims() if claims is None else claims
    records = read_records(records_root)
    for id in records:
        find_claim(claims, id)
    return [_row(claim, records.get(claim.id)) for claim in claims.values()]


def _row(claim: Claim, record: dict | None) -> dict:
    row = {"id": claim.id, "source": claim.source, "statement": claim.statement, "published": claim.published}
    if record is None:
        empty = dict.fromkeys(("measured", "n", "spread", "verdict", "scale", "beside", "notebook", "figure"))
        return row | empty | {"verdict": NOT_ATTEMPTED}
    measurement, scale = Measurement.of(record["measured"], record["unit"]), Scale.of(claim, record["size"])
    now = verdict(claim, measurement, scale)
    if now != record["verdict"]:
        raise ClaimError(
            f"claim {claim.id}: {record['notebook']} recorded {record['verdict']!r}, "
            f"its rule now says {now!r}; run the notebook again (make book)"
        )
    return row | {
        "measured": measurement.text(claim),
        "n": measurement.n(claim),
        "spread": measurement.spread(claim),
        "verdict": now,
        "scale": scale,
        "beside": measurement.beside(claim),
        "notebook": record["notebook"],
        "figure": record["figure"],
    }


def tally(rows: list[dict]) -> dict[str, dict[str, int]]:
    """How many claims of each source, and last of "all", have each verdict: {source: {verdict: count}}."""
    counts: dict[str, dict[str, int]] = {}
    for row in rows:
        for source in (row["source"], "all"):
            counts.setdefault(source, dict.fromkeys(VERDICTS, 0))[row["verdict"]] += 1
    counts["all"] = counts.pop("all", dict.fromkeys(VERDICTS, 0))  # last
    return counts


def score_table(rows: list[dict]) -> str:
    """The scoreboard for a terminal: the counts of each source, then each measured claim in a few short lines."""
    tallied = tally(rows)
    there = [verdict for verdict in VERDICTS if tallied["all"][verdict]]
    lines = [("source", *there)]
    lines += [(source, *(str(counts[verdict]) for verdict in there)) for source, counts in tallied.items()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    counts = "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
    return "\n\n".join([counts, *(_score_lines(row) for row in rows if row["notebook"])])


def _score_lines(row: dict) -> str:
    ours = f"{row['measured']} ({row['spread']})" if row["spread"] else row["measured"]
    head = f"{row['id']}  {row['verdict']}  ({row['notebook']})"
    pairs = (("scale", str(row["scale"])), ("published", row["published"] or "no number"), ("ours", ours))
    return "\n".join(
        [head, *(textwrap.fill(f"      {key:9}  {text}", 110, subsequent_indent=" " * 17) for key, text in pairs)]
    )
