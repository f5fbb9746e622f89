"""Differences of short numbers, in two passes (chapter 79)."""

from dataclasses import dataclass

from arithlib.experiments.written import WrittenExperiment
from arithlib.models.column import ColumnConfig
from arithlib.settings import of_kind
from chapters.ch79_differences import Differences, written


@of_kind("difference")
@dataclass(frozen=True, kw_only=True)
class DifferenceExperiment(WrittenExperiment):
    """A transformer that sees a column at a time, on fresh differences of short numbers."""

    task: Differences = Differences()
    model: ColumnConfig = ColumnConfig("difference", d_model=32, n_heads=4, d_mlp=128)
    batch_size: int = 64
    evaluation_count: int = 500

    def subtract(self, model, a, b):
        return self.task.read(self.task.ask(a, b) + "".join(written(model, str(a), str(b))))
