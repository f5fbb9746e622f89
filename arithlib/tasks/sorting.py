"""Sorting labelled numbers: `a:321,b:54,c:7=c,b,a` in McLeish et al., `321a54b7c=cba` here (chapter 36).

The numbers are written least-significant digit first, each with a letter; the answer is the letters in the ascending
order of their numbers. The letters are a run of the alphabet, taken as a circle, from a random one on, as in the
paper's release (github.com/mcleish7/arithmetic at 55af9d5, `create_data_split.py`). Unlike there a letter follows its
number, in place of the comma: the token that can see all of a number is the one to be written in the answer.

Dimensions: B problems, N numbers of a list, D digits of a number, T tokens.
"""

from dataclasses import dataclass
from string import ascii_lowercase

import torch
from torch import Tensor

from arithlib.settings import of_kind
from arithlib.tasks.operands import Problems, digits_of, lengths_of, pack
from arithlib.tokenizer import ALPHABET, END, EQUALS

WORDS = ALPHABET + ascii_lowercase  # one token a character
FIRST_LETTER = len(ALPHABET)
# Numbers of up to so many digits are compared as 64-bit integers.
MOST_DIGITS = 18


def ascending(digits: Tensor, count: Tensor) -> Tensor:
    """(B, N, D) digits of the first `count` (B,) numbers of each row -> (B, N) their places in ascending order.

    Equal numbers keep their order, as in the release. Places from `count` on come last.

    >>> ascending(torch.tensor([[[1, 2], [5, 0], [3, 1]]]), torch.tensor([3]))  # 21, 5, 13
    tensor([[1, 2, 0]])
    """
    B, N, D = digits.shape
    value = (digits * 10 ** torch.arange(D, device=digits.device)).sum(2)
    absent = torch.arange(N, device=digits.device) >= count[:, None]
    return torch.where(absent, 10**D, value).argsort(dim=1, stable=True)


@of_kind("sorting-task")
@dataclass(frozen=True)
class Sorting:
    """Lists of numbers to be sorted.

    max_numbers: the longest list that is drawn, every length equally likely. max_digits: likewise for the most digits
    that a list allows; each of its numbers has 1 to that many, equally likely, and does not begin with zero.
    """

    max_numbers: int = 4
    max_digits: int = 3

    def __post_init__(self):
        if not (1 <= self.max_numbers <= len(ascii_lowercase) and 1 <= self.max_digits <= MOST_DIGITS):
            raise ValueError(
                f"lists of up to {self.max_numbers} numbers of up to {self.max_digits} digits: give 1 to "
                f"{len(ascii_lowercase)} numbers, as there are letters, of 1 to {MOST_DIGITS} digits"
            )

    def sample(self, count: int, generator: torch.Generator) -> Problems:
        """`count` lists, on the generator's device."""
        most = torch.tensor([self.max_numbers, self.max_digits], device=generator.device)
        drawn = torch.rand(count, 2, generator=generator, device=generator.device)
        return self._draw(1 + (drawn * most).long(), self.max_numbers, self.max_digits, generator)

    def problems(self, shapes: Tensor, generator: torch.Generator) -> Problems:
        """One list for each row of (B, 2) numbers in it and most digits, which may exceed those of training.

        Raises ValueError for a list that has no such shape.
        """
        for numbers, digits in shapes.unique(dim=0).tolist():
            Sorting(numbers, digits)
        numbers, digits = (int(most) for most in shapes.amax(0))
        return self._draw(shapes.to(generator.device), numbers, digits, generator)

    def from_numbers(self, numbers: list[int], letter: str = "a") -> Problems:
        """One list of these numbers, whose first label is `letter`."""
        digits = digits_of(numbers)[None]
        labels = (torch.arange(len(numbers)) + ascii_lowercase.index(letter)) % len(ascii_lowercase)
        return self.write(digits, FIRST_LETTER + labels[None], torch.tensor([len(numbers)]))

    def _draw(self, shapes, N, D, generator):
        def draw(low, high, *shape):
            return torch.randint(low, high, shape, generator=generator, device=generator.device)

        B, place = len(shapes), torch.arange(D, device=generator.device)
        uniform = torch.rand(B, N, 1, generator=generator, device=generator.device)
        length = 1 + (uniform * shapes[:, 1, None, None]).long()
        digits = torch.where(place == length - 1, draw(1, 10, B, N, D), draw(0, 10, B, N, D)) * (place < length)
        run = draw(0, len(ascii_lowercase), B, 1) + torch.arange(N, device=generator.device)
        return self.write(digits, FIRST_LETTER + run % len(ascii_lowercase), shapes[:, 0])

    def write(self, digits: Tensor, labels: Tensor, count: Tensor) -> Problems:
        """(B, N, D) digits and (B, N) label tokens of the first `count` (B,) numbers -> the written lists.

        In the problems, a is the digits as (B, D, N) and b the labels.

        >>> text = Sorting().from_numbers([123, 45, 7]).tokens[0]
        >>> "".join(WORDS[token] for token in text).rstrip("$")
        '321a54b7c=cba'
        """
        B, N, D = digits.shape
        present = torch.arange(N, device=digits.device) < count[:, None]
        written = (torch.arange(D, device=digits.device) < lengths_of(digits)[..., None]) & present[..., None]
        answer = labels.gather(1, ascending(digits, count))
        always = present[:, :1]
        source = torch.cat([
            torch.cat([digits, labels[..., None]], 2).flatten(1),
            torch.full_like(labels[:, :1], EQUALS), answer, torch.full_like(labels[:, :1], END),
        ], 1)  # fmt: skip
        numbers = torch.cat([written, present[..., None]], 2).flatten(1)
        kept = torch.cat([numbers, always, present, always], 1)
        start = numbers.sum(1) + 1
        tokens = pack(source, kept, source.shape[1])
        return Problems(tokens, start, start + count + 1, digits.transpose(1, 2), labels)
