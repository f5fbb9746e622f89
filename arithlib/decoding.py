"""Greedy decoding: the most likely next token, again and again, for a batch of prompts at once.

Dimensions: B prompts, T tokens of a prompt.
"""

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
    offsets: Offsets | None = None,
    loops: int | None = None,
    generator: torch.Generator | None = None,
    cache: bool = True,
) -> Tensor:
    """(B, T) prompts -> (B, up to `steps`) tokens; after an end token come end tokens only.

    offsets: the model's own fixed offset by default. Each prompt keeps its draw to the end, except under the policy
        "redrawn", where every step draws anew and no key or value can be kept. generator: for the draws.
    cache: False computes every prefix again, as the source does; the tokens are the same.
    Raises ValueError for a prompt without digits, or where the answer could need an address beyond the table.
    """
    offsets = offsets or model.offsets
    index = number_index(prompts)
    if bool((index == 0).all(1).any()):
        row = int((index == 0).all(1).nonzero()[0])
        text = CharacterTokenizer().decode(prompts[row].tolist())
        raise ValueError(f"prompt {row} is {text!r}: there is no digit in it, so nothing to calculate with")
    # An answer is a number of at most `steps` digits before its end token.
    model.positions.require(offsets, max(int(index.max()), steps - 1))
    generator = generator or torch.Generator(prompts.device).manual_seed(0)
    redraws = offsets.policy == "redrawn"
    offset = offsets.draw(len(prompts), generator)
    stored = KeyValueCache(prompts.shape[1] + steps) if cache and not redraws else None
    tokens, done = prompts, torch.zeros(len(prompts), dtype=torch.bool, device=prompts.device)
    for step in range(steps):
        if redraws and step > 0:
            offset = offsets.draw(len(prompts), generator)
        chosen = model(tokens, offset, loops, stored)[:, -1].argmax(-1)
        chosen = torch.where(done, END, chosen)
        tokens, done = torch.cat([tokens, chosen[:, None]], 1), done | (chosen == END)
        if bool(done.all()):
            break
    return tokens[:, prompts.shape[1] :]
