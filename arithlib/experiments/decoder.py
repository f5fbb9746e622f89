"""Experiments on small decoders whose numbers are single tokens, or two digits each (part 5)."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from arithlib.evaluation import accuracy, cross_entropy
from arithlib.experiments.base import Experiment
from arithlib.models.decoder import Decoder, DecoderConfig, DigitDecoder, normalise
from arithlib.settings import of_kind
from arithlib.tasks.prompts import D_VOCAB_DIGITS, N_NUMBERS, QUESTIONS, Sums, ask, digit_answer, digit_prompt, prompt


def _draw(prompts: tuple[Tensor, Tensor], count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    rows = torch.randint(len(prompts[0]), (count,), generator=generator).to(prompts[0].device)
    return prompts[0][rows], prompts[1][rows]


class AnswerObjective:
    """Cross-entropy of the answer token, on a batch drawn anew at every step and seeded by it."""

    def __init__(self, experiment: "DecoderExperiment", device: torch.device):
        self.experiment = experiment
        sums = experiment.sums
        self.train, self.test = (
            (prompt(*pairs.T).to(device), pairs.sum(1).to(device)) for pairs in (sums.train_pairs, sums.test_pairs)
        )
        others = [ask(name) for name in QUESTIONS]
        self.others = tuple(torch.cat(part).to(device) for part in zip(*others, strict=True))

    def loss(self, model: Decoder, step: int) -> Tensor:
        e = self.experiment
        generator = e.generator(step)
        count = round(e.others_share * e.batch_size)
        sums = _draw(self.train, e.batch_size - count, generator)
        batch = [torch.cat(parts) for parts in zip(sums, _draw(self.others, count, generator), strict=True)]
        return cross_entropy(model.answer_logits(batch[0]), batch[1])

    @torch.no_grad()
    def evaluate(self, model: Decoder) -> dict[str, float]:
        """Loss and accuracy on the sums of training, on held-out sums, and on the other questions (all trained)."""
        measured = {}
        for name, (prompts, answers) in {"train": self.train, "test": self.test, "others": self.others}.items():
            logits = model.answer_logits(prompts)
            measured[f"{name}_loss"] = float(cross_entropy(logits, answers))
            measured[f"{name}_accuracy"] = accuracy(logits, answers)
        return measured


@of_kind("decoder")
@dataclass(frozen=True, kw_only=True)
class DecoderExperiment(Experiment):
    """A Decoder on sums of two numbers from 0 to 99.

    others_share: share of each batch that asks one of the other questions of source 001 instead.
    """

    sums: Sums = field(default_factory=Sums)
    model: DecoderConfig = field(default_factory=DecoderConfig)
    batch_size: int = 512
    others_share: float = 0.0

    network = Decoder

    def objective(self, model, device):
        return AnswerObjective(self, device)

    @torch.no_grad()
    def add(self, model, a, b):
        if max(a, b) >= N_NUMBERS:
            raise ValueError(f"numbers from 0 to {N_NUMBERS - 1} have a token, others none")
        return int(model.answer_logits(prompt(torch.tensor([a]), torch.tensor([b])))[0].argmax())


class DigitObjective:
    """Cross-entropy of the three digits of the answer, each with the right ones before it, on a batch drawn anew."""

    def __init__(self, experiment: "DigitExperiment", device: torch.device):
        self.experiment = experiment
        sums = experiment.sums
        self.train, self.test = (
            (digit_prompt(*pairs.T).to(device), digit_answer(pairs.sum(1)).to(device))
            for pairs in (sums.train_pairs, sums.test_pairs)
        )

    def loss(self, model: Decoder, step: int) -> Tensor:
        e = self.experiment
        return cross_entropy(*self._answered(model, *_draw(self.train, e.batch_size, e.generator(step))))

    def _answered(self, model: Decoder, prompts: Tensor, answers: Tensor) -> tuple[Tensor, Tensor]:
        """(B, 6), (B, 3) -> (B, 3, V) logits of each digit of the answer, and the answers."""
        tokens = torch.cat([prompts, answers[:, :-1]], 1)
        resid = model(tokens, return_activations=True)[1][f"resid.{model.config.n_layers}"]
        return normalise(resid[:, -answers.shape[1] :]) @ model.W_U, answers

    @torch.no_grad()
    def evaluate(self, model: Decoder) -> dict[str, float]:
        """Loss a digit, and the share of sums with all three digits right: then greedy decoding finds them too."""
        measured = {}
        for name, sums in {"train": self.train, "test": self.test}.items():
            logits, answers = self._answered(model, *sums)
            measured[f"{name}_loss"] = float(cross_entropy(logits, answers))
            measured[f"{name}_accuracy"] = float((logits.argmax(-1) == answers).all(1).double().mean())
        return measured


@of_kind("decoder-digits")
@dataclass(frozen=True, kw_only=True)
class DigitExperiment(Experiment):
    """A Decoder on sums of two numbers from 0 to 99, read and written digit by digit."""

    sums: Sums = field(default_factory=Sums)
    model: DecoderConfig = field(default_factory=lambda: DecoderConfig(d_vocab=D_VOCAB_DIGITS))
    batch_size: int = 256

    network = DigitDecoder

    def objective(self, model, device):
        return DigitObjective(self, device)

    def add(self, model, a, b):
        if max(a, b) > 99:
            raise ValueError("this model reads numbers of two digits, from 0 to 99")
        return int(model.sums(digit_prompt(torch.tensor([a]), torch.tensor([b]))))
