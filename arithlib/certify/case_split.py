"""A proof without a window: where the bound on far tokens is too weak, look at one more column (chapter 71).

A context is what a token has near. `arithlib.certify.tail_bounds` bounds what all tokens beyond can change. Where
that is not enough, the cases of the next column behind, or ahead, are told apart. What is then unknown begins one
step further away and weighs less by a factor e^-slope. A case that is still open is split again.

Dimensions: C cases, S known tokens, H heads. A case is known by K columns behind (the token's own is the first) and M
pairs of digits ahead (the first is the column to be added).
"""

from collections import defaultdict
from dataclasses import dataclass, field

import torch
from torch import Tensor

from arithlib.certify.addition import reachable, text
from arithlib.certify.tail_bounds import AHEAD, Bound
from arithlib.models.column import ColumnTransformer
from arithlib.streaming import KEY_TOKENS, OWN, WINDOW_SLOTS
from arithlib.tokenizer import ABSENT, ALPHABET, END, EQUALS

CASES_A_PASS = 4000


class Neighbours:
    """What can stand beside what, read off the reachable contexts.

    columns: (N, 3) two digits and what is written under them. before: of each column, those possible before it.
    pairs: (P, 2) digits of both operands. after: of each pair, those possible after it.
    A few neighbours belong to no sum (a zero that ends a long number): one case too many is no harm to a proof.
    """

    def __init__(self):
        met, before, after = reachable(), defaultdict(set), defaultdict(set)
        for (a, b, written, *pair), right in zip(met.contexts.tolist(), met.right.tolist(), strict=True):
            if right != END:
                before[*pair, right].add((a, b, written))
            if written != EQUALS:
                after[a, b].add(tuple(pair))
        columns = sorted({tuple(context[:3]) for context in met.contexts.tolist()})
        pairs = sorted({tuple(context[3:]) for context in met.contexts.tolist()})
        self.columns, self.before = torch.tensor(columns), _places(columns, before)
        self.pairs, self.after = torch.tensor(pairs), _places(pairs, after)
        self.own = torch.tensor([columns.index(tuple(context[:3])) for context in met.contexts.tolist()])
        self.next = torch.tensor([pairs.index(tuple(context[3:])) for context in met.contexts.tolist()])
        self.right = torch.from_numpy(met.right)

    def texts(self, behind: Tensor, ahead: Tensor, right: Tensor) -> list[str]:
        """Cases (C, K), (C, M), (C,) as `Proof.split` writes them."""
        columns, pairs = self.columns[behind].flatten(1).tolist(), self.pairs[ahead].flatten(1).tolist()
        return [
            f"{text(known)}/{text(more)}{ALPHABET[token]}"
            for known, more, token in zip(columns, pairs, right.tolist(), strict=True)
        ]


def _places(keys, neighbours):
    where = {key: place for place, key in enumerate(keys)}
    return [torch.tensor(sorted(where[other] for other in neighbours[key]), dtype=torch.long) for key in keys]


@dataclass
class Proof:
    """What splitting found.

    cases, undecided: how many were looked at, and of them not settled, by columns known behind and ahead.
    split: those told apart further: the known columns from the token's own backwards, "/", the pairs of digits ahead
        and the token to write. lead: the least that is assured in any case that was not split, logits. complete:
        whether all are above the limit.
    """

    cases: dict[tuple[int, int], int] = field(default_factory=dict)
    undecided: dict[tuple[int, int], int] = field(default_factory=dict)
    split: list[str] = field(default_factory=list)
    lead: float = torch.inf
    complete: bool = True


@torch.no_grad()
def prove(model: ColumnTransformer, least: float = 1e-6, most_columns: int = 5) -> Proof:
    """Split until the right token leads by more than `least` in every case, at every length.

    least: more than float64 can be off here; of a certificate, more than float32 can. most_columns: known ones,
        behind and ahead, at which to give up.
    Raises ValueError for a model that `Bound` knows nothing about.
    """
    bound, near, proof = Bound(model), Neighbours(), Proof()
    waiting = {(1, 1): [(near.own[:, None], near.next[:, None], near.right)]}
    while waiting:
        known = min(waiting, key=sum)
        behind, ahead, right = (torch.cat(parts) for parts in zip(*waiting.pop(known), strict=True))
        assured, farther, further_on = _assured(bound, near, behind, ahead, right)
        undecided = ~(assured > least)
        proof.cases[known], proof.undecided[known] = len(right), int(undecided.sum())
        if (~undecided).any():
            proof.lead = min(proof.lead, float(assured[~undecided].min()))
        back, whole = farther >= further_on, farther + further_on == 0  # nothing is unknown: there is no next column
        lost = undecided & (whole | (sum(known) >= most_columns))
        if lost.any():
            proof.complete, proof.lead = False, min(proof.lead, float(assured[lost].min()))
        for chosen, where in ((undecided & ~lost & back, (1, 0)), (undecided & ~lost & ~back, (0, 1))):
            if chosen.any():
                proof.split += near.texts(behind[chosen], ahead[chosen], right[chosen])
                cases = _split(near, behind[chosen], ahead[chosen], right[chosen], where == (1, 0))
                waiting.setdefault((known[0] + where[0], known[1] + where[1]), []).append(cases)
    return proof


def _split(near, behind, ahead, right, back):
    """Every case once for each column that can stand before what it knows (back), or after."""
    choices = (
        [near.before[c] for c in behind[:, -1].tolist()] if back else [near.after[p] for p in ahead[:, -1].tolist()]
    )
    times, new = torch.tensor([len(choice) for choice in choices]), torch.cat(choices)[:, None]
    behind, ahead, right = (known.repeat_interleave(times, 0) for known in (behind, ahead, right))
    return (torch.cat([behind, new], 1), ahead, right) if back else (behind, torch.cat([ahead, new], 1), right)


def _assured(bound, near, behind, ahead, right) -> tuple[Tensor, Tensor, Tensor]:
    """Of cases, (C,) each: the lead that is assured, and the weight that the unknown can have behind and ahead."""
    (_, K), (_, M) = behind.shape, ahead.shape
    slots = [
        *WINDOW_SLOTS,
        *((n, 1 + k) for k in range(1, K) for n in KEY_TOKENS),
        *((n, -m) for m in range(1, M) for n in AHEAD),
    ]
    ratio, parts = (-bound.slope).exp(), []
    for columns, pairs, token in zip(*(x.split(CASES_A_PASS) for x in (behind, ahead, right)), strict=True):
        columns, pairs = near.columns[columns], near.pairs[pairs]
        seen = torch.cat([columns[:, 0], pairs[:, 0], columns[:, 1:].flatten(1), pairs[:, 1:].flatten(1)], 1)
        strongest = {
            (number, side): bound.content[:, number][:, tokens].amax(1).exp()[seen[:, OWN]]
            for side, sorts in (("behind", KEY_TOKENS), ("ahead", AHEAD)) for number, tokens in sorts.items()
        }  # fmt: skip
        begins = (columns[:, -1, 2] == EQUALS)[:, None]  # before the signs there is nothing
        farther = ~begins * sum(strongest[n, "behind"] for n in KEY_TOKENS) * ratio**K / (1 - ratio)
        goes_on = (pairs[:, -1] != ABSENT)[..., None]
        further_on = sum(goes_on[:, n] * strongest[n, "ahead"] for n in AHEAD) * ratio**M / (1 - ratio)
        assured = bound.leads(seen, token, slots, farther + further_on)[1]
        parts.append((assured, farther.amax(1), further_on.amax(1)))
    return tuple(torch.cat(part) for part in zip(*parts, strict=True))
