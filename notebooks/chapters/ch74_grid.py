"""Running totals of any size by a transformer with relative positions in two dimensions, in linear time.

The model's forward compares every token with every earlier one. With positions "grid" an answer token sees at most
one key at each relative position, and here it gathers those.

Dimensions: B texts, T tokens, N answer tokens of all texts, R slots (relative positions), H heads, K d_head, V
vocabulary.
"""

import torch
from torch import Tensor

from arithlib.evaluation import logit_margin
from arithlib.models.column import ColumnTransformer, table_address
from arithlib.tokenizer import ABSENT, END, EQUALS, CharacterTokenizer
from chapters.ch74_running_totals import RunningTotals

# Contexts at once: enough for full speed, little enough for any machine.
CONTEXTS_A_PASS = 32_768


def answer_mask(tokens: Tensor) -> Tensor:
    """(B, T) True on tokens after which the answer goes on: from the first `=` to the last before the end token."""
    return (table_address(tokens)[0] == 1) & (tokens != END)


def contexts(tokens: Tensor, window: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    """What decides each answer token of (B, T) whole texts, in the order of `answer_mask`; time is linear in T.

    Returns (N,) queries, (N, R) keys as `ColumnTransformer.slot_logits` takes them, and (N,) tokens to write.
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
    return tokens[row, place], torch.stack(keys, 1), tokens[row, place + 1]


# ---- margins -----------------------------------------------------------------------------------------------------


@torch.no_grad()
def context_margins(model: ColumnTransformer, query: Tensor, keys: Tensor, following: Tensor) -> Tensor:
    """(N,) margin of the token to write in each context, logits."""
    parts = zip(*(x.split(CONTEXTS_A_PASS) for x in (query, keys, following)), strict=True)
    return torch.cat([logit_margin(model.slot_logits(q, k), right) for q, k, right in parts])


@torch.no_grad()
def _answer_margins(model, tokens):
    """(N,) rows, places and margins of the answer tokens of (B, T) whole texts, given the right ones before."""
    row, place = answer_mask(tokens).nonzero().unbind(1)
    if model.config.positions == "grid":
        return row, place, context_margins(model, *contexts(tokens, model.config.window))
    return row, place, logit_margin(model(tokens)[row, place], tokens[row, place + 1])


def margins(model: ColumnTransformer, tokens: Tensor) -> Tensor:
    """(B, T) whole texts -> (B,) by how much the right token beats the next best, at the closest of its places.

    The right answer is given token by token; where the margin is positive, greedy decoding writes exactly it.
    """
    row, _, margin = _answer_margins(model, tokens)
    return torch.full((len(tokens),), torch.inf).scatter_reduce(0, row, margin, "amin")


def right_by_line(model: ColumnTransformer, tokens: Tensor) -> Tensor:
    """(B, T) whole texts -> (L,) share of right tokens in each line of the answers, given the right ones before.

    The last line is the end token alone.
    """
    row, place, margin = _answer_margins(model, tokens)
    line = table_address(tokens)[1][row, place]
    return torch.bincount(line, weights=(margin > 0).double()) / torch.bincount(line)


# ---- decoding ----------------------------------------------------------------------------------------------------


@torch.no_grad()
def continued(model: ColumnTransformer, prompt: str, limit: int) -> str:
    """The prompt and what greedy decoding writes after it: up to an end token, or `limit` tokens.

    For positions "grid". Keeps every token under its address, and looks up the few that the next one needs.
    """
    tokens, near = CharacterTokenizer().encode(prompt, end=False), range(model.config.window + 1)
    cells, (part, line, index) = {}, (0, 0, 0)
    for place in range(len(prompt) + limit - 1):
        token = tokens[place]
        if token >= 10:
            part, line = (1, 0) if token == EQUALS and part == 0 else (part, line + 1)
        index = index + 1 if token < 10 else 0
        cells[part, line, index] = token
        if place < len(prompt) - 1:
            continue
        around = [(which, line - up, index + 1 - left) for which in (0, 1) for up in near for left in near]
        keys = torch.tensor([[cells.get(address, ABSENT) for address in around]])
        tokens.append(int(model.slot_logits(torch.tensor([token]), keys).argmax()))
        if tokens[-1] == END:
            break
    return CharacterTokenizer().decode(tokens)


def total(model: ColumnTransformer, task: RunningTotals, numbers: list[int]) -> int:
    """The sum of these numbers as the model writes it. Raises ValueError for an answer that states none."""
    prompt = task.ask(numbers)
    # Every total has at most as many digits as the longest number and the count together, and a sign.
    limit = (len(numbers) + 2) * (max(len(str(n)) for n in numbers) + len(str(len(numbers))) + 2)
    return task.read(continued(model, prompt, limit))
