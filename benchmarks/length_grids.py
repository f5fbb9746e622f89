"""Grids of exact match with 100 sums a cell, as the sources measure them: too long for a chapter of the book.

    arithlib bench length_grids

For each seed of `abacus-cpu`: every pair of lengths within training (20 x 20), and every fourth length up to twice as
many digits (40 x 40) under one fixed offset and with eight deciding together. About 20 minutes of one core.
"""

from functools import partial

from arithlib import checkpoints, experiments
from arithlib.exact_match import length_grid

NAMES = [f"abacus-cpu-s{seed}" for seed in range(3)]


def main():
    for name in NAMES:
        experiment, model = experiments.get(name), checkpoints.load(name).model
        N, task = experiment.task.max_digits, experiment.task
        grids = {
            f"{N} x {N}, one offset": (range(1, N + 1), None),
            f"{2 * N} x {2 * N}, one offset": (range(4, 2 * N + 1, 4), None),
            f"{2 * N} x {2 * N}, eight offsets": (range(4, 2 * N + 1, 4), partial(experiment.offset_ensemble, model)),
        }
        for what, (lengths, offsets) in grids.items():
            grid = length_grid(model, task, lengths, lengths, offsets=offsets)
            cells = f"{int((grid == 1).sum())} of {grid.size} cells perfect"
            print(f"{name}  {what:24} mean {grid.mean():.5f}, least {grid.min():.2f}, {cells}")


if __name__ == "__main__":
    main()
