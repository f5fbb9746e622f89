"""Every page of the built book, opened in headless Chromium with every other host unreachable."""

import re
from pathlib import Path

import pytest
from browsing import DESK, PHONE, serving

pytestmark = [pytest.mark.browser, pytest.mark.built]

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "book" / "_build" / "html"
WRITTEN = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html") if "_static" not in path.parts)
# Pages of source code differ in length alone: the longest stands for all.
SOURCE = [name for name in WRITTEN if name.startswith("_modules/")]
# The address of the book only leads to its first page.
PAGES = sorted({*WRITTEN} - {*SOURCE, "index.html"})
PAGES += sorted(SOURCE, key=lambda name: (SITE / name).stat().st_size)[-1:]
CHAPTERS = [name for name in WRITTEN if name.startswith("notebooks/")]
EXPLORERS = [name for name in CHAPTERS if "<petal-explorer" in (SITE / name).read_text("utf8")]
VIEWERS = [name for name in CHAPTERS if "<helix-viewer" in (SITE / name).read_text("utf8")]
STEPPERS = [name for name in CHAPTERS if "<hop-stepper" in (SITE / name).read_text("utf8")]
ADDERS = [name for name in CHAPTERS if "<certified-adder" in (SITE / name).read_text("utf8")]
NETWORKS = [name for name in CHAPTERS if "<grokked-network" in (SITE / name).read_text("utf8")]
ABACI = [name for name in CHAPTERS if "<abacus-adder" in (SITE / name).read_text("utf8")]
TRAININGS = [name for name in CHAPTERS if "<grokking-here" in (SITE / name).read_text("utf8")]
MULTIPLIERS = [name for name in CHAPTERS if "<long-multiplication" in (SITE / name).read_text("utf8")]
FORMATS = [name for name in CHAPTERS if "<format-explorer" in (SITE / name).read_text("utf8")]
FILTERED = ["book/scoreboard.html", *(name for name in WRITTEN if name.startswith("book/source-"))]
# Elements that are moved by hand.
LIVE = (
    "petal-explorer, helix-viewer, hop-stepper, certified-adder, grokked-network, abacus-adder, long-multiplication, "
    "grokking-here, format-explorer"
)

AXE = ROOT / "tests" / "vendor" / "axe-core" / "axe.min.js"
# WCAG 2.1 AA and what axe-core counts as good practice beyond it: every rule of theirs, and one that it has retired.
STANDARD = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
RETIRED = {"duplicate-id": {"enabled": True}}
# Dark mode changes colours and nothing else.
COLOURS = ["color-contrast", "link-in-text-block"]
# The theme lets the Tab key stop at what scrolls, a moment after the page has changed.
TAB_STOPS_ARE_SET = """[
    ...document.querySelectorAll(
        'pre, .cell_output > .output, .pst-scrollable-table-container, .jp-RenderedHTMLCommon'
    ),
].every(e => (e.tabIndex === 0) === (e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight))"""
# What holds for one word of a listing holds for all of its colour in listings at such a place, and so in signatures;
# the strokes of an equation hold no text, and what it says is one text: of a long page more than half the elements,
# for which the audit would take thrice as long. Folds are open, but for the rules of the scoreboard, hundreds alike.
SHORTEN = """() => {
    for (const fold of document.querySelectorAll('details:not(.claim *)')) fold.open = true
    for (const strokes of document.querySelectorAll('mjx-container svg')) strokes.replaceChildren()
    for (const said of document.querySelectorAll('mjx-container math')) said.replaceChildren(said.textContent)
    const seen = new Set(), place = e => e ? `${place(e.parentElement)} ${e.className}` : ''
    const keepOne = (word, around) => {
        const kind = `${around} ${word.className} ${word.style.cssText}`
        if (seen.has(kind)) word.replaceWith(...word.childNodes)
        seen.add(kind)
    }
    for (const listing of document.querySelectorAll('.highlight pre')) {
        const around = place(listing)
        for (const word of listing.querySelectorAll('span')) keepOne(word, around)
        listing.normalize()
    }
    for (const word of document.querySelectorAll('dt.sig span, dt.sig em'))
        keepOne(word, word.parentElement.className)
}"""
# What stands at the same place in the tree, under the same names and style sheets, has the same colours on all pages.
# Three of each kind stand for all (rows of a table take turns): colours are what an audit takes longest for.
THREE_OF_A_KIND = """([places, kept]) => {
    const kinds = new Map(places.map((place, kind) => [place, kind])), kindOf = new Map()
    const classify = (element, place) => {
        if (!kinds.has(place)) kinds.set(place, kinds.size)
        kindOf.set(element, kinds.get(place))
    }
    classify(document.body, [...document.querySelectorAll('style:not([id])')].map(style => style.textContent).join())
    const elements = [...document.querySelectorAll('body *')]
    for (const element of elements) {
        const own = [...element.attributes].map(({name, value}) => /class|style|type/.test(name) ? value : name)
        classify(element, [kindOf.get(element.parentElement), element.tagName, ...own].join(' '))
    }
    for (const element of elements.reverse()) {  // what is in an element goes before it, or keeps it
        const kind = kindOf.get(element), stays = element.childElementCount || element.shadowRoot
        // The theme looks for its header a moment after the size of the window has changed.
        if (kept[kind] == 3 && !stays && !element.matches('img, #pst-header')) element.remove()
        else kept[kind] = Math.min((kept[kind] ?? 0) + 1, 3)
    }
    return [[...kinds.keys()], kept]
}"""


