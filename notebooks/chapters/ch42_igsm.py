"""Symbolic grade-school problems: parameters defined by one another, one of them asked (source 003, section 2.1).

    E#I := 4. E#J := E#I. H#J := E#J + F#K. F#K := E#J. H#J?            (answer modulo 7: 1)

Entities A, B, ... stand on the levels of a hierarchy. An edge between neighbouring levels, `E#I`, is an instance
parameter: the number of I in E. Which parameter depends on which is a second graph, without cycles. The *depth* of a
parameter is 0 for a constant, else one more than that of the deepest parameter in its definition.

For the details the source names Ye et al. 2024; what is left open is decided here. Definitions come in random order.

Dimensions: B problems, N parameters of a problem, A terms of a definition, E parameters there are names for, Q asked.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property

import torch
from torch import Tensor

from arithlib.settings import of_kind

SIGNS = ("+", "-", "*", "?", " ")  # the blank fills up shorter texts, on the left
HELD_OUT = 16  # one problem in so many is kept from training
NOWHERE = -1


@dataclass(frozen=True)
class Problems:
    """Problems as tensors, parameters in an order in which they can be computed.

    names: (B, N) which of the E. depth: (B, N). constants: (B, N), 0 unless the depth is.
    operands: (B, N, A) earlier parameters, or NOWHERE after the last. factors: (B, N, A) modulo p, 0 there.
    """

    names: Tensor
    depth: Tensor
    constants: Tensor
    operands: Tensor
    factors: Tensor

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, rows) -> "Problems":
        return Problems(*(getattr(self, field.name)[rows] for field in fields(self)))


@of_kind("igsm-task")
@dataclass(frozen=True)
class Graphs:
    """Random problems.

    parameters: N. depth: the deepest parameter of a problem lies between 1 and this. constants: at least so many.
    terms: at most so many in a definition. factor_share: share of definitions whose first term has a factor of 2 to
        p - 1.
    levels, width: of the hierarchy, so that E = (levels - 1) width^2. p: modulus, a prime.
    """

    parameters: int = 12
    depth: int = 11
    constants: int = 1
    terms: int = 3
    factor_share: float = 0.1
    levels: int = 4
    width: int = 4
    p: int = 7

    def __post_init__(self):
        if self.depth < 1 or self.constants < 1 or self.depth + self.constants > self.parameters:
            raise ValueError(
                f"depth = {self.depth}, constants = {self.constants}: at least 1 each, and together at most "
                f"parameters = {self.parameters}"
            )
        if self.levels * self.width > 26 or self.parameters > self.n_names:
            raise ValueError(
                f"{self.levels} levels of {self.width} entities have {self.n_names} parameters; "
                f"{self.parameters} are asked for, of at most 26 entities"
            )
        if self.terms < 1 or self.p < 2 or any(self.p % d == 0 for d in range(2, self.p)):
            raise ValueError(f"terms = {self.terms}, p = {self.p}: at least 1 term, and a prime")

    # ---- words ----

    @property
    def n_names(self) -> int:
        """E."""
        return (self.levels - 1) * self.width**2

    @cached_property
    def words(self) -> list[str]:
        """The vocabulary: p residues, the signs, E names where they are used, and E where they are defined."""
        letter = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        upper = range((self.levels - 1) * self.width)
        below = [[(u // self.width + 1) * self.width + v for v in range(self.width)] for u in upper]
        names = [f"{letter[u]}#{letter[v]}" for u in upper for v in below[u]]
        return [*map(str, range(self.p)), *SIGNS, *names, *(f". {name} :=" for name in names)]

    def sign(self, text: str) -> int:
        """Token of a sign."""
        return self.p + SIGNS.index(text)

    @property
    def first_name(self) -> int:
        """Token of the first name where it is used; the others follow, and then those where they are defined."""
        return self.p + len(SIGNS)

    # ---- problems ----

    def sample(
        self, count: int, generator: torch.Generator, held_out: bool = False, depth: int | None = None
    ) -> Problems:
        """`count` problems for training, or of those that training never sees in any order of writing.

        depth: only problems that have a parameter of that depth. None has a parameter that vanishes, so that every
        value is uniform.
        """
        kept, found = [], 0
        while found < count:
            drawn = self.draw((HELD_OUT if held_out else 2) * count, generator)
            wanted = (self.kept_from_training(drawn) == held_out) & ~self.vanish(drawn)
            kept.append(drawn[wanted if depth is None else wanted & (drawn.depth == depth).any(1)])
            found += len(kept[-1])
        return Problems(*(torch.cat([getattr(part, f.name) for part in kept])[:count] for f in fields(Problems)))

    def kept_from_training(self, problems: Problems) -> Tensor:
        """(B,) which belong to the evaluation: by a hash that no order of definitions or of terms changes."""
        there = problems.operands != NOWHERE
        named = problems.names.gather(1, problems.operands.clamp(min=0).flatten(1)).view_as(there)
        terms = named * self.p + problems.factors
        definitions = problems.names * self.p + problems.constants
        definitions = _mixed(definitions) + 3 * (_mixed(terms + 2**20) * there).sum(2)
        return (_mixed(_mixed(definitions).sum(1)) >> 33) % HELD_OUT == 0

    def values(self, problems: Problems) -> Tensor:
        """(B, N) the solution, modulo p."""
        found = torch.zeros_like(problems.constants)
        for i in range(found.shape[1]):
            terms = found.gather(1, problems.operands[:, i].clamp(min=0)) * problems.factors[:, i]
            found[:, i] = (problems.constants[:, i] + terms.sum(1)) % self.p
        return found

    def asked(self, problems: Problems, generator: torch.Generator, depth: int | None = None) -> Tensor:
        """(B,) one parameter of each, of the given depth; of None, every depth that a problem has is as likely."""
        rng = dict(generator=generator, device=generator.device)
        B, N = problems.depth.shape
        if depth is None:
            depth = (torch.rand(B, 1, **rng) * (problems.depth.amax(1, keepdim=True) + 1)).long()
        return (torch.rand(B, N, **rng) + (problems.depth == depth)).argmax(1)

    def vanish(self, problems: Problems) -> Tensor:
        """(B,) whether some parameter is 0 whatever the constants are, like H#J := E#I - E#J after E#J := E#I."""
        B, N = problems.depth.shape
        weights = torch.diag_embed((problems.depth == 0).long())  # (B, N, N) of each constant in each parameter
        for i in range(N):
            terms = weights.gather(1, problems.operands[:, i].clamp(min=0)[:, :, None].expand(-1, -1, N))
            weights[:, i] += (terms * problems.factors[:, i, :, None]).sum(1)
        return (weights % self.p == 0).all(2).any(1)

    def draw(self, count: int, generator: torch.Generator) -> Problems:
        """`count` problems as they come, for training or not."""
        rng = dict(generator=generator, device=generator.device)
        B, N, A, p = count, self.parameters, min(self.terms, self.parameters - 1), self.p
        names = torch.rand(B, self.n_names, **rng).argsort(1)[:, :N]
        deepest = torch.randint(1, self.depth + 1, (B, 1), **rng)
        ladder = (torch.arange(N, device=generator.device) - self.constants + 1).clamp(min=0).expand(B, N)
        free = (torch.rand(B, N, **rng) * (deepest + 1)).long()
        depth = torch.where(ladder <= deepest, ladder, free).sort(1).values

        # One term from the depth just below, so that the depth is right; the others from any below.
        below = depth[:, None] < depth[:, :, None]  # (B, N, N): j may stand in the definition of i
        just_below = depth[:, None] == depth[:, :, None] - 1
        chance = torch.rand(B, N, N, **rng)
        must = (chance + just_below).argmax(2, keepdim=True)
        chance = (chance + below).scatter(2, must, 3.0)
        operands = chance.topk(A, 2).indices
        wanted = torch.minimum(torch.randint(1, A + 1, (B, N), **rng), below.sum(2))[:, :, None]
        slot = torch.arange(A, device=generator.device)
        order = (torch.rand(B, N, A, **rng) + (slot >= wanted)).argsort(2)
        operands = torch.where(slot < wanted, operands.gather(2, order), NOWHERE)

        minus = torch.rand(B, N, A, **rng) < 0.5
        factors = torch.where(minus, p - 1, 1)
        large = torch.randint(2, p, (B, N), **rng) if p > 2 else torch.ones_like(names)
        factors[:, :, 0] = torch.where(torch.rand(B, N, **rng) < self.factor_share, large, 1)
        constants = torch.randint(p, (B, N), **rng) * (depth == 0)
        return Problems(names, depth, constants, operands, factors * (operands != NOWHERE))

    # ---- texts ----

    def write(
        self, problems: Problems, asked: Tensor, generator: torch.Generator, everywhere: bool = False
    ) -> tuple[Tensor, Tensor]:
        """(B, T) tokens: the definitions in random order, then `?`, then the names of those asked.

        asked: (B, Q) parameters. The question mark comes first, so that the answer is due right after the name.
        everywhere: a value is due after every name that is used, too, if it can be worked out from the text so far.
        Returns also (B, T) the values due after each token, or NOWHERE.
        """
        B, N, A = problems.operands.shape
        values, operands = self.values(problems), problems.operands.clamp(min=0)
        named = problems.names + self.first_name
        blank, plus, minus = (self.sign(text) for text in " +-")
        order = torch.rand(B, N, generator=generator, device=named.device).argsort(1)
        line, ready = order.argsort(1), order.argsort(1)  # where each is defined, and where it can be worked out
        for i in range(N):
            there = problems.operands[:, i] != NOWHERE
            ready[:, i] = torch.maximum(ready[:, i], (ready.gather(1, operands[:, i]) * there).amax(1))

        columns = [(named + self.n_names, NOWHERE)]
        for a in range(A):
            here, factor, term = problems.operands[:, :, a] != NOWHERE, problems.factors[:, :, a], operands[:, :, a]
            if a == 0 and self.factor_share:
                large = here & (factor > 1)
                columns += [(torch.where(large, sign, blank), NOWHERE) for sign in (factor, self.sign("*"))]
            elif a:
                columns.append((torch.where(here, torch.where(factor == 1, plus, minus), blank), NOWHERE))
            due = torch.where(here & (ready.gather(1, term) < line) & everywhere, values.gather(1, term), NOWHERE)
            columns.append((torch.where(here, named.gather(1, term), problems.constants if a == 0 else blank), due))
        columns = [[torch.as_tensor(part, device=named.device) for part in pair] for pair in columns]
        pairs = torch.stack([torch.stack(torch.broadcast_tensors(*pair)) for pair in columns], 3)
        pairs = pairs.gather(2, order[None, :, :, None].expand_as(pairs)).flatten(2)  # (2, B, N width)
        ends = (
            torch.full((B, 1), self.sign("?"), device=named.device),
            torch.full((B, 1), NOWHERE, device=named.device),
        )
        questions = named.gather(1, asked), values.gather(1, asked)
        tokens, due = (torch.cat(parts, 1) for parts in zip(pairs, ends, questions, strict=True))
        blanks_first = torch.sort((tokens != blank).long(), dim=1, stable=True).indices
        return tokens.gather(1, blanks_first), due.gather(1, blanks_first)

    def text(self, tokens: Tensor) -> str:
        """One row of tokens as the source prints it: `E#I := 4. E#J := E#I. E#J?`; further questions follow."""
        definitions, names = " ".join(self.words[t] for t in tokens.tolist()).split("?")
        return definitions.strip(" .").replace(" .", ".") + "." + "".join(f" {name}?" for name in names.split())


