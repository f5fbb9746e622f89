"""The networks that a page trains: losses and gradients are those of torch, and a reader starts and stops them."""

import base64
import json
import re
import shutil
from html import unescape
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import safetensors.torch
import torch
from browsing import DESK, PHONE, SEND, fixtures_of, floats, in_the_book, told, words

from arithlib import checkpoints, experiments
from arithlib.analysis.attention import attention_grid
from arithlib.analysis.circles import circle_plane
from arithlib.analysis.fourier import power_spectrum
from arithlib.analysis.progress import first_step
from arithlib.experiments import ModularObjective
from bookkit.build.checks import check_site
from bookkit.sphinx.classic import load_scripts
from bookkit.web_components import whole_source
from chapters.ch10_grokking_here import LARGE, LATER, MODULE, RUN, GrokkingHere, describe

EXPERIMENT = experiments.get(RUN)
SOURCE = Path(__file__).resolve().parents[2] / "book" / "_static" / MODULE
FIRST_LOAD, LATER_LOAD = 300_000, 1_300_000  # bytes of script and weights
RUNS = [RUN, LARGE]


def loaded(script: str) -> bytes:
    """What the script of an asset brings."""
    return base64.b64decode(re.fullmatch(r'document.currentScript.data = "(.*)";\n', script)[1])


@pytest.mark.parametrize("name", RUNS)
def test_the_page_is_given_the_start_and_the_settings_of_the_run(name, tmp_path):
    page = in_the_book(GrokkingHere(), tmp_path)
    given = json.loads(unescape(re.search(r'networks="([^"]*)"', page)[1]))[RUNS.index(name)]
    if "src" in given:
        assert given["src"] == f"../_static/{LATER}"
        weights = loaded((tmp_path / "assets" / LATER).read_text("utf8"))
    else:
        weights = base64.b64decode(given["weights"])
    weights, run = safetensors.torch.load(weights), experiments.get(name)
    assert all(torch.equal(weights[name], value) for name, value in run.build().state_dict().items())
    bits = np.unpackbits(np.frombuffer(base64.b64decode(given["seen"]), np.uint8))[: run.task.p**2]
    assert torch.equal(torch.from_numpy(bits).bool(), run.task.train_mask)
    optimizer = run.optimizer
    assert [given["lr"], given["decay"], given["warmup"]] == [
        optimizer.lr, optimizer.weight_decay, optimizer.warmup_steps,
    ]  # fmt: skip
    assert (optimizer.betas, optimizer.schedule, optimizer.clip_norm) == ((0.9, 0.98), "constant", None)
    assert first_step(checkpoints.read(name).history, "test_accuracy", 1) < given["steps"] <= run.steps


def test_weights_and_script_stay_below_the_limits_of_a_first_load_and_a_later_one(tmp_path):
    given = in_the_book(GrokkingHere(), tmp_path).partition("<script")[0]
    assert GrokkingHere().page_bytes() < FIRST_LOAD
    assert 0 < len(given) + len(whole_source(MODULE)) - GrokkingHere().page_bytes() < 5000  # the rest: bits and words
    assert len((tmp_path / "assets" / LATER).read_bytes()) < GrokkingHere().later_bytes() + 100 < LATER_LOAD


def test_what_torch_made_of_it_is_said_where_nothing_runs():
    assert re.search(r"by step [1-9]\d+ and gets all unseen pairs right by step [1-9]\d+ of 1,500\.", describe())
    assert describe() in GrokkingHere()._repr_html_() and describe() in repr(GrokkingHere())


# --- in a browser ---

SLIDER = "document.querySelector('grokking-here').shadowRoot.querySelector('input')"


folder, address, _ = fixtures_of(GrokkingHere(), "page.html", SOURCE)


@pytest.fixture
def shown(page):
    page.set_viewport_size(DESK)
    page.goto("notebooks/page.html")
    told(page, "#told", "Step 0 of 1500.")  # by the worker
    yield page
    assert page.faults == []


