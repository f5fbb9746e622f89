"""Two other ways to lay out a long multiplication (chapter 78): without carries, and with partial products.

    carries in the rows     21*43=80400=8001400=$        12 x 34: 048, then 048 + 12 x 30 = 0408
    no carries              21*43=840=8040=$             the same rows, without the carries
    partial products        21*43=80400=60300=80014000=$
                                                         12 x 4 = 048, 12 x 3 = 036, then 048 + 360 = 0408

Rows of partial products are those of a times one digit of b, and below each but the first stands a row with the
total so far; every digit of a total is followed by a carry. What a token sees is again at most one key in each slot,
so the contexts of pages of any length are finitely many, and are listed as in `arithlib.certify.multiplication`.

Dimensions: B texts, T tokens, N tokens of all pages, R slots, C contexts.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import torch
from torch import Tensor

from arithlib.certify.ball_arithmetic import margin
from arithlib.certify.multiplication import DIGITS, carries
from arithlib.certify.written import logits
from arithlib.contexts import context_logits
from arithlib.experiments.written import WrittenExperiment
from arithlib.models.column import PAGE_SLOTS, ColumnConfig, ColumnTransformer
from arithlib.settings import of_kind
from arithlib.tokenizer import ABSENT, END, EQUALS, TIMES, CharacterTokenizer
from chapters.ch78_long_multiplication import LongMultiplication

FIRST, SECOND, ABOVE, BEFORE, OWN_DIGIT, OWN_SIGN = range(len(PAGE_SLOTS))
FURTHER = len(PAGE_SLOTS)  # the slot that these layouts have beyond those of `PAGE_SLOTS`


@of_kind("page-of-another-layout")
@dataclass(frozen=True)
class LayoutConfig(ColumnConfig):
    """Sizes of a model with one slot more than a page has."""

    positions: str = "page"

    @property
    def n_slots(self) -> int:
        """R."""
        return FURTHER + 1


@dataclass(frozen=True)
class OtherLayout(LongMultiplication):
    """A layout says what a token sees, as places in the text so far, and what can be seen on a page of any length."""

    @abstractmethod
    def seen_from(self, rows: list[list[int]], step: int, factors: tuple[list[int], list[int]]) -> dict[int, int]:
        """By slot, the places that a token sees `step` tokens after the sign that opens the last of these rows.

        rows: the places of the digits of each row, without its carries. factors: those of the digits of a and b.
        """

    @abstractmethod
    def listed(self) -> Iterator[tuple[dict[int, int], int]]:
        """Whatever pages of any length can show, as the token in each slot that holds one; and the token to write."""

    def places(self, tokens: list[int]) -> list[dict[int, int]]:
        """Of each token of a page, up to the sign before the end token: by slot, the place of the key it sees."""
        times, equals = tokens.index(TIMES), tokens.index(EQUALS)
        factors = list(range(times)), list(range(times + 1, equals))
        rows, step, found = [], 0, []
        for place in range(equals, len(tokens)):
            if tokens[place] == END:
                break
            step += 1
            if tokens[place] == EQUALS:
                rows.append([])
                step = 0
            elif self.is_digit(step):
                rows[-1].append(place)
            own = OWN_DIGIT if step and self.is_digit(step) else OWN_SIGN
            found.append({own: place, **self.seen_from(rows, step, factors)})
        return found

    @abstractmethod
    def is_digit(self, step: int) -> bool:
        """Whether the token so many after the sign that opens a row is a digit of the number, not a carry."""

    def contexts(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """As in `WrittenOperation`, R being `PAGE_SLOTS` and one more."""
        keys, following = [], []
        for text in tokens.tolist():
            first = text.index(EQUALS)
            for own, seen in enumerate(self.places(text), first):
                keys.append([text[seen[slot]] if slot in seen else ABSENT for slot in range(FURTHER + 1)])
                following.append(text[own + 1])
        return torch.tensor(keys), torch.tensor(following)

    def every_context(self) -> tuple[Tensor, Tensor]:
        return _every_context(self)

    def continued(self, model: ColumnTransformer, a: int, b: int, limit: int) -> str:
        """The question and what greedy decoding writes after it: up to an end token, or `limit` tokens."""
        tokens = CharacterTokenizer().encode(self.ask(a, b), end=False)
        for _ in range(limit):
            keys, _ = self.contexts(torch.tensor([[*tokens, END]]))
            with torch.no_grad():
                tokens.append(int(context_logits(model, keys[-1:]).argmax()))
            if tokens[-1] == END:
                break
        return CharacterTokenizer().decode(tokens)


@cache
def _every_context(layout):
    keys, following = [], []
    for seen, token in layout.listed():
        keys.append([seen.get(slot, ABSENT) for slot in range(FURTHER + 1)])
        following.append(token)
    return torch.tensor(keys), torch.tensor(following)


def _there(places: list[int], index: int, slot: int) -> dict[int, int]:
    return {slot: places[index]} if 0 <= index < len(places) else {}


@of_kind("long-multiplication-no-carries")
@dataclass(frozen=True)
class WithoutCarries(OtherLayout):
    """Rows of running totals without their carries.

    A carry follows from the column that was written last: it is the one that makes the digit that stands there. So a
    token sees that column, too: `BEFORE` is its digit of the row above, `FURTHER` its digit of the first factor.
    Some contexts are listed that cannot occur: of top places with larger digits than a total has there.
    """

    def write(self, a: int, b: int) -> str:
        """The whole text, end token included.

        >>> WithoutCarries().write(12, 34)
        '21*43=840=8040=$'
        """
        n, rows = len(str(a)), range(1, len(str(b)) + 1)
        return self.ask(a, b) + "".join(f"{a * (b % 10**i):0{n + i}d}"[::-1] + "=" for i in rows) + "$"

    def read(self, text: str) -> int:
        """What a text says the product is, all characters of the last row. Raises ValueError where it has none."""
        *_, last, rest = text.split("=")
        if rest != "$" or not last.isdigit():
            raise ValueError(f"{text[-20:]!r} does not end in a row and the end token")
        return int(last[::-1])

    def is_digit(self, step: int) -> bool:
        return True

    def seen_from(self, rows, step, factors):
        row, above = len(rows) - 1, rows[-2] if len(rows) > 1 else []
        return {
            **_there(factors[0], step - row, FIRST),
            **_there(factors[1], row, SECOND),
            **_there(above, step, ABOVE),
            **_there(above, step - 1, BEFORE),
            **_there(factors[0], step - 1 - row, FURTHER),
        }

    def listed(self):
        for r in DIGITS:
            yield {ABOVE: r, OWN_SIGN: EQUALS}, END
        for b in DIGITS:
            for d in DIGITS:
                yield {FIRST: d, SECOND: b, OWN_SIGN: EQUALS}, d * b % 10
                yield {ABOVE: d, SECOND: b, OWN_SIGN: EQUALS}, d
                yield {SECOND: b, OWN_DIGIT: d}, EQUALS
            # Below the lowest digit of a the row above is copied, and nothing is carried into that digit's place.
            for r, before in product(DIGITS, DIGITS):
                yield {SECOND: b, ABOVE: r, BEFORE: before, OWN_DIGIT: before}, r
                for d in DIGITS:
                    seen = {FIRST: d, SECOND: b, ABOVE: r, BEFORE: before, OWN_DIGIT: before}
                    yield seen, (d * b + r) % 10
            for has_above in (False, True):
                above = DIGITS if has_above else [None]
                for carry, d, before in product(sorted(carries(b, has_above)), DIGITS, above):
                    out, own = divmod(d * b + (before or 0) + carry, 10)
                    seen = {SECOND: b, FURTHER: d, OWN_DIGIT: own} | ({BEFORE: before} if has_above else {})
                    yield seen, out
                    for a, r in product(DIGITS, above):
                        yield seen | {FIRST: a} | ({ABOVE: r} if has_above else {}), (a * b + (r or 0) + out) % 10


@of_kind("long-multiplication-partial-products")
@dataclass(frozen=True)
class PartialProducts(OtherLayout):
    """Rows of partial products, each but the first with the total so far in the row below it.

    A row of partial products sees the factors and its own carries; one of totals, the row above it (`FURTHER`), the
    total before (`ABOVE`) and its own carries. A total ends where neither has a digit.
    """

    def write(self, a: int, b: int) -> str:
        """The whole text, end token included.

        >>> PartialProducts().write(12, 34)
        '21*43=80400=60300=80014000=$'
        """
        rows, total, n = [], 0, len(str(a))
        for i, digit in enumerate(reversed(str(b))):
            part = a * int(digit)
            row = _with_carries(part, n + 1, lambda m, d=int(digit): a % 10**m * d)
            rows.append(row[:-1])  # its top digit is a carry itself
            if i:
                shifted, before = part * 10**i, total
                total += shifted
                rows.append(_with_carries(total, n + i + 1, lambda m, x=shifted, y=before: x % 10**m + y % 10**m))
            else:
                total = part
        return self.ask(a, b) + "".join(f"{row}=" for row in rows) + "$"

    def is_digit(self, step: int) -> bool:
        return step % 2 == 1

    def seen_from(self, rows, step, factors):
        row, place = len(rows) - 1, step // 2
        before = {BEFORE: rows[-1][-1] - 1} if step % 2 else {}
        which = (row + 1) // 2  # of the digit of b
        if row % 2 or row == 0:
            return {**before, **_there(factors[0], place, FIRST), **_there(factors[1], which, SECOND)}
        return {**before, **_there(rows[-2], place - which, FURTHER), **_there(rows[-3], place, ABOVE)}

    def listed(self):
        for a, b in product(DIGITS, DIGITS):
            for carry in (EQUALS, *sorted(carries(b, above=False))):
                out, own = divmod(a * b + (0 if carry == EQUALS else carry), 10)
                yield {FIRST: a, SECOND: b, OWN_SIGN: carry}, own
                yield {FIRST: a, SECOND: b, BEFORE: carry, OWN_DIGIT: own}, out
        for b in DIGITS:
            for carry in sorted(carries(b, above=False)):
                yield {SECOND: b, OWN_SIGN: carry}, carry
                yield {SECOND: b, BEFORE: carry, OWN_DIGIT: carry}, EQUALS
        yield {OWN_SIGN: 0}, EQUALS  # nothing is carried out of the top place of a total
        for a in DIGITS:
            yield {FIRST: a, OWN_SIGN: EQUALS}, END  # no digit of b is left
        # A total has the one before alone in its lowest places, with nothing to carry; then both; and at the top the
        # partial product alone, whose digit there is at most 8.
        lowest = product([None], DIGITS, (EQUALS, 0))
        top = product(range(9), [None], (0, 1))
        for p, r, carry in (*lowest, *product(DIGITS, DIGITS, (0, 1)), *top):
            out, own = divmod((p or 0) + (r or 0) + (carry == 1), 10)
            seen = ({} if p is None else {FURTHER: p}) | ({} if r is None else {ABOVE: r})
            yield seen | {OWN_SIGN: carry}, own
            yield seen | {BEFORE: carry, OWN_DIGIT: own}, out


def _with_carries(number, places, so_far):
    """Digits, lowest first, each followed by the carry out of its place: the tens of what the places up to it add."""
    digits = f"{number:0{places}d}"[::-1]
    return "".join(digit + str(so_far(m) // 10**m) for m, digit in enumerate(digits, 1))


class LayoutTransformer(ColumnTransformer):
    """Sees of a text what its layout says."""

    def __init__(self, config: LayoutConfig, layout: OtherLayout, seed: int = 0):
        super().__init__(config, seed)
        self.layout = layout

    def slots(self, tokens: Tensor) -> Tensor:
        """(B, T) tokens -> (B, T, S) slot of every query and key, ABSENT where the key is not seen.

        A token of the question sees itself alone.
        """
        slots = torch.full((*tokens.shape, tokens.shape[1]), ABSENT)
        for row, text in zip(slots, tokens.tolist(), strict=True):
            row.fill_diagonal_(OWN_SIGN)
            for own, seen in enumerate(self.layout.places(text), text.index(EQUALS)):
                for slot, place in seen.items():
                    row[own, place] = slot
        return slots


@of_kind("long-product-of-another-layout")
@dataclass(frozen=True, kw_only=True)
class LayoutExperiment(WrittenExperiment):
    """A transformer that sees its neighbours on a page of another layout, on fresh products of short factors."""

    task: OtherLayout = WithoutCarries()
    model: LayoutConfig = LayoutConfig(d_model=64, d_mlp=256)
    batch_size: int = 48
    evaluation_count: int = 200

    network = LayoutTransformer

    def build(self):
        return self.network(self.model, self.task, self.seed)

    def finish(self, model, run):
        """Of a model that is right in all contexts also, (1,) each:

        assured_lead: the least of the right token in any float32 program, logits. mean_logit: of all tokens.
        """
        found = super().finish(model, run)
        if found["smallest_lead"] > 0:
            keys, right = (part.numpy() for part in self.task.every_context())
            enclosed = logits(model, keys)
            found["assured_lead"] = np.array([margin(enclosed, right)[1].min()])
            found["mean_logit"] = np.array([enclosed.mid.mean()])
        return found

    def multiply(self, model, a, b):
        rows, longest = 2 * len(str(b)), 2 * (len(str(a)) + len(str(b)) + 1)  # of either layout, at most
        limit = rows * longest + 1
        return self.task.read(self.task.continued(model, a, b, limit))