@pytest.fixture(scope="module")
def address():
    with serving(SITE) as address:
        yield address


@pytest.fixture(scope="module")
def thin_out():
    """Leaves of a page what may have other colours than what it has left of the pages before."""
    seen = [[], []]

    def thin_out(page):
        seen[:] = page.evaluate(THREE_OF_A_KIND, seen)

    return thin_out


def test_the_book_has_been_built():
    assert CHAPTERS, f"no chapter in {SITE}: run `make book` first"


def test_the_address_of_the_book_leads_to_its_first_page(page):
    page.goto("index.html")
    page.wait_for_url("**/book/index.html")
    assert page.faults == []


def test_the_front_page_shows_a_picture_a_network_and_ten_findings_on_one_screen(page):
    page.set_viewport_size(DESK)
    page.goto("book/index.html")
    page.get_by_role("status").filter(has_text="That is right").wait_for()
    ends = page.locator(".opening img:visible, .opening certified-adder, #ten-findings li").evaluate_all(
        "all => all.map(e => e.getBoundingClientRect().bottom)"
    )
    assert len(ends) == 12 and max(ends) <= DESK["height"]


def test_on_a_phone_the_findings_come_first_and_then_what_is_drawn(page):
    page.set_viewport_size(PHONE)
    page.goto("book/index.html")
    top = "e => e.getBoundingClientRect().top"
    findings, opening, rest = (
        page.locator(place).evaluate(top) for place in ("#ten-findings", ".opening", "#what-came-out-in-full")
    )
    assert findings < PHONE["height"] and findings < opening < rest


def test_on_a_phone_there_is_a_button_for_the_contents_of_a_page_that_lists_them(page):
    for name, listed in (("book/index.html", 0), ("book/how_to_run.html", 1)):
        page.goto(name)
        assert page.locator(".bd-sidebar-secondary").count() == listed
        assert page.locator(".secondary-toggle").is_visible() == bool(listed)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_read(page, name, thin_out):
    """Opened once, without a network: on a phone, then at a desk, in light and in dark."""
    page.emulate_media(reduced_motion="reduce")  # what unfolds is there at once, in the colours that it will have
    page.goto(name)
    # Images further down are fetched only when they come into view.
    page.evaluate("document.querySelectorAll('img').forEach(image => image.loading = 'eager')")
    page.wait_for_function("[...document.querySelectorAll('article img')].every(i => i.complete)")
    equations_are_set(page)
    images_are_there_and_described(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], widest(page)
    if name in CHAPTERS:
        figures_of_small_text_keep_the_width_that_it_needs_and_scroll_under_their_caption(page)
        low = "all => all.filter(e => e.getBoundingClientRect().height < 24).map(e => e.textContent)"
        assert page.locator("figcaption .legend a").evaluate_all(low) == [], "too small for a finger"
    page.set_viewport_size(DESK)
    too_wide = "all => all.filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent.slice(0, 60))"
    listings = page.locator("article pre:visible")
    assert listings.evaluate_all(too_wide) == [], "code or what it prints is cut off"
    tables = page.locator("article .cell_output .text_html:visible")
    assert tables.evaluate_all(too_wide) == [], "a table or a live element has to be scrolled sideways"
    assert page.locator("svg[data-icon]").count() and not page.locator("svg[data-icon] animate").count(), "no icon"
    page.wait_for_function(TAB_STOPS_ARE_SET)
    page.evaluate(SHORTEN)
    all_but_colours = {rule: {"enabled": False} for rule in COLOURS}
    assert violations(page, {"runOnly": STANDARD, "rules": RETIRED | all_but_colours}) == []
    thin_out(page)
    for mode in ("light", "dark"):
        page.emulate_media(color_scheme=mode, reduced_motion="reduce")
        page.wait_for_function(f"document.documentElement.dataset.theme == '{mode}'")
        figures_stand_out(page)
        assert violations(page, {"runOnly": {"type": "rule", "values": COLOURS}}) == [], f"in {mode} mode"
    may_do_without = name not in CHAPTERS or name.startswith("notebooks/9")  # pages of the book's own, and appendices
    assert page.locator("article figure img").count() or may_do_without, "a chapter without a figure"
    assert page.faults == []


