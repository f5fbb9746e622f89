"""Contestants timed in turns (A B C A B C ...): a busy machine slows all of them, and what counts are the ratios."""

import statistics
import time
from collections.abc import Callable, Iterable

import numpy as np


def in_turns(contestants: dict[str, Callable], rounds: int, repeats: int = 1) -> dict[str, list[float]]:
    """Seconds that each contestant takes, one number a round: the mean of so many repeats."""
    times = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, run in contestants.items():
            started = time.perf_counter()
            for _ in range(repeats):
                run()
            times[name].append((time.perf_counter() - started) / repeats)
    return times


def summary(times: dict[str, list[float]], reference: str) -> dict[str, dict[str, float]]:
    """By contestant: seconds, the median; ratio to the reference, the median over rounds; low and high, quartiles."""
    found = {}
    for name, values in times.items():
        ratios = [own / other for own, other in zip(values, times[reference], strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        found[name] = dict(seconds=statistics.median(values), ratio=middle, low=low, high=high)
    return found


def report(found: dict[str, dict[str, float]], reference: str) -> None:
    for name, row in found.items():
        print(f"  {name:42} {1e3 * row['seconds']:10.2f} ms  {row['ratio']:8.3f} x {reference}", flush=True)


def growth(sizes: Iterable[int], seconds: Iterable[float]) -> dict:
    """A curve, and the exponent of the line through it where both axes are logarithmic."""
    sizes, seconds = list(sizes), list(seconds)
    exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    return dict(sizes=sizes, seconds=seconds, exponent=exponent)
