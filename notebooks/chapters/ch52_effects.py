"""What heads, MLPs and neurons of a decoder are worth on the last token, for any number of layers (chapters 52, 56).

A study is a model together with what was seen in it on all pairs of numbers and on some pairs of prompts. Places are
(name of an activation, where after the batch dimension), as `chapters.ch52_clock.together` takes them. Effects are
means over the study's pairs of prompts.

Dimensions: B pairs of numbers, or of prompts, D d_model, L layers, H heads, K places.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from arithlib.analysis.patching import Pairs, Where, effect, put, strongest_periods, total_effect
from arithlib.models.decoder import Decoder
from arithlib.tasks.prompts import Sums, prompt
from chapters.ch52_clock import fit, helices, share, together, waves

EVERY = Sums().pairs  # (10000, 2), a slowest
Place = tuple[str, Where]


@dataclass(frozen=True)
class Study:
    """A decoder on all pairs.

    seen: (B,) which pairs it was trained on. periods: those that explain most of its number embeddings.
    last: by name, what is on the last token of each pair, (B, ...). pairs, clean: pairs of held-out prompts for
    patching, and which rows the clean ones are. at_clean, at_corrupted: every activation on them.
    """

    model: Decoder
    seen: Tensor
    periods: Sequence[float]
    last: Mapping[str, Tensor]
    pairs: Pairs
    clean: Tensor
    at_clean: Mapping[str, Tensor]
    at_corrupted: Mapping[str, Tensor]


@torch.no_grad()
def study(model: Decoder, data_seed: int, n_periods: int = 4, n_pairs: int = 100) -> Study:
    """Run the model on every pair. n_periods, n_pairs: as many as in source 001."""
    seen, generator = Sums(data_seed=data_seed).train_mask, torch.Generator().manual_seed(data_seed)
    prompts, sums = prompt(*EVERY.T), EVERY.sum(1)
    pieces = [
        {name: x[:, -1].clone() for name, x in model(part, return_activations=True)[1].items() if _by_token(name)}
        for part in prompts.split(1000)
    ]
    last = {name: torch.cat([piece[name] for piece in pieces]) for name in pieces[0]}
    test = (~seen).nonzero()[torch.randperm(int((~seen).sum()), generator=generator), 0]
    clean, corrupted = test[:n_pairs], test[n_pairs : 2 * n_pairs]
    pairs = Pairs(prompts[clean], prompts[corrupted], sums[clean])
    periods = strongest_periods(model.W_E[:100], torch.arange(100), n_periods)
    inside = [model(part, return_activations=True)[1] for part in (pairs.clean, pairs.corrupted)]
    return Study(model, seen, periods, last, pairs, clean, *inside)


def _by_token(name: str) -> bool:
    return not name.endswith((".scores", ".pattern", ".q", ".k", ".v", ".normed"))


# ---- effects of parts --------------------------------------------------------------------------------------------


def heads_and_mlps(model: Decoder) -> tuple[list[Place], list[Place]]:
    """Every head (L H, layer by layer) and every MLP (L) on the last token."""
    layers = range(model.config.n_layers)
    heads = [(f"{layer}.z", (-1, head)) for layer in layers for head in range(model.config.n_heads)]
    return heads, [(f"{layer}.mlp_out", (-1,)) for layer in layers]


def change(s: Study, place: Place) -> Tensor:
    """(B, D) how what a head or MLP writes to the last token differs between clean and corrupted prompt."""
    name, where = place
    moved = (s.at_clean[name] - s.at_corrupted[name])[:, *where]
    return moved if name.endswith("mlp_out") else moved @ s.model.blocks[int(name.split(".")[0])].W_O[where[1]]


@torch.no_grad()
def direct(s: Study, *places: Place) -> float:
    """Effect of what these write into the final vector, and of nothing that comes of it before: path patching."""
    moved = sum(change(s, place) for place in places)
    edits = {f"resid.{s.model.config.n_layers}": lambda x: x + moved[:, None]}
    return float(effect(s.model, s.pairs, edits).mean())


def total(s: Study, *places: Place) -> float:
    """Effect of these together by every path: activation patching."""
    return float(effect(s.model, s.pairs, together(s.at_clean, places)).mean())


def joint(s: Study, places: Sequence[Place], alone: np.ndarray) -> tuple[list[Place], np.ndarray]:
    """Places by their effects alone (K,), strongest first, and the share of all places' effect that the first 1, 2,
    3, ... of them have together (K,)."""
    ranked = [places[i] for i in np.argsort(-alone)]
    effects = np.array([total(s, *ranked[: k + 1]) for k in range(len(ranked))])
    return ranked, effects / effects[-1]


def needed(curve: np.ndarray, part: float) -> int:
    """How many it takes until a curve of `joint` first has this part of the effect of all.

    >>> needed(np.array([0.5, 0.85, 0.7, 1.0]), 0.8)
    2
    """
    return int((curve >= part).argmax()) + 1


def head_fits(s: Study, place: Place) -> tuple[float, float]:
    """R^2 of the helices of a and b, and of the helix of a + b, for what a head reads, on held-out pairs."""
    name, (_, head) = place
    ab, ab_sum = (float(share(s.last[name][:, head], helices(EVERY, s.periods, of), s.seen)) for of in ("a b", "a+b"))
    return ab, ab_sum


def kind_of_head(fits: tuple[float, float]) -> str:
    """Of what `head_fits` finds: "ab", "sum", or "mixed" if neither is twice the other.

    >>> kind_of_head((0.9, 0.3)), kind_of_head((0.1, 0.4)), kind_of_head((0.5, 0.4))
    ('ab', 'sum', 'mixed')
    """
    ab, ab_sum = fits
    return "ab" if ab > 2 * ab_sum else "sum" if ab_sum > 2 * ab else "mixed"


# ---- what the last token is, and what neurons read ---------------------------------------------------------------


def components(x: Tensor, seen: Tensor, count: int) -> Tensor:
    """Vectors (B, D) reduced to their first principal components, found where `seen` (B,)."""
    centre = x[seen].mean(0)
    axes = torch.linalg.svd(x[seen] - centre, full_matrices=False)[2][:count]
    return centre + (x - centre) @ axes.T @ axes


def patched(s: Study, level: int) -> dict[str, float]:
    """After so many layers, the share of the effect of the last token's whole vector that each description keeps."""
    x, name = s.last[f"resid.{level}"], f"resid.{level}"
    ways = {of: fit(x, helices(EVERY, s.periods, of), s.seen) for of in ("a b", "a+b")}
    ways |= {f"{count} components": components(x, s.seen, count) for count in (9, 27)}
    whole = float(total_effect(s.model, s.pairs, name, -1).mean())
    return {
        way: float(effect(s.model, s.pairs, {name: put(v[s.clean], -1)}).mean()) / whole for way, v in ways.items()
    }


def sum_part(s: Study, name: str) -> float:
    """Mean over neurons of the size of the waves of a + b in the fit of the input, over that of all waves.

    name: of their inputs, as "1.mlp_pre".
    """
    groups = [waves(n, s.periods) for n in (*EVERY.T, EVERY.sum(1))]
    design = torch.cat([torch.ones(len(EVERY), 1), EVERY / 99, *groups], 1)
    weights = torch.linalg.pinv(design[s.seen]) @ s.last[name][s.seen].double()
    sizes = [(g @ w).std(0) for g, w in zip(groups, weights[3:].split([g.shape[1] for g in groups]), strict=True)]
    return float((sizes[2] / sum(sizes)).mean())
