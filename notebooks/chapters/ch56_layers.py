"""Which layers and heads add: one set of measures for decoders of any depth (chapter 56).

Dimensions: L layers (and levels: after 1, ..., L of them), H heads a layer.
"""

from fractions import Fraction

import numpy as np
import torch

from arithlib.models.decoder import Decoder
from chapters.ch52_clock import helices, interaction_waves, share, writers
from chapters.ch52_effects import (
    EVERY,
    Study,
    direct,
    head_fits,
    heads_and_mlps,
    joint,
    patched,
    study,
    sum_part,
    total,
)

NUMBERS = ("a", "b", "a b", "a+b")  # whose helices are fitted
WAYS = ("a+b", "a b", "9 components", "27 components")  # in which the last token is described
READERS_FROM = Fraction(19, 28)  # source 001: the MLPs 19 to 27 of 28 read the answer out


def first_reader(n_layers: int) -> int:
    """The layer that stands where layer 19 of 28 does.

    >>> [first_reader(L) for L in (3, 6, 12, 28)]
    [2, 4, 8, 19]
    """
    return round(READERS_FROM * n_layers)


@torch.no_grad()
def measure(model: Decoder, data_seed: int) -> dict[str, np.ndarray]:
    """Everything that chapter 56 shows of one model; data_seed says which pairs it was trained on.

    Effects on the last token: head_total, head_direct (L, H), mlp_total, mlp_direct, attention_total,
    attention_direct (L,), all_direct (2,) of all MLPs and of all attention together; head_curve (L H,) and
    mlp_curve (L,), the shares that the strongest have together, in the order head_order and mlp_order.
    What is where: head_fits (L, H, 2) as `head_fits`; fits (L, 4) R^2 of the helices of `NUMBERS` after each layer,
    and shuffled (L, 4) with all pairs in random order; by_mlp (L,) the part of the circles of a + b there that MLPs
    have written; kept (L, 4) what each of `WAYS` keeps of the effect; sums_read (L,) as `sum_part`, of each MLP.
    """
    s = study(model, data_seed)
    heads, mlps = heads_and_mlps(model)
    H = model.config.n_heads
    attention = [heads[H * layer : H * (layer + 1)] for layer in range(len(mlps))]
    head_total, mlp_total = (np.array([total(s, place) for place in places]) for places in (heads, mlps))
    found = {
        "head_total": head_total.reshape(-1, H),
        "head_direct": np.array([direct(s, place) for place in heads]).reshape(-1, H),
        "mlp_total": mlp_total,
        "mlp_direct": np.array([direct(s, place) for place in mlps]),
        "attention_total": np.array([total(s, *places) for places in attention]),
        "attention_direct": np.array([direct(s, *places) for places in attention]),
        "all_direct": np.array([direct(s, *mlps), direct(s, *heads)]),
        "head_fits": np.array([head_fits(s, place) for place in heads]).reshape(-1, H, 2),
        "sums_read": np.array([sum_part(s, f"{layer}.mlp_pre") for layer in range(len(mlps))]),
    }
    for name, places, alone in (("head", heads, head_total), ("mlp", mlps, mlp_total)):
        ranked, found[f"{name}_curve"] = joint(s, places, alone)
        found[f"{name}_order"] = np.array([places.index(place) for place in ranked])
    return found | by_level(s)


def by_level(s: Study) -> dict[str, np.ndarray]:
    """The part of `measure` that follows the last token: fits, shuffled, by_mlp and kept, after each layer."""
    levels = range(1, s.model.config.n_layers + 1)
    order = torch.randperm(len(EVERY), generator=torch.Generator().manual_seed(0))
    circles, columns = interaction_waves(EVERY, s.periods), [helices(EVERY, s.periods, of) for of in NUMBERS]

    def fitted(level, order):
        return [float(share(s.last[f"resid.{level}"], x[order], s.seen)) for x in columns]

    def by_mlp(level):
        parts = [f"{layer}.{part}" for layer in range(level) for part in ("attn_out", "mlp_out")]
        written = writers({name: s.last[name] for name in parts}, circles)
        return sum(written[name] for name in parts if name.endswith("mlp_out"))

    kept = [patched(s, level) for level in levels]
    return {
        "fits": np.array([fitted(level, slice(None)) for level in levels]),
        "shuffled": np.array([fitted(level, order) for level in levels]),
        "by_mlp": np.array([by_mlp(level) for level in levels]),
        "kept": np.array([[of[way] for way in WAYS] for of in kept]),
    }
