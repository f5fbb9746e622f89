"""A Sphinx extension: the links under a figure of a chapter begin with one to the cell that draws it.

It leads into the code, which is folded in most cells: a browser opens a fold to show what a link leads to inside it.
"""

from docutils import nodes


def link_code(app, doctree: nodes.document) -> None:
    """From each figure with links under its caption to the code of its cell, where the page shows that."""
    for code in doctree.findall(nodes.container):
        if code.get("nb_element") != "cell_code_source":
            continue
        for legend in code.parent.findall(nodes.legend):
            goal = f"code-{legend.parent['ids'][0]}"
            code["ids"].append(goal)
            legend[0].insert(0, [nodes.reference("", "code", refid=goal), nodes.Text(" · ")])


def setup(app) -> dict:
    app.connect("doctree-read", link_code)
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
