"""The one-layer transformer that groks modular addition (Nanda et al. 2023, section 3; source 004, section 3).

Dimensions: B pairs, T the three tokens `a b =`, D d_model, H heads, K d_head, F d_mlp, V = p + 1 tokens, R rows of
the token table (every token at every position it can take).
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from arithlib.models.linear import entries_of_product, product
from arithlib.settings import of_kind

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "identity": lambda x: x}
POSITIONS = ("none", "learned")


@of_kind("grokking-model")
@dataclass(frozen=True)
class GrokkingConfig:
    """Sizes of the model; the defaults are those of Nanda et al., without positions as in source 004.

    p: modulus; the vocabulary has p + 1 tokens.
    activation: "relu", "gelu" or "identity" (no MLP non-linearity at all).
    positions: "none" (source 004) or "learned" (Nanda et al.).
    layer_norm: normalise before attention, before the MLP and before the unembedding; off in both sources.
    """

    p: int = 113
    d_model: int = 128
    n_heads: int = 4
    d_head: int = 32
    d_mlp: int = 512
    activation: str = "relu"
    positions: str = "none"
    layer_norm: bool = False

    def __post_init__(self):
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"activation = {self.activation!r}: choose one of {', '.join(ACTIVATIONS)}")
        if self.positions not in POSITIONS:
            raise ValueError(f"positions = {self.positions!r}: choose one of {', '.join(POSITIONS)}")


class GrokkingTransformer(nn.Module):
    """Embedding, one causal attention layer, one MLP, unembedding; no bias in attention, untied.

    `forward` is the model as one reads it: three positions, every activation at hand. `answer_logits` is the same
    function at the `=` position, where the answer is read, at a fraction of the cost. Tests hold the two equal.
    """

    def __init__(self, config: GrokkingConfig, seed: int = 0):
        super().__init__()
        c = self.config = config
        d_vocab = c.p + 1
        generator = torch.Generator().manual_seed(seed)

        def weight(*shape):
            return nn.Parameter(torch.randn(*shape, generator=generator) / c.d_model**0.5)

        self.W_E = weight(d_vocab, c.d_model)
        self.W_Q = weight(c.n_heads, c.d_model, c.d_head)
        self.W_K = weight(c.n_heads, c.d_model, c.d_head)
        self.W_V = weight(c.n_heads, c.d_model, c.d_head)
        self.W_O = weight(c.n_heads, c.d_head, c.d_model)
        self.W_in = weight(c.d_model, c.d_mlp)
        self.b_in = nn.Parameter(torch.zeros(c.d_mlp))
        self.W_out = weight(c.d_mlp, c.d_model)
        self.b_out = nn.Parameter(torch.zeros(c.d_model))
        self.W_U = weight(c.d_model, d_vocab)
        if c.positions == "learned":
            self.W_pos = weight(3, c.d_model)
        self.activation = ACTIVATIONS[c.activation]

    def normalise(self, x: Tensor) -> Tensor:
        """Layer norm without gain or bias over D where the config asks for it, else x unchanged."""
        return F.layer_norm(x, x.shape[-1:]) if self.config.layer_norm else x

    @property
    def W_L(self) -> Tensor:
        """(F, p) what each MLP neuron adds to the logit of each residue: W_out W_U (Nanda et al., section 4.2)."""
        return self.W_out @ self.W_U[:, :-1]

    # ---- the model as one reads it -----------------------------------------------------------------------------

    def forward(self, tokens: Tensor, return_activations: bool = False):
        """(B, T) tokens -> (B, T, V) logits, or (logits, activations) with every named intermediate.

        activations: resid_pre (B, T, D) · q, k, v, z (B, H, T, K) · scores, pattern (B, H, T, T) ·
        attn_out, resid_mid (B, T, D) · mlp_pre, mlp_post (B, T, F) · mlp_out, resid_post (B, T, D) · logits (B, T, V)
        """
        B, T = tokens.shape
        resid_pre = self.W_E[tokens]
        if self.config.positions == "learned":
            resid_pre = resid_pre + self.W_pos[:T]
        x = self.normalise(resid_pre)
        q, k, v = (torch.einsum("btd,hdk->bhtk", x, W) for W in (self.W_Q, self.W_K, self.W_V))
        scores = q @ k.mT / self.config.d_head**0.5
        future = torch.ones(T, T, dtype=torch.bool, device=tokens.device).triu(1)
        pattern = scores.masked_fill(future, -torch.inf).softmax(-1)
        z = pattern @ v
        attn_out = torch.einsum("bhtk,hkd->btd", z, self.W_O)
        resid_mid = resid_pre + attn_out
        mlp_pre = self.normalise(resid_mid) @ self.W_in + self.b_in
        mlp_post = self.activation(mlp_pre)
        mlp_out = mlp_post @ self.W_out + self.b_out
        resid_post = resid_mid + mlp_out
        logits = self.normalise(resid_post) @ self.W_U
        if not return_activations:
            return logits
        return logits, dict(
            resid_pre=resid_pre, q=q, k=k, v=v, scores=scores, pattern=pattern, z=z, attn_out=attn_out,
            resid_mid=resid_mid, mlp_pre=mlp_pre, mlp_post=mlp_post, mlp_out=mlp_out, resid_post=resid_post,
            logits=logits,
        )  # fmt: skip

    # ---- the same function at '=' only -------------------------------------------------------------------------

    def token_table(self) -> Tensor:
        """(R, D) the residual stream of every token at every position it can take; the last row is '='."""
        if self.config.positions == "none":
            return self.W_E
        p = self.config.p
        return torch.cat([self.W_E[:p] + self.W_pos[0], self.W_E[:p] + self.W_pos[1], self.W_E[p:] + self.W_pos[2]])

    def table_rows(self, pairs: Tensor) -> Tensor:
        """(B, 2) pairs -> (B, 2) the rows of `token_table` that a and b stand in."""
        if self.config.positions == "none":
            return pairs
        return pairs + torch.tensor([0, self.config.p], device=pairs.device)

    def attention_at_equals(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What the `=` position attends to, from the token table alone: one query, R keys and values.

        rows: (B, 2). Returns x (R, D) the table, pattern (B, 3, H) over a, b and '=', v (R, H, K).
        """
        x = self.token_table()
        normed = self.normalise(x)
        q = torch.einsum("d,hdk->hk", normed[-1], self.W_Q)
        k, v = (torch.einsum("rd,hdk->rhk", normed, W) for W in (self.W_K, self.W_V))
        scores = torch.einsum("rhk,hk->rh", k, q) / self.config.d_head**0.5
        at_equals = scores[-1].expand(len(rows), 1, -1)
        return x, torch.cat([scores[rows], at_equals], 1).softmax(1), v

    def answer_logits(self, pairs: Tensor, mixer: "TokenMixer | None" = None) -> Tensor:
        """(B, 2) pairs -> (B, V) logits at '='.

        A `mixer` made once for these pairs (`self.mixer(pairs)`) carries the attention output through W_O, W_in and
        W_U on the R rows of the table and not on the B pairs: two of the three large matrix products disappear.
        """
        rows = self.table_rows(pairs)
        x, pattern, v = self.attention_at_equals(rows)
        if mixer is None:
            z = (pattern[:, :2, :, None] * v[rows]).sum(1) + pattern[:, 2, :, None] * v[-1]
            resid_mid = x[-1] + z.flatten(1) @ self.W_O.flatten(0, 1)
            mlp_post = self.activation(self.normalise(resid_mid) @ self.W_in + self.b_in)
            return self.normalise(resid_mid + mlp_post @ self.W_out + self.b_out) @ self.W_U

        def mixed(W_read: Tensor, bias: Tensor) -> Tensor:
            return mixer(pattern, v, self.W_O @ W_read, x[-1] @ W_read + bias)

        W_L = self.W_out @ self.W_U
        if self.config.activation == "identity":  # then the MLP is one matrix, and no pair needs its 512 neurons
            return mixed(self.W_U + self.W_in @ W_L, self.b_in @ W_L + self.b_out @ self.W_U)
        mlp_post = self.activation(mixed(self.W_in, self.b_in))
        return mixed(self.W_U, self.b_out @ self.W_U) + product(mlp_post, W_L.T)

    def mixer(self, pairs: Tensor) -> "TokenMixer":
        """The index structure that lets `answer_logits` work on tokens for these (B, 2) pairs."""
        if self.config.layer_norm:
            raise ValueError(
                "a layer norm after attention acts on pairs, not on tokens: call answer_logits without a mixer"
            )
        return TokenMixer(self.table_rows(pairs), len(self.token_table()), self.config.n_heads)