@pytest.mark.parametrize("faint", ["style", "class"])
def test_a_faint_word_among_many_alike_is_seen_though_three_stand_for_all(page, faint, thin_out):
    page.goto("book/how_to_run.html")
    thin_out(page)  # what follows is as good as on a page after others
    page.evaluate(
        """faint => {
            document.head.insertAdjacentHTML('beforeend', '<style>.planted { color: #bbb }</style>')
            const word = {style: '<i style="color: #bbb">faint</i>', class: '<i class="planted">faint</i>'}[faint]
            const lines = Array.from({length: 9}, (_, n) => `<p>${n == 6 ? word : '<i>plain</i>'}</p>`)
            document.querySelector('article section').insertAdjacentHTML('beforeend', lines.join(''))
        }""",
        faint,
    )
    before = page.evaluate("document.querySelectorAll('*').length")
    thin_out(page)
    assert page.evaluate("document.querySelectorAll('*').length") < before - 5
    (found,) = violations(page, {"runOnly": {"type": "rule", "values": COLOURS}})
    assert "color-contrast" in found and "faint</i>" in found


def test_without_scripts_the_text_the_figures_and_the_verdicts_are_there(chromium, address):
    context = chromium.new_context(java_script_enabled=False, viewport=DESK, base_url=address)
    page = context.new_page()
    with_one = (EXPLORERS, VIEWERS, STEPPERS, ADDERS, NETWORKS, ABACI, MULTIPLIERS, TRAININGS, FORMATS)
    for name in (*(pages[0] for pages in with_one if pages), "book/scoreboard.html"):
        page.goto(name)
        assert page.locator("article h1").is_visible() and len(page.locator("article").inner_text()) > 2000
        assert page.locator("article figure img, article .claim").first.is_visible()
        # What would be moved by hand shows a picture and says in words what it shows.
        for live in page.locator(LIVE).all():
            assert len(live.inner_text()) > 50
            live.locator("img.fallback").evaluate("image => image.decode()")
            assert live.locator("img.fallback").is_visible()
    context.close()


def equations_are_set(page):
    if page.locator("script[src*=mathjax]").count():
        page.wait_for_function("window.MathJax?.startup?.promise?.then(() => true)")
        raw = page.locator("article .math").filter(has_not=page.locator("mjx-container"))
        assert raw.count() == 0, f"equations left as TeX: {raw.all_inner_texts()}"
        assert page.locator("mjx-merror, [data-mjx-error]").count() == 0


def images_are_there_and_described(page):
    bad = "images => images.filter(i => !i.hasAttribute('alt') || !i.complete || !i.naturalWidth).map(i => i.src)"
    assert page.locator("img:visible").evaluate_all(bad) == []


