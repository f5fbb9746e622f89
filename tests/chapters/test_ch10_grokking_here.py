"""The network that a page trains: losses and gradients are those of torch, and a reader starts and stops it."""

import base64
import re
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from browsing import DESK, PHONE, SEND, fixtures_of, floats, told, words

from arithlib import experiments
from arithlib.analysis.attention import attention_grid
from arithlib.analysis.circles import circle_plane
from arithlib.analysis.fourier import power_spectrum
from arithlib.experiments import ModularObjective
from bookkit.build.checks import check_site
from bookkit.web_components import whole_source
from chapters.ch10_grokking_here import MODULE, RUN, GrokkingHere, describe, initial_weights, training_bits

EXPERIMENT = experiments.get(RUN)
SOURCE = Path(__file__).resolve().parents[2] / "book" / "_static" / MODULE
FIRST_LOAD = 300_000  # bytes of script and weights


def test_the_page_is_given_the_weights_and_pairs_of_the_run():
    given = dict(re.findall(r'(weights|seen)="([^"]*)"', GrokkingHere()._repr_html_().partition("<script")[0]))
    weights = safetensors.torch.load(base64.b64decode(given["weights"]))
    assert all(torch.equal(weights[name], value) for name, value in EXPERIMENT.build().state_dict().items())
    bits = np.unpackbits(np.frombuffer(base64.b64decode(given["seen"]), np.uint8))[: EXPERIMENT.task.p**2]
    assert torch.equal(torch.from_numpy(bits).bool(), EXPERIMENT.task.train_mask)
    assert (base64.b64decode(given["weights"]), base64.b64decode(given["seen"])) == (
        initial_weights(),
        training_bits(),
    )


def test_weights_and_script_stay_below_the_limit_of_a_first_load():
    given = GrokkingHere()._repr_html_().partition("<script")[0]
    assert GrokkingHere().page_bytes() < FIRST_LOAD
    assert 0 < len(given) + len(whole_source(MODULE)) - GrokkingHere().page_bytes() < 2000  # the rest: bits and words


def test_what_torch_made_of_it_is_said_where_nothing_runs():
    assert re.search(r"by step [1-9]\d+ and gets all unseen pairs right by step [1-9]\d+ of 1,500\.", describe())
    assert describe() in GrokkingHere()._repr_html_() and describe() in repr(GrokkingHere())


# --- in a browser ---


folder, address, _ = fixtures_of(GrokkingHere(), "page.html", SOURCE)


@pytest.fixture
def shown(page):
    page.set_viewport_size(DESK)
    page.goto("notebooks/page.html")
    page.get_by_role("button", name="Train").wait_for()
    yield page
    assert page.faults == []


def compute(page, script, given=None):
    return page.evaluate(
        f"""async given => {{
          const m = await import('/_static/{MODULE}');
          const {{ tensors }} = await import('/_static/tensors.mjs');
          const shown = document.querySelector('grokking-here');
          const bytes = name => Uint8Array.from(atob(shown.getAttribute(name)), letter => letter.charCodeAt(0));
          const begin = () => m.training(tensors(bytes('weights')), bytes('seen'), {{
            lr: Number(shown.getAttribute('lr')), decay: Number(shown.getAttribute('decay')),
            warmup: Number(shown.getAttribute('warmup')),
          }});
          {SEND}
          {script}
        }}""",
        given,
    )


def begun():
    """The run as torch begins it, in float64, in which the browser computes."""
    model = EXPERIMENT.build().double()
    return model, ModularObjective(EXPERIMENT.task, model, torch.device("cpu"))


def test_the_checks_of_the_site_accept_it(folder):
    assert check_site(folder) == []


@pytest.mark.browser
def test_the_gradient_of_every_weight_is_that_of_torch(shown):
    model, objective = begun()
    objective.loss(model, 0).backward()
    for name, parameter in model.named_parameters():
        script = """const run = begin(), all = m.pairs(59, bytes('seen'));
            return send(Float32Array.from(m.lossAndGradient(run.weights, all).grad[given]))"""
        found = floats(compute(shown, script, name), *parameter.shape)
        scale = parameter.grad.abs().max()
        assert scale > 1e-5 and (found - parameter.grad).abs().max() < 1e-6 * scale, name


@pytest.mark.browser
def test_the_losses_of_the_first_200_steps_are_those_of_torch(shown):
    script = "const run = begin(); return [Array.from({ length: 200 }, run.step), run.measure()]"
    losses, measured = compute(shown, script)
    model, objective = begun()
    optimizer, expected = EXPERIMENT.optimizer.build(model.parameters()), []
    for step in range(200):
        optimizer.param_groups[0]["lr"] = EXPERIMENT.optimizer.lr_at(step, EXPERIMENT.steps)
        optimizer.zero_grad()
        loss = objective.loss(model, step)
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    assert expected[-1] < 0.5 * expected[0]
    np.testing.assert_allclose(losses, expected, rtol=0, atol=1e-4)
    found = objective.evaluate(model)
    for split in ("train", "test"):
        assert measured[f"{split}Loss"] == pytest.approx(found[f"{split}_loss"], abs=1e-4)
        assert measured[f"{split}Right"] == pytest.approx(found[f"{split}_accuracy"], abs=1e-9)


@pytest.mark.browser
def test_the_circles_are_those_of_the_library(shown):
    drawn = compute(shown, "return m.circles(begin().weights)")
    residues = EXPERIMENT.build().W_E[:59].detach().double()
    power = power_spectrum(residues)
    order = power.argsort(descending=True)[:5] + 1
    assert [one["k"] for one in drawn[:5]] == order.tolist()
    shares = (power / power.sum())[order - 1]
    np.testing.assert_allclose([one["share"] for one in drawn[:5]], shares, rtol=1e-5)
    centred = residues - residues.mean(0)
    expected = centred @ circle_plane(centred, int(order[0]))
    np.testing.assert_allclose(drawn[0]["points"][:59], expected, atol=1e-5)


@pytest.mark.browser
def test_the_petals_are_what_heads_read_of_all_pairs_of_one_residue(shown):
    """By the attention of torch, of each token where its embedding lies in the plane of the strongest frequency."""
    script = "const w = begin().weights, [one] = m.circles(w); return [one.k, m.petals(w, one.points, given)]"
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
    shown.get_by_role("button", name="Pause").click()
    said = told(shown, "#told", "Step ")
    assert int(re.match(r"Step (\d+) of 1500", said)[1]) >= 30
    assert shown.locator("#shown").inner_text() == said
    assert shown.locator("#circles circle").count() == 3 * 59
    assert shown.locator("#petals circle").count() == 2 * 59
    train.wait_for()
    shown.wait_for_timeout(200)
    assert words(shown) == said  # it rests
    back, circles = shown.get_by_label("Look back"), shown.locator("#circles")
    last, now = int(back.input_value()), circles.inner_html()
    assert last == int(back.get_attribute("max")) >= 3
    back.fill("1")
    assert told(shown, "#told", "Step 10 of 1500.") == shown.locator("#shown").inner_text()
    assert back.get_attribute("aria-valuetext") == "step 10"
    assert circles.inner_html() != now
    back.fill(str(last))
    assert words(shown) == said and circles.inner_html() == now
    shown.get_by_role("button", name="Start again").click()
    assert told(shown, "#told", "Step 0 of 1500.")


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
    assert [step // 100 for step in heard["told"]] == list(range(1, len(heard["told"]) + 1))
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
