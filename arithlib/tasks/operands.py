"""Two numbers and an operation, written digit by digit: `321+654=975$` is 123 + 456 = 579 (source 002, "Data").

Numbers are written least-significant digit first, without leading zeros; a negative difference carries its sign last.
Every pair of operand lengths is equally likely. Nothing here loops over problems, so data come from the device that
trains.

Dimensions: B problems, N digits of an operand, M columns of an answer, T tokens. A tensor of digits holds 0 to 9,
least significant first, zero beyond the number's length.
"""

import random
from dataclasses import dataclass

import torch
from torch import Tensor

from arithlib.settings import of_kind
from arithlib.tokenizer import ALPHABET, END, EQUALS

OPERATIONS = "+-*"
REVERSALS = ("all", "answer", "none")


# ---- digits ------------------------------------------------------------------------------------------------------


def digits_of(numbers: list[int], width: int | None = None) -> Tensor:
    """(B, width) digits of non-negative integers, least significant first; as wide as the longest by default.

    Raises ValueError for no number, a negative one, or one with more than `width` digits.
    """
    if not numbers:
        raise ValueError("no numbers to write: give at least one")
    if min(numbers) < 0:
        raise ValueError(f"{min(numbers)} is negative: operands are 0 or more")
    texts = [str(number)[::-1] for number in numbers]
    longest = max(map(len, texts))
    if width is not None and longest > width:
        raise ValueError(f"{max(numbers)} has {longest} digits; the width is {width}")
    return torch.tensor([[int(digit) for digit in text.ljust(width or longest, "0")] for text in texts])


def numbers_of(digits: Tensor) -> list[int]:
    """The integers that (B, N) digits write.

    >>> numbers_of(torch.tensor([[3, 2, 1], [7, 0, 0]]))
    [123, 7]
    """
    return [int("".join(map(str, reversed(row)))) for row in digits.tolist()]


def lengths_of(digits: Tensor) -> Tensor:
    """(..., N) digits -> (...) how many are written without leading zeros, at least 1."""
    places = torch.arange(1, digits.shape[-1] + 1, device=digits.device)
    return (places * (digits != 0)).amax(-1).clamp(min=1)


def carries(a: Tensor, b: Tensor) -> Tensor:
    """Carry into each column of a + b (chapter 30).

    a, b: (B, N) digits. Returns (B, N + 1) zeros and ones; column 0 is always 0.

    >>> carries(torch.tensor([[5, 9]]), torch.tensor([[5, 0]]))  # 95 + 5
    tensor([[0, 1, 1]])
    """
    columns = a + b
    return _ripple(columns == 9, columns > 9)[0].long()


def longest_carry_chain(a: Tensor, b: Tensor) -> Tensor:
    """(B, N) digits of a and b -> (B,) the most columns that one carry of a + b travels, 0 without any carry.

    A carry is born where two digits make ten or more, and passes on through every column that adds up to nine.

    >>> longest_carry_chain(torch.tensor([[5, 9, 9]]), torch.tensor([[5, 0, 0]]))  # 995 + 5
    tensor([3])
    """
    columns = a + b
    carried, born = _ripple(columns == 9, columns > 9)
    places = torch.arange(born.shape[1], device=a.device)
    return ((places - born) * carried).amax(1)


def _ripple(passes: Tensor, makes: Tensor) -> tuple[Tensor, Tensor]:
    """Carry-lookahead: what enters a column was made in the nearest column below that does not merely pass it on.

    passes, makes: (B, M) booleans. Returns two (B, M + 1): whether a carry enters, and the column it was made in.
    """
    B, M = passes.shape
    places = torch.arange(M, device=passes.device)
    source = torch.where(passes, -1, places).cummax(1).values
    enters = makes.gather(1, source.clamp(min=0)) & (source >= 0)
    below = source.new_full((B, 1), -1)
    return torch.cat([enters.new_zeros(B, 1), enters], 1), torch.cat([below, source], 1)


def of_length(digits: int, rng: random.Random) -> int:
    """A random integer of exactly so many digits; 0 has one."""
    return rng.randrange(10 ** (digits - 1) if digits > 1 else 0, 10**digits)


def add(a: Tensor, b: Tensor) -> Tensor:
    """(B, N) digits of a and b -> (B, N + 1) digits of a + b."""
    return (_widen(a + b, 1) + carries(a, b)) % 10


