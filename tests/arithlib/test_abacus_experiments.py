"""Experiments on written arithmetic: what they train on, what they measure, and that a tiny one learns."""

import dataclasses
import itertools
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from arithlib import checkpoints, experiments, training
from arithlib.experiments import abacus
from arithlib.experiments.abacus import AbacusExperiment, OperandObjective
from arithlib.models.looped import LoopedConfig, LoopedTransformer, ProgressiveLoss
from arithlib.models.positions import Offsets, number_index
from arithlib.tasks.operands import OperandTask
from arithlib.tokenizer import ALPHABET, END, EQUALS
from arithlib.training import AdamW, OutOfTime, Run

TINY = AbacusExperiment(
    name="abacus-tiny", about="a test", steps=6, evaluate_every=3, batch_size=16, evaluation_count=8,
    task=OperandTask(max_digits=2), offsets=Offsets("per batch", k=5),
    model=LoopedConfig(d_model=16, n_heads=2, d_mlp=32, n_layers=1, offset=1),
    optimizer=AdamW.cosine(1e-3, 6, warmup_steps=2),
)  # fmt: skip


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    monkeypatch.setitem(experiments.EXPERIMENTS, TINY.name, TINY)
    monkeypatch.setattr(checkpoints, "shipped_folder", lambda: tmp_path / "checkpoints")
    monkeypatch.setattr(checkpoints, "local_folder", lambda: tmp_path / "runs")
    return TINY


def objective(experiment):
    model = experiment.build()
    return OperandObjective(experiment, model, torch.device("cpu")), model


@pytest.mark.parametrize("policy", ["per batch", "per sample"])
def test_the_loss_is_the_mean_over_answer_tokens_however_the_batch_is_grouped(policy):
    made, model = objective(dataclasses.replace(TINY, offsets=Offsets(policy, k=1), loss=ProgressiveLoss(0.5)))
    grouped = made.loss(model, 3)
    made.parts = 1
    torch.testing.assert_close(grouped, made.loss(model, 3))
    batch = TINY.task.sample(16, torch.Generator().manual_seed(3))
    logits = model(batch.tokens, torch.tensor([[0]]), loops=2)[:, :-1]
    losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), batch.tokens[:, 1:], reduction="none")
    made.experiment = dataclasses.replace(TINY, offsets=Offsets(policy, k=1))
    torch.testing.assert_close(made.loss(model, 3), losses[batch.answer_mask[:, 1:]].mean())


def test_a_step_fixes_its_batch_and_seeds_and_steps_differ():
    made, model = objective(TINY)
    assert made.loss(model, 3) == made.loss(model, 3) != made.loss(model, 4)
    other, _ = objective(dataclasses.replace(TINY, seed=1))
    assert other.loss(model, 3) != made.loss(model, 3)


def test_the_question_counts_only_where_it_is_asked_for():
    made, model = objective(dataclasses.replace(TINY, mask_question=False))
    batch = TINY.task.sample(16, torch.Generator().manual_seed(3))
    assert made._learned(batch).sum() == batch.stop.sum()
    assert objective(TINY)[0]._learned(batch).sum() == (batch.stop - batch.start).sum()


def test_evaluation_measures_lengths_loops_and_the_probes_of_the_source():
    made, model = objective(TINY)
    measured = made.evaluate(model)
    assert [len(part) for part in made.by_length] == [2] * 6
    assert [int(part.start[0]) for part in made.by_length] == [2 * n + 2 for n in (2, 2, 3, 4, 6, 10)]
    assert measured["loss_by_loops"].shape == (2,) and measured["loss"] == measured["loss_by_loops"][-1]
    assert measured["probe_perplexity"].shape == (4,) and measured["probe_perplexity"].min() > 1
    assert 0 <= measured["exact_match"] <= 1


def test_a_tiny_adder_learns_and_is_read_back(tiny, monkeypatch):
    longer = dataclasses.replace(
        TINY, steps=250, evaluate_every=250, batch_size=100, evaluation_count=64, task=OperandTask(max_digits=1),
        offsets=Offsets("fixed", value=1), optimizer=AdamW.cosine(1e-2, 250, warmup_steps=10),
        model=dataclasses.replace(TINY.model, d_model=32, d_mlp=64),
    )  # fmt: skip
    monkeypatch.setitem(experiments.EXPERIMENTS, TINY.name, longer)
    made = checkpoints.make(TINY.name, device="cpu", progress=False)
    assert made.history["loss"][0] > 2 and made.history["loss"][-1] < 0.5
    model = checkpoints.read(TINY.name)
    right = sum(model.add(a, b) == a + b for a in range(10) for b in range(10))
    assert right >= 70


