"""A Sphinx extension: lets Sphinx read pages side by side, and keep pages of source code only where they are right.

It reads side by side only if every extension says that it may. And it writes the page of a module again only when the
module changed, though the side bar there shows the titles of chapters.
"""

import shutil
from pathlib import Path


def compare_titles(app, env) -> list[str]:
    """When all is read: let every page of a module be written again if a title in its side bar changed."""
    titles = {name: title.astext() for name, title in env.titles.items()}
    if getattr(env, "bookkit_titles", titles) != titles:
        shutil.rmtree(Path(app.outdir, "_modules"), ignore_errors=True)
    env.bookkit_titles = titles
    return []  # no chapter need be read for that


def setup(app) -> dict:
    # It says nothing. sphinx_external_toc brings it along, and it numbers sections in one process when all are read.
    app.extensions["sphinx_multitoc_numbering"].parallel_read_safe = True
    app.connect("env-updated", compare_titles)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