def figures_of_small_text_keep_the_width_that_it_needs_and_scroll_under_their_caption(page):
    shown = page.locator("figure:has(figcaption) img").evaluate_all(
        """images => images.map(i => {
            const figure = i.closest('figure'), caption = figure.querySelector('figcaption');
            const before = caption.getBoundingClientRect().left;
            figure.scrollLeft = 50;
            const {width} = i.getBoundingClientRect(), needed = parseFloat(i.style.width);
            return {wide: i.classList.contains('wide'), scale: width / i.naturalWidth, width, needed,
                    scrolls: getComputedStyle(figure).overflowX == 'auto', scrolled: figure.scrollLeft,
                    said: figure.querySelector('.enlarge span')?.checkVisibility() ?? false,
                    shift: caption.getBoundingClientRect().left - before};
        })"""
    )
    for figure in shown:
        if figure["wide"]:
            assert abs(figure["width"] - figure["needed"]) < 1, figure
        else:
            assert figure["scale"] > 0.6, figure
        assert figure["scrolls"] == figure["wide"] == figure["said"] == (figure["scrolled"] > 0), figure
        assert abs(figure["shift"]) < 2, figure


def figures_stand_out(page):
    """On white, unfiltered."""
    cards = page.locator("article :is(figure, p) img").evaluate_all(
        "images => images.map(i => getComputedStyle(i)).map(s => [s.backgroundColor, s.filter])"
    )
    assert all(card == ["rgb(255, 255, 255)", "none"] for card in cards)


