"""A grokking network folded: as little of it as a page can carry, and what a snapshot loses by that (chapter 11).

At '=', where the answer is read, matrices that act one after the other are one matrix, and hardly any of their
directions are in use once the network has grokked. While it still knows answers by heart, most are.

Dimensions: P residues, R = P + 1 tokens, H heads, F neurons, I and J kept directions, K key frequencies.
"""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from arithlib.analysis.circles import circle_plane
from arithlib.analysis.fourier import fourier_basis, frequencies, wave_rows
from arithlib.analysis.neurons import answer_grids

KEPT = 32  # directions of each of the two products of a network that has grokked; chapter 11 measures the change
LARGEST = 2**15 - 1


@dataclass(frozen=True)
class Folded:
    """A grokking network without positions, seen from '=', in as few numbers as a page can carry.

    scores: (R, H) what '=' gives each token before the softmax: x W_Q W_K x_= / sqrt(d_head).
    tokens, writes: (R, H, I) and (I, F + P); their product is what a head moves from a token into the neurons, and
    past them into the logits: x W_V W_O [W_in | W_U].
    constant: (F + P,) what is there before: x_= [W_in | W_U], and the biases.
    neurons, answers: (F, J) and (J, P); their product is W_L = W_out W_U.
    circles: (R, K, 2) each token in the plane of each key frequency of W_E, from the centre of the residues.

    All but `tokens`, `writes`, `neurons` and `answers` are exact.
    """

    scores: Tensor
    tokens: Tensor
    writes: Tensor
    constant: Tensor
    neurons: Tensor
    answers: Tensor
    circles: Tensor

    @property
    def p(self) -> int:
        """The modulus."""
        return len(self.scores) - 1

    def logits(self, pairs: Tensor) -> Tensor:
        """(B, 2) pairs -> (B, P) logits of the residues."""
        seen = torch.cat([pairs, torch.full_like(pairs[:, :1], self.p)], 1)
        pattern = self.scores[seen].softmax(1)  # (B, 3, H)
        read = torch.einsum("bth,bthi->bi", pattern, self.tokens[seen])
        mlp_pre, direct = (self.constant + read @ self.writes).tensor_split([len(self.neurons)], 1)
        return direct + mlp_pre.relu() @ self.neurons @ self.answers

    def without(self, freqs: Collection[int]) -> "Folded":
        """The network whose residue embeddings lack the waves at `freqs`.

        Everything that depends on a token is linear in its embedding, so the waves are taken out of the tables.
        Raises ValueError for a frequency that P residues do not have.
        """
        if not set(freqs) <= set(frequencies(self.p).tolist()):
            raise ValueError(f"frequencies {freqs}: at p = {self.p} they run from 1 to {(self.p - 1) // 2}")
        waves = fourier_basis(self.p)[wave_rows(freqs)]

        def less(table: Tensor) -> Tensor:
            residues = table[:-1].double()
            removed = torch.einsum("wr,ws,s...->r...", waves, waves, residues)
            return torch.cat([(residues - removed).to(table.dtype), table[-1:]])

        return replace(self, **{name: less(getattr(self, name)) for name in ("scores", "tokens", "circles")})


