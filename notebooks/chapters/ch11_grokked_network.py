"""The grokked network of part 1 in the browser: every step from two numbers to 113 logits (chapters 11 and 24).

book/_static/grokked-network.mjs runs it, as `bookkit.web_components` tells. A page cannot carry all weights, and need
not: at '=', where the answer is read, matrices that act one after the other are one matrix, and hardly any of their
directions are in use.

Dimensions: P residues, R = P + 1 tokens, H heads, F neurons, I and J kept directions, K key frequencies.
"""

import base64
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import safetensors.torch
import torch
from torch import Tensor

from arithlib import checkpoints
from arithlib.analysis.circles import circle_plane
from arithlib.analysis.fourier import fourier_basis, frequencies, key_frequencies, power_spectrum, wave_rows
from arithlib.evaluation import logit_margin
from bookkit.web_components import element, whole_source

MODULE = "grokked-network.mjs"
NETWORK = "grokking-s0"
KEPT = 32  # directions of each of the two products; chapter 11 measures what that does to the logits
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
def pack(model, keys: Sequence[int], kept: int = KEPT) -> dict[str, Tensor]:
    """What the page carries of a `GrokkingTransformer`: the fields of `Folded`, the four factors in 16 bits.

    keys: the frequencies whose circles are shown. Products are cut to their first `kept` singular directions; a left
    factor consists of whole numbers, a right one of whole numbers times a scale for each direction. Raises ValueError
    for a model with positions or layer norm, or without ReLU.
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
    tokens, writes, writes_scale = _factors(moved.flatten(0, 1), kept)
    neurons, answers, answers_scale = _factors(model.W_out.double() @ W_U, kept)
    return {name: table.float().contiguous() for name, table in exact.items()} | {
        "tokens": tokens.unflatten(0, (c.p + 1, c.n_heads)), "writes": writes, "writes.scale": writes_scale,
        "neurons": neurons, "answers": answers, "answers.scale": answers_scale,
    }  # fmt: skip


def _factors(matrix: Tensor, kept: int) -> tuple[Tensor, Tensor, Tensor]:
    """(m, n) -> whole left (m, kept) and right (kept, n), and (kept,) scales: left @ (scale right) is nearly it."""
    left, power, right = torch.linalg.svd(matrix, full_matrices=False)
    left, right = left.T[:kept], power[:kept, None] * right[:kept]
    units = [rows.abs().amax(1, keepdim=True) / LARGEST for rows in (left, right)]
    whole = [(rows / unit).round().short().contiguous() for rows, unit in zip((left, right), units, strict=True)]
    return whole[0].T.contiguous(), whole[1], (units[0] * units[1])[:, 0].float()


def unpack(packed: dict[str, Tensor]) -> Folded:
    """The network that a page makes of it, in float32: the same numbers, to the last bit."""
    tables = {name: table.float() for name, table in packed.items() if not name.endswith(".scale")}
    for name in ("writes", "answers"):
        tables[name] = tables[name] * packed[f"{name}.scale"][:, None]
    return Folded(**tables)


@lru_cache
def _shipped(network: str) -> tuple[dict[str, Tensor], list[int]]:
    model = checkpoints.load(network).model
    keys = key_frequencies(power_spectrum(model.W_E[: model.config.p]))
    return pack(model, keys), keys


def page_network(network: str = NETWORK) -> Folded:
    """The network as a page has it."""
    return unpack(_shipped(network)[0])


@dataclass(frozen=True)
class GrokkedNetwork:
    """The network at work, for the last line of a cell; the two numbers are where it starts.

    a, b: integers from 0 to 112; ValueError for anything else.
    """

    a: int
    b: int
    network: str = NETWORK

    def __post_init__(self):
        p = page_network(self.network).p
        for name in ("a", "b"):
            if not isinstance(getattr(self, name), int) or not 0 <= getattr(self, name) < p:
                raise ValueError(f"{name} = {getattr(self, name)!r}: the network adds integers from 0 to {p - 1}")

    def __repr__(self) -> str:
        return f"The grokked network, for a screen. {describe(self.a, self.b, network=self.network)}"

    def _repr_html_(self) -> str:
        packed, keys = _shipped(self.network)
        given = {
            "a": self.a,
            "b": self.b,
            "frequencies": " ".join(map(str, keys)),
            "weights": base64.b64encode(safetensors.torch.save(packed)).decode(),
        }
        return element("grokked-network", given, f"{self} It needs JavaScript.", MODULE)

    def page_bytes(self) -> int:
        """What weights and script add to a page that is loaded for the first time, before compression."""
        script = len(whole_source(MODULE).encode())
        return script + math.ceil(len(safetensors.torch.save(_shipped(self.network)[0])) / 3) * 4


@torch.no_grad()
def describe(a: int, b: int, removed: Collection[int] = (), network: str = NETWORK) -> str:
    """What the network answers, in words; `removed` frequencies are taken out of its embedding.

    >>> describe(37, 58)[:49]
    '37 + 58: the highest logit is that of 95, ahead o'
    """
    net = page_network(network).without(removed)
    logits = net.logits(torch.tensor([[a, b]]))[0]
    best, second = logits.topk(2).indices.tolist()
    lead = math.floor(10 * float(logit_margin(logits, torch.tensor(best)))) / 10
    right = (a + b) % net.p
    verdict = "That is right" if best == right else f"That is wrong: it is {right}"
    return (
        f"{a} + {b}: the highest logit is that of {best}, ahead of {second} by {lead:.1f}. {verdict}, modulo {net.p}."
    )


@torch.no_grad()
def count_right(net: Folded) -> int:
    """How many of the P^2 pairs the network gets right."""
    pairs = torch.cartesian_prod(torch.arange(net.p), torch.arange(net.p))
    return int((net.logits(pairs).argmax(1) == pairs.sum(1) % net.p).sum())
