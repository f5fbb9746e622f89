"""The sum of many numbers, answered at once: `315+120+045+824=1304$` (source 003, section 2.1).

Operands are written with all their digits, leading zeros included; the answer without, unless it is reversed.

Dimensions: B problems, N operands, M digits of an operand, A digits of the largest answer, T tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from arithlib.settings import of_kind
from arithlib.tokenizer import ALPHABET, END, EQUALS


@of_kind("multi-operand-task")
@dataclass(frozen=True)
class ManyOperands:
    """Sums of numbers of M digits each, every number uniform.

    digits: M, at least 1. reverse: everything least-significant digit first, and the answer with all of its A digits;
        the source writes the usual way.
    """

    digits: int = 3
    reverse: bool = False

    def __post_init__(self):
        if self.digits < 1:
            raise ValueError(f"digits = {self.digits}: an operand has at least 1")

    def sample(self, n: int, count: int, generator: torch.Generator) -> Tensor:
        """(count, n) operands, each from 0 to 10^M - 1; n is at least 1."""
        if n < 1:
            raise ValueError(f"n = {n}: a sum has at least 1 operand")
        return torch.randint(10**self.digits, (count, n), generator=generator, device=generator.device)

    def write(self, operands: Tensor) -> Tensor:
        """(B, N) operands -> (B, N (M + 1) + A + 1) tokens; a shorter answer is filled up with end tokens.

        >>> from arithlib.tokenizer import CharacterTokenizer
        >>> CharacterTokenizer().decode_batch(ManyOperands(3).write(torch.tensor([[315, 120, 45, 824]])))
        ['315+120+045+824=1304$']
        """
        B, N = operands.shape
        question = self._digits(operands, self.digits)
        signs = torch.full_like(question[..., :1], ALPHABET.index("+"))
        signs[:, -1] = EQUALS
        question = torch.cat([question, signs], 2).flatten(1)
        answer = F.pad(self._digits(operands.sum(1), self.answer_width(N)), (0, 1), value=END)
        return torch.cat([question, answer if self.reverse else _without_leading_zeros(answer)], 1)

    def ask(self, numbers: Sequence[int]) -> Tensor:
        """(1, T) tokens of the question, up to and including `=`. Raises ValueError for a number of more digits."""
        if max(numbers) >= 10**self.digits:
            raise ValueError(f"{max(numbers)} is too long: numbers are written with {self.digits} digits here")
        return self.write(torch.tensor([list(numbers)]))[:, : self.question_width(len(numbers))]

    def read(self, tokens: Tensor) -> int:
        """The number that (A,) tokens of an answer write, up to the end token. Raises ValueError where it is none."""
        text = "".join(ALPHABET[token] for token in tokens.tolist()).partition(ALPHABET[END])[0]
        if not text.isdigit():
            raise ValueError(f"the model answers with {text!r}: no number")
        return int(text[::-1] if self.reverse else text)

    def question_width(self, n: int) -> int:
        """Tokens up to the sign of equality, which is one of them."""
        return n * (self.digits + 1)

    def answer_width(self, n: int) -> int:
        """A for n operands."""
        return len(str(n * (10**self.digits - 1)))

    def _digits(self, numbers: Tensor, width: int) -> Tensor:
        """(...) numbers -> (..., width) digits in the order in which they are written."""
        digits = numbers[..., None] // 10 ** torch.arange(width, device=numbers.device) % 10
        return digits if self.reverse else digits.flip(-1)


def _without_leading_zeros(answer: Tensor) -> Tensor:
    """(B, A + 1) digits and an end token -> the same, shifted over leading zeros; a sum of 0 is written 0."""
    zeros = (answer[:, :-2].cumsum(1) == 0).sum(1, keepdim=True)
    columns = torch.arange(answer.shape[1], device=answer.device)
    return F.pad(answer, (0, answer.shape[1]), value=END).gather(1, columns + zeros)
