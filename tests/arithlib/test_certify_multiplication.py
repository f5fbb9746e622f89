"""The carries that a page of long multiplication can show."""

from itertools import product

import pytest

from arithlib.certify.multiplication import carries


@pytest.mark.parametrize("b", range(10))
def test_carries_are_those_of_every_row_of_three_places(b):
    for above, most in ((False, 0), (True, 999)):
        rows = range(0, most + 1, 1 if b in (0, 9) else 9)  # 9 and 999 among them
        brute = {(a % 10**m * b + r % 10**m) // 10**m for a, r, m in product(range(1000), rows, (0, 1, 2, 3))}
        assert carries(b, above) == brute
