"""How much of a proof survives without a window: bounds on what far tokens can do, at every length (chapter 72).

The unwindowed adder attends to every token, but loses a learned slope of score with each step of distance. Of each
number at most one token stands at each distance, so that all far tokens together have at most the weight of a
geometric series, however many there are. This module bounds what they can change, in exact arithmetic.

Dimensions: C contexts, S slots, T far tokens by number, H heads, K d_head, F d_mlp, V vocabulary.
"""

import copy

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from arithlib.certify.addition import reachable
from arithlib.models.column import ANSWER, ColumnTransformer
from arithlib.streaming import KEY_TOKENS, OWN, WINDOW_SLOTS
from arithlib.tokenizer import ABSENT, ALPHABET, EQUALS

# What can be far ahead of a token, by number: operands go on, the answer does not. Behind it is any of KEY_TOKENS.
AHEAD = {0: [*range(10)], 1: [*range(10)]}


@torch.no_grad()
def assured_lead(model: ColumnTransformer) -> tuple[np.ndarray, np.ndarray]:
    """(C,) lead of the right token in every reachable context with nothing far, and (C,) at least, whatever is far.

    Raises ValueError for a model that does not decay.
    """
    bound = Bound(model)
    seen, right = torch.from_numpy(reachable().contexts), torch.from_numpy(reachable().right)
    alone, lead = bound.leads(seen, right, WINDOW_SLOTS, far_weight(bound.content, bound.slope, seen))
    return alone.numpy(), lead.numpy()


def require_fading(model: ColumnTransformer) -> None:
    """Raises ValueError for a model that the bounds without a window do not speak of."""
    if model.config.positions != "alibi" or model.config.window != 1:
        raise ValueError("this bound is about window = 1 and far tokens that lose a slope of score with each step")


class Bound:
    """What one model makes of the tokens that are known, and how much unknown ones further away can change.

    content: (V, number, V, H) scores of an answer token and a key. slope: (H,).
    """

    @torch.no_grad()
    def __init__(self, model: ColumnTransformer):
        require_fading(model)
        self.model = model = copy.deepcopy(model).double()
        self.x, _, _, self.v = model.token_tables()
        self.content, self.slope = model.score_table(), model.log_slope.exp()

    @torch.no_grad()
    def leads(self, seen: Tensor, right: Tensor, slots, strongest: Tensor) -> tuple[Tensor, Tensor]:
        """(C,) lead of the right token over all others with the known tokens alone, and (C,) at least.

        seen: (C, S) tokens or ABSENT. right: (C,) tokens. slots: (S,) numbers and distances. strongest: (C, H) at
        least the weight, before normalisation, of all tokens that are unknown.

        With Z the weight of the known tokens of a head, others of weight w move its output by a share w / (Z + w) of
        the way towards a mean of their values. Neurons that this cannot switch act linearly, and the worst mean is a
        single token; of the others each is taken at its worst.
        """
        weights, V, own = self.model.state_dict(), len(ALPHABET), seen[:, OWN]
        z, share = self._mean(seen, slots, strongest)
        heads = weights["out.weight"].unflatten(1, (len(self.slope), -1))
        far = torch.cat([self.v[n, tokens] for n, tokens in KEY_TOKENS.items()])
        from_far, from_near = (torch.einsum("dhk,nhk->nhd", heads, values) for values in (far, z))
        pre, logits = self._after(own, from_near.sum(1))
        far_pre, near_pre = from_far @ weights["mlp_in.weight"].T, from_near @ weights["mlp_in.weight"].T
        furthest = torch.maximum(far_pre.amax(0) - near_pre, near_pre - far_pre.amin(0))
        reach = (share[..., None] * furthest).sum(1)
        on, switching = pre >= reach, pre.abs() < reach
        up, down = (pre + reach).relu() - pre.relu(), (pre - reach).relu() - pre.relu()

        lead = torch.full((len(seen), V), torch.inf, dtype=torch.double)
        alone = lead.clone()
        for rival in range(V):
            toward = weights["unembedding.weight"][right] - weights["unembedding.weight"][rival]
            read = toward @ weights["mlp_out.weight"]
            direct = toward + (read * on) @ weights["mlp_in.weight"]
            worst = torch.einsum("cd,thd->cth", direct, from_far).amin(1) - torch.einsum(
                "cd,chd->ch", direct, from_near
            )
            linear = (share * worst.clamp(max=0)).sum(1)
            other = (torch.minimum(read * up, read * down) * switching).sum(1)
            alone[:, rival] = logits.gather(1, right[:, None])[:, 0] - logits[:, rival]
            lead[:, rival] = alone[:, rival] + linear + other
        own_place = F.one_hot(right, V).bool()
        return tuple(values.masked_fill(own_place, torch.inf).amin(1) for values in (alone, lead))

    def _mean(self, seen, slots, strongest):
        """(C, H, K) what the heads read of the known tokens, and the share of the unknown."""
        number, distance = torch.tensor(slots).unbind(1)
        scores = self.content[seen[:, OWN, None], number, seen] + self.model.bias_at(number, distance)
        near = scores.exp() * (seen != ABSENT)[..., None]
        Z = near.sum(1)
        return torch.einsum("csh,cshk->chk", near, self.v[number, seen]) / Z[..., None], strongest / (Z + strongest)

    def _after(self, own, read):
        """(C, F) what the neurons get, and (C, V) logits, of tokens (C,) that have read (C, D)."""
        mid = self.x[ANSWER, own] + read
        return self.model.mlp_in(mid), self.model.unembedding(self.model.add_neurons(mid))


def far_weight(content: Tensor, slope: Tensor, seen: Tensor) -> Tensor:
    """(C, H) at least the weight that all far tokens can have together, before normalisation, at any length.

    content: (V, number, V, H) scores of an answer token and a key. slope: (H,). seen: (C, S) contexts.
    A number that has ended has nothing ahead, and before the first column there is nothing behind.
    """
    own = seen[:, OWN]

    def most(number, tokens):
        return content[:, number][:, tokens].amax(1).exp()[own]

    ahead = sum((seen[:, 3 + n] != ABSENT)[:, None] * most(n, tokens) for n, tokens in AHEAD.items())
    behind = (own != EQUALS)[:, None] * sum(most(n, tokens) for n, tokens in KEY_TOKENS.items())
    ratio = (-slope).exp()
    return (ahead + behind) * ratio / (1 - ratio)
