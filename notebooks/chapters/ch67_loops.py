"""What a looped model's state does under more loops, what it knows of places, and what chance adds (chapter 67).

Dimensions: B texts, T tokens, N digits of all texts, D d_model, R loops, A addresses.
"""

import copy
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from arithlib.experiments.abacus import AbacusExperiment
from arithlib.models.looped import KeyValueCache, LoopedTransformer
from arithlib.models.positions import addresses


@torch.no_grad()
def states(
    model: LoopedTransformer, tokens: Tensor, loops: int, offset: Tensor | None = None, inject: bool = True
) -> Tensor:
    """(R + 1, B, T, D) residual stream: the input, and after each of R loops.

    inject: False cuts input injection off, in a model that was trained with it; its first loop is as it was.
    """
    config = model.config
    if not inject:
        model.config = replace(config, injection="none")
    try:
        e, placed = model.embed(tokens, offset)
        return torch.stack([e, *model.states(e, placed, loops)])
    finally:
        model.config = config


def relative_steps(path: Tensor) -> Tensor:
    """(R + 1, B, T, D) -> (R,) mean over tokens of how far a loop moves the state, as a share of its norm before."""
    return ((path[1:] - path[:-1]).norm(dim=-1) / path[:-1].norm(dim=-1)).mean((1, 2))


class LinearProbe:
    """Ridge regression onto one-hot labels, after scaling each coordinate: reads a label as the largest output."""

    def __init__(self, x: Tensor, label: Tensor, ridge: float = 1.0):
        """x: (N, D) states. label: (N,) from 0 to A - 1. ridge: in units of one example's squared scaled state."""
        x = x.double()
        self.mean, self.deviation = x.mean(0), x.std(0).clamp(min=1e-9)
        z = self._scaled(x)
        wanted = torch.nn.functional.one_hot(label).double()
        eye = torch.eye(z.shape[1], dtype=torch.double)
        self.weight = torch.linalg.solve(z.T @ z + ridge * eye, z.T @ wanted)

    def _scaled(self, x):
        z = (x.double() - self.mean) / self.deviation
        return torch.cat([z, torch.ones_like(z[:, :1])], 1)

    def share_right(self, x: Tensor, label: Tensor) -> float:
        """Of (N, D) states, the share whose label is read right."""
        return float(((self._scaled(x) @ self.weight).argmax(1) == label).double().mean())


def digit_states(
    experiment: AbacusExperiment, model: LoopedTransformer, count: int, loops: int, seed: int, inject: bool = True
) -> tuple[Tensor, Tensor]:
    """States (R + 1, N, D) of the digits of sums of the longest operands under random offsets, and (N,) addresses."""
    generator, task = torch.Generator().manual_seed(seed), experiment.task
    tokens = task.problems(torch.full((count, 2), task.max_digits), generator).tokens
    offset = torch.randint(experiment.offsets.k, (count, 1), generator=generator)
    is_digit = tokens < 10
    return states(model, tokens, loops, offset, inject)[:, is_digit], addresses(tokens, offset)[is_digit]


def addresses_read(
    experiment: AbacusExperiment, model: LoopedTransformer, count: int, loops: int, inject: bool = True
) -> list[float]:
    """(R + 1) shares of addresses that a probe reads right, from the input and after each loop.

    It learns from so many sums and is tested on as many others.
    """
    halves = (digit_states(experiment, model, count, loops, seed, inject) for seed in (2, 3))
    (seen, label), (unseen, asked) = halves
    return [LinearProbe(x, label).share_right(y, asked) for x, y in zip(seen, unseen, strict=True)]


def unrolled(model: LoopedTransformer) -> LoopedTransformer:
    """The stack without loops that computes the same: n_layers n_loops layers, each with its own copy of the weights.

    Raises ValueError for a model with injection between its loops, whose stack would need it too.
    """
    c = model.config
    if c.injection == "loop" or c.n_ends:
        raise ValueError(f"injection = {c.injection!r}, n_ends = {c.n_ends}: only a bare loop has a plain stack")
    stack = LoopedTransformer(replace(c, n_layers=c.n_layers * c.n_loops, n_loops=1))
    weights = {name: value for name, value in model.state_dict().items() if not name.startswith("layers.")}
    for loop in range(c.n_loops):
        for name, value in model.layers.state_dict().items():
            layer, rest = name.split(".", 1)
            weights[f"layers.{loop * c.n_layers + int(layer)}.{rest}"] = value
    stack.load_state_dict(weights)
    return stack


@torch.no_grad()
def write(
    model: LoopedTransformer,
    prompts: Tensor,
    steps: int,
    end: int,
    temperature: float = 0.0,
    generator: torch.Generator | None = None,
    loops: int | None = None,
    copies: int = 1,
) -> Tensor:
    """(B, T) prompts -> (B, steps) tokens: the most likely ones at temperature 0, else drawn; after `end`, `end`.

    copies: answers to each prompt, which is read once, one after another: (B copies, steps).
    """
    store = KeyValueCache(prompts.shape[1] + steps)
    logits = model(prompts, loops=loops, cache=store)[:, -1].repeat_interleave(copies, 0)
    store.repeat(copies)
    tokens, done = prompts.repeat_interleave(copies, 0), torch.zeros(len(logits), dtype=torch.bool)
    for step in range(steps):
        if step > 0:
            logits = model(tokens, loops=loops, cache=store)[:, -1]
        if temperature == 0:
            chosen = logits.argmax(-1)
        else:
            likely = (logits.double() / temperature).softmax(-1)
            chosen = torch.multinomial(likely, 1, generator=generator)[:, 0]
        chosen = torch.where(done, end, chosen)
        tokens, done = torch.cat([tokens, chosen[:, None]], 1), done | (chosen == end)
    return tokens[:, prompts.shape[1] :]


def share_alike(answers: Sequence[Tensor]) -> float:
    """Several (B, M) answers to the same B questions -> the share of questions with one and the same every time."""
    first = answers[0]
    return float(torch.stack([(other == first).all(1) for other in answers]).all(0).double().mean())


@torch.no_grad()
def logits_in(
    model: LoopedTransformer, tokens: Tensor, *, batch: int, dtype: torch.dtype = torch.float32, threads: int = 1
) -> Tensor:
    """(B, T) tokens -> (B, T, V) logits, `batch` texts at once, in this precision, by so many threads.

    The model and the number of threads stay as they are.
    """
    # A copy: weights that have been rounded to half precision do not come back.
    other, before = copy.deepcopy(model).to(dtype), torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return torch.cat([other(part) for part in tokens.split(batch)])
    finally:
        torch.set_num_threads(before)
