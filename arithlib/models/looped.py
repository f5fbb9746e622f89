"""The looped transformer that does arithmetic (McLeish et al. 2024, section 3; source 002, "Loop It!").

A block of layers is applied several times; the input may be added again before each time (input injection). Fewer
weights reach the same depth, and the number of loops may change after training.

Dimensions: B batch, T tokens, S tokens so far, D d_model, H heads, K d_head, F d_mlp, V vocabulary.
"""

from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from arithlib.models.attention import attend
from arithlib.models.linear import Linear
from arithlib.models.positions import Offsets, Positions, PositionTerms
from arithlib.settings import of_kind
from arithlib.tasks.operands import Problems
from arithlib.tokenizer import ALPHABET

INJECTIONS = ("loop", "normed", "none")


@of_kind("looped-model")
@dataclass(frozen=True)
class LoopedConfig:
    """Sizes and layout of the model.

    n_layers, n_loops: the block of n_layers layers is applied n_loops times, in training and unless told otherwise.
    positions: one of `positions.SCHEMES`. n_rows: rows of the address table. n_ctx: longest text of scheme "learned".
    injection: "loop" adds the input before each loop (McLeish et al.), "normed" after each layer norm (source 002),
        "none" does not.
    final_norm: layer norm before the logits; source 002 has none.
    offset: the fixed one of decoding and of evaluations that name no other; one of those that training draws.
    d_vocab: tokens; those of `tokenizer.ALPHABET` by default.
    n_ends: so many layers at either end are applied once, and those between are looped: "middle looping" of the
        published version of source 003.
    window: of all digits a token sees those at most so many columns away (`positions.far_columns`); None: all.
    """

    d_model: int = 128
    n_heads: int = 4
    d_mlp: int = 512
    n_layers: int = 2
    n_loops: int = 2
    positions: str = "abacus"
    n_rows: int = 256
    n_ctx: int = 512
    injection: str = "loop"
    final_norm: bool = True
    offset: int = 20

    d_vocab: int = len(ALPHABET)
    n_ends: int = 0
    window: int | None = None

    def __post_init__(self):
        if self.d_model % self.n_heads:
            raise ValueError(f"d_model = {self.d_model} is not a multiple of n_heads = {self.n_heads}")
        if self.n_layers < 1 or self.n_loops < 1:
            raise ValueError(f"{self.n_layers} layers looped {self.n_loops} times: both are at least 1")
        if self.injection not in INJECTIONS:
            raise ValueError(f"injection = {self.injection!r}: choose one of {', '.join(INJECTIONS)}")
        if self.n_ends < 0 or self.n_layers <= 2 * self.n_ends:
            raise ValueError(f"n_ends = {self.n_ends} of {self.n_layers} layers: one must be left to loop")
        if self.window is not None and self.window < 1:
            raise ValueError(f"window = {self.window}: at least 1 column, or a carry cannot be seen")


