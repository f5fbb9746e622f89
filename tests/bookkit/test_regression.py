"""Figure regression: what has not changed passes, and each planted change is caught at its level."""

import io
import json
import shutil
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pytest
from bs4 import BeautifulSoup

from bookkit import figure
from bookkit.build import regression
from bookkit.build.regression import (
    RegressionError,
    compare,
    compare_verdicts,
    report,
    update_baselines,
    write_html_report,
)

NAME = "10_grokking/curve"


def record(root, key="curve", notebook="10_grokking", y=None, **changes):
    """Record a figure of a run of the book below `root`, anew each time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("IPython.display.display", lambda *_, **__: None)
        patch.setenv("BOOKKIT_RECORDS", str(root / "records" / notebook))
        patch.setattr("bookkit.records.recorded", {})
        y = np.linspace(0, 1, 50) ** 2 if y is None else y
        labels = {"xlabel": "epoch", "ylabel": "loss"} | changes.pop("labels", {})
        fig, ax = plt.subplots()
        ax.plot(y)
        if dot := changes.pop("dot", None):
            ax.plot(*dot, "k,")
        ax.set(**labels)
        options = {"data": {"loss": y}, "alt": "A parabola that rises from 0 to 1", "caption": "It rises."}
        figure(key, fig, **(options | changes))
        plt.close("all")


@pytest.fixture
def draw(tmp_path):
    return partial(record, tmp_path)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Records of one figure compared to the pixel, and the baselines made from them."""
    root = tmp_path_factory.mktemp("drawn")
    record(root, pixels=True)
    update_baselines(root / "records", root / "baselines")
    return root


@pytest.fixture
def folders(tmp_path, drawn):
    """A copy of both to change."""
    shutil.copytree(drawn, tmp_path, dirs_exist_ok=True)
    return tmp_path / "records", tmp_path / "baselines"


def changes_of(folders) -> list[tuple[str, str]]:
    return [(change.level, change.quantity) for change in compare(*folders)]


def test_an_unchanged_figure_passes(folders, draw):
    draw(pixels=True)
    assert compare(*folders) == []
    assert report([]) == "every figure agrees with its baseline"


def test_rounding_within_the_tolerance_passes(folders, draw):
    draw(y=np.linspace(0, 1, 50) ** 2 + 5e-6, pixels=True)
    assert compare(*folders) == []


def test_one_perturbed_number_is_caught(folders, draw):
    y = np.linspace(0, 1, 50) ** 2
    y[10] += 2e-5
    draw(y=y, pixels=True)
    [change] = compare(*folders)
    assert (change.figure, change.level, change.quantity) == (NAME, "data", "loss values")
    assert change.relative == pytest.approx(2e-5, rel=0.05)
    assert change.baseline == pytest.approx(0.0416493) and change.now == pytest.approx(0.0416693)
    assert "10_grokking/curve [data] loss values: baseline 0.0416493, now 0.0416693" in report([change])
    assert "run `make baselines` and commit" in report([change])


@pytest.mark.parametrize("plant", ["one large entry", "a shift of the middle", "missing", "reordered"])
def test_a_change_in_a_long_array_is_caught(tmp_path, draw, plant):
    y = np.random.default_rng(0).normal(size=5000)
    draw(y=y)
    update_baselines(tmp_path / "records", tmp_path / "baselines")
    baseline = json.loads((tmp_path / "baselines" / f"{NAME}.json").read_text())["data"]["loss"]
    assert len(baseline["sample"]) == 64 and "values" not in baseline
    if plant == "one large entry":
        y[1234] = 9
    elif plant == "a shift of the middle":
        y[2000:3000] += 0.01
    elif plant == "reordered":
        y = y[::-1]
    else:
        y[17] = np.nan
    draw(y=np.ma.masked_invalid(y))
    assert {level for level, _ in changes_of((tmp_path / "records", tmp_path / "baselines"))} == {"data"}


@pytest.mark.parametrize("y", [np.linspace(0, 1, 51) ** 2, (np.linspace(0, 1, 50) ** 2)[:, None]])
def test_another_shape_is_caught(folders, draw, y):
    draw(y=y, pixels=True)
    assert ("data", "loss shape") in changes_of(folders)


def test_a_renamed_quantity_is_caught(folders, draw):
    draw(data={"test loss": np.linspace(0, 1, 50) ** 2}, pixels=True)
    assert ("data", "names") in changes_of(folders)