def test_stopped_and_continued_it_is_the_same_run_bit_for_bit(tiny, tmp_path, monkeypatch):
    clock = itertools.count()  # every look at it a second later
    whole = checkpoints.make(TINY.name, tmp_path / "whole", device="cpu", progress=False)
    monkeypatch.setattr(training, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    for _ in range(20):
        try:
            parts = checkpoints.make(TINY.name, tmp_path / "parts", device="cpu", progress=False, minutes=5 / 60)
            break
        except OutOfTime:
            assert not (tmp_path / "parts/abacus-tiny.json").exists()
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, parts.model.state_dict()[name])
    np.testing.assert_array_equal(whole.history["probe_perplexity"], parts.history["probe_perplexity"])


def test_every_experiment_builds_and_has_rows_for_what_it_is_tested_on():
    for experiment in experiments.match("abacus-*"):
        if experiment.scale == "cpu" and experiment.seed == 0:
            model = experiment.build()
            longest = 5 * experiment.task.max_digits
            model.positions.require(model.offsets, longest + 1)


def test_settings_that_contradict_each_other_are_refused():
    with pytest.raises(ValueError, match="2 steps leave nothing between 2 steps of warm-up"):
        dataclasses.replace(TINY, steps=2)
    with pytest.raises(ValueError, match="needs address 302; the table ends at 255"):
        dataclasses.replace(TINY, offsets=Offsets(k=300))


def test_snapshots_tell_what_was_learned_when(tiny, monkeypatch):
    fast = AdamW.cosine(0.1, 6, warmup_steps=2)
    with_snapshots = dataclasses.replace(TINY, snapshot_steps=(0, 6), optimizer=fast)
    monkeypatch.setitem(experiments.EXPERIMENTS, TINY.name, with_snapshots)
    history = checkpoints.load_or_train(TINY.name, progress=False).history
    assert history["snapshot_step"].tolist() == [0, 6]
    assert history["exact_match_by_digits"].shape == (2, 2) and history["error_by_place"].shape == (2, 4)
    assert not np.array_equal(history["error_by_place"][0], history["error_by_place"][1])


def test_a_model_that_always_knows_the_next_token_makes_no_error_in_any_snapshot(monkeypatch):
    def forward(self, tokens, offset=None, loops=None, since=0):
        following = torch.cat([tokens[:, 1:], torch.full_like(tokens[:, :1], END)], 1)
        return torch.nn.functional.one_hot(following, len(ALPHABET)).double()

    monkeypatch.setattr(LoopedTransformer, "forward", forward)
    measured = TINY.finish(TINY.build(), Run({}, {0: TINY.build().state_dict()}, 0.0))
    assert measured["exact_match_by_digits"].tolist() == [[1, 1]]
    assert np.nansum(measured["error_by_place"]) == 0


def test_of_unshipped_weights_it_is_measured_what_several_offsets_decide_together(monkeypatch):
    def forward(
        self, tokens, offset=None, loops=None, since=0
    ):  # right and sure, but wrong and unsure at its own offset
        following = torch.cat([tokens[:, 1:], torch.full_like(tokens[:, :1], END)], 1)
        own = bool((offset == self.config.offset).all())
        told = (following + own) % len(ALPHABET)
        return torch.nn.functional.one_hot(told, len(ALPHABET)).double() * (1 if own else 10)

    monkeypatch.setattr(LoopedTransformer, "forward", forward)
    one_of_many = dataclasses.replace(TINY, ships_weights=False)
    model = one_of_many.build()
    assert not objective(TINY)[0].evaluate(model)["exact_match_by_length"].any()
    measured = one_of_many.finish(model, Run({}, {}, 0.0))
    # 2, 2, 3, 4 and 6 digits have other offsets with trained rows up to 5 + 2; 10 digits have none, and ask its own.
    assert measured["exact_match_together"].tolist() == [[1, 1, 1, 1, 1, 0]]
    assert TINY.finish(model, Run({}, {}, 0.0)) == {}


def test_offsets_that_vote_keep_every_digit_of_the_answer_on_a_trained_row():
    for operations, answer in (("+", lambda n: n + 1), ("*", lambda n: 2 * n)):
        experiment = dataclasses.replace(TINY, task=OperandTask(operations, max_digits=2))
        model, last_row = experiment.build(), experiment.offsets.k - 1 + answer(2)
        for digits in range(1, 8):
            ensemble = experiment.offset_ensemble(model, digits)
            if answer(digits) > last_row:
                assert ensemble is None
            else:
                assert max(v.value for v in ensemble) + answer(digits) <= last_row
        assert experiment.offset_ensemble(model, 2)[-1].value == experiment.offsets.k - 1


