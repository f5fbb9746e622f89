"""Small causal transformers on the tasks of RASP-L, a study of several seeds trained as one (chapter 63)."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from arithlib.experiments.base import Experiment
from arithlib.settings import of_kind
from chapters.ch61_character_gpt import CharacterGPTConfig, CharacterGPTs
from chapters.ch61_experiments import losses
from chapters.ch63_tasks import VOCABULARY, draw

TEST_SEED = 2310_16028


class AlgorithmObjective:
    """Mean cross-entropy on answers. A step has texts of one length; each model has its own, and its own shift."""

    def __init__(self, experiment: "AlgorithmExperiment"):
        self.experiment = experiment

    def batch(self, step: int) -> tuple[Tensor, Tensor, Tensor]:
        """(S, B, T) texts, (S, B, T) what of them is to be written, (S,) where they begin."""
        e = self.experiment
        length = int(np.random.default_rng([step, e.seed]).integers(1, e.train_length + 1))
        generators = [np.random.default_rng([step, e.seed, seed]) for seed in e.seeds]
        texts, written = stack([draw(e.task, length, e.batch_size, generator) for generator in generators])
        room = e.build_config().n_ctx - texts.shape[2]
        return texts, written, torch.tensor([int(generator.integers(room + 1)) for generator in generators])

    def loss(self, model: CharacterGPTs, step: int) -> Tensor:
        texts, written, shift = self.batch(step)
        places = shift[:, None, None] + torch.arange(texts.shape[2])
        return losses(model, texts, written, places.expand(texts.shape)).sum()

    @torch.no_grad()
    def evaluate(self, model: CharacterGPTs) -> dict[str, np.ndarray]:
        """exact_match, loss: (seeds,) on 100 texts of the longest length of training."""
        right, loss = self.experiment.score(model, self.experiment.train_length, 100)
        return {"exact_match": right.double().mean(1).numpy(), "loss": loss.numpy()}


def stack(drawn):
    """S times ((B, T) texts, Q) -> (S, B, T) texts and what of them is to be written."""
    texts = torch.from_numpy(np.stack([text for text, _ in drawn]))
    written = torch.arange(texts.shape[2]) >= drawn[0][1]
    return texts, written.expand(texts.shape)


@of_kind("algorithm-study")
@dataclass(frozen=True, kw_only=True)
class AlgorithmExperiment(Experiment):
    """A small GPT for each seed, trained on texts of a task of lengths 1 to train_length, tested on others.

    Texts begin at a random place of a table of positions, which is long enough for the longest of the tests and one
    of training, so that training shows every place (the source packs texts into a context and shifts that).
    """

    task: str
    train_length: int
    test_lengths: tuple[int, ...]
    seeds: tuple[int, ...]
    batch_size: int = 32
    d_model: int = 64
    n_layers: int = 3
    test_size: int = 200

    def build_config(self) -> CharacterGPTConfig:
        generator = np.random.default_rng(0)
        width = sum(
            draw(self.task, length, 1, generator)[0].shape[1]
            for length in (max(self.test_lengths), self.train_length)
        )
        return CharacterGPTConfig(width, self.d_model, self.n_layers, d_vocab=VOCABULARY)

    def build(self):
        return CharacterGPTs(self.build_config(), self.seeds)

    def size(self):
        """Of one model."""
        weights = sum(weight[0].numel() for weight in self.build().parameters())
        return {"weights": weights, "examples": self.steps * self.batch_size}

    def objective(self, model, device):
        return AlgorithmObjective(self)

    @torch.no_grad()
    def answers(self, model: CharacterGPTs, texts: np.ndarray, Q: int) -> tuple[Tensor, Tensor, Tensor]:
        """(B, T) texts, Q -> what the models say to each token of the answers, given those before it.

        Returns (S, B, A) whether it is right, (S, B, A) what is said, and (S,) mean losses. The texts lie in the
        middle of the table. Greedy decoding writes exactly those answers right: up to a first mistake it reads the
        same.
        """
        S, T = len(self.seeds), texts.shape[1]
        tokens = torch.from_numpy(texts).expand(S, -1, -1)
        places = ((model.config.n_ctx - T) // 2 + torch.arange(T)).expand(tokens.shape)
        said = model(tokens[..., :-1], places)[..., Q - 1 :, :].argmax(-1)
        written = (torch.arange(T) >= Q).expand(tokens.shape)
        return said == tokens[..., Q:], said, losses(model, tokens, written, places)

    def score(self, model: CharacterGPTs, length: int, size: int) -> tuple[Tensor, Tensor]:
        """(S, size) whether every token of an answer is right, and (S,) mean losses, on texts of one length."""
        right, _, loss = self.answers(
            model, *draw(self.task, length, size, np.random.default_rng([TEST_SEED, length]))
        )
        return right.all(-1), loss

    @torch.no_grad()
    def finish(self, model, run):
        """by_length: (1, test_lengths, seeds) share of answers that are right in every token."""
        right = [self.score(model, length, self.test_size)[0].double().mean(1) for length in self.test_lengths]
        return {"by_length": torch.stack(right).numpy()[None]}
