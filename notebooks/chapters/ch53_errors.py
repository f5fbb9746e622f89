"""Where wrong answers fall: a circular code that errs as known, and tests for the causes of errors (chapter 53).

A circular code holds a number as a line and circles, as `arithlib.analysis.helix` does. Read with noise, it errs
towards the numbers whose points are near: those for which the short periods agree and the long ones nearly do
(Kantamneni and Tegmark 2025, section 6 and appendix F).

Dimensions: N numbers that can be the answer, n answers given, C coordinates. An error is the answer
given minus the right one. Everything is computed in float64.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from arithlib.analysis.helix import explained, helix_columns

# ---- a code whose errors are known -------------------------------------------------------------------------------


@dataclass(frozen=True)
class CircularCode:
    """The numbers 0 to size - 1 as points: a line, and a circle for each period.

    radii: of the circles. slope: how far the line moves from one number to the next.
    """

    periods: tuple[float, ...]
    radii: tuple[float, ...]
    slope: float
    size: int = 199

    @property
    def points(self) -> Tensor:
        """(N, C) the line, then cosine and sine of each period."""
        numbers = torch.arange(self.size, dtype=torch.float64)
        angle = 2 * torch.pi * numbers[:, None] / torch.tensor(self.periods, dtype=torch.float64)
        circles = torch.tensor(self.radii, dtype=torch.float64) * torch.stack([angle.cos(), angle.sin()])
        return torch.cat([self.slope * numbers[:, None], *circles], 1)

    def distances(self, offsets: Tensor) -> Tensor:
        """(n,) differences of two numbers -> (n,) distance of their points: it depends on nothing else."""
        circles = sum(
            (2 * r * (torch.pi * offsets.double() / T).sin()).square()
            for T, r in zip(self.periods, self.radii, strict=True)
        )
        return ((self.slope * offsets.double()).square() + circles).sqrt()

    def read(self, numbers: Tensor, noise: float, generator: torch.Generator, bias: float = 0.0) -> Tensor:
        """Numbers (n,) as they are read from points with normal noise of that standard deviation in each coordinate.

        Each possible answer has as logit minus half its squared distance, less `bias` times the answer.
        """
        points = self.points
        seen = points[numbers] + noise * torch.randn(
            len(numbers), points.shape[1], generator=generator, dtype=torch.float64
        )
        logits = seen @ points.T - points.square().sum(1) / 2 - bias * torch.arange(self.size)
        return logits.argmax(1)


def even_code(periods: Sequence[float]) -> CircularCode:
    """Line and circles with the same variance each over the numbers 0 to 99."""
    variance = float(torch.arange(100.0).var(correction=0))
    return CircularCode(tuple(periods), (1.0,) * len(periods), variance**-0.5)


def own_code(x: Tensor, numbers: Tensor, periods: Sequence[float]) -> CircularCode:
    """Line and circles with the variance of x (n, D) that each adds to what those before it explain.

    Order matters where a long period resembles the line; `strongest_periods` gives the strongest first.
    """
    shares = [explained(x, helix_columns(numbers, periods[:k])) for k in range(len(periods) + 1)]
    radii = [(after - before) ** 0.5 for before, after in zip(shares, shares[1:], strict=False)]
    slope = (shares[0] / float(numbers.double().var(correction=0))) ** 0.5
    return CircularCode(tuple(periods), tuple(radii), slope)


def noise_for(right: Callable[[float], float], target: float, high: float, halvings: int = 12) -> float:
    """The noise between 0 and `high` at which the share of right answers has fallen to `target`, by bisection.

    Raises ValueError if `high` does not bring it so low.
    """
    if right(high) > target:
        raise ValueError(
            f"with noise {high} still {right(high):.3f} are right, more than {target}: give a larger one"
        )
    low = 0.0
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (middle, high) if right(middle) > target else (low, middle)
    return (low + high) / 2


# ---- where errors fall -------------------------------------------------------------------------------------------


def error_shares(errors: Tensor, reach: int) -> Tensor:
    """(n,) errors -> (2 reach + 1,) share of the wrong answers at each error from -reach to reach; 0 for error 0.

    They add up to 1 if no error is larger than `reach`. Raises ValueError if nothing is wrong.

    >>> error_shares(torch.tensor([0, 0, -1, -1, 2, 9]), 2)
    tensor([0.0000, 0.5000, 0.0000, 0.0000, 0.2500], dtype=torch.float64)
    """
    wrong = errors[errors != 0]
    if len(wrong) == 0:
        raise ValueError(f"all of {len(errors)} answers are right: there are no errors to count")
    near = wrong[wrong.abs() <= reach]
    return torch.bincount(near + reach, minlength=2 * reach + 1).double() / len(wrong)


def correlation(x: Tensor, y: Tensor) -> float:
    """Of two histograms (2 reach + 1,), without their middle, where the right answers would be."""
    keep = torch.arange(len(x)) != len(x) // 2
    return float(torch.corrcoef(torch.stack([x[keep], y[keep]]))[0, 1])


# ---- was it the carry? -------------------------------------------------------------------------------------------


def carries(a: Tensor, b: Tensor) -> Tensor:
    """(n,) True where the units of a and b make ten or more."""
    return a % 10 + b % 10 >= 10


def contingency(first: Tensor, second: Tensor) -> Tensor:
    """(n,) and (n,) booleans -> (2, 2) counts: [[neither, only second], [only first, both]]."""
    return torch.bincount(2 * first.long() + second.long(), minlength=4).view(2, 2)


def chi_square(table: Tensor) -> tuple[float, float]:
    """Pearson's chi-square of a (2, 2) table, without correction, and its p-value (one degree of freedom).

    Raises ValueError where a row or column is empty: there is then nothing to compare.

    >>> chi_square(torch.tensor([[20, 30], [30, 20]]))[0]
    4.0
    """
    table = table.double()
    expected = table.sum(1, keepdim=True) * table.sum(0, keepdim=True) / table.sum()
    if expected.min() == 0:
        raise ValueError(f"a row or a column of {table.tolist()} is empty")
    statistic = ((table - expected).square() / expected).sum()
    return float(statistic), float(torch.erfc((statistic / 2).sqrt()))


def plant_failed_carries(a: Tensor, b: Tensor, answers: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Answers (n,), with `share` of those that are off by -10 undone, and as many failures to carry put in instead.

    A failure to carry is an error of -10 where the units make ten or more; it is planted among the right answers to
    such sums.
    """
    answers = answers.clone()
    off = torch.where(answers == a + b - 10)[0]
    able = torch.where((answers == a + b) & carries(a, b))[0]
    count = round(share * len(off))
    chosen = off[torch.randperm(len(off), generator=generator)[:count]]
    planted = able[torch.randperm(len(able), generator=generator)[:count]]
    answers[chosen] += 10
    answers[planted] -= 10
    return answers
