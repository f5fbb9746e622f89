"""Sums of 10,000 digits by the adders without a window, every token by greedy decoding in float32 (chapter 71).

arithlib bench unwindowed        five minutes of one core

100 sums for each seed, one of each hard kind of `arithlib.tasks.worst_case_sums` and random ones. Every token is then
given again and all keys read in float64, for the least lead of a right token. Prints a line for each seed.
"""

import time

import torch

from arithlib import checkpoints
from arithlib.analysis.dilution import read
from arithlib.streaming import Stream
from arithlib.tasks.operands import add, lengths_of
from arithlib.tasks.worst_case_sums import stress_sums

DIGITS, COUNT = 10_000, 100


def main():
    torch.set_num_threads(1)
    a, b, kinds = stress_sums(DIGITS, COUNT, torch.Generator().manual_seed(DIGITS))
    answers = add(a, b)
    lengths = [lengths_of(x).tolist() for x in (a, b, answers)]
    for seed in range(3):
        name, start, wrong = f"adder-unwindowed-s{seed}", time.process_time(), []
        model = checkpoints.load(name).model
        stream = Stream(model, DIGITS)
        for row, (x, y, z) in enumerate(zip(*lengths, strict=True)):
            written = list(stream.decode(a[row, :x].numpy(), b[row, :y].numpy()))
            if written != answers[row, :z].tolist():
                wrong.append(kinds[row])
        seconds = time.process_time() - start
        lead = min(read(model, a[i : i + 10], b[i : i + 10]).margins().min().item() for i in range(0, COUNT, 10))
        print(
            f"{name}: {COUNT - len(wrong)} of {COUNT} sums of {DIGITS:,} digits right, {seconds:.0f} s; "
            f"least lead {lead:.2f} logits; wrong: {wrong or 'none'}",
            flush=True,
        )


if __name__ == "__main__":
    main()