def compute(page, script, given=None, network=0):
    """What a script makes of `run()`, the training of one of the networks, in the page itself."""
    return page.evaluate(
        f"""async ([given, i]) => {{
          const m = await import('/_static/{MODULE}');
          const {{ trainer }} = await import('/_static/grokking-training.mjs');
          const {{ decoded, fetched, tensors }} = await import('/_static/tensors.mjs');
          const network = JSON.parse(document.querySelector('grokking-here').getAttribute('networks'))[i];
          const initial = tensors(network.weights ? decoded(network.weights) : await fetched(network.src));
          const seen = decoded(network.seen);
          const run = () => trainer().training(initial, seen, network);
          {SEND}
          {script}
        }}""",
        [given, network],
    )


def begun(name):
    """The run as torch begins it, in float64, in which the browser computes."""
    model = experiments.get(name).build().double()
    return model, ModularObjective(experiments.get(name).task, model, torch.device("cpu"))


def test_the_checks_of_the_site_accept_it(folder):
    assert check_site(folder) == []


@pytest.mark.browser
@pytest.mark.parametrize("network", [0, 1])
def test_the_gradient_of_every_weight_is_that_of_torch(shown, network):
    model, objective = begun(RUNS[network])
    objective.loss(model, 0).backward()
    script = (
        """return Object.fromEntries(Object.entries(run().gradients()).map(([name, own]) => [name, send(own)]))"""
    )
    found = compute(shown, script, network=network)
    assert found.keys() == dict(model.named_parameters()).keys()
    for name, parameter in model.named_parameters():
        scale = parameter.grad.abs().max()
        assert scale > 1e-6, name
        assert (floats(found[name], *parameter.shape) - parameter.grad).abs().max() < 1e-6 * scale, name


# All 200 of the large network as well: they take a processor 40 s in the browser and 20 s by torch, side by side, and
# by then it knows its training pairs. In single precision torch itself would be off by more than is allowed here.
@pytest.mark.browser
@pytest.mark.parametrize("network", [0, 1])
def test_the_losses_of_the_first_200_steps_are_those_of_torch(shown, network):
    """Those that the worker tells, a step at a time."""
    compute(
        shown,
        """window.losses = [];
        const worker = m.hire();
        window.ended = new Promise(resolve => {
          worker.onmessage = ({ data: { loss, measurements } }) => {
            if (loss !== undefined) losses.push(loss);
            if (losses.length === 200) resolve([losses, measurements[0]]), worker.terminate();
            else worker.postMessage(0);
          };
        });
        worker.postMessage({ ...network, initial, seen });""",
        network=network,
    )
    experiment = experiments.get(RUNS[network])
    model, objective = begun(RUNS[network])
    optimizer, expected = experiment.optimizer.build(model.parameters()), []
    for step in range(200):
        optimizer.param_groups[0]["lr"] = experiment.optimizer.lr_at(step, experiment.steps)
        optimizer.zero_grad()
        loss = objective.loss(model, step)
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    losses, measured = shown.evaluate("ended")
    assert expected[-1] < 0.5 * expected[0]
    np.testing.assert_allclose(losses, expected, rtol=0, atol=1e-4)
    found = objective.evaluate(model)
    assert measured["step"] == 200
    for split in ("train", "test"):
        assert measured[f"{split}Loss"] == pytest.approx(found[f"{split}_loss"], abs=1e-4)
        assert measured[f"{split}Right"] == pytest.approx(found[f"{split}_accuracy"], abs=1e-9)


@pytest.mark.browser
def test_the_circles_are_those_of_the_library(shown):
    drawn = compute(shown, "return run().circles(5)")
    residues = EXPERIMENT.build().W_E[:59].detach().double()
    power = power_spectrum(residues)
    order = power.argsort(descending=True)[:5] + 1
    assert [one["k"] for one in drawn] == order.tolist()
    shares = (power / power.sum())[order - 1]
    np.testing.assert_allclose([one["share"] for one in drawn], shares, rtol=1e-5)
    centred = residues - residues.mean(0)
    expected = centred @ circle_plane(centred, int(order[0]))
    np.testing.assert_allclose(drawn[0]["points"][:59], expected, atol=1e-5)


