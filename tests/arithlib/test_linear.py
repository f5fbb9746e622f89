"""Products by oneDNN: those of torch, and so are their gradients."""

import warnings

import pytest
import torch
import torch.nn.functional as F

from arithlib.models.linear import FEWEST_ROWS, Linear, entries_of_product, product

ROWS = [(1,), (FEWEST_ROWS - 1,), (FEWEST_ROWS,), (2, 250), (3, 5, 40)]


def operands(rows, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(*shape, generator=generator).to(dtype) for shape in ((*rows, 24), (40, 24), (40,))]


@pytest.mark.parametrize("rows", ROWS)
def test_it_is_torchs_product_with_and_without_gradients(rows):
    x, weight, bias = operands(rows)
    with torch.no_grad():
        torch.testing.assert_close(product(x, weight, bias), F.linear(x, weight, bias))
        torch.testing.assert_close(product(x, weight), x @ weight.T)
        torch.testing.assert_close(product(x, weight, bias, gelu=True), F.gelu(F.linear(x, weight, bias)))
    torch.testing.assert_close(product(x, weight.requires_grad_(), bias), F.linear(x, weight, bias))
    torch.testing.assert_close(product(x, weight, bias, gelu=True), F.gelu(F.linear(x, weight, bias)))


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (0, 1, 2)])
def test_its_gradients_are_torchs(rows, wanted):
    """Also where a weight is another tensor's transpose, as in a model that writes x @ W."""

    def gradients(multiply, dtype):
        x, weight, bias = operands(rows, dtype)
        weight = weight.T.contiguous().T
        leaves = [x, weight, bias]
        for which in wanted:
            leaves[which].requires_grad_()
        multiply(x, weight, bias).square().sum().backward()
        return [leaf.grad for leaf in leaves]

    exact = gradients(F.linear, torch.float64)
    for ours, theirs in zip(gradients(product, torch.float32), exact, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            torch.testing.assert_close(ours.double(), theirs, rtol=1e-4, atol=1e-4)


def test_the_layer_is_a_linear_layer():
    layer, (x, *_) = Linear(24, 40), operands((64,))
    assert set(layer.state_dict()) == {"weight", "bias"}
    torch.testing.assert_close(layer(x), x @ layer.weight.T + layer.bias)


def test_under_autocast_it_is_torchs_product_in_half_precision():
    layer, (x, *_) = Linear(24, 40), operands((64,))
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16
        torch.testing.assert_close(layer(x), F.linear(x, layer.weight, layer.bias))


@pytest.mark.parametrize("mkl", [True, False])
def test_entries_of_a_product_are_those_of_the_whole_product(monkeypatch, mkl):
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: mkl)
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(shape, generator=generator).double() for shape in ((5, 7), (7, 11)))
    columns = torch.tensor([[3, 10, 3], [0, 1, 2], [10, 9, 0], [4, 4, 4], [6, 0, 6]])  # unsorted, and some twice
    with warnings.catch_warnings(action="error"):
        entries = entries_of_product(x, y, columns)
    torch.testing.assert_close(entries, (x @ y).gather(1, columns))
