"""The loop: measured at both ends, interrupted anywhere, resumed to the same bits."""

import itertools
import multiprocessing
import os
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from arithlib import checkpoints, experiments, training
from arithlib.experiments import GrokkingExperiment
from arithlib.files import FileProblem, load_tensors
from arithlib.models.grokking import GrokkingConfig
from arithlib.tasks.modular import ModularAddition
from arithlib.training import AdamW, OutOfTime, Settled, subnormals_as_zero, train


class Regression:
    """Fit y = 3 x on batches drawn from the step."""

    def loss(self, model, step):
        x = torch.randn(32, 4, generator=torch.Generator().manual_seed(step))
        return (model(x) - 3 * x.sum(1, keepdim=True)).square().mean()

    def evaluate(self, model):
        return {"loss": self.loss(model, 10**6).item(), "weight": model.weight.detach().numpy().copy()}


def linear(seed=0):
    torch.manual_seed(seed)
    return nn.Linear(4, 1)


def run(model, steps=25, **more):
    return train(
        model, Regression(), AdamW(lr=0.05, weight_decay=0.0), steps, evaluate_every=10, progress=False, **more
    )


def vanishes():
    """Whether a number below the normal ones counts as zero now."""
    return float(torch.tensor([2.0**-126]) / 2) == 0


def test_subnormal_numbers_are_zero_as_long_as_it_was_said_and_no_longer():
    assert not vanishes()
    with pytest.raises(KeyError), subnormals_as_zero():
        assert vanishes()
        with subnormals_as_zero():
            assert vanishes()
        assert vanishes()
        raise KeyError
    assert not vanishes()


def test_a_training_computes_without_them():
    class Asking(Regression):
        def loss(self, model, step):
            found.add(vanishes())
            return super().loss(model, step)

    found = set()
    train(linear(), Asking(), AdamW(), 3, evaluate_every=10, progress=False)
    assert found == {True} and not vanishes()


def test_it_learns_and_measures_at_zero_at_intervals_and_at_the_end():
    result = run(linear(), 400)
    assert result.history["step"].tolist() == list(range(0, 401, 10))
    assert result.history["weight"].shape == (41, 1, 4)
    assert result.history["loss"][-1] < 0.5 < result.history["loss"][0]
    assert run(linear(), 25).history["step"].tolist() == [0, 10, 20, 25]


def test_the_warm_up_is_linear_and_then_flat():
    assert [AdamW(lr=1.0, warmup_steps=4).lr_at(step, 100) for step in range(6)] == [0.25, 0.5, 0.75, 1, 1, 1]


def test_the_rate_falls_to_zero_as_the_schedule_says():
    cosine = AdamW.cosine(1.0, 104, warmup_steps=4)
    assert [cosine.lr_at(step, 104) for step in (0, 3, 4, 54, 104)] == pytest.approx([0.25, 1, 1, 0.5, 0])
    trapezoid = AdamW(1.0, warmup_steps=4, schedule="trapezoid", decay_steps=20)
    assert [trapezoid.lr_at(step, 100) for step in (1, 50, 80, 90, 100)] == pytest.approx([0.5, 1, 1, 0.5, 0])
    assert AdamW(lr=1.0, warmup_steps=4).lr_at(10**6, 10**6) == 1
    with pytest.raises(ValueError, match="choose one of constant, cosine, trapezoid"):
        AdamW(schedule="linear")
    with pytest.raises(ValueError, match="50 steps leave nothing between 100 steps of warm-up"):
        AdamW.cosine(1e-3, 50, warmup_steps=100).require(50)


