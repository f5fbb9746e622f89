"""Greedy decoding: the most likely next token, again and again, for a batch of prompts at once.

Dimensions: B prompts, T tokens of a prompt.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from arithlib.models.looped import KeyValueCache, LoopedTransformer
from arithlib.models.positions import Offsets, number_index
from arithlib.tokenizer import END, CharacterTokenizer


@torch.no_grad()
def greedy(
    model: LoopedTransformer,
    prompts: Tensor,
    steps: int,
    *,
    offsets: Offsets | Sequence[Offsets] | None = None,
    loops: int | None = None,
    generator: torch.Generator | None = None,
    cache: bool = True,
) -> Tensor:
    """(B, T) prompts -> (B, up to `steps`) tokens; after an end token come end tokens only.

    offsets: the model's own fixed offset by default. Each prompt keeps its draw to the end, except under the policy
        "redrawn", where every step draws anew and no key or value can be kept. Of several policies the mean of their
        log-probabilities decides each token. generator: for the draws.
    cache: False computes every prefix again, as the source does; the tokens are the same.
    Raises ValueError for a prompt without digits, or where the answer could need an address beyond the table.
    """
    policies = policies_of(model, offsets)
    index = number_index(prompts)
    if bool((index == 0).all(1).any()):
        row = int((index == 0).all(1).nonzero()[0])
        text = CharacterTokenizer().decode(prompts[row].tolist())
        raise ValueError(f"prompt {row} is {text!r}: there is no digit in it, so nothing to calculate with")
    generator = generator or torch.Generator(prompts.device).manual_seed(0)
    draws, stores = [], []
    for policy in policies:
        # An answer is a number of at most `steps` digits before its end token.
        model.positions.require(policy, max(int(index.max()), steps - 1))
        draws.append(policy.draw(len(prompts), generator))
        keeps = cache and policy.policy != "redrawn"
        stores.append(KeyValueCache(prompts.shape[1] + steps) if keeps else None)
    tokens, done = prompts, torch.zeros(len(prompts), dtype=torch.bool, device=prompts.device)
    for step in range(steps):
        if step > 0:
            draws = [
                policy.draw(len(prompts), generator) if policy.policy == "redrawn" else draw
                for policy, draw in zip(policies, draws, strict=True)
            ]
        log_probs = [
            model(tokens, draw, loops, store)[:, -1].double().log_softmax(-1)
            for draw, store in zip(draws, stores, strict=True)
        ]
        chosen = torch.stack(log_probs).mean(0).argmax(-1)
        chosen = torch.where(done, END, chosen)
        tokens, done = torch.cat([tokens, chosen[:, None]], 1), done | (chosen == END)
        if bool(done.all()):
            break
    return tokens[:, prompts.shape[1] :]


@torch.no_grad()
def complete(model: Callable[[Tensor], Tensor], prompt: Tensor, steps: int) -> Tensor:
    """(1, T) prompt -> (up to `steps`,) tokens that a model of tokens alone writes, its end token among them."""
    tokens = prompt
    while tokens.shape[1] < prompt.shape[1] + steps and (tokens.shape == prompt.shape or int(tokens[0, -1]) != END):
        tokens = torch.cat([tokens, model(tokens)[:, -1:].argmax(-1)], 1)
    return tokens[0, prompt.shape[1] :]


def policies_of(model: LoopedTransformer, offsets: Offsets | Sequence[Offsets] | None) -> list[Offsets]:
    """The policies that decide together: the model's own where none is named. Raises ValueError for an empty list."""
    if offsets is None:
        return [model.offsets]
    policies = [offsets] if isinstance(offsets, Offsets) else list(offsets)
    if not policies:
        raise ValueError("no offset policy to decide with: name one or more, or None for the model's own")
    return policies
