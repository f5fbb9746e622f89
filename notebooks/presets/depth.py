"""Runs: depth without parameters (part 4): k layers looped L times beside k layers, and beside k L layers.

arithlib train "depth-hop-*"        two minutes each on one core, three times as long those to the end
arithlib train "depth-add-*"        two minutes each on one core
arithlib train "depth-gpu-*"        those of the published width, one to nine minutes each on a GPU
"""

from dataclasses import replace

from arithlib.experiments import sweep
from arithlib.experiments.depth import AdditionExperiment, HopExperiment
from arithlib.models.looped import LoopedConfig
from arithlib.tasks.multi_operand import ManyOperands
from arithlib.tasks.p_hop import Hops
from arithlib.training import AdamW

SEEDS = range(3)
TUNING_SEEDS = (10, 11)  # on which learning rates were chosen; they are in no result
TUNED = (1, 4), (2, 2), (4, 1)  # the shapes that were tuned: those of depth four
RATES = {"half": 1.5e-3, "usual": 3e-3, "double": 6e-3}  # learning rates


def shapes(depth: int) -> list[tuple[int, int]]:
    """Every (k, L) with k L = depth, and (k, 1) beside each: looped models and both their partners."""
    divisors = [k for k in range(1, depth + 1) if depth % k == 0]
    return sorted({(k, loops) for k in divisors for loops in (1, depth // k)})


def of_shapes(shapes, d_model=64, n_heads=4, **vocabulary):
    """Variants of a run: k layers looped L times, without addresses."""
    return {
        f"{k}x{loops}": dict(model=LoopedConfig(
            d_model=d_model, n_heads=n_heads, d_mlp=4 * d_model, n_layers=k, n_loops=loops, positions="rotary",
            injection="none", **vocabulary,
        ))
        for k, loops in shapes
    }  # fmt: skip


def of_steps(steps, lr=3e-3):
    """The length of a run, and what goes with it."""
    return dict(steps=steps, evaluate_every=steps // 20, optimizer=AdamW.cosine(lr, steps))


def at_rates(steps):
    """Variants of a run: each shape of depth four at each of the three learning rates."""
    shapes = of_shapes(TUNED)
    return {
        f"{name}-{rate}": dict(shape, **of_steps(steps, RATES[rate]))
        for name, shape in shapes.items()
        for rate in RATES
    }


def presets():
    """Every run of this family."""
    yield from _sums()
    yield from _hops()
    yield from _paper_sized()


def _sums():
    """Up to 4 numbers of two digits, least-significant digit first.

    Shapes of depth 4 have two more runs, for the spread. Four layers are also trained for twice the steps. These and
    three runs of one layer looped are looked into (chapter 40), so that their weights are kept.
    """

    def adder(name, about, steps=3000, counts=(1, 2, 3, 4), further=(5, 6, 8), ships_weights=False):
        return AdditionExperiment(
            name=f"depth-add{name}", about=f"{about} (chapter 40)", **of_steps(steps), batch_size=48,
            task=ManyOperands(2, reverse=True), counts=counts, further=further, ships_weights=ships_weights,
            **of_shapes([(1, 4)])["1x4"],
        )  # fmt: skip

    small, looped = adder("", "up to 4 numbers"), of_shapes([(1, 4)])
    others = of_shapes(shape for shape in shapes(4) if shape != (1, 4))
    yield from sweep(adder("", "up to 4 numbers", ships_weights=True), looped, SEEDS)
    yield from sweep(small, looped, range(3, 5))
    yield from sweep(small, others, SEEDS)
    yield from sweep(small, of_shapes([(2, 2), (4, 1)]), range(3, 5))
    larger = of_shapes([(3, 1), (3, 2), (6, 1), (4, 3), (6, 2), (12, 1), (3, 4), (2, 6), (1, 12)])
    yield from sweep(adder("", "up to 4 numbers, larger blocks"), larger, SEEDS)
    longer = adder("-long", "the same, twice the steps", 6000, ships_weights=True)
    yield from sweep(longer, of_shapes([(4, 1)]), SEEDS)
    # Trained to the end, at the rate that the tuning found for each shape; none was tried for two layers once.
    yield from sweep(adder("-tuning", "the same, at three learning rates"), at_rates(3000), TUNING_SEEDS)
    end = adder("-end", "the same, three times the steps", 9000)
    yield from sweep(end, of_shapes([(1, 4), (2, 2), (4, 1), (2, 1)]), range(5))
    gap = adder("-gap", "1, 2 and 4 numbers, never 3", counts=(1, 2, 4), further=(3, 5, 6, 8))
    yield from sweep(gap, looped, SEEDS)


def _hops():
    """Four hops among 32 tokens: the depth that corollary 2.3 asks for is 4."""
    hops = HopExperiment(
        name="depth-hop", about="4 hops in 32 tokens (chapter 41)", **of_steps(2400), task=Hops(4, 32),
        everywhere=True, batch_size=32, ships_weights=False, **of_shapes([(1, 4)])["1x4"],
    )  # fmt: skip
    fewer = of_shapes([(1, 2), (1, 3)])
    about = "fewer loops than the corollary asks (chapter 41)"
    yield from sweep(hops, of_shapes(shapes(4)), SEEDS)
    yield from sweep(hops, {name: dict(about=about, **shape) for name, shape in fewer.items()}, SEEDS)
    # Trained to the end, at the rate that one seed of tuning found best, or within a few in a thousand of it.
    tuning = replace(hops, name="depth-hop-tuning", about="the same, at three learning rates (chapter 41)")
    yield from sweep(tuning, at_rates(2400), TUNING_SEEDS[:1])
    end = replace(hops, name="depth-hop-end", about="the same, three times the steps (chapter 41)", **of_steps(7200))
    yield from sweep(end, of_shapes(shapes(4)), SEEDS)


def _paper_sized():
    """Table 1 whole, missing rows included, at the published widths and batches; a fortieth of the steps."""
    common = dict(**of_steps(5000, lr=1e-3), scale="gpu", ships_weights=False, **of_shapes([(1, 1)])["1x1"])
    sums = AdditionExperiment(
        name="depth-gpu-add", about="2 to 32 numbers of three digits: up to nine minutes", batch_size=1020, **common
    )
    yield from sweep(sums, of_shapes(shapes(12), d_model=256, n_heads=8), SEEDS)
    for p in (16, 32):
        hops = HopExperiment(
            name=f"depth-gpu-hop{p}",
            about=f"{p} hops in 256 tokens: up to two minutes",
            task=Hops(p),
            batch_size=256,
            **common,
        )
        yield from sweep(hops, of_shapes(shapes(6), d_model=128, n_heads=8), SEEDS)