def test_more_than_addition_is_mapped_by_operation_and_by_both_lengths(monkeypatch):
    def forward(self, tokens, offset=None, loops=None, since=0):  # right about sums alone
        following = torch.cat([tokens[:, 1:], torch.full_like(tokens[:, :1], END)], 1)
        told = (following + (tokens == ALPHABET.index("-")).any(1, keepdim=True)) % len(ALPHABET)
        return torch.nn.functional.one_hot(told, len(ALPHABET)).double()

    monkeypatch.setattr(LoopedTransformer, "forward", forward)
    mixed = dataclasses.replace(TINY, task=OperandTask("+-", max_digits=2))
    grids = mixed.finish(mixed.build(), Run({}, {}, 0.0))["exact_match_grid"]
    assert grids.shape == (1, 2, 4, 4) and (grids[0, 0] == 1).all() and (grids[0, 1] == 0).all()
    assert "exact_match_grid" not in TINY.finish(TINY.build(), Run({}, {}, 0.0))


def test_an_adder_for_a_gpu_is_mapped_by_length_offset_and_loops(monkeypatch):
    def forward(self, tokens, offset=None, loops=None, since=0):
        """Right in two loops, unless an operand has 30 digits, or one on a row that training never had."""
        question = (tokens == EQUALS).cumsum(1) == 0
        digits = (number_index(tokens) * question).amax(1, keepdim=True)
        wrong = (digits + offset > 40 + 10) | (digits >= 30) | (loops == 1)
        following = torch.cat([tokens[:, 1:], torch.full_like(tokens[:, :1], END)], 1)
        return torch.nn.functional.one_hot((following + wrong) % len(ALPHABET), len(ALPHABET)).double()

    monkeypatch.setattr(LoopedTransformer, "forward", forward)
    monkeypatch.setattr(abacus, "CELL", 2)
    task, offsets = OperandTask(max_digits=10), Offsets("per batch", k=41)
    adder = dataclasses.replace(
        TINY, scale="gpu", task=task, offsets=offsets, model=LoopedConfig(offset=20, n_loops=2)
    )
    found = adder.finish(adder.build(), Run({}, {}, 0.0))
    assert found["grid_double"].shape == (1, 20, 20) and found["grid_double"].all()
    assert found["by_loops"].tolist() == [[0, 1, 1, 1]]
    lengths = np.arange(5, 51, 5)
    assert (found["grid_far"][0] == (np.maximum.outer(lengths, lengths) < 30)).all()
    assert found["diagonal"].tolist() == [[1] * 29 + [0] * 21]  # to the 40 + 10 rows that training reaches
    assert found["by_offset"].tolist() == [[1] * 41 + [0] * 5]


def test_an_adder_with_a_window_is_mapped_by_both_lengths_and_on_repeated_digits(monkeypatch):
    def forward(self, tokens, offset=None, loops=None, since=0):
        """Right unless the first operand has 40 digits, the second 30, or the first begins with 11, 22 or 33."""
        digits = number_index(tokens * (tokens != EQUALS) + END * (tokens == EQUALS))
        first, second = ((digits * ((tokens >= 10).cumsum(1) == n)).amax(1, keepdim=True) for n in (0, 1))
        wrong = (first == 40) | (second == 30) | ((tokens[:, :1] == tokens[:, 1:2]) & (tokens[:, :1] < 4))
        following = torch.cat([tokens[:, 1:], torch.full_like(tokens[:, :1], END)], 1)
        return torch.nn.functional.one_hot((following + wrong) % len(ALPHABET), len(ALPHABET)).double()

    monkeypatch.setattr(LoopedTransformer, "forward", forward)
    monkeypatch.setattr(abacus, "CELL", 25)
    adder = dataclasses.replace(
        TINY, task=OperandTask(max_digits=10), offsets=Offsets("per sample", k=60), model=LoopedConfig(window=2)
    )
    found = adder.finish(adder.build(), Run({}, {}, 0.0))
    assert found["far"].shape == (1, 5) and (found["far"][0] > 0.8).tolist() == [True, True, False, False, True]
    found_right = found["far_grid"][0] > 0.5
    assert found["far"][0, 2:4].max() == found["far_grid"][0, 3].max() == found["far_grid"][0, :, 2].max() == 0
    assert found_right.sum() == 16 and found_right.shape == (5, 5)
    assert found["far_repeated"].tolist() == [[6 / 9, 6 / 9, 6 / 9, 0, 6 / 9]]


def test_the_compiler_of_graphs_is_loaded_where_something_is_compiled_alone():
    code = "import sys; from arithlib.experiments import abacus; print('torch._dynamo' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_divided_gradients_are_those_of_the_looped_weights_over_the_number_of_loops():
    plain, divided = TINY, dataclasses.replace(TINY, divide_gradients=True)
    gradients = []
    for experiment in (plain, divided):
        made, model = objective(experiment)
        made.loss(model, 3).backward()
        gradients.append({name: weight.grad for name, weight in model.named_parameters()})
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name] * (2 if name.startswith("layers") else 1), gradient)
    assert plain.hash() != divided.hash()
