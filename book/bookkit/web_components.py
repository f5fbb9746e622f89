"""Custom elements: figures that a reader moves in the browser, without a kernel.

A module of book/_static/ defines and draws each. A page of the book loads it from beside the page
(`bookkit.sphinx.classic`); where a reader runs the notebook by hand, its source comes with the output, and with it
that of what it imports.

Whoever has anywidget, which the book does not ask for, makes a widget of a module by a subclass of
`anywidget.AnyWidget` with `_esm = whole_source("abacus-adder.mjs")` and for each attribute a trait
`traitlets.Unicode(value).tag(sync=True)`. What a reader enters then stands in these traits, and what Python puts
there is shown.
"""

import base64
import html
import os
import re
from urllib.parse import quote

from bookkit import records
from bookkit.claims import repo_root

IMPORT = re.compile(r'^import \{ [\w, ]+ \} from "\./(?P<module>[\w-]+\.mjs)";\n', re.MULTILINE)


def whole_source(module: str) -> str:
    """The source of a module of book/_static/, that of each module which it imports in the place of the import."""
    source = (repo_root() / "book" / "_static" / module).read_text(encoding="utf-8")
    return IMPORT.sub(lambda found: whole_source(found["module"]).replace("export const", "const"), source)


def element(tag: str, attributes: dict[str, object], words: str, module: str, beneath: str = "") -> str:
    """Markup of one element, with words in its place where nothing draws it, and of the module that does.

    module: name of a file in book/_static/. beneath: markup that stands under the words, such as a table.
    """
    if os.environ.get("BOOKKIT_RECORDS"):
        script = f'<script type="module" src="../_static/{module}"></script>'
    else:
        script = f'<script type="module">{whole_source(module)}</script>'
    written = "".join(f' {name}="{html.escape(str(value))}"' for name, value in attributes.items())
    return f"<{tag}{written}><p>{html.escape(words)}</p>{beneath}</{tag}>\n{script}"


def asset(name: str, data: bytes) -> str:
    """The address of a script that brings `data` to a page: what a module of the page loads once it is asked for.

    `fetched` in tensors.mjs reads it. A run of the book records the script as `name`, and staging puts it beside the
    modules; by hand the address itself holds everything.
    """
    script = f'document.currentScript.data = "{base64.b64encode(data).decode()}";\n'
    if not os.environ.get("BOOKKIT_RECORDS"):
        return f"data:text/javascript,{quote(script)}"
    records.write(records.records_folder() / "assets" / name, script.encode())
    return f"../_static/{name}"
