"""One-layer transformers for column arithmetic, which differ in how attention knows positions.

Every token has a *number* (which of the numbers of the text it belongs to) and an *index* (its column in that
number, from 1), both functions of the tokens so far. A sign opens the number after it, at index 0.

    tokens      3 2 1 + 6 5 4 = 9 7 5 $
    number      0 0 0 1 1 1 1 2 2 2 2 3
    index       1 2 3 0 1 2 3 0 1 2 3 0

A token with index i asks for column i + 1, the one that comes next in its number; a key with index j is at
*distance* i + 1 - j from it. Of answer digit i, distance 0 is column i + 1 of both operands, and distance 1 is column
i of both operands and the digit itself.

A text of running totals is two tables, the question and the answer, with a line after each sign. There a token is
addressed by *part* (0 the question, 1 the answer), *line* and index:

    tokens      2 1 + 4 3 + 5 = 2 1 = 6 4 = 1 5 = $
    part        0 0 0 0 0 0 0 1 1 1 1 1 1 1 1 1 1 1
    line        0 0 1 1 1 2 2 0 0 0 1 1 1 2 2 2 3 3
    index       1 2 0 1 2 0 1 0 1 2 0 1 2 0 1 2 0 0

A page of long multiplication has a row for each digit of the second factor. A row begins with `=` and is the total of
the partial products so far, each of its digits but the last followed by the carry out of that place. A token is
addressed by part (0 and 1 the factors, 2 the page), row, and *step*, how far it is from the sign before it:

    tokens      2 1 * 4 3 = 8 0 4 0 0 = 8 0 0 1 4 0 0 = $          12 x 34: 4 x 12 = 048, and 048 + 3 x 120 = 0408
    part        0 0 1 1 1 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2
    row         0 0 0 0 0 0 0 0 0 0 0 1 1 1 1 1 1 1 1 2 2
    step        1 2 0 1 2 0 1 2 3 4 5 0 1 2 3 4 5 6 7 0 0

Of a row, steps 2 m and 2 m + 1 ask for what is written at place m: its digit, and then the carry out of it.

A difference is written in two passes over the columns: first which number is less so far (1 the first, 2 the second,
0 neither), then the sign and the digits. A token is addressed by part and index:

    tokens      2 1 - 4 3 = 1 1 = - 2 2 $          12 - 34 = -22
    part        0 0 1 1 1 2 2 2 3 4 4 4 5
    index       1 2 0 1 2 0 1 2 0 0 1 2 0

Dimensions: B batch, T tokens (queries), S keys, N numbers, R slots (relative positions), D d_model, H heads, K
d_head, F d_mlp, V vocabulary.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from arithlib.models.attention import attend
from arithlib.models.positions import number_index, rotate, rotation
from arithlib.settings import of_kind
from arithlib.tokenizer import ABSENT, ALPHABET, END, EQUALS, TIMES

# A learned bias for each head, number of the key and distance from 0 to `window`. Keys at any other distance ...
RELATIVE = (
    "window",  # are masked
    "window-sink",  # are masked, but a learned score may go to no key at all (an attention sink: Xiao et al. 2024)
    "alibi",  # lose a learned slope of score with each further column (Press et al. 2022)
    "full",  # have bias 0
    "log-scaled",  # have bias 0, and all scores are multiplied by the logarithm of the number of visible keys
)
WINDOWED = ("window", "window-sink")
# A learned embedding of the index, which an offset moves along the table.
TABLES = (
    "abacus",  # of digits; signs share row 0 (McLeish et al. 2024)
    "coupling",  # of digits and signs; end tokens have row 0 (Cho et al. 2024)
)
# Queries and keys are turned by an angle (Su et al. 2021).
ROTARY = (
    "rotary",  # of the index
    "rotary-text",  # of the place in the text
)
# A learned score and value for each relative position (Shaw et al. 2018): differences from 0 to `window`, by part.
GRID = (
    "grid",  # of lines and of columns
    "line-label",  # of columns, and a learned embedding of the line
    "column-only",  # of columns: all lines look alike
    "distance",  # of places in the text, up to `n_rows`, whatever the part
    "page",  # of rows and places on a page of long multiplication: those of `PAGE_SLOTS`, and no others
    "difference",  # of columns in the two passes of a subtraction: those of `DIFFERENCE_SLOTS`, and no others
)
# Of what a token of a page sees, at the place m of row i that it asks for.
PAGE_SLOTS = (
    "first factor",  # its digit m - i, counted from 0
    "second factor",  # its digit i
    "above",  # the digit at place m of the row above
    "before",  # if the token is a digit: the carry into its place, or the sign that opens the row
    "own digit",  # itself, if it is a digit of the row, after which a carry or the end of the row is due
    "own sign",  # itself, if it is not: a carry or a sign, after which a digit is due
)
# Of what a token of a difference sees, after `=` and in both passes. i: the column it asks for.
DIFFERENCE_SLOTS = (
    "first number",  # its digit of column i
    "second number",  # its digit of column i
    "below",  # which number is less in the columns below i; before the sign, in all of them
    "sign",  # of the difference
    "own",  # itself, if it is not the sign
)
# Where a token that writes sees itself: in the first of these slots that holds anything.
OWN_SLOTS = {
    "page": (PAGE_SLOTS.index("own digit"), PAGE_SLOTS.index("own sign")),
    "difference": (DIFFERENCE_SLOTS.index("own"), DIFFERENCE_SLOTS.index("sign")),
}
POSITIONS = (*RELATIVE, *TABLES, *ROTARY, *GRID)
# Numbers of `a+b=c$`: the two operands, the answer, and what its end token would open.
N_NUMBERS, ANSWER = 4, 2


# ---- addresses ---------------------------------------------------------------------------------------------------


def segment_ids(tokens: Tensor) -> Tensor:
    """(B, T) tokens -> (B, T) which number each belongs to, from 0; a token that is no digit opens the next.

    >>> segment_ids(torch.tensor([[3, 2, 1, 11, 6, 5, 4, 13]]))
    tensor([[0, 0, 0, 1, 1, 1, 1, 2]])
    """
    return (tokens >= 10).cumsum(1).clamp(max=N_NUMBERS - 1)


def column_distance(tokens: Tensor) -> Tensor:
    """(B, T) tokens -> (B, T, S) how many columns each key is before the one that each query asks for."""
    index = number_index(tokens)
    return index[:, :, None] + 1 - index[:, None]


def table_address(tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(B, T) tokens -> (B, T) part, line and index of each.

    >>> [row.tolist() for row in table_address(torch.tensor([[2, 1, 11, 5, 13, 2, 1, 13, 7]]))]
    [[[0, 0, 0, 0, 1, 1, 1, 1, 1]], [[0, 0, 1, 1, 0, 0, 0, 1, 1]], [[1, 2, 0, 1, 0, 1, 2, 0, 1]]]
    """
    part = (tokens == EQUALS).cumsum(1).clamp(max=1)
    signs = ((tokens >= 10) & (tokens != END)).cumsum(1)
    opened = (signs * (1 - part)).amax(1, keepdim=True)  # signs of the question; the first `=` is one more
    return part, signs - part * (opened + 1), number_index(tokens)