def violations(page, options: dict) -> list[str]:
    """What axe-core finds wrong with the page, asked with its own options: rule, element and reason."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text("utf8"))
    return page.evaluate(
        """async options => {
            const found = await axe.run({...options, resultTypes: ['violations'], iframes: false})
            return found.violations.flatMap(({id, nodes}) => nodes.map(n => `${id}: ${n.html} ${n.failureSummary}`))
        }""",
        options,
    )


def widest(page) -> str:
    """The innermost elements that stick out on the right, for the message."""
    return page.evaluate(
        """() => [...document.querySelectorAll('article *')]
            .filter(e => e.getBoundingClientRect().right > innerWidth && !e.children.length)
            .slice(0, 5).map(e => e.tagName + ': ' + e.textContent.slice(0, 60)).join('; ')"""
    )


def test_no_page_has_an_empty_heading_or_a_form_that_nothing_sends():
    """Nor one that only paper shows; axe-core sees the screen alone, and does not ask for the button."""
    for name in WRITTEN:
        text = (SITE / name).read_text("utf8")
        assert not re.search(r"<(h[1-6])[^>]*>\s*</\1>", text), name
        for form in re.findall(r"<form.*?</form>", text, re.DOTALL):
            assert 'type="submit"' in form, name


def test_paper_shows_what_is_folded_in_light_colours_and_no_bars(page):
    """Then the screen is as it was."""
    name = next(name for name in CHAPTERS if "Hide the source" in (SITE / name).read_text("utf8"))
    page.emulate_media(media="print", color_scheme="dark")
    page.goto(name)
    page.wait_for_function("document.documentElement.dataset.theme == 'dark'")
    folds = page.locator("details.hide")
    shut = "folds => folds.map(fold => fold.open)"
    before = folds.evaluate_all(shut)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert folds.locator(".cell_input, .cell_output").first.is_visible() and all(folds.evaluate_all(shut))
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert page.locator("article h1").first.is_visible()
    bars = (".bd-sidebar-primary", ".bd-sidebar-secondary", ".bd-header-article", ".prev-next-footer")
    for bar in (*bars, "summary:not(.verdict > *)"):
        assert page.locator(f"{bar}:visible").count() == 0, bar
    cut = "all => all.map(e => getComputedStyle(e)).filter(s => s.breakInside != 'avoid').length"
    assert page.locator("article figure").evaluate_all(cut) == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark" and folds.evaluate_all(shut) == before


# No word of a head is cut off.
WHOLE = "head => head.scrollWidth <= head.clientWidth && head.scrollHeight <= head.clientHeight"


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_a_verdict_in_place_is_its_claim_in_full_until_a_key_opens_its_numbers(page, size):
    page.set_viewport_size(size)
    page.goto(next(name for name in CHAPTERS if '<details class="verdict">' in (SITE / name).read_text("utf8")))
    fold = page.locator("details.verdict").first
    numbers, shut = fold.locator("p"), fold.bounding_box()["height"]
    assert not numbers.is_visible() and fold.locator("summary").evaluate(WHOLE)
    fold.locator("summary").focus()
    page.keyboard.press("Enter")
    assert numbers.is_visible() and numbers.inner_text().startswith("Source: ")
    assert fold.locator("summary").evaluate(WHOLE)
    assert fold.bounding_box()["height"] >= shut + numbers.bounding_box()["height"] > shut + 20


def test_paper_shows_verdicts_in_place_whole_without_scripts(chromium, address):
    context = chromium.new_context(java_script_enabled=False, viewport=DESK, base_url=address)
    page = context.new_page()
    name = next(name for name in CHAPTERS if '<details class="verdict">' in (SITE / name).read_text("utf8"))
    page.goto(name)
    fold = page.locator("details.verdict").first
    assert not fold.locator("p").is_visible()
    page.emulate_media(media="print")
    assert fold.locator("p").is_visible() and fold.locator("p").inner_text().startswith("Source: ")
    assert fold.locator("summary").evaluate(WHOLE)
    context.close()


@pytest.mark.parametrize("tag", LIVE.split(", "))
def test_what_is_moved_by_hand_draws_where_the_page_is_opened_as_a_file(page, tag):
    """Browsers load no module from a file."""
    name = next(name for name in CHAPTERS if f"<{tag} " in (SITE / name).read_text("utf8"))
    page.goto((SITE / name).as_uri())
    page.locator(f"{tag} :is(input, button):visible").first.wait_for()
    assert [fault for fault in page.faults if not fault.startswith("asked for file:")] == []


@pytest.mark.parametrize("name", FILTERED)
def test_claims_can_be_filtered_where_the_page_is_opened_as_a_file(page, name):
    page.goto((SITE / name).as_uri())
    verdict = page.locator(".claim").first.get_attribute("data-verdict")
    page.get_by_label("Verdict").select_option(verdict)
    shown, claims = page.locator(".claim:visible").count(), page.locator(".claim")
    assert shown == page.locator(f'.claim[data-verdict="{verdict}"]').count() < claims.count()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_the_switch_changes_between_light_and_dark(page):
    page.set_viewport_size(DESK)
    page.goto(CHAPTERS[0])
    theme = "document.documentElement.dataset.theme"
    seen = set()
    for _ in range(3):  # auto, light, dark
        page.locator(".theme-switch-button:visible").first.click()
        seen.add(page.evaluate(theme))
    assert seen == {"light", "dark"}


def test_the_search_finds_a_word(page):
    page.goto("search.html?q=grokking")
    page.wait_for_selector("#search-results a[href*='10_grokking']")  # results come one by one
    assert page.faults == []


def test_the_search_finds_nothing_for_nonsense(page):
    page.goto("search.html?q=qqxyzzy")
    page.get_by_text(re.compile("did not match any documents")).wait_for()


def test_the_keyboard_reaches_a_link_and_shows_where_it_is(page):
    page.set_viewport_size(DESK)
    page.goto(CHAPTERS[0])
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('article a, nav a')"):
            break
    outline = page.evaluate("getComputedStyle(document.activeElement).outline")
    assert page.evaluate("document.activeElement.tagName") == "A"
    assert "solid" in outline and "3px" in outline, outline


DRAWN_WIDTH = "image => Math.min(image.width, (image.height * image.naturalWidth) / image.naturalHeight)"


@pytest.mark.parametrize("size", [PHONE, DESK, {"width": 1280, "height": 500}], ids=["phone", "desk", "low"])
def test_a_figure_is_enlarged_by_a_click(page, size):
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(size)
    page.goto(next(name for name in CHAPTERS if "24_reading_out" in name))  # with a figure higher than most windows
    shown = page.locator("dialog.enlarged")
    for image in page.locator("figure:has(figcaption .legend) img").all():
        image.click()
        large = shown.locator("img")
        large.evaluate("image => image.decode()")
        wide = image.evaluate("e => e.clientWidth > innerWidth - 16")  # the window has its own edge
        if size == PHONE and wide:  # at once no smaller than in the page, and fitted when tapped
            assert shown.evaluate("e => e.scrollLeft === 0 && e.scrollWidth > e.clientWidth")
            assert shown.get_by_role("button", name="Fit to width").is_visible()
        elif size == PHONE:  # first the whole of its width, then the place that was tapped
            assert shown.evaluate("e => e.scrollWidth <= e.clientWidth")
            large.click(position={"x": 300, "y": 60})
            assert shown.evaluate("e => e.scrollWidth > 2 * e.clientWidth && e.scrollLeft > e.clientWidth")
        assert large.evaluate(DRAWN_WIDTH) > 1.15 * image.evaluate(DRAWN_WIDTH)
        assert large.get_attribute("alt") == image.get_attribute("alt")
        assert large.evaluate("e => getComputedStyle(e).filter") == "none"  # the theme would dim it in the dark
        if size == PHONE:
            large.click()
            assert shown.evaluate("e => e.scrollWidth <= e.clientWidth")
            shown.get_by_role("button", name="Close").click()
        else:
            large.click(position={"x": 300, "y": 60})
        assert not shown.is_visible()


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_an_enlarged_figure_has_full_size_at_a_button_where_the_window_is_narrower(page, size):
    page.set_viewport_size(size)
    page.goto(next(name for name in CHAPTERS if "24_reading_out" in name))
    page.locator("figure:not(:has(img.wide))").get_by_role("button", name="enlarge Fig. ").first.click()
    large = page.locator("dialog.enlarged img")
    large.evaluate("image => image.decode()")
    fitted, buttons = large.evaluate(DRAWN_WIDTH), page.locator("dialog.enlarged").get_by_role("button")
    if size == PHONE:
        for name, factor in (("Full size", 2), ("Fit to width", 1)):
            buttons.filter(has_text=name).press("Enter")
            assert large.evaluate(DRAWN_WIDTH) >= factor * fitted
        assert large.evaluate(DRAWN_WIDTH) == fitted
    else:
        assert [button.inner_text() for button in buttons.all()] == ["Close"]


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_a_table_says_that_it_scrolls_where_it_is_wider_than_the_page(page, size):
    page.set_viewport_size(size)
    page.goto(next(name for name in CHAPTERS if "52_" in name))
    told = """() => {
        const boxes = [...document.querySelectorAll('article .text_html:has(> table.numbers)')]
        const [shown, says] = [boxes.filter(box => box.checkVisibility()), 'scrolls sideways']
        const wide = shown.map(box => box.scrollWidth > box.clientWidth)
        const said = shown.map(({ nextElementSibling: next }) => next?.textContent === says && next.checkVisibility())
        return String(wide) === String(said) && [wide.some(Boolean)]
    }"""
    assert page.wait_for_function(told).json_value() == [size == PHONE]


def test_a_figure_is_enlarged_from_the_keyboard(page):
    page.goto(CHAPTERS[0])
    button = page.get_by_role("button", name="enlarge Fig. ").first
    button.focus()
    page.keyboard.press("Enter")
    shown = page.get_by_role("dialog", name=re.compile(r"Fig\. \d+, enlarged"))
    assert violations(page, {"runOnly": STANDARD}) == []
    shown.get_by_role("button", name="Close").click()
    assert not shown.is_visible() and button.evaluate("e => e === document.activeElement")


def test_escape_closes_an_enlarged_figure_also_after_a_tap_on_it(page):
    page.set_viewport_size(PHONE)
    page.goto(CHAPTERS[0])
    page.locator("figure:has(figcaption .legend) img").first.click()
    shown = page.locator("dialog.enlarged")
    shown.locator("img").click()
    assert shown.is_visible()
    page.keyboard.press("Escape")
    assert not shown.is_visible()


def test_a_solution_opens_from_the_keyboard(page):
    page.set_viewport_size(DESK)
    name = next(name for name in CHAPTERS if "solution" in (SITE / name).read_text("utf8"))
    page.goto(name)
    button = page.locator(".solution button.toggle-button").first
    button.focus()
    folded = page.locator(".solution").first
    assert "toggle-hidden" in folded.get_attribute("class")
    page.keyboard.press("Enter")
    assert "toggle-hidden" not in folded.get_attribute("class")


def test_the_petal_chapter_shows_the_explorer():
    assert (
        "notebooks/21_petal_geometry.html" in EXPLORERS or not (ROOT / "notebooks/21_petal_geometry.ipynb").exists()
    )


@pytest.mark.parametrize("name", EXPLORERS)
def test_the_petal_explorer_works_on_its_page(page, name):
    page.set_viewport_size(DESK)
    page.goto(name)
    page.get_by_role("button", name="4, 32").first.click()
    page.get_by_role("slider", name="Attention frequency").first.press("ArrowLeft")
    assert (
        "Attention to embedding frequency m/n = 31/4"
        in page.locator("petal-explorer [role=status]").first.inner_text()
    )
    assert page.faults == []


def test_the_chapter_on_the_helix_shows_the_viewer():
    assert (
        "notebooks/50_numbers_on_a_helix.html" in VIEWERS
        or not (ROOT / "notebooks/50_numbers_on_a_helix.ipynb").exists()
    )


@pytest.mark.parametrize("name", VIEWERS)
def test_the_helix_viewer_works_on_its_page(page, name):
    page.set_viewport_size(DESK)
    page.goto(name)
    page.get_by_role("slider", name="Turn").first.press("ArrowRight")
    assert "from 21 degrees around and 30 above" in page.locator("helix-viewer [role=status]").first.inner_text()
    assert page.faults == []


def test_the_chapter_on_theorems_shows_the_stepper():
    assert (
        "notebooks/43_theorems_that_run.html" in STEPPERS
        or not (ROOT / "notebooks/43_theorems_that_run.ipynb").exists()
    )


@pytest.mark.parametrize("name", STEPPERS)
def test_the_hop_stepper_works_on_its_page(page, name):
    page.set_viewport_size(DESK)
    page.goto(name)
    page.get_by_role("slider", name="Loop").first.press("ArrowRight")
    assert "every pointer leads 2 hops away" in page.locator("hop-stepper [role=status]").first.inner_text()
    assert page.faults == []


def test_the_chapters_on_formats_show_the_explorer():
    for name in ("60_what_goes_wrong", "61_order_and_format", "65_working_memory"):
        assert f"notebooks/{name}.html" in FORMATS or not (ROOT / f"notebooks/{name}.ipynb").exists()


@pytest.mark.parametrize("name", FORMATS)
def test_the_format_explorer_works_on_its_page(page, name):
    page.set_viewport_size(DESK)
    page.goto(name)
    page.get_by_role("textbox", name="First number").fill("999")
    page.get_by_role("textbox", name="Second number").fill("1")
    page.get_by_text("999 + 1 = 1000").wait_for()
    page.get_by_role("checkbox", name="all reversed").check()
    page.locator(".format[data-way='all reversed'] button").last.hover()
    page.get_by_text("1, the thousands of the sum: 2 tokens are needed, the farthest 6 back.").wait_for()
    assert page.faults == []


def test_the_chapter_on_proofs_shows_the_adder():
    assert (
        "notebooks/72_a_network_proven_correct.html" in ADDERS
        or not (ROOT / "notebooks/72_a_network_proven_correct.ipynb").exists()
    )


@pytest.mark.parametrize("name", ADDERS)
def test_the_certified_adder_works_on_its_page(page, name):
    page.set_viewport_size(DESK)
    page.goto(name)
    page.get_by_label("First number").fill("999")
    page.get_by_label("Second number").fill("1")
    page.get_by_text("The network writes 999 + 1 = 1000. That is right.").wait_for()
    assert page.faults == []


def test_the_chapters_on_circles_and_on_reading_out_show_the_network():
    for name in ("11_fourier_circles", "24_reading_out"):
        assert f"notebooks/{name}.html" in NETWORKS or not (ROOT / f"notebooks/{name}.ipynb").exists()


@pytest.mark.parametrize("name", NETWORKS)
def test_the_grokked_network_works_on_its_page(page, name):
    page.set_viewport_size(DESK)
    page.goto(name)
    page.get_by_label("First number").fill("100")
    page.get_by_label("Second number").fill("14")
    page.get_by_text(re.compile("100 [+] 14, an? .* pair: the highest logit is that of 1, ahead of")).wait_for()
    page.get_by_text("it is right for 12,769 of 12,769 pairs").wait_for()
    assert page.faults == []
