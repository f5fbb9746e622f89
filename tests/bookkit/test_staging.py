"""What staging publishes, and what it refuses."""

import json
import os
from pathlib import Path

import nbformat
import numpy as np
import pytest
import yaml
from nbformat.v4 import new_code_cell, new_output
from tiny_book import ALT, KEY, figure_output, make_tiny_book

from bookkit.build import staging
from bookkit.build.staging import StagingError, stage


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A tiny book before staging, with a plain page instead of the scoreboard: (root, build)."""
    monkeypatch.setattr(staging.pages, "scoreboard_markdown", lambda *_: "# Scoreboard\n")
    return tmp_path, make_tiny_book(tmp_path)


@pytest.fixture
def waves(book):
    """The staged second chapter."""
    return nbformat.read(stage(*book) / "notebooks" / "10_waves.ipynb", as_version=4)


def change(build, name, **fields):
    """Change fields of the last executed cell of a chapter."""
    path = build / "executed" / name
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[-1].update(fields)
    nbformat.write(notebook, path)


def test_the_staged_folder_is_laid_out_like_the_repository(book):
    folder = stage(*book)
    for name in ("_config.yml", "_toc.yml", "book/index.md", "book/scoreboard.md", "notebooks/00_opening.ipynb"):
        assert (folder / name).is_file(), name
    assert not (folder / "book" / "_build").exists()


def test_the_side_bar_has_the_number_of_a_chapter_before_its_title(book):
    contents = yaml.safe_load((stage(*book) / "_toc.yml").read_text(encoding="utf-8"))
    titles = {entry["file"]: entry.get("title") for entry in contents["chapters"]}
    assert titles["notebooks/00_opening"] == "00 · Opening" and titles["notebooks/10_waves"] == "10 · Waves"
    assert titles["book/scoreboard"] is None
    assert (
        nbformat.read(book[1] / "stage" / "notebooks" / "10_waves.ipynb", 4).cells[0].source.startswith("# Waves\n")
    )


def test_what_elements_load_later_lies_beside_their_modules(book):
    assets = book[1] / "records" / "10_waves" / "assets"
    assets.mkdir()
    (assets / "tides.mjs").write_text("document.currentScript.data = '';", "utf8")
    assert (stage(*book) / "book" / "_static" / "tides.mjs").read_text("utf8") == "document.currentScript.data = '';"


def test_what_is_no_longer_in_the_book_leaves_the_staged_folder(book):
    root, build = book
    stage(root, build)
    (root / "book" / "api.md").unlink()
    assert not (stage(root, build) / "book" / "api.md").exists()


def test_a_figure_gets_label_caption_and_alternative_text(waves):
    (cell,) = [cell for cell in waves.cells if "mystnb" in cell.metadata]
    assert cell.metadata.mystnb.figure.name == KEY
    assert cell.metadata.mystnb.figure.caption.startswith("One period")
    assert cell.metadata.mystnb.image.alt == ALT
    assert list(cell.outputs[0].data) == ["image/svg+xml"]


def test_the_plotted_data_can_be_downloaded(book):
    data = json.loads((stage(*book) / "figures" / f"{KEY}.json").read_text())
    x = np.linspace(0, 2 * np.pi, 20)
    np.testing.assert_allclose(data["y"], np.sin(x), atol=1e-5)
    assert data["peak"] == 1.0


def test_missing_values_are_null_in_the_data():
    assert json.loads(staging._readable_json({"a": np.array([1.0, np.nan])})) == {"a": [1.0, None]}


def test_progress_widgets_and_places_are_removed_and_results_kept(book, waves):
    train = next(cell for cell in waves.cells if cell.source == "train()")
    assert [output.text for output in train.outputs] == ["saved runs/wave\n"]
    assert str(book[0]) not in nbformat.writes(waves)
    assert not any("papermill" in holder.metadata for holder in (waves, *waves.cells))


def test_a_warning_is_no_progress_bar():
    text = "UserWarning: 5% of the rows are lost\n 50%|#####     | 5/10 [00:01<00:01,  4.9it/s]\n"
    output = staging._clean_output(new_output("stream", name="stderr", text=text))
    assert output.text.strip() == "UserWarning: 5% of the rows are lost"


def test_a_widget_with_a_static_picture_keeps_the_picture():
    data = {staging.WIDGET_VIEW: {"model_id": "1"}, "text/plain": "IntSlider()", "image/svg+xml": "<svg/>"}
    output = staging._clean_output(new_output("display_data", data=data))
    assert set(output.data) == {"text/plain", "image/svg+xml"}


def test_injected_parameters_are_folded_and_do_not_make_the_notebook_stale(waves):
    (cell,) = [cell for cell in waves.cells if "injected-parameters" in cell.metadata.get("tags", [])]
    assert "hide-input" in cell.metadata.tags


def test_a_notebook_that_was_not_executed_is_refused(book):
    (book[1] / "executed" / "10_waves.ipynb").unlink()
    with pytest.raises(StagingError, match="10_waves.ipynb has not been executed"):
        stage(*book)


def test_an_error_output_is_refused(book):
    error = new_output("error", ename="ValueError", evalue="no grokking", traceback=[])
    change(book[1], "00_opening.ipynb", outputs=[error])
    with pytest.raises(StagingError, match="00_opening.ipynb, cell 1 failed: ValueError: no grokking"):
        stage(*book)


def test_a_cell_that_was_not_executed_is_refused(book):
    change(book[1], "00_opening.ipynb", execution_count=None)
    with pytest.raises(StagingError, match=r"cell 1 was not executed: '1 \+ 1'"):
        stage(*book)


def test_a_notebook_executed_from_another_source_is_refused(book):
    change(book[1], "00_opening.ipynb", source="1 + 2")
    with pytest.raises(StagingError, match="another source"):
        stage(*book)


def test_text_is_taken_from_the_present_notebook_around_what_ran(book):
    root, build = book
    path = root / "notebooks" / "10_waves.ipynb"
    source = nbformat.read(path, as_version=4)
    source.cells[0].source = "# Tides"
    del source.cells[-1]
    source.cells.insert(3, nbformat.v4.new_markdown_cell("A word between."))
    nbformat.write(source, path)
    staged = nbformat.read(stage(root, build) / "notebooks" / "10_waves.ipynb", as_version=4)
    shown = [cell.source for cell in staged.cells]
    assert [shown[0], *shown[2:4]] == ["# Tides", "retrain = False", "retrain = True"], (
        "what papermill put there stays in its place"
    )
    assert shown.index("A word between.") == 5 and shown[-1] == "glue(...)"
    assert any(cell.get("outputs") for cell in staged.cells)


def test_what_stays_the_same_keeps_its_time_stamp_in_the_staged_folder(book):
    root, build = book
    folder = stage(root, build)
    for path in folder.rglob("*.*"):
        os.utime(path, (1, 1))
    with (root / "book" / "index.md").open("a") as file:
        file.write("More.")
    stage(root, build)
    new = {path.name for path in folder.rglob("*.*") if path.is_file() and path.stat().st_mtime > 1}
    assert new == {"index.md", "_toc.yml"}, "the second tells the workflow that the folder is up to date"


def test_a_figure_without_recorded_data_is_refused(book):
    (book[1] / "records" / "10_waves" / "figures" / f"{KEY}.npz").unlink()
    with pytest.raises(StagingError, match=f"'{KEY}' but recorded no data"):
        stage(*book)


def test_every_reason_is_named_at_once_and_the_staged_folder_stays(book):
    folder = stage(*book)
    change(book[1], "00_opening.ipynb", execution_count=None)
    (book[1] / "executed" / "10_waves.ipynb").unlink()
    with pytest.raises(StagingError, match="(?s)00_opening.*10_waves"):
        stage(*book)
    assert (folder / "notebooks" / "10_waves.ipynb").is_file()


@pytest.mark.parametrize(
    "second", [figure_output("<svg/>", key="other"), new_output("execute_result", data={"text/plain": "1"})]
)
def test_a_figure_shares_its_cell_with_nothing(second):
    cell = new_code_cell("figure(...)", outputs=[figure_output("<svg/>"), second])
    with pytest.raises(StagingError, match="a cell of its own"):
        staging.add_figure_metadata(nbformat.v4.new_notebook(cells=[cell]))


def test_a_glued_number_may_stand_beside_a_figure():
    glued = new_output(
        "display_data",
        data={"application/papermill.record/text/plain": "3"},
        metadata={"scrapbook": {"name": "n", "mime_prefix": "application/papermill.record/"}},
    )
    cell = new_code_cell("figure(...)", outputs=[glued, figure_output("<svg/>")])
    assert staging.add_figure_metadata(nbformat.v4.new_notebook(cells=[cell])) == [KEY]


@pytest.mark.parametrize(
    ("inches", "points", "width"), [(5.6, 11, None), (5.6, 10, "356px"), (5.6, 8, "442px"), (7.2, 11, "414px")]
)
def test_a_figure_whose_text_a_phone_would_shrink_too_much_keeps_the_width_that_it_needs(inches, points, width):
    output = figure_output("<svg/>")
    output.metadata["bookkit"] |= {"inches": inches, "points": points}
    cell = new_code_cell("figure(...)", outputs=[output])
    staging.add_figure_metadata(nbformat.v4.new_notebook(cells=[cell]))
    image = cell.metadata["mystnb"]["image"]
    assert ("wide" in image.get("classes", "")) == (width is not None)
    assert image.get("width") == width


def test_marked_places_of_the_front_page_are_filled_in(book, monkeypatch):
    root, build = book
    (root / "book" / "index.md").write_text("# Tiny\n\n<!-- findings -->\n\n<!-- other -->\n")
    made = {b"<!-- findings -->": lambda *_: "1. Größen.", b"<!-- sources -->": None}
    monkeypatch.setattr(staging, "MADE_HERE", made)
    front = (stage(root, build) / "book" / "index.md").read_text("utf8")
    assert front == "# Tiny\n\n1. Größen.\n\n<!-- other -->\n"


def test_the_page_on_running_the_book_begins_with_how_to_get_it(book):
    root, build = book
    page = (Path(__file__).resolve().parents[2] / "book" / "how_to_run.md").read_text("utf8")
    assert page.startswith("# How to run it\n\n<!-- clone -->\n")
    (root / "book" / "how_to_run.md").write_text(page, encoding="utf-8")
    shown = (stage(root, build) / "book" / "how_to_run.md").read_text("utf8")
    assert shown == page.replace("<!-- clone -->", "Unpack or clone the repository, and change into its folder.")


def test_the_front_page_can_show_what_a_cell_puts_out():
    def notebook(*outputs):
        cell = new_code_cell("adder", id="adder", outputs=[new_output("execute_result", data) for data in outputs])
        return {"notebooks/one.ipynb": nbformat.writes(nbformat.v4.new_notebook(cells=[cell])).encode()}

    html = {"text/html": "<p>Größe</p>", "text/plain": "size"}
    shown = staging._output(notebook({"text/plain": "first"}, html), b"adder", b"notebooks/one.ipynb")
    assert shown.decode() == "```{raw} html\n<p>Größe</p>\n```"
    for files, cell in ((notebook({"text/plain": "5"}), b"adder"), (notebook(html), b"other"), ({}, b"adder")):
        with pytest.raises(StagingError, match="book/index.md shows (adder|other) of notebooks/one.ipynb"):
            staging._output(files, cell, b"notebooks/one.ipynb")