def page_address(tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(B, T) tokens -> (B, T) part, row and step of each.

    >>> [row.tolist() for row in page_address(torch.tensor([[2, 12, 4, 3, 13, 8, 0, 0, 13, 8]]))]
    [[[0, 1, 1, 1, 2, 2, 2, 2, 2, 2]], [[0, 0, 0, 0, 0, 0, 0, 0, 1, 1]], [[1, 0, 1, 2, 0, 1, 2, 3, 0, 1]]]
    """
    opened = (tokens == EQUALS).cumsum(1)
    part = (tokens == TIMES).cumsum(1).clamp(max=1) + opened.clamp(max=1)
    return part, (opened - 1).clamp(min=0), number_index(tokens)


def page_slots(tokens: Tensor) -> Tensor:
    """(B, T) tokens -> (B, T, S) which of `PAGE_SLOTS` every key is in for every query, ABSENT for none.

    A token of a factor sees itself alone.
    """
    part, row, step = page_address(tokens)
    time = torch.arange(tokens.shape[1], device=tokens.device)
    place, is_digit = step // 2, (part == 2) & (step % 2 == 1)

    def of_query(x):
        return x[..., None]

    def of_key(x):
        return x[..., None, :]

    on_page = of_query(part == 2) & (of_query(time) >= of_key(time))
    above = (of_key(row) == of_query(row) - 1) & (of_key(part) == 2)
    itself = of_query(time) == of_key(time)
    seen_at = (
        on_page & (of_key(part) == 0) & (of_key(step) - 1 == of_query(place - row)),
        on_page & (of_key(part) == 1) & (of_key(step) - 1 == of_query(row)),
        on_page & above & (of_key(step) == 2 * of_query(place) + 1),
        of_query(is_digit) & (of_query(time) - 1 == of_key(time)),
        of_query(is_digit) & itself,
        ~of_query(is_digit) & itself,
    )
    return _numbered(seen_at)


def difference_address(tokens: Tensor) -> tuple[Tensor, Tensor]:
    """(B, T) tokens -> (B, T) part and index of each.

    >>> [row.tolist() for row in difference_address(torch.tensor([[2, 10, 4, 3, 13, 1, 1, 13, 10, 2, 2]]))]
    [[[0, 1, 1, 1, 2, 2, 2, 3, 4, 4, 4]], [[1, 0, 1, 2, 0, 1, 2, 0, 0, 1, 2]]]
    """
    return (tokens >= 10).cumsum(1), number_index(tokens)


def difference_slots(tokens: Tensor) -> Tensor:
    """(B, T) tokens -> (B, T, S) which of `DIFFERENCE_SLOTS` every key is in for every query, ABSENT for none.

    A token of the question sees itself alone.
    """
    part, index = difference_address(tokens)
    time = torch.arange(tokens.shape[1], device=tokens.device)
    asking, key, column = part[..., None], part[..., None, :], index[..., None]
    in_column = ((asking == 2) | (asking == 4)) & (index[..., None, :] == column + 1)
    back = time[:, None] - time
    compared = (key == 2) & (index[..., None, :] > 0)
    signed = (asking == 4) & (key == 4) & (index[..., None, :] == 0)
    return _numbered((
        in_column & (key == 0),
        in_column & (key == 1),
        compared & ((asking == 4) & (index[..., None, :] == column) | (asking == 3) & (back == 1)),
        signed,
        (back == 0) & ~signed,
    ))  # fmt: skip


def own_token(positions: str, keys: Tensor) -> Tensor:
    """(N, R) keys of a page or a difference, ABSENT in empty slots -> (N,) the token that asks, one of them."""
    first, second = (keys[:, slot] for slot in OWN_SLOTS[positions])
    return torch.where(first == ABSENT, second, first)


def _numbered(seen_at):
    """(B, T, S) masks, at most one of which holds -> (B, T, S) which one does, ABSENT where none."""
    slot = torch.full(seen_at[0].shape, ABSENT, device=seen_at[0].device)
    for which, seen in enumerate(seen_at):
        slot = slot.masked_fill(seen, which)
    return slot


# ---- the model ---------------------------------------------------------------------------------------------------


@of_kind("column-model")
@dataclass(frozen=True)
class ColumnConfig:
    """Sizes of the model, and how it knows positions.

    positions: one of POSITIONS. window: the largest difference that has a learned bias, of RELATIVE and GRID.
    n_rows: of a table; no text may ask for more. Of "line-label" as many lines have an embedding, the last stands for
        all lines from there on; "distance" tells distances apart up to it. tied: the unembedding is the embedding.
    """

    positions: str = "window"
    d_model: int = 32
    n_heads: int = 4
    d_mlp: int = 64
    window: int = 1
    n_rows: int = 64
    tied: bool = False

    def __post_init__(self):
        if self.positions not in POSITIONS:
            raise ValueError(f"positions = {self.positions!r}: choose one of {', '.join(POSITIONS)}")
        parts, named = (2 * self.n_heads, "2 n_heads") if self.positions in ROTARY else (self.n_heads, "n_heads")
        if self.d_model % parts:
            raise ValueError(f"d_model = {self.d_model} is not a multiple of {named} = {parts}")
        if self.window < 1 or self.n_rows < 1:
            raise ValueError(
                f"window = {self.window}, n_rows = {self.n_rows}: at least 1, or a token does not see itself"
            )

    @property
    def n_slots(self) -> int:
        """R, how many relative positions GRID tells apart."""
        near = self.window + 1
        sizes = {"grid": 2 * near**2, "distance": self.n_rows + 1}
        sizes |= {"page": len(PAGE_SLOTS), "difference": len(DIFFERENCE_SLOTS)}
        return sizes.get(self.positions, 2 * near)


class ColumnTransformer(nn.Module):
    """Embedding, one layer of attention, one ReLU MLP, logits; no norm anywhere.

        x = embedding[token] + numbers[number]          TABLES: + rows[address]; GRID: no numbers, + lines[line]
        x = x + out(softmax(q k / sqrt(K) + bias) v)    ROTARY: q, k turned; GRID: v + near_value[slot]
        x = x + mlp_out(relu(mlp_in(x)))
        logits = unembedding(x)

    bias: of RELATIVE `near[h, number of the key, distance]`, of GRID `near[slot, h]`, else 0. A sink is one more term
    exp(sink[h]) in the denominator of the softmax. kernel: as in `LoopedTransformer`; GRID needs the pattern and is
    always eager.
    """

    def __init__(self, config: ColumnConfig, seed: int = 0):
        super().__init__()
        c, D, H = config, config.d_model, config.n_heads
        self.config, self.kernel = config, "sdpa"
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embedding = nn.Embedding(len(ALPHABET), D)
            if c.positions in GRID:
                self.near = nn.Parameter(torch.randn(c.n_slots, H))
                # Small, or it drowns what is read: of two runs with values of size one, one ended far from right.
                self.near_value = nn.Parameter(0.2 * torch.randn(c.n_slots, H, D // H))
            else:
                # Softmax averages. Without these, 3 3 + 3 and 3 alone would be one and the same average.
                self.numbers = nn.Embedding(N_NUMBERS, D)
            if c.positions in RELATIVE:
                self.near = nn.Parameter(torch.randn(H, N_NUMBERS, c.window + 1))
            self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D, bias=False)
            self.mlp_in, self.mlp_out = nn.Linear(D, c.d_mlp), nn.Linear(c.d_mlp, D)
            self.unembedding = nn.Linear(D, len(ALPHABET))
            if c.positions in TABLES:
                self.rows = nn.Embedding(c.n_rows, D)
            if c.positions == "line-label":
                self.lines = nn.Embedding(c.n_rows, D)
        if c.positions == "alibi":
            self.log_slope = nn.Parameter(torch.zeros(H))
        if c.positions == "window-sink":
            self.sink = nn.Parameter(torch.zeros(H))
        if c.tied:
            self.unembedding.weight = self.embedding.weight
            self.register_state_dict_post_hook(_untie)

    def forward(
        self,
        tokens: Tensor,
        offset: Tensor | None = None,
        reach: int | None = None,
        return_activations: bool = False,
    ):
        """(B, T) tokens -> (B, T, V) logits of the next token.

        offset: (B, 1) or (1, 1), what is added to the index of TABLES; None for 0.
        reach: keys more than so many columns away from the one to be added and the one just done are masked; None
            masks none, 0 leaves a window of one column.
        return_activations: also return a dict of `resid_pre`, `resid_mid`, `resid_post` (B, T, D) and `pattern`
            (B, H, T, S); the kernel is eager.
        """
        x, q, k, v = self.project(tokens, segment_ids(tokens), self.address(tokens, offset))
        bias, by_slot = self.bias(tokens, reach), self.config.positions in GRID
        if self.config.positions == "log-scaled":
            factor = self.sharpness(torch.arange(1, tokens.shape[1] + 1, device=tokens.device))
            q, bias = q * factor[:, None, None], bias * factor[:, None]
        if self.config.positions == "window-sink":  # a key and a value of zeros, before all others
            k, v = (F.pad(each, (0, 0, 0, 0, 1, 0)) for each in (k, v))
            bias = torch.cat([self.sink[:, None, None].expand(*bias.shape[:3], 1), bias], 3)
        z, pattern = attend(q, k, v, "eager" if by_slot or return_activations else self.kernel, bias)
        if by_slot:
            z = z + self._read_slots(pattern, self.slots(tokens))
        mid = x + self.out(z.flatten(2))
        post = self.add_neurons(mid)
        logits = self.unembedding(post)
        if not return_activations:
            return logits
        pattern = pattern[..., -tokens.shape[1] :]  # without the sink
        return logits, {"resid_pre": x, "resid_mid": mid, "resid_post": post, "pattern": pattern}

    def address(self, tokens: Tensor, offset: Tensor | None = None) -> Tensor | None:
        """(B, T) tokens -> (B, T) or (T,) row, line, index or place that is embedded or turned by; None for none."""
        if self.config.positions == "rotary-text":
            return torch.arange(tokens.shape[1], device=tokens.device)
        if self.config.positions == "line-label":
            return table_address(tokens)[1].clamp(max=self.config.n_rows - 1)
        if self.config.positions in (*TABLES, "rotary"):
            return self.address_at(tokens, number_index(tokens), 0 if offset is None else offset)
        return None

    def address_at(self, tokens: Tensor, index: Tensor, offset: Tensor | int = 0) -> Tensor:
        """The address of tokens at these indices in their numbers, any shapes that broadcast.

        Raises ValueError for positions that are no function of the index.
        """
        if self.config.positions == "abacus":
            return torch.where(tokens < 10, index + offset, 0)
        if self.config.positions == "coupling":
            return torch.where(tokens == END, 0, index + offset + 1)
        if self.config.positions == "rotary":
            return index
        raise ValueError(f"positions = {self.config.positions!r} do not follow from the index in a number")

    def project(
        self, tokens: Tensor, number: Tensor, address: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Of tokens in these numbers at these addresses, any shapes that broadcast: x (..., D), q, k, v (..., H, K).

        Raises ValueError for a row beyond the table.
        """
        c, x = self.config, self.embedding(tokens)
        if c.positions not in GRID:
            x = x + self.numbers(number)
        if c.positions in TABLES:
            if int(address.max()) >= c.n_rows:
                raise ValueError(f"address {int(address.max())}: the table ends at {c.n_rows - 1}")
            x = x + self.rows(address)
        if c.positions == "line-label":
            x = x + self.lines(address)
        q, k, v = self._split(x)
        if c.positions in ROTARY:
            turn = rotation(address, q.shape[-1])
            q, k = rotate(q, *turn), rotate(k, *turn)
        return x, q, k, v

    def _split(self, x):
        return self.qkv(x).unflatten(-1, (3, self.config.n_heads, -1)).unbind(-3)

    def add_neurons(self, mid: Tensor) -> Tensor:
        """(..., D) residual stream between attention and MLP -> (..., D) the same with what the MLP adds."""
        return mid + self.mlp_out(F.relu(self.mlp_in(mid)))

    # ---- what positions add to scores and values ----

    def bias(self, tokens: Tensor, reach: int | None = None) -> Tensor | None:
        """(B, T) tokens -> (B, H or 1, T, S) what is added to the score of every query and key; None for nothing.

        reach: as in `forward`. Keys after their query are masked elsewhere.
        """
        bias = None
        if self.config.positions in RELATIVE:
            bias = self.bias_at(segment_ids(tokens)[:, None], column_distance(tokens)).movedim(-1, 1)
        if self.config.positions in GRID:
            slot = self.slots(tokens)[:, None].expand(-1, self.config.n_heads, -1, -1)
            near = self.near.T[None, :, None].expand(*slot.shape[:3], -1)
            bias = near.gather(3, slot.clamp(min=0)).masked_fill(slot == ABSENT, -torch.inf)
        if reach is not None:
            distance = column_distance(tokens)
            beyond = ((distance < -reach) | (distance > 1 + reach))[:, None]
            unmasked = torch.zeros_like(beyond, dtype=self.embedding.weight.dtype) if bias is None else bias
            bias = unmasked.masked_fill(beyond, -torch.inf)
        return bias

    def bias_at(self, number: Tensor, distance: Tensor) -> Tensor:
        """RELATIVE: of keys in these numbers at these distances, any shapes that broadcast -> that shape and (H,)."""
        nearest = distance.clamp(0, self.config.window)
        near = self.near.permute(1, 2, 0)[number, nearest]
        steps = (distance - nearest).abs()[..., None]
        if self.config.positions in WINDOWED:
            far = torch.full_like(steps, -torch.inf, dtype=near.dtype)
        elif self.config.positions == "alibi":
            far = -self.log_slope.exp() * steps
        else:
            far = torch.zeros_like(near)
        return torch.where(steps == 0, near, far)

    def sharpness(self, visible: Tensor) -> Tensor:
        """What the scores of a token that sees so many keys are multiplied by: 1, or their logarithm."""
        visible = visible.to(self.near.dtype)
        return visible.log() if self.config.positions == "log-scaled" else torch.ones_like(visible)

    def slots(self, tokens: Tensor) -> Tensor:
        """GRID: (B, T) tokens -> (B, T, S) slot of every query and key, ABSENT where the key is not seen."""
        place = torch.arange(tokens.shape[1], device=tokens.device)
        back = (place[:, None] - place).expand(len(tokens), -1, -1)
        if self.config.positions == "distance":
            return torch.where(back < 0, ABSENT, back.clamp(max=self.config.n_rows))
        if self.config.positions == "page":
            return page_slots(tokens)
        if self.config.positions == "difference":
            return difference_slots(tokens)
        part, line, _ = table_address(tokens)
        lines, columns = line[:, :, None] - line[:, None], column_distance(tokens)
        slot, seen = part[:, None].expand_as(lines), back >= 0
        for difference in (lines, columns) if self.config.positions == "grid" else (columns,):
            slot = slot * (self.config.window + 1) + difference
            seen = seen & (difference >= 0) & (difference <= self.config.window)
        return torch.where(seen, slot, ABSENT)

    def _read_slots(self, pattern, slot):
        """(B, T, H, K) what heads read of `near_value`, by (B, H, T, S) patterns and (B, T, S) slots."""
        slot = slot[:, None].expand_as(pattern).clamp(min=0)  # what is not seen has weight 0
        by_slot = pattern.new_zeros(*pattern.shape[:3], self.config.n_slots).scatter_add(3, slot, pattern)
        return torch.einsum("bhtr,rhk->bthk", by_slot, self.near_value)

    # ---- tables, where a token's vectors depend on nothing but its number ----

    def token_tables(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Residual stream (N, V, D) and queries, keys and values (N, V, H, K) of every token in every number.

        Of RELATIVE; of GRID without "line-label" too, where there is no axis N.
        """
        x = self.embedding.weight
        if self.config.positions in RELATIVE:
            x = x + self.numbers.weight[:, None]
        return x, *self._split(x)

    def slot_logits(self, query: Tensor, keys: Tensor) -> Tensor:
        """GRID without "line-label": (N,) tokens and the (N, R) tokens at each slot, ABSENT where none is -> (N, V).

        The same as `forward`, where a slot holds at most one key.
        """
        x, q, k, v = self.token_tables()
        present = keys.clamp(min=0)
        # A look-up by F.embedding, which is much faster to train through than indexing.
        scores = F.embedding(query[:, None] * len(x) + present, content_scores(q, k).flatten(0, 1)) + self.near
        pattern = scores.masked_fill((keys == ABSENT)[..., None], -torch.inf).softmax(1)
        values = F.embedding(present, v.flatten(1)).unflatten(-1, v.shape[1:]) + self.near_value
        z = torch.einsum("nrh,nrhk->nhk", pattern, values)
        return self.unembedding(self.add_neurons(F.embedding(query, x) + self.out(z.flatten(1))))

    def score_table(self) -> Tensor:
        """(V, N, V, H) scores that content gives an answer token and the key of a number; of RELATIVE."""
        _, q, k, _ = self.token_tables()
        return content_scores(q[ANSWER], k)


def content_scores(q: Tensor, k: Tensor) -> Tensor:
    """(V, H, K) queries and (..., V, H, K) keys of every token -> (V, ..., V, H) scores of all pairs."""
    return torch.einsum("qhk,...shk->q...sh", q, k) / q.shape[-1] ** 0.5


def _untie(model, state, prefix, metadata):
    """Safetensors files do not share memory between tensors."""
    state[f"{prefix}unembedding.weight"] = state[f"{prefix}unembedding.weight"].clone()


# ---- other sizes -------------------------------------------------------------------------------------------------


@torch.no_grad()
def resize(model: ColumnTransformer, config: ColumnConfig) -> ColumnTransformer:
    """A model of other sizes: what fits both is copied, new weights are random.

    To cut off weights that are zero changes no output: queries are rescaled, since scores are divided by the root of
    the head's size. Raises ValueError for several heads, whose dimensions would be mixed up.
    """
    for size in (model.config, config):
        if size.n_heads != 1:
            raise ValueError(f"n_heads = {size.n_heads}: a model that is resized has one head")
    # Large seeds, so that new weights are none of the old ones.
    seed = int(torch.randint(2**31, (), generator=torch.Generator().manual_seed(config.d_model)))
    resized, weights = ColumnTransformer(config, seed), dict(model.named_parameters())
    for name, value in resized.named_parameters():
        new, old = _overlap(name, value.detach(), weights[name].detach())
        new.copy_(old)
        if name.startswith("qkv"):
            new[0] *= math.sqrt(config.d_model / model.config.d_model)
    return resized


def kept_weights(model: ColumnTransformer, config: ColumnConfig) -> dict[str, Tensor]:
    """By parameter of the model, ones on the weights that `resize` to these sizes keeps, and zeros on all others."""
    kept, small = {}, dict(ColumnTransformer(config).named_parameters())
    for name, value in model.named_parameters():
        kept[name] = torch.zeros_like(value)
        _overlap(name, kept[name], small[name])[0].fill_(1)
    return kept


def _overlap(name: str, one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Views of two tensors of one parameter as far as both go; queries, keys and values have an axis of their own."""
    if name.startswith("qkv"):
        one, other = one.unflatten(0, (3, -1)), other.unflatten(0, (3, -1))
    both = tuple(slice(min(sizes)) for sizes in zip(one.shape, other.shape, strict=True))
    return one[both], other[both]
