"""The doctor says what is there, and not what is not."""

import pytest
import torch

from arithlib import doctor
from arithlib.cli import main
from arithlib.files import choose_device
from arithlib.models import attention


def test_the_report_names_what_works_here(capsys):
    assert main(["doctor", "--device", "cpu"]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.replace("attention, ", "").splitlines())
    assert lines["torch"].startswith(torch.__version__)
    assert lines["sdpa"].startswith("works; off by at most") and lines["eager"].startswith("works; off by at most 0 ")
    assert lines["flash"].startswith("not here: attention kernel 'flash' needs a CUDA device, not cpu")
    assert lines["adder-certified"].endswith(" = 100000000000000000000")


def test_a_kernel_that_is_wrong_is_seen(monkeypatch):
    right = attention._sdpa
    monkeypatch.setattr(attention, "_sdpa", lambda q, k, v, bias: right(q, k, v, bias) + 5)
    assert doctor.try_kernel("sdpa", torch.device("cpu")) == "works; off by at most 5 (entries of size 1)"
    # Its output is right, and a gradient is not.
    monkeypatch.setattr(attention, "_sdpa", lambda q, k, v, bias: right(q, k, 2 * v - v.detach(), bias))
    assert doctor.try_kernel("sdpa", torch.device("cpu")) == "works; off by at most 1 (entries of size 1)"


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("only supports newer cards.\nSee elsewhere."), "only supports newer cards."),
        (AssertionError(), "AssertionError"),
    ],
)
def test_a_kernel_that_raises_fails_and_the_report_goes_on(monkeypatch, backward, error, said):
    """As flash-attn does on a card that it was not built for; of some cards only the backward pass is missing."""

    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q):
            return q.clone() if backward else Broken.backward(ctx, q)

        @staticmethod
        def backward(ctx, gradient):
            raise error

    monkeypatch.setattr(attention, "_sdpa", lambda q, k, v, bias: Broken.apply(q))
    assert doctor.try_kernel("sdpa", torch.device("cpu")) == f"fails: {said}"
    found = dict(doctor.examine(torch.device("cpu")))
    assert found["attention, sdpa"].startswith("fails") and "adder-certified" in found


def test_the_rate_counts_two_operations_a_product(monkeypatch):
    monkeypatch.setattr(doctor, "_seconds", lambda work, device: 0.5)
    assert doctor.product_rate(torch.device("cpu"), torch.float32) == 4 * 1024**3


@pytest.mark.parametrize("name", ["tpu", "cuda:99", "cpu:7", ""])
def test_a_device_that_is_not_there_is_named_with_those_that_are(name):
    with pytest.raises(ValueError, match=f"device {name!r} is none that torch can use here: choose cpu"):
        choose_device(name)
