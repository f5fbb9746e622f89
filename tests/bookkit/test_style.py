"""The book's look: cyclic colours, phase axes, seed bands."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from bookkit import style

WIDTH_OF_A_PHONE = 340  # px
LEGIBLE = 9  # px


@pytest.fixture(autouse=True)
def book_style():
    with plt.rc_context():
        style.use()
        yield
        plt.close("all")


def luminance(colour) -> float:
    """Relative luminance of an RGB colour, as WCAG 2 defines it."""
    rgb = np.asarray(colour)[:3]
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_text_stays_legible_when_a_figure_is_shown_on_a_phone():
    points = plt.rcParams["figure.figsize"][0] * 72
    for size in ("font.size", "axes.labelsize", "xtick.labelsize", "ytick.labelsize"):
        assert plt.rcParams[size] * WIDTH_OF_A_PHONE / points >= LEGIBLE, size


def test_residue_colours_close_into_a_circle_and_are_visible_on_white():
    colours = style.residue_colours(113)[:, :3]
    steps = np.linalg.norm(colours - np.roll(colours, 1, axis=0), axis=1)
    assert colours.shape == (113, 3)
    assert steps[0] <= 1.5 * steps[1:].max(), "residues 112 and 0 are neighbours"
    assert len(np.unique(colours, axis=0)) == 113
    assert 1.05 / (max(map(luminance, colours)) + 0.05) >= 3, "as a mark on white should have"


def test_residue_colours_of_no_modulus_are_refused():
    with pytest.raises(ValueError, match="p >= 1, got 0"):
        style.residue_colours(0)


def test_phase_ticks_are_written_as_multiples_of_pi():
    fig, ax = plt.subplots()
    ax.set_xlim(-np.pi, 2 * np.pi)
    style.phase_axis(ax)
    fig.canvas.draw()
    low, high = ax.get_xlim()
    labels = [
        label.get_text()
        for at, label in zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)
        if low - 1e-9 <= at <= high + 1e-9
    ]
    assert labels == ["−π", "−π/2", "0", "π/2", "π", "3π/2", "2π"]


def test_seed_band_draws_every_seed_and_their_mean():
    _, ax = plt.subplots()
    ys = np.arange(12.0).reshape(3, 4)
    style.seed_band(ax, np.arange(4), ys, label="test loss")
    *seeds, mean = ax.lines
    assert len(seeds) == 3 and all(line.get_alpha() < 1 for line in seeds)
    np.testing.assert_array_equal(mean.get_ydata(), ys.mean(axis=0))
    assert ax.get_legend_handles_labels()[1] == ["test loss"]


def test_seed_band_of_transposed_data_is_refused():
    _, ax = plt.subplots()
    with pytest.raises(ValueError, match=r"\(seeds, 4\)"):
        style.seed_band(ax, np.arange(4), np.zeros((4, 3)))


def test_signed_values_are_centred_at_zero():
    keywords = style.centred(np.array([-1.0, 3.0]))
    assert keywords["norm"](0.0) == 0.5 and keywords["norm"](3.0) == 1.0


@pytest.mark.parametrize(("step", "practised"), [(4, 5), (6, 3), (12, 1), (20, 1)])
def test_a_heatmap_of_lengths_outlines_the_cells_of_training_and_cuts_none(step, practised):
    _, ax = plt.subplots()
    style.length_heatmap(ax, np.eye(10), range(step, 10 * step + 1, step), 20, cbar=False)
    (outline,) = ax.patches
    assert outline.get_xy() == (0, 0)
    assert (outline.get_width(), outline.get_height()) == (practised, practised)


def test_a_heatmap_of_lengths_names_some_of_them():
    _, ax = plt.subplots()
    style.length_heatmap(ax, np.eye(10), range(4, 41, 4), 20, cbar=False)
    low, high = ax.get_ylim()
    assert low < high and [label.get_text() for label in ax.get_xticklabels()] == ["8", "16", "24", "32", "40"]