@pytest.mark.browser
def test_every_residue_stands_out_from_the_page_in_light_and_in_dark(shown):
    """By the contrast that WCAG asks of what is no text; the grounds are those of the two modes."""
    contrasts = shown.evaluate(
        """() => {
          const pen = new OffscreenCanvas(1, 1).getContext('2d');
          const luminance = colour => {
            pen.fillStyle = colour;
            pen.fillRect(0, 0, 1, 1);
            const [r, g, b] = [...pen.getImageData(0, 0, 1, 1).data]
              .map(value => value / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
          };
          const dots = document.querySelector('grokking-here').shadowRoot.querySelectorAll('circle[r="2.6"]');
          const colours = new Set([...dots].map(dot => dot.getAttribute('fill')));
          const [white, dark] = ['#ffffff', '#121212'].map(luminance);
          return [...colours].map(luminance).map(own => [white / own, own / dark]);
        }"""
    )
    assert len(contrasts) == 59 and min(map(min, contrasts)) >= 3


@pytest.mark.browser
def test_the_petals_are_what_heads_read_of_all_pairs_of_one_residue(shown):
    """By the attention of torch, of each token where its embedding lies in the plane of the strongest frequency."""
    script = """const own = run(), [one] = own.circles(1);
        own.measure();
        return [one.k, own.petals(one.points, given)];"""
    k, drawn = compute(shown, script, 7)
    model = EXPERIMENT.build().double()
    embedded = model.W_E.detach()
    centre = embedded[:59].mean(0)
    places = (embedded - centre) @ circle_plane(embedded[:59] - centre, k)
    pattern = attention_grid(model)[0][7]  # (b, token, head)
    tokens = torch.tensor([[7, b, 59] for b in range(59)])
    expected = torch.einsum("bth,btx->hbx", pattern, places[tokens])
    assert (pattern[:, 0] - 1 / 3).abs().max() > 0.01  # attention is not even, before the first step as well
    np.testing.assert_allclose(drawn, expected, atol=1e-5)


@pytest.mark.browser
def test_a_reader_trains_pauses_and_begins_again(shown):
    train = shown.get_by_role("button", name="Train")
    assert words(shown).startswith("Step 0 of 1500. Training pairs right: ")
    train.click()
    shown.wait_for_function("document.querySelector('grokking-here').shadowRoot.querySelector('polyline')"
                            ".getAttribute('points').split(' ').length > 3")  # fmt: skip
    assert re.search(r" ms a step here, .* to go\.$", shown.locator("#pace").inner_text())
    shown.get_by_role("button", name="Pause").click()
    train.wait_for()  # the worker has taken its turn and rests
    said = words(shown)
    assert int(re.match(r"Step (\d+) of 1500", said)[1]) >= 30
    assert shown.locator("#shown").inner_text() == said
    pace = r"Step \d+: loss [\d.]+\. \d+ ms a step here\. Paused; .* left\."
    assert re.fullmatch(pace, shown.locator("#pace").inner_text())
    assert shown.locator("#circles circle").count() == 3 * 59
    assert shown.locator("#petals circle").count() == 2 * 59
    shown.wait_for_timeout(400)
    assert words(shown) == said  # it does rest
    back, circles = shown.get_by_label("Look back"), shown.locator("#circles")
    last, now = int(back.input_value()), circles.inner_html()
    assert last == int(back.get_attribute("max")) >= 3
    back.fill("1")
    assert told(shown, "#told", "Step 10 of 1500.") == shown.locator("#shown").inner_text()
    assert back.get_attribute("aria-valuetext") == "step 10"
    assert circles.inner_html() != now
    back.fill(str(last))
    assert words(shown) == said and circles.inner_html() == now
    train.click()
    shown.wait_for_function(f"{SLIDER}.max > {last}")
    shown.get_by_role("button", name="Start again").click()
    assert told(shown, "#told", "Step 0 of 1500.")
    assert back.get_attribute("max") == "0" and train.is_visible()


@pytest.mark.browser
def test_looking_back_pauses_and_keeps_what_the_worker_still_had_to_tell(shown):
    shown.get_by_role("button", name="Train").click()
    back = shown.get_by_label("Look back")
    shown.wait_for_function(f"{SLIDER}.max > 2")
    back.fill("2")
    shown.get_by_role("button", name="Train").wait_for()
    assert shown.locator("#shown").inner_text().startswith("Step 20 of 1500.")
    assert (back.input_value(), int(back.get_attribute("max")) > 2) == ("2", True)


