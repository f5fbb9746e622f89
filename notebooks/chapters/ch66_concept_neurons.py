"""Which neurons stand for an arithmetic concept, and what happens without them (chapter 66).

After Rai and Yao 2024 (arXiv 2406.12288), who look in the feed-forward layers of Llama2 for neurons of arithmetic
concepts, disturb them, and compare their activation with the accuracy. The neurons of all layers are numbered
through: neuron f of layer l is l F + f.

Dimensions: B prompts, L layers, F neurons of a layer, N = L F neurons, C classes of a concept.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from scipy.stats import rankdata
from torch import Tensor

from arithlib.models.decoder import Decoder, normalise
from chapters.ch50_minilm import MiniLM

# ---- concepts ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Concept:
    """A question about a sum with few answers.

    of: what of two operands (B,), (B,) it is about, a number (B,). answer: of that number, from 0 on.
    """

    of: Callable[[Tensor, Tensor], Tensor]
    answer: Callable[[Tensor], Tensor]

    def labels(self, pairs: Tensor) -> Tensor:
        """(B, 2) operands -> (B,) classes."""
        return self.answer(self.of(*pairs.T))

    def relabelled(self, pairs: Tensor, generator: torch.Generator) -> Tensor:
        """The same with the answers dealt out anew to the numbers that it is about: as many of each, at random."""
        numbers, which = torch.unique(self.of(*pairs.T), return_inverse=True)
        return self.answer(numbers)[torch.randperm(len(numbers), generator=generator)][which]


def _sum(a: Tensor, b: Tensor) -> Tensor:
    return a + b


CONCEPTS = {
    "parity": Concept(_sum, lambda c: c % 2),
    "units digit": Concept(_sum, lambda c: c % 10),
    "tens digit": Concept(_sum, lambda c: c // 10 % 10),
    "carry": Concept(lambda a, b: a % 10 + b % 10, lambda units: (units >= 10).long()),
    "100 or more": Concept(_sum, lambda c: (c >= 100).long()),
    "size": Concept(_sum, lambda c: c // 20),
}


def selectivity(activations: Tensor, labels: Tensor) -> Tensor:
    """(B, N), (B,) classes -> (N,) share of each neuron's variance that lies between the classes: eta squared.

    0 for a neuron that never changes.
    """
    x = activations.double() - activations.double().mean(0)
    classes = F.one_hot(labels).double()
    classes = classes[:, classes.any(0)]
    between = (classes.T @ x).square() / classes.sum(0)[:, None]
    total = x.square().sum(0)
    return between.sum(0) / total.where(total > 0, torch.inf)


def best_direction(activations: Tensor, labels: Tensor, ridge: float = 1e-3) -> Tensor:
    """(B, N), (B,) classes -> (N,) weights of the sum of neurons whose selectivity is highest: Fisher's discriminant.

    ridge: of the mean variance of a neuron, added to all directions, so that none is chosen for having hardly any.
    """
    x = activations.double() - activations.double().mean(0)
    classes = F.one_hot(labels).double()
    classes = classes[:, classes.any(0)]
    total = x.T @ x
    total += ridge * total.diagonal().mean() * torch.eye(len(total))
    means = (classes.T @ x) / classes.sum(0).sqrt()[:, None]
    # The discriminant lies in the span of total^-1 means: an eigenproblem of C by C instead of N by N.
    solved = torch.linalg.solve(total, means.T)
    return solved @ torch.linalg.eigh(means @ solved)[1][:, -1]


# ---- with and without neurons ------------------------------------------------------------------------------------


class LastToken:
    """A decoder on some prompts, of which only the last token is run again: nothing before it sees an edit there."""

    @torch.no_grad()
    def __init__(self, model: Decoder, prompts: Tensor):
        """prompts: (B, T)."""
        self.model, self.past = model, []
        opening, self.last = model.W_E[prompts[:, :-1]], model.W_E[prompts[:, -1:]]
        for block in model.blocks:
            opening, past = block(opening, _unchanged)
            self.past.append(past)
        # The first layer reads nothing that an edit could change: its attention and its neurons are found once.
        found: dict[str, Tensor] = {}
        model.blocks[0](self.last, lambda name, y: found.setdefault(name, y), self.past[0])
        self.attended, self.first = self.last + found["attn_out"], found["mlp_post"]
        self.activations: Tensor = self._run()[1]

    @torch.no_grad()
    def logits(self, neurons: Tensor | None = None, values: Tensor | None = None) -> Tensor:
        """(B, V) logits, with these neurons (k,) at the values that are given of all neurons, (N,)."""
        return self._run(neurons, values)[0]

    @torch.no_grad()
    def _run(self, neurons: Tensor | None = None, values: Tensor | None = None) -> tuple[Tensor, Tensor]:
        x, seen = self.attended, []
        width = self.model.config.d_mlp
        for layer, (block, past) in enumerate(zip(self.model.blocks, self.past, strict=True)):
            here = [] if neurons is None else neurons[neurons // width == layer]

            def at(name: str, y: Tensor, here=here) -> Tensor:
                if name != "mlp_post":
                    return y
                if len(here):
                    y = y.clone()
                    y[..., here % width] = values[here]
                seen.append(y[:, -1])
                return y

            if layer == 0:
                x = x + (at("mlp_post", self.first) @ block.W_out + block.b_out)
            else:
                x, _ = block(x, at, past)
        return normalise(x[:, -1]) @ self.model.W_U, torch.cat(seen, 1)


def _unchanged(name: str, x: Tensor) -> Tensor:
    return x


@torch.no_grad()
def written_size(model: Decoder, activations: Tensor) -> Tensor:
    """(B, N) activations -> (N,) root mean square of what each neuron's mean takes away from the residual stream.

    That is the standard deviation of its activation times the length of what it writes, without its mean over D,
    which no layer norm lets through.
    """
    written = torch.cat([block.W_out for block in model.blocks])
    return activations.std(0, correction=0) * (written - written.mean(1, keepdim=True)).norm(dim=1)


def matched(group: Tensor, size: Tensor, generator: torch.Generator, near: int = 8) -> Tensor:
    """(k,) neurons outside the group, each one of the `near` that are nearest in size to one of the group.

    size: (N,) positive, compared as logarithms. Every neuron of the group in random order takes one that is left.
    """
    free = torch.ones(len(size), dtype=torch.bool)
    free[group] = False
    chosen = []
    for neuron in group[torch.randperm(len(group), generator=generator)]:
        candidates = torch.where(free)[0]
        distance = (size[candidates].log() - size[neuron].log()).abs()
        nearest = candidates[distance.argsort()[:near]]
        chosen.append(nearest[torch.randint(len(nearest), (), generator=generator)])
        free[chosen[-1]] = False
    return torch.stack(chosen)


# ---- activity and being right ------------------------------------------------------------------------------------


def rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's, of (B,) and (B,), equal values sharing their mean rank."""
    ranks = [rankdata(part) - (len(x) + 1) / 2 for part in (x, y)]
    return float(ranks[0] @ ranks[1] / np.sqrt((ranks[0] @ ranks[0]) * (ranks[1] @ ranks[1])))


