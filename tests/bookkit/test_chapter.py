"""Figures, claims and numbers as a notebook records them."""

import json
import os
from pathlib import Path

import IPython.display
import matplotlib.pyplot as plt
import myst_nb
import myst_nb.ext.glue
import numpy as np
import pytest
import torch
import yaml
from myst_nb.core.variables import format_plain_text

from bookkit import claim, figure, glue, provenance, published, style, verdicts
from bookkit.claims import ClaimError
from bookkit.figures import structure
from bookkit.files import FileProblem
from bookkit.judge import SIGNS
from bookkit.records import ChapterError

CLAIMS = [
    {
        "id": "M-08",
        "source": "004",
        "statement": "Grokking takes about 4,000 epochs & stays.",
        "published": "about 4,000 epochs",
        "value": 4000,
        "test": "Train and count.",
        "tier": "C",
        "basis": "no setting given",
        "rule": {"reproduced": "0.5 * value <= median <= 2 * value", "otherwise": "refuted"},
    },
    {"id": "M-09", "source": "004", "statement": "Nothing more happens.", "test": "Look.", "tier": "C"},
]
ALT = "A line that rises from zero to one"


@pytest.fixture(autouse=True)
def records(tmp_path, monkeypatch):
    """The records folder of a run of the book, in a checkout with two claims."""
    (tmp_path / "book" / "claims").mkdir(parents=True)
    (tmp_path / "book" / "claims" / "004.yaml").write_text(yaml.safe_dump(CLAIMS))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "records" / "10_grokking"
    monkeypatch.setenv("BOOKKIT_RECORDS", str(folder))
    yield folder
    plt.close("all")


@pytest.fixture(autouse=True)
def shown(monkeypatch):
    """What was displayed: a list of (MIME bundle, metadata)."""
    outputs = []
    monkeypatch.setattr(IPython.display, "display", lambda data, raw, metadata: outputs.append((data, metadata)))
    return outputs


def a_plot(**labels):
    fig, ax = plt.subplots()
    ax.plot([0, 1], [0, 1], label="accuracy")
    ax.legend()
    ax.set(**({"xlabel": "epoch", "ylabel": "accuracy"} | labels))
    return fig


def draw(key="accuracy", fig=None, **changes):
    arguments = {"data": {"accuracy": [0.0, 1.0]}, "alt": ALT, "caption": "It rises."} | changes
    figure(key, fig or a_plot(), **arguments)


# --- figures ---


def test_a_figure_is_shown_as_svg_with_what_a_page_needs(shown):
    draw()
    [(data, metadata)] = shown
    assert data["image/svg+xml"].startswith("<?xml") and data["text/plain"] == ALT
    note = {"figure": "accuracy", "alt": ALT, "caption": "It rises.", "inches": 5.6, "points": 10.0}
    assert metadata == {"bookkit": note}


def test_the_smallest_text_of_a_figure_is_known_and_can_be_read(shown):
    fig = a_plot()
    fig.axes[0].text(0, 0, "small", fontsize=8)
    draw(fig=fig)
    assert shown[0][1]["bookkit"]["points"] == 8
    fig = a_plot()
    fig.axes[0].text(0, 0, "tiny", fontsize=6)
    with pytest.raises(ChapterError, match="'tiny' has 6.0 points"):
        draw("other", fig=fig)


def test_a_figure_is_closed_so_that_it_is_not_shown_twice():
    draw()
    assert not plt.get_fignums()


def test_a_figure_records_its_numbers_and_its_structure(records):
    draw(data={"accuracy": torch.tensor([0.0, 1.0], dtype=torch.bfloat16), "n": 3}, tolerance={"n": 0})
    record = json.loads((records / "figures" / "accuracy.json").read_text())
    with np.load(records / "figures" / "accuracy.npz") as arrays:
        assert arrays["accuracy"].tolist() == [0.0, 1.0] and arrays["n"] == 3
    assert record["data"]["accuracy"] == {"dtype": "float64", "shape": [2]}
    assert record["tolerance"] == {"accuracy": 1e-5, "n": 0}
    [axes] = record["structure"]["axes"]
    assert (axes["xlabel"], axes["ylabel"], axes["legend"], axes["lines"]) == ("epoch", "accuracy", ["accuracy"], 1)