@torch.no_grad()
def pack(model, keys: Sequence[int], kept: tuple[int, int] = (KEPT, KEPT)) -> dict[str, Tensor]:
    """What a page carries of a `GrokkingTransformer`: the fields of `Folded`, the four factors in 16 bits.

    keys: the frequencies whose circles are shown. kept: I and J. Of what the heads move, the first singular
    directions are kept; of what the neurons add, those in which the logits move most over all pairs. A left factor
    consists of whole numbers, a right one of whole numbers times a scale for each direction. Raises ValueError for a
    model with positions or layer norm, or without ReLU.
    """
    c = model.config
    if c.positions != "none" or c.layer_norm or c.activation != "relu":
        raise ValueError(f"{c}: only the plain network, without positions and layer norm and with ReLU, is folded")
    W_E, W_O, W_U = (w.double() for w in (model.W_E, model.W_O, model.W_U[:, : c.p]))
    W_read = torch.cat([model.W_in.double(), W_U], 1)
    q = torch.einsum("d,hdk->hk", W_E[-1], model.W_Q.double())
    scores = torch.einsum("rd,hdk,hk->rh", W_E, model.W_K.double(), q) / c.d_head**0.5
    moved = torch.einsum("rd,hdk,hke->rhe", W_E, model.W_V.double(), W_O) @ W_read
    biases = torch.cat([model.b_in.double(), model.b_out.double() @ W_U])
    planes = torch.stack([circle_plane(model.W_E[: c.p], k) for k in keys])
    circles = torch.einsum("rd,kde->rke", W_E - W_E[: c.p].mean(0), planes)
    exact = {"scores": scores, "constant": W_E[-1] @ W_read + biases, "circles": circles}
    tokens, writes, writes_scale = _factors(moved.flatten(0, 1), kept[0])
    W_L, post = model.W_out.double() @ W_U, answer_grids(model)[1].flatten(0, 1).double()
    neurons, answers, answers_scale = _factors(W_L, kept[1], post @ W_L)
    return {name: table.float().contiguous() for name, table in exact.items()} | {
        "tokens": tokens.unflatten(0, (c.p + 1, c.n_heads)), "writes": writes, "writes.scale": writes_scale,
        "neurons": neurons, "answers": answers, "answers.scale": answers_scale,
    }  # fmt: skip


def _factors(matrix: Tensor, kept: int, moves: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """(m, n) -> whole left (m, kept) and right (kept, n), and (kept,) scales: left @ (scale right) is nearly it.

    moves: the (..., n) rows that the directions kept are to serve; None: those of the matrix.
    """
    right = torch.linalg.svd(matrix if moves is None else moves, full_matrices=False)[2][:kept]
    left = (matrix @ right.T).T
    units = [rows.abs().amax(1, keepdim=True) / LARGEST for rows in (left, right)]
    whole = [(rows / unit).round().short().contiguous() for rows, unit in zip((left, right), units, strict=True)]
    return whole[0].T.contiguous(), whole[1], (units[0] * units[1])[:, 0].float()


@torch.no_grad()
def pack_within(model, keys: Sequence[int], bound: float) -> dict[str, Tensor]:
    """As `pack`, with the fewest directions of each product that leave the logits within `bound`.

    That is, with the other product whole, they differ over all pairs and answers by at most this share of the spread
    of a pair's logits, root mean squares both.
    """
    p, most = model.config.p, (model.config.d_model, model.config.p)
    pairs = torch.combinations(torch.arange(p), with_replacement=True)
    logits = model.answer_logits(pairs)[:, :p]
    spread = (logits - logits.mean(1, keepdim=True)).square().mean().sqrt()
    whole = pack(model, keys, most)

    def cut(i, j):
        kept = {"tokens": (..., slice(i)), "neurons": (..., slice(j))}
        kept |= {name: slice(i) for name in ("writes", "writes.scale")}
        kept |= {name: slice(j) for name in ("answers", "answers.scale")}
        return whole | {name: whole[name][part].contiguous() for name, part in kept.items()}

    def moved(*kept):
        return float((unpack(cut(*kept)).logits(pairs) - logits).square().mean().sqrt() / spread)

    i = 1 + bisect_left(range(1, most[0]), -bound, key=lambda i: -moved(i, most[1]))
    j = 1 + bisect_left(range(1, most[1]), -bound, key=lambda j: -moved(most[0], j))
    return cut(i, j)


def unpack(packed: dict[str, Tensor]) -> Folded:
    """The network that a page makes of it, in float32: the same numbers, to the last bit."""
    tables = {name: table.float() for name, table in packed.items() if not name.endswith(".scale")}
    for name in ("writes", "answers"):
        tables[name] = tables[name] * packed[f"{name}.scale"][:, None]
    return Folded(**tables)
