"""Tables 3 to 8 of Saunshi et al. 2025 as printed (source 003, section 3 and appendix A.3; arXiv 2502.17416).

Percent right, and perplexities. Tables 5 to 7 are those of the source; of tables 3, 4 and 8, which are lost there,
the published version serves, with its row of a model of which only the middle layers are looped.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from chapters.ch44_loops import ahead, gap_interval

# model: "24x1" the baseline, "12x1" few layers, "12x2" looped, "reg12" 24 layers with blocks of 12 made alike.
GROUPS = {
    "closed": ("TriviaQA", "TydiQA-NoContext", "Natural Questions", "Web Questions"),
    "open": ("TydiQA-GoldP", "SquadV2", "DROP", "QuAC", "CoQA"),
    "maths": ("ASDiv", "AddSub", "MultiArith", "SingleEq", "SingleOp", "SVAMP"),
    "primitives": ("code, depth 0", "maths, depth 0", "code, depth 1", "maths, depth 1"),
}

NAMES = {
    "perplexity": "perplexity",
    "closed": "closed-book questions",
    "open": "open-book questions",
    "maths": "word problems",
    "primitives": "reasoning primitives",
}

_TASKS = """
24x1   24.5 10.6 4.3 5.6  11.2 | 33.4 41.3 23.4 18.6 52.7  33.9 | 26.9 49.9 2.7 38.6 40.2 17.9  29.3 | 71.1 72.5 24.2 22.3  47.5
12x1   15.9  9.3 2.4 5.2   8.2 | 21.8 34.6 20.0 17.3 41.1  26.9 | 23.1 44.8 2.0 36.8 37.9 15.3  26.7 | 52.2 51.6 20.7 18.3  35.7
12x2   18.6  9.6 3.4 5.8   9.3 | 27.7 39.5 22.3 17.6 46.8  30.8 | 31.5 55.9 2.0 47.4 50.2 18.5  34.3 | 73.5 86.5 21.3 23.6  51.2
reg12  20.9 10.9 3.6 5.0  10.1 | 33.0 44.3 23.8 17.7 51.9  34.1 | 27.4 54.4 2.7 43.7 45.9 19.8  32.3 | 75.1 74.9 27.0 25.7  50.7
8x1    12.3  7.4 1.8 3.9   6.3 | 12.7 33.8 16.0 15.3 35.9  22.7 | 12.9 32.7 2.0 19.9 21.9 13.4  17.1 | 48.7 42.0 21.4 19.8  33.0
8x3    17.3  8.8 2.5 5.2   8.5 | 29.8 38.1 21.6 17.6 46.6  30.8 | 23.2 54.9 2.3 36.2 38.3 15.6  28.4 | 88.4 86.9 23.1 22.9  55.3
reg8   23.6 10.6 4.1 6.7  11.3 | 33.0 41.7 25.2 19.3 52.9  34.4 | 31.0 56.7 3.5 40.7 47.5 17.3  32.8 | 92.2 86.7 23.1 23.3  56.3
6x1     7.4  4.8 1.1 2.7   4.0 |  8.2 26.8 14.8 14.4 32.5  19.3 | 15.4 31.1 1.3 21.3 26.3 10.9  17.7 | 26.3 29.7 20.2 20.1  24.1
6x4    16.0  9.3 2.7 4.9   8.2 | 26.6 34.6 20.8 18.1 43.7  28.7 | 24.5 51.6 0.7 38.0 47.7 16.3  29.8 | 90.6 88.1 24.1 21.7  56.1
reg6   25.8 12.2 4.5 5.6  12.0 | 34.5 46.1 26.2 18.6 53.4  35.8 | 32.0 47.1 3.5 44.9 42.0 16.8  31.0 | 84.0 79.7 31.4 28.3  55.8
4x1     3.3  1.9 0.6 1.5   1.8 |  3.4 19.0 11.1 13.1 22.3  13.8 |  7.9 10.4 1.5 11.0 19.0  8.3   9.7 | 19.3 23.3 17.3 17.6  19.4
4x6    11.8  8.8 2.4 3.5   6.7 | 22.0 32.4 20.1 15.8 40.7  26.2 | 19.9 49.1 1.7 29.3 35.9 12.6  24.8 | 87.9 90.0 24.8 24.8  56.9
reg4   26.1 13.3 4.5 6.2  12.5 | 33.6 49.4 24.1 19.8 54.0  36.2 | 35.0 53.9 3.2 52.2 50.9 23.0  36.4 | 88.0 86.9 27.9 25.8  57.2
"""  # noqa: E501

# perplexity, then the averages: closed, open, maths, the fifteen tasks of these three, primitives
SUMMARIES = ("perplexity", "closed", "open", "maths", "fifteen", "primitives")
_SUMMARIES = """
24x1     7.40 11.2 33.9 29.3 26.0 47.5
12x1     8.16  8.2 26.9 26.7 21.8 35.7
12x2     7.90  9.3 30.8 34.3 26.5 51.2
8x1      8.75  6.3 22.7 17.1 16.1 33.0
8x3      8.19  8.5 30.8 28.4 23.9 55.3
6x1      9.25  4.0 19.3 17.7 14.6 24.1
6x4      8.42  8.2 28.7 29.8 23.7 56.1
4x1     10.12  1.8 13.8  9.7  9.0 19.4
4x6      8.79  6.7 26.2 24.8 20.4 56.9
middle   7.81 11.0 32.3 28.3 25.0 56.5
reg4-weak 7.41 11.2 34.8 31.6 27.2 42.5
reg4     7.38 12.5 36.2 36.4 30.0 57.2
reg6     7.40 12.0 35.8 31.0 27.5 55.8
reg8     7.43 11.3 34.4 32.8 27.6 56.3
reg12    7.51 10.1 34.1 32.3 27.0 50.7
"""

_GAPS = """
12x2    34 37 56 282 110 131
8x3     41 44 72  92  78 153
6x4     44 58 64 104  80 136
4x6     48 52 61  77  67 133
middle  46 94 78  62  95 176
"""

# What a looped model is compared with: as many layers, each used once. "middle" is four layers, four looped four
# times, and four, so that it has the weights of twelve and the depth of 24.
FEW = {"12x2": "12x1", "8x3": "8x1", "6x4": "6x1", "4x6": "4x1", "middle": "12x1"}
DEEP = "24x1"
LOOPED = ("12x2", "8x3", "6x4", "4x6")  # whole blocks, passed to a depth of 24
UNLOOPED = ("4x1", "6x1", "8x1", "12x1", DEEP)


@dataclass(frozen=True)
class TaskRow:
    """A row of one of tables 5 to 8: the tasks of a group and the average printed beside them."""

    model: str
    group: str
    tasks: tuple[float, ...]
    printed: float

    @property
    def mean(self) -> float:
        """Of the printed tasks."""
        return sum(self.tasks) / len(self.tasks)

    @property
    def agrees(self) -> bool:
        """Whether some tasks that round to the printed ones have a mean that rounds to the printed one.

        Each task is within 0.05 of what was rounded, so is their mean, and the printed average is within 0.05 of it.
        """
        return abs(self.mean - self.printed) <= 0.1 + 1e-9


def task_rows() -> list[TaskRow]:
    """Tables 5, 6, 7 and 8, thirteen rows each, in this order."""
    found = []
    lines = [line.split(maxsplit=1) for line in _TASKS.strip().splitlines()]
    for place, (group, tasks) in enumerate(GROUPS.items()):
        for model, numbers in lines:
            *values, printed = map(float, numbers.split("|")[place].split())
            if len(values) != len(tasks):
                raise ValueError(f"{model} has {len(values)} {group} tasks, not {len(tasks)}")
            found.append(TaskRow(model, group, tuple(values), printed))
    return found


def summaries() -> dict[str, dict[str, float]]:
    """Tables 3 and 4: model -> measure -> printed number."""
    return _read(_SUMMARIES)


def printed_gaps() -> dict[str, dict[str, float]]:
    """Table 3: looped model -> measure -> printed gap in percent."""
    return _read(_GAPS)


def tasks(model: str, group: str) -> np.ndarray:
    """The printed scores of a model on the tasks of a group of `GROUPS`, in its order, in percent."""
    return np.array(next(row.tasks for row in task_rows() if (row.model, row.group) == (model, group)))


def by_depth(model: str) -> np.ndarray:
    """Reasoning primitives of depth 0 and of depth 1, mean of code and maths, in percent; (2,).

    >>> by_depth("24x1").round(2).tolist()  # table 8: 71.1 and 72.5, 24.2 and 22.3
    [71.8, 23.25]
    """
    return tasks(model, "primitives").reshape(2, 2).mean(1)


def gap_entries(model: str, measure: str) -> tuple[float, float, float]:
    """What equation 3 is computed from for a looped model: the printed scores of its layers, of it, and of 24.

    >>> gap_entries("12x2", "maths")
    (26.7, 34.3, 29.3)
    """
    table = summaries()
    return tuple(table[name][measure] for name in (FEW[model], model, DEEP))


def possible_gap(model: str, measure: str) -> tuple[float, float]:
    """The least and the largest gap in percent of numbers that round to the printed ones."""
    return gap_interval(*gap_entries(model, measure), half=0.005 if measure == "perplexity" else 0.05)


def accounts(low: float, high: float, shown: float) -> bool:
    """Whether a number from low to high can be printed as a whole number `shown`, rounded or cut off.

    >>> accounts(34.9, 34.95, 34), accounts(33.6, 33.8, 34), accounts(35.1, 35.4, 34)
    (True, True, False)
    """
    return low < shown + 1 and high >= shown - 0.5


def log_perplexities(models: tuple[str, ...]) -> np.ndarray:
    """Of the printed perplexities, in nats a token; (models,)."""
    table = summaries()
    return np.log([table[model]["perplexity"] for model in models])


def above_unlooped(model: str, scores: Mapping[str, float]) -> float:
    """Points by which a model scores above unlooped ones of its log perplexity, which straight lines join.

    scores: of the model and of each of `UNLOOPED`. Raises ValueError where its perplexity is beyond theirs.
    """
    others = [scores[name] for name in UNLOOPED]
    return ahead(log_perplexities((model,)), [scores[model]], log_perplexities(UNLOOPED), others)


def _read(text: str) -> dict[str, dict[str, float]]:
    rows = (line.split() for line in text.strip().splitlines())
    return {model: dict(zip(SUMMARIES, map(float, numbers), strict=True)) for model, *numbers in rows}
