"""A small decoder built as GPT-J is, for numbers that are single tokens (chapter 51; Wang and Komatsuzaki 2021).

In each block attention and MLP read the same normalised residual stream, and both write to it; queries and keys are
turned by their place. Nothing is hidden: every intermediate has a name, and an edit of any of them changes all that
follows.

Dimensions: B prompts, T tokens, S tokens so far, L layers, D d_model, H heads, K d_head, F d_mlp, V d_vocab.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from arithlib.models.positions import rotate, rotation
from arithlib.settings import of_kind
from arithlib.tasks.prompts import D_VOCAB

MLPS = ("gelu", "gated")
Edits = Mapping[str, Callable[[Tensor], Tensor]]
NO_EDITS: Edits = MappingProxyType({})


@of_kind("decoder-model")
@dataclass(frozen=True)
class DecoderConfig:
    """Sizes of the model.

    mlp: "gelu", one matrix in and one out, as in GPT-J and Pythia; "gated", two matrices in, whose outputs are
        multiplied, one of them after SiLU, as in Llama (Shazeer 2020).
    """

    d_vocab: int = D_VOCAB
    d_model: int = 64
    n_layers: int = 3
    n_heads: int = 4
    d_mlp: int = 128
    mlp: str = "gelu"

    def __post_init__(self):
        if self.d_model % (2 * self.n_heads):
            raise ValueError(f"d_model = {self.d_model}: {self.n_heads} heads need an even d_head each")
        if self.mlp not in MLPS:
            raise ValueError(f"mlp = {self.mlp!r}: choose one of {', '.join(MLPS)}")


class Block(nn.Module):
    """One layer: attention and MLP side by side."""

    def __init__(self, config: DecoderConfig, generator: torch.Generator):
        super().__init__()
        c, d_head = config, config.d_model // config.n_heads
        self.W_Q, self.W_K, self.W_V = (
            _weight(generator, c.n_heads, c.d_model, d_head, fan_in=c.d_model) for _ in range(3)
        )
        self.W_O = _weight(generator, c.n_heads, d_head, c.d_model, fan_in=c.d_model)
        self.W_in = _weight(generator, c.d_model, c.d_mlp, fan_in=c.d_model)
        self.W_gate = _weight(generator, c.d_model, c.d_mlp, fan_in=c.d_model) if c.mlp == "gated" else None
        self.b_in = nn.Parameter(torch.zeros(c.d_mlp))
        self.W_out = _weight(generator, c.d_mlp, c.d_model, fan_in=c.d_mlp)
        self.b_out = nn.Parameter(torch.zeros(c.d_model))

    def forward(
        self, x: Tensor, at: Callable[[str, Tensor], Tensor], past: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """(B, T, D) -> (B, T, D), and keys and values (B, S, H, K) of all tokens so far.

        at: is handed every intermediate with its name; what it returns is used. past: of the tokens before these.
        """
        T, before = x.shape[1], 0 if past is None else past[0].shape[1]
        normed = at("normed", normalise(x))
        q, k, v = (torch.einsum("btd,hdk->bthk", normed, W) for W in (self.W_Q, self.W_K, self.W_V))
        turn = rotation(torch.arange(before, before + T, device=x.device), q.shape[-1])
        q, k, v = at("q", rotate(q, *turn)), at("k", rotate(k, *turn)), at("v", v)
        if past is not None:
            k, v = torch.cat([past[0], k], 1), torch.cat([past[1], v], 1)
        scores = at("scores", torch.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5)
        future = torch.ones(T, before + T, dtype=torch.bool, device=x.device).triu(1 + before)
        pattern = at("pattern", scores.masked_fill(future, -torch.inf).softmax(-1))
        z = at("z", torch.einsum("bhts,bshk->bthk", pattern, v))
        attn_out = at("attn_out", torch.einsum("bthk,hkd->btd", z, self.W_O))

        mlp_pre = at("mlp_pre", normed @ self.W_in + self.b_in)
        if self.W_gate is None:
            mlp_post = at("mlp_post", F.gelu(mlp_pre))
        else:
            mlp_post = at("mlp_post", mlp_pre * F.silu(at("mlp_gate", normed @ self.W_gate)))
        mlp_out = at("mlp_out", mlp_post @ self.W_out + self.b_out)
        return x + attn_out + mlp_out, (k, v)


class Decoder(nn.Module):
    """Embedding, L parallel blocks, layer norm without gain or bias, unembedding; untied, no biases in attention.

    `forward` is the model as one reads it. `answer_logits` is the same function, with the first two tokens of a
    prompt computed once for all prompts that begin with them. Tests hold the two equal.
    """

    def __init__(self, config: DecoderConfig, seed: int = 0):
        super().__init__()
        c = self.config = config
        generator = torch.Generator().manual_seed(seed)
        self.W_E = _weight(generator, c.d_vocab, c.d_model, fan_in=c.d_model)
        self.blocks = nn.ModuleList(Block(c, generator) for _ in range(c.n_layers))
        self.W_U = _weight(generator, c.d_model, c.d_vocab, fan_in=c.d_model)

    def forward(self, tokens: Tensor, edits: Edits = NO_EDITS, return_activations: bool = False):
        """(B, T) tokens -> (B, V) logits after the last, or (logits, activations) with every named intermediate.

        edits: by name of an activation, a function from it to what takes its place.
        activations, with l from 0 to L - 1: resid.l (B, T, D), what block l reads, and resid.L, what the unembedding
        reads · l.normed (B, T, D) · l.q, l.k, l.v, l.z (B, T, H, K) · l.scores, l.pattern (B, H, T, T) ·
        l.attn_out, l.mlp_out (B, T, D) · l.mlp_pre, l.mlp_gate (if gated), l.mlp_post (B, T, F)

        Raises ValueError for an edit of an activation that there is not.
        """
        activations: dict[str, Tensor] = {}

        def at(name: str, x: Tensor) -> Tensor:
            activations[name] = edits[name](x) if name in edits else x
            return activations[name]

        x = at("resid.0", self.W_E[tokens])
        for layer, block in enumerate(self.blocks):
            x, _ = block(x, lambda name, y, layer=layer: at(f"{layer}.{name}", y))
            x = at(f"resid.{layer + 1}", x)
        if unknown := set(edits) - set(activations):
            raise ValueError(f"no activation is called {sorted(unknown)}; there are: {', '.join(activations)}")
        logits = normalise(x[:, -1]) @ self.W_U
        return (logits, activations) if return_activations else logits

    def answer_logits(self, prompts: Tensor) -> Tensor:
        """(B, 4) prompts -> (B, V) logits of their answers, as `forward` gives them."""
        openings, which = torch.unique(prompts[:, :2], dim=0, return_inverse=True)
        opening, rest = self.W_E[openings], self.W_E[prompts[:, 2:]]
        for block in self.blocks:
            opening, (k, v) = block(opening, _unchanged)
            rest, _ = block(rest, _unchanged, (k[which], v[which]))
        return normalise(rest[:, -1]) @ self.W_U


class DigitDecoder(Decoder):
    """The same decoder for numbers of two digits, which writes its answer digit by digit (chapter 53)."""

    @torch.no_grad()
    def sums(self, prompts: Tensor, edits: Edits = NO_EDITS) -> Tensor:
        """(B, 6) prompts -> (B,) their sums as greedy decoding gives them, hundreds first; edits as in `forward`.

        A sign in place of a digit counts as the number of its token.
        """
        tokens = prompts
        for _ in range(3):
            tokens = torch.cat([tokens, self(tokens, edits).argmax(-1, keepdim=True)], 1)
        return tokens[:, -3:] @ torch.tensor([100, 10, 1], device=tokens.device)


def normalise(x: Tensor) -> Tensor:
    """Layer norm over D without gain or bias."""
    return F.layer_norm(x, x.shape[-1:])


def _weight(generator: torch.Generator, *shape: int, fan_in: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(*shape, generator=generator) / fan_in**0.5)


def _unchanged(name: str, x: Tensor) -> Tensor:
    return x
