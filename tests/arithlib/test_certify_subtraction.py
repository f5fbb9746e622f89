"""The columns that a comparison and a subtraction can show."""

from itertools import product

from arithlib.certify.subtraction import EQUAL, FIRST_LESS, SECOND_LESS, compared, signs, subtracted
from arithlib.tokenizer import ABSENT, MINUS, PLUS


def less(a, b):
    return FIRST_LESS if a < b else SECOND_LESS if a > b else EQUAL


def digit(n, place):
    """ABSENT above the number."""
    return int(str(n)[::-1][place]) if place < len(str(n)) else ABSENT


def test_columns_are_those_of_all_numbers_of_two_digits():
    for a, b in product(range(100), repeat=2):
        units, tens, sign = (a % 10, b % 10), (digit(a, 1), digit(b, 1)), MINUS if a < b else PLUS
        below = less(*units)
        assert compared(*units, EQUAL) == below and compared(*tens, below) == less(a, b)
        assert subtracted(*units, EQUAL, sign) == abs(a - b) % 10
        assert subtracted(*tens, below, sign) == abs(a - b) // 10
        assert signs(*tens, below) == ({sign} if ABSENT in tens else {PLUS, MINUS})
