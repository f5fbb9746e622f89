"""For every test: no clock decides one; Coq; and a headless Chromium, for modules that define `address`."""

import os
import shutil

import hypothesis
import pytest

import bookkit.build  # noqa: F401  thousands of tests are held in memory: here, too, garbage is rarely looked for

# Test files run side by side, one a core: each then has one thread, here and in the programs that it starts. Before
# `browsing`, which imports torch: from then on it is too late.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

from browsing import PHONE  # noqa: E402

from bookkit.build import browser  # noqa: E402

# An example that takes long on a busy machine is not wrong; continuous integration draws the same ones every time.
hypothesis.settings.register_profile("suite", deadline=None, derandomize=os.environ.get("CI") == "true")
hypothesis.settings.load_profile("suite")

# Files go to the processes in this order, and one that takes minutes, begun last, would run on alone.
LONGEST = (
    "test_site_browser.py", "test_ch72_proof_assistant.py", "test_workflow.py", "test_ch72_certified_adder.py",
    "test_ch82_published_tables.py",
)  # fmt: skip


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.name not in LONGEST)


def lacking(message):
    """Fails in continuous integration, which installs everything, and skips elsewhere."""
    pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)


@pytest.fixture
def coq():
    if shutil.which("coqc") is None:
        lacking("no coqc on the PATH; install Coq to check the proofs")


@pytest.fixture(scope="module")  # not longer: playwright keeps an event loop, and other tests run their own
def chromium():
    try:
        with browser.chromium() as started:
            yield started
    except browser.NoBrowser as none:
        lacking(str(none))


@pytest.fixture(scope="module")
def context(chromium, address):
    context = chromium.new_context(viewport=PHONE, color_scheme="light", base_url=address)
    context.set_default_timeout(browser.PATIENCE)
    yield context
    context.close()


@pytest.fixture(scope="module")
def tab(context, address):
    """One for all tests of a module: a new one costs as much as half of what a page is asked."""
    tab = context.new_page()
    tab.faults = faults = []

    def note_other_hosts(request):
        if not request.url.startswith((address, "data:", "blob:")):  # a blob is what the page itself made
            faults.append(f"asked for {request.url}")

    def note_errors(message):  # among them every answer of 400 and above, and every request without one
        if message.type == "error":
            faults.append(f"console: {message.text} {message.location['url']}")

    tab.on("request", note_other_hosts)
    tab.on("console", note_errors)
    tab.on("pageerror", lambda error: faults.append(f"error: {error}"))
    return tab


@pytest.fixture
def page(tab):
    """The size of a phone, in light; `page.faults` collects what went wrong in a test."""
    tab.set_viewport_size(PHONE)
    tab.emulate_media(media="null", color_scheme="light", reduced_motion="null")
    tab.faults.clear()
    yield tab
    tab.evaluate("localStorage.clear()")
    tab.goto("about:blank")  # what a page still asks for or counts ends here
