"""Experiments on written arithmetic (part 3): looped transformers with Abacus positions, and their rivals.

arithlib train abacus-live          under 3 minutes on two cores
arithlib train "abacus-cpu-s*"      about an hour each on one core
arithlib train --queue gpu --minutes 25 --out results      the next paper-sized ones, on a GPU
"""

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from arithlib import parallel
from arithlib.decoding import greedy
from arithlib.exact_match import length_grid, score
from arithlib.experiments.base import Experiment
from arithlib.models.attention import best_kernel
from arithlib.models.looped import LoopedConfig, LoopedTransformer, ProgressiveLoss
from arithlib.models.positions import Offsets, spread_offsets
from arithlib.settings import of_kind, remark
from arithlib.tasks.operands import OperandTask, Problems
from arithlib.training import ScheduledAdamW

# The sums that source 002 watches while it trains; the last is far beyond what any of its addresses learned.
PROBES = ((1, 1), (57, 24), (999_999, 8888), (int("789" * 50), int("12" * 20)))
# Lengths of both operands, as multiples of the longest in training, at which every evaluation measures exact match.
REACH = (1, 1.25, 1.5, 2, 3, 5)
# Problems for each pair of lengths on the grids of `finish`.
CELL = 50


class OperandObjective:
    """Cross-entropy of the answers of fresh problems at every step, seeded by the step.

    Several processes share a batch, and their losses add up to its mean. On a CPU it is computed in four groups of
    similar length; on a GPU at one width in bfloat16, compiled.
    """

    def __init__(self, experiment: "AbacusExperiment", model: LoopedTransformer, device: torch.device):
        self.experiment, self.device, on_gpu = experiment, device, device.type == "cuda"
        self.parts = 1 if on_gpu else 4
        self.generator, self.loop_generator = torch.Generator(device), torch.Generator()
        if on_gpu:
            model.kernel = best_kernel(device, biased="fire" in model.positions.parts)
            print(f"attention kernel: {model.kernel}", flush=True)
            for layer in model.layers:
                layer.compile()
        task = experiment.task
        held_out = torch.Generator(device).manual_seed(2**31 + experiment.data_seed)
        self.held_out = task.sample(experiment.evaluation_count, held_out)
        self.by_length = []
        for times in REACH:
            length = round(times * task.max_digits)
            lengths = torch.full((experiment.evaluation_count // 4, 2), length)
            self.by_length.append(task.problems(lengths, held_out))
        self.probes = [task.from_numbers([probe], device) for probe in PROBES]

    def loss(self, model: LoopedTransformer, step: int) -> Tensor:
        e = self.experiment
        seed = (1_000_003 * e.data_seed + step) % 2**32
        generator = self.generator.manual_seed(seed)
        loops = e.loss.draw(e.model.n_loops, self.loop_generator.manual_seed(seed))
        problems = e.task.sample(e.batch_size, generator)
        offset = e.offsets.draw(e.batch_size, generator).expand(e.batch_size, 1)
        learned = self._learned(problems)[:, 1:].sum()
        own = slice(parallel.rank(), None, parallel.size())
        problems, offset = problems[own], offset[own]
        parts = [problems] if self.parts == 1 else problems.by_length(self.parts)
        offsets = offset.split([len(part) for part in parts])
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            total = sum(
                e.loss(model, part, own, loops, self._learned(part)) for part, own in zip(parts, offsets, strict=True)
            )
        return total / learned

    def _learned(self, problems: Problems) -> Tensor:
        """(B, T) the tokens that the loss counts."""
        if self.experiment.mask_question:
            return problems.answer_mask
        return torch.arange(problems.tokens.shape[1], device=self.device) < problems.stop[:, None]

    @torch.no_grad()
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
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
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
    value: the queue of one scale trains higher values first.
    """

    task: OperandTask = field(default_factory=OperandTask)
    model: LoopedConfig = field(default_factory=LoopedConfig)
    offsets: Offsets = Offsets("per batch", k=100)
    loss: ProgressiveLoss = ProgressiveLoss()
    batch_size: int = 64
    data_seed: int = 0
    mask_question: bool = True
    divide_gradients: bool = False
    evaluation_count: int = 256
    value: float = remark(0.0)

    shares_batches = True

    def __post_init__(self):
        if isinstance(self.optimizer, ScheduledAdamW) and self.optimizer.schedule != "constant":
            if self.optimizer.steps != self.steps:
                raise ValueError(f"{self.name}: {self.steps} steps, a schedule of {self.optimizer.steps}")
        longest = self.task.max_digits * (2 if "*" in self.task.operations else 1) + 1
        if {"abacus", "abacus-qk", "coupling"} & set(self.model.positions.split("+")):
            self.offsets.require(longest + (self.model.positions == "coupling"), self.model.n_rows)

    def build(self):
        model = LoopedTransformer(self.model, self.model_seed)
        if self.divide_gradients:
            for weight in model.layers.parameters():
                weight.register_hook(lambda gradient: gradient / self.model.n_loops)
        return model

    def objective(self, model, device):
        return OperandObjective(self, model, device)

    def add(self, model, a, b):
        if self.task.operations[0] != "+":
            return super().add(model, a, b)
        # As many steps as any sum needs; what is still unfinished then is wrong.
        steps = max(len(str(a)), len(str(b))) + 2
        return self.task.read(greedy(model, self.task.ask(a, b, model.device), steps)[0])

    def finish(self, model, run):
        """What only the finished run can give: later questions to weights that are not shipped, and to snapshots.

        exact_match_together: (1, 6) as exact_match_by_length at the end, eight offsets deciding together where that
        many digits have trained addresses.
        exact_match_grid: (1, O, 2 N, 2 N), where there is more than addition, for each of O operations and 1 to 2 N
        digits in either operand, likewise; CELL problems a pair.
        Of S snapshots, on sums of two numbers of n digits, evaluation_count for each n to N, snapshot_step: (S,),
        exact_match_by_digits: (S, N), and error_by_place: (S, M) share of wrong tokens at each place for n = N.
        """
        measured = {} if self.ships_weights else {"exact_match_together": self._together(model)}
        if self.task.operations != "+":
            measured["exact_match_grid"] = self._grids(model)
        return measured | (self._at_snapshots(run) if run.snapshots else {})

    def voters(self, model: LoopedTransformer, digits: int) -> list[Offsets] | None:
        """Eight offsets that keep problems with operands of so many digits on trained rows; None where none does."""

        def longest(operand):
            return 2 * operand if "*" in self.task.operations else operand + 1

        last_row = self.offsets.k + longest(self.task.max_digits) - 1
        if model.positions.addressed and longest(digits) <= last_row:
            return spread_offsets(8, longest(digits) - 1, last_row)
        return None

    def _together(self, model):
        shares = []
        for problems in self.objective(model, torch.device("cpu")).by_length:
            scores = score(model, problems, offsets=self.voters(model, problems.a.shape[1]))
            shares.append(float(scores.exact.double().mean()))
        return np.array([shares])

    def _grids(self, model):
        lengths = range(1, 2 * self.task.max_digits + 1)
        return np.array([[
            length_grid(
                model, replace(self.task, operations=operation), lengths, lengths, count=CELL,
                seed=2**31 + 2 + self.data_seed, offsets=partial(self.voters, model),
            )
            for operation in self.task.operations
        ]])  # fmt: skip

    def _at_snapshots(self, run):
        N, count = self.task.max_digits, self.evaluation_count
        lengths = torch.arange(1, N + 1).repeat_interleave(count)[:, None].expand(-1, 2)
        problems = self.task.problems(lengths, torch.Generator().manual_seed(2**31 + 1 + self.data_seed))
        then = LoopedTransformer(self.model)
        measured = {"snapshot_step": [], "exact_match_by_digits": [], "error_by_place": []}
        for step, parameters in sorted(run.snapshots.items()):
            then.load_state_dict(parameters)
            measured["snapshot_step"].append(step)
            measured["exact_match_by_digits"].append(score(then, problems).exact.view(N, count).double().mean(1))
            measured["error_by_place"].append(score(then, problems[-count:]).error_by_place)
        return {name: np.array(values) for name, values in measured.items()}


# ---- presets -----------------------------------------------------------------------------------------------------

SEEDS = range(3)
SIX, TEN = OperandTask(max_digits=6), OperandTask(max_digits=10)
# What source 002 wrote: addresses on queries and keys of every layer, the input added after each norm, no last norm.
SOURCE = LoopedConfig(
    positions="abacus-qk", injection="normed", final_norm=False, n_layers=1, n_loops=8, n_rows=512
)  # fmt: skip
SOURCE_OFFSETS, SOURCE_LOSS = Offsets("per sample", k=100), ProgressiveLoss(alpha=0.5)
WIDE = LoopedConfig(d_model=512, n_heads=8, d_mlp=2048, n_layers=2, n_loops=4)


def preset(name, about, steps, seed, *, lr=1.5e-3, evaluations=50, **more):
    """An experiment whose rate warms up over a twentieth of its steps and falls to zero along a cosine."""
    return AbacusExperiment(
        name=name,
        about=about,
        steps=steps,
        evaluate_every=max(steps // evaluations, 1),
        model_seed=seed,
        data_seed=seed,
        optimizer=ScheduledAdamW(lr=lr, steps=steps, warmup_steps=steps // 20),
        **more,
    )


def presets():
    """Every experiment of part 3, in the order in which `arithlib list` prints them."""
    yield preset(
        "abacus-live", "up to 6 digits, trained while the book is built (chapter 31)", 1600, 0,
        task=SIX, offsets=Offsets("per batch", k=30), model=LoopedConfig(offset=8),
        snapshot_steps=tuple(range(0, 1601, 160)),
    )  # fmt: skip
    for seed in SEEDS:
        yield preset(
            f"abacus-cpu-s{seed}", "the looped adder, up to 20 digits: an hour on one core (part 3)", 12_000, seed
        )
    for seed in SEEDS:
        yield preset(
            f"abacus-source-s{seed}", "the source's own layout at d_model 128: 45 minutes (chapter 33)", 6500, seed,
            lr=1e-3, model=SOURCE, offsets=SOURCE_OFFSETS, loss=SOURCE_LOSS, batch_size=95,
        )  # fmt: skip
        yield preset(
            f"abacus-source-ten-s{seed}", "the source's layout, up to 10 digits: 10 minutes (chapter 33)", 4000, seed,
            lr=1e-3, model=replace(SOURCE, n_loops=4), offsets=SOURCE_OFFSETS, loss=SOURCE_LOSS, batch_size=95,
            task=TEN,
        )  # fmt: skip
    yield from _photographed()
    yield from _ablations()
    yield from _other_operations()
    yield from _paper_sized()


def _photographed():
    """Up to 10 digits, with a photograph every 250 steps: which digits are learned when (chapter 31)."""
    for label, positions in (("", "abacus"), ("-coupling", "coupling")):
        for seed in SEEDS:
            yield preset(
                f"abacus-ten{label}-s{seed}", f"positions: {positions}, up to 10 digits: 4 minutes", 3000, seed,
                task=TEN, model=LoopedConfig(positions=positions), snapshot_steps=tuple(range(0, 3001, 250)),
                ships_weights=False,
            )  # fmt: skip


def _ablations():
    """One change at a time to a small adder for 6 digits: 2 minutes each on one core, twice as long for 8 layers."""
    base = LoopedConfig(offset=8)

    def offsets(k):  # evaluated well inside what was trained, at no offset where there was none
        return dict(offsets=Offsets("per batch", k=k), model=replace(base, offset=min(8, k // 4)))

    variants = {
        "": ("the model that the others differ from", {}),
        "plain": ("most-significant digit first", dict(task=replace(SIX, reverse="none"))),
        "answer": ("only the answer least-significant digit first", dict(task=replace(SIX, reverse="answer"))),
        "k1": ("no random offset", offsets(1)),
        "k10": ("offsets 0 to 9", offsets(10)),
        "k20": ("offsets 0 to 19", offsets(20)),
        "sample": ("an offset for every sum, not one a batch", dict(offsets=Offsets("per sample", k=40))),
        "unmasked": ("learns to predict the question, too", dict(mask_question=False)),
        "alpha50": ("half the loss after a random number of loops", dict(loss=ProgressiveLoss(0.5))),
        "alpha100": ("all of it", dict(loss=ProgressiveLoss(1.0))),
        "alpha100cut": ("as the paper's released configuration", dict(loss=ProgressiveLoss(1.0, truncate=True))),
        "noinjection": ("the input enters once", dict(model=replace(base, injection="none"))),
        "normed": ("the input after each norm", dict(model=replace(base, injection="normed"))),
    }
    for positions in ("none", "learned", "rotary", "fire", "abacus-qk", "abacus+rotary", "abacus+fire", "coupling"):
        label = positions.replace("abacus-", "").replace("abacus+", "plus-")
        variants[label] = (f"positions: {positions}", dict(model=replace(base, positions=positions)))
    for layers, loops in ((4, 1), (1, 4), (8, 1), (4, 2), (2, 4), (1, 8)):
        model = replace(base, n_layers=layers, n_loops=loops)
        variants[f"{layers}x{loops}"] = (f"{layers} layers looped {loops} times", dict(model=model))
    for positions in ("fire", "none"):
        for layers, loops in ((4, 1), (1, 4)):
            model = replace(base, positions=positions, n_layers=layers, n_loops=loops)
            about = f"positions: {positions}, {layers} layers looped {loops} times"
            variants[f"{positions}-{layers}x{loops}"] = (about, dict(model=model))
    for label, (about, more) in variants.items():
        for seed in SEEDS if label else range(10):
            more = {"task": SIX, "model": base, "offsets": Offsets("per batch", k=40)} | more
            yield preset(
                f"abacus-six{label and '-'}{label}-s{seed}", f"{about} (chapter 34)", 2000, seed,
                batch_size=32, evaluations=20, evaluation_count=400, ships_weights=False, **more,
            )  # fmt: skip


def _other_operations():
    """Sums and differences in one model; products, with what the paper changes for them (chapter 35)."""
    base = LoopedConfig(offset=8)
    bare = replace(base, injection="none")
    products = dict(task=OperandTask("*", max_digits=2), offsets=Offsets("per batch", k=20), batch_size=64)
    short = products | dict(steps=1200)
    variants = {
        "mixed": ("sums and differences of up to 4 digits", dict(
            task=OperandTask("+-", max_digits=4), offsets=Offsets("per batch", k=40), model=base, batch_size=32,
            steps=3000,
        )),
        "times": ("products of up to 2 digits", products | dict(model=bare, steps=4000)),
        "times-bare": ("products without injection, trained briefly", short | dict(model=bare)),
        "times-injected": ("products with injection", short | dict(model=base)),
        "times-divided": ("as the paper: gradients divided by the loops", short | dict(
            model=bare, divide_gradients=True,
        )),
        "times-fire": ("FIRE instead of addresses", short | dict(model=replace(bare, positions="fire"))),
    }  # fmt: skip
    for label, (about, settings) in variants.items():
        for seed in SEEDS:
            shown = seed == 0 and label in ("mixed", "times")  # whose answers chapter 35 reads
            yield preset(
                f"abacus-{label}-s{seed}", f"{about} (chapter 35)", seed=seed, evaluations=20, evaluation_count=400,
                ships_weights=shown, **settings,
            )  # fmt: skip


def _paper_sized():
    """For a GPU of an H100's kind, at an assumed 40 % of its 800 teraflops in bfloat16; most valuable first."""
    gpu = dict(scale="gpu", evaluations=20, evaluation_count=1024)
    for seed in SEEDS:
        yield preset(
            f"abacus-gpu-s{seed}", "2 layers looped 4 times at d_model 512: 12 minutes", 20_000, seed, lr=5e-4,
            model=WIDE, batch_size=1024, value=10 - seed, **gpu,
        )  # fmt: skip
    yield preset(
        "abacus-gpu-1x16-s0", "1 layer looped 16 times at d_model 1024, as source 002: 27 minutes", 5000, 0, lr=3e-4,
        model=LoopedConfig(d_model=1024, n_heads=16, d_mlp=2048, n_layers=1, n_loops=16), batch_size=2048,
        loss=ProgressiveLoss(0.5), value=7, **gpu,
    )  # fmt: skip
    yield preset(
        "abacus-gpu-source-s0", "the source's own layout at its size, a tenth of its samples: 11 minutes", 4000, 0,
        lr=2e-4, model=replace(SOURCE, d_model=1024, n_heads=16, d_mlp=2048, n_loops=16), batch_size=1024,
        offsets=SOURCE_OFFSETS, loss=SOURCE_LOSS, value=6, **gpu,
    )  # fmt: skip
    yield preset(
        "abacus-gpu-k200-s0", "offsets to 199, for sums beyond 100 digits: 12 minutes", 20_000, 0, lr=5e-4,
        model=WIDE, offsets=Offsets("per batch", k=200), batch_size=1024, value=5, **gpu,
    )  # fmt: skip
    yield preset(
        "abacus-gpu-8x2-s0", "8 layers looped twice at d_model 512: 13 minutes", 5000, 0, lr=3e-4,
        model=replace(WIDE, n_layers=8, n_loops=2), batch_size=2048, loss=ProgressiveLoss(0.5), value=4, **gpu,
    )  # fmt: skip
    yield preset(
        "abacus-gpu-mixed-s0", "additions and subtractions: 13 minutes", 20_000, 0, lr=5e-4,
        task=OperandTask("+-"), model=WIDE, batch_size=1024, value=3, **gpu,
    )  # fmt: skip
    yield preset(
        "abacus-gpu-times-s0", "products of up to 10 digits, without injection: 16 minutes", 20_000, 0, lr=5e-4,
        task=OperandTask("*", max_digits=10), model=replace(WIDE, n_layers=4, injection="none"), batch_size=1024,
        value=2, **gpu,
    )  # fmt: skip