def test_the_same_figure_gives_the_same_bytes(records):
    contents = []
    for _ in range(2):
        draw()
        folder = records / "figures"
        contents.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert contents[0] == contents[1] and len(contents[0]) == 4
    assert b"<dc:date>" not in contents[0]["accuracy.svg"]


def test_masked_entries_are_missing_on_purpose(records):
    draw(data={"loss": np.ma.masked_invalid([1.0, np.nan])})
    with np.load(records / "figures" / "accuracy.npz") as arrays:
        np.testing.assert_array_equal(arrays["loss"], [1.0, np.nan])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"alt": "a plot"}, "alt text 'a plot' is too short"),
        ({"caption": " "}, "caption is empty"),
        ({"data": {}}, "data is empty"),
        ({"data": {"loss": [1.0, np.nan]}}, "data.'loss'. holds NaN or infinity"),
        ({"data": {"loss": ["low"]}}, "must hold real numbers"),
        ({"data": {"loss": [1j]}}, "split complex numbers"),
        ({"data": {"loss": [[1.0], [1.0, 2.0]]}}, "no array of numbers"),
        ({"data": {"loss": []}}, "must hold real numbers, found 0"),
        ({"tolerance": {"lost": 1e-3}}, "tolerance for .'lost'., but data has .'accuracy'."),
        ({"tolerance": 1e-9}, "tolerance 1e-09 of 'accuracy' must lie in"),
        ({"bands": {"lost": (0, 1)}}, "bands for .'lost'."),
        ({"bands": {"accuracy": (1, 0)}}, "must be .low, high."),
        ({"key": "Loss_Curve"}, "kebab-case"),
    ],
)
def test_a_figure_that_lacks_something_is_refused_and_nothing_is_written(records, shown, changes, reason):
    with pytest.raises(ChapterError, match=reason):
        draw(**changes)
    assert not records.exists() and not shown


def test_a_key_may_not_come_again_with_other_content(records):
    draw()
    before = (records / "figures" / "accuracy.json").read_bytes()
    with pytest.raises(ChapterError, match="figure 'accuracy' was recorded before"):
        draw(caption="It falls.")
    assert (records / "figures" / "accuracy.json").read_bytes() == before


def test_by_hand_a_cell_may_be_run_again_with_a_change(tmp_path, monkeypatch):
    monkeypatch.delenv("BOOKKIT_RECORDS")
    draw()
    draw(caption="It falls.")
    path = tmp_path / "book" / "_build" / "records" / "interactive" / "figures" / "accuracy.json"
    assert json.loads(path.read_text())["caption"] == "It falls."


@pytest.mark.parametrize(
    ("labels", "axis"), [({"xlabel": ""}, "x axis has no label"), ({"ylabel": ""}, "y axis has no label")]
)
def test_an_axis_without_a_label_is_refused(labels, axis):
    with pytest.raises(ChapterError, match=axis):
        draw(fig=a_plot(**labels))


def test_an_axis_without_ticks_or_switched_off_needs_no_label():
    fig, (ax, off) = plt.subplots(1, 2)
    for axes in (ax, off):
        axes.imshow(np.eye(3))
    ax.set(xticks=[], yticks=[])
    off.axis("off")
    draw(fig=fig)


def test_panels_may_share_one_label():
    fig, axes = plt.subplots(2, 2, sharex=True, sharey=True)
    for ax in axes.flat:
        ax.plot([0, 1], [0, 1])
    fig.supxlabel("epoch")
    fig.supylabel("loss")
    draw(fig=fig)


def test_tick_labels_that_overlap_are_refused():
    fig = a_plot()
    fig.axes[0].set_xticks(np.linspace(0, 1, 30))
    with pytest.raises(ChapterError, match="tick labels of the x axis overlap"):
        draw(fig=fig)


@pytest.mark.parametrize("missing", ["everything", "the limits hide it", "only NaN"])
def test_a_blank_plot_is_refused_even_if_axes_and_grid_are_drawn(missing):
    fig, ax = plt.subplots()
    if missing != "everything":
        ax.plot([0, 1], [0, np.nan] if missing == "only NaN" else [0, 1])
    ax.set(xlabel="epoch", ylabel="loss", xlim=(2, 3))
    ax.grid()
    with pytest.raises(ChapterError, match="axes 1 is blank"):
        draw(fig=fig)


