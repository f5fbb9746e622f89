"""A damaged file is refused in words that say what to do, by whoever reads it."""

import json
import shutil

import numpy as np
import pytest
from tiny_book import make_tiny_book

from bookkit.build import pages, regression, staging
from bookkit.claims import ClaimError, load_claims, read_records
from bookkit.files import FileProblem, read_json

NOT_TEXT = b'{"id": "\xff"}'


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"3", b"null", NOT_TEXT, b'{"n": "three"}', b"{}"])
def test_what_is_not_the_object_that_was_written_is_refused(tmp_path, content):
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(FileProblem, match="run.json is damaged .*: make it again"):
        read_json(tmp_path / "run.json", {"n": int})


def test_what_was_written_is_read(tmp_path):
    (tmp_path / "run.json").write_text('{"n": 3, "more": null}')
    assert read_json(tmp_path / "run.json", {"n": int | None}) == {"n": 3, "more": None}


@pytest.mark.parametrize("content", [NOT_TEXT, b'{"id": "A-01"}', b'{"id": {}}'])
def test_a_damaged_record_of_a_claim_names_the_chapter_to_run(tmp_path, content):
    (tmp_path / "10_waves" / "claims").mkdir(parents=True)
    (tmp_path / "10_waves" / "claims" / "A-01.json").write_bytes(content)
    with pytest.raises(ClaimError, match="10_waves/claims/A-01.json is damaged: run 10_waves again"):
        read_records(tmp_path)


def test_claims_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "000.yaml").write_bytes(b"- id: A-01\n  statement: \xff\n")
    with pytest.raises(ClaimError, match="000.yaml is not valid YAML"):
        load_claims(tmp_path)


@pytest.fixture
def book(tmp_path):
    return tmp_path, make_tiny_book(tmp_path)


@pytest.mark.parametrize(
    "damage", [lambda text: text[:500], lambda text: "", lambda text: text.replace('"cells": [', '"cells": [3, ')]
)
def test_a_damaged_executed_notebook_is_not_published(book, damage, monkeypatch):
    root, build = book
    monkeypatch.setattr(pages, "scoreboard_markdown", lambda *_: "# Scoreboard\n")
    path = build / "executed" / "10_waves.ipynb"
    path.write_text(damage(path.read_text()))
    with pytest.raises(staging.StagingError, match="10_waves.ipynb is damaged; execute it again"):
        staging.stage(root, build)


@pytest.mark.parametrize("field, value", [("seconds", "long"), ("versions", {"python": 3}), ("parameters", [])])
def test_a_damaged_record_of_a_run_is_named(book, field, value):
    root, build = book
    path = build / "records" / "10_waves" / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    with pytest.raises(FileProblem, match=f"10_waves/run.json is damaged .*{field}"):
        pages.environment_markdown(root, build)


@pytest.mark.parametrize("suffix", [".json", ".npz"])
@pytest.mark.parametrize(
    "damage", [lambda content: content[:100], lambda content: b"", lambda content: b"x" + content]
)
def test_a_damaged_record_of_a_figure_names_its_chapter(book, tmp_path, suffix, damage):
    root, build = book
    figures = build / "records" / "10_waves" / "figures"
    (path,) = figures.glob(f"*{suffix}")
    path.write_bytes(damage(path.read_bytes()))
    shutil.copytree(figures, tmp_path / "baselines" / "10_waves")
    with pytest.raises(regression.RegressionError, match="record of 10_waves/tiny-wave is damaged; run its chapter"):
        regression.compare(build / "records", tmp_path / "baselines")


def test_arrays_that_are_whole_are_read(tmp_path):
    record = {"bands": {}, "data": {}, "matplotlib": "3", "pixels": False, "structure": {}, "tolerance": {}}
    path = tmp_path / "10_waves" / "figures" / "wave.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(record))
    np.savez(path.with_suffix(".npz"), x=np.arange(3))
    read, arrays = regression._load(path)
    assert read == record and arrays["x"].tolist() == [0, 1, 2]
