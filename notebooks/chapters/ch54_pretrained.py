"""The language models of source 001, spoken to as `arithlib.models.decoder.Decoder` is (chapter 54).

GPT-J (Wang and Komatsuzaki 2021), Pythia (Biderman et al. 2023) and Llama 3.1 (Dubey et al. 2024) run in the package
`transformers`, which is an extra and is imported only when a model is opened. Its forward code stays as it is: hooks
on the parts of a model hand out every activation by name and put edits in its place.

Weights are read from safetensors files and from nothing else. A folder is opened without any network; a model of the
hub is fetched only when its name and `download=True` are given, after a line that says what, from where, how large
and under which licence.

Dimensions: B prompts, T tokens, L layers, D d_model, H heads, K d_head, F d_mlp, V d_vocab.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import torch
from torch import Tensor, nn

from arithlib.files import choose_device
from arithlib.models.decoder import NO_EDITS, Edits

EXTRA = "python -m pip install -e '.[language-models]', in the folder of this book"
HUB = "huggingface.co"
WANTED = ("model*.safetensors", "*.json", "merges.txt", "vocab.txt", "tokenizer.model")  # no pickles, no subfolders


class ModelUnavailable(RuntimeError):
    """A model that cannot be opened, or that nobody has agreed to fetch; the message says why and what to do."""


# ---- the models of the source ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """A model of the source, as its card describes it.

    architecture: its class in `transformers`. sizes: what its number of parameters follows from, under the names of
    that class's configuration. prompt: how the source's code asks for a sum.
    """

    architecture: str
    licence: str
    prompt: str
    sizes: Mapping[str, int]

    def outline(self) -> "Pretrained":
        """The model in full size and without weights, on the meta device: it has shapes and costs no memory."""
        with torch.device("meta"):
            return Pretrained(_build(self.architecture, self.sizes))


SOURCES = {
    "EleutherAI/gpt-j-6b": Source(
        "GPTJForCausalLM",
        "Apache 2.0",
        "Output ONLY a number.\n{a}+{b}=",
        {"vocab_size": 50400, "n_embd": 4096, "n_layer": 28, "n_head": 16, "rotary_dim": 64},
    ),
    "EleutherAI/pythia-6.9b": Source(
        "GPTNeoXForCausalLM",
        "Apache 2.0",
        "Output ONLY a number. {a}+{b}=",
        {
            "vocab_size": 50432,
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "intermediate_size": 16384,
        },
    ),
    "meta-llama/Llama-3.1-8B": Source(
        "LlamaForCausalLM",
        "Llama 3.1 Community License, to be accepted on the page of the model first",
        "The following is a correct addition problem.\n{a}+{b}=",
        {
            "vocab_size": 128256,
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "intermediate_size": 14336,
        },
    ),
}


# ---- where each class keeps its parts ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Parts:
    """Names of a class's submodules: of the model, and of each of its blocks."""

    blocks: str
    last_norm: str
    attn_norm: str
    W_O: str
    W_in: str
    W_out: str
    mlp_norm: str | None = None  # where the MLP has a norm of its own
    W_gate: str | None = None

    def sites(self, layer: int) -> dict[str, tuple[str, str]]:
        """{name of an activation of a block: (submodule, "in" or "out")}, in the order in which they are computed."""
        found = {
            f"{layer}.normed": (self.attn_norm, "out"),
            f"{layer}.z": (self.W_O, "in"),
            f"{layer}.attn_out": (self.W_O, "out"),
            f"{layer}.mlp_normed": (self.mlp_norm, "out"),
            f"{layer}.mlp_gate": (self.W_gate, "out"),
            f"{layer}.mlp_pre": (self.W_in, "out"),
            f"{layer}.mlp_post": (self.W_out, "in"),
            f"{layer}.mlp_out": (self.W_out, "out"),
        }
        return {name: (f"{self.blocks}.{layer}.{part}", side) for name, (part, side) in found.items() if part}


PARTS = {
    "GPTJForCausalLM": Parts(
        "transformer.h", "transformer.ln_f", "ln_1", W_O="attn.out_proj", W_in="mlp.fc_in", W_out="mlp.fc_out"
    ),
    "GPTNeoXForCausalLM": Parts(
        "gpt_neox.layers",
        "gpt_neox.final_layer_norm",
        "input_layernorm",
        mlp_norm="post_attention_layernorm",
        W_O="attention.dense",
        W_in="mlp.dense_h_to_4h",
        W_out="mlp.dense_4h_to_h",
    ),
    "LlamaForCausalLM": Parts(
        "model.layers",
        "model.norm",
        "input_layernorm",
        mlp_norm="post_attention_layernorm",
        W_O="self_attn.o_proj",
        W_in="mlp.up_proj",
        W_gate="mlp.gate_proj",
        W_out="mlp.down_proj",
    ),
}


