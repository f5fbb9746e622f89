"""Long multiplication on a page: `21*43=80400=8001400=$` is 12 x 34 = 408, by way of 12 x 4 = 048 (chapter 78).

The row of digit i of the second factor is the total so far: its digits, lowest first, each but the last followed by
the carry out of its place. The rows of an n-digit and an m-digit factor have n + 1 to n + m digits, the top one
possibly zero. `arithlib.models.column` says what a token sees.

Dimensions: B texts, T tokens, N tokens of all pages, R slots, V vocabulary.
"""

import random
from dataclasses import dataclass

import torch
from torch import Tensor

from arithlib.certify.multiplication import reachable
from arithlib.contexts import remembered
from arithlib.models.column import ColumnTransformer, page_address
from arithlib.settings import of_kind
from arithlib.tasks.operands import of_length
from arithlib.tasks.written import WrittenOperation
from arithlib.tokenizer import ABSENT, END, EQUALS, TIMES, CharacterTokenizer


@of_kind("long-multiplication")
@dataclass(frozen=True)
class LongMultiplication(WrittenOperation):
    """Products of two factors of 1 to `max_digits` digits, all lengths equally likely, as text."""

    sign = "*"

    def write(self, a: int, b: int) -> str:
        """The whole text, end token included.

        >>> LongMultiplication().write(12, 34)
        '21*43=80400=8001400=$'
        """
        first, total, rows = [int(digit) for digit in reversed(str(a))], [], []
        for place, digit in enumerate(int(d) for d in reversed(str(b))):
            parts = [0] * place + [digit * d for d in first]
            total += [0] * (len(parts) - len(total))
            carry, row, written = 0, [], []
            for part, above in zip(parts, total, strict=True):
                carry, new = divmod(part + above + carry, 10)
                written += [new, carry]
                row.append(new)
            total = [*row, carry]
            rows.append("".join(map(str, [*written, carry])) + "=")
        return self.ask(a, b) + "".join(rows) + "$"

    def read(self, text: str) -> int:
        """What a text says the product is, the digits of its last row. Raises ValueError where it ends without one.

        >>> LongMultiplication().read("21*43=80400=8001400=$")
        408
        """
        *_, last, rest = text.split("=")
        if rest != "$" or not last.isdigit():
            raise ValueError(f"{text[-20:]!r} does not end in a row and the end token")
        return int(last[::2][::-1])

    def contexts(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """As in `WrittenOperation`, R being `PAGE_SLOTS`, in the order of `page_mask`; time is linear in T."""
        part, row, step = page_address(tokens)
        rows, steps = int(row.max()) + 1, max(int(step.max()), int(row.max())) + 3
        text, time = (tokens != END).nonzero().unbind(1)
        at = (text, time)
        factors = tokens.new_full((len(tokens), 2, steps), ABSENT)
        page = tokens.new_full((len(tokens), rows + 1, steps), ABSENT)  # with nothing above the first row
        written = part[at] == 2
        on, off = (text[written], time[written]), (text[~written], time[~written])
        page[on[0], row[on] + 1, step[on]] = tokens[on]
        factors[off[0], part[off], step[off]] = tokens[off]
        text, time = page_mask(tokens).nonzero().unbind(1)
        at = (text, time)
        row, step, own = row[at], step[at], tokens[at]
        place, is_digit = step // 2, step % 2 == 1
        nothing = torch.full_like(own, ABSENT)
        keys = [
            factors[text, 0, (place - row + 1).clamp(min=0)],
            factors[text, 1, row + 1],
            page[text, row, 2 * place + 1],
            torch.where(is_digit, page[text, row + 1, (step - 1).clamp(min=0)], nothing),
            torch.where(is_digit, own, nothing),
            torch.where(is_digit, nothing, own),
        ]
        return torch.stack(keys, 1), tokens[text, time + 1]

    def every_context(self) -> tuple[Tensor, Tensor]:
        contexts, right = reachable()
        return torch.from_numpy(contexts), torch.from_numpy(right)


@of_kind("long-multiplication-carried")
@dataclass(frozen=True)
class CarriedMultiplication(LongMultiplication):
    """The same, but in half of the products the second factor has `max_digits` digits, the first many nines.

    The largest carries come from nines: in 40,000 random products some contexts are not met, in as many of these all.
    """

    def sample(self, rng: random.Random) -> tuple[int, int]:
        """The factors of one product."""
        if rng.random() < 0.5:
            return super().sample(rng)
        return many_nines(self.max_digits, rng), of_length(self.max_digits, rng)


def hard_factor(digits: int, rng: random.Random) -> int:
    """A number of at most so many digits with long or large carries, or empty rows: one of six kinds, at random."""
    nines, top, ones = 10**digits - 1, 10 ** (digits - 1), (10**digits - 1) // 9
    alternating = int(("90" * digits)[:digits])
    kinds = [nines, nines - top * rng.randrange(9), ones * rng.randint(1, 9), top, alternating]
    return rng.choice([*kinds, many_nines(digits, rng)])


def many_nines(digits: int, rng: random.Random) -> int:
    """A number of at most so many digits, each a nine or, as often, any digit at all."""
    return int("".join("9" if rng.random() < 0.5 else rng.choice("0123456789") for _ in range(digits)))


# ---- contexts ----------------------------------------------------------------------------------------------------


def page_mask(tokens: Tensor) -> Tensor:
    """(B, T) True on tokens after which a page goes on: from the first `=` to the last."""
    return (page_address(tokens)[0] == 2) & (tokens != END)


def times_met(task: LongMultiplication, products: int, rng: random.Random) -> Tensor:
    """(C,) how often each context of a page with carries is met in so many products of the task."""
    listed = _in_order(task.every_context()[0])
    count = torch.zeros(len(listed), dtype=torch.long)
    for done in range(0, products, 1000):  # more texts need not be in memory together
        drawn = [task.sample(rng) for _ in range(min(1000, products - done))]
        keys, _ = task.contexts(task.encode(drawn))
        count += torch.searchsorted(listed, _in_order(keys)).bincount(minlength=len(listed))
    return count


def _in_order(keys):
    """(N, R) contexts -> (N,) numbers that are ordered as they are."""
    return ((keys + 1) * 16 ** torch.arange(keys.shape[1]).flip(0)).sum(1)


def witness(context: Tensor, rng: random.Random, tries: int = 20_000) -> tuple[int, int]:
    """Factors of at most four digits on whose page this (R,) context is met, found by trying.

    Digits of the context are drawn more often than others.
    Raises ValueError where `tries` products do not meet it.
    """
    task, digits = LongMultiplication(), [str(token) for token in context.tolist() if 0 <= token < 10] * 2
    for _ in range(tries):
        factors = tuple(int("".join(rng.choices([*digits, *"0123456789"], k=rng.randint(1, 4)))) for _ in range(2))
        if (task.contexts(task.encode([factors]))[0] == context).all(1).any():
            return factors
    raise ValueError(f"none of {tries:,} products met {context.tolist()}")


def continued(model: ColumnTransformer, prompt: str, limit: int) -> str:
    """The prompt, as `ask` gives it, and what greedy decoding writes after it: up to an end token, or `limit` tokens.

    Every answer is the model's; that of a context met before is remembered.
    """
    tokens = CharacterTokenizer().encode(prompt, end=False)
    times = tokens.index(TIMES)
    factors, above, own = (tokens[:times], tokens[times + 1 : -1]), [], []
    row, step, is_page, answer = 0, 0, True, remembered(model)

    def at(cells, place):
        return cells[place] if 0 <= place < len(cells) else ABSENT

    for _ in range(limit):
        if is_page:
            place = step // 2
            mine = (tokens[-2], tokens[-1], ABSENT) if step % 2 else (ABSENT, ABSENT, tokens[-1])
            tokens.append(answer(at(factors[0], place - row), at(factors[1], row), at(above, place), *mine))
        else:
            with torch.no_grad():
                tokens.append(int(model(torch.tensor([tokens]))[0, -1].argmax()))
        if tokens[-1] == END:
            break
        step += 1
        if tokens[-1] == EQUALS:
            row, step, above, own = row + 1, 0, own, []
        elif tokens[-1] >= 10:
            is_page = False  # steps begin anew within a row, and two keys may share a slot
        elif step % 2:
            own.append(tokens[-1])
    return CharacterTokenizer().decode(tokens)