def _mixed(numbers: Tensor) -> Tensor:
    """A fixed scrambling of 64-bit integers (the multiplications overflow, as they should)."""
    for factor in (-7046029254386353131, -4417276706812531889):
        numbers = (numbers ^ (numbers >> 29)) * factor
    return numbers ^ (numbers >> 32)


# ---- reading -----------------------------------------------------------------------------------------------------

TERM = re.compile(r"([+-]?)(?:(\d+)\*?(?=[A-Z]#))?([A-Z]#[A-Z]|\d+)")


def read(text: str) -> tuple[dict[str, str], str]:
    """The definitions of a text as printed, by name, and the name that is asked.

    >>> read("E#I := 4. E#J := 2 * E#I - E#K. E#K := 1. E#J?")
    ({'E#I': '4', 'E#J': '2 * E#I - E#K', 'E#K': '1'}, 'E#J')
    """
    *definitions, question = text.strip().rstrip("?").split(".")
    pairs = [definition.split(":=") for definition in definitions]
    return {name.strip(): formula.strip() for name, formula in pairs}, question.strip()


def terms(formula: str) -> list[tuple[int, str]]:
    """(factor, name or number) of each term. Raises ValueError for what is no sum.

    >>> terms("2 * E#I - E#K"), terms("4")
    ([(2, 'E#I'), (-1, 'E#K')], [(1, '4')])
    """
    bare = formula.replace(" ", "")
    found = list(TERM.finditer(bare))
    if not found or "".join(match[0] for match in found) != bare:
        raise ValueError(f"{formula!r} is no sum of parameters and numbers")
    return [
        ((-1 if sign == "-" else 1) * int(factor or 1), term) for sign, factor, term in map(re.Match.groups, found)
    ]