def test_a_run_ends_once_it_is_right_and_its_weights_have_settled(tmp_path):
    """Three measurements are planted: all right at step 20 and above, a norm that settles at step 50."""

    class Planted(Regression):
        def __init__(self):
            self.step = itertools.count(0, 10)

        def evaluate(self, model):
            step = next(self.step)
            return {"test_accuracy": min(step / 20, 1.0), "weight_norm_squared": max(100.0 - step, 50.0)}

    def ended(**settled):
        result = train(
            linear(), Planted(), AdamW(), 200, evaluate_every=10, until=Settled(**settled), progress=False,
            state=tmp_path / "state.safetensors",
        )  # fmt: skip
        assert int(load_tensors(tmp_path / "state.safetensors")[0]["step"]) == result.history["step"][-1]
        (tmp_path / "state.safetensors").unlink()
        return result.history["step"][-1]

    assert ended(share=0.01, steps=10) == 60  # the first ten steps without a fall
    assert ended(share=0.01, steps=20) == 70
    assert ended(share=0.5, steps=10) == 20  # settled at once, but not all right
    assert ended(share=0.01, steps=15) == 200  # it was never measured fifteen steps ago


def test_a_run_that_had_settled_is_not_continued(tmp_path):
    class Constant(Regression):
        def evaluate(self, model):
            return {"test_accuracy": 1.0, "weight_norm_squared": 1.0}

    def go(**more):
        return train(
            linear(), Constant(), AdamW(), 50, evaluate_every=10, progress=False, until=Settled(steps=20),
            state=tmp_path / "state.safetensors", **more,
        )  # fmt: skip

    first, again = go(), go()
    assert first.history["step"].tolist() == again.history["step"].tolist() == [0, 10, 20]


def test_gradients_are_clipped_to_their_norm():
    class Steep(Regression):
        def loss(self, model, step):
            return 1e4 * super().loss(model, step)

    norms = []
    optimizer = AdamW(clip_norm=0.5)
    train(
        linear(), Steep(), optimizer, 3, evaluate_every=10, progress=False,
        after_step=lambda m: norms.append(float(sum(p.grad.square().sum() for p in m.parameters()) ** 0.5)),
    )  # fmt: skip
    assert norms == pytest.approx([0.5] * 3, rel=1e-4)


