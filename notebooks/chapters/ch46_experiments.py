"""Loops in a small language model (chapter 46): k layers looped L times beside k layers and k L layers.

One mix for all: sources of the Python standard library, facts to know by heart, stories to look things up in, and
variable assignments of depth 0, 1 and 2. Unlike in source 003 the last three are trained, too: a model of this size
shows nothing of them otherwise.
"""

import copy
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from arithlib.experiments.base import Experiment
from arithlib.experiments.depth import IGNORE_INDEX
from arithlib.models.looped import LoopedConfig, LoopedTransformer
from arithlib.settings import of_kind
from chapters.ch46_assignments import Assignments
from chapters.ch46_text import Facts, Stories, standard_library
from chapters.ch47_similarity import GROUPS, corresponding, cosine, relative_distance, similarity_penalty

DEPTHS = (0, 1, 2)


class LanguageObjective:
    """Cross-entropy of all that is asked, mean over kinds of text; texts are drawn anew and seeded by the step."""

    def __init__(self, experiment: "LanguageExperiment", device: torch.device):
        self.experiment, self.device = experiment, device
        self.held_out = experiment.tests(experiment.evaluation_count)

    def loss(self, model: LoopedTransformer, step: int) -> Tensor:
        e = self.experiment
        parts = e.batch(e.generator(step))[: 1 + e.live(step)]
        losses = [_cross_entropy(model(tokens.to(self.device)), targets.to(self.device)) for tokens, targets in parts]
        loss = torch.stack(losses).mean()
        return loss + similarity_penalty(model.layers, e.block, e.strength, e.measure) if e.strength else loss

    @torch.no_grad()
    def evaluate(self, model: LoopedTransformer) -> dict[str, float | np.ndarray]:
        """log_perplexity: nats a character of held-out text. closed, lookup: share right, where they are in the mix.

        assigned: share right by depth, (depths,), where the mix has assignments of several depths.
        """
        text, *others = self.held_out
        losses = [_cross_entropy(model(part[:, :-1].to(self.device)).cpu(), part[:, 1:]) for part in text.split(64)]
        kinds = self.experiment.kinds()
        right = [self.right(model, t, k) for t, k in zip(others, kinds, strict=True)]
        named = self.experiment.named
        found = {"log_perplexity": float(torch.stack(losses).mean())} | dict(zip(named, right, strict=False))
        return found | ({"assigned": np.array(right[len(named) :])} if right[len(named) :] else {})

    @torch.no_grad()
    def right(self, model: LoopedTransformer, tokens: Tensor, kind) -> float:
        """Share of (B, T) texts whose first answer is the most likely one, character by character.

        The right characters are read so far; up to its first mistake greedy decoding reads the same.
        """
        asked = kind.answers[0]
        before = slice(asked.start - 1, asked.stop - 1)
        said = [model(part[:, : asked.stop - 1].to(self.device))[:, before].argmax(-1) for part in tokens.split(256)]
        return float((torch.cat(said).cpu() == tokens[:, asked]).all(1).double().mean())


def _cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), ignore_index=IGNORE_INDEX)


