"""The closed forms of a petal agree with its definition, and its counts with counting on the drawn curve."""

from math import gcd

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arithlib.analysis.petals import Petal, count_crossings, count_lobes

petals = st.builds(
    Petal,
    embedding=st.integers(1, 56),
    attention=st.integers(1, 56),
    amplitude=st.floats(0, 0.5),
    phase=st.floats(-7, 7),
    a=st.integers(0, 112),
)
B = np.linspace(-20, 140, 301)


@given(petals)
def test_the_six_terms_add_up_to_the_curve(petal):
    series = sum(c * np.exp(2j * np.pi * turns * B / petal.p) for turns, c in petal.terms().items())
    np.testing.assert_allclose(series, petal(B), atol=1e-11)


@given(petals)
def test_around_x_a_the_curve_is_a_polar_graph(petal):
    theta = np.pi * petal.embedding * (B - petal.a) / petal.p
    x_a = petal.point(petal.a)
    np.testing.assert_allclose(x_a + 1j * x_a * np.exp(1j * theta) * petal.radius(theta), petal(B), atol=1e-10)


@given(petals)
def test_the_weight_keeps_the_curve_between_its_two_points(petal):
    assert (petal.weight(B) >= 0).all() and (petal.weight(B) <= 1).all()
    assert (abs(petal(B)) <= 1 + 1e-12).all()
    assert petal(petal.a) == pytest.approx(petal.point(petal.a))


def in_general_position(embedding, attention, amplitude):
    """A petal whose crossings lie as far from x_a as they can."""
    _, n = Petal(embedding, attention).ratio
    phase = np.pi / (2 * n) - 2 * np.pi * attention * 17 / 113
    return Petal(embedding, attention, amplitude, phase, a=17)


RATIOS = [(k_e, k_a) for k_e in range(1, 6) for k_a in range(1, 7) if gcd(k_e, k_a) == 1] + [(2, 4), (4, 2), (6, 4)]


@pytest.mark.parametrize(("k_e", "k_a"), RATIOS)
@pytest.mark.parametrize("amplitude", [0.5, 0.3])
def test_crossings_counted_on_the_curve_are_those_of_the_formula(k_e, k_a, amplitude):
    petal = in_general_position(k_e, k_a, amplitude)
    m, n = petal.ratio
    curve = petal.closed(400 + 240 * m // n)
    assert count_crossings(curve, petal.point(petal.a)) == petal.crossings == m * (n - 1)


@pytest.mark.parametrize(("k_e", "k_a"), RATIOS)
def test_at_full_amplitude_the_lobes_are_turns_of_the_weight_and_of_the_circle_together(k_e, k_a):
    petal = in_general_position(k_e, k_a, 0.5)
    assert count_lobes(petal.closed(), petal.point(petal.a)) == petal.lobes


def test_a_figure_of_eight_crosses_once_and_a_circle_never():
    t = 2 * np.pi * (np.arange(200) + 0.5) / 200
    eight = np.sin(t) + 1j * np.sin(2 * t)
    assert count_crossings(eight, touching=9) == 1
    assert count_crossings(eight, touching=0) == 0  # left out: the crossing is at 0
    assert count_crossings(np.exp(1j * t), touching=9) == 0
    assert count_lobes(np.sin(2 * t) * np.exp(1j * t), centre=0) == 4  # a rose


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"embedding": 0, "attention": 3}, "integers of at least 1"),
        ({"embedding": 3, "attention": 0}, "integers of at least 1"),
        ({"embedding": 3, "attention": 3, "amplitude": 0.6}, "stays between 0 and 1"),
    ],
)
def test_a_petal_that_cannot_be_is_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        Petal(**bad)
