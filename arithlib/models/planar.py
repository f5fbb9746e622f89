"""A transformer that looks by two addresses: which line of a table, and which place in the line (chapter 74).

A text of the form question = answer is two tables, a line after each sign (`arithlib.tasks.totals`). Every token has
a *part* (0 the question, 1 the answer), a *line* in it and an *index* in the line, functions of the tokens so far:

    tokens      2 1 + 4 3 + 5 = 2 1 = 6 4 = 1 5 = $
    part        0 0 0 0 0 0 0 1 1 1 1 1 1 1 1 1 1 1
    line        0 0 1 1 1 2 2 0 0 0 1 1 1 2 2 2 3 3
    index       1 2 0 1 2 0 1 0 1 2 0 1 2 0 1 2 0 0

A token asks for the cell that comes next, (line, index + 1). A key is so many lines and so many places before that
cell; scores and values know these differences alone, so that no length and no count is new.

Dimensions: B batch, T tokens (queries), S keys, N contexts, R slots (relative addresses), D d_model, H heads,
K d_head, F d_mlp, V vocabulary.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from arithlib.models.positions import number_index
from arithlib.settings import of_kind
from arithlib.tasks.totals import RunningTotals
from arithlib.tokenizer import ALPHABET, END, EQUALS, CharacterTokenizer

ADDRESSES = (
    "plane",  # lines and places before the cell that comes next
    "label",  # places, and a learned vector for each line, as Abacus has one for each place
    "index",  # places alone: all lines look alike
    "token",  # tokens before this one: no table at all
)
ABSENT = -1
# Contexts at once: enough for full speed, little enough for any machine.
CONTEXTS_A_PASS = 32_768


@of_kind("planar-model")
@dataclass(frozen=True)
class PlanarConfig:
    """Sizes of the model and what it knows of a key's place.

    addresses: one of ADDRESSES. window: the largest difference that is seen, in lines and in places. reach: "label"
        has as many vectors, the last for all lines from there on; "token" tells distances apart up to it.
    """

    d_model: int = 32
    n_heads: int = 4
    d_mlp: int = 128
    addresses: str = "plane"
    window: int = 1
    reach: int = 64

    def __post_init__(self):
        if self.d_model % self.n_heads:
            raise ValueError(f"d_model = {self.d_model} is not a multiple of n_heads = {self.n_heads}")
        if self.addresses not in ADDRESSES:
            raise ValueError(f"addresses = {self.addresses!r}: choose one of {', '.join(ADDRESSES)}")
        if self.window < 1 or self.reach < 1:
            raise ValueError(
                f"window = {self.window}, reach = {self.reach}: at least 1, or a token does not see itself"
            )

    @property
    def n_slots(self) -> int:
        """R, how many relative addresses are told apart."""
        near = self.window + 1
        return {"plane": 2 * near**2, "token": self.reach + 1}.get(self.addresses, 2 * near)


def table_address(tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(B, T) tokens -> (B, T) part, line and index of each.

    >>> [row.tolist() for row in table_address(torch.tensor([[2, 1, 11, 5, 13, 2, 1, 13, 7]]))]
    [[[0, 0, 0, 0, 1, 1, 1, 1, 1]], [[0, 0, 1, 1, 0, 0, 0, 1, 1]], [[1, 2, 0, 1, 0, 1, 2, 0, 1]]]
    """
    part = (tokens == EQUALS).cumsum(1).clamp(max=1)
    signs = ((tokens >= 10) & (tokens != END)).cumsum(1)
    opened = (signs * (1 - part)).amax(1, keepdim=True)  # signs of the question; the first `=` is one more
    return part, signs - part * (opened + 1), number_index(tokens)


