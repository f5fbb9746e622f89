"""The figures of the book show what they showed when their baselines were taken, and claims fare as they did."""

from pathlib import Path

import pytest

from bookkit.build.project import Project
from bookkit.build.regression import compare, compare_verdicts, report, write_html_report

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


@pytest.mark.built
def test_every_claim_has_the_verdict_of_its_baseline():
    changes = compare_verdicts(PROJECT.build / "records", PROJECT.root / "tests" / "baselines")
    assert changes == [], report(changes)