def subtract(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """(B, N) digits of a and b -> (B, N) digits of |a - b| and (B,) whether a < b."""
    columns = a - b
    leading = lengths_of(columns) - 1
    negative = columns.gather(1, leading[:, None])[:, 0] < 0
    columns = torch.where(negative[:, None], -columns, columns)
    borrows = _ripple(columns == 0, columns < 0)[0][:, :-1].long()
    return (columns - borrows) % 10, negative


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """(B, N) digits of a and b -> (B, 2 N) digits of a * b."""
    B, N = a.shape
    places = torch.arange(N, device=a.device)
    column = (places[:, None] + places).flatten()
    products = (a[:, :, None] * b[:, None, :]).flatten(1)
    columns = a.new_zeros(B, 2 * N).index_add_(1, column, products)
    largest = 81 * N
    while largest > 18:  # now each column keeps its last digit and hands on the rest, until at most one carry is left
        columns = columns % 10 + _widen(columns[:, :-1] // 10, 1, left=True)
        largest = 9 + largest // 10
    carried = _ripple(columns == 9, columns > 9)[0][:, :-1]
    return (columns + carried) % 10


def _widen(digits: Tensor, by: int, left: bool = False) -> Tensor:
    return torch.nn.functional.pad(digits, (by, 0) if left else (0, by))


# ---- problems ----------------------------------------------------------------------------------------------------


@dataclass
class Problems:
    """B written problems.

    tokens: (B, T) `a+b=c$`, filled up with end tokens. start: (B,) place of the answer's first token.
    stop: (B,) one past its end token. a, b: (B, N) digits of the operands.
    """

    tokens: Tensor
    start: Tensor
    stop: Tensor
    a: Tensor
    b: Tensor

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, rows) -> "Problems":
        """The problems of these rows: a slice, or a tensor of indices or booleans."""
        return Problems(self.tokens[rows], self.start[rows], self.stop[rows], self.a[rows], self.b[rows])

    @property
    def answer_mask(self) -> Tensor:
        """(B, T) True on the answer and its end token: what a model must write."""
        places = torch.arange(self.tokens.shape[1], device=self.tokens.device)
        return (places >= self.start[:, None]) & (places < self.stop[:, None])

    def trimmed(self) -> "Problems":
        """The same problems without columns that only fill up."""
        return Problems(self.tokens[:, : int(self.stop.max())], self.start, self.stop, self.a, self.b)

    def by_length(self, parts: int) -> list["Problems"]:
        """The same problems in `parts` groups of similar length, each trimmed: less filling to compute on.

        With operands of 1 to 20 digits a batch of one part is 41 % filling, one of four parts 15 %.
        """
        return [self[rows].trimmed() for rows in self.stop.argsort(stable=True).chunk(parts)]

    def prompts(self) -> Tensor:
        """(B, T) tokens up to and including `=`. Raises ValueError if that is not one length for all."""
        first, last = int(self.start.min()), int(self.start.max())
        if first != last:
            raise ValueError(
                f"prompts of {first} to {last} tokens in one batch: decode prompts of one length at a time"
            )
        return self.tokens[:, :first]


@of_kind("operands")
@dataclass(frozen=True)
class OperandTask:
    """Problems of one or several operations on two operands.

    operations: those to draw from, of "+", "-" and "*"; "+-" mixes additions and subtractions.
    max_digits: the longest operand that is drawn; every pair of lengths is equally likely.
    reverse: what is written least-significant digit first: "all" numbers (the source), the "answer" alone, or "none".
    """

    operations: str = "+"
    max_digits: int = 20
    reverse: str = "all"

    def __post_init__(self):
        if not self.operations or set(self.operations) - set(OPERATIONS):
            raise ValueError(f"operations = {self.operations!r}: give one or more of {' '.join(OPERATIONS)}")
        if self.max_digits < 1:
            raise ValueError(f"max_digits = {self.max_digits}: operands have at least one digit")
        if self.reverse not in REVERSALS:
            raise ValueError(f"reverse = {self.reverse!r}: choose one of {', '.join(REVERSALS)}")

    def sample(self, count: int, generator: torch.Generator) -> Problems:
        """`count` problems, on the generator's device."""
        lengths = torch.randint(1, self.max_digits + 1, (count, 2), generator=generator, device=generator.device)
        return self._draw(lengths, self.max_digits, generator)

    def problems(self, lengths: Tensor, generator: torch.Generator) -> Problems:
        """One problem for each row of (B, 2) operand lengths, which may exceed max_digits: out of distribution.

        Raises ValueError for no rows, or for a length below 1.
        """
        if len(lengths) == 0:
            raise ValueError("no operand lengths: give at least one pair")
        if int(lengths.min()) < 1:
            row = int((lengths < 1).any(1).nonzero()[0])
            raise ValueError(f"problem {row} has operands of {lengths[row].tolist()} digits: each needs at least one")
        return self._draw(lengths.to(generator.device), int(lengths.max()), generator)

    def from_numbers(self, pairs: list[tuple[int, int]], device: torch.device | str = "cpu") -> Problems:
        """These pairs of integers under the task's first operation."""
        a, b = zip(*pairs, strict=True)
        width = len(str(max(max(a), max(b))))
        a, b = (digits_of(list(numbers), width).to(device) for numbers in (a, b))
        operation = torch.full((len(a),), ALPHABET.index(self.operations[0]), device=device)
        return self.write(a, b, operation)

    def ask(self, a: int, b: int, device: torch.device | str = "cpu") -> Tensor:
        """(1, T) tokens of the question, up to and including `=`, under the task's first operation."""
        return self.from_numbers([(a, b)], device).prompts()

    def read(self, tokens: Tensor) -> int:
        """The number that (M,) tokens of an answer write, up to the end token.

        Raises ValueError where it is none, and where no end token follows: what is unfinished is no answer.
        """
        text, end, _ = "".join(ALPHABET[token] for token in tokens.tolist()).partition(ALPHABET[END])
        if not end:
            raise ValueError(f"the model writes {text[-40:]!r} at the end of {len(text):,} tokens, and no end token")
        number = text if self.reverse == "none" else text[::-1]
        if not number.removeprefix("-").isdigit():
            raise ValueError(f"the model answers with {text[:40]!r}: no number")
        return int(number)

    def _draw(self, lengths: Tensor, width: int, generator: torch.Generator) -> Problems:
        def draw(low, high, *shape):
            return torch.randint(low, high, shape, generator=generator, device=generator.device)

        B, place = len(lengths), torch.arange(width, device=generator.device)
        digits = draw(0, 10, B, 2, width)
        # A number of several digits does not begin with zero; 0 itself is a number of one digit.
        leads = (place == lengths[..., None] - 1) & (lengths[..., None] > 1)
        digits = torch.where(leads, draw(1, 10, B, 2, 1), digits) * (place < lengths[..., None])
        known = torch.tensor([ALPHABET.index(operation) for operation in self.operations], device=generator.device)
        return self.write(*digits.unbind(1), known[draw(0, len(known), B)])

    def write(self, a: Tensor, b: Tensor, operation: Tensor) -> Problems:
        """(B, N) digits of two operands and (B,) tokens of the operation between them -> the written problems."""
        answer, negative = self._answers(a, b, operation)
        B, N = a.shape
        lengths = [lengths_of(number) for number in (a, b, answer)]
        written = [
            number
            if self.reverse == "all" or (self.reverse == "answer" and number is answer)
            else _flip(number, length)
            for number, length in zip((a, b, answer), lengths, strict=True)
        ]
        kept = [
            torch.arange(number.shape[1], device=a.device) < length[:, None]
            for number, length in zip(written, lengths, strict=True)
        ]

        def column(token):
            return torch.full((B, 1), token, device=a.device)

        always, signed = torch.ones(B, 1, dtype=torch.bool, device=a.device), negative[:, None]
        minus, sign_first = column(ALPHABET.index("-")), self.reverse == "none"
        pieces = [written[0], operation[:, None], written[1], column(EQUALS), minus, written[2], minus, column(END)]
        keep = [kept[0], always, kept[1], always, signed & sign_first, kept[2], signed & (not sign_first), always]
        start = lengths[0] + lengths[1] + 2
        stop = start + lengths[2] + negative + 1
        width = 2 * N + answer.shape[1] + 3 + ("-" in self.operations)
        return Problems(pack(torch.cat(pieces, 1), torch.cat(keep, 1), width), start, stop, a, b)

    def _answers(self, a: Tensor, b: Tensor, operation: Tensor) -> tuple[Tensor, Tensor]:
        """(B, M) digits of each answer and (B,) whether it is negative."""
        M = 2 * a.shape[1] if "*" in self.operations else a.shape[1] + 1
        answer, negative = a.new_zeros(len(a), M), torch.zeros(len(a), dtype=torch.bool, device=a.device)
        for symbol in self.operations:
            chosen = operation == ALPHABET.index(symbol)
            if symbol == "-":
                result, below = subtract(a, b)
                negative = negative | (below & chosen)
            else:
                result = add(a, b) if symbol == "+" else multiply(a, b)
            answer = torch.where(chosen[:, None], _widen(result, M - result.shape[1]), answer)
        return answer, negative


def _flip(digits: Tensor, lengths: Tensor) -> Tensor:
    """Most-significant digit first, still at the left."""
    place = torch.arange(digits.shape[1], device=digits.device)
    return digits.gather(1, (lengths[:, None] - 1 - place).clamp(min=0))


def pack(source: Tensor, keep: Tensor, width: int) -> Tensor:
    """Move the kept tokens of each row to the left, in order; (B, width), the rest end tokens."""
    place = torch.where(keep, keep.cumsum(1) - 1, width)  # what is not kept goes to one column too many
    return source.new_full((len(source), width + 1), END).scatter_(1, place, source)[:, :width]
