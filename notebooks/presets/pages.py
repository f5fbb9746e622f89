"""Runs: long multiplication on a page (chapter 78).

arithlib train "pages-s*"              six to ten minutes each on one core
arithlib train "pages-carried-s*"      with many nines in every second product
arithlib train "pages-partials-s*"     rows of partial products, and totals below them
arithlib train "pages-bare-s*"         no carries in the rows
"""

from arithlib.experiments import sweep
from arithlib.training import AdamW
from chapters.ch78_experiments import ProductExperiment
from chapters.ch78_long_multiplication import CarriedMultiplication
from chapters.ch78_other_layouts import LayoutExperiment, PartialProducts, WithoutCarries

STEPS = 12_000


def presets():
    """Every run of this family."""
    same = dict(steps=STEPS, evaluate_every=600, optimizer=AdamW.cosine(5e-3, STEPS, weight_decay=0.0))
    pages = ProductExperiment(name="pages", about="products of up to 4 x 4 digits on a page (chapter 78)", **same)
    carried = dict(
        about="products on a page, every second with many nines (chapter 78)", task=CarriedMultiplication()
    )
    yield from sweep(pages, {"": {}, "carried": carried}, range(5))
    layouts = LayoutExperiment(
        name="pages", about="products on a page of another layout (chapter 78)", ships_weights=False, **same
    )
    layout_of = {"partials": dict(task=PartialProducts()), "bare": dict(task=WithoutCarries())}
    yield from sweep(layouts, layout_of, range(3))