class PlanarTransformer(nn.Module):
    """Embedding, one layer of attention with relative addresses, one ReLU MLP, logits; no norm anywhere.

        x = embedding[token]                               "label" adds lines[line]
        x = x + out(sum over keys of p (v + near_value[slot]))     p = softmax(q k / sqrt(K) + near[slot])
        x = x + mlp_out(relu(mlp_in(x)))
        logits = unembedding(x)

    `slot` is the key's relative address; a key without one is masked. That values carry their relative address
    (Shaw et al. 2018) is what tells a digit of the last total from the same digit of this one.
    """

    def __init__(self, config: PlanarConfig, seed: int = 0):
        super().__init__()
        c = self.config = config
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embedding = nn.Embedding(len(ALPHABET), c.d_model)
            self.near = nn.Parameter(torch.randn(c.n_slots, c.n_heads))
            # Small, or it drowns what is read: of two runs with vectors of size one, one ended far from right.
            self.near_value = nn.Parameter(0.2 * torch.randn(c.n_slots, c.n_heads, c.d_model // c.n_heads))
            self.qkv, self.out = nn.Linear(c.d_model, 3 * c.d_model), nn.Linear(c.d_model, c.d_model, bias=False)
            self.mlp_in, self.mlp_out = nn.Linear(c.d_model, c.d_mlp), nn.Linear(c.d_mlp, c.d_model)
            self.unembedding = nn.Linear(c.d_model, len(ALPHABET))
            if c.addresses == "label":
                self.lines = nn.Embedding(c.reach, c.d_model)

    def slots(self, tokens: Tensor) -> Tensor:
        """(B, T) tokens -> (B, T, T) slot of every query and key, ABSENT where the key is not seen."""
        place = torch.arange(tokens.shape[1])
        back = (place[:, None] - place).expand(len(tokens), -1, -1)
        if self.config.addresses == "token":
            return torch.where(back < 0, ABSENT, back.clamp(max=self.config.reach))
        part, line, index = table_address(tokens)
        lines, places = line[:, :, None] - line[:, None], index[:, :, None] + 1 - index[:, None]
        slot, seen = part[:, None].expand_as(lines), back >= 0
        for difference in (lines, places) if self.config.addresses == "plane" else (places,):
            slot = slot * (self.config.window + 1) + difference
            seen = seen & (difference >= 0) & (difference <= self.config.window)
        return torch.where(seen, slot, ABSENT)

    def forward(self, tokens: Tensor, return_activations: bool = False):
        """(B, T) tokens -> (B, T, V) logits of the next token.

        return_activations: also return a dict of `resid_pre`, `resid_mid`, `resid_post` (B, T, D) and `pattern`
            (B, H, T, T).
        """
        x = self.embedding(tokens)
        if self.config.addresses == "label":
            x = x + self.lines(table_address(tokens)[1].clamp(max=self.config.reach - 1))
        q, k, v = self.qkv(x).unflatten(-1, (3, self.config.n_heads, -1)).unbind(2)
        slot = self.slots(tokens)
        scores = torch.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
        seen, slot = (slot != ABSENT)[:, None], slot.clamp(min=0)[:, None].expand_as(scores)
        near = self.near.T[None, :, None].expand(*scores.shape[:3], -1)
        pattern = (scores + near.gather(3, slot)).masked_fill(~seen, -torch.inf).softmax(-1)
        by_slot = torch.zeros_like(near).scatter_add(3, slot, pattern)
        z = torch.einsum("bhts,bshk->bthk", pattern, v) + torch.einsum("bhtr,rhk->bthk", by_slot, self.near_value)
        mid, post, logits = self._after_attention(x, z)
        if not return_activations:
            return logits
        return logits, {"resid_pre": x, "resid_mid": mid, "resid_post": post, "pattern": pattern}

    def context_logits(self, query: Tensor, keys: Tensor) -> Tensor:
        """(N,) answer tokens and the (N, R) tokens at each slot, ABSENT where there is none -> (N, V).

        The same as `forward` for addresses in the plane, where a slot holds at most one key.
        """
        tokens = self.embedding.weight
        q, k, v = self.qkv(tokens).unflatten(-1, (3, self.config.n_heads, -1)).unbind(1)
        table = torch.einsum("qhk,shk->qsh", q, k) / q.shape[-1] ** 0.5
        present = keys.clamp(min=0)
        scores = F.embedding(query[:, None] * len(tokens) + present, table.flatten(0, 1)) + self.near
        pattern = scores.masked_fill((keys == ABSENT)[..., None], -torch.inf).softmax(1)
        values = F.embedding(present, v.flatten(1)).unflatten(-1, v.shape[1:]) + self.near_value
        z = torch.einsum("nrh,nrhk->nhk", pattern, values)
        return self._after_attention(F.embedding(query, tokens), z)[2]

    def _after_attention(self, x, z):
        mid = x + self.out(z.flatten(-2))
        post = mid + self.mlp_out(F.relu(self.mlp_in(mid)))
        return mid, post, self.unembedding(post)


# ---- answers -----------------------------------------------------------------------------------------------------


def answer_mask(tokens: Tensor) -> Tensor:
    """(B, T) True on tokens after which the answer goes on: from the first `=` to the last before the end token."""
    return (table_address(tokens)[0] == 1) & (tokens != END)


def contexts(tokens: Tensor, window: int = 1) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What decides each answer token of (B, T) whole texts, for addresses in the plane; time is linear in T.

    Returns (N,) queries, (N, R) keys as `context_logits` takes them, (N,) tokens to write and (N,) rows of `tokens`.
    """
    part, line, index = table_address(tokens)
    cells = tokens.new_full((len(tokens), 2, int(line.max()) + 1 + window, int(index.max()) + 2 + window), ABSENT)
    row, place = (tokens != END).nonzero().unbind(1)
    at = (row, place)
    cells[row, part[at], line[at] + window, index[at] + window] = tokens[at]
    row, place = answer_mask(tokens).nonzero().unbind(1)
    line, index = line[row, place] + window, index[row, place] + 1 + window
    near = range(window + 1)
    keys = [cells[row, part, line - up, index - left] for part in (0, 1) for up in near for left in near]
    keys[len(keys) // 2] = torch.full_like(row, ABSENT)  # the cell that comes next is not written yet
    return tokens[row, place], torch.stack(keys, 1), tokens[row, place + 1], row


@torch.no_grad()
def leads(model: PlanarTransformer, query: Tensor, keys: Tensor, following: Tensor) -> Tensor:
    """(N,) by how much the right token of each context beats the next best."""
    parts = zip(*(x.split(CONTEXTS_A_PASS) for x in (query, keys, following)), strict=True)
    return torch.cat([_lead(model.context_logits(q, k), right) for q, k, right in parts])


def _lead(logits, right):
    others = logits.scatter(1, right[:, None], -torch.inf).amax(1)
    return logits.gather(1, right[:, None])[:, 0] - others


@torch.no_grad()
def margins(model: PlanarTransformer, tokens: Tensor) -> Tensor:
    """(B, T) whole texts -> (B,) by how much the right token beats the next best, at the closest of its places.

    The right answer is given token by token; where the margin is positive, greedy decoding writes exactly it.
    """
    if model.config.addresses == "plane":
        query, keys, following, row = contexts(tokens, model.config.window)
        lead = leads(model, query, keys, following)
    else:
        row, place = answer_mask(tokens).nonzero().unbind(1)
        lead = _lead(model(tokens)[row, place], tokens[row, place + 1])
    return torch.full((len(tokens),), torch.inf).scatter_reduce(0, row, lead, "amin")


@torch.no_grad()
def right_by_line(model: PlanarTransformer, tokens: Tensor) -> Tensor:
    """(B, T) whole texts -> (L,) share of right tokens in each line of the answers, given the right ones before.

    The last line is the end token alone.
    """
    row, place = answer_mask(tokens).nonzero().unbind(1)
    if model.config.addresses == "plane":
        query, keys, following, _ = contexts(tokens, model.config.window)
        right = leads(model, query, keys, following) > 0
    else:
        right = _lead(model(tokens)[row, place], tokens[row, place + 1]) > 0
    line = table_address(tokens)[1][row, place]
    return torch.bincount(line, weights=right.double()) / torch.bincount(line)


@torch.no_grad()
def continued(model: PlanarTransformer, prompt: str, limit: int) -> str:
    """The prompt and what greedy decoding writes after it: up to an end token, or `limit` tokens.

    Keeps every token under its address, and looks up the few that the next one needs.
    """
    window, tokens = model.config.window, CharacterTokenizer().encode(prompt, end=False)
    cells, near = {}, range(window + 1)
    part, line, index = 0, 0, 0
    for place in range(len(prompt) + limit - 1):
        token = tokens[place]
        if token >= 10:
            part, line = (1, 0) if token == EQUALS and part == 0 else (part, line + 1)
        index = index + 1 if token < 10 else 0
        cells[part, line, index] = token
        if place < len(prompt) - 1:
            continue
        keys = [
            cells.get((which, line - up, index + 1 - left), ABSENT)
            for which in (0, 1)
            for up in near
            for left in near
        ]
        tokens.append(int(model.context_logits(torch.tensor([token]), torch.tensor([keys])).argmax()))
        if tokens[-1] == END:
            break
    return CharacterTokenizer().decode(tokens)


def total(model: PlanarTransformer, task: RunningTotals, numbers: list[int]) -> int:
    """The sum of these numbers as the model writes it. Raises ValueError for an answer that states none."""
    prompt = task.ask(numbers)
    # Every total has at most as many digits as the longest number and the count together, and a sign.
    limit = (len(numbers) + 2) * (max(len(str(n)) for n in numbers) + len(str(len(numbers))) + 2)
    return task.read(continued(model, prompt, limit))