TURNS = """() => {  // how often this thread comes round between two answers of a worker
    const turn = new MessageChannel();
    let turns = 0;
    window.between = [];
    turn.port1.onmessage = () => { turns++; turn.port2.postMessage(0) };
    turn.port2.postMessage(0);
    const pace = document.querySelector('grokking-here').shadowRoot.getElementById('pace');
    new MutationObserver(() => { window.between.push(turns); turns = 0 }).observe(pace, { childList: true });
}"""


@pytest.mark.browser
def test_the_large_network_is_trained_while_the_page_goes_on(shown):
    """A step of it takes a tenth of a second or so: a page that waited for it would come round once in that time."""
    asked = f"performance.getEntriesByType('resource').some(({{ name }}) => name.endsWith('/{LATER}'))"
    assert not shown.evaluate(asked)
    shown.get_by_label("Network", exact=True).select_option("modulo 113, the network of chapter 10")
    told(shown, "#told", "Step 0 of 6000. Training pairs right: ")
    assert shown.evaluate(asked)
    shown.evaluate(TURNS)
    shown.get_by_role("button", name="Train").click()
    told(shown, "#shown", "Step 10 of 6000. ")
    assert shown.locator("#circles circle").count() == 3 * 113
    assert shown.locator("#petals circle").count() == 4 * 113
    between = shown.evaluate("between")
    assert len(between) >= 2 and np.median(between) > 20
    shown.get_by_role("button", name="Pause").click()
    shown.get_by_role("button", name="Train").wait_for()


@pytest.mark.browser
def test_one_worker_trains_and_goes_with_the_element(shown):
    [first] = shown.workers
    with first.expect_event("close"):
        shown.get_by_role("button", name="Start again").click()
    shown.get_by_role("button", name="Train").click()
    shown.wait_for_function(f"{SLIDER}.max > 2")
    assert len(shown.workers) == 1 and shown.workers[0] != first
    with shown.workers[0].expect_event("close"):
        shown.evaluate("window.gone = document.querySelector('grokking-here'), gone.remove()")
    assert shown.workers == []
    shown.evaluate("document.body.append(gone)")  # elsewhere it begins anew
    told(shown, "#told", "Step 0 of 1500.")


@pytest.mark.browser
def test_an_anywidget_draws_it_and_takes_it_away(shown):
    """By what the module exports by default."""
    compute(shown, """const place = document.createElement('div');
        document.querySelector('grokking-here').replaceWith(place);
        const networks = JSON.stringify([{ ...network, name: 'small' }]);
        window.leave = m.default.render({ model: { get: name => ({ networks })[name] }, el: place });""")  # fmt: skip
    told(shown, "#told", "Step 0 of 1500.")
    shown.get_by_role("button", name="Train").click()
    told(shown, "#shown", "Step ")
    with shown.workers[-1].expect_event("close"):
        shown.evaluate("leave()")


@pytest.mark.browser
@pytest.mark.parametrize(
    "network, steps", [("modulo 59", 1500), ("modulo 113, the network of chapter 10", 6000)], ids=["59", "113"]
)
def test_a_page_that_was_opened_as_a_file_trains_too(page, folder, tmp_path, network, steps):
    site = shutil.copytree(folder, tmp_path / "site")
    load_scripts(SimpleNamespace(outdir=site, builder=SimpleNamespace(format="html")), None)
    page.goto((site / "notebooks" / "page.html").as_uri())
    page.get_by_label("Network", exact=True).select_option(network)
    told(page, "#told", f"Step 0 of {steps}.")
    page.get_by_role("button", name="Train").click()
    page.wait_for_function(f"{SLIDER}.max > 0")
    assert [fault for fault in page.faults if not fault.startswith(("asked for file:", "asked for blob:"))] == []


@pytest.mark.browser
def test_what_a_worker_cannot_do_is_said(shown):
    shown.evaluate("""() => {
        const { Worker } = window, lacks = 'data:text/javascript,throw Error("no SIMD")';
        window.Worker = class extends Worker { constructor() { super(lacks) } };
    }""")
    shown.get_by_role("button", name="Start again").click()
    assert told(shown, "#told", "It cannot be trained here: ").endswith("no SIMD")
    assert [fault for fault in shown.faults if "no SIMD" not in fault] == []
    shown.faults.clear()


