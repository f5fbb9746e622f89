"""Experiments on written arithmetic (part 3): looped transformers with Abacus positions, and their rivals."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from arithlib.analysis.addressing import last_rows
from arithlib.decoding import greedy
from arithlib.exact_match import length_grid, score
from arithlib.experiments.base import Experiment, half_precision
from arithlib.models.looped import LoopedConfig, LoopedTransformer, ProgressiveLoss
from arithlib.models.positions import Offsets, spread_offsets
from arithlib.settings import of_kind
from arithlib.tasks.operands import OperandTask, Problems

# The sums that source 002 watches while it trains; the last is far beyond what any of its addresses learned.
PROBES = ((1, 1), (57, 24), (999_999, 8888), (int("789" * 50), int("12" * 20)))
# Lengths of both operands, as multiples of the longest in training, at which every evaluation measures exact match.
REACH = (1, 1.25, 1.5, 2, 3, 5)
# Problems for each pair of lengths on the grids of `finish`.
CELL = 50
# Groups of similar length in which a batch is computed: less filling. A GPU takes twice as long for three as for one.
GROUPS = {"cpu": 3, "cuda": 1}


@contextmanager
def as_tested(device: torch.device) -> Iterator[None]:
    """No gradients; on a GPU half precision, and layers as written: of the shapes of tests each comes but once."""
    # Naming the stance loads the compiler of graphs, which takes longer than many a test.
    stance = torch.compiler.set_stance("force_eager") if device.type == "cuda" else nullcontext()
    with torch.no_grad(), half_precision(device), stance:
        yield


class OperandObjective:
    """Cross-entropy of the answers of fresh problems at every step, seeded by the step.

    On a CPU a batch is computed in three groups of similar length; on a GPU in bfloat16, by compiled layers.
    """

    def __init__(self, experiment: "AbacusExperiment", model: LoopedTransformer, device: torch.device):
        self.experiment, self.device = experiment, device
        if device.type == "cuda":
            for layer in model.layers:
                layer.compile(dynamic=True)
        self.held_out, self.by_length = experiment.tests(device)
        self.probes = [experiment.task.from_numbers([probe], device) for probe in PROBES]

    def loss(self, model: LoopedTransformer, step: int) -> Tensor:
        e = self.experiment
        generator = e.generator(step, self.device)
        loops = e.loss.draw(e.model.n_loops, e.generator(step))
        problems = e.task.sample(e.batch_size, generator)
        offset = e.offsets.draw(e.batch_size, generator).expand(e.batch_size, 1)
        learned = self._learned(problems)[:, 1:].sum()
        parts = problems.by_length(GROUPS[self.device.type])
        offsets = offset.split([len(part) for part in parts])
        with half_precision(self.device):
            total = sum(
                e.loss(model, part, own, loops, self._learned(part)) for part, own in zip(parts, offsets, strict=True)
            )
        return total / learned

    def _learned(self, problems: Problems) -> Tensor:
        """(B, T) the tokens that the loss counts."""
        if self.experiment.mask_question:
            return problems.answer_mask
        return torch.arange(problems.tokens.shape[1], device=self.device) < problems.stop[:, None]

    def evaluate(self, model: LoopedTransformer) -> dict[str, float | np.ndarray]:
        """On held-out problems, at the model's own fixed offset.

        loss, exact_match: in distribution. loss_by_loops: (R,) after 1 to R loops.
        exact_match_by_length: (6,) both operands at REACH times the training length. probe_perplexity: (4,), PROBES.
        """
        scores = [self._score(model, self.held_out, loops=loop + 1) for loop in range(self.experiment.model.n_loops)]
        losses = [-float(s.log_probability[s.mask].mean()) for s in scores]
        return {
            "loss": losses[-1],
            "exact_match": float(scores[-1].exact.double().mean()),
            "loss_by_loops": np.array(losses),
            "exact_match_by_length": np.array(
                [float(self._score(model, problems).exact.double().mean()) for problems in self.by_length]
            ),
            "probe_perplexity": np.array([float(self._score(model, probe).perplexity[0]) for probe in self.probes]),
        }

    def _score(self, model, problems, **more):
        with as_tested(self.device):
            return score(model, problems, **more)


@of_kind("abacus")
@dataclass(frozen=True, kw_only=True)
class AbacusExperiment(Experiment):
    """A looped transformer on fresh problems with two operands.

    offsets: how addresses are moved in training. loss: the mix of loop counts. mask_question: learn the answer only.
    divide_gradients: the gradient of the looped weights is divided by the number of loops, as the paper does for
        products. With a constant number of loops AdamW undoes the division, since it divides by the size of the
        gradient; what is left is its share in the norm that is clipped (McLeish et al., section 4.2).
    evaluation_count: held-out problems of the training distribution; a quarter as many at each longer length.
    """

    task: OperandTask = field(default_factory=OperandTask)
    model: LoopedConfig = field(default_factory=LoopedConfig)
    offsets: Offsets = Offsets("per batch", k=100)
    loss: ProgressiveLoss = ProgressiveLoss()
    batch_size: int = 64
    mask_question: bool = True
    divide_gradients: bool = False
    evaluation_count: int = 256

    network = LoopedTransformer

    def __post_init__(self):
        super().__post_init__()
        longest = self.task.max_digits * (2 if "*" in self.task.operations else 1) + 1
        if {"abacus", "abacus-qk", "coupling"} & set(self.model.positions.split("+")):
            self.offsets.require(longest + (self.model.positions == "coupling"), self.model.n_rows)

    def build(self):
        model = super().build()
        if self.divide_gradients:
            for weight in model.layers.parameters():
                weight.register_hook(lambda gradient: gradient / self.model.n_loops)
        return model

    def objective(self, model, device):
        return OperandObjective(self, model, device)

    def add(self, model, a, b):
        if self.task.operations[0] != "+":
            return super().add(model, a, b)
        # As many steps as any sum needs; what is still unfinished then is no answer.
        steps = max(len(str(a)), len(str(b))) + 2
        return self.task.read(greedy(model, self.task.ask(a, b, model.device), steps)[0])

    def tests(self, device: torch.device | str = "cpu") -> tuple[Problems, list[Problems]]:
        """Problems as in training, and problems with both operands at each multiple REACH of the training length."""
        task, held_out = self.task, self.apart(device=device)
        lengths = [torch.full((self.evaluation_count // 4, 2), round(times * task.max_digits)) for times in REACH]
        return task.sample(self.evaluation_count, held_out), [task.problems(each, held_out) for each in lengths]

    def finish(self, model, run):
        """What only the finished run can give: later questions to weights that are not shipped, and to snapshots.

        exact_match_together: (1, 6) as exact_match_by_length at the end, eight offsets deciding together where that
        many digits have trained addresses.
        exact_match_grid: (1, O, 2 N, 2 N), where there is more than addition, for each of O operations and 1 to 2 N
        digits in either operand, likewise; CELL problems a pair.
        Of an adder for a GPU, CELL problems a pair, at its own offset or the last with trained rows for all digits:
        grid_double: (1, 20, 20) both operands to 2 N digits; by_loops: (1, 2 R) its mean after 1 to 2 R loops.
        grid_far: (1, 10, 10) both to 5 N. diagonal: (1, L) both of 1 to L digits, which fill the trained rows.
        by_offset: (1, k + 5) both of N digits, at every offset and five beyond.
        Of an adder with a window, all at the offset for the longest, numbers of N, 2 N, ... 5 N digits: far: (1, 5)
        both operands of one length, 4 CELL problems; far_grid: (1, 5, 5) every pair; far_repeated: (1, 5) 1...1 + 1
        to 9...9 + 1.
        Of S snapshots, on sums of two numbers of n digits, evaluation_count for each n to N, snapshot_step: (S,),
        exact_match_by_digits: (S, N), and error_by_place: (S, M) share of wrong tokens at each place for n = N.
        """
        measured = {} if self.ships_weights else {"exact_match_together": self._together(model)}
        if self.task.operations != "+":
            measured["exact_match_grid"] = self._grids(model)
        elif self.scale == "gpu":
            measured |= self._reach(model)
        elif self.model.window is not None:
            measured |= self._far(model)
        return measured | (self._at_snapshots(run) if run.snapshots else {})

    @property
    def last_row(self) -> int:
        """The last row of the address table that training shows on an operand."""
        return last_rows(self.task.max_digits, self.offsets.k)["operand"]

    def with_room(self, digits: int) -> Offsets:
        """The model's own offset, or the largest that leaves a trained row for every digit of such operands."""
        return Offsets("fixed", value=min(self.model.offset, self.last_row - digits))

    def offset_ensemble(self, model: LoopedTransformer, digits: int) -> list[Offsets] | None:
        """Eight offsets that keep problems with operands of so many digits on trained rows; None where none does."""

        def longest(operand):
            return 2 * operand if "*" in self.task.operations else operand + 1

        last_row = self.offsets.k + longest(self.task.max_digits) - 1
        if model.positions.addressed and longest(digits) <= last_row:
            return spread_offsets(8, longest(digits) - 1, last_row)
        return None

    def _together(self, model):
        shares = []
        for problems in self.tests(model.device)[1]:
            with as_tested(model.device):
                scores = score(model, problems, offsets=self.offset_ensemble(model, problems.a.shape[1]))
            shares.append(float(scores.exact.double().mean()))
        return np.array([shares])

    def _reach(self, model):
        N, R = self.task.max_digits, self.model.n_loops

        def grid(lengths, offsets=None, **more):
            return length_grid(
                model, self.task, lengths, lengths, count=CELL, seed=2**31 + 3 + self.seed,
                offsets=offsets or self.with_room(max(lengths)), **more,
            )  # fmt: skip

        double, far = ([times * N * (i + 1) // cells for i in range(cells)] for times, cells in ((2, 20), (5, 10)))
        with as_tested(model.device):
            measured = {
                "grid_double": grid(double), "grid_far": grid(far),
                "by_loops": [grid(double, loops=loops).mean() for loops in range(1, 2 * R + 1)],
                "diagonal": [grid([n]).item() for n in range(1, self.last_row + 1)],
                "by_offset": [grid([N], Offsets("fixed", value=o)).item() for o in range(self.offsets.k + 5)],
            }  # fmt: skip
        return {name: np.array([values]) for name, values in measured.items()}

    def _far(self, model):
        lengths = [times * self.task.max_digits for times in range(1, 6)]
        offset, seed = self.with_room(lengths[-1]), 2**31 + 5 + 2 * self.seed

        def repeated(n):
            sums = self.task.from_numbers([(int(f"{digit}" * n), 1) for digit in range(1, 10)], model.device)
            return float(score(model, sums, offsets=offset).exact.double().mean())

        grid = partial(length_grid, model, self.task, offsets=offset)
        with as_tested(model.device):
            measured = {
                "far": [grid([n], [n], count=4 * CELL, seed=seed).item() for n in lengths],
                "far_grid": grid(lengths, lengths, count=CELL, seed=seed + 1),
                "far_repeated": [repeated(n) for n in lengths],
            }
        return {name: np.array([values]) for name, values in measured.items()}

    def _grids(self, model):
        lengths = range(1, 2 * self.task.max_digits + 1)
        with as_tested(model.device):
            return np.array([[
                length_grid(
                    model, replace(self.task, operations=operation), lengths, lengths, count=CELL,
                    seed=2**31 + 2 + self.seed, offsets=partial(self.offset_ensemble, model),
                )
                for operation in self.task.operations
            ]])  # fmt: skip

    def _at_snapshots(self, run):
        N, count = self.task.max_digits, self.evaluation_count
        lengths = torch.arange(1, N + 1).repeat_interleave(count)[:, None].expand(-1, 2)
        problems = self.task.problems(lengths, self.apart(1))
        then = LoopedTransformer(self.model)
        measured = {"snapshot_step": [], "exact_match_by_digits": [], "error_by_place": []}
        for step, parameters in sorted(run.snapshots.items()):
            then.load_state_dict(parameters)
            measured["snapshot_step"].append(step)
            measured["exact_match_by_digits"].append(score(then, problems).exact.view(N, count).double().mean(1))
            measured["error_by_place"].append(score(then, problems[-count:]).error_by_place)
        return {name: np.array(values) for name, values in measured.items()}
