"""Small GPTs that add numbers cut into tokens in several ways (chapter 60)."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from arithlib.experiments.base import Experiment
from arithlib.settings import of_kind
from arithlib.tasks.operands import longest_carry_chain
from chapters.ch60_cut_sums import Cut, draw_numbers, spelling, vocabulary
from chapters.ch61_character_gpt import CharacterGPTConfig, CharacterGPTs
from chapters.ch61_experiments import losses
from chapters.ch61_written_sums import Lines

TEST_SEED = 2402_14903
HALF = 0.5  # of the sums of a test are right: a half-trained model


class CutSumsObjective:
    """Each model's mean cross-entropy on the tokens of answers; all of a stack have the same sums at a step."""

    def __init__(self, experiment: "CutExperiment"):
        self.experiment = experiment
        generator = torch.Generator().manual_seed(TEST_SEED)
        self.test = experiment.lines(experiment.draw(generator, experiment.evaluation_count))

    def loss(self, model: CharacterGPTs, step: int) -> Tensor:
        e, generator = self.experiment, self.experiment.generator(step)
        pairs = e.draw(generator, e.batch_size)
        commas = torch.rand(e.batch_size, generator=generator).numpy() < e.commas
        return losses(model, *stacked(e.lines(pairs, commas), len(e.seeds))).sum()

    @torch.no_grad()
    def evaluate(self, model: CharacterGPTs) -> dict[str, np.ndarray]:
        """(seeds,) each: exact_match and loss on sums as in training, without commas, the right text being read."""
        tokens, written = stacked(self.test, len(self.experiment.seeds))
        said = model(tokens[..., :-1]).argmax(-1)
        right = ((said == tokens[..., 1:]) | ~written[..., 1:]).all(-1)
        return {"exact_match": right.double().mean(1).numpy(), "loss": losses(model, tokens, written).numpy()}


def stacked(lines: Lines, models: int) -> tuple[Tensor, Tensor]:
    """The (S, B, T) tokens and what is to be written, the same for all of S models."""
    return lines.tokens.expand(models, -1, -1), lines.written.expand(models, -1, -1)


def with_chains(digits: int, count: int, generator: torch.Generator) -> list[np.ndarray]:
    """For chains of 0 to `digits` columns: (count, 2) operands of so many digits with that longest carry chain.

    Drawn from sums in which every second column adds up to nine, by chance, so that long chains are not rare.
    """
    columns = torch.randint(10, (2000 * count, 2, digits), generator=generator)  # lowest first
    nines = torch.rand(len(columns), digits, generator=generator) < 0.5
    columns[:, 1] = torch.where(nines, 9 - columns[:, 0], columns[:, 1])
    columns = columns[(columns[:, :, -1] > 0).all(1)]  # no leading zeros
    chains = longest_carry_chain(columns[:, 0], columns[:, 1])
    numbers = (columns * 10 ** torch.arange(digits)).sum(2).numpy()
    return [numbers[chains.numpy() == chain][:count] for chain in range(digits + 1)]


@torch.no_grad()
def spell(models: CharacterGPTs, seeds: tuple[int, ...], size: int) -> None:
    """Let each chunk of at most so many digits begin with the sum of a vector for each digit at its place.

    Those that it is read by and those that it is written by, as large as they were. In training they are free.
    """
    digits = spelling(size)
    spelled = digits.any(1)
    for model, seed in enumerate(seeds):
        generator = torch.Generator().manual_seed(seed)
        for vectors in (models.W_E[model], models.W_U[model].T):
            of_digits = torch.randn(digits.shape[1], vectors.shape[1], generator=generator) * vectors.std()
            vectors[spelled] = digits[spelled] @ of_digits


