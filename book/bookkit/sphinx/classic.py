"""A Sphinx extension: live elements draw on pages that are opened as files, where browsers load no module.

Each module that a page loads lies beside itself once more, with what it imports, as one script of the older kind, and
the page loads that one, once.
"""

import re
from pathlib import Path

from bookkit.web_components import whole_source

LOADED = re.compile(r'<script type="module" src="(?P<place>[^"]*_static/(?P<name>[\w-]+))\.mjs"></script>')
EXPORT = re.compile(r"^export (?:default .*\n)?", re.MULTILINE)


def classic(module: str) -> str:
    """A module of book/_static/ as a script that shares no name with others."""
    return f'(() => {{\n"use strict";\n{EXPORT.sub("", whole_source(module))}}})();\n'


def without_modules(page: str) -> str:
    """The HTML of a page that loads the scripts instead. A script, unlike a module, runs each time it is named.

    >>> without_modules('<script type="module" src="../_static/wave.mjs"></script>' * 2)
    '<script defer src="../_static/wave.js"></script>'
    """
    loaded = set()

    def script(found: re.Match) -> str:
        place = found["place"]
        again = place in loaded
        loaded.add(place)
        return "" if again else f'<script defer src="{place}.js"></script>'

    return LOADED.sub(script, page)


def load_scripts(app, problem: Exception | None) -> None:
    """On every page that was written, and write the scripts; anew those of pages that an earlier build wrote."""
    if problem is not None or app.builder.format != "html":
        return
    static = Path(app.outdir, "_static")
    names = {module.stem for module in static.glob("*.mjs") if module.with_suffix(".js").exists()}
    for path in Path(app.outdir).rglob("*.html"):
        page = path.read_text("utf8")
        if loaded := {found["name"] for found in LOADED.finditer(page)}:
            names |= loaded
            path.write_text(without_modules(page), "utf8")
    for name in names:
        (static / f"{name}.js").write_text(classic(f"{name}.mjs"), "utf8")


def setup(app) -> dict:
    app.connect("build-finished", load_scripts)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
