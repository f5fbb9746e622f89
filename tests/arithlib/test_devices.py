"""Every model computes where its weights are, on the device `meta`: there a tensor left on the CPU is an error.

There is no GPU in continuous integration; what a GPU would refuse, the device `meta` refuses, too.
"""

import pytest
import torch

from arithlib.models.column import POSITIONS, TABLES, ColumnConfig, ColumnTransformer
from arithlib.models.decoder import MLPS, Decoder, DecoderConfig
from arithlib.models.grokking import GrokkingConfig, GrokkingTransformer
from arithlib.models.looped import GivenAddresses, LoopedConfig, LoopedTransformer
from arithlib.models.positions import SCHEMES

SMALL = dict(d_model=32, n_heads=4, d_mlp=64)
B, T = 3, 12


def on_meta(model, *inputs):
    """The model and its inputs moved there; its output, after a backward pass to every parameter."""
    model = model.to("meta")
    out = model(*(x.to("meta") for x in inputs))
    assert out.device.type == "meta"
    out.sum().backward()
    gradients = {name: value.grad for name, value in model.named_parameters() if value.grad is not None}
    assert gradients and all(gradient.device.type == "meta" for gradient in gradients.values())
    return out


def tokens(vocabulary=15):
    return torch.randint(10, (B, T), generator=torch.Generator().manual_seed(0)).clamp(max=vocabulary - 1)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_looped_transformer(scheme):
    model = LoopedTransformer(LoopedConfig(positions=scheme, **SMALL), seed=0)
    assert on_meta(model, tokens(), torch.zeros(1, 1, dtype=torch.long)).shape == (B, T, 15)


@pytest.mark.parametrize("injection", ["loop", "normed", "none"])
def test_the_looped_transformer_however_its_input_returns(injection):
    model = LoopedTransformer(LoopedConfig(injection=injection, final_norm=False, n_loops=3, **SMALL), seed=0)
    assert on_meta(model, tokens()).shape == (B, T, 15)


def test_the_looped_transformer_with_addresses_of_its_own():
    with pytest.raises(ValueError, match="say nothing of columns"):
        GivenAddresses(LoopedConfig(**SMALL, window=1))
    model = GivenAddresses(LoopedConfig(**SMALL), seed=0)
    assert on_meta(model, tokens(), torch.ones(B, T, dtype=torch.long)).shape == (B, T, 15)


@pytest.mark.parametrize("positions", ["none", "learned"])
@pytest.mark.parametrize("layer_norm", [False, True])
def test_the_grokking_transformer(positions, layer_norm):
    config = GrokkingConfig(p=13, d_model=32, d_head=8, d_mlp=64, positions=positions, layer_norm=layer_norm)
    assert on_meta(GrokkingTransformer(config, seed=0), tokens(13)[:, :3]).shape[:2] == (B, 3)


# Whether a table has enough rows is asked of the numbers themselves, and here there are none.
@pytest.mark.parametrize("positions", [positions for positions in POSITIONS if positions not in TABLES])
def test_the_column_transformer(positions):
    model = ColumnTransformer(ColumnConfig(positions=positions, **SMALL), seed=0)
    assert on_meta(model, tokens()).shape == (B, T, 15)


@pytest.mark.parametrize("mlp", MLPS)
def test_the_decoder(mlp):
    model = Decoder(DecoderConfig(d_vocab=15, mlp=mlp, **SMALL), seed=0)
    assert on_meta(model, tokens()).shape == (B, 15)


def test_a_tensor_that_was_left_behind_is_an_error():
    """The tests above can fail."""

    class Careless(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(4))
            self.shift = torch.ones(4)  # no buffer: it stays where it is

        def forward(self, x):
            return torch.index_select(x * self.weight, 1, torch.arange(4)) + self.shift

    with pytest.raises(RuntimeError, match="meta"):
        on_meta(Careless(), torch.ones(2, 4))