# ---- the model ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """Prompts (B, T) that ask for a + b; the tokens on which a and b stand; the answers' tokens (B,)."""

    tokens: Tensor
    at_a: int
    at_b: int
    answers: Tensor


class Pretrained:
    """A causal language model of one of three classes, with every activation in reach.

    names: of its activations, with l from 0 to L - 1: resid.l (B, T, D), what block l reads, and resid.L, what the
    last norm reads · l.normed, what attention reads, and l.mlp_normed, what the MLP reads if that is another · l.z
    (B, T, H, K), what each head has gathered · l.attn_out, l.mlp_out (B, T, D), with their biases · l.mlp_pre,
    l.mlp_gate (if gated), l.mlp_post (B, T, F). Queries, keys and patterns are made inside a part and have no name.
    W_E: (V, D) embeddings.
    """

    def __init__(self, model: nn.Module, tokenizer=None):
        """model: an instance of one of the classes in PARTS. Raises ModelUnavailable for another."""
        self.architecture = type(model).__name__
        parts = _parts(self.architecture)
        # Gradients reach every activation from the embeddings on; those of all other weights would fill the memory.
        self.model = model.eval().requires_grad_(False)
        self.W_E = model.get_input_embeddings().weight.requires_grad_(True)
        self.tokenizer = tokenizer
        self.n_layers, self.n_heads = model.config.num_hidden_layers, model.config.num_attention_heads
        self._sites = {}
        for layer in range(self.n_layers):
            self._sites |= {f"resid.{layer}": (f"{parts.blocks}.{layer}", "in")} | parts.sites(layer)
        self._sites[f"resid.{self.n_layers}"] = (parts.last_norm, "in")
        self.names = tuple(self._sites)

    def __call__(self, tokens: Tensor, edits: Edits = NO_EDITS, return_activations: bool = False):
        """(B, T) tokens -> (B, V) logits after the last, or (logits, activations) with every named intermediate.

        edits: by name of an activation, a function from it to what takes its place.
        Raises ValueError for an edit of an activation that there is not.
        """
        if unknown := sorted(set(edits) - set(self.names)):
            raise ValueError(f"no activation is called {unknown}; there are: {', '.join(self.names)}")
        activations: dict[str, Tensor] = {}

        def at(name: str, x: Tensor) -> Tensor:
            x = edits[name](x).to(x) if name in edits else x
            if return_activations:
                activations[name] = x
            return x

        with ExitStack() as hooks:
            for name in self.names if return_activations else edits:
                hooks.enter_context(self._hook(name, at))
            tokens = tokens.to(self.W_E.device)
            unpadded = torch.ones_like(tokens)  # said, so that the model need not look, which takes real tokens
            output = self.model(tokens, attention_mask=unpadded, use_cache=False, logits_to_keep=1)
        logits = output.logits[:, -1].float()
        return (logits, activations) if return_activations else logits

    def _hook(self, name: str, at: Callable[[str, Tensor], Tensor]):
        """Hand one activation to `at` and go on with what it returns, until the handle returned is closed."""
        module, side = self._sites[name]
        module = self.model.get_submodule(module)
        if name.endswith(".z"):
            heads = (self.n_heads, -1)
            return module.register_forward_pre_hook(
                lambda _, args: (at(name, args[0].unflatten(-1, heads)).flatten(-2), *args[1:])
            )
        if side == "in":
            return module.register_forward_pre_hook(lambda _, args: (at(name, args[0]), *args[1:]))
        return module.register_forward_hook(lambda _, args, output: at(name, output))

    @property
    def n_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.model.parameters())

    # -- numbers as tokens --

    def number_tokens(self, numbers: Iterable[int]) -> Tensor:
        """(N,) token of each number as it stands after `=`. Raises ValueError if one has no token of its own."""
        texts = [str(int(n)) for n in numbers]
        rows = self.tokenizer(texts, add_special_tokens=False)["input_ids"]
        unknown = self.tokenizer.unk_token_id
        missing = [text for text, row in zip(texts, rows, strict=True) if len(row) != 1 or row[0] == unknown]
        if missing:
            raise ValueError(f"{missing[0]} is no single token of this model (nor are {len(missing) - 1} more)")
        return torch.tensor(rows)[:, 0]

    def ask(self, a: Tensor, b: Tensor, prompt: str) -> Asked:
        """Sums a + b (B,) in the words of `prompt`, which holds {a} and {b}.

        Raises ValueError where a number is not one token, or stands on another token than in the other prompts.
        """
        before, between, after = re.split(r"\{[ab]\}", prompt)
        pairs = [(str(x), str(y)) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        texts = [before + x + between + y + after for x, y in pairs]
        found = self.tokenizer(texts, return_offsets_mapping=True)
        places = set()
        for (x, y), text, spans in zip(pairs, texts, found["offset_mapping"], strict=True):
            starts = len(before), len(before) + len(x) + len(between)
            at = [_token_of(number, start, text, spans) for number, start in zip((x, y), starts, strict=True)]
            places.add((len(spans), *at))
        if len(places) > 1:
            raise ValueError(f"the numbers do not stand on the same tokens in all prompts: (T, a, b) are {places}")
        (_, at_a, at_b) = places.pop()
        return Asked(torch.tensor(found["input_ids"]), at_a, at_b, self.number_tokens(a + b))

    @torch.no_grad()
    def add(self, a: int, b: int, prompt: str) -> str:
        """What the model says to a + b: the text of its most likely next token."""
        tokens = self.ask(torch.tensor([a]), torch.tensor([b]), prompt).tokens
        return self.tokenizer.decode([int(self(tokens)[0].argmax())])


def _token_of(number: str, start: int, text: str, spans: Iterable[tuple[int, int]]) -> int:
    """Which token holds the number that starts at a place of the text. Raises ValueError if it is not just one."""
    end = start + len(number)
    over = [i for i, (first, last) in enumerate(spans) if first < end and last > start]
    if len(over) != 1 or text[slice(*spans[over[0]])].strip() != number:
        raise ValueError(f"{number} is no single token of this model in {text!r}")
    return over[0]


# ---- opening one -------------------------------------------------------------------------------------------------


def describe(name: str) -> str:
    """What a model of the hub is, how large, and under which licence, as far as is known without asking anyone."""
    if name not in SOURCES:
        return f"{name} ({HUB}/{name}), whose size and licence are not known here"
    source = SOURCES[name]
    count = source.outline().n_parameters
    return (
        f"{name} ({HUB}/{name}): {count / 1e9:.2f} billion parameters, {2 * count / 1e9:.1f} GB in 16 bits and twice "
        f"that in 32; licence: {source.licence}"
    )


def open_pretrained(
    name: str | Path, download: bool = False, revision: str = "main", device: str | None = None
) -> Pretrained:
    """A model from a folder, or from the hub under its name there.

    download: fetch what is not on this machine yet; a line first says what, from where, how large and which licence.
    device: by default a GPU if there is one. Weights have 16 bits there, and 32 on a CPU.

    Raises ModelUnavailable, without having fetched anything, for a name nobody agreed to fetch, a class that is not
    in PARTS, weights that are not in safetensors files, a licence that the hub does not name, or if `transformers`
    is missing; and ValueError for a device that is not there.
    """
    chosen, transformers = choose_device(device), _transformers()
    folder = Path(name) if Path(name).is_dir() else _from_hub(str(name), download, revision)
    file = folder / "config.json"
    if not file.is_file():
        raise ModelUnavailable(f"{folder.name} holds no config.json: it is no model that transformers has saved")
    architecture = (json.loads(file.read_text(encoding="utf-8")).get("architectures") or ["a model without a class"])[
        0
    ]
    _parts(architecture)
    if not _complete(folder):
        raise ModelUnavailable(_PICKLED.format(folder.name))
    with _quiet(transformers):
        model = getattr(transformers, architecture).from_pretrained(
            folder,
            local_files_only=True,
            use_safetensors=True,
            attn_implementation="eager",
            dtype=torch.float32 if chosen.type == "cpu" else torch.float16,
        )
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    return Pretrained(model.to(chosen), tokenizer)


_PICKLED = (
    "{0} has no complete set of safetensors weights (model.safetensors, or its parts with their index). Pickled "
    "weights can run code when they are read, and are not read here: take a revision or a copy in safetensors, or "
    "convert the file on a machine where you trust it, with save_pretrained of transformers"
)


# ---- without any weights of theirs --------------------------------------------------------------------------------

TINY = {
    "GPTJForCausalLM": {"n_embd": 32, "n_layer": 3, "n_head": 4, "rotary_dim": 4},
    "GPTNeoXForCausalLM": {
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 64,
    },
    "LlamaForCausalLM": {
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 48,
    },
}


def save_stand_in(architecture: str, folder: Path, seed: int = 0, largest: int = 199, **sizes) -> Path:
    """Save a tiny model of a class with random weights, as transformers saves any: what opening one is tried on.

    Its tokenizer has a token for each number from 0 to `largest`, and for the words of the source's questions.
    sizes: settings of the class's configuration, beside those in TINY. Returns the folder.
    """
    transformers = _transformers()
    words = sorted({word for one in SOURCES.values() for word in re.findall(WORD, one.prompt.format(a="", b=""))})
    vocabulary = {word: row for row, word in enumerate(["<unk>", *words, *map(str, range(largest + 1))])}
    model = _build(architecture, TINY[architecture] | {"vocab_size": len(vocabulary)} | sizes)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weights in model.parameters():
            noise = torch.randn(weights.shape, generator=generator)
            weights.copy_(weights + noise / 5 if weights.ndim == 1 else noise / weights.shape[1] ** 0.5)
    with _quiet(transformers):
        model.save_pretrained(folder)
    _tokenizer(transformers, vocabulary).save_pretrained(folder)
    return folder


WORD = r"[A-Za-z]+|[0-9]+|[^A-Za-z0-9 ]"


def _tokenizer(transformers, vocabulary: dict[str, int]):
    """A tokenizer that cuts a text into words, numbers and signs."""
    import tokenizers
    from tokenizers import models, pre_tokenizers

    words = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Split(tokenizers.Regex(WORD), "removed", invert=True)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>")


def _build(architecture: str, sizes: Mapping[str, int]) -> nn.Module:
    """A model of a class of `transformers` with these settings, its weights as the class draws them."""
    cls = getattr(_transformers(), architecture)
    config = cls.config_class(**sizes, bos_token_id=None, eos_token_id=None)
    config._attn_implementation = "eager"
    return cls(config)


def _transformers():
    """The package `transformers`. Raises ModelUnavailable if it is not installed."""
    try:
        import transformers
    except ModuleNotFoundError as error:
        raise ModelUnavailable(f"the package transformers is not installed: {EXTRA}") from error
    return transformers


@contextmanager
def _quiet(transformers):
    """Without the progress bars of reading and writing files; that of fetching them is another and stays."""
    bars = transformers.utils.logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            bars.enable_progress_bar()


def _parts(architecture: str) -> Parts:
    if architecture not in PARTS:
        raise ModelUnavailable(f"{architecture} is not a class that can be looked into here: {', '.join(PARTS)}")
    return PARTS[architecture]


def _complete(folder: Path) -> bool:
    """Whether a folder holds all weights in safetensors files."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        files = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        return all((folder / file).is_file() for file in files)
    return (folder / "model.safetensors").is_file()


def _from_hub(name: str, download: bool, revision: str) -> Path:
    """The folder of a model of the hub on this machine, fetched if the reader agreed. Raises ModelUnavailable."""
    import huggingface_hub
    from huggingface_hub.errors import LocalEntryNotFoundError

    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        raise ModelUnavailable(f"{name!r} is neither a folder here nor a name like {next(iter(SOURCES))}")
    try:
        folder = Path(huggingface_hub.snapshot_download(name, revision=revision, local_files_only=True))
        if _complete(folder):
            return folder
    except LocalEntryNotFoundError:
        pass
    if not download:
        raise ModelUnavailable(
            f"not on this machine, and not fetched without being asked: {describe(name)}. To fetch it, read its page "
            "and call again with download=True"
        )
    try:
        info = huggingface_hub.HfApi().model_info(name, revision=revision, files_metadata=True)
    except (OSError, ValueError) as error:  # no network, offline mode, no such model, no permission
        raise ModelUnavailable(f"{HUB} did not say what {name} is ({error}): nothing was fetched") from error
    files = {file.rfilename: file.size for file in info.siblings if _wanted(file.rfilename)}
    licence = info.card_data and info.card_data.get("license")
    _parts(((info.config or {}).get("architectures") or ["a model without a class"])[0])
    if not any(file.endswith(".safetensors") for file in files):
        raise ModelUnavailable(_PICKLED.format(f"{name} at revision {revision}"))
    if not licence:
        raise ModelUnavailable(f"the page of {name} names no licence: nothing was fetched")
    print(f"Fetching {describe(name)}.")
    print(
        f"{len(files)} files, {sum(files.values()) / 1e9:.1f} GB, licence as its page names it: {licence}.",
        flush=True,
    )
    return Path(huggingface_hub.snapshot_download(name, revision=info.sha, allow_patterns=list(files)))


def _wanted(file: str) -> bool:
    return "/" not in file and any(fnmatch(file, pattern) for pattern in WANTED)
