"""Small GPTs that read characters, S of them trained as one (chapter 61; after Karpathy's NanoGPT).

Learned positions unless told otherwise, layer norm before attention and before the MLP, GELU. The weights of all
models are stacked along a first axis and each model has its own texts, so that one step of the stack is a step of
every model in it; only the rounding differs from training them one by one.

Dimensions: S models, B texts, T tokens, C places of a table of positions, L layers, D d_model, H heads, V characters.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from arithlib.models.decoder import normalise
from arithlib.settings import of_kind
from chapters.ch61_written_sums import ALPHABET, NEWLINE

POSITIONS = ("learned", "sinusoidal", "none")


@of_kind("character-gpt")
@dataclass(frozen=True)
class CharacterGPTConfig:
    """Sizes of one model. n_ctx: C, the longest text that it can read. positions: one of `POSITIONS`.

    dropout: share of the embedding, of the attention weights and of what each layer writes that is dropped while
        the model is in training mode.
    """

    n_ctx: int
    d_model: int = 64
    n_layers: int = 3
    n_heads: int = 4
    d_vocab: int = len(ALPHABET)
    positions: str = "learned"
    dropout: float = 0.0

    def __post_init__(self):
        if self.positions not in POSITIONS:
            raise ValueError(f"positions = {self.positions!r}: choose one of {', '.join(POSITIONS)}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout = {self.dropout}: a share from 0 to below 1")


class CharacterGPTs(nn.Module):
    """S models of one size; seeds: (S,) of their weights, the same for models that are to begin alike."""

    def __init__(self, config: CharacterGPTConfig, seeds: tuple[int, ...]):
        super().__init__()
        c, D = config, config.d_model
        self.config = config
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]

        def weight(*shape, scale):
            return nn.Parameter(torch.stack([torch.randn(*shape, generator=g) * scale for g in generators]))

        self.W_E, self.W_pos = weight(c.d_vocab, D, scale=0.1), weight(c.n_ctx, D, scale=0.1)
        if c.positions != "learned":
            fixed = sinusoids(c.n_ctx, D) if c.positions == "sinusoidal" else torch.zeros(c.n_ctx, D)
            del self.W_pos
            self.register_buffer("W_pos", fixed.repeat(len(seeds), 1, 1))
        # As in GPT-2, what writes to the residual stream begins smaller by the root of how often that happens.
        written = (2 * c.n_layers) ** -0.5
        self.blocks = nn.ModuleList(
            nn.ParameterDict({
                "W_QKV": weight(D, 3 * D, scale=D**-0.5), "W_O": weight(D, D, scale=written * D**-0.5),
                "W_in": weight(D, 4 * D, scale=D**-0.5), "W_out": weight(4 * D, D, scale=written * (4 * D) ** -0.5),
            })
            for _ in range(c.n_layers)
        )  # fmt: skip
        self.W_U = weight(D, c.d_vocab, scale=D**-0.5)

    def forward(self, tokens: Tensor, places: Tensor | None = None) -> Tensor:
        """(S, B, T) tokens -> (S, B, T, V) logits of the token after each. T is at most C.

        places: (S, B, T or more) row of the table of positions for each token; 0, 1, 2, ... if None.
        """
        last = self.streams(tokens, places)[-1]
        return (normalise(last).flatten(1, 2) @ self.W_U).view(*tokens.shape, -1)

    def streams(self, tokens: Tensor, places: Tensor | None = None) -> list[Tensor]:
        """The same -> L + 1 residual streams (S, B, T, D): after the embedding and after each layer."""
        S, B, T = tokens.shape
        D, H = self.config.d_model, self.config.n_heads
        model = torch.arange(S, device=tokens.device)[:, None, None]
        at = self.W_pos[:, None, :T] if places is None else self.W_pos[model, places[..., :T]]
        rate = self.config.dropout if self.training else 0.0
        x = F.dropout((self.W_E[model, tokens] + at).flatten(1, 2), rate)
        streams = [x]
        for block in self.blocks:
            q, k, v = (normalise(x) @ block["W_QKV"]).view(S * B, T, 3, H, D // H).permute(2, 0, 3, 1, 4)
            z = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=rate)
            x = x + F.dropout(z.transpose(1, 2).reshape(S, B * T, D) @ block["W_O"], rate)
            x = x + F.dropout(F.gelu(normalise(x) @ block["W_in"], approximate="tanh") @ block["W_out"], rate)
            streams.append(x)
        return [x.view(S, B, T, D) for x in streams]

    @torch.no_grad()
    def complete(self, tokens: Tensor, places: Tensor) -> Tensor:
        """(S, B, T) texts, of which place (S, B) is the first to be written -> the texts as greedy decoding goes on.

        After its first line end a text goes on with line ends.
        """
        tokens, T = tokens.clone(), tokens.shape[2]
        begun = torch.arange(T, device=tokens.device) >= places[..., None]
        for place in range(int(places.min()), T):
            ended = (begun[..., :place] & (tokens[..., :place] == NEWLINE)).any(-1)
            if ended.all():
                tokens[..., place:] = NEWLINE
                break
            said = torch.where(ended, NEWLINE, self(tokens[..., :place])[..., -1, :].argmax(-1))
            tokens[..., place] = torch.where(begun[..., place], said, tokens[..., place])
        return tokens


def sinusoids(n_ctx: int, d_model: int) -> Tensor:
    """(C, D) sines and cosines of the place (Vaswani et al. 2017, section 3.5), as large as learned rows at first."""
    angle = torch.arange(n_ctx)[:, None] * 10_000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    return 0.1 * 2**0.5 * torch.stack([angle.sin(), angle.cos()], -1).flatten(1)
