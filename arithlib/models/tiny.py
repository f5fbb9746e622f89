"""An addressed transformer that reads and writes digits with the same vectors, and can change its size (chapter 73).

Few weights are hard to train from scratch: the vectors of digits cannot pass each other on a line. So a tiny model
grows up inside a wider one. `resize` makes it wide, training fades out what is too much, `resize` cuts it off.

Dimensions: D d_model, F d_mlp.
"""

import math

import torch
from torch import Tensor

from arithlib.models.addressed import AddressedConfig, AddressedTransformer


class TinyAdder(AddressedTransformer):
    """An addressed transformer of one head whose unembedding is its embedding.

    Its state has the weights of both, so that whatever reads an addressed transformer reads this one, too;
    `parameters()` has them once.
    """

    def __init__(self, config: AddressedConfig, seed: int = 0):
        if config.n_heads != 1:
            raise ValueError(f"n_heads = {config.n_heads}: a model that is resized has one head")
        super().__init__(config, seed)
        self.unembedding.weight = self.embedding.weight
        self.register_state_dict_post_hook(_apart)


def _apart(model, state, prefix, metadata):
    """safetensors files do not share memory between tensors."""
    state[f"{prefix}unembedding.weight"] = state[f"{prefix}unembedding.weight"].clone()


@torch.no_grad()
def resize(model: TinyAdder, config: AddressedConfig) -> dict[str, Tensor]:
    """Give a model other sizes, in place. What fits both sizes is kept; new weights are random.

    Returns, by parameter, ones where a weight was kept and zeros where it is new. To cut off weights that are zero
    changes no output: queries are rescaled, since scores are divided by the root of the head's size.
    """
    old = {name: _blocks(name, value).clone() for name, value in model.named_parameters()}
    old["qkv.weight"][0] *= math.sqrt(config.d_model / model.config.d_model)
    old["qkv.bias"][0] *= math.sqrt(config.d_model / model.config.d_model)
    seed = int(torch.randint(2**31, (), generator=torch.Generator().manual_seed(config.d_model)))
    model.__init__(config, seed)
    kept = {}
    for name, value in model.named_parameters():
        new, mask = _blocks(name, value), torch.zeros_like(value)
        both = tuple(slice(min(sizes)) for sizes in zip(new.shape, old[name].shape, strict=True))
        new[both] = old[name][both]
        _blocks(name, mask)[both] = 1
        kept[name] = mask
    return kept


def _blocks(name: str, value: Tensor) -> Tensor:
    """Queries, keys and values one below the other -> along an axis of their own."""
    return value.unflatten(0, (3, -1)) if name.startswith("qkv") else value
