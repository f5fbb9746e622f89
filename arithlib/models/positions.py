"""Where a token stands: Abacus addresses and the position schemes they are compared with (source 002; McLeish 2024).

An Abacus address numbers the digits inside their number, so that digits of equal significance share an address; `+`,
`=` and the end token have address 0. A random offset moves all addresses of a sum together: rows of the table far
beyond the training length are trained, too.

    tokens      3 2 1 + 6 5 4 =
    index       1 2 3 0 1 2 3 0
    offset 38  39 40 41 0 39 40 41 0

Dimensions: B batch, T tokens processed now, S tokens so far, D d_model, H heads, K d_head. A is the number of rows.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from arithlib.settings import of_kind
from arithlib.tokenizer import END, EQUALS

SCHEMES = (
    "none",
    "learned",  # an embedding of the absolute place
    "rotary",  # queries and keys turned by their place (Su et al. 2021)
    "fire",  # a learned function of relative distance, added to the scores (Li et al. 2023)
    "abacus",  # addresses embedded once, at the input (McLeish et al.)
    "abacus-qk",  # addresses added to the queries and keys of every layer (source 002)
    "abacus+rotary",
    "abacus+fire",
    "coupling",  # position coupling (Cho et al. 2024): operators share in the addresses, one below the first digit
)
POLICIES = ("fixed", "per batch", "per sample", "redrawn")


# ---- addresses ---------------------------------------------------------------------------------------------------


def number_index(tokens: Tensor) -> Tensor:
    """(B, T) tokens -> (B, T) the place of each digit in its number, from 1; 0 for everything else.

    >>> number_index(torch.tensor([[3, 2, 1, 11, 6, 5, 4, 13]]))
    tensor([[1, 2, 3, 0, 1, 2, 3, 0]])
    """
    place = torch.arange(tokens.shape[1], device=tokens.device)
    last_other = torch.where(tokens < 10, -1, place).cummax(1).values
    return place - last_other


def addresses(tokens: Tensor, offset: Tensor) -> Tensor:
    """(B, T) tokens, (B, 1) or (1, 1) offset -> (B, T) Abacus addresses: index plus offset on digits, 0 elsewhere."""
    index = number_index(tokens)
    return torch.where(index > 0, index + offset, 0)


def coupled(tokens: Tensor, offset: Tensor) -> Tensor:
    """(B, T) tokens, offset -> (B, T) addresses of position coupling.

    A digit has its Abacus address plus one, so that signs can have the one below the first digit; end tokens have 0.

    >>> coupled(torch.tensor([[3, 2, 1, 11, 6, 5, 4, 13, END]]), torch.tensor([[0]]))
    tensor([[2, 3, 4, 1, 2, 3, 4, 1, 0]])
    """
    return torch.where(tokens == END, 0, number_index(tokens) + offset + 1)


def far_columns(tokens: Tensor, window: int) -> Tensor:
    """(B, T) tokens -> (B, queries, keys) True where a query is more than `window` columns from the digit of a key.

    A digit of an operand stands in its own column; from "=" on, a token stands in the column that it writes. A key
    that is no digit is near to all, and to the sign between the operands all keys are.

    >>> far_columns(torch.tensor([[3, 2, 1, 11, 6, 5, 4, 13]]), 1)[0, -1].tolist()  # "=" writes the first column
    [False, False, True, False, False, False, True, False]
    """
    index = number_index(tokens)
    column = index + (tokens == EQUALS).cumsum(1)
    key, query = index[:, None], column[:, :, None]
    return (key > 0) & (query > 0) & ((query - key).abs() > window)


@of_kind("offsets")
@dataclass(frozen=True)
class Offsets:
    """How the number added to every index is chosen.

    policy: "fixed" (`value` for all), "per batch" (the paper: one draw for all sums of a batch), "per sample" (source
        002 in training: one draw a sum), or "redrawn" (source 002 in evaluation: a new draw a sum at every decoding
        step, so that the digits of one sum change their addresses while it is written).
    k: draws are from 0 to k - 1. value: the offset of policy "fixed".
    """

    policy: str = "per batch"
    k: int = 100
    value: int = 0

    def __post_init__(self):
        if self.policy not in POLICIES:
            raise ValueError(f"offset policy {self.policy!r}: choose one of {', '.join(POLICIES)}")
        if self.k < 1 or self.value < 0:
            raise ValueError(f"offsets with k = {self.k}, value = {self.value}: k is at least 1 and value at least 0")

    @property
    def largest(self) -> int:
        """The largest offset that can occur."""
        return self.value if self.policy == "fixed" else self.k - 1

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """(count, 1) offsets, or (1, 1) where all sums share one, on the generator's device."""
        if self.policy == "fixed":
            return torch.full((1, 1), self.value, device=generator.device)
        shape = (1 if self.policy == "per batch" else count, 1)
        return torch.randint(self.k, shape, generator=generator, device=generator.device)

    def require(self, digits: int, n_rows: int) -> None:
        """Raises ValueError unless a number of that many digits has a row of the table for every offset."""
        if self.largest + digits >= n_rows:
            raise ValueError(
                f"a number of {digits} digits under an offset of up to {self.largest} needs address "
                f"{self.largest + digits}; the table ends at {n_rows - 1}. Use smaller offsets or shorter numbers"
            )