def permutation_p(x: np.ndarray, y: np.ndarray, generator: np.random.Generator, times: int = 999) -> float:
    """The share of permutations of y, the one found among them, whose rank correlation with x is at least as high."""
    first, second = (rankdata(part) - (len(x) + 1) / 2 for part in (x, y))
    shuffled = generator.permuted(np.tile(second, (times, 1)), axis=1) @ first
    return float((1 + (shuffled >= first @ second - 1e-9 * abs(first @ second)).sum()) / (1 + times))


def fewest_for_half(counts: np.ndarray, increases: np.ndarray, whole: float) -> float:
    """So many neurons at their mean cost half of what all together cost, on a line between the counts.

    counts: (k,) ascending. increases: (k,) of the loss. whole: of all. Infinite if it is never reached.
    """
    reached = np.maximum.accumulate(increases)
    if reached[-1] < whole / 2:
        return float("inf")
    return float(np.interp(whole / 2, np.concatenate([[0], reached]), np.concatenate([[0], counts])))


# ---- a language model --------------------------------------------------------------------------------------------


class NeuronMiniLM(MiniLM):
    """MiniLM whose neurons can be read and set: the activations of its feed-forward layers, after their GELU."""

    seen: list[Tensor]
    neurons: Tensor | None = None
    values: Tensor | None = None

    def run(self, tokens: Tensor, neurons: Tensor | None = None, values: Tensor | None = None):
        """(B, T) tokens -> (B, D) embeddings of the texts, and (B, T, N) activations.

        neurons: (k,) that are set, at every token, to what is given of all neurons in values, (N,).
        The embedding is the mean over tokens, of length one, as the model was trained to give it.
        """
        self.seen, self.neurons, self.values = [], neurons, values
        last = self.hidden_states(tokens)[-1]
        return F.normalize(last.mean(1), dim=-1), torch.cat(self.seen, -1)

    def _linear(self, x: Tensor, name: str) -> Tensor:
        if name.endswith("output.dense") and "attention" not in name:
            layer, width = len(self.seen), x.shape[-1]
            if self.neurons is not None and len(here := self.neurons[self.neurons // width == layer]):
                x = x.clone()
                x[..., here % width] = self.values[here]
            self.seen.append(x)
        return super()._linear(x, name)

    def written_norms(self) -> Tensor:
        """(N,) length of what one unit of each neuron adds to the residual stream."""
        names = [f"encoder.layer.{layer}.output.dense.weight" for layer in range(self.n_layers)]
        return torch.cat([self.weights[name].norm(dim=0) for name in names])