def test_a_figure_without_axes_is_refused():
    with pytest.raises(ChapterError, match="no axes"):
        draw(fig=plt.figure())


def test_checking_a_figure_leaves_its_artists_visible():
    fig = a_plot()
    structure("accuracy", fig)
    assert all(line.get_visible() for line in fig.axes[0].lines)


def test_a_drawing_too_heavy_for_a_page_is_refused():
    fig, ax = plt.subplots()
    ax.scatter(*np.random.default_rng(0).random((2, 30_000)))
    ax.set(xlabel="a", ylabel="b")
    with pytest.raises(ChapterError, match="rasterized=True"):
        draw(fig=fig)


def test_a_full_disk_keeps_what_was_recorded(records, monkeypatch, shown):
    draw()
    before = {path.name: path.read_bytes() for path in (records / "figures").iterdir()}

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(FileProblem, match="No space left on device.*Free some space"):
        draw("loss")
    with pytest.raises(FileProblem, match="No space left on device"):
        claim("M-08", 4100)
    assert {path.name: path.read_bytes() for path in (records / "figures").iterdir()} == before
    assert len(shown) == 1, "a figure that was not recorded is not shown"


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("BOOKKIT_RECORDS", str(tmp_path / "file" / "records"))
    with pytest.raises(FileProblem, match="could not write .*choose a folder you may write to"):
        draw()


# --- claims ---


def test_a_claim_records_statistics_and_the_verdict_of_its_rule(records):
    draw()
    result = claim("M-08", [3900, 4100, 4300], unit="epochs", figure="accuracy", note="Five seeds fit in CI.")
    assert result.verdict == "reproduced"
    assert json.loads((records / "claims" / "M-08.json").read_text()) == {
        "id": "M-08",
        "measured": [3900, 4100, 4300],
        "n": 3,
        "mean": 4100,
        "sd": 200,
        "median": 4100,
        "min": 3900,
        "max": 4300,
        "verdict": "reproduced",
        "unit": "epochs",
        "scale": "no setting given",
        "size": None,
        "figure": "accuracy",
        "note": "Five seeds fit in CI.",
        "notebook": "10_grokking",
    }


def test_every_verdict_has_a_sign_of_its_own_and_the_front_page_explains_it():
    assert len({*SIGNS.values()}) == len(SIGNS)
    front = (Path(__file__).parents[2] / "book" / "index.md").read_text(encoding="utf-8")
    explained = [line.split(" | ")[0] for line in front.splitlines() if "&nbsp;**" in line]
    assert explained == [f"| {sign}&nbsp;**{verdict}**" for verdict, sign in SIGNS.items()]


def test_a_refuted_claim_looks_like_any_other_and_says_what_was_found():
    result = claim("M-08", torch.tensor(40_000.0), unit="epochs")
    assert result.verdict == "refuted"
    assert "Source: about 4,000 epochs. Ours: 40,000 epochs (no setting given)" in repr(result)
    assert "≠&nbsp;refuted</strong>" in result._repr_html_() and style.VERMILLION in result._repr_html_()
    assert "stays &amp;" not in result._repr_html_() and "epochs &amp; stays" in result._repr_html_()
    assert result._repr_markdown_().startswith("≠ **M-08 refuted.**")


@pytest.mark.parametrize(
    ("arguments", "error", "reason"),
    [
        ({"id": "M-80"}, ClaimError, "no claim 'M-80' in book/claims; near it: M-09, M-08"),
        ({"id": "M-09"}, ClaimError, "M-09 has no rule"),
        ({"measured": float("nan")}, ClaimError, "finite numbers"),
        ({"size": {"weights": 7}}, ClaimError, "no setting"),
        ({"figure": "loss"}, ChapterError, "no figure 'loss' was recorded yet"),
    ],
)
def test_a_claim_that_cannot_be_judged_is_refused_and_not_recorded(records, arguments, error, reason):
    with pytest.raises(error, match=reason):
        claim(**({"id": "M-08", "measured": 4000} | arguments))
    assert not records.exists()


def test_a_claim_is_measured_once_in_a_run():
    claim("M-08", 4000)
    claim("M-08", 4000)
    with pytest.raises(ChapterError, match="claim 'M-08' was recorded before"):
        claim("M-08", 4001)