@of_kind("cut-sums")
@dataclass(frozen=True, kw_only=True)
class CutExperiment(Experiment):
    """A stack of small GPTs on fresh sums of two numbers of equally many digits, 1 to `digits`, cut in one way.

    commas: share of the sums in training whose operands have commas. spelled: chunks begin with vectors made of those
    of their digits (`spell`). seeds: of the weights. test_count, chain_count: sums in the tests of the end (`tests`),
    of every number of digits and for every carry chain.
    """

    cut: Cut
    seeds: tuple[int, ...]
    digits: int = 4
    commas: float = 0.0
    spelled: bool = False
    batch_size: int = 128
    d_model: int = 64
    n_layers: int = 2
    n_heads: int = 4
    evaluation_count: int = 300
    test_count: int = 400
    chain_count: int = 150

    def build(self):
        T = self.lines(np.zeros((1, 2), int)).tokens.shape[1]
        config = CharacterGPTConfig(T, self.d_model, self.n_layers, self.n_heads, vocabulary(self.cut.size))
        models = CharacterGPTs(config, self.seeds)
        if self.spelled:
            spell(models, self.seeds, self.cut.size)
        return models

    def draw(self, generator: torch.Generator, size: int) -> np.ndarray:
        """(size, 2) operands as in training: each number of digits is as likely, and each number that has so many."""
        lengths = torch.randint(1, self.digits + 1, (size, 1), generator=generator).expand(-1, 2)
        return draw_numbers(lengths.numpy(), generator)

    def lines(self, pairs: np.ndarray, commas: np.ndarray | None = None) -> Lines:
        """Of single digits with room for commas, whether they have any or not."""
        return self.cut.write(pairs, self.digits, commas if self.cut.size == 1 else None, self.cut.size == 1)

    def size(self):
        """Of one model."""
        weights = sum(weight[0].numel() for weight in self.build().parameters())
        return {"weights": weights, "examples": self.steps * self.batch_size}

    def objective(self, model, device):
        return CutSumsObjective(self)

    def tests(self) -> np.ndarray:
        """(sums, 2) operands of the tests of the end, the same for all runs: `test_count` with 1, 2, ... digits each,
        then `chain_count` of the longest whose longest carry chain has 0, 1, ... columns (`with_chains`).
        """
        generator = torch.Generator().manual_seed(TEST_SEED + 1)
        digits = np.arange(1, self.digits + 1).repeat(self.test_count)
        equal = draw_numbers(np.stack([digits, digits], 1), generator)
        return np.concatenate([equal, *with_chains(self.digits, self.chain_count, generator)])

    @torch.no_grad()
    def finish(self, model, run):
        """Answers to `tests` as the models write them by themselves, each with a first axis of one.

        answers: (seeds, sums); -1 is no number. Of single digits also with_commas: the same questions, with commas.
        Where snapshots were kept also half_step: (seeds,) the first of them at which half of the evaluation is right,
        the last one where none is; and half: (seeds, sums) the answers then.
        """
        found = {"answers": self.answers(model)}
        if self.cut.size == 1:
            found["with_commas"] = self.answers(model, True)
        if run.snapshots:
            steps = np.array(sorted(run.snapshots))
            right = run.history["exact_match"][np.searchsorted(run.history["step"], steps)] >= HALF
            chosen = np.where(right.any(0), right.argmax(0), len(steps) - 1)
            half, other = np.empty_like(found["answers"]), self.build()
            for which in set(chosen.tolist()):
                other.load_state_dict(run.snapshots[int(steps[which])])
                half[chosen == which] = self.answers(other)[chosen == which]
            found |= {"half_step": steps[chosen], "half": half}
        return {name: values[None] for name, values in found.items()}

    def answers(self, model: CharacterGPTs, commas: bool = False) -> np.ndarray:
        """(seeds, sums) of int32."""
        pairs = self.tests()
        lines = self.lines(pairs, np.full(len(pairs), commas))
        first = int(lines.written[0].int().argmax())
        said = []
        for part in lines.tokens.split(500):
            begin = torch.full((len(self.seeds), len(part)), first)
            said.append(model.complete(part.expand(len(self.seeds), -1, -1), begin)[..., first:])
        return np.array([[self.cut.read(row) for row in one] for one in torch.cat(said, 1)], dtype=np.int32)

    @torch.no_grad()
    def add(self, model, a, b):
        """As the first model of the stack writes it."""
        if max(len(str(a)), len(str(b))) > self.digits:
            raise ValueError(f"{a} + {b}: the model reads numbers of up to {self.digits} digits")
        lines = self.lines(np.array([[a, b]]))
        first = int(lines.written[0].int().argmax())
        begin = torch.full((len(self.seeds), 1), first)
        answer = self.cut.read(model.complete(lines.tokens.expand(len(self.seeds), -1, -1), begin)[0, 0, first:])
        if answer < 0:
            raise ValueError("the model's answer is no number")
        return answer


class AskedSums:
    """The sums that a run of `CutExperiment` is asked at its end, and where they lie in its answers.

    sums: (sums,) right ones. length: digits of both numbers, of those of equally many that come first (`equal`).
    """

    def __init__(self, experiment: CutExperiment):
        self.digits, each = experiment.digits, experiment.test_count
        self.sums = experiment.tests().sum(1)
        self.length = np.arange(1, self.digits + 1).repeat(each)
        self.equal = slice(0, len(self.length))

    def percent(self, answers: np.ndarray, chosen) -> np.ndarray:
        """(seeds, sums) answers -> (seeds,) percent of the chosen sums that are right."""
        return 100 * (answers[:, chosen] == self.sums[chosen]).mean(1)
