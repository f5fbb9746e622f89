"""Ball arithmetic: no float32 program leaves the balls, and the balls are not needlessly large."""

import numpy as np
import pytest

from arithlib.certify import ball_arithmetic
from arithlib.certify.ball_arithmetic import Ball, einsum, margin, relu, softmax

rng = np.random.default_rng(0)


def float32(*shape, scale=3.0):
    return (scale * rng.standard_normal(shape)).astype(np.float32)


def inside(values, ball):
    return bool((np.abs(values.astype(np.float64) - ball.mid) <= ball.rad).all())


def in_some_order(products):
    """A float32 sum along the last axis, one term after the other in random order."""
    total = np.zeros(products.shape[:-1], np.float32)
    for place in rng.permutation(products.shape[-1]):
        total = total + products[..., place]
    return total


def test_dot_products_stay_in_their_balls_in_every_order():
    x, w = float32(40, 200), float32(200)
    ball = einsum("ij,j->i", Ball.exact(x), Ball.exact(w))
    for _ in range(20):
        assert inside(in_some_order(x * w), ball)


def test_without_rounding_in_the_bound_they_would_not(monkeypatch):
    x, w = float32(40, 200), float32(200)
    monkeypatch.setattr(ball_arithmetic, "UNIT", 0.0)
    assert not inside(in_some_order(x * w), einsum("ij,j->i", Ball.exact(x), Ball.exact(w)))


def test_a_sum_that_starts_from_a_large_bias_stays_in_its_ball():
    x, w, bias = float32(40, 200), float32(200), np.full(40, 2**20, np.float32)
    total = bias
    for product in (x * w).T:
        total = total + product
    apart = einsum("ij,j->i", Ball.exact(x), Ball.exact(w)) + Ball.exact(bias)
    assert inside(total, einsum("ij,j->i", Ball.exact(x), Ball.exact(w), Ball.exact(bias)))
    assert not inside(total, apart)  # that is a bound on adding the bias at the end


def test_what_is_unknown_beforehand_is_carried_through():
    x, w, b = Ball(float32(30, 8).astype(float), np.full((30, 8), 0.1)), float32(5, 8), float32(5)
    ball = relu(einsum("ci,oi->co", x, Ball.exact(w)) + Ball.exact(b))
    for _ in range(50):
        moved = x.mid + rng.choice([-0.1, 0.1], x.mid.shape)
        assert inside(np.maximum(moved @ w.T + b, 0), ball)


def test_relu_keeps_every_value_of_a_ball_and_forgets_what_is_surely_negative():
    x = Ball(np.array([-3.0, -0.5, 0.5, 3.0]), np.ones(4))
    ball = relu(x)
    for share in np.linspace(-1, 1, 21):
        assert inside(np.maximum(x.mid + share * x.rad, 0), ball)
    assert ball.rad.tolist() == [0.0, 0.5, 1.0, 1.0]


def test_a_corner_of_the_box_comes_close_to_the_radius():
    x, w = Ball(np.ones(8), np.full(8, 0.1)), float32(8)
    ball = einsum("i,i->", x, Ball.exact(w))
    assert ball.rad == pytest.approx(0.1 * np.abs(w).sum(), rel=1e-4)


def test_softmax_in_float32_stays_in_its_ball_and_masked_entries_are_zero():
    scores = float32(100, 6, scale=10)
    ball = softmax(Ball(np.where(np.arange(6) == 2, -np.inf, scores), np.zeros((100, 6))))
    weights = np.exp(np.where(np.arange(6) == 2, -np.inf, scores - scores.max(1, keepdims=True)), dtype=np.float32)
    assert inside(weights / weights.sum(1, keepdims=True, dtype=np.float32), ball)
    assert (ball.mid[:, 2] == 0).all() and (ball.rad[:, 2] == 0).all()


def test_softmax_of_scores_that_are_off_stays_in_its_ball():
    scores = float32(200, 5).astype(float)
    ball = softmax(Ball(scores, np.full(scores.shape, 0.05)))
    for _ in range(20):
        weights = np.exp(scores + rng.choice([-0.05, 0.05], scores.shape))
        assert inside(weights / weights.sum(1, keepdims=True), ball)


def test_the_margin_is_the_lead_over_the_next_best():
    logits = Ball(np.array([[1.0, 4.0, 3.0], [2.0, 0.0, 0.5]]), np.full((2, 3), 0.25))
    lead, assured = margin(logits, np.array([1, 2]))
    assert lead.tolist() == [1.0, -1.5]
    assert assured.tolist() == [0.5, -2.0]