class TokenMixer:
    """out[n] = bias + sum over heads h and over t in {a_n, b_n, '='} of pattern[n, t, h] v[t, h] W[h].

    Attention is linear in what it moves, so v[t, h] W[h] is computed once for each of the R tokens. A pattern sums to
    one, so a head that looks at a or b adds what it finds there beyond what it finds at '='; at '=' all pairs find
    the same. A pair is then a weighted bag of eight rows, and of one that all share.

    rows: (B, 2) table rows of a and b. The order of the transposed bag is found once, here.
    """

    def __init__(self, rows: Tensor, n_rows: int, n_heads: int):
        heads = torch.arange(n_heads, device=rows.device)
        looked_at = (rows[:, :, None] * n_heads + heads).flatten(1)
        self.bag = F.pad(looked_at, (0, 1), value=n_rows * n_heads)
        entries = self.bag.flatten()
        self.by_row = entries.argsort(stable=True)
        self.pair = self.by_row // self.bag.shape[1]
        counts = torch.bincount(entries, minlength=n_rows * n_heads + 1)
        self.starts = counts.cumsum(0) - counts

    def __call__(self, pattern: Tensor, v: Tensor, W: Tensor, bias: Tensor) -> Tensor:
        """pattern (B, 3, H), v (R, H, K), W (H, K, F), bias (F,) -> (B, F)."""
        found = torch.einsum("rhk,hkf->rhf", v, W)
        shared = found[-1].sum(0) + bias
        table = torch.cat([(found - found[-1]).flatten(0, 1), shared[None]])
        return _WeightedBag.apply(F.pad(pattern[:, :2].flatten(1), (0, 1), value=1.0), table, self)


class _WeightedBag(torch.autograd.Function):
    """(B, n) weights, (S, F) table -> (B, F) weighted sums of the rows that the mixer's bag names.

    Autograd's own gradients are scalar code. That of the table is a bag again, transposed, and those of the weights
    are entries of a matrix product of which few are asked for.
    """

    @staticmethod
    def forward(ctx, weights, table, mixer):
        ctx.save_for_backward(weights, table)
        ctx.mixer = mixer
        return F.embedding_bag(mixer.bag, table, per_sample_weights=weights, mode="sum")

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        weights, table = ctx.saved_tensors
        mixer = ctx.mixer
        by_row = weights.flatten()[mixer.by_row]
        of_table = F.embedding_bag(mixer.pair, grad, mixer.starts, per_sample_weights=by_row, mode="sum")
        return entries_of_product(grad, table.T, mixer.bag), of_table, None
