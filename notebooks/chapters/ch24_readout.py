"""How the neurons read the answer out: affine stand-ins, the hand of one clock, neurons as a few waves (chapter 24).

Dimensions: P residues, D d_model, F neurons. Grids are indexed (a, b, ...); a frequency k has w = 2 pi k / P.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from arithlib.analysis.fourier import fourier_basis, n_frequencies, wave_rows
from arithlib.training import subnormals_as_zero


def affine_stand_in(x: Tensor, y: Tensor) -> Tensor:
    """What the best affine map of x (P, P, D) makes of y (P, P, F): least squares over all pairs, in the shape of y.

    Least squares commutes with linear maps of y: the stand-in of the neurons, read out by W_out, is the stand-in of
    the layer's output.
    """
    inputs, outputs = x.flatten(0, 1), y.flatten(0, 1)
    mean = outputs.mean(0)
    # gelsd: the columns of x may be dependent, and are nearly so in a model that uses few of its dimensions.
    weights = torch.linalg.lstsq(inputs - inputs.mean(0), outputs - mean, driver="gelsd").solution
    return ((inputs - inputs.mean(0)) @ weights + mean).view_as(y)


def principal_directions(grid: Tensor) -> tuple[Tensor, Tensor]:
    """(P, P, D) -> (D,) share of the variance over all pairs, descending, and (D, D) the directions as columns."""
    points = grid.flatten(0, 1) - grid.mean((0, 1))
    variance, directions = torch.linalg.eigh(points.T @ points)
    return (variance / variance.sum()).flip(0), directions.flip(1)


def keep_principal(grid: Tensor, ranks: Iterable[int], pairs: tuple) -> Iterator[Tensor]:
    """Of (P, P, D) only its mean and its first `rank` principal directions, at some pairs: (N, D) for each rank.

    pairs: what indexes the first two dimensions, (N,) a and (N,) b.
    """
    directions, mean = principal_directions(grid)[1], grid.mean((0, 1))
    points = grid[pairs] - mean
    for rank in ranks:
        basis = directions[:, :rank]
        yield points @ basis @ basis.T + mean


@subnormals_as_zero()
def affine_classifier(x: Tensor, answers: Tensor, steps: int = 200) -> Tensor:
    """(N, P) logits of the affine map of x (N, D) with the lowest cross-entropy on answers (N,).

    Convex, so there is one best loss; `steps` of L-BFGS come close to it. Columns of x are scaled to variance one.
    """
    inputs = (x - x.mean(0)) / x.std(0)
    inputs = torch.cat([inputs, torch.ones_like(inputs[:, :1])], 1).float()
    weights = torch.zeros(inputs.shape[1], int(answers.max()) + 1, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=steps, history_size=20, line_search_fn="strong_wolfe")

    def loss():
        optimizer.zero_grad()
        value = torch.nn.functional.cross_entropy(inputs @ weights, answers)
        value.backward()
        return value

    optimizer.step(loss)
    return (inputs @ weights).detach()


def answer_means(grid: Tensor) -> Tensor:
    """(P, P, F) -> (P, F) mean over all pairs with the same sum: row c is what the answer c looks like."""
    p = len(grid)
    n = torch.arange(p)
    return torch.stack([grid[n, (c - n) % p].mean(0) for c in range(p)])


def clock_hand(logits: Tensor, frequency: int) -> Tensor:
    """(P, P, P) logits -> (P, P) complex hand of one clock, turned so that 0 rad is the right answer.

    Of each pair's logits only the wave at `frequency` is kept: |hand| cos(w (a + b - c) + angle). Read from this
    clock alone, the answer is right if the angle is below half a mark, pi / P.
    """
    p = len(logits)
    if not 1 <= frequency <= n_frequencies(p):
        raise ValueError(f"frequency {frequency}: at p = {p} frequencies run from 1 to {n_frequencies(p)}")
    n = torch.arange(p)
    turn = torch.exp(2j * torch.pi * frequency * n.double() / p)
    return logits.to(torch.complex128) @ turn * (2 / p) * turn.conj()[(n[:, None] + n) % p]


def over_difference(grid: Tensor, frequency: int) -> tuple[Tensor, Tensor]:
    """Mean of a (P, P) grid over pairs with the same a - b, by the angle w (a - b).

    Angles are folded to 0..pi, which a function symmetric in a and b allows: (P + 1) / 2 angles and means.
    """
    p = len(grid)
    n = torch.arange(p)
    means = torch.stack([grid[(n + d) % p, n].mean() for d in range(p)])
    step = torch.arange((p + 1) // 2)
    difference = step * pow(frequency, -1, p) % p  # frequency * difference = step (mod p)
    return 2 * torch.pi * step.double() / p, (means[difference] + means[-difference % p]) / 2


@dataclass(frozen=True)
class WaveNeurons:
    """Neurons reduced to ten numbers each, a field an (F,) tensor; phases in radians.

    Before the ReLU a neuron hears, and for the logit of c it is read by::

        bias + gain (cos(w a + phase) + cos(w b + phase))
             + product cos(w (a + b) + product_phase) + difference cos(w (a - b))
             + overtone (cos(2 w a + overtone_phase) + cos(2 w b + overtone_phase))

        read cos(w c + read_phase)

    These are all the waves that a wave at w and its square have in a model that treats a and b alike.
    """

    p: int
    frequency: Tensor
    bias: Tensor
    gain: Tensor
    phase: Tensor
    product: Tensor
    product_phase: Tensor
    difference: Tensor
    overtone: Tensor
    overtone_phase: Tensor
    read: Tensor
    read_phase: Tensor

    def mlp_pre(self) -> Tensor:
        """(P, P, F) the neurons before their ReLU."""
        angle = 2 * torch.pi / self.p * self.frequency.double() * torch.arange(self.p)[:, None]
        single = self.gain * (angle + self.phase).cos() + self.overtone * (2 * angle + self.overtone_phase).cos()
        of_sum = self.product * (angle + self.product_phase).cos()
        of_difference = self.difference * angle.cos()
        n = torch.arange(self.p)
        mixed = of_sum[(n[:, None] + n) % self.p] + of_difference[(n[:, None] - n) % self.p]
        return self.bias + single[:, None] + single + mixed

    def W_L(self) -> Tensor:
        """(F, P) what each neuron adds to the logit of each residue."""
        w = 2 * torch.pi * self.frequency.double() / self.p
        c = torch.arange(self.p, dtype=torch.float64)
        return self.read[:, None] * (w[:, None] * c + self.read_phase[:, None]).cos()

    def logits(self) -> Tensor:
        """(P, P, P) logits of these neurons alone: no embedding, no attention, no residual stream."""
        return self.mlp_pre().relu() @ self.W_L()


def distil(mlp_pre: Tensor, W_L: Tensor) -> WaveNeurons:
    """Least-squares `WaveNeurons` for (P, P, F) neurons before their ReLU and their (F, P) effect on the logits.

    A neuron's frequency is the one at which W_L reads it most.
    """
    p = len(mlp_pre)
    waves = (W_L.detach().double() @ fourier_basis(p).T)[:, wave_rows(range(1, n_frequencies(p) + 1))]
    waves = waves.unflatten(1, (-1, 2)) * (2 / p) ** 0.5  # coefficients of cos w c and sin w c
    best = waves.square().sum(-1).argmax(1)
    read, read_phase = _polar(*waves[torch.arange(len(best)), best].T)
    coefficients = torch.zeros(8, len(best), dtype=torch.float64)
    for k in (best.unique() + 1).tolist():
        mine = best + 1 == k
        columns = _design(p, k).flatten(1).T
        coefficients[:, mine] = torch.linalg.lstsq(columns, mlp_pre[..., mine].flatten(0, 1)).solution
    bias, difference = coefficients[[0, 1]]
    gain, phase = _polar(*coefficients[[2, 3]])
    product, product_phase = _polar(*coefficients[[4, 5]])
    overtone, overtone_phase = _polar(*coefficients[[6, 7]])
    return WaveNeurons(
        p, best + 1, bias, gain, phase, product, product_phase, difference, overtone, overtone_phase, read, read_phase
    )


def _design(p: int, frequency: int) -> Tensor:
    """(8, P, P) the waves of `WaveNeurons` at one frequency, cosine before sine."""
    w = 2 * torch.pi * frequency / p
    n = torch.arange(p, dtype=torch.float64)
    a, b = n[:, None], n[None, :]
    return torch.stack([
        torch.ones(p, p, dtype=torch.float64), (w * (a - b)).cos(),
        (w * a).cos() + (w * b).cos(), (w * a).sin() + (w * b).sin(),
        (w * (a + b)).cos(), (w * (a + b)).sin(),
        (2 * w * a).cos() + (2 * w * b).cos(), (2 * w * a).sin() + (2 * w * b).sin(),
    ])  # fmt: skip


def _polar(cosine: Tensor, sine: Tensor) -> tuple[Tensor, Tensor]:
    """x cos + y sin = r cos(. + phase): r and phase."""
    return torch.hypot(cosine, sine), torch.atan2(-sine, cosine)
