"""Runs: long multiplication on a page (chapter 78).

arithlib train "pages-s*"      six to ten minutes each on one core
"""

from arithlib.experiments import sweep
from arithlib.training import AdamW
from chapters.ch78_experiments import ProductExperiment

STEPS = 12_000


def presets():
    """Every run of this family."""
    pages = ProductExperiment(
        name="pages", about="products of up to 4 x 4 digits on a page (chapter 78)", steps=STEPS, evaluate_every=600,
        optimizer=AdamW.cosine(5e-3, STEPS, weight_decay=0.0),
    )  # fmt: skip
    yield from sweep(pages, {"": {}}, range(5))
