"""A sum of a million digits by greedy decoding, and how the time grows with the length (chapter 70).

python -m arithlib bench million_digits        half a minute; seconds of one core
"""

import math
import time

import torch

from arithlib import load
from arithlib.streaming import Stream, columns, margins
from arithlib.tasks.stress import KINDS, stress_sums

HARDEST = KINDS.index("chain through unequal digits")


def main(name: str = "adder-wide-s0", lengths: tuple[int, ...] = (1000, 10_000, 100_000, 1_000_000)) -> None:
    torch.set_num_threads(1)
    model, seconds = load(name).model, []
    for n in lengths:
        a, b, _ = (x[HARDEST : HARDEST + 1] for x in stress_sums(n, len(KINDS), torch.Generator().manual_seed(n)))
        started = time.process_time()
        written = list(Stream(model, n).decode(a[0].numpy(), b[0].numpy()))
        seconds.append(time.process_time() - started)
        right = written == columns(a, b)[0, 2, 1 : 1 + len(written)].tolist() and len(written) == n + 1
        started = time.process_time()
        margin = float(margins(model, a, b))
        checked = time.process_time() - started
        print(
            f"{n:>9,} digits: decoded in {seconds[-1]:7.2f} s ({1e6 * seconds[-1] / n:.0f} microseconds a digit), "
            f"right: {right}; teacher-forced in {checked:.2f} s, smallest margin {margin:.2f}",
            flush=True,
        )
    exponent = math.log(seconds[-1] / seconds[0]) / math.log(lengths[-1] / lengths[0])
    print(f"exponent of the time from {lengths[0]:,} to {lengths[-1]:,} digits: {exponent:.3f}")


if __name__ == "__main__":
    main()