def solve(definitions: dict[str, str], asked: str, p: int = 7) -> dict[str, int]:
    """The values modulo p of all that the answer needs, operands first, in the order of the steps of a solution.

    >>> solve(*read("E#I := 4. E#J := 2 * E#I - E#K. E#K := 1. E#L := 5. E#J?"))
    {'E#I': 4, 'E#K': 1, 'E#J': 0}
    """
    found: dict[str, int] = {}

    def value(name: str) -> int:
        if name.isdigit():
            return int(name)
        if name not in found:
            found[name] = sum(factor * value(term) for factor, term in terms(definitions[name])) % p
        return found[name]

    value(asked)
    return found


# ---- counting ----------------------------------------------------------------------------------------------------


def template(definitions: dict[str, str], asked: str) -> str:
    """What a solution leaves of a problem if numbers are erased and names replaced in the order in which they appear.

    As in Ye et al. 2024, footnote 11; the order of the steps is always that of `solve`.

    >>> template(*read("E#I := 4. E#J := 2 * E#I - E#K. E#K := 1. E#J?"))
    'a:=0;b:=0;c:=0*a-b'
    """
    steps = list(solve(definitions, asked))
    letter = {name: chr(ord("a") + place) for place, name in enumerate(steps)}
    written = []
    for name in steps:
        formula = re.sub(r"(?<![\w#])\d+(?![\w#])", "0", definitions[name].replace(" ", ""))
        written.append(f"{letter[name]}:=" + re.sub(r"[A-Z]#[A-Z]", lambda match: letter[match[0]], formula))
    return ";".join(written)


def count_templates(steps: int, forms: Sequence[int | Fraction]) -> list[int | Fraction]:
    """How many templates have 1, 2, ... `steps` steps.

    forms: in how many ways a definition of 0, 1, ... terms can be written (signs, factors), its operands apart.

    A solution in the order of `solve` is a walk: each term either names one of the steps that are finished, or is the
    next to be worked out. `new[f][g]` counts the ways to work out one parameter that lead from f finished steps to g.

    >>> count_templates(4, [1, 1, 1])  # constants, copies, and sums of two
    [1, 1, 4, 23]
    """
    new = [[0] * (steps + 1) for _ in range(steps + 1)]
    for gap in range(1, steps + 1):
        for f in range(steps + 1 - gap):
            ways = {f: 1}  # finished steps after the terms so far
            for place, written in enumerate(forms):
                new[f][f + gap] += written * ways.get(f + gap - 1, 0)
                # The operands of a definition differ, so that `place` of the finished steps are taken.
                ways = {
                    g: sum(
                        number * (max(h - place, 0) if h == g else new[h][g]) for h, number in ways.items() if h <= g
                    )
                    for g in range(f, f + gap)
                }
    return new[0][1:]
