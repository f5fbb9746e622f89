"""The bitwise OR of two vectors that begin at the same end: `00100+00=00100$` (chapter 36).

No digit passes anything on to its neighbour, so all that is left of addition is to bring the right two digits
together: alignment (McLeish et al., appendix A.3).

Dimensions: B problems, N bits of an operand, M tokens of an answer, T tokens.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from arithlib.settings import of_kind
from arithlib.tasks.operands import Problems, pack
from arithlib.tokenizer import ALPHABET, END, EQUALS

VECTORS = ("one", "random")
# What can be wrong with a written answer, in the order in which `faults` looks. Too short and too long are those that
# no single zero explains.
FAULTS = ("right", "one zero at the end", "one zero elsewhere", "too short", "too long", "wrong bits")


@of_kind("or-task")
@dataclass(frozen=True)
class Or:
    """The OR of two vectors, as long as the longer one.

    max_bits: the longest vector that is drawn; every pair of lengths is equally likely.
    vectors: "one" has a single one, in the shorter vector (in either, if they are equally long), as the paper's
        release has it (github.com/mcleish7/arithmetic at 55af9d5, `create_pos_or_variants.py`); "random" has bits
        that are all zero or one with equal chance.
    """

    max_bits: int = 10
    vectors: str = "one"

    def __post_init__(self):
        if self.max_bits < 1:
            raise ValueError(f"max_bits = {self.max_bits}: a vector has at least one bit")
        if self.vectors not in VECTORS:
            raise ValueError(f"vectors = {self.vectors!r}: choose one of {', '.join(VECTORS)}")

    def sample(self, count: int, generator: torch.Generator) -> Problems:
        """`count` problems, on the generator's device."""
        lengths = torch.randint(1, self.max_bits + 1, (count, 2), generator=generator, device=generator.device)
        return self._draw(lengths, self.max_bits, generator)

    def problems(self, lengths: Tensor, generator: torch.Generator) -> Problems:
        """One problem for each row of (B, 2) lengths, which may exceed max_bits.

        Raises ValueError for a length below 1.
        """
        if int(lengths.min()) < 1:
            raise ValueError(f"vectors of {int(lengths.min())} bits: each has at least one")
        return self._draw(lengths.to(generator.device), int(lengths.max()), generator)

    def every(self, lengths: Tensor) -> Problems:
        """All problems with a single one of each row of (P, 2) lengths: of (i, j), min(i, j), or 2 i where i = j.

        Raises ValueError for random vectors, of which there are too many.
        """
        if self.vectors != "one":
            raise ValueError(f"vectors = {self.vectors!r}: only those with a single one can all be written")
        ones = [
            (row, owner, place)
            for row, (i, j) in enumerate(lengths.tolist())
            for owner in ((0, 1) if i == j else (int(i > j),))
            for place in range(min(i, j))
        ]
        row, owner, place = torch.tensor(ones, device=lengths.device).unbind(1)
        bits = torch.zeros(len(ones), 2, int(lengths.max()), dtype=torch.long, device=lengths.device)
        bits[torch.arange(len(ones), device=lengths.device), owner, place] = 1
        return self.write(bits, lengths[row])

    def _draw(self, lengths, N, generator):
        B, device = len(lengths), generator.device
        if self.vectors == "random":
            return self.write(torch.randint(2, (B, 2, N), generator=generator, device=device), lengths)
        chance = torch.rand(B, 2, generator=generator, device=device)
        place = (chance[:, 0] * lengths.amin(1)).long()
        owner = torch.where(lengths[:, 0] == lengths[:, 1], chance[:, 1] < 0.5, lengths[:, 0] > lengths[:, 1]).long()
        bits = torch.zeros(B, 2, N, dtype=torch.long, device=device)
        bits[torch.arange(B, device=device), owner, place] = 1
        return self.write(bits, lengths)

    def write(self, bits: Tensor, lengths: Tensor) -> Problems:
        """(B, 2, N) bits of both vectors, of which the first `lengths` (B, 2) count -> the written problems.

        >>> from arithlib.tokenizer import CharacterTokenizer
        >>> bits, lengths = torch.tensor([[[0, 0, 0, 0], [0, 1, 0, 0]]]), torch.tensor([[4, 3]])
        >>> CharacterTokenizer().decode_batch(Or().write(bits, lengths).tokens)[0].rstrip("$")
        '0000+010=0100'
        """
        B, _, N = bits.shape
        inside = torch.arange(N, device=bits.device) < lengths[..., None]
        bits = bits * inside

        def sign(token):
            return bits.new_full((B, 1), token)

        a, b = bits.unbind(1)
        always, either = torch.ones_like(inside[:, 0, :1]), inside.any(1)
        source = torch.cat([a, sign(ALPHABET.index("+")), b, sign(EQUALS), a | b, sign(END)], 1)
        kept = torch.cat([inside[:, 0], always, inside[:, 1], always, either, always], 1)
        start = lengths.sum(1) + 2
        return Problems(pack(source, kept, source.shape[1]), start, start + lengths.amax(1) + 1, a, b)


def faults(written: Tensor, answers: Tensor) -> Tensor:
    """(B, M) tokens written and (B, M) right ones, both with end tokens from their end on -> (B,) index of FAULTS.

    "One zero": the answer with one zero too many or too few, and nothing else. It counts as one at the end wherever
    it can be explained so: 0100 for 01000, but also 00 for 000.

    >>> answer = torch.tensor([[0, 1, 0, END, END]])
    >>> faults(torch.tensor([[0, 0, 1, 0, END]]), answer)  # a zero too many before the one
    tensor([2])
    """
    M = answers.shape[1]
    lengths = [(tokens != END).sum(1) for tokens in (written, answers)]
    change = lengths[0] - lengths[1]
    longer = torch.where(change[:, None] > 0, written, answers)
    shorter = torch.where(change[:, None] > 0, answers, written)
    # Leaving out place i of the longer one: all before must agree as they stand, all behind one place earlier.
    before = torch.cat([torch.ones_like(longer[:, :1]), (longer == shorter)[:, :-1].long()], 1).cumprod(1)
    moved = (longer[:, 1:] == shorter[:, :-1]).long().flip(1).cumprod(1).flip(1)
    behind = torch.cat([moved, torch.ones_like(moved[:, :1])], 1)
    explained = (before * behind).bool() & (longer == 0) & (change.abs() == 1)[:, None]
    last = torch.arange(M, device=written.device) == (lengths[0].maximum(lengths[1]) - 1)[:, None]
    fault = torch.full_like(change, FAULTS.index("wrong bits"))
    fault[change < 0] = FAULTS.index("too short")
    fault[change > 0] = FAULTS.index("too long")
    fault[explained.any(1)] = FAULTS.index("one zero elsewhere")
    fault[(explained & last).any(1)] = FAULTS.index("one zero at the end")
    fault[(written == answers).all(1)] = FAULTS.index("right")
    return fault
