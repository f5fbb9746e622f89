"""A transformer that looks by digit address: one layer, and attention that knows which column is next (chapter 70).

Every token has a *number* (which of the numbers of the text it belongs to) and an *index* (its place in that number,
from 1), both functions of the tokens so far. A sign opens the number after it, at index 0. A token with index i asks
for column i + 1, the one that comes next in its number; a key with index j is at *distance* i + 1 - j from it.

    tokens      3 2 1 + 6 5 4 = 9 7 5 $
    number      0 0 0 1 1 1 1 2 2 2 2 3
    index       1 2 3 0 1 2 3 0 1 2 3 0

Of answer digit i, distance 0 is column i + 1 of both operands, and distance 1 is column i of both operands and the
digit itself. No address is embedded anywhere: scores know differences alone, so that no length is new.

Dimensions: B batch, T tokens (queries), S tokens (keys), D d_model, H heads, K d_head, F d_mlp, V vocabulary.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from arithlib.models.attention import attend
from arithlib.models.positions import number_index
from arithlib.settings import of_kind
from arithlib.tokenizer import ALPHABET

FAR = ("masked", "decay", "flat", "scaled")
# Numbers of `a+b=c$`: the two operands, the answer, and what its end token would open.
N_NUMBERS = 4


def number_of(tokens: Tensor) -> Tensor:
    """(B, T) tokens -> (B, T) which number each belongs to, from 0; a token that is no digit opens the next.

    >>> number_of(torch.tensor([[3, 2, 1, 11, 6, 5, 4, 13]]))
    tensor([[0, 0, 0, 1, 1, 1, 1, 2]])
    """
    return (tokens >= 10).cumsum(1).clamp(max=N_NUMBERS - 1)


@of_kind("addressed-model")
@dataclass(frozen=True)
class AddressedConfig:
    """Sizes of the model and how it treats keys outside its window.

    window: a key at distance 0 to `window` is near, and has a learned bias for each head, number and distance.
    far: any other key is "masked" (the windowed model), loses a learned slope of each head for every further step of
        distance ("decay", the unwindowed model), or stays as it is ("flat": its score is bounded at every distance).
        "scaled" is flat, and all scores are multiplied by the logarithm of how many keys the token sees.
    """

    d_model: int = 32
    n_heads: int = 4
    d_mlp: int = 64
    window: int = 1
    far: str = "masked"

    def __post_init__(self):
        if self.d_model % self.n_heads:
            raise ValueError(f"d_model = {self.d_model} is not a multiple of n_heads = {self.n_heads}")
        if self.window < 1:
            raise ValueError(f"window = {self.window}: at least 1, or a token does not see itself")
        if self.far not in FAR:
            raise ValueError(f"far = {self.far!r}: choose one of {', '.join(FAR)}")


class AddressedTransformer(nn.Module):
    """Embedding, one layer of attention, one ReLU MLP, logits; no norm anywhere.

        x = embedding[token] + numbers[number]
        x = x + out(softmax(q k / sqrt(K) + bias) v)       q, k, v = qkv(x), over this token and earlier ones
        x = x + mlp_out(relu(mlp_in(x)))
        logits = unembedding(x)

    bias is `near[h, number of the key, distance]` for distances 0 to `window`. Elsewhere it is minus infinity (far =
    "masked"), -exp(log_slope[h]) times the steps to the nearest near distance ("decay"), or 0 ("flat", "scaled").
    A windowed answer token i thus depends on at most five tokens: columns i and i + 1 of both operands, and itself.
    kernel: as in `LoopedTransformer`.
    """

    def __init__(self, config: AddressedConfig, seed: int = 0):
        super().__init__()
        c = self.config = config
        self.kernel = "sdpa"
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embedding = nn.Embedding(len(ALPHABET), c.d_model)
            # Softmax averages. Without these, 3 3 + 3 and 3 alone would be one and the same average (chapter 70).
            self.numbers = nn.Embedding(N_NUMBERS, c.d_model)
            self.near = nn.Parameter(torch.randn(c.n_heads, N_NUMBERS, c.window + 1))
            self.qkv, self.out = nn.Linear(c.d_model, 3 * c.d_model), nn.Linear(c.d_model, c.d_model, bias=False)
            self.mlp_in, self.mlp_out = nn.Linear(c.d_model, c.d_mlp), nn.Linear(c.d_mlp, c.d_model)
            self.unembedding = nn.Linear(c.d_model, len(ALPHABET))
        if c.far == "decay":
            self.log_slope = nn.Parameter(torch.zeros(c.n_heads))

    @property
    def device(self) -> torch.device:
        return self.embedding.weight.device

    def forward(self, tokens: Tensor, return_activations: bool = False):
        """(B, T) tokens -> (B, T, V) logits of the next token.

        return_activations: also return a dict of `resid_pre`, `resid_mid`, `resid_post` (B, T, D) and `pattern`
            (B, H, T, T); the kernel is eager.
        """
        x = self.embedding(tokens) + self.numbers(number_of(tokens))
        q, k, v = self.qkv(x).unflatten(-1, (3, self.config.n_heads, -1)).unbind(2)
        factor = self.sharpness(torch.arange(1, tokens.shape[1] + 1, device=self.device))
        bias = self.bias(tokens) * factor[:, None]
        z, pattern = attend(q * factor[:, None, None], k, v, "eager" if return_activations else self.kernel, bias)
        mid = x + self.out(z.flatten(2))
        post = self.add_neurons(mid)
        logits = self.unembedding(post)
        if not return_activations:
            return logits
        return logits, {"resid_pre": x, "resid_mid": mid, "resid_post": post, "pattern": pattern}

    def add_neurons(self, mid: Tensor) -> Tensor:
        """(..., D) residual stream between attention and MLP -> (..., D) the same with what the MLP adds."""
        return mid + self.mlp_out(F.relu(self.mlp_in(mid)))

    def sharpness(self, visible: Tensor) -> Tensor:
        """What the scores of a token that sees so many keys are multiplied by: 1, or their logarithm ("scaled")."""
        visible = visible.to(self.near.dtype)
        return visible.log() if self.config.far == "scaled" else torch.ones_like(visible)

    def bias(self, tokens: Tensor) -> Tensor:
        """(B, T) tokens -> (B, H, T, T) what the addresses add to the score of every query and key."""
        index = number_index(tokens)
        return self.bias_at(number_of(tokens)[:, None], index[:, :, None] + 1 - index[:, None]).movedim(-1, 1)

    def bias_at(self, number: Tensor, distance: Tensor) -> Tensor:
        """Of keys in these numbers at these distances, any shapes that broadcast -> that shape and (H,)."""
        nearest = distance.clamp(0, self.config.window)
        near = self.near.permute(1, 2, 0)[number, nearest]
        steps = (distance - nearest).abs()[..., None]
        if self.config.far == "masked":
            far = torch.full_like(steps, -torch.inf, dtype=near.dtype)
        elif self.config.far == "decay":
            far = -self.log_slope.exp() * steps
        else:
            far = torch.zeros_like(near)
        return torch.where(steps == 0, near, far)
