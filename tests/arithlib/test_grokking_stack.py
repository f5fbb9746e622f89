"""Networks that grok, trained as a stack: each as by itself, whatever interrupts them."""

import dataclasses

import pytest
import torch
from short_runs import trained

from arithlib import checkpoints, experiments
from arithlib.models.grokking import GrokkingConfig
from arithlib.tasks.modular import ModularAddition

SMALL = dataclasses.replace(
    experiments.get("grokking-gpu"), name="grokking-two", models=2, steps=12, evaluate_every=6,
    task=ModularAddition(p=17), model=GrokkingConfig(p=17, d_model=16, n_heads=2, d_head=8, d_mlp=32),
)  # fmt: skip
CPU = torch.device("cpu")


def test_the_stack_for_a_gpu_is_the_main_model_with_more_seeds():
    stack = experiments.get("grokking-gpu")
    assert (stack.models, stack.steps, stack.scale) == (32, 20_000, "gpu")
    for index in range(10):
        main, one = experiments.get(f"grokking-s{index}"), stack.alone(index)
        for what in ("seed", "task", "model", "optimizer", "steps", "frequencies"):
            assert getattr(one, what) == getattr(main, what)


def test_each_model_of_a_stack_trains_as_it_would_alone():
    stack, run = trained(SMALL)
    for index in range(2):
        alone, of_one = trained(SMALL.alone(index))
        assert not torch.allclose(alone.W_E, SMALL.alone(index).build().W_E, atol=1e-3)
        for name, value in stack.one(index).items():
            torch.testing.assert_close(value, alone.state_dict()[name], atol=1e-5, rtol=0)
        for name, values in of_one.history.items():
            found = run.history[name] if name == "step" else run.history[name][:, index]
            assert found == pytest.approx(values, rel=1e-4)
    mean = run.history["test_accuracy"].mean(1)
    assert run.history["mean_test_accuracy"] == pytest.approx(mean) and len(mean) == 3


def test_a_stack_that_was_interrupted_ends_as_if_it_had_not_been(tmp_path, monkeypatch):
    undisturbed, state = SMALL.build(), tmp_path / "state.safetensors"
    SMALL.fit(undisturbed, CPU, progress=False)
    steps = iter(range(7))
    with monkeypatch.context() as patch:
        patch.setattr(type(SMALL), "after_step", lambda *_: next(steps))
        with pytest.raises(StopIteration):
            SMALL.fit(SMALL.build(), CPU, state=state, save_every=0.0, progress=False)
    left = []
    monkeypatch.setattr(type(SMALL), "after_step", lambda *_: left.append(None))
    continued = SMALL.build()
    SMALL.fit(continued, CPU, state=state, progress=False)
    assert len(left) == SMALL.steps - 7
    for name, value in undisturbed.state_dict().items():
        assert torch.equal(continued.state_dict()[name], value)


def test_a_stack_is_kept_read_and_asked_by_its_first_model(tmp_path, monkeypatch):
    monkeypatch.setitem(experiments.EXPERIMENTS, SMALL.name, SMALL)
    made = checkpoints.make(SMALL.name, tmp_path, device="cpu", progress=False)
    first = SMALL.alone(0).build()
    first.load_state_dict(made.model.one(0))
    answers = first.answer_logits(torch.tensor([[3, 4], [5, 16]]))[:, :17].argmax(-1).tolist()
    read = checkpoints.read(SMALL.name, tmp_path)
    assert [read.add(3, 4), read.add(5, 16)] == answers
    assert list(read.provenance["final"]) == ["mean_test_accuracy"]