def test_the_verdict_table_has_an_anchor_for_each_claim_and_no_fixed_columns():
    claim("M-08", 4000, unit="epochs")
    table = verdicts("M-08")
    page = table._repr_html_()
    assert '<li id="claim-m-08"' in page and "flex-wrap:wrap" in page and "<table" not in page
    assert "epochs &amp; stays" in page and "Published: about 4,000 epochs.<br>Ours: 4,000 epochs" in page
    assert "| M-08 ✓ **reproduced** | Grokking takes" in table._repr_markdown_()


def test_a_row_leads_to_how_it_is_decided_where_there_is_such_a_page(monkeypatch):
    link = '<a href="../book/scoreboard.html#claim-m-08">how it is decided</a>'
    claim("M-08", 4000)
    assert link in verdicts("M-08")._repr_html_()
    monkeypatch.delenv("BOOKKIT_RECORDS")
    claim("M-08", 4000)
    assert link not in verdicts("M-08")._repr_html_()


def test_named_measurements_are_recorded_in_the_order_in_which_they_were_measured(records):
    (records.parents[1] / "book" / "claims" / "004.yaml").write_text(
        yaml.safe_dump([CLAIMS[0] | {"rule": {"reproduced": "late_mean > early", "otherwise": "refuted"}}])
    )
    claim("M-08", {"late": [3.0, 4.0], "early": 1.0})
    content = json.loads((records / "claims" / "M-08.json").read_text())
    assert list(content["measured"]) == ["late", "early"] and content["n"] == {"late": 2, "early": 1}


def test_a_table_of_claims_not_measured_in_this_run_is_refused():
    with pytest.raises(ChapterError, match="M-08 not measured in this run"):
        verdicts("M-08")


def test_published_values_come_from_the_claims_file():
    assert published("M-08") == 4000
    with pytest.raises(ClaimError, match="M-09 has no published value"):
        published("M-09")


# --- prose ---


@pytest.mark.parametrize(
    ("value", "fmt", "text"),
    [
        (np.float64(1.23456), ".3g", "1.23"),
        (torch.tensor(4120), ",", "4,120"),
        (0.1, ".2f", "0.10"),
        (1e-7, ".0e", "1_×_10⁻⁷"),
        ("-2.5e+04 and 1e5, 3e12ab, x1e-07", "", "−2.5_×_10⁴ and 1e5, 3e12ab, x1e-07"),
        (np.float64(-0.45), "+.1f", "−0.5"),
        ("-3 to -1 with 4-digit sums, 2-5 (-.5)", ".3g", "−3 to −1 with 4-digit sums, 2-5 (−.5)"),
        ("twilight", ".3g", "twilight"),
        (0.364, ".0%", "36_%"),
        ("1, 2 and it's 3", ".3g", "1, 2 and it's 3"),
    ],
)
def test_glued_values_reach_the_page_as_they_were_written(monkeypatch, value, fmt, text):
    glued = {}
    monkeypatch.setattr(myst_nb.ext.glue, "ipy_display", lambda data, **_: glued.update(data))
    glue("epochs", value, fmt)
    (shown,) = glued.values()
    assert format_plain_text(shown, "s") == text.replace("_", "\N{NO-BREAK SPACE}")


def test_a_glued_name_may_not_change_its_value(monkeypatch):
    monkeypatch.setattr(myst_nb, "glue", lambda *_, **__: None)
    glue("epochs", 4120)
    with pytest.raises(ChapterError, match="glued 'epochs' was recorded before"):
        glue("epochs", 4000)


class _Trained:
    def __init__(self, name, seconds):
        self.provenance = {"name": name, "scale": "cpu", "steps": 20_000, "seconds": seconds, "device": "cpu"}
        self.provenance |= {"threads": 2, "machine": "x86_64", "torch": "2.13.0", "made": "2026-01-31"}


def test_provenance_says_what_was_trained_where_and_how_long():
    line = repr(provenance(_Trained("grokking-s0", 300.2), _Trained("grokking-s1", 310.4)))
    assert line == (
        "Trained: grokking-s0 to grokking-s1 (2 runs) · cpu preset · 20,000 steps · 611 s in all on cpu "
        "(2 threads, x86_64) · torch 2.13.0 · 2026-01-31"
    )
    with pytest.raises(ChapterError, match="no trained model"):
        provenance()