def test_a_changed_integer_is_caught_exactly(tmp_path, draw):
    draw(data={"epoch": [4_000_001]}, tolerance=0)
    update_baselines(tmp_path / "records", tmp_path / "baselines")
    draw(data={"epoch": [4_000_002]}, tolerance=0)
    assert changes_of((tmp_path / "records", tmp_path / "baselines")) == [("data", "epoch values")]


def test_a_changed_label_is_caught(folders, draw):
    draw(labels={"xlabel": "step"}, pixels=True)
    assert ("structure", "structure.axes 1.xlabel") in changes_of(folders)


def test_a_removed_label_is_caught(folders):
    path = folders[0] / "10_grokking" / "figures" / "curve.json"
    path.write_text(path.read_text().replace('"epoch"', '""'))
    assert changes_of(folders) == [("structure", "structure.axes 1.xlabel")]


def test_another_number_of_artists_is_caught(folders, draw):
    draw(dot=([10], [0.5]), pixels=True)
    assert ("structure", "structure.axes 1.lines") in changes_of(folders)


def test_a_widened_tolerance_is_caught(folders, draw):
    draw(tolerance=0.5, pixels=True)
    assert changes_of(folders) == [("structure", "tolerance.loss")]


def test_one_moved_pixel_is_caught(folders):
    path = folders[0] / "10_grokking" / "figures" / "curve.png"
    picture = plt.imread(path).copy()
    picture[20, 30, :3] = 0.5
    plt.imsave(path, picture)
    [change] = compare(*folders)
    assert change.level == "pixels" and change.quantity.startswith("1 of ")


def test_pixels_drawn_by_another_matplotlib_are_not_compared(folders):
    path = folders[1] / f"{NAME}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"matplotlib": "3.0.0"}))
    shutil.copy(folders[1] / f"{NAME}.png", folders[1] / "kept.png")
    plt.imsave(folders[1] / f"{NAME}.png", np.zeros((350, 560, 3)))
    assert compare(*folders) == []
    assert update_baselines(*folders) == [f"changed {NAME}"], "a new version draws its own baseline"
    assert (folders[1] / f"{NAME}.png").read_bytes() == (folders[1] / "kept.png").read_bytes()


def test_a_figure_without_a_baseline_is_caught(folders, draw):
    draw("second", y=np.ones(3))
    assert changes_of(folders) == [("baseline", "missing: a new figure")]


def test_a_baseline_without_its_figure_is_caught_and_removed_on_purpose(folders, draw):
    draw("second")
    (folders[0] / "10_grokking" / "figures" / "curve.json").unlink()
    assert ("baseline", "stale: no notebook draws it") in changes_of(folders)
    assert update_baselines(*folders) == ["added 10_grokking/second", f"removed {NAME}"]
    assert [path.name for path in (folders[1] / "10_grokking").iterdir()] == ["second.json"]


# --- live trainings ---


@pytest.fixture
def live(tmp_path, draw):
    """A figure of a live training, whose final loss must stay below 2."""
    draw(y=np.linspace(0, 1.5, 50), bands={"loss": (0, 2)})
    update_baselines(tmp_path / "records", tmp_path / "baselines")
    return tmp_path / "records", tmp_path / "baselines"


def test_a_live_training_may_differ_within_its_bands(live, draw):
    draw(y=np.linspace(0.5, 1.9, 40), bands={"loss": (0, 2)})
    assert compare(*live) == []


def test_a_live_training_that_leaves_its_band_is_caught_even_after_make_baselines(live, draw):
    draw(y=np.linspace(0, 2.1, 50), bands={"loss": (0, 2)})
    assert changes_of(live) == [("data", "loss leaves its band")]
    update_baselines(*live)
    assert changes_of(live) == [("data", "loss leaves its band")]


def test_a_widened_band_is_caught(live, draw):
    draw(y=np.linspace(0, 2.1, 50), bands={"loss": (0, 3)})
    assert changes_of(live) == [("structure", "bands.loss 2")]


def test_a_removed_band_is_caught(live, draw):
    draw(y=np.linspace(0, 9, 50))
    assert ("structure", "bands.loss") in changes_of(live)


def test_entries_without_a_band_are_not_compared(tmp_path, draw):
    for final in (1.0, 7.0):
        draw(data={"loss": [0.1], "trace": [final]}, bands={"loss": (0, 1)})
        update_baselines(tmp_path / "records", tmp_path / "baselines") if final == 1.0 else None
    assert changes_of((tmp_path / "records", tmp_path / "baselines")) == []


