"""The figures of the book show what they showed when their baselines were taken."""

from pathlib import Path

import pytest

from bookkit.build.project import Project
from bookkit.build.regression import compare, report, write_html_report

PROJECT = Project(Path(__file__).resolve().parents[2])


@pytest.mark.built
def test_every_figure_agrees_with_its_baseline():
    records, baselines = PROJECT.build / "records", PROJECT.root / "tests" / "baselines"
    changes = compare(records, baselines)
    page = PROJECT.build / "figures.html"
    page.unlink(missing_ok=True)
    if changes:
        write_html_report(changes, records, baselines, page)
    assert changes == [], f"{report(changes)}\nside by side: {page}"
