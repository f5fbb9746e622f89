"""No line ends between a number and its percent sign."""

import pytest
from docutils import nodes

from bookkit.sphinx import spacing


def read(*parts):
    """The text of a page of one paragraph, as it is once it was read."""
    page = nodes.document(None, None)
    page += nodes.paragraph("", "", *parts)
    spacing.join(None, page)
    return page.astext()


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("95 % of 100 % are", "95_% of 100_% are"),
        (" % right", "_% right"),
        ("5 %d and a % b", "5 %d and a % b"),
        ("some % of 3 and 95%", "some % of 3 and 95%"),
    ],
)
def test_a_percent_sign_stays_with_its_number(text, joined):
    found = read(nodes.inline("", "12"), nodes.Text(text))
    assert found == "12" + joined.replace("_", "\N{NO-BREAK SPACE}")


def test_what_is_typed_as_code_stays_as_it_is():
    assert read(nodes.literal("", "7 % 3")) == "7 % 3"
