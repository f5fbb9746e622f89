"""The comparison of kernels in benchmarks/flash_attention.py sees what is wrong with one."""

import pytest
import torch

from arithlib.models import attention
from benchmarks.flash_attention import SHAPES, errors


@pytest.mark.parametrize("shape", SHAPES)
def test_what_the_benchmark_compares_sees_a_wrong_output_and_a_wrong_gradient(shape, monkeypatch):
    cpu, right = torch.device("cpu"), attention._sdpa
    assert errors(("sdpa", "eager"), *shape, cpu).keys() == {"sdpa", "eager"}
    assert max(errors(("sdpa", "eager"), *shape, cpu).values()) < 0.01  # bfloat16 has eight bits
    monkeypatch.setattr(attention, "_sdpa", lambda q, k, v, bias: 1.05 * right(q, k, v, bias))
    assert errors(("sdpa",), *shape, cpu)["sdpa"] == pytest.approx(0.05, rel=0.2)

    def forgetful(q, k, v, bias):
        return right(q, k, v.detach() + 0.9 * (v - v.detach()), bias)

    monkeypatch.setattr(attention, "_sdpa", forgetful)
    assert errors(("sdpa",), *shape, cpu)["sdpa"] == pytest.approx(0.1, rel=0.2)
