"""The adder of chapter 70 with other addresses: learned rows (Abacus), or rotary angles (chapter 77).

Embedding, one layer of attention and one MLP as in `arithlib.models.addressed`, and the same two functions of the
tokens: which number a token belongs to, and its index in it. What differs is how attention gets to know the index.

    tokens      3 2 1 + 6 5 4 = 9 7 5 $
    number      0 0 0 1 1 1 1 2 2 2 2 3
    abacus      1 2 3 0 1 2 3 0 1 2 3 0     a row of a learned table; an offset moves digits along, signs stay
    coupling    2 3 4 1 2 3 4 1 2 3 4 0     a row of a learned table; an offset moves digits and signs along
    rotary      1 2 3 0 1 2 3 0 1 2 3 0     the index, as an angle
    places      0 1 2 3 4 5 6 7 8 9 . .     the place in the text, as an angle

Dimensions: B batch, T tokens, D d_model, H heads, K d_head, F d_mlp, V vocabulary.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from arithlib.models.addressed import N_NUMBERS, number_of
from arithlib.models.attention import attend
from arithlib.models.positions import number_index, rotate, rotation
from arithlib.settings import of_kind
from arithlib.tokenizer import ALPHABET, END

TABLES = ("abacus", "coupling")
SCHEMES = (*TABLES, "rotary", "places")


@of_kind("contrast-model")
@dataclass(frozen=True)
class ContrastConfig:
    """Sizes of the model, and its addresses.

    scheme: one of SCHEMES. n_rows: of the table of "abacus" and "coupling"; no text may ask for more.
    """

    scheme: str
    d_model: int = 32
    n_heads: int = 4
    d_mlp: int = 64
    n_rows: int = 64

    def __post_init__(self):
        if self.d_model % (2 * self.n_heads):
            raise ValueError(f"d_model = {self.d_model} is not a multiple of 2 n_heads = {2 * self.n_heads}")
        if self.scheme not in SCHEMES:
            raise ValueError(f"scheme = {self.scheme!r}: choose one of {', '.join(SCHEMES)}")


class ContrastTransformer(nn.Module):
    """Embedding, one layer of attention, one ReLU MLP, logits; no norm anywhere.

        x = embedding[token] + numbers[number] (+ rows[address] of a table)
        x = x + out(softmax(q k / sqrt(K)) v)       q, k turned by their addresses if there is no table
        x = x + mlp_out(relu(mlp_in(x)))
        logits = unembedding(x)

    kernel: as in `LoopedTransformer`.
    """

    def __init__(self, config: ContrastConfig, seed: int = 0):
        super().__init__()
        c = self.config = config
        self.kernel = "sdpa"
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embedding, self.numbers = nn.Embedding(len(ALPHABET), c.d_model), nn.Embedding(N_NUMBERS, c.d_model)
            self.qkv, self.out = nn.Linear(c.d_model, 3 * c.d_model), nn.Linear(c.d_model, c.d_model, bias=False)
            self.mlp_in, self.mlp_out = nn.Linear(c.d_model, c.d_mlp), nn.Linear(c.d_mlp, c.d_model)
            self.unembedding = nn.Linear(c.d_model, len(ALPHABET))
            if c.scheme in TABLES:
                self.rows = nn.Embedding(c.n_rows, c.d_model)

    def forward(
        self,
        tokens: Tensor,
        offset: Tensor | None = None,
        reach: int | None = None,
        return_activations: bool = False,
    ):
        """(B, T) tokens -> (B, T, V) logits of the next token.

        offset: (B, 1) or (1, 1), what moves the rows of a sum along its table; None for 0.
        reach: keys more than so many columns away from the one to be added and the one just done get no weight; None
            for all keys, as in training, and 0 for the window of chapter 70.
        return_activations: also return a dict of `pattern` (B, H, T, T); the kernel is eager.
        """
        x, q, k, v = self.project(tokens, number_of(tokens), self.address(tokens, offset))
        bias = None if reach is None else window(tokens, reach)
        z, pattern = attend(q, k, v, "eager" if return_activations else self.kernel, bias)
        logits = self.read_out(x, z)
        return (logits, {"pattern": pattern}) if return_activations else logits

    def address(self, tokens: Tensor, offset: Tensor | None = None) -> Tensor:
        """(B, T) tokens -> (B, T) or (T,) the row, the index or the place of each."""
        if self.config.scheme == "places":
            return torch.arange(tokens.shape[1])
        return self.address_at(tokens, number_index(tokens), 0 if offset is None else offset)

    def address_at(self, tokens: Tensor, index: Tensor, offset: Tensor | int = 0) -> Tensor:
        """The address of tokens at these indices in their numbers, any shapes that broadcast.

        Raises ValueError for places, which indices do not tell.
        """
        if self.config.scheme == "places":
            raise ValueError("the place of a token in its text does not follow from its index in a number")
        if self.config.scheme == "abacus":
            return torch.where(tokens < 10, index + offset, 0)
        return torch.where(tokens == END, 0, index + offset + 1) if self.config.scheme == "coupling" else index

    def project(self, tokens: Tensor, number: Tensor, address: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Of tokens in these numbers at these addresses, any shapes that broadcast: x (..., D), q, k, v (..., H, K).

        Raises ValueError for a row beyond the table.
        """
        x = self.embedding(tokens) + self.numbers(number)
        if self.config.scheme in TABLES:
            if int(address.max()) >= self.config.n_rows:
                raise ValueError(f"address {int(address.max())}: the table ends at {self.config.n_rows - 1}")
            x = x + self.rows(address)
        q, k, v = self.qkv(x).unflatten(-1, (3, self.config.n_heads, -1)).unbind(-3)
        if self.config.scheme not in TABLES:
            turn = rotation(address, q.shape[-1])
            q, k = rotate(q, *turn), rotate(k, *turn)
        return x, q, k, v

    def read_out(self, x: Tensor, z: Tensor) -> Tensor:
        """(..., D) tokens and (..., H, K) what their heads read -> (..., V) logits."""
        mid = x + self.out(z.flatten(-2))
        return self.unembedding(mid + self.mlp_out(F.relu(self.mlp_in(mid))))


def window(tokens: Tensor, reach: int) -> Tensor:
    """(B, T) tokens -> (B, 1, T, T) 0 for keys at distance -reach to 1 + reach (chapter 70), -infinity for others."""
    index = number_index(tokens)
    distance = index[:, :, None] + 1 - index[:, None]
    beyond = (distance < -reach) | (distance > 1 + reach)
    return torch.zeros(beyond.shape).masked_fill(beyond, -torch.inf)[:, None]
