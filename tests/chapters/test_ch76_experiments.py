"""The experiments of chapter 76: what an answer sees, and what is compared with what."""

import dataclasses

import pytest
import torch

from arithlib import experiments
from arithlib.models.looped import LoopedConfig
from arithlib.training import AdamW, train
from chapters.ch76_experiments import OFFSET, OFFSETS, BarrierExperiment
from chapters.ch76_formats import Format, draw_sums

FAMILY = experiments.match("barriers-*")
CELLS = [e for e in FAMILY if e.name.split("-")[1] in ("digits", "chunks")]


def tiny(**more):
    written = more.pop("format", Format(1, True, "significance"))
    return BarrierExperiment(
        name="barriers-tiny", about="a test", steps=40, evaluate_every=20, max_digits=2, evaluation_count=10,
        batch_size=16, format=written, optimizer=AdamW.cosine(5e-3, 40, warmup_steps=2),
        model=LoopedConfig(
            d_model=8, n_heads=2, d_mlp=16, n_loops=1, positions="none", n_rows=64, d_vocab=written.vocabulary
        ),
        **more,
    )  # fmt: skip


@pytest.mark.parametrize("window", [None, 0, 1, 3])
def test_what_an_answer_sees_of_the_text(window):
    """By the gradient on the embedded text: two layers see twice the window back, and never ahead."""
    e = tiny()
    model = e.build().eval()
    objective = e.objective(model, None)
    generator = torch.Generator().manual_seed(0)
    sums = e.format.write(*draw_sums(torch.full((1, 2), 2), generator).unbind(1))
    embedded = model.embedding(sums.tokens).detach().requires_grad_()
    model.embedding.forward = lambda tokens: embedded[:, : tokens.shape[1]]
    for token in range(sums.answer.shape[1]):
        logits = objective._logits(model, sums, torch.tensor([[OFFSET]]), window)
        (gradient,) = torch.autograd.grad(logits[0, token].square().sum(), embedded)
        asking = sums.question - 1 + token
        first = 0 if window is None else max(asking - 2 * window, 0)
        seen = (gradient[0].abs().sum(1) > 0).nonzero()[:, 0].tolist()
        assert seen == list(range(first, asking + 1))


def test_right_tokens_make_right_sums():
    e = tiny()
    model = e.build().eval()
    objective = e.objective(model, None)
    operands = draw_sums(torch.tensor([[1, 2], [2, 2], [1, 1]]), torch.Generator().manual_seed(0))
    sums = e.format.write(*operands.unbind(1))
    right = objective.right(model, operands)
    assert right.shape == sums.answer.shape and right[~sums.answer].all()
    assert torch.equal(right, objective.right(model, operands, window=sums.tokens.shape[1]))
    assert objective.share(model, operands) == right.all(1).double().mean()


def test_training_is_repeatable_and_learns():
    e, losses = tiny(), []
    for _ in range(2):
        model = e.build()
        objective = e.objective(model, None)
        before = objective.loss(model, 999).item()
        run = train(model, objective, e.optimizer, e.steps, evaluate_every=e.evaluate_every)
        losses.append(objective.loss(model, 999).item())
        assert losses[-1] < before
    assert losses[0] == losses[1]
    found = e.finish(model, run)
    assert found["by_length"].shape == (1, 4) and found["by_carries"].shape == (1, 4, 5)
    known = torch.tensor(found["by_carries"][0]).isfinite()
    assert torch.equal(known, torch.ones(4, 5, dtype=torch.bool).tril(1))


def test_cells_differ_in_their_format_alone_and_compute_equally_much():
    for seed in range(3):
        cells = [e for e in CELLS if e.seed == seed]
        assert len({e.format for e in cells}) == len(cells) == 8
        plain = {
            str(dataclasses.replace(e, name="", about="", format=Format(), batch_size=1, ships_weights=False,
                                    model=dataclasses.replace(e.model, d_vocab=0)))
            for e in cells
        }  # fmt: skip
        assert len(plain) == 1
        tokens = {}
        for e in cells:
            operands = draw_sums(torch.full((1, 2), e.max_digits), torch.Generator().manual_seed(0))
            tokens[e.name] = e.format.write(*operands.unbind(1)).tokens.numel() * e.batch_size
        assert max(tokens.values()) < 1.02 * min(tokens.values())


def test_every_test_stays_on_rows_that_training_showed():
    for e in FAMILY:

        def longest(digits, e=e):
            operands = draw_sums(torch.full((1, 2), digits), torch.Generator().manual_seed(0))
            return int(e.format.write(*operands.unbind(1)).address.max())

        assert OFFSET + longest(2 * e.max_digits) <= OFFSETS - 1 + longest(e.max_digits) < e.model.n_rows