@of_kind("language")
@dataclass(frozen=True, kw_only=True)
class LanguageExperiment(Experiment):
    """A (k x L) model on the mix, or a deep one whose blocks are pulled together.

    text: rows of a batch, of n_ctx characters each. others: texts of a batch of each other kind: facts, stories, and
        assignments by depth. Of these only the answers are learned, which would drown among the names otherwise.
    strength, block, measure: of `similarity_penalty`; at strength 0 blocks are only compared.
    evaluation_count: texts of each test, a multiple of 64; four times as many at the end.
    """

    model: LoopedConfig
    n_ctx: int = 64
    text: int = 4
    others: tuple[int, ...] = (16, 6, 12, 12, 12)
    strength: float = 0.0
    block: int = 2
    measure: str = "cosine"
    evaluation_count: int = 128

    named: ClassVar[tuple[str, ...]] = ("closed", "lookup")  # what the first kinds of text test; the rest is by depth

    network = LoopedTransformer

    def objective(self, model, device):
        return LanguageObjective(self, device)

    def kinds(self) -> list:
        """Facts, stories, and assignments by depth."""
        return [Facts(), Stories(), *map(Assignments, DEPTHS)]

    def batch(self, generator: torch.Generator) -> list[tuple[Tensor, Tensor]]:
        """Of each kind (B, T) tokens, and (B, T) what is to be said after each, or IGNORE_INDEX."""
        text = standard_library().windows(self.text, self.n_ctx + 1, generator)
        parts = [(text[:, :-1], text[:, 1:])]
        for kind, count in zip(self.kinds(), self.others, strict=True):
            tokens = kind.sample(count, generator)
            parts.append((tokens[:, :-1], self.asked(kind, tokens)[:, 1:]))
        return parts

    def asked(self, kind, tokens: Tensor) -> Tensor:
        """(B, T) what is to be said at each place of (B, T) texts of a kind, or IGNORE_INDEX: the answers."""
        targets = torch.full_like(tokens, IGNORE_INDEX)
        for answer in kind.answers:
            targets[:, answer] = tokens[:, answer]
        return targets

    def live(self, step: int) -> int:
        """How many kinds are learned at a step, the first of them: all."""
        return len(self.others)

    def tests(self, count: int, more: int = 0) -> list[Tensor]:
        """Held-out text, facts, stories, and assignments by depth: `count` of each, the same for every model.

        Facts cannot be held out: what is asked is what the model was told. more: another number, other tests.
        """
        generator = torch.Generator().manual_seed(2**31 + more)
        text = standard_library().windows(count, self.n_ctx + 1, generator, held_out=True)
        return [text, *(kind.sample(count, generator) for kind in self.kinds())]

    def finish(self, model, run):
        """The tests of the end, larger, with names ending in `_final`, (1, ...) each; what was read, as (1, 2)
        characters and digest; and of a model of several blocks the (1, groups, pairs) cosines and relative distances
        between them, and the log perplexity with the first block in the place of each (1,)."""
        measured = self.objective(model, next(model.parameters()).device)
        measured.held_out = self.tests(4 * self.evaluation_count, more=1)
        found = {f"{name}_final": np.array([value]) for name, value in measured.evaluate(model).items()}
        corpus = standard_library()
        found["corpus"] = np.array([[len(corpus.train) + len(corpus.held_out), corpus.digest]])
        if len(model.layers) > self.block:
            pairs = corresponding(model.layers, self.block)
            for name, measure in (("cosines", cosine), ("distances", relative_distance)):
                with torch.no_grad():
                    found[name] = np.array([[[float(measure(a, b)) for a, b in pairs[g]] for g in GROUPS]])
            found["looped_log_perplexity"] = np.array([measured.evaluate(self._looped(model))["log_perplexity"]])
        return found

    def _looped(self, model: LoopedTransformer) -> LoopedTransformer:
        first = copy.deepcopy(model)
        for i, layer in enumerate(first.layers):
            layer.load_state_dict(model.layers[i % self.block].state_dict())
        return first


@of_kind("language-short")
@dataclass(frozen=True, kw_only=True)
class ShortExperiment(LanguageExperiment):
    """A mix that is easier to learn: text, facts, and values to look up, which two layers learned in a trial.

    A name is one letter here and a value one digit, and many texts are read at a step; the stories of the other mix,
    whose names have four letters, take far longer.
    """

    others: tuple[int, ...] = (16, 128)

    def kinds(self):
        """Facts, twice as many as in the other mix, and assignments of depth 0."""
        return [Facts(512), Assignments(0)]


@of_kind("language-deeper")
@dataclass(frozen=True, kw_only=True)
class DeeperExperiment(LanguageExperiment):
    """Text, and variable assignments of which one depth after another joins in.

    After each variable that is given to another its value is learned, too, which does not stand there; it is never
    tested. later: steps after which the next depth is learned.
    """

    others: tuple[int, ...] = (64, 64, 64)
    later: int

    named = ()

    def kinds(self):
        return [Assignments(depth) for depth in range(len(self.others))]

    def asked(self, kind, tokens):
        targets = super().asked(kind, tokens)
        targets[:, [place + 1 for place in kind.sources]] = kind.values(tokens)
        return targets

    def live(self, step):
        return min(1 + step // self.later, len(self.others))
