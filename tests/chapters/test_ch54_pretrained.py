"""Tiny random models of the three classes, saved and opened: hooks against the classes' own forward code."""

import json
import shutil
import socket
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

pytest.importorskip("transformers")

import huggingface_hub  # noqa: E402

from arithlib.analysis.helix import explained, helix_columns  # noqa: E402
from arithlib.analysis.patching import (  # noqa: E402
    Pairs,
    attribution,
    direct_effect,
    effect,
    fitted,
    put,
    remove,
    total_effect,
)
from chapters.ch54_pretrained import (
    PARTS,
    SOURCES,
    ModelUnavailable,
    Pretrained,
    describe,
    open_pretrained,
    save_stand_in,
)

CASES = {name: (name, {}) for name in PARTS} | {
    "sequential NeoX": ("GPTNeoXForCausalLM", {"use_parallel_residual": False})
}
PARALLEL = {"GPTJForCausalLM", "GPTNeoXForCausalLM"}
PROMPT = SOURCES["EleutherAI/gpt-j-6b"].prompt


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Whatever asks for another machine fails."""

    def refuse(*args, **kwargs):
        raise AssertionError(f"asked for the network: {args}")

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    made = enumerate(CASES.items())
    return {name: save_stand_in(cls, root / str(i), seed=i, **more) for i, (name, (cls, more)) in made}


@pytest.fixture(params=CASES)
def case(request):
    return request.param


@pytest.fixture
def model(folders, case):
    return open_pretrained(folders[case])


@pytest.fixture
def asked(model):
    a, b = torch.randint(100, (2, 6), generator=torch.Generator().manual_seed(0))
    return model.ask(a, b, PROMPT)


@pytest.fixture
def pairs(model, asked):
    a, b = torch.tensor([3, 14, 15, 92, 65, 35]), torch.tensor([89, 79, 32, 38, 46, 26])
    clean = model.ask(a, b, PROMPT)
    return Pairs(clean.tokens, model.ask((a + 7) % 100, b, PROMPT).tokens, clean.answers)


# ---- what is captured is what the class computes -----------------------------------------------------------------


@torch.no_grad()
def test_logits_and_residual_stream_are_the_classes_own(model, asked):
    logits, seen = model(asked.tokens, return_activations=True)
    own = model.model(asked.tokens, output_hidden_states=True)
    assert torch.allclose(logits, own.logits[:, -1], atol=1e-5)
    for layer in range(model.n_layers):
        assert torch.allclose(seen[f"resid.{layer}"], own.hidden_states[layer], atol=1e-5)
    norm = model.model.get_submodule(PARTS[model.architecture].last_norm)
    last = norm(seen[f"resid.{model.n_layers}"])  # the class keeps it normed
    assert torch.allclose(last, own.hidden_states[-1], atol=1e-5)
    assert torch.allclose(model(asked.tokens), logits, atol=1e-5)


@torch.no_grad()
def test_what_a_block_writes_is_what_its_parts_have_written(model, asked, case):
    _, seen = model(asked.tokens, return_activations=True)
    parts = PARTS[model.architecture]
    for layer in range(model.n_layers):
        block = model.model.get_submodule(f"{parts.blocks}.{layer}")
        x, attn_out, mlp_out = (seen[name] for name in (f"resid.{layer}", f"{layer}.attn_out", f"{layer}.mlp_out"))
        assert torch.allclose(x + attn_out + mlp_out, seen[f"resid.{layer + 1}"], atol=1e-5)
        assert torch.allclose(block.get_submodule(parts.attn_norm)(x), seen[f"{layer}.normed"])
        if parts.mlp_norm:  # in a parallel block both read the same stream, else the MLP reads what attention wrote
            read = x if case in PARALLEL else x + attn_out
            assert torch.allclose(block.get_submodule(parts.mlp_norm)(read), seen[f"{layer}.mlp_normed"], atol=1e-5)


@torch.no_grad()
def test_the_heads_through_the_output_matrix_add_up_to_attention(model, asked):
    _, seen = model(asked.tokens, return_activations=True)
    parts = PARTS[model.architecture]
    for layer in range(model.n_layers):
        W_O = model.model.get_submodule(f"{parts.blocks}.{layer}.{parts.W_O}")
        z = seen[f"{layer}.z"]
        assert z.shape[2:] == (model.n_heads, 8)
        by_head = W_O.weight.T.unflatten(0, (model.n_heads, -1))  # (H, K, D)
        bias = 0 if W_O.bias is None else W_O.bias
        assert torch.allclose(torch.einsum("bthk,hkd->btd", z, by_head) + bias, seen[f"{layer}.attn_out"], atol=1e-5)


@torch.no_grad()
def test_the_neurons_are_those_of_the_mlp(model, asked):
    _, seen = model(asked.tokens, return_activations=True)
    parts = PARTS[model.architecture]
    for layer in range(model.n_layers):
        W_in, W_out = (
            model.model.get_submodule(f"{parts.blocks}.{layer}.{part}") for part in (parts.W_in, parts.W_out)
        )
        read = seen.get(f"{layer}.mlp_normed", seen[f"{layer}.normed"])
        pre, post = seen[f"{layer}.mlp_pre"], seen[f"{layer}.mlp_post"]
        assert torch.allclose(W_in(read), pre, atol=1e-5)
        if parts.W_gate:
            assert torch.allclose(pre * F.silu(seen[f"{layer}.mlp_gate"]), post, atol=1e-5)
        else:
            assert torch.allclose(F.gelu(pre), post, atol=1e-3)  # GPT-J has the tanh approximation
        assert torch.allclose(W_out(post), seen[f"{layer}.mlp_out"], atol=1e-5)


def test_the_names_are_those_of_the_decoder_where_the_class_has_the_part(model):
    from arithlib.models.decoder import Decoder, DecoderConfig

    gated = PARTS[model.architecture].W_gate is not None
    config = DecoderConfig(n_layers=3, mlp="gated" if gated else "gelu")
    _, seen = Decoder(config)(torch.zeros(1, 4, dtype=torch.long), return_activations=True)
    inside = {f"{layer}.{part}" for layer in range(3) for part in ("q", "k", "v", "scores", "pattern")}
    own = {f"{layer}.mlp_normed" for layer in range(3)} if PARTS[model.architecture].mlp_norm else set()
    assert set(model.names) == set(seen) - inside | own


# ---- edits -------------------------------------------------------------------------------------------------------


@torch.no_grad()
def test_the_full_clean_stream_gives_the_clean_logits(model, pairs):
    logits, clean = model(pairs.clean, return_activations=True)
    assert (logits - model(pairs.corrupted)).abs().max() > 0.1
    for level in range(model.n_layers + 1):
        patched = model(pairs.corrupted, {f"resid.{level}": put(clean[f"resid.{level}"])})
        assert torch.allclose(patched, logits, atol=1e-5)  # 1e-5 is rounding, which differs from run to run


@torch.no_grad()
def test_an_edit_of_any_activation_is_what_is_read_and_changes_only_what_follows(model, asked, case):
    logits, before = model(asked.tokens, return_activations=True)
    order = list(before)
    for name in model.names:
        edited, after = model(asked.tokens, {name: lambda x: x.roll(1, 0)}, return_activations=True)
        assert torch.allclose(after[name], before[name].roll(1, 0), atol=1e-5), name
        assert not torch.allclose(edited, logits, atol=1e-4), name
        for earlier in order[: order.index(name)]:
            assert torch.allclose(after[earlier], before[earlier], atol=1e-5), (name, earlier)


@torch.no_grad()
def test_an_edit_of_one_token_leaves_the_tokens_before_it_alone(model, asked):
    _, before = model(asked.tokens, return_activations=True)
    _, after = model(asked.tokens, {"1.z": put(torch.zeros(4, 8), asked.at_a)}, return_activations=True)
    last = f"resid.{model.n_layers}"
    changed = (before[last] - after[last]).abs().amax((0, 2)) > 1e-4
    assert changed.tolist() == [token >= asked.at_a for token in range(len(changed))]


@torch.no_grad()
def test_hooks_do_not_outlive_the_call(model, asked):
    before = model(asked.tokens)
    model(asked.tokens, {"0.mlp_out": torch.zeros_like}, return_activations=True)
    with pytest.raises(ZeroDivisionError):
        model(asked.tokens, {"0.mlp_out": lambda x: 1 / 0})
    assert torch.allclose(model(asked.tokens), before, atol=1e-5)


def test_an_edit_of_a_name_that_there_is_not_is_refused(model, asked):
    with pytest.raises(ValueError, match=r"no activation is called \['3.z', 'q'\]; there are: resid.0, 0.normed"):
        model(asked.tokens, {"3.z": torch.zeros_like, "q": torch.zeros_like})


# ---- the functions of chapters 50 and 51 -------------------------------------------------------------------------


def test_patching_works_unchanged(model, pairs, asked):
    with torch.no_grad():
        rows = torch.arange(len(pairs))
        whole = (model(pairs.clean) - model(pairs.corrupted))[rows, pairs.answers]
    assert torch.allclose(total_effect(model, pairs, "resid.0", asked.at_a), whole, atol=1e-5)
    others = [name for layer in range(3) for name in (f"{layer}.attn_out", f"{layer}.mlp_out")]
    direct = direct_effect(model, pairs, "2.mlp_out", others)
    assert torch.allclose(direct, total_effect(model, pairs, "2.mlp_out"), atol=1e-5)  # nothing reads it but the end
    held = direct_effect(model, pairs, "0.mlp_out", others)
    assert not torch.allclose(held, total_effect(model, pairs, "0.mlp_out"), atol=1e-4)
    off = {"1.z": remove(torch.randn(3, 8), torch.zeros(8), (asked.at_a, 0))}
    assert effect(model, pairs, off).abs().max() > 0


def test_attribution_is_the_slope_of_patching(model, pairs):
    guesses = attribution(model, pairs, names := ["resid.0", "0.z", "1.mlp_post", "2.attn_out"])
    with torch.no_grad():
        _, clean = model(pairs.clean, return_activations=True)
        _, corrupted = model(pairs.corrupted, return_activations=True)
    for name in names:
        step = 1e-2 * (clean[name] - corrupted[name])
        slope = (
            effect(model, pairs, {name: lambda x, s=step: x + s})
            - effect(model, pairs, {name: lambda x, s=step: x - s})
        ) / 2e-2
        assert torch.allclose(guesses[name].flatten(1).sum(1), slope, rtol=0.02, atol=5e-3), name


def test_a_planted_helix_is_found_and_random_embeddings_have_none(folders):
    model = open_pretrained(folders["GPTJForCausalLM"])
    numbers = torch.arange(100)
    rows = model.number_tokens(numbers)
    columns = helix_columns(numbers)
    assert explained(model.W_E[rows].detach(), columns) < 0.2  # 8 functions of 100 random vectors: about 0.08
    with torch.no_grad():
        model.W_E[rows] = (columns @ torch.randn(8, 32, generator=torch.Generator().manual_seed(0)).double()).float()
    asked = model.ask(numbers, torch.zeros_like(numbers), PROMPT)
    with torch.no_grad():
        _, seen = model(asked.tokens, return_activations=True)
    x = seen["resid.0"][:, asked.at_a]
    assert explained(x, columns) > 0.999
    assert torch.allclose(fitted(x, columns).float(), x, atol=1e-3)


# ---- numbers as tokens -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_a_question_says_where_its_numbers_stand(folders, source):
    model = open_pretrained(folders[source.architecture])
    a, b = torch.tensor([7, 99]), torch.tensor([42, 7])
    asked = model.ask(a, b, source.prompt)
    assert torch.equal(asked.tokens[:, asked.at_a], model.number_tokens(a))
    assert torch.equal(asked.tokens[:, asked.at_b], model.number_tokens(b))
    assert torch.equal(asked.answers, model.number_tokens([49, 106]))
    assert model.tokenizer.unk_token_id not in asked.tokens
    with torch.no_grad():
        assert model.add(7, 42, source.prompt) == model.tokenizer.decode([int(model(asked.tokens)[0].argmax())])


def test_a_number_without_a_token_of_its_own_is_refused(folders):
    model = open_pretrained(folders["LlamaForCausalLM"])
    with pytest.raises(ValueError, match="200 is no single token of this model .nor are 1 more"):
        model.number_tokens(range(198, 202))
    with pytest.raises(ValueError, match="204 is no single token"):
        model.ask(torch.tensor([107]), torch.tensor([97]), PROMPT)


def test_a_number_of_two_tokens_is_refused(folders):
    import tokenizers
    from tokenizers import pre_tokenizers

    model = open_pretrained(folders["GPTJForCausalLM"])
    single = pre_tokenizers.Split(tokenizers.Regex(r"[A-Za-z]+|[0-9]|[^A-Za-z0-9 ]"), "removed", invert=True)
    model.tokenizer.backend_tokenizer.pre_tokenizer = single
    with pytest.raises(ValueError, match="12 is no single token of this model in 'Output ONLY a number"):
        model.ask(torch.tensor([3, 12]), torch.tensor([5, 5]), PROMPT)


# ---- opening -----------------------------------------------------------------------------------------------------


def test_a_device_that_is_not_there_is_refused_as_everywhere(folders):
    with pytest.raises(ValueError, match="device 'tpu' is none that torch can use here: choose cpu"):
        open_pretrained(folders["GPTJForCausalLM"], device="tpu")
    assert open_pretrained(folders["GPTJForCausalLM"], device="cpu").W_E.dtype == torch.float32


def test_importing_the_library_does_not_import_transformers():
    code = "import sys, chapters.ch54_pretrained as p; print({'transformers', 'huggingface_hub'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


def test_without_transformers_the_message_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ModelUnavailable, match=r"not installed: python -m pip install -e '.\[language-models\]'"):
        open_pretrained(tmp_path)


@pytest.mark.parametrize("name, size", [("EleutherAI/gpt-j-6b", "12.1 GB"), ("meta-llama/Llama-3.1-8B", "16.1 GB")])
def test_a_model_of_the_hub_is_not_fetched_unasked(name, size):
    with pytest.raises(
        ModelUnavailable, match=f"not fetched without being asked.*{name}.*{size} in 16 bits"
    ) as found:
        open_pretrained(name)
    assert SOURCES[name].licence in str(found.value) and "download=True" in str(found.value)


def test_an_unknown_model_is_not_guessed_at():
    with pytest.raises(ModelUnavailable, match="some/model.*size and licence are not known here"):
        open_pretrained("some/model")
    with pytest.raises(
        ModelUnavailable, match="'gpt-j' is neither a folder here nor a name like EleutherAI/gpt-j-6b"
    ):
        open_pretrained("gpt-j", download=True)


def test_the_sizes_are_those_that_the_cards_give():
    counts = {name: source.outline().n_parameters for name, source in SOURCES.items()}
    # GPT-J's card has 6,053,381,344, which counts more than the weights that transformers keeps.
    assert counts["EleutherAI/gpt-j-6b"] == pytest.approx(6_053_381_344, rel=1e-3)
    assert counts["EleutherAI/pythia-6.9b"] == 6_857_302_016
    assert f"{counts['meta-llama/Llama-3.1-8B'] / 1e9:.2f}" == "8.03"
    assert "6.86 billion parameters, 13.7 GB" in describe("EleutherAI/pythia-6.9b")


@torch.no_grad()
def test_the_outline_has_the_shapes_of_the_full_size():
    model = SOURCES["meta-llama/Llama-3.1-8B"].outline()
    logits, seen = model(torch.zeros(2, 5, dtype=torch.long), return_activations=True)
    assert logits.is_meta and logits.shape == (2, 128256)
    assert seen["31.z"].shape == (2, 5, 32, 128) and seen["0.mlp_gate"].shape == (2, 5, 14336)


class Hub:
    """A hub of one model, that notes what is asked of it."""

    def __init__(self, monkeypatch, folder, files, licence="mit", architecture="LlamaForCausalLM"):
        self.folder, self.fetched, self.cached = folder, None, None
        siblings = [SimpleNamespace(rfilename=name, size=size) for name, size in files.items()]
        card = {"license": licence} if licence else None
        config = {"architectures": [architecture]}
        self.info = SimpleNamespace(siblings=siblings, card_data=card, config=config, sha="c0ffee")
        monkeypatch.setattr(huggingface_hub, "HfApi", lambda: SimpleNamespace(model_info=lambda *_, **__: self.info))
        monkeypatch.setattr(huggingface_hub, "snapshot_download", self.snapshot)

    def snapshot(self, name, revision, local_files_only=False, allow_patterns=None):
        if local_files_only and self.cached is None:
            raise huggingface_hub.errors.LocalEntryNotFoundError("not here")
        if not local_files_only:
            self.fetched = (name, revision, allow_patterns)
        return str(self.folder)


FILES = {"config.json": 1000, "model.safetensors": 2_000_000_000, "tokenizer.json": 1000, "pytorch_model.bin": 9e9}
FILES |= {"original/model.safetensors": 9e9, "README.md": 5, "flax_model.msgpack": 9e9}


def test_an_agreed_download_says_what_and_how_large_first_and_takes_no_pickles(monkeypatch, folders, capsys):
    hub = Hub(monkeypatch, folders["LlamaForCausalLM"], FILES)
    model = open_pretrained("some/model", download=True)
    assert isinstance(model, Pretrained) and model.architecture == "LlamaForCausalLM"
    assert hub.fetched == ("some/model", "c0ffee", ["config.json", "model.safetensors", "tokenizer.json"])
    said = capsys.readouterr().out
    assert "some/model (huggingface.co/some/model)" in said
    assert "3 files, 2.0 GB, licence as its page names it: mit." in said


@pytest.mark.parametrize(
    "change, message",
    [
        ({"files": {"config.json": 9, "pytorch_model.bin": 9e9}}, "no complete set of safetensors weights"),
        ({"licence": None}, "names no licence: nothing was fetched"),
        ({"architecture": "MambaForCausalLM"}, "MambaForCausalLM is not a class that can be looked into"),
    ],
)
def test_what_should_not_be_fetched_is_not(monkeypatch, folders, change, message):
    hub = Hub(monkeypatch, folders["LlamaForCausalLM"], **{"files": FILES} | change)
    with pytest.raises(ModelUnavailable, match=message):
        open_pretrained("some/model", download=True)
    assert hub.fetched is None


def test_what_is_here_already_is_opened_without_asking(monkeypatch, folders):
    hub = Hub(monkeypatch, folders["GPTJForCausalLM"], FILES)
    hub.cached = True
    assert open_pretrained("EleutherAI/gpt-j-6b").architecture == "GPTJForCausalLM" and hub.fetched is None


def test_a_download_that_stopped_half_way_is_not_taken_for_the_model(monkeypatch, folders, tmp_path):
    cache = tmp_path / "models--EleutherAI--gpt-j-6b"
    shutil.copytree(folders["GPTJForCausalLM"], cache / "snapshots/c0ffee")
    (cache / "refs").mkdir()
    (cache / "refs/main").write_text("c0ffee")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    assert open_pretrained("EleutherAI/gpt-j-6b").architecture == "GPTJForCausalLM"
    (cache / "snapshots/c0ffee/model.safetensors").unlink()
    with pytest.raises(ModelUnavailable, match="not on this machine, and not fetched without being asked"):
        open_pretrained("EleutherAI/gpt-j-6b")


def test_a_hub_that_cannot_be_reached_is_named(monkeypatch):
    def offline(*_, **__):
        raise ConnectionError("offline mode is on")

    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: SimpleNamespace(model_info=offline))
    with pytest.raises(ModelUnavailable, match="huggingface.co did not say what some/model is .offline mode is on"):
        open_pretrained("some/model", download=True)


def test_pickled_weights_are_refused(folders, tmp_path):
    shutil.copytree(folders["GPTJForCausalLM"], tmp_path / "pickled")
    (tmp_path / "pickled/model.safetensors").unlink()
    torch.save({"transformer.wte.weight": torch.zeros(2, 2)}, tmp_path / "pickled/pytorch_model.bin")
    with pytest.raises(
        ModelUnavailable, match="pickled has no complete set of safetensors.*can run code when they are"
    ):
        open_pretrained(tmp_path / "pickled")


def test_weights_in_parts_are_read_and_a_missing_part_is_noticed(folders, tmp_path):
    model = open_pretrained(folders["LlamaForCausalLM"])
    model.model.save_pretrained(tmp_path, max_shard_size="50KB")
    model.tokenizer.save_pretrained(tmp_path)
    parts = sorted(tmp_path.glob("model-*.safetensors"))
    tokens = model.ask(torch.tensor([1]), torch.tensor([2]), PROMPT).tokens
    assert len(parts) > 1 and torch.allclose(open_pretrained(tmp_path)(tokens), model(tokens), atol=1e-5)
    parts[0].unlink()
    with pytest.raises(ModelUnavailable, match="no complete set of safetensors"):
        open_pretrained(tmp_path)


def test_other_classes_and_other_folders_are_refused(folders, tmp_path):
    with pytest.raises(ModelUnavailable, match="holds no config.json"):
        open_pretrained(tmp_path)
    shutil.copytree(folders["GPTJForCausalLM"], tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"architectures": ["GPT2LMHeadModel"]}))
    with pytest.raises(
        ModelUnavailable, match="GPT2LMHeadModel is not a class that can be looked into here: GPTJFor"
    ):
        open_pretrained(tmp_path)


def test_code_that_comes_with_a_model_is_not_run(folders, tmp_path):
    shutil.copytree(folders["GPTJForCausalLM"], tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text())
    config["auto_map"] = {"AutoConfig": "code.Config", "AutoModelForCausalLM": "code.Model"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "code.py").write_text("raise SystemExit('code from a model folder was run')")
    assert open_pretrained(tmp_path).architecture == "GPTJForCausalLM"


def test_a_stand_in_is_the_same_for_the_same_seed(tmp_path):
    first, again, other = (
        save_stand_in("GPTJForCausalLM", tmp_path / str(i), seed=seed) for i, seed in enumerate((0, 0, 1))
    )
    weights = [(folder / "model.safetensors").read_bytes() for folder in (first, again, other)]
    assert weights[0] == weights[1] != weights[2]
