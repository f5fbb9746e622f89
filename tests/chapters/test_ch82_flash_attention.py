"""The comparison of kernels in benchmarks/flash_attention.py, which chapter 82 shows, and its use on a card."""

import importlib.metadata

import pytest
import torch

from arithlib.models import attention
from arithlib.models.attention import KERNELS
from benchmarks import flash_attention, on_gpu
from benchmarks.flash_attention import SHAPES, errors

# Sizes of a head that the benchmark does not measure: the smallest, no power of two, the usual, the largest.
HEADS = ((2, 33, 33, 2, 8), (2, 17, 50, 3, 40), (2, 1, 40, 2, 64), (2, 130, 257, 2, 256))


@pytest.mark.skipif(
    not torch.cuda.is_available() or attention._flash_function() is None,
    reason="needs a graphics card, and flash-attn for it",
)
@pytest.mark.parametrize("shape", SHAPES + HEADS)
def test_on_a_graphics_card_flash_is_as_exact_as_the_others(shape):
    """Output and gradients; the queries are the last, however many keys there are."""
    off = errors(KERNELS, *shape, torch.device("cuda"))
    assert off.keys() == set(KERNELS) and max(off.values()) < 0.01  # bfloat16 has eight bits


@pytest.mark.parametrize("shape", SHAPES + HEADS)
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


def installed(monkeypatch, *names):
    """As if of all packages these were installed, in version 9."""

    def version(name):
        if name not in names:
            raise importlib.metadata.PackageNotFoundError(name)
        return "9"

    monkeypatch.setattr(importlib.metadata, "version", version)


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["flash-attn"], "flash-attn 9"),
        (["flash-attn-4"], "flash-attn-4 9"),
        (["flash-attn-4", "flash-attn"], "flash-attn 9"),
    ],
)
def test_the_benchmark_names_the_package_it_measures(monkeypatch, names, found):
    installed(monkeypatch, *names)
    assert flash_attention.package() == found


def test_benchmarks_of_a_graphics_card_refuse_to_begin_without_one_or_its_package(monkeypatch):
    for benchmark in (on_gpu, flash_attention):
        monkeypatch.setattr(benchmark, "measure", lambda *_: pytest.fail("it began"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for benchmark in (on_gpu, flash_attention):
        with pytest.raises(ValueError, match="about a graphics card, and torch finds none here"):
            benchmark.main()
    monkeypatch.setattr(flash_attention, "gpu", lambda: torch.device("cuda"))
    installed(monkeypatch)
    with pytest.raises(ValueError, match="neither flash-attn .2.x. nor flash-attn-4 is installed"):
        flash_attention.main()
