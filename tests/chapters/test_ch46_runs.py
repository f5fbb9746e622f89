"""What is read from the runs, with histories whose numbers are known."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib import pyplot as plt

from chapters import ch46_runs


def run(perplexity, right):
    history = {
        "step": np.arange(0, 110, 10),
        "log_perplexity": np.linspace(3, 2, 11),
        "lookup": np.linspace(0, right, 11),
        "log_perplexity_final": np.array([np.log(perplexity)]),
    }
    return SimpleNamespace(history=history)


RUNS = {"4x1": [run(8.0, 1.0), run(10.0, 0.5)], "1x4": [run(12.0, 0.25)]}


def test_the_end_of_each_run_is_read_from_what_was_measured_last():
    assert np.exp(ch46_runs.at_end(RUNS["4x1"], "log_perplexity")) == pytest.approx([8, 10])


def test_the_late_part_begins_at_three_tenths_of_training_and_is_in_percent():
    x, y = ch46_runs.late(RUNS["4x1"][1], "lookup")
    assert len(x) == len(y) == 8
    assert (x[0], y[0]) == (pytest.approx(2.7), pytest.approx(15)) and y[-1] == 50


def test_every_run_is_drawn_where_its_perplexity_is():
    shades, labels = {"1x4": "red", "4x1": "blue"}, {"1x4": "1 x 4", "4x1": "4 x 1"}
    fig = ch46_runs.ends_and_lookup(RUNS, shades, labels, "layers x loops")
    ends, lookup = fig.axes
    dots = [artist for artist in ends.get_lines() if artist.get_marker() == "o"]
    assert [dot.get_xdata().tolist() for dot in dots] == [pytest.approx([12]), pytest.approx([8, 10])]
    assert [label.get_text() for label in ends.get_yticklabels()] == ["1 x 4", "4 x 1"]
    assert max(max(line.get_ydata()) for line in lookup.get_lines()) == pytest.approx(100)
    plt.close(fig)


def test_the_numbers_of_the_drawing_are_those_of_the_runs():
    found = ch46_runs.as_drawn(RUNS)
    assert found["4x1-perplexity"] == pytest.approx([8, 10]) and found["1x4-lookup"].shape == (1, 11)
