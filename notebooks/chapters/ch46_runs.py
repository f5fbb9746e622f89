"""What is read from the small language models of chapters 46 and 47, and the drawing that both have of them."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from arithlib.checkpoints import Trained
from bookkit import style


def at_end(runs: Sequence[Trained], name: str) -> np.ndarray:
    """What was measured at the end of each run; (runs,)."""
    return np.array([float(run.history[f"{name}_final"][0]) for run in runs])


def late(run: Trained, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Log perplexity in nats, and percent right of a kind of text, from 30 % of training on; (evaluations,) each.

    Source 003 fits its lines from there, too (section 3.2).
    """
    chosen = run.history["step"] >= 0.3 * run.history["step"][-1]
    return run.history["log_perplexity"][chosen], 100 * run.history[kind][chosen]


def ends_and_lookup(
    models: Mapping[str, Sequence[Trained]], shades: Mapping[str, str], labels: Mapping[str, str], ylabel: str
) -> Figure:
    """Perplexity at the end of the runs of each model, and percent of values looked up while they are trained.

    shades, labels: colour and name of each model, in the order of drawing. ylabel: what tells them apart.
    """
    fig, (ends_ax, lookup_ax) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    for place, (name, colour) in enumerate(shades.items()):
        ends = np.exp(at_end(models[name], "log_perplexity"))
        ends_ax.plot(ends, np.full(len(ends), place), "o", color=colour, markersize=6)
        ends_ax.plot(ends.mean(), place, "|", color=colour, markersize=18, markeredgewidth=2.5)
        known = 100 * np.array([run.history["lookup"] for run in models[name]])
        style.seed_band(lookup_ax, models[name][0].history["step"], known, colour, labels[name])
    ends_ax.set(
        yticks=range(len(shades)),
        yticklabels=labels.values(),
        xlabel="perplexity (a character)",
        ylabel=ylabel,
        ylim=(len(shades) - 0.4, -0.6),
    )
    lookup_ax.axhline(100 / 3, color=style.GREY, linestyle=":", linewidth=1.2)
    lookup_ax.set(xlabel="training step", ylabel="values looked up (%)", ylim=(-3, 108))
    return fig


def as_drawn(models: Mapping[str, Sequence[Trained]]) -> dict[str, np.ndarray]:
    """The numbers of that figure: perplexities (runs,) and shares looked up (runs, evaluations) of each model."""
    ends = {f"{name}-perplexity": np.exp(at_end(runs, "log_perplexity")) for name, runs in models.items()}
    return ends | {
        f"{name}-lookup": np.array([run.history["lookup"] for run in runs]) for name, runs in models.items()
    }
