"""The Clock in a model of plain sums: who makes the circles of a + b, and out of what (chapter 52).

The circle of a + b is made of products: cos w(a + b) = cos wa cos wb - sin wa sin wb (Nanda et al. 2023, section 4.1;
Kantamneni and Tegmark 2025, section 5). Numbers from 0 to 99 do not wrap round, and a model's periods need not divide
the range, so that waves are not orthogonal here and no Fourier transform takes them apart. Everything is least
squares over pairs instead. What a sum f(a) + g(b) of any two functions can say is exactly the row and column means of
a grid, whatever the periods; what is left over is an interaction, and only products make one.

Dimensions: B pairs of numbers (A x A of them for a grid, a slowest), T tokens, H heads, D the space of an activation,
F neurons, C columns (functions of a pair), V answers.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch import Tensor

from arithlib.analysis.helix import helix_columns, orthonormal
from arithlib.analysis.patching import Where, put

Edit = Callable[[Tensor], Tensor]

# ---- functions of a pair -----------------------------------------------------------------------------------------


def waves(n: Tensor, periods: Sequence[float]) -> Tensor:
    """(B,) -> (B, C) cosine and sine of each period; of period 2 the cosine only."""
    return helix_columns(n, periods, line=False)


def helices(pairs: Tensor, periods: Sequence[float], of: str = "a b a+b") -> Tensor:
    """(B, 2) pairs -> (B, C) helices of the numbers named, side by side: any of a, b, a+b, a-b, between spaces.

    The line of a + b is the sum of those of a and b; fits by least squares do not mind.

    >>> helices(torch.tensor([[1, 2], [3, 4]]), [4], "a+b").round(decimals=2) + 0.0
    tensor([[ 0.4300,  0.0000, -1.0000],
            [ 1.0000,  0.0000, -1.0000]], dtype=torch.float64)
    """
    return torch.cat([helix_columns(_number(pairs, name), periods) for name in of.split()], -1)


def interaction_waves(pairs: Tensor, periods: Sequence[float], of: str = "a+b") -> Tensor:
    """(A * A, 2) all pairs -> (A * A, C) waves of a + b or a - b, less what f(a) + g(b) can say of them."""
    return interaction(waves(_number(pairs, of), periods))


def _number(pairs: Tensor, name: str) -> Tensor:
    a, b = pairs.T
    numbers = {"a": a, "b": b, "a+b": a + b, "a-b": a - b}
    if name not in numbers:
        raise ValueError(f"no number of a pair is called {name!r}; there are: {', '.join(numbers)}")
    return numbers[name]


# ---- sums and products -------------------------------------------------------------------------------------------


def additive(x: Tensor) -> Tensor:
    """(A * A, ...) a function of all pairs, a slowest -> the same shape: the nearest sum f(a) + g(b).

    Nearest by least squares: row mean plus column mean minus mean. Raises ValueError if the rows are no square grid.
    """
    side = round(len(x) ** 0.5)
    if side * side != len(x):
        raise ValueError(f"{len(x)} rows: a grid of all pairs has a square number of them")
    grid = x.unflatten(0, (side, side))
    return (grid.mean(1, keepdim=True) + grid.mean(0, keepdim=True) - grid.mean((0, 1))).flatten(0, 1)


def interaction(x: Tensor) -> Tensor:
    """(A * A, ...) a function of all pairs, less the nearest sum f(a) + g(b): what only products can make.

    >>> a, b = torch.cartesian_prod(torch.arange(3.0), torch.arange(3.0)).T
    >>> interaction((a - 1) ** 3 + b.exp()).abs().max() < 1e-5, interaction(a * b).abs().max()
    (tensor(True), tensor(1.))
    """
    return x - additive(x)


# ---- least squares over pairs ------------------------------------------------------------------------------------


def fit(x: Tensor, columns: Tensor, seen: Tensor | None = None) -> Tensor:
    """(B, D) as functions of the pair (B, C) and a constant describe it, fitted where `seen` (B,), float64."""
    design = torch.cat([torch.ones(len(columns), 1, dtype=torch.float64), columns.double()], 1)
    seen = torch.ones(len(x), dtype=torch.bool) if seen is None else seen
    return design @ (torch.linalg.pinv(design[seen]) @ x[seen].double())


def share(x: Tensor, columns: Tensor, seen: Tensor, each: bool = False) -> Tensor:
    """() share of the variance of x (B, D) at the pairs not `seen` (B,) that a fit to the seen ones explains.

    each: (D,) for every entry by itself; nan where one does not vary.
    """
    away = (x.double() - fit(x, columns, seen))[~seen].square().sum(0)
    about = (x[~seen].double() - x[~seen].double().mean(0)).square().sum(0)
    return 1 - away / about.where(about > 1e-12 * about.max(), torch.nan) if each else 1 - away.sum() / about.sum()


def kinds_of_variance(x: Tensor, pairs: Tensor, periods: Sequence[float]) -> dict[str, float]:
    """Shares of the variance of x (A * A, D): a sum f(a) + g(b), then by kind what is left over; they add up to 1.

    "a+b" are the products that make waves of a + b at the given periods, "a-b" those of a - b (what of them is not
    waves of a + b), and "rest" every other dependence on both numbers.
    """
    x = x.double() - x.double().mean(0)
    left = interaction(x)
    both = [interaction_waves(pairs, periods, of) for of in ("a+b", "a-b")]
    by_sum = orthonormal(both[0])
    by_either = orthonormal(torch.cat(both, 1))
    power = [float((directions.T @ left).square().sum()) for directions in (by_sum, by_either)]
    total, product = float(x.square().sum()), float(left.square().sum())
    parts = {"f(a)+g(b)": total - product, "a+b": power[0], "a-b": power[1] - power[0], "rest": product - power[1]}
    return {kind: part / total for kind, part in parts.items()}


def writers(parts: Mapping[str, Tensor], columns: Tensor) -> dict[str, float]:
    """How much of the columns' part of a sum each of its parts has written: {name: share}, adding up to 1.

    parts: (B, D) each, as what heads and MLPs write to a residual stream. The component of the whole sum along the
    columns (B, C) is the sum of those of the parts; a part's share is its projection on the whole. It is negative for
    one that writes against the others.
    """
    directions = orthonormal(columns)
    components = {name: directions.T @ part.double() for name, part in parts.items()}
    whole = sum(components.values())
    return {name: float((part * whole).sum() / whole.square().sum()) for name, part in components.items()}


# ---- periods and logits ------------------------------------------------------------------------------------------


def frequency_shares(x: Tensor, n: Tensor, frequencies: Tensor) -> Tensor:
    """(B, F), (B,) whole numbers, (f,) turns a number -> (f, F) share of each entry's variance one wave explains.

    A wave is a cosine and a sine, beside a line: what the line explains is taken out of both, but not out of the
    variance. With n = a + b it is the source's Fourier transform over the sum.
    """
    levels, index, counts = torch.unique(n, return_inverse=True, return_counts=True)
    x = x.double() - x.double().mean(0)
    sums = torch.zeros(len(levels), x.shape[1], dtype=torch.float64).index_add(0, index, x)
    root = counts.double().sqrt()[:, None]  # a mean over many pairs weighs more
    line = torch.linalg.qr(torch.cat([torch.ones_like(root), levels[:, None].double()], 1) * root)[0]
    left = sums / root - line @ (line.T @ (sums / root))
    angle = 2 * torch.pi * frequencies[:, None].double() * levels
    wave = torch.stack([angle.cos(), angle.sin()], -1) * root  # (f, levels, 2)
    wave = torch.linalg.qr(wave - line @ (line.T @ wave))[0]
    return (wave.mT @ left).square().sum(1) / x.square().sum(0).clamp_min(1e-30)


def one_period_shares(x: Tensor, frequencies: Tensor) -> Tensor:
    """(A * A, F) over all pairs -> (f, F) share of each entry's variance that one period explains.

    A period owns eight functions: its cosine and sine in a, in b, and their four products. They are the products of
    {1, cos, sin} of a with those of b, and an orthonormal basis of these three numbers' functions gives one of all
    nine, whether or not the period divides the range. `arithlib.analysis.neurons.frequency_variance` is the same
    where it does.
    """
    side = round(len(x) ** 0.5)
    grid = (x.double() - x.double().mean(0)).unflatten(0, (side, side))
    angle = 2 * torch.pi * frequencies[:, None].double() * torch.arange(side)
    basis = torch.linalg.qr(torch.stack([torch.ones_like(angle), angle.cos(), angle.sin()], -1))[0].mT  # (f, 3, A)
    along_a = (basis.flatten(0, 1) @ grid.flatten(1)).view(*basis.shape, -1)  # (f, 3, A, F), all frequencies at once
    power = torch.stack(
        [torch.einsum("jb,ibf->ijf", Q, x).square().sum((0, 1)) for Q, x in zip(basis, along_a, strict=True)]
    )
    return power / grid.square().sum((0, 1)).clamp_min(1e-30)


def clock_share(logits: Tensor, pairs: Tensor, periods: Sequence[float]) -> float:
    """Share of the variance of logits (B, V) of the answers 0 to V - 1 that a Clock explains, by least squares.

    A Clock is a weighted sum of cos 2 pi (a + b - c) / T over its periods, one weight each. Logits and Clock are
    centred over answers, since a softmax ignores what all answers have in common.
    """
    sums, index, counts = torch.unique(pairs.sum(1), return_inverse=True, return_counts=True)
    y = logits.double() - logits.double().mean(1, keepdim=True)
    away = sums[:, None] - torch.arange(y.shape[1])
    template = torch.stack([(2 * torch.pi * away.double() / T).cos() for T in periods])
    template -= template.mean(-1, keepdim=True)
    by_sum = torch.zeros(len(sums), y.shape[1], dtype=torch.float64).index_add(0, index, y)
    along = torch.einsum("msv,sv->m", template, by_sum)
    gram = torch.einsum("msv,nsv,s->mn", template, template, counts.double())
    return float(along @ torch.linalg.solve(gram, along) / y.square().sum())


# ---- edits -------------------------------------------------------------------------------------------------------


def together(values: Mapping[str, Tensor], places: Iterable[tuple[str, Where]]) -> dict[str, Edit]:
    """Edits that set every place (name, where after the batch dimension) to what `values` has there, all at once."""
    edits: dict[str, Edit] = {}
    for name, where in places:
        index = where if isinstance(where, tuple) else (where,)
        new, before = put(values[name][(slice(None), *index)], index), edits.get(name, lambda x: x)
        edits[name] = lambda x, new=new, before=before: new(before(x))
    return edits


def without(x: Tensor, columns: Tensor, variance: float | None = None) -> Tensor:
    """(B, D) less its part along functions of the pair (B, C); every mean stays.

    variance: how much of x to take away, summed over pairs and entries; None for all that is along the columns.
    Where there is less, all is taken.
    """
    directions = orthonormal(columns)
    part = directions @ (directions.T @ x.double())
    if variance is not None:
        part *= (variance / part.square().sum().clamp_min(1e-30)).sqrt().clamp_max(1)
    return (x.double() - part).to(x.dtype)


def straightened(activations: Mapping[str, Tensor], n_layers: int) -> dict[str, dict[str, Edit]]:
    """Edits of a decoder that take one kind of nonlinearity out of all its layers: {kind: edits}.

    "GELU": each neuron has at each token the straight line that fits best. "softmax": each prompt has the mean
    attention pattern, so that it no longer multiplies the values. "layer norm": each token is divided by the mean of
    its lengths and not by its own. Means and lines are those of `activations`, of the untouched model over many
    prompts. With all three, what enters the unembedding is a sum f(a) + g(b).
    """
    kinds: dict[str, dict[str, Edit]] = {"GELU": {}, "softmax": {}, "layer norm": {}}
    for layer in range(n_layers):
        mean = activations[f"{layer}.pattern"].mean(0)
        kinds["GELU"] |= _straight_neurons(layer, activations[f"{layer}.mlp_pre"], activations[f"{layer}.mlp_post"])
        kinds["softmax"][f"{layer}.pattern"] = lambda x, mean=mean: mean.expand_as(x)
        kinds["layer norm"] |= _straight_norm(layer, activations[f"resid.{layer}"])
    return kinds


def _straight_neurons(layer: int, pre: Tensor, post: Tensor) -> dict[str, Edit]:
    centre, level, inputs = pre.mean(0), post.mean(0), {}
    slope = ((pre - centre) * post).mean(0) / (pre - centre).square().mean(0).clamp_min(1e-12)
    return {
        f"{layer}.mlp_pre": lambda x: inputs.update(x=x) or x,
        f"{layer}.mlp_post": lambda x: level + slope * (inputs["x"] - centre),
    }


def _straight_norm(layer: int, resid: Tensor) -> dict[str, Edit]:
    scale, inputs = (resid.var(-1, correction=0) + 1e-5).sqrt().mean(0)[:, None], {}
    return {
        f"resid.{layer}": lambda x: inputs.update(x=x) or x,
        f"{layer}.normed": lambda x: (inputs["x"] - inputs["x"].mean(-1, keepdim=True)) / scale,
    }