def spread_offsets(count: int, digits: int, last_row: int) -> list[Offsets]:
    """Fixed offsets, evenly spread over those that keep sums of so many digits on trained rows (chapter 32).

    digits: of the operands. last_row: the last address that training showed on any digit, k + the longest operand of
    training. The offsets are the middles of `count` equal parts of 0 to last_row - digits - 1, rounded down; fewer
    where there are not so many.
    Raises ValueError where no offset does.

    >>> [policy.value for policy in spread_offsets(4, digits=40, last_row=120)]
    [10, 30, 50, 70]
    """
    last = last_row - digits - 1
    if count < 1 or last < 0:
        raise ValueError(f"no {count} offsets keep sums of {digits} digits within rows up to {last_row}")
    values = {int((2 * part + 1) * (last + 1) / (2 * count)) for part in range(count)}
    return [Offsets("fixed", value=value) for value in sorted(values)]


# ---- schemes -----------------------------------------------------------------------------------------------------


@dataclass
class PositionTerms:
    """What the positions of T tokens among S contribute; each part is None where the scheme has none of it.

    embedding: (B, T, D) added to the input. on_qk: (B, T, H, K) added to queries and keys of every layer.
    rotation: cosines and sines (T, K / 2) that turn queries and keys.
    bias: (H, T, S) or (B, 1 or H, T, S) added to the scores.
    """

    embedding: Tensor | None = None
    on_qk: Tensor | None = None
    rotation: tuple[Tensor, Tensor] | None = None
    bias: Tensor | None = None

    def apply(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys (B, T, H, K) as their positions change them."""
        if self.on_qk is not None:
            q, k = q + self.on_qk, k + self.on_qk
        if self.rotation is not None:
            q, k = rotate(q, *self.rotation), rotate(k, *self.rotation)
        return q, k


class Positions(nn.Module):
    """One position scheme with its parameters.

    scheme: one of SCHEMES. n_rows: rows of the address table (row 0 is for what is no digit). n_ctx: places of the
    scheme "learned", whose model takes no longer text. window: of digits in columns farther away nothing is seen.
    """

    def __init__(self, scheme: str, d_model: int, n_heads: int, n_rows: int, n_ctx: int, window: int | None = None):
        super().__init__()
        if scheme not in SCHEMES:
            raise ValueError(f"positions = {scheme!r}: choose one of {', '.join(SCHEMES)}")
        self.scheme, self.n_heads, self.d_head, self.window = scheme, n_heads, d_model // n_heads, window
        self.parts = set(scheme.split("+"))
        if self.addressed:
            self.rows = nn.Embedding(n_rows, d_model)
        if "learned" in self.parts:
            self.places = nn.Embedding(n_ctx, d_model)
        if "fire" in self.parts:
            self.fire = Fire(n_heads)

    @property
    def addressed(self) -> bool:
        """Whether the scheme has an address table, so that offsets matter."""
        return bool(self.parts & {"abacus", "abacus-qk", "coupling"})

    def require(self, offsets: Offsets, digits: int) -> None:
        """Raises ValueError unless the table has a row for every digit of such a number under these offsets."""
        if self.addressed:
            offsets.require(digits + ("coupling" in self.parts), self.rows.num_embeddings)

    def forward(self, tokens: Tensor, offset: Tensor | None, start: int = 0) -> PositionTerms:
        """What the positions of the T = S - start tokens from `start` on contribute, given (B, S) tokens so far.

        offset: (B, 1) or (1, 1), None for 0. Raises ValueError for a text longer than the learned positions.
        """
        S = tokens.shape[1]
        offset = tokens.new_zeros(1, 1) if offset is None else offset
        placed = PositionTerms()
        if self.addressed:
            address = (coupled if "coupling" in self.parts else addresses)(tokens, offset)[:, start:]
            if "abacus-qk" in self.parts:
                placed.on_qk = self.rows(address).unflatten(-1, (self.n_heads, self.d_head))
            else:
                placed.embedding = self.rows(address)
        if "learned" in self.parts:
            if S > self.places.num_embeddings:
                raise ValueError(f"{S} tokens, but learned places end at {self.places.num_embeddings}")
            placed.embedding = self.places.weight[start:S]
        place = torch.arange(S, device=tokens.device)
        if "rotary" in self.parts:
            placed.rotation = rotation(place[start:], self.d_head)
        if "fire" in self.parts:
            placed.bias = self.fire(place[start:], place)
        if self.window is not None:
            far = far_columns(tokens, self.window)[:, None, start:]
            bias = torch.zeros(1, device=tokens.device) if placed.bias is None else placed.bias
            placed.bias = bias.masked_fill(far, -torch.inf)
        return placed


def rotation(places: Tensor, d_head: int) -> tuple[Tensor, Tensor]:
    """(..., T) places -> cosines and sines (..., T, K / 2) of place / 10000^(2 i / K) (Su et al. 2021, eq. 15)."""
    frequency = 10_000.0 ** (-torch.arange(0, d_head, 2, device=places.device) / d_head)
    angle = places[..., None] * frequency
    return angle.cos(), angle.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """(..., T, H, K) with entries i and i + K / 2 of each token turned as a pair, by its angle i (..., T, K / 2)."""
    first, second = x.chunk(2, -1)
    cos, sin = cos.unsqueeze(-2), sin.unsqueeze(-2)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1).to(x.dtype)


class Fire(nn.Module):
    """FIRE (Li et al. 2023, eq. 7): a small MLP of log distance over log place, one score a head.

    bias(i, j) = MLP(log(c (i - j) + 1) / log(c max(i, L) + 1)); c, L and the MLP are learned, shared by all layers.
    """

    def __init__(self, n_heads: int, width: int = 32):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(1, width), nn.ReLU(), nn.Linear(width, n_heads))
        self.c = nn.Parameter(torch.tensor(0.1))
        self.threshold = nn.Parameter(torch.tensor(512.0))

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """(T,) and (S,) places -> (H, T, S); entries of keys after their query mean nothing, they are masked."""
        distance = (queries[:, None] - keys).clamp(min=0)
        reach = torch.maximum(queries.to(self.threshold.dtype), self.threshold.abs())
        share = (self.c.abs() * distance).log1p() / (self.c.abs() * reach).log1p()[:, None].clamp(min=1e-6)
        return self.mlp(share[..., None]).permute(2, 0, 1)
