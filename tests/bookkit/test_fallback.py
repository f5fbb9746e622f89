"""Pictures of live elements: seen where no script draws these and on paper, and not even asked for elsewhere."""

import html
import io
import os
import re
import shutil
from pathlib import Path
from unittest.mock import MagicMock

import pytest
import yaml
from browsing import DESK, serving
from PIL import Image

from bookkit.build import fallbacks
from bookkit.build.fallbacks import LIMIT, compressed
from bookkit.build.project import Project
from bookkit.sphinx import fallback

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "book" / "_build" / "html"
ALTERNATIVES = yaml.safe_load((ROOT / "book" / "fallbacks.yaml").read_text("utf8"))
SCRIPT = '<script defer src="../_static/wave.js"></script>'
WAVE = '<wave-line a="&quot;1 &gt; 0&quot;"><p>In words.</p></wave-line>'


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A book with one live element and its picture."""
    (tmp_path / "book" / "_static" / "fallback").mkdir(parents=True)
    (tmp_path / "book" / "fallbacks.yaml").write_text('wave-line: A "wave"\nwave-line brief: A ripple\n')
    taken = tmp_path / "book" / "_static" / "fallback" / "wave-line-10_waves.webp"
    Image.new("RGB", (60, 40), "#c03").save(taken)
    monkeypatch.setattr(fallback, "repo_root", lambda: tmp_path)
    return tmp_path


def test_an_element_begins_with_its_picture(book):
    shown = fallback.with_pictures(f"<p>Text</p>{WAVE}", "notebooks/10_waves", "../_static")
    assert shown == (
        '<p>Text</p><wave-line a="&quot;1 &gt; 0&quot;"><img class="fallback" '
        'src="../_static/fallback/wave-line-10_waves.webp" alt="A &quot;wave&quot;" width="60" height="40" '
        'loading="lazy"><p>In words.</p></wave-line>'
    )


def test_a_brief_element_has_words_of_its_own_and_an_unknown_one_none(book):
    brief = '<wave-line a="1" brief=""><p>In words.</p></wave-line>'
    assert 'alt="A ripple"' in fallback.with_pictures(brief, "notebooks/10_waves", ".")
    unknown = "<claim-filter><p>In words.</p></claim-filter>"
    assert fallback.with_pictures(unknown, "notebooks/10_waves", ".") == unknown


def test_a_page_can_be_built_before_its_picture_is_taken(book):
    assert fallback.with_pictures(WAVE, "notebooks/11_more", ".") == WAVE


def test_a_picture_is_as_good_as_fits():
    noise = Image.effect_noise((420, 420), 60).convert("RGB")
    best = io.BytesIO()
    noise.save(best, "webp", quality=70)
    assert best.tell() > LIMIT * 1.1 and LIMIT * 0.5 < len(compressed(noise)) <= LIMIT
    with pytest.raises(ValueError, match="no quality"):
        compressed(Image.effect_noise((900, 900), 80).convert("RGB"))


def test_a_picture_that_cannot_be_written_leaves_the_one_before(book, monkeypatch, capsys):
    page = book / "book" / "_build" / "html" / "notebooks" / "10_waves.html"
    page.parent.mkdir(parents=True)
    page.write_text(fallback.with_pictures(WAVE, "notebooks/10_waves", "../_static"), "utf8")
    monkeypatch.setattr(Project, "find", lambda: Project(book))
    monkeypatch.setattr(fallbacks.browser, "chromium", MagicMock())
    monkeypatch.setattr(fallbacks, "take", lambda tab, address, tag: address.encode())
    taken = book / "book" / "_static" / "fallback" / "wave-line-10_waves.webp"
    before = taken.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", MagicMock(side_effect=OSError("no space")))
        assert fallbacks.main() == 1
    assert "could not write" in capsys.readouterr().err
    assert taken.read_bytes() == before and [*taken.parent.iterdir()] == [taken]
    assert fallbacks.main() == 0 and taken.read_bytes() == page.as_uri().encode()


def test_every_element_that_leaves_paper_to_its_words_has_a_description():
    modules = [path.read_text("utf8") for path in (ROOT / "book" / "_static").glob("*.mjs")]
    live = {re.search(r'^define\("([\w-]+)"', text, re.M)[1] for text in modules if "<slot></slot>" in text}
    assert len(live) == 9 and {name.removesuffix(" brief") for name in ALTERNATIVES} == live
    assert all(len(alt) > 80 for alt in ALTERNATIVES.values())


@pytest.mark.built
def test_every_element_on_every_page_has_its_picture():
    seen = set()
    for page in SITE.glob("*/*.html"):
        text = page.read_text("utf8")
        for element in fallback.ELEMENT.finditer(fallback.PICTURE.sub("", text)):
            if (tag := element["tag"]) in ALTERNATIVES:
                alt = html.escape(ALTERNATIVES[f"{tag} brief" if element["brief"] else tag])
                name = f"_static/fallback/{tag}-{page.stem}.webp"
                assert f'<img class="fallback" src="../{name}" alt="{alt}"' in text
                assert (SITE / name).stat().st_size <= LIMIT
                seen.add(tag)
    assert len(seen) == 9


@pytest.fixture
def address(book):
    """A page with the element, and the style sheet of the book."""
    body = fallback.with_pictures(WAVE, "notebooks/10_waves", "../_static")
    page = (
        '<!doctype html><html lang="en"><head><title>A page</title><link rel="icon" href="data:,">'
        f'<link rel="stylesheet" href="../_static/book.css"></head>'
        f'<body><main class="bd-content"><div class="cell_output">{body}{SCRIPT}</div></main></body></html>'
    )
    (book / "book" / "notebooks").mkdir()
    (book / "book" / "notebooks" / "page.html").write_text(page, "utf8")
    shutil.copy(ROOT / "book" / "_static" / "book.css", book / "book" / "_static")
    draw = """customElements.define("wave-line", class extends HTMLElement {
        connectedCallback() {
            this.attachShadow({ mode: "open" }).innerHTML = `<style>slot { display: none }
                @media print { slot { display: block } p { display: none } }</style><p>Drawn.</p><slot></slot>`
        }
    })"""
    (book / "book" / "_static" / "wave.js").write_text(draw)
    with serving(book / "book") as address:
        yield address


@pytest.mark.browser
@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_the_picture_is_seen_on_paper_and_without_scripts_and_asked_for_nowhere_else(chromium, address, scripts):
    context = chromium.new_context(java_script_enabled=scripts, viewport=DESK, base_url=address)
    page = context.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
    page.goto("notebooks/page.html", wait_until="networkidle")
    shown = page.locator(".fallback")
    assert shown.is_visible() != scripts and page.get_by_text("Drawn.").count() == scripts
    assert ("wave-line-10_waves.webp" in asked) != scripts
    page.emulate_media(media="print")
    shown.evaluate("image => image.decode()")
    assert shown.is_visible() and shown.evaluate("image => image.naturalWidth") == 60
    assert not page.get_by_text("Drawn.").is_visible()
    context.close()
