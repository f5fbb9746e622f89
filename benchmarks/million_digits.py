"""A sum of a million digits by greedy decoding, and how the time grows with the length (chapter 70).

arithlib bench million_digits        half a minute; seconds of one core
"""

import time

import torch
from timing import growth

from arithlib import load
from arithlib.streaming import Stream, columns, margins
from arithlib.tasks.worst_case_sums import KINDS, stress_sums

HARDEST = KINDS.index("chain through unequal digits")


def measure(name: str = "adder-wide-s0", lengths: tuple[int, ...] = (1000, 10_000, 100_000, 1_000_000)) -> dict:
    """Processor seconds by length, of decoding and of checking the same answer by teacher forcing."""
    model, decoding, checking = load(name).model, [], []
    for n in lengths:
        a, b, _ = (x[HARDEST : HARDEST + 1] for x in stress_sums(n, len(KINDS), torch.Generator().manual_seed(n)))
        started = time.process_time()
        written = list(Stream(model, n).decode(a[0].numpy(), b[0].numpy()))
        decoding.append(time.process_time() - started)
        assert written == columns(a, b)[0, 2, 1 : 1 + len(written)].tolist() and len(written) == n + 1
        started = time.process_time()
        margin = float(margins(model, a, b))
        checking.append(time.process_time() - started)
        print(
            f"{n:>9,} digits: decoded in {decoding[-1]:7.2f} s ({1e6 * decoding[-1] / n:.0f} microseconds a digit), "
            f"all right; teacher-forced in {checking[-1]:.2f} s, smallest margin {margin:.2f}",
            flush=True,
        )
    return {"decoding": growth(lengths, decoding), "checking": growth(lengths, checking)}


def main() -> None:
    torch.set_num_threads(1)
    print(f"exponent of the time: {measure()['decoding']['exponent']:.3f}")


if __name__ == "__main__":
    main()
