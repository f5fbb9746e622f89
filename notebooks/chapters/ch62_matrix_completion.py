"""When do some entries of a table of sums settle the others (chapter 62; Lee et al. 2023, section 5)?

The table has a row for each first operand and a column for each second, numbers 1 to n. Entries are shown in random
order; `entries_needed` says how many it takes until a rule can fill all the others. Three rules:

    connected   r_a + c_b is settled as soon as row a and column b are joined by a chain of seen entries: what is
                known of any table of this kind, and no method can do with less
    sums        a hole in a block of two by two neighbours is B + C - A of the other three, again and again
    products    the same with B C / A, the rule of the source's code

Dimensions: n numbers.
"""

from collections.abc import Callable

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

# Where the neighbours of a hole are that make up a block of two by two with it: to one side, above or below, across.
BLOCKS = [((0, dx), (dy, 0), (dy, dx)) for dy in (-1, 1) for dx in (-1, 1)]


def sum_table(n: int) -> np.ndarray:
    """(n, n) sums of the numbers 1 to n."""
    numbers = np.arange(1, n + 1)
    return numbers[:, None] + numbers


def determined(seen: np.ndarray) -> np.ndarray:
    """(n, n) which entries are seen -> (n, n) which are settled by them, if all that is known is that they are
    sums of a number of the row and a number of the column.

    Two such tables agree on what is seen exactly if they differ by a constant on the rows of each connected part of
    the graph that joins row a to column b for each seen entry, and by its negative on the columns of that part.
    """
    n = len(seen)
    a, b = np.nonzero(seen)
    graph = coo_array((np.ones(len(a)), (a, n + b)), shape=(2 * n, 2 * n))
    _, part = connected_components(graph, directed=False)
    return part[:n, None] == part[n:]


def moved(array: np.ndarray, by: tuple[int, int]) -> np.ndarray:
    """(n + 2, n + 2) a table with a rim -> (n, n) what stands there of every entry of the table, as a view."""
    n = len(array) - 2
    return array[1 + by[0] : n + 1 + by[0], 1 + by[1] : n + 1 + by[1]]


def fill(values: np.ndarray, seen: np.ndarray, rule: str) -> tuple[np.ndarray, np.ndarray]:
    """Fill holes from blocks of two by two neighbours as long as there is one with a single hole.

    values: (n, n), read where seen. rule: "sums", B + C - A, or "products", B C / A, with A across from the hole.
    Returns (n, n) the values, nan in what is left, and (n, n) what is known in the end.
    """
    known = np.pad(seen, 1)
    filled = np.pad(np.where(seen, values, np.nan).astype(float), 1, constant_values=np.nan)
    here, value = moved(known, (0, 0)), moved(filled, (0, 0))
    while True:
        before = here.sum()
        for block in BLOCKS:
            holes = ~here & np.logical_and.reduce([moved(known, by) for by in block])
            B, C, A = (moved(filled, by)[holes] for by in block)
            value[holes] = B + C - A if rule == "sums" else B * C / A
            here[holes] = True
        if here.sum() == before:
            return value, here


def fillable(seen: np.ndarray) -> np.ndarray:
    """(n, n) which entries are seen -> (n, n) which `fill` knows in the end, by either rule, without their values."""
    known = np.pad(seen, 1)
    here = moved(known, (0, 0))
    while True:
        before = here.sum()
        for beside, above, across in BLOCKS:
            here |= moved(known, beside) & moved(known, above) & moved(known, across)
        if here.sum() == before:
            return here


def entries_needed(n: int, complete: Callable[[np.ndarray], bool], generator: np.random.Generator) -> int:
    """How many entries of an n x n table must be shown, in one random order, until `complete` says yes of them.

    complete: of (n, n) bool; once it says yes it does so of all that contains that.
    """
    rank = generator.permutation(n * n).reshape(n, n)
    low, high = 0, n * n
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if complete(rank < middle) else (middle, high)
    return high


def share_connected(n: int, entries: np.ndarray) -> np.ndarray:
    """The share of tables that are connected by so many random entries, for large n: exp(-2 n exp(-entries / n)).

    The last thing that holds a random graph from being connected is a row or column without any entry (Erdős and
    Rényi 1959). There are 2 n of them, each empty with a probability of exp(-entries / n), nearly independent.
    """
    return np.exp(-2 * n * np.exp(-entries / n))


def entries_settling(n: int, share: float | np.ndarray) -> float | np.ndarray:
    """How many random entries settle so large a share of an n x n table, above 0 and below 1, for large n.

    With c = entries / n neighbours on average, a share s of the rows and columns is in the giant component, with
    1 - s = exp(-c s): a point is outside if all its neighbours are. All other components are small, so that an entry
    is settled if its row and its column are both in that one: share = s^2.
    """
    s = np.sqrt(share)
    return -n * np.log(1 - s) / s