@pytest.mark.browser
def test_what_cannot_be_loaded_is_said_and_another_network_can_be_chosen(shown):
    shown.route(f"**/{LATER}", lambda route: route.abort())
    shown.get_by_label("Network", exact=True).select_option("modulo 113, the network of chapter 10")
    assert LATER in told(shown, "#told", "It cannot be trained here: ")
    assert shown.get_by_role("button", name="Train").is_disabled()
    shown.unroute(f"**/{LATER}")
    shown.get_by_label("Network", exact=True).select_option("modulo 59")
    told(shown, "#told", "Step 0 of 1500.")
    assert shown.get_by_role("button", name="Train").is_enabled()
    shown.faults.clear()


@pytest.mark.browser
def test_while_weights_are_on_their_way_there_is_nothing_to_look_back_on(shown):
    shown.get_by_role("button", name="Train").click()
    shown.wait_for_function(f"{SLIDER}.max > 1")
    held = []
    shown.route(f"**/{LATER}", lambda route: held.append(route))
    shown.get_by_label("Network", exact=True).select_option("modulo 113, the network of chapter 10")
    told(shown, "#told", "Its weights are loaded.")
    assert shown.evaluate(f"[{SLIDER}.max, {SLIDER}.disabled]") == ["0", True]
    held[0].continue_()
    told(shown, "#told", "Step 0 of 6000.")
    shown.unroute(f"**/{LATER}")


@pytest.mark.browser
def test_a_network_that_is_too_large_is_refused(shown):
    """It would be written over itself."""
    said = compute(shown, """const [P, D] = [127, initial.W_E.shape[1]];
        const W_E = { values: new Float32Array((P + 1) * D), shape: [P + 1, D] };
        try { trainer().training({ ...initial, W_E }, seen, network).gradients() }
        catch (error) { return error.message }
        return 'taken';""", network=1)  # fmt: skip
    assert "more than what is trained here" in said


@pytest.mark.browser
def test_times_are_told_as_one_says_them(shown):
    said = compute(shown, "return given.map(m.duration)", [4.4, 89, 91, 1000, 7000])
    assert said == ["4 s", "89 s", "2 minutes", "17 minutes", "1.9 hours"]


@pytest.mark.browser
def test_a_screen_reader_hears_of_every_hundred_steps_and_the_eye_of_more(shown):
    shown.evaluate("""() => {
        const words = id => document.querySelector('grokking-here').shadowRoot.getElementById(id);
        window.heard = { shown: [], told: [] };
        for (const id of ['shown', 'told'])
            new MutationObserver(() => window.heard[id].push(parseInt(words(id).textContent.slice(5))))
                .observe(words(id), { childList: true });
    }""")
    shown.get_by_role("button", name="Train").click()
    shown.wait_for_function("window.heard.told.some(step => step >= 200)")
    heard = shown.evaluate("window.heard")
    hundreds = [step // 100 for step in heard["told"]]
    assert hundreds == sorted({*hundreds})
    assert len(heard["shown"]) > len(heard["told"])


@pytest.mark.browser
def test_what_has_happened_is_told_in_words(shown):
    one = {"trainLoss": 1, "testLoss": 1, "trainRight": 1, "testRight": 0.4567}
    history = [one | {"step": 0, "trainRight": 0.9999}, one | {"step": 10}, one | {"step": 20, "testRight": 1}]
    said = compute(shown, "return [1, 2, 3].map(n => m.describe(given.slice(0, n), 1500))", history)
    assert said[0] == "Step 0 of 1500. Training pairs right: 99.9 %, unseen pairs right: 45.6 %."
    assert said[1].endswith("unseen pairs right: 45.6 %. It knew all training pairs by step 10.")
    assert said[2].endswith("by step 10. All unseen pairs were right by step 20.")


@pytest.mark.browser
def test_it_fits_a_phone_and_gives_way_to_words_on_paper(shown):
    shown.set_viewport_size(PHONE)
    assert shown.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    shown.emulate_media(media="print")
    assert shown.get_by_text("A network that is trained in the page, for a screen").is_visible()
    assert not shown.get_by_role("button", name="Train").is_visible()
