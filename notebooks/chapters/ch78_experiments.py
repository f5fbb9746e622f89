"""Long multiplication of short factors (chapter 78)."""

from dataclasses import dataclass

from arithlib.experiments.written import WrittenExperiment
from arithlib.models.column import ColumnConfig
from arithlib.settings import of_kind
from chapters.ch78_long_multiplication import LongMultiplication, continued


@of_kind("long-product")
@dataclass(frozen=True, kw_only=True)
class ProductExperiment(WrittenExperiment):
    """A transformer that sees its neighbours on the page, on fresh products of short factors."""

    task: LongMultiplication = LongMultiplication()
    model: ColumnConfig = ColumnConfig("page", d_model=64, d_mlp=256)
    batch_size: int = 48
    evaluation_count: int = 200

    def multiply(self, model, a, b):
        n, m = len(str(a)), len(str(b))
        limit = m * (2 * (n + m) + 2) + 1
        return self.task.read(continued(model, self.task.ask(a, b), limit))