class KeyValueCache:
    """Keys and values of the tokens so far, one pair for each layer of each loop.

    A layer's input differs from loop to loop, so its keys do; what a token looked like in a loop never changes again.
    """

    def __init__(self, capacity: int):
        self.capacity, self.length, self.slots = capacity, 0, {}

    def extend(self, slot: tuple[int, int], k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Append (B, T, H, K) keys and values of the new tokens; returns those of all (B, S, H, K)."""
        B, T, H, K = k.shape
        if slot not in self.slots:
            self.slots[slot] = k.new_empty(2, B, self.capacity, H, K)
        stored, stop = self.slots[slot], self.length + T
        stored[0, :, self.length : stop], stored[1, :, self.length : stop] = k, v
        return stored[0, :, :stop], stored[1, :, :stop]

    def repeat(self, copies: int) -> None:
        """Hold every text so many times, one after another: from here on each goes its own way."""
        self.slots = {slot: stored.repeat_interleave(copies, 1) for slot, stored in self.slots.items()}


class Layer(nn.Module):
    """Pre-norm attention and MLP, with biases."""

    def __init__(self, config: LoopedConfig):
        super().__init__()
        D, self.n_heads = config.d_model, config.n_heads
        self.inject = config.injection == "normed"
        self.norm_attn, self.norm_mlp = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.out = Linear(D, 3 * D), Linear(D, D)
        self.mlp_in, self.mlp_out = Linear(D, config.d_mlp), Linear(config.d_mlp, D)

    def forward(self, x: Tensor, e: Tensor, placed: PositionTerms, kernel: str, extend=None, since: int = 0):
        """x: (B, T, D) residual stream. e: (B, T, D) input. extend: takes new keys and values, returns all.

        placed: what the positions contribute. kernel: one of `attention.KERNELS`. since: the first token asked for;
        those before it are read, and leave the residual stream here.
        Returns the residual stream after the layer and the pattern (B, H, T, S), None but for the eager kernel.
        """
        normed = self.norm_attn(x) + e if self.inject else self.norm_attn(x)
        q, k, v = self.qkv(normed).unflatten(-1, (3, self.n_heads, -1)).unbind(2)
        q, k = placed.apply(q, k)
        if extend is not None:
            k, v = extend(k, v)
        x, e, q = x[:, since:], e[:, since:], q[:, since:]
        bias = None if placed.bias is None else placed.bias[..., since:, :]
        z, pattern = attend(q, k, v, kernel, bias)
        x = x + self.out(z.flatten(2))
        normed = self.norm_mlp(x) + e if self.inject else self.norm_mlp(x)
        return x + self.mlp_out(self.mlp_in(normed, gelu=True)), pattern


class LoopedTransformer(nn.Module):
    """Embedding, a looped block of layers, logits.

    kernel: how attention is computed (`attention.KERNELS`); no part of what the model is, so it may be set any time.
    All weights begin as torch begins them, as in source 002: embeddings normal with deviation one.
    """

    def __init__(self, config: LoopedConfig, seed: int = 0):
        super().__init__()
        c = self.config = config
        self.kernel = "sdpa"
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embedding = nn.Embedding(c.d_vocab, c.d_model)
            self.positions = Positions(c.positions, c.d_model, c.n_heads, c.n_rows, c.n_ctx, c.window)
            self.layers = nn.ModuleList(Layer(c) for _ in range(c.n_layers))
            self.final_norm = nn.LayerNorm(c.d_model) if c.final_norm else nn.Identity()
            self.unembedding = nn.Linear(c.d_model, c.d_vocab)

    @property
    def device(self) -> torch.device:
        return self.embedding.weight.device

    @property
    def offsets(self) -> Offsets:
        """What decoding and evaluation use unless they name another policy: the config's fixed offset."""
        return Offsets("fixed", value=self.config.offset)

    def forward(
        self,
        tokens: Tensor,
        offset: Tensor | None = None,
        loops: int | None = None,
        cache: KeyValueCache | None = None,
        return_activations: bool = False,
        since: int = 0,
    ):
        """(B, S) tokens -> (B, T, V) logits of the next token; T = S, or the tokens that the cache does not hold yet.

        offset: (B, 1) or (1, 1), `config.offset` by default. loops: any number from 1, `config.n_loops` by default.
        return_activations: also return a dict of `resid_pre` (B, T, D), and for loop r and layer l
            `loops.r.layers.l.resid_post` (B, T, D) and `loops.r.layers.l.pattern` (B, H, T, S); the kernel is eager.
        since: the first of the T tokens whose logits are wanted: the last layer does not compute those before it.
        """
        loops = self.config.n_loops if loops is None else loops
        if loops < 1:
            raise ValueError(f"loops = {loops}: at least 1")
        activations = {} if return_activations else None
        e, placed = self.embed(tokens, offset, 0 if cache is None else cache.length)
        x = self.states(e, placed, loops, cache=cache, activations=activations, since=since)[-1]
        if cache is not None:
            cache.length = tokens.shape[1]
        return (self.logits(x), activations) if return_activations else self.logits(x)

    def embed(self, tokens: Tensor, offset: Tensor | None = None, start: int = 0) -> tuple[Tensor, PositionTerms]:
        """(B, S) tokens -> the input (B, T, D) of those from `start` on, and what their positions contribute."""
        if offset is None:
            offset = tokens.new_full((1, 1), self.config.offset)
        placed = self.positions(tokens, offset, start)
        e = self.embedding(tokens[:, start:])
        return (e if placed.embedding is None else e + placed.embedding), placed

    def states(
        self,
        e: Tensor,
        placed: PositionTerms,
        loops: int,
        x: Tensor | None = None,
        cache=None,
        activations=None,
        since=0,
    ) -> list[Tensor]:
        """The residual stream (B, T, D) after each of `loops` loops, from x; the first loop starts from the input.

        since: the first token that the last of them has.
        """
        injects, states = self.config.injection == "loop", []
        first, last = self.config.n_ends, self.config.n_layers - self.config.n_ends
        kernel = self.kernel if activations is None else "eager"
        if activations is not None:
            activations["resid_pre"] = e
        for loop in range(loops):
            x = e if x is None else x + e if injects else x
            indices = range(0 if loop == 0 else first, self.config.n_layers if loop == loops - 1 else last)
            for index in indices:
                extend = None if cache is None else partial(cache.extend, (loop, index))
                at_last = loop == loops - 1 and index == indices[-1]
                x, pattern = self.layers[index](x, e, placed, kernel, extend, since if at_last else 0)
                if activations is not None:
                    activations[f"loops.{loop}.layers.{index}.resid_post"] = x
                    activations[f"loops.{loop}.layers.{index}.pattern"] = pattern
            states.append(x)
        return states

    def logits(self, x: Tensor) -> Tensor:
        """(B, T, D) residual stream -> (B, T, V)."""
        return self.unembedding(self.final_norm(x))


# ---- loss --------------------------------------------------------------------------------------------------------


@of_kind("progressive-loss")
@dataclass(frozen=True)
class ProgressiveLoss:
    """(1 - alpha) of the loss after all loops, and alpha of the loss after a random number of them.

    The paper describes a mix. Its released configuration has alpha = 1, so that only the random term trains, and lets
    gradients through at most half of the loops (github.com/mcleish7/arithmetic at 55af9d5). Source 002 has alpha =
    0.5, from the start with all gradients.

    alpha: share of the random term, 0 to 1.
    truncate: True runs n < R loops without gradient, and then 1 to R // 2 with, n + k <= R, as the release does
        (the full term, too, has gradients in its last R // 2 loops alone). False runs 1 to R loops from the input.
    """

    alpha: float = 0.0
    truncate: bool = False

    def __post_init__(self):
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha = {self.alpha}: must lie between 0 and 1")

    def draw(self, n_loops: int, generator: torch.Generator) -> tuple[int, int]:
        """(n, k): loops without gradient, loops with. generator: on the CPU."""

        def uniform(low, high):
            return int(torch.randint(low, high + 1, (1,), generator=generator, device=generator.device))

        if not self.truncate:
            return 0, uniform(1, n_loops)
        n = uniform(0, n_loops - 1)
        return n, uniform(1, min(n_loops - n, max(n_loops // 2, 1)))

    def __call__(
        self, model: LoopedTransformer, problems: Problems, offset: Tensor, loops: tuple[int, int], mask: Tensor
    ) -> Tensor:
        """Summed cross-entropy in nats over the tokens of `mask` (B, T), a scalar; `loops` as `draw` gives them."""
        R, (n, k) = model.config.n_loops, loops
        # The last layer need not write what nothing is asked of. (On a GPU it would be compiled anew for each width.)
        since = 0 if mask.is_cuda else int(mask[:, 1:].any(0).int().argmax())
        wanted = problems.tokens.shape[1] - since
        targets, mask = problems.tokens[:, since + 1 :], mask[:, since + 1 :]

        def loss(x):
            logits = model.logits(x[:, -wanted:-1]).float().transpose(1, 2)
            return (F.cross_entropy(logits, targets, reduction="none") * mask).sum()

        e, placed = model.embed(problems.tokens, offset)
        if not self.truncate:  # the shorter run is the beginning of the longer one
            states = model.states(e, placed, R if self.alpha < 1 else k, since=since)
            terms = [(1 - self.alpha, states[-1]), (self.alpha, states[k - 1])]
        else:
            untracked = R - max(R // 2, 1) if self.alpha < 1 else 0
            with torch.no_grad():
                prefix = model.states(e, placed, max(untracked, n))
            runs = [(1 - self.alpha, untracked, R - untracked), (self.alpha, n, k)]
            terms = [
                (weight, model.states(e, placed, more, prefix[skip - 1] if skip else None, since=since)[-1])
                for weight, skip, more in runs
                if weight
            ]
        return sum(weight * loss(x) for weight, x in terms if weight)


# ---- given addresses ---------------------------------------------------------------------------------------------


class GivenAddresses(LoopedTransformer):
    """The same model with one address table for any scheme: whoever writes the text says which row each token has.

    config.positions is "none". Embeddings begin twenty times smaller than torch's, a choice of trials for chapter 76.
    Raises ValueError for a config with a window: only digits have columns.
    """

    def __init__(self, config: LoopedConfig, seed: int = 0):
        if config.window is not None:
            raise ValueError(f"window = {config.window}: given addresses say nothing of columns; leave it None")
        super().__init__(config, seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed + 1)
            self.rows = nn.Embedding(config.n_rows, config.d_model)
        with torch.no_grad():
            self.embedding.weight.mul_(0.05)
            self.rows.weight.mul_(0.05)

    def forward(self, tokens: Tensor, address: Tensor, bias: Tensor | None = None) -> Tensor:
        """(B, T) tokens and rows of the table -> (B, T, V) logits. bias: (H or 1, T, T) added to the scores."""
        e = self.embedding(tokens) + self.rows(address)
        return self.logits(self.states(e, PositionTerms(bias=bias), self.config.n_loops)[-1])
