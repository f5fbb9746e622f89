"""What the browser tests share beside the fixtures in conftest.py: screens, small sites, a server for a folder."""

import base64
import re
import shutil
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch

from bookkit.web_components import IMPORT

PHONE, DESK = {"width": 360, "height": 740}, {"width": 1280, "height": 900}


class Quiet(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass


@contextmanager
def serving(folder: Path):
    """Serve a folder on this machine for as long as the context lasts; gives its address, with a final slash."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def in_the_book(shown: object, records: Path | str | None = None) -> str:
    """What a page of the book has of the last line of a cell; what it loads later goes to records, or is not kept."""
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as nowhere:
        patch.setenv("BOOKKIT_RECORDS", str(records or nowhere))
        return shown._repr_html_()


def make_site(folder: Path, page: str, body: str, module: Path) -> Path:
    """A folder with notebooks/`page` around `body`, a page without it, and the module that draws it."""
    around = (
        '<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8"><title>A page</title>'
        '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
        '<style>html[data-theme="dark"] {{ color-scheme: dark; background: #121212 }}</style></head>'
        "<body>{}</body></html>"
    )
    (folder / "notebooks").mkdir()
    (folder / "_static").mkdir()
    (folder / "index.html").write_text(around.format("Nothing here."), "utf8")
    (folder / "notebooks" / page).write_text(around.format(body), "utf8")
    for name in (module.name, *IMPORT.findall(module.read_text("utf8"))):
        shutil.copy(module.parent / name, folder / "_static")
    return folder


def with_sliders(page, address: str):
    """The page at a desk once its sliders are there; by the end of the test it may not have gone wrong either."""
    page.set_viewport_size(DESK)
    page.goto(address)
    page.get_by_role("slider").first.wait_for()
    yield page
    assert page.faults == []


def fixtures_of(element: object, name: str, module: Path):
    """The fixtures `folder`, `address` and `shown` of a test module on one element: its site, served, at a desk."""

    @pytest.fixture(scope="module")
    def folder(tmp_path_factory):
        records = tmp_path_factory.mktemp("records")
        site = make_site(tmp_path_factory.mktemp("site"), name, in_the_book(element, records), module)
        for asset in records.glob("assets/*"):
            shutil.copy(asset, site / "_static")
        return site

    @pytest.fixture(scope="module")
    def address(folder):
        with serving(folder) as address:
            yield address

    @pytest.fixture
    def shown(page):
        yield from with_sliders(page, f"notebooks/{name}")

    return folder, address, shown


def told(page, place: str, beginning: str) -> str:
    """What an element tells at this place, a selector, once it begins so."""
    found = page.locator(place)
    found.filter(has_text=re.compile(f"^{re.escape(beginning)}")).wait_for()
    return found.inner_text()


def words(page) -> str:
    """What the page tells a screen reader of what is shown."""
    return page.get_by_role("status").inner_text()


# In a page: Float32Array -> base64, which `floats` reads.
SEND = """const send = numbers => {
  let out = '';
  for (const byte of new Uint8Array(numbers.buffer)) out += String.fromCharCode(byte);
  return btoa(out);
};"""


def floats(text: str, *shape: int) -> torch.Tensor:
    """What `send` sent."""
    return torch.from_numpy(np.frombuffer(base64.b64decode(text), np.float32).reshape(shape).copy())
