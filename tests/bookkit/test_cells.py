"""The way from a figure to the code of its cell."""

from docutils import nodes

from bookkit.sphinx.cells import link_code


def part(element, *children):
    """What MyST-NB makes of a part of a notebook."""
    return nodes.container("", *children, nb_element=element)


def drawn(key):
    """A figure with the links that staging puts under it."""
    legend = nodes.legend("", nodes.paragraph("", "data"))
    return nodes.figure("", nodes.image(), nodes.caption(), legend, ids=[key])


def linked(*cells):
    """The page with these cells: what stands under each figure, where links there lead, ids of each piece of code."""
    page = nodes.document(None, None)
    page += cells
    link_code(None, page)
    under = [legend.astext() for legend in page.findall(nodes.legend)]
    code = [node["ids"] for node in page.findall(nodes.container) if node["nb_element"] == "cell_code_source"]
    return under, [link["refid"] for link in page.findall(nodes.reference)], code


def test_each_figure_leads_to_the_code_of_its_own_cell():
    cells = [part("cell_code", part("cell_code_source"), part("cell_code_output", drawn(key))) for key in ("a", "b")]
    between = part("cell_code", part("cell_code_source"), part("cell_code_output", nodes.paragraph("", "1")))
    goals = ["code-a", "code-b"]
    assert linked(cells[0], between, cells[1]) == (["code · data"] * 2, goals, [["code-a"], [], ["code-b"]])


def test_a_figure_whose_code_is_not_shown_has_no_link_to_it():
    bare = part("cell_code", part("cell_code_output", drawn("a")))
    assert linked(bare, part("cell_code", part("cell_code_source"))) == (["data"], [], [[]])


def test_a_picture_in_the_text_is_no_figure_of_a_cell():
    assert linked(drawn("a"), part("cell_code", part("cell_code_source"))) == (["data"], [], [[]])
