"""The grokked network in a page: folded it is still the network, and in the browser it computes what torch does."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from browsing import PHONE, SEND, fixtures_of, floats, in_the_book, told

from arithlib import checkpoints
from arithlib.analysis.attention import attention_grid
from arithlib.analysis.circles import fit_circle
from arithlib.analysis.folded import pack, pack_within, unpack
from arithlib.analysis.fourier import key_frequencies, power_spectrum
from arithlib.analysis.neurons import without_embedding_frequencies
from arithlib.models.grokking import GrokkingConfig, GrokkingTransformer
from bookkit.build.checks import check_site
from bookkit.web_components import whole_source
from chapters.ch11_grokked_network import (
    NETWORK,
    SNAPSHOTS,
    GrokkedNetwork,
    count_right,
    describe,
    page_network,
    snapshot_bytes,
    snapshots,
    training,
)

MODULE = Path(__file__).resolve().parents[2] / "book" / "_static" / "grokked-network.mjs"
START = GrokkedNetwork(70, 108)
P, KEYS = 113, [1, 15, 19, 21]
REST = [k for k in range(1, 57) if k not in KEYS]
PAIRS = torch.cartesian_prod(torch.arange(P), torch.arange(P))
ANSWERS = PAIRS.sum(1) % P
FIRST_LOAD = 300_000  # bytes of script and weights
LATER_LOAD = 2_000_000  # and of the snapshots


@pytest.fixture(scope="module")
def model():
    return checkpoints.load(NETWORK).model


# --- what is folded ---


@torch.no_grad()
def small_network():
    small = GrokkingTransformer(GrokkingConfig(p=23, d_model=16, n_heads=2, d_head=8, d_mlp=24), seed=3)
    for parameter in small.parameters():
        parameter += 0.1  # biases begin at zero
    return small


@torch.no_grad()
def test_folding_changes_nothing_while_every_direction_is_kept():
    small = small_network()
    pairs = torch.cartesian_prod(torch.arange(23), torch.arange(23))
    for freqs in ([], [2], [1, 5, 11]):
        whole = without_embedding_frequencies(small, freqs).answer_logits(pairs)[:, :23]
        gaps = [abs(unpack(pack(small, [2], (n, n))).without(freqs).logits(pairs) - whole).max() for n in (16, 2)]
        assert gaps[0] < 1e-3 * whole.abs().max() < 0.05 * whole.abs().max() < gaps[1], freqs  # 16 bits


@torch.no_grad()
@pytest.mark.parametrize("bound", [0.3, 0.05])
def test_as_few_directions_are_kept_as_a_bound_allows(bound):
    small = small_network()
    pairs = torch.combinations(torch.arange(23), with_replacement=True)
    whole = small.answer_logits(pairs)[:, :23]
    spread = (whole - whole.mean(1, keepdim=True)).pow(2).mean() ** 0.5

    def moved(*kept):
        return (unpack(pack(small, [2], kept)).logits(pairs) - whole).pow(2).mean() ** 0.5 / spread

    packed = pack_within(small, [2], bound)
    i, j = packed["tokens"].shape[-1], packed["neurons"].shape[-1]
    assert moved(i, 23) <= bound < moved(i - 1, 23) and moved(16, j) <= bound < moved(16, j - 1)
    alone = pack(small, [2], (i, j))
    assert packed.keys() == alone.keys() and all(torch.equal(packed[name], alone[name]) for name in alone)


@torch.no_grad()
@pytest.mark.parametrize("removed", [[], [1], [15], [19], [21], [15, 21], KEYS, REST])
def test_what_is_left_out_hardly_moves_a_logit(model, removed):
    whole = without_embedding_frequencies(model, removed).answer_logits(PAIRS)[:, :P]
    found = page_network().without(removed).logits(PAIRS)
    assert (found - whole).abs().max() < 0.01
    assert (found.argmax(1) != whole.argmax(1)).sum() <= 6  # near ties of a network that fails
    if removed in ([], REST):
        assert torch.equal(found.argmax(1), ANSWERS) and torch.equal(whole.argmax(1), ANSWERS)


def test_what_one_cannot_fold_is_refused():
    for more in ({"positions": "learned"}, {"layer_norm": True}, {"activation": "gelu"}):
        with pytest.raises(ValueError, match="only the plain network"):
            pack(GrokkingTransformer(GrokkingConfig(**more)), [1])
    with pytest.raises(ValueError, match="they run from 1 to 56"):
        page_network().without([57])


@pytest.mark.parametrize("wrong", [(-1, 1), (1, 113), (1.5, 1), ("1", 1)])
def test_only_residues_are_taken(wrong):
    with pytest.raises(ValueError, match="adds integers from 0 to 112"):
        GrokkedNetwork(*wrong)


def test_words_tell_a_wrong_answer_from_a_right_one():
    assert ": the highest logit is that of 65, ahead of " in describe(70, 108)
    assert describe(70, 108).endswith("That is right, modulo 113.")
    assert describe(70, 108, KEYS).endswith("That is wrong: it is 65, modulo 113.")


def test_weights_and_script_stay_below_the_limit_of_a_first_load(tmp_path):
    given = in_the_book(START, tmp_path).partition("<script")[0]
    assert START.page_bytes() < FIRST_LOAD
    assert 0 < len(given) + len(whole_source(MODULE.name)) - START.page_bytes() < 3000  # the rest is markup and words


# --- snapshots of its training ---


def test_the_snapshots_are_in_order_and_small(tmp_path):
    assert list(snapshots()) == sorted(snapshots()) == list(checkpoints.read(SNAPSHOTS).experiment.snapshot_steps)
    assert [step for step, _ in training()] == [*snapshots(), 20_000]
    assert all(words.startswith(f"Step {step:,} of 20,000. ") for step, words in training())
    in_the_book(START, tmp_path)
    (script,) = tmp_path.glob("assets/*")
    assert len(snapshot_bytes()) < script.stat().st_size < LATER_LOAD
    assert {table.dtype for table in snapshots()[0].values()} == {torch.int16, torch.float32}


def test_they_are_of_the_same_run_but_for_rounding(model):
    again, whole = checkpoints.read(SNAPSHOTS), checkpoints.read(NETWORK)
    differ = {"kind", "steps", "evaluate_every", "snapshot_steps", "circles", "bound"}
    one, other = ({k: v for k, v in run.experiment.settings().items() if k not in differ} for run in (again, whole))
    assert one == other
    assert list(again.experiment.circles) == KEYS == key_frequencies(power_spectrum(model.W_E[:P]))
    for name in ("train_loss", "test_loss", "weight_norm_squared"):
        np.testing.assert_allclose(again.at(0, name), whole.at(0, name), rtol=1e-6)
        np.testing.assert_allclose(again.at(200, name), whole.at(200, name), rtol=0.02)  # rounding has grown


def test_folded_they_fare_as_the_network_did_in_training():
    """Whose weights are not here: what it got right of the pairs is."""
    again = checkpoints.read(SNAPSHOTS)
    trains = again.experiment.task.train_mask
    for step, packed in snapshots().items():
        right = sum(
            float(again.at(step, f"{split}_accuracy")) * int(pairs.sum())
            for split, pairs in (("train", trains), ("test", ~trains))
        )
        assert abs(count_right(unpack(packed)) - right) < 0.01 * P * P, step


# --- in a browser ---


folder, address, shown = fixtures_of(START, "network.html", MODULE)


def compute(page, script, given=None):
    return page.evaluate(
        f"""async given => {{
          const m = await import('/_static/grokked-network.mjs');
          const text = document.querySelector('grokked-network').getAttribute('weights');
          const whole = m.read(Uint8Array.from(atob(text), letter => letter.charCodeAt(0)));
          {SEND}
          {script}
        }}""",
        given,
    )


def test_the_checks_of_the_site_accept_it(folder):
    assert check_site(folder) == []


@pytest.mark.browser
@torch.no_grad()
@pytest.mark.parametrize("removed", [[], [19, 21], REST])
def test_the_logits_of_every_pair_are_those_of_torch(shown, removed):
    sent = compute(
        shown,
        """const run = m.network(m.without(whole, given));
           const all = new Float32Array(113 ** 3);
           for (let i = 0; i < 113 ** 2; i++) all.set(run(Math.floor(i / 113), i % 113).logits, 113 * i);
           return send(all)""",
        removed,
    )
    net = page_network().without(removed)
    found, expected = floats(sent, P * P, P), net.logits(PAIRS)
    assert (found - expected).abs().max() < 1e-4
    if removed in ([], REST):
        assert torch.equal(found.argmax(1), expected.argmax(1)) and torch.equal(found.argmax(1), ANSWERS)
    else:  # two logits of a network that fails may be equal to the last bits
        best, second = expected.topk(2).values.T
        assert ((found.argmax(1) == expected.argmax(1)) | (best - second < 2e-4)).all()


@pytest.mark.browser
@torch.no_grad()
def test_the_logits_of_every_snapshot_are_those_of_torch(shown):
    some = PAIRS[::12]  # of each 1,065 pairs, with every residue as a and as b
    assert all(len(residues.unique()) == P for residues in some.T)
    sent = compute(
        shown,
        """const { fetched } = await import('/_static/tensors.mjs');
           const all = m.readSnapshots(await fetched('/_static/grokked-snapshots.mjs'));
           return Object.entries(all).map(([step, w]) => {
             const run = m.network(w), out = new Float32Array(113 * given.length);
             given.forEach(([a, b], i) => out.set(run(a, b).logits, 113 * i));
             return [Number(step), send(out)];
           })""",
        some.tolist(),
    )
    assert [step for step, _ in sent] == list(snapshots())
    for step, logits in sent:
        expected = unpack(snapshots()[step]).logits(some)
        found = floats(logits, *expected.shape)
        assert (found - expected).abs().max() < 1e-4, step
        best, second = expected.topk(2).values.T
        assert ((found.argmax(1) == expected.argmax(1)) | (best - second < 2e-4)).all(), step


def what_stands_there(page):
    page.get_by_text("With all frequencies it is right").wait_for()
    drawings = page.locator("#logits, #circle, .shares, tbody, #right, #epoch, #seen")
    return drawings.evaluate_all("parts => parts.map(part => part.innerHTML)")


@pytest.mark.browser
def test_a_reader_looks_back_on_the_training(shown):
    asked = []
    shown.on("request", lambda request: asked.append(request.url))
    back = shown.get_by_role("slider", name="Step of training")
    last = what_stands_there(shown)
    assert (back.input_value(), back.get_attribute("max")) == ("8", "8")
    assert back.get_attribute("aria-valuetext") == "step 20,000"
    assert shown.locator("#epoch").inner_text() == training()[-1][1] and not asked  # nothing is loaded yet
    back.press("Home")
    for number, (step, words) in enumerate(training()[:-1]):
        assert told(shown, "#epoch", f"Step {step:,} of") == words
        assert back.get_attribute("aria-valuetext") == f"step {step:,}"
        if number in (0, 3, 7):
            net = unpack(snapshots()[step])
            right = count_right(net)
            assert told(shown, "#right", f"With all frequencies it is right for {right:,} of 12,769 pairs")
            logits = net.logits(torch.tensor([[70, 108]]))[0]
            np.testing.assert_allclose(drawn(shown, "#logits rect", "data-logit"), logits[:, None], atol=1e-3)
            assert told(
                shown, "#seen", f"70 + 108, an unseen pair: the highest logit is that of {int(logits.argmax())},"
            )
        back.press("ArrowRight")
    assert told(shown, "#epoch", "Step 20,000 of") and what_stands_there(shown) == last
    assert [url.rpartition("/")[2] for url in asked] == ["grokked-snapshots.mjs"]


@pytest.mark.browser
def test_snapshots_that_cannot_be_loaded_are_said_to_be_missing(shown):
    before = what_stands_there(shown)
    shown.route("**/grokked-snapshots.mjs", lambda route: route.abort())
    back = shown.get_by_role("slider", name="Step of training")
    back.press("Home")
    assert told(shown, "#epoch", "The snapshots could") == "The snapshots could not be loaded."
    assert back.input_value() == "8"
    shown.unroute("**/grokked-snapshots.mjs")
    back.press("Home")
    assert told(shown, "#epoch", "Step 0 of")
    back.press("End")
    assert told(shown, "#epoch", "Step 20,000 of") and what_stands_there(shown) == before
    shown.faults.clear()  # the browser's own word on what it was not given


@pytest.mark.browser
@torch.no_grad()
def test_the_tables_and_the_attention_are_those_of_torch(shown, model):
    for removed in ([], [15], REST):
        net = page_network().without(removed)
        sent = compute(
            shown,
            """const w = m.without(whole, given);
               return Object.fromEntries(Object.entries(w).map(([name, table]) => [name, send(table.values)]))""",
            removed,
        )
        for name, values in sent.items():
            expected = getattr(net, name)
            exactly = not removed or name not in ("scores", "tokens", "circles")
            tolerance = 0 if exactly else 1e-6 * float(expected.abs().max())
            assert (floats(values, *expected.shape) - expected).abs().max() <= tolerance, name
    pattern = compute(shown, "return [0, 1, 2].map(slot => Array.from(m.attention(whole, 70, 108)[slot]))")
    np.testing.assert_allclose(pattern, attention_grid(model)[0][70, 108], atol=1e-6)
    circles = [fit_circle(model.W_E[:P], k).points for k in KEYS]
    np.testing.assert_allclose(page_network().circles[:P], torch.stack(circles, 1), atol=1e-6)


@pytest.mark.browser
@torch.no_grad()
def test_each_neuron_has_the_frequency_at_which_it_is_read(shown):
    found = compute(
        shown,
        """const all = m.readout(whole);
           return Array.from({length: 512}, (_, n) => m.heard(all.slice(113 * n, 113 * n + 113)))""",
    )
    net = page_network()
    spectra = [power_spectrum(row[:, None]) for row in net.neurons @ net.answers]
    assert found == [int(spectrum.argmax()) + 1 for spectrum in spectra]


@pytest.mark.browser
def test_a_pair_is_told_to_be_a_training_pair_where_the_run_trained_on_it(shown):
    found = compute(
        shown,
        """const { decoded } = await import('/_static/tensors.mjs');
           const seen = decoded(document.querySelector('grokked-network').getAttribute('seen'));
           return Array.from({ length: 113 ** 2 }, (_, i) => m.trained(seen, 113, Math.floor(i / 113), i % 113))""",
    )
    trains = checkpoints.read(NETWORK).experiment.task.train_mask
    assert found == trains.tolist()
    for mask, words in ((trains, "a training pair"), (~trains, "an unseen pair")):
        a, b = PAIRS[mask][-1].tolist()
        assert describe(a, b).startswith(f"{a} + {b}, {words}: the highest logit is that of ")
        shown.get_by_label("First number").fill(str(a))
        shown.get_by_label("Second number").fill(str(b))
        assert told(shown, "#seen", f"{a} + {b}") == describe(a, b)


@pytest.mark.browser
def test_a_reader_adds_and_takes_frequencies_out(shown):
    assert told(shown, "#seen", "70 + 108") == describe(70, 108)
    assert told(shown, "#right", "With") == "With all frequencies it is right for 12,769 of 12,769 pairs, 100.0 %."
    shown.get_by_label("First number").fill("112")
    assert told(shown, "#seen", "112 + 108") == describe(112, 108)
    assert shown.get_by_role("slider", name="Slider of a").input_value() == "112"
    shown.get_by_role("slider", name="Slider of b").press("Home")
    assert told(shown, "#seen", "112 + 0") == describe(112, 0)
    assert shown.get_by_label("Second number").input_value() == "0"
    for number, (box, removed) in enumerate(zip([15, 1, 19, 21], [[15], [1, 15], [1, 15, 19], KEYS], strict=True)):
        shown.get_by_role("checkbox", name=str(box), exact=True).uncheck()
        words = told(
            shown,
            "grokked-network #right",
            f"Without {['15', '1 and 15', '1, 15 and 19', '1, 15, 19 and 21'][number]} it is",
        )
        right = count_right(page_network().without(removed))
        assert f"it is right for {right:,} of 12,769 pairs" in words
        assert told(shown, "#seen", "112 + 0") == describe(112, 0, removed)
    shown.get_by_role("checkbox", name="15", exact=True).check()
    shown.get_by_role("checkbox", name="the other 52").uncheck()
    right = count_right(page_network().without([1, 19, 21, *REST]))
    assert f"right for {right:,} of" in told(shown, "#right", "Without 1, 19, 21 and the other 52 it")


@pytest.mark.browser
def test_switches_in_haste_end_at_the_last_one(shown):
    boxes = shown.locator("#switches input")
    for number in (0, 1, 2, 1, 0, 2, 3, 0):
        boxes.nth(number).click()
    right = count_right(page_network().without([1, 21]))
    assert told(shown, "#right", "Without 1 and 21 it").endswith(
        f"{right:,} of 12,769 pairs, {right / 127.69:.1f} %."
    )
    assert not shown.get_by_role("progressbar").is_visible()
    boxes.nth(2).click()  # a count begins, and is not waited for: the next answer is known
    boxes.nth(2).click()
    shown.wait_for_timeout(2000)
    assert told(shown, "#right", "").startswith("Without 1 and 21 it")


def drawn(page, selector, *names):
    """Attributes of what is drawn, as numbers."""
    return page.locator(selector).evaluate_all(
        "(parts, names) => parts.map(part => names.map(name => Number(part.getAttribute(name))))", names
    )


@pytest.mark.browser
@torch.no_grad()
def test_the_drawing_shows_logits_circle_heads_and_neurons(shown, model):
    logits = page_network().logits(torch.tensor([[70, 108]]))[0]
    bars = np.array(drawn(shown, "#logits rect", "data-logit", "y", "height"))
    np.testing.assert_allclose(bars[:, 0], logits, atol=1e-4)
    ends = np.where(bars[:, 0] > 0, bars[:, 1], bars[:, 1] + bars[:, 2])
    np.testing.assert_allclose(115 - ends, logits / logits.abs().max() * 115, atol=0.11)  # tenths of a pixel
    assert shown.locator(".plot .right").inner_text() == "65"
    shown.get_by_role("radio", name="19").check()
    shown.get_by_role("radio", name="head 2").check()
    points = page_network().circles[:, 2].double()
    unit = 400 / (2.45 * points[:P].norm(dim=1).max())
    residues = np.array(drawn(shown, "#circle .residue", "cx", "cy")) - 200
    np.testing.assert_allclose(residues, points[:P] * unit * torch.tensor([1, -1]), atol=0.06)
    pattern = attention_grid(model)[0]
    where = torch.tensor([[70, b, P] for b in range(P)])
    read = torch.einsum("bth,btd->bhd", pattern[70], points[where]) * unit * torch.tensor([1, -1])
    np.testing.assert_allclose(np.array(drawn(shown, "#circle .petal", "cx", "cy")) - 200, read[:, 2], atol=0.06)
    np.testing.assert_allclose(np.array(drawn(shown, "#circle .head", "cx", "cy")) - 200, read[108], atol=0.06)
    a, equals, b = (round(100 * float(pattern[70, 108, slot, 2])) for slot in (0, 2, 1))
    assert shown.locator(".shares").nth(2).inner_text() == f"{a} % on 70, {equals} % on “=”, {b} % on 108"
    _, activations = model(torch.tensor([[70, 108, P]]), return_activations=True)
    post = activations["mlp_post"][0, 2]
    effect = post * (model.W_L[:, 65] - model.W_L.mean(1))
    strongest = effect.abs().argsort(descending=True)[:6].tolist()
    heads = shown.locator("thead th").all_inner_texts()
    assert heads == ["neuron", "frequency", "activation", "adds"]
    rows = [row.split() for row in shown.locator("tbody tr").all_inner_texts()]
    assert [int(neuron) for neuron, *_ in rows] == strongest
    np.testing.assert_allclose([float(at) for *_, at, _ in rows], post[strongest], atol=0.02)
    written = [float(adds.replace("−", "-")) for *_, adds in rows]
    np.testing.assert_allclose(written, effect[strongest], atol=0.1)
    assert f"{(post > 0).sum()} of 512 neurons are on" in shown.locator("caption").inner_text()


@pytest.mark.browser
def test_what_is_no_residue_is_refused_and_dims_the_old_answer_where_it_stands(shown):
    field, below = shown.get_by_label("Second number"), shown.locator("fieldset:has(#switches)")
    before = below.bounding_box()
    for wrong in ("", "-1", "113", "1.5", "1e9"):
        field.fill("5")
        assert told(shown, "#seen", "70 + 5") == describe(70, 5)
        kept = shown.locator("#logits").inner_html()
        field.fill(wrong)
        assert told(shown, "#seen", "Type") == "Type a whole number from 0 to 112 as b.", wrong
        assert field.get_attribute("aria-invalid") == "true", wrong
        assert shown.locator("#logits").inner_html() == kept, "the last sum, that with 5"
    dimmed = "e => e.closest('.drawn').inert && Number(getComputedStyle(e.closest('.drawn')).opacity)"
    for part in ("#logits", "#circle", "table"):
        assert 0 < shown.locator(part).evaluate(dimmed) < 0.5 and shown.locator(part).is_visible()
    assert below.bounding_box() == before, "nothing has moved"
    shown.get_by_label("First number").fill("200")
    assert told(shown, "#seen", "Type").endswith("as a and as b.")
    shown.get_by_role("checkbox").first.uncheck()  # counts on
    assert told(shown, "#right", "Without 1 it") and told(shown, "#seen", "Type")
    shown.get_by_role("slider", name="Slider of a").press("Home")
    field.fill("5")
    assert told(shown, "#seen", "0 + 5") == describe(0, 5, [1])
    assert shown.locator("#logits").evaluate(dimmed) is False and field.get_attribute("aria-invalid") == "false"


@pytest.mark.browser
def test_the_keyboard_reaches_every_control(shown):
    order = []
    for _ in range(12):
        shown.keyboard.press("Tab")
        order.append(
            shown.evaluate(
                """() => { const on = document.activeElement.shadowRoot.activeElement;
                           return [on.id || `${on.name} ${on.value}`, getComputedStyle(on).outlineWidth] }"""
            )
        )
    boxes = [f"in {k}" for k in [*KEYS, "the other 52"]]
    assert [name for name, _ in order] == ["back", "a", "a-slider", "b", "b-slider", *boxes, "circle 0", "head 0"]
    assert {width for _, width in order} == {"3px"}
    shown.keyboard.press("ArrowDown")
    assert "what head 1 reads" in shown.locator("#about").inner_text()


@pytest.mark.browser
def test_it_fits_a_phone_and_gives_way_to_words_on_paper(shown):
    shown.set_viewport_size(PHONE)
    shown.get_by_role("slider", name="Slider of a").press("End")
    shown.get_by_role("slider", name="Slider of b").press("ArrowUp")
    assert shown.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    inner = shown.locator("grokked-network").evaluate(
        "e => Math.max(...[...e.shadowRoot.querySelectorAll('*')].map(p => p.getBoundingClientRect().right))"
    )
    assert inner <= PHONE["width"]
    shown.set_viewport_size({"width": 320, "height": 640})
    for k in KEYS:  # the longest labels, at the edges
        shown.get_by_role("checkbox", name=str(k), exact=True).uncheck()
    for a in ("0", "1", "111", "112"):
        shown.get_by_label("First number").fill(a)
        assert shown.evaluate("document.documentElement.scrollWidth") <= 320, a
    shown.emulate_media(media="print")
    assert shown.get_by_text("The grokked network, for a screen").is_visible()
    assert not shown.get_by_role("slider").first.is_visible()


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_drawing_and_words_stand_out_in_light_and_dark(shown, theme):
    shown.evaluate("theme => (document.documentElement.dataset.theme = theme)", theme)
    ground = {"light": 255, "dark": 0x12}[theme]
    ink = shown.get_by_role("status").first.evaluate("e => getComputedStyle(e).color")
    opacity = shown.locator("#logits .bar").first.evaluate("e => getComputedStyle(e).opacity")
    level = int(re.findall(r"\d+", ink)[0])

    def luminance(grey):
        return ((grey / 255 + 0.055) / 1.055) ** 2.4

    def contrast(grey):
        light, dark = sorted((luminance(grey), luminance(ground)), reverse=True)
        return (light + 0.05) / (dark + 0.05)

    assert contrast(level) > 7
    assert contrast(float(opacity) * level + (1 - float(opacity)) * ground) > 3


@pytest.mark.browser
def test_without_scripts_words_stand_in_its_place(chromium, address):
    context = chromium.new_context(java_script_enabled=False, base_url=address)
    page = context.new_page()
    page.goto("notebooks/network.html")
    assert page.get_by_text(describe(70, 108)).is_visible()
    context.close()
