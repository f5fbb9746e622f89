"""A headless browser for what only a browser can do: pages on paper, pictures of live elements, tests."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 300_000  # ms that a browser may take over anything: whoever waits, waits for an event
# As without a network: no name can be looked up. (Intercepting requests instead would switch off the cache.)
QUIET = (
    """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync""".split()
    + ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
)


class NoBrowser(RuntimeError):
    """This machine has none of the browsers; the message says which would do."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser that this machine has, for as long as the context lasts. Raises NoBrowser."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise NoBrowser(
            f"This needs one of {', '.join(NAMES)} on the PATH (on Debian and Ubuntu: apt install chromium)"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=QUIET, timeout=PATIENCE)
        yield browser
        browser.close()
