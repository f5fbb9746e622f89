"""What the order and the format of the digits decide: how a curve is read, and what a digit depends on (chapter 61).

Dimensions: N sets of sums, E evaluations.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch

from arithlib.analysis.dilution import crossing
from arithlib.checkpoints import Trained
from chapters.ch61_written_sums import STYLES


def all_seeds(first: Trained, *others: Trained) -> Trained:
    """Studies that differ in their seeds alone, read as one: their histories (E, N, seeds, ...) side by side.

    Raises ValueError if they differ in more than that.
    """
    studies = (first, *others)
    seeds = tuple(seed for study in studies for seed in study.experiment.seeds)
    whole = replace(first.experiment, seeds=seeds)
    for study in others:
        if replace(study.experiment, name=whole.name, seeds=seeds) != whole or len(set(seeds)) < len(seeds):
            raise ValueError(f"{study.experiment.name} is not {whole.name} with other seeds")
    history = {
        name: np.concatenate([study.history[name] for study in studies], 2) if values.ndim > 2 else values
        for name, values in first.history.items()
    }
    return replace(first, experiment=whole, model=None, history=history)


def sums_needed(sizes, shares, level: float) -> float:
    """The number of sums from which on a share of the test is right, on a line between log sizes.

    sizes, shares: (N,). The smallest size where the share is reached there, so that it is an upper bound then.
    Raises ValueError where it is never reached.
    """
    short = -torch.tensor(shares, dtype=torch.double)
    return float(sizes[0]) if short[0] <= -level else crossing(sizes, short, -level)


def curves(printed: Mapping[str, float]) -> dict[str, list[tuple[float, float]]]:
    """For each of the formats, (number of sums, percent right) as Lee et al. print them, by the names of the claims.

    >>> curves({"plain_20k": 90.1, "plain_500": 0.3, "reverse_1k": 1.6})["plain"]
    [(500.0, 0.3), (20000.0, 90.1)]
    """
    found = {style: [] for style in STYLES}
    for key, percent in printed.items():
        word, _, size = key.rpartition("_")
        style = "reversed" if word == "reverse" else word
        if style in found:
            found[style].append((float(size.replace("k", "e3")), percent))
    return {style: sorted(points) for style, points in found.items()}


def step_reaching(step: np.ndarray, values: np.ndarray, level: float) -> float:
    """The step of (E,) at which values (E,) are first at `level` or above, on a line between; the last if never."""
    above = np.flatnonzero(values >= level)
    if len(above) == 0:
        return float(step[-1])
    i = int(above[0])
    if i == 0:
        return float(step[0])
    part = (level - values[i - 1]) / (values[i] - values[i - 1])
    return float(step[i - 1] + part * (step[i] - step[i - 1]))


def steps_of_fall(step: np.ndarray, loss: np.ndarray, first: int) -> float:
    """How many steps a loss takes from nine tenths to one tenth of its fall after step `first`, (E,) both."""
    step, loss = step[step >= first], loss[step >= first]
    done = (loss[0] - loss) / (loss[0] - loss.min())
    return step_reaching(step, done, 0.9) - step_reaching(step, done, 0.1)


def local_contexts(digits: int, forward: bool, kinds: int = 100, undecided: int = 10) -> int:
    """How many local situations a model meets that writes the columns of a sum one by one.

    Least significant first it needs the digits of a column and the carry, which the column before it shows. Most
    significant first it has to look as far down as the carry is not decided: below digits that sum to nine.

    kinds: of columns, 100 pairs of digits or 19 sums of two. undecided: of these, those that sum to nine, 10 or 1.
    """
    if not forward:
        return kinds + 2 * kinds * (digits - 1)
    carries, total = 1, kinds  # ways in which the carry into a column is decided; the lowest column has none
    for _ in range(digits - 1):
        carries = kinds - undecided + undecided * carries
        total += kinds * carries
    return total
