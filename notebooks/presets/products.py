"""Runs: small GPTs on written products, by format (chapter 68).

arithlib train "products-*"      one to three minutes each on one core: a run is a stack of three small models
"""

from dataclasses import replace

from arithlib.training import AdamW
from chapters.ch68_experiments import ProductsExperiment
from chapters.ch68_written_products import ProductFormat, Products

# All products of numbers below 100 but the 320 of the test. Steps and batches were chosen by the time that they take.
EVERYTHING = Products(2, pool=9680)
STEPS = 2000


def presets():
    """Every run of this family."""
    study = ProductsExperiment(
        name="products", about="small GPTs on written products (chapter 68)", steps=STEPS, evaluate_every=100,
        optimizer=AdamW(lr=3e-3, weight_decay=0.1, warmup_steps=100, schedule="cosine"), ships_weights=False,
        format=ProductFormat(), products=EVERYTHING, longest=(3, 2), seeds=(0, 1, 2), batch_size=32,
    )  # fmt: skip

    def run(name, **more):
        return replace(study, name=f"products-{name}", **more)

    yield run("steps-reversed", format=ProductFormat(steps=True, reverse=True))
    yield run("steps-plain", format=ProductFormat(steps=True))
    yield run("reversed", format=ProductFormat(reverse=True))
    yield run("plain")
    # Operands with as many digits as the longest have, the product with twice as many.
    yield run("padded-reversed", format=ProductFormat(reverse=True, padded=2))
    yield run("padded-plain", format=ProductFormat(padded=2))
    yield run("long", products=Products(5), longest=(5, 5), batch_size=16, steps=1500, test_size=50)
    yield run(
        "few", format=ProductFormat(steps=True, reverse=True), products=Products(2, pool=1000), unseen_size=2000,
    )  # fmt: skip