def test_a_run_stops_when_its_time_is_up_and_continues_to_the_same_bits(tmp_path, monkeypatch):
    clock = itertools.count()  # every look at it a second later

    whole, state = linear(), tmp_path / "run.safetensors"
    expected = run(whole)
    monkeypatch.setattr(training, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    for _ in range(25):  # each call makes one step at least
        model = linear(seed=99) if state.exists() else linear()
        try:
            result = train(
                model, Regression(), AdamW(lr=0.05, weight_decay=0.0), 25, evaluate_every=10, state=state,
                progress=False, minutes=5 / 60,
            )  # fmt: skip
            break
        except OutOfTime as stop:
            saved = int(load_tensors(state)[0]["step"])
            assert f"{saved} of 25 steps are done. The same command continues" in str(stop)
    assert saved > 0 and torch.equal(model.weight, whole.weight)
    np.testing.assert_array_equal(result.history["loss"], expected.history["loss"])


def test_snapshots_are_the_parameters_of_their_step():
    model = linear()
    start = model.weight.detach().clone()
    result = run(model, 10, snapshot_steps=(0, 10))
    assert torch.equal(result.snapshots[0]["weight"], start)
    assert torch.equal(result.snapshots[10]["weight"], model.weight.detach())


def test_a_constraint_holds_after_every_update():
    model = linear()
    run(model, 10, after_step=lambda m: m.weight.data.clamp_(max=0.5))
    assert model.weight.max() <= 0.5


class Stop(Exception):
    pass


@pytest.mark.parametrize("at", [1, 10, 17, 24])
def test_an_interrupted_run_resumes_to_the_same_bits(tmp_path, at):
    class Interrupted(Regression):
        def loss(self, model, step):
            if step == at:
                raise Stop
            return super().loss(model, step)

    whole = linear()
    expected = run(whole, snapshot_steps=(5, 20))
    state = tmp_path / "run.safetensors"
    broken = linear()
    with pytest.raises(Stop):
        train(
            broken, Interrupted(), AdamW(lr=0.05, weight_decay=0.0), 25, evaluate_every=10,
            snapshot_steps=(5, 20), state=state, save_every=0, progress=False,
        )  # fmt: skip
    resumed = linear(seed=99)
    result = run(resumed, snapshot_steps=(5, 20), state=state)
    assert torch.equal(resumed.weight, whole.weight) and torch.equal(resumed.bias, whole.bias)
    for name, values in expected.history.items():
        np.testing.assert_array_equal(result.history[name], values)
    for step, parameters in expected.snapshots.items():
        for name, value in parameters.items():
            assert torch.equal(result.snapshots[step][name], value)


TO_BE_KILLED = GrokkingExperiment(
    name="killed", about="", steps=100, evaluate_every=20, snapshot_steps=(40,),
    task=ModularAddition(p=31), model=GrokkingConfig(p=31),
)  # fmt: skip


def make_saving_always(folder: Path, after_step=None) -> None:
    """Train that run here, on one thread, and write down every step."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(experiments.EXPERIMENTS, "killed", TO_BE_KILLED)
        changed = {"save_every": 0, "after_step": after_step}
        patch.setattr(experiments.base, "train", lambda *given, **more: train(*given, **(more | changed)))
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        checkpoints.make("killed", folder, device="cpu", progress=False)
        torch.set_num_threads(threads)


def wait_to_be_killed(folder: Path) -> None:
    """What the process does that is killed in its 58th step."""
    steps = itertools.count()

    def wait(model):
        if next(steps) == 57:
            (folder / "waits").touch()
            time.sleep(3600)

    make_saving_always(folder, after_step=wait)


def test_a_run_killed_with_signal_9_resumes_to_the_bit_identical_checkpoint(tmp_path):
    process = multiprocessing.get_context("spawn").Process(target=wait_to_be_killed, args=(tmp_path / "killed",))
    process.start()
    make_saving_always(tmp_path / "whole")
    while not (tmp_path / "killed/waits").exists():
        assert process.is_alive(), "the run ended before it could be killed"
        time.sleep(0.01)
    assert list((tmp_path / "killed").glob("*.state.safetensors"))
    process.kill()
    process.join()
    assert not (tmp_path / "killed/killed.json").exists()
    make_saving_always(tmp_path / "killed")
    whole, _ = load_tensors(tmp_path / "whole/killed.safetensors")
    resumed, _ = load_tensors(tmp_path / "killed/killed.safetensors")
    assert whole.keys() == resumed.keys()
    for name, value in whole.items():
        assert torch.equal(value, resumed[name]), name
    assert not list((tmp_path / "killed").glob("*.state.safetensors"))


def test_a_truncated_state_is_refused_with_what_to_do(tmp_path):
    state = tmp_path / "run.safetensors"
    run(linear(), 10, state=state)
    state.write_bytes(state.read_bytes()[:-20])
    with pytest.raises(FileProblem, match="truncated or not a safetensors file .* Delete it and train again"):
        run(linear(), 20, state=state)


def test_a_state_in_which_one_bit_flipped_is_refused(tmp_path):
    state = tmp_path / "run.safetensors"
    run(linear(), 10, state=state)
    content = bytearray(state.read_bytes())
    content[-3] ^= 1  # of the last number
    state.write_bytes(content)
    with pytest.raises(FileProblem, match="its checksum is another. Delete it and train again"):
        run(linear(), 20, state=state)


def test_a_full_disk_stops_with_a_clear_error_and_keeps_the_last_state(tmp_path, monkeypatch):
    state = tmp_path / "run.safetensors"
    run(linear(), 10, state=state)
    before = state.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileProblem, match="No space left on device. Free some space"):
        run(linear(), 30, state=state)
    assert state.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["run.safetensors"]


def test_progress_shows_losses_and_time_left(capsys):
    train(linear(), Regression(), AdamW(), 50, evaluate_every=10, label="demo", progress=True)
    shown = capsys.readouterr().err
    assert "demo" in shown and "loss" in shown and "50/50" in shown
