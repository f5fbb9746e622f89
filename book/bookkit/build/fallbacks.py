"""Pictures of the live elements, for readers without scripts and for paper, taken from the built site in a browser:

    python -m bookkit.build.fallbacks       writes book/_static/fallback/

To be called again, after `make book`, when an element or what it begins with looks different.
`bookkit.sphinx.fallback` puts them on the pages.
"""

import io
import sys

from PIL import Image
from playwright.sync_api import Page
from tqdm import tqdm

from bookkit.build import browser
from bookkit.build.project import Project
from bookkit.files import FileProblem, write_atomic
from bookkit.sphinx.fallback import ELEMENT, PICTURE, alternatives, picture

DESK = {"width": 1280, "height": 2400}  # as wide, and so high that nothing covers a part of an element
SCALE = 1.25  # pixels of the picture to one of the page: sharp enough on paper, and small
LIMIT = 60_000  # bytes of a picture
TWO_FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def take(tab: Page, address: str, tag: str) -> bytes:
    """The element of this name on a page, as it begins, as WebP."""
    tab.goto(address)
    tab.locator(tag).get_by_role("status").first.wait_for()
    for bar in tab.locator(f"{tag} progress").all():  # what it computes at the beginning
        bar.wait_for(state="hidden")
    tab.evaluate(TWO_FRAMES)
    shot = io.BytesIO(tab.locator(tag).first.screenshot(animations="disabled", scale="device"))
    return compressed(Image.open(shot).convert("RGB"))


def compressed(image: Image.Image) -> bytes:
    """As WebP, as good as fits."""
    for quality in range(70, 0, -10):
        content = io.BytesIO()
        image.save(content, "webp", quality=quality, method=6)
        if content.tell() <= LIMIT:
            return content.getvalue()
    raise ValueError(f"no quality makes an element of {image.size} pixels fit in {LIMIT} bytes")


def main() -> int:
    project = Project.find()
    known = alternatives(project.root)
    found = [
        (page, element["tag"])
        for page in sorted(project.site.glob("*/*.html"))
        for element in ELEMENT.finditer(PICTURE.sub("", page.read_text(encoding="utf-8")))
        if element["tag"] in known
    ]
    if not found:
        print(f"There is no live element in {project.site}. Build the book first: make book", file=sys.stderr)
        return 1
    folder = project.root / "book" / "_static" / "fallback"
    try:
        with browser.chromium() as started:
            tab = started.new_page(viewport=DESK, device_scale_factor=SCALE, color_scheme="light")
            tab.set_default_timeout(browser.PATIENCE)
            for page, tag in tqdm(found, "pictures", disable=None):
                write_atomic(folder / picture(tag, page.stem), take(tab, page.as_uri(), tag))
    except (browser.NoBrowser, FileProblem) as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