# --- on purpose ---


def test_baselines_are_left_alone_where_nothing_changed(folders, draw):
    before = (folders[1] / f"{NAME}.json").read_bytes()
    draw(y=np.linspace(0, 1, 50) ** 2 + 5e-6, pixels=True)
    assert update_baselines(*folders) == []
    assert (folders[1] / f"{NAME}.json").read_bytes() == before


def test_a_baseline_is_readable_in_a_diff(folders):
    lines = (folders[1] / f"{NAME}.json").read_text().splitlines()
    assert "    0.000416493," in lines, "one number a line, six significant digits"
    assert json.loads("\n".join(lines))["data"]["loss"]["shape"] == [50]


def test_baselines_of_a_failed_run_are_not_taken(folders, draw):
    draw(y=np.zeros(50) + 1, pixels=True)
    (folders[0] / "10_grokking" / "run.json").write_text('{"status": "failed"}')
    before = (folders[1] / f"{NAME}.json").read_bytes()
    with pytest.raises(RegressionError, match="10_grokking is 'failed'"):
        update_baselines(*folders)
    assert (folders[1] / f"{NAME}.json").read_bytes() == before


def test_a_key_used_by_two_notebooks_is_refused(folders, draw):
    draw(notebook="11_circles")
    with pytest.raises(RegressionError, match="two notebooks record figure 'curve': 10_grokking and 11_circles"):
        compare(*folders)


def test_nothing_recorded_says_to_run_the_notebooks(tmp_path):
    with pytest.raises(RegressionError, match="run the notebooks first"):
        compare(tmp_path / "records", tmp_path / "baselines")


def test_what_a_reader_drew_by_hand_is_not_compared(folders, draw):
    draw("sketch", notebook="interactive")
    assert compare(*folders) == []


def test_a_damaged_record_is_named(folders):
    (folders[0] / "10_grokking" / "figures" / "curve.json").write_text("{")
    with pytest.raises(RegressionError, match="record of 10_grokking/curve is damaged"):
        compare(*folders)


# --- the report ---


def test_the_html_report_shows_both_pictures_their_difference_and_the_numbers(folders, draw, tmp_path):
    draw(y=np.linspace(0, 1, 50) ** 3, pixels=True)
    changes = compare(*folders)
    write_html_report(changes, *folders, tmp_path / "report.html")
    page = BeautifulSoup((tmp_path / "report.html").read_text(), "html.parser")
    assert [caption.text for caption in page.find_all("figcaption")] == ["baseline", "now", "difference"]
    assert all(image["src"].startswith("data:image/png;base64,") and image["alt"] for image in page.find_all("img"))
    assert "loss values" in page.find("table").text


def test_the_difference_marks_exactly_the_pixels_that_moved():
    old = np.full((4, 5, 3), 255)
    new = old.copy()
    new[1, 2] = 0
    picture = plt.imread(io.BytesIO(regression._highlight(old, new)), format="png")[..., :3]
    red = (picture[..., 0] > picture[..., 1] + 0.5).nonzero()
    assert [axis.tolist() for axis in red] == [[1], [2]]


def test_another_verdict_a_lost_claim_and_a_new_one_are_caught_and_taken_on_purpose(folders):
    records, baselines = folders

    def judge(**verdicts):
        shutil.rmtree(records / "10_grokking" / "claims", ignore_errors=True)
        (records / "10_grokking" / "claims").mkdir()
        for id, verdict in verdicts.items():
            (records / "10_grokking" / "claims" / f"{id}.json").write_text(json.dumps({"verdict": verdict}))
        return [str(change) for change in compare_verdicts(*folders)]

    assert judge() == []
    judge(M1="reproduced", M2="partly")
    assert len(update_baselines(*folders)) == 2
    assert judge(M1="reproduced", M2="partly") == [] == update_baselines(*folders)
    assert judge(M1="reproduced", M2="refuted") == [
        '10_grokking/M2 [claims] verdict: baseline "partly", now "refuted"'
    ]
    assert judge(M1="reproduced", M3="partly") == [
        '10_grokking/M2 [claims] verdict: baseline "partly", now "none"',
        '10_grokking/M3 [claims] verdict: baseline "none", now "partly"',
    ]
    assert report(compare_verdicts(*folders)).startswith("2 claims do not agree")
    assert len(update_baselines(*folders)) == 2
    assert compare_verdicts(*folders) == []
