"""The tasks of Zhou et al. 2023 (arXiv 2310.16028) as texts of tokens (chapter 63).

A text of length n begins with START and holds a question and an answer, which ends with END. Its answer begins at
place Q; Q and the length T of the text depend on the task and on n alone. Tokens are numbers of one table:

    0 to 29     numbers, letters, digits and bits
    30 to 59    index hints, which name the columns of a sum or the places of a word
    60 to 63    PLUS, EQUALS, END, START

Hints of a text count on from a random one, so that short texts show all of them.

Dimensions: B texts, T tokens, n length: numbers, letters, bits, or digits of each operand.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np

NUMBERS, HINTS = 30, 30
PLUS, EQUALS, END, START = range(NUMBERS + HINTS, NUMBERS + HINTS + 4)
VOCABULARY = START + 1
LETTERS = 4  # of words whose letters repeat


@dataclass(frozen=True)
class Task:
    """draw(n, B, generator): random words, (B, ...). every(n): all there are, of few letters.

    write(words, generator): question and answer, (B, ...) each; the generator draws hints.
    """

    draw: Callable
    every: Callable
    write: Callable


def beside(names, values):
    """(B, n) hints and (B, n) tokens -> (B, 2 n), each hint before its token."""
    return np.stack([names, values], 2).reshape(len(values), -1)


def hints(B, n, generator):
    """(B, n) hints that count on from a random one."""
    return NUMBERS + generator.integers(HINTS - n + 1, size=(B, 1)) + np.arange(n)


# --- words ---


def letters(number, kept=lambda words: words):
    """(draw, every) of words of so many letters, of which `kept` keeps some."""
    return (
        lambda n, B, generator: kept(generator.integers(number, size=(40 * B + 400, n)))[:B],
        lambda n: kept(np.array(list(product(range(number), repeat=n)))),
    )


def different():
    """(draw, every) of words without a letter twice; every one of n letters uses the first max(n, LETTERS)."""
    return (
        lambda n, B, generator: generator.random((B, NUMBERS)).argsort(1)[:, :n],
        lambda n: np.array(list(permutations(range(max(n, LETTERS)), n))),
    )


def ranges():
    """(draw, every) of n numbers that count on."""
    return (
        lambda n, B, generator: generator.integers(NUMBERS - n + 1, size=(B, 1)) + np.arange(n),
        lambda n: np.arange(NUMBERS - n + 1)[:, None] + np.arange(n),
    )


def operands():
    """(draw, every) of pairs of n digits, (B, 2, n), highest first; every one is one for each n sums of columns."""

    def every(n):
        columns = np.array(list(product(range(19), repeat=n)))
        return np.stack([columns - columns // 2, columns // 2], 1)

    return lambda n, B, generator: generator.integers(10, size=(B, 2, n)), every


def frequency(words):
    """(B, n) letters -> (B, LETTERS) how often each occurs."""
    return (words[..., None] == np.arange(LETTERS)).sum(1)


def with_a_mode(words):
    """Those with a letter that is more frequent than all others."""
    ordered = np.sort(frequency(words), 1)
    return words[ordered[:, -1] > ordered[:, -2]]


# --- questions and answers ---


def in_steps(words, generator):
    """Bits with hints, and with the same hints the parity so far."""
    names = hints(*words.shape, generator)
    return beside(names, words), beside(names, words.cumsum(1) % 2)


def addition(reverse, hinted):
    """a + b = the sum, a leading zero to each operand, highest first; the answer lowest first if `reverse`.

    hinted: before each digit a hint, the same for digits of one column.
    """

    def write(pairs, generator):
        B, _, n = pairs.shape
        pairs = np.pad(pairs, ((0, 0), (0, 0), (1, 0)))
        total, carry = np.zeros((B, n + 1), int), 0
        for place in range(n, -1, -1):
            carry, total[:, place] = np.divmod(pairs[:, :, place].sum(1) + carry, 10)
        order = slice(None, None, -1 if reverse else 1)
        first, second, total = pairs[:, 0], pairs[:, 1], total[:, order]
        if hinted:
            names = hints(B, n + 1, generator)
            first, second, total = beside(names, first), beside(names, second), beside(names[:, order], total)
        return np.concatenate([first, np.full((B, 1), PLUS), second], 1), total

    return write


TASKS = {
    "count": Task(*ranges(), lambda words, _: (words[:, [0, -1]], words)),
    "mode": Task(*letters(LETTERS, with_a_mode), lambda words, _: (words, frequency(words).argmax(1)[:, None])),
    "copy-unique": Task(*different(), lambda words, _: (words, words)),
    "copy-repeated": Task(*letters(LETTERS), lambda words, _: (words, words)),
    "sort": Task(*different(), lambda words, _: (words, np.sort(words, 1))),
    "parity": Task(*letters(2), lambda words, _: (words, words.sum(1, keepdims=True) % 2)),
    "parity-steps": Task(*letters(2), in_steps),
    "add-reversed-hints": Task(*operands(), addition(True, True)),
    "add-forward-hints": Task(*operands(), addition(False, True)),
    "add-reversed": Task(*operands(), addition(True, False)),
    "add-forward": Task(*operands(), addition(False, False)),
}


def text(task, words, generator):
    """Words of a task -> (B, T) texts, and Q, where their answers begin."""
    question, answer = TASKS[task].write(words, generator)
    start, equals, end = (np.full((len(words), 1), token) for token in (START, EQUALS, END))
    return np.concatenate([start, question, equals, answer, end], 1), question.shape[1] + 2


def draw(task, n, B, generator):
    """B random texts of length n: (B, T), and Q.

    Raises ValueError for a task that there is not, or a length that there are not enough numbers for.
    """
    if task not in TASKS:
        raise ValueError(f"task = {task!r}: choose one of {', '.join(TASKS)}")
    if not 1 <= n < NUMBERS:
        raise ValueError(f"length {n}: 1 to {NUMBERS - 1} can be written")
    return text(task, TASKS[task].draw(n, B, generator), generator)


def every(task, n):
    """All texts of length n over few letters: (B, T), and Q.

    Of sums there is one for each pattern of column sums, on which alone digits and carries depend.
    """
    return text(task, TASKS[task].every(n), np.random.default_rng(0))
