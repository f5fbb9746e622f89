// Networks that are trained in the page until they grok modular addition: <grokking-here networks="..."></grokking-here>
//
// A page that uses it loads this module and what it imports. What stands between the tags is shown where
// no script runs, and on paper. networks: a list, the first of which is there at the beginning; of each its name; its
// weights before training, a safetensors file in base64, or src, what is loaded to have them once it is chosen; seen,
// one bit for each pair (a, b), whether it trains, in base64; lr, decay and warmup of AdamW, as arithlib.training has
// it; steps, after which it pauses. A worker trains, so that the page never waits; the tests hold its losses and
// gradients to those of torch, step by step.

import { say } from "./fields.mjs";
import { trainer } from "./grokking-training.mjs";
import { STEP_STYLE, sayStep, stepSlider, stepTo } from "./steps.mjs";
import { decoded, fetched, tensors } from "./tensors.mjs";
import { define, rendering } from "./widget.mjs";

const { log10, max, min, abs, floor, round } = Math;

let program;
/** A worker that trains: of a page that is a file as well, whose workers may load nothing. */
export const hire = () => new Worker((program ??= URL.createObjectURL(new Blob([`(${trainer})().serve();`]))));

/** How far it has come, in words. */
export const describe = (history, steps) => {
  const now = history.at(-1);
  const percent = (share) => `${share === 1 ? 100 : floor(1000 * share) / 10} %`;
  const since = (kind) => history.find((one) => one[kind] === 1)?.step;
  const told = [
    `Step ${now.step} of ${steps}.`,
    `Training pairs right: ${percent(now.trainRight)}, unseen pairs right: ${percent(now.testRight)}.`,
  ];
  if (since("trainRight") !== undefined) told.push(`It knew all training pairs by step ${since("trainRight")}.`);
  if (since("testRight") !== undefined) told.push(`All unseen pairs were right by step ${since("testRight")}.`);
  return told.join(" ");
};

/** A length of time. */
export const duration = (seconds) => {
  if (seconds < 90) return `${round(seconds)} s`;
  return seconds < 5400 ? `${round(seconds / 60)} minutes` : `${(seconds / 3600).toFixed(1)} hours`;
};

// --- the drawing ---

const [TRAIN, TEST] = ["#0072B2", "#D55E00"];
const [WIDE, HIGH] = [320, 150];

const [TOP, BOTTOM] = [1, -5]; // powers of ten

const height = (power) => (HIGH * (TOP - max(min(power, TOP), BOTTOM))) / (TOP - BOTTOM);

// Hues of one lightness: each is told from white and from the ground of dark mode by 3 : 1 at least.
const hue = (t, P) => `oklch(0.62 0.14 ${round((360 * t) / P)})`;

/** A line through one kind of loss, on a logarithmic axis from 1e-5 to 10 nats; what is less lies on its lower edge. */
const curve = (history, kind, steps, colour, dash) => {
  const at = ({ step, ...found }) =>
    `${((WIDE * step) / steps).toFixed(1)},${height(log10(found[kind])).toFixed(1)}`;
  return `<polyline points="${history.map(at).join(" ")}" fill="none" stroke="${colour}" stroke-width="2.2" ${dash}/>`;
};

const LINES = [0, -1, -2, -3, -4, -5]
  .map((power) => {
    const y = height(power);
    return `<line x1="0" x2="${WIDE}" y1="${y}" y2="${y}"/><text x="2" y="${y - 3}">${power ? `1e${power}` : 1}</text>`;
  })
  .join("");

/** A point for each residue, in the colour of its place on a perfect circle; size: of what fills the drawing. */
const dots = (points, k, size) => {
  const place = (value) => ((42 * value) / size).toFixed(1);
  const P = points.length;
  return points
    .map(([x, y], t) => `<circle cx="${place(x)}" cy="${place(y)}" r="2.6" fill="${hue((k * t) % P, P)}"/>`)
    .join("");
};

const panel = (drawn, label, words) =>
  `<div><svg viewBox="-50 -50 100 100" role="img" aria-label="${label}">${drawn}</svg><p>${words}</p></div>`;

// --- the element ---

const TURN = 200; // ms that the worker trains before it tells

const CONTENT = `
<style>
  :host { display: block; container-type: inline-size; margin: 1.5rem 0; --ink: var(--pst-color-text-base, CanvasText); }
  .training {
    display: grid; gap: 1rem 2rem; padding: 1rem; color: var(--ink); font-size: 0.92rem; line-height: 1.4;
    border: 1px solid var(--pst-color-border, GrayText); border-radius: 0.6rem;
  }
  .training > * { min-width: 0; }
  .buttons { display: flex; flex-wrap: wrap; gap: 0.6rem; }
  button, select {
    min-height: 2.4rem; max-width: 100%; padding: 0.2rem 1.1rem; font: inherit; color: inherit; cursor: pointer;
    background: var(--pst-color-surface, ButtonFace); border: 1px solid var(--pst-color-border, GrayText); border-radius: 0.4rem;
  }
  button, #shown, figcaption { font-weight: 600; }
  p, figure { margin: 0; }
  #shown { min-height: 4.2em; }
  #pace { min-height: 2.8em; font-variant-numeric: tabular-nums; }
  #told { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  svg { display: block; width: 100%; overflow: visible; }
  #losses line { stroke: currentColor; opacity: 0.25; }
  #losses text { fill: currentColor; font: 10px system-ui, sans-serif; }
  .key { display: flex; flex-wrap: wrap; gap: 0.2rem 1.2rem; font-size: 0.9em; }
  .key span::before { content: ""; display: inline-block; width: 1.6em; margin-right: 0.4em; vertical-align: middle; border-top: 3px solid ${TRAIN}; }
  .key .test::before { border-top: 3px dashed ${TEST}; }
${STEP_STYLE}
  .panels { display: grid; grid-template-columns: repeat(var(--panels, 3), minmax(0, 1fr)); gap: 0.5rem; text-align: center; }
  .panels p { font-size: 0.9em; font-variant-numeric: tabular-nums; }
  :focus-visible { outline: 3px solid var(--focus, Highlight); outline-offset: 2px; border-radius: 3px; }
  @container (min-width: 40rem) {
    .training { grid-template-columns: repeat(2, minmax(0, 1fr)); padding: 1.25rem 1.5rem; }
    .wide { grid-column: 1 / -1; }
    .tall { grid-row: span 2; }
    #shown { min-height: 2.8em; }
    #pace { min-height: 1.4em; }
  }
  slot { display: none; }
  @media print { .training { display: none; } slot { display: block; } }
</style>
<section class="training" aria-label="A network that is trained here">
  <div class="buttons wide">
    <select id="which" aria-label="Network"></select>
    <button id="go" type="button">Train</button><button id="again" type="button">Start again</button>
  </div>
  <p id="shown" class="wide" aria-hidden="true"></p>
  <p id="told" role="status"></p>
  <p id="pace" class="wide"></p>
  ${stepSlider("Look back")}
  <figure class="tall">
    <figcaption>Loss (nats) by training step, 0 to <span id="end"></span>; below 1e-5 it lies on the lower edge</figcaption>
    <svg id="losses" viewBox="0 0 ${WIDE} ${HIGH}" role="img" aria-label="Loss on training pairs and on unseen pairs by training step, logarithmic" aria-describedby="told"></svg>
    <div class="key"><span>training pairs</span><span class="test">unseen pairs</span></div>
  </figure>
  <figure>
    <figcaption>Residues at the strongest frequencies, coloured by their place on a perfect circle</figcaption>
    <div id="circles" class="panels"></div>
  </figure>
  <figure>
    <figcaption>Petals: what each head reads of 0 and every other residue, in the plane of the strongest frequency</figcaption>
    <div id="petals" class="panels"></div>
  </figure>
</section>
<slot></slot>`;

const render = rendering(({ model, root, signal }) => {
  root.innerHTML = CONTENT;
  const at = (id) => root.getElementById(id);
  const networks = JSON.parse(model.get("networks"));
  let worker, network, history, step;
  let wanted; // whether it shall train
  let busy; // whether the worker has yet to answer
  let back; // the measurement that is looked back on, if any
  let heard; // for how many hundreds of steps a screen reader has been told
  let since; // when and at which step it began to train

  const tell = (words) => {
    at("shown").textContent = words;
    say(at("told"), words);
  };

  const fail = (reason) => {
    at("go").disabled = true;
    tell(`It cannot be trained here: ${reason}`);
  };

  const begin = async () => {
    worker?.terminate();
    network = networks[at("which").value];
    [history, step, wanted, busy, back, since] = [[], 0, false, true, undefined, undefined];
    stepTo(at("back"), 0, 0);
    [at("go").disabled, at("go").textContent, at("pace").textContent] = [false, "Train", ""];
    tell("Its weights are loaded.");
    let mine;
    try {
      mine = worker = hire();
      worker.onmessage = hear;
      worker.onerror = ({ message }) => fail(message);
      const weights = network.weights ? decoded(network.weights) : await fetched(network.src);
      if (worker === mine) worker.postMessage({ ...network, initial: tensors(weights), seen: decoded(network.seen) });
    } catch (error) {
      if (worker === mine) fail(error.message ?? `${network.src} cannot be loaded`);
    }
  };

  const hear = ({ data }) => {
    busy = false;
    step = data.step;
    history.push(...data.measurements);
    if (step >= network.steps) wanted = false;
    if (since && data.loss !== undefined) at("pace").textContent = pace(data.loss);
    train();
    if (data.measurements.length || !wanted) show();
  };

  const pace = (loss) => {
    const each = (performance.now() - since.time) / 1000 / (step - since.step);
    const rest = duration(each * (network.steps - step));
    const left = step === network.steps ? "." : wanted ? `, ${rest} to go.` : `. Paused; ${rest} left.`;
    return `Step ${step}: loss ${loss.toPrecision(3)}. ${round(1000 * each)} ms a step here${left}`;
  };

  /** Ask the worker for a turn, if one is wanted: it hears of a pause when it has taken that. */
  const train = () => {
    at("go").textContent = wanted ? "Pause" : "Train";
    if (!wanted || busy) return;
    busy = true;
    since ??= { time: performance.now(), step };
    worker.postMessage(TURN);
  };

  /** What there was at the measurement that is looked back on, or at the last. */
  const show = () => {
    const last = history.length - 1;
    if (last < 0) return; // its weights are still on their way
    const shown = back ?? last;
    const until = history.slice(0, shown + 1);
    const { strongest, read, ...now } = history[shown];
    stepTo(at("back"), shown, last);
    at("shown").textContent = describe(until, network.steps);
    at("end").textContent = network.steps;
    // A screen reader says every change: so many are enough, and of a slider that is moved it says the step already.
    const hundreds = floor(now.step / 100);
    if (hundreds !== heard || !wanted) {
      heard = hundreds;
      sayStep(at("back"), now.step);
      at("told").setAttribute("aria-live", shown < last ? "off" : "polite");
      say(at("told"), at("shown").textContent);
    }
    const curves = [["trainLoss", TRAIN, ""], ["testLoss", TEST, 'stroke-dasharray="6 4"']];
    at("losses").innerHTML =
      LINES + curves.map(([kind, ...look]) => curve(until, kind, network.steps, ...look)).join("");
    const size = (points) => max(...points.flat().map(abs)) || 1;
    at("circles").innerHTML = strongest
      .map(({ k, share, points }) => {
        const [words, residues] = [`frequency ${k}: ${(100 * share).toFixed(0)}\u00a0%`, points.slice(0, -1)];
        return panel(dots(residues, k, size(residues)), `The residues at ${words} of the variance`, words);
      })
      .join("");
    const [{ k, points }] = strongest;
    at("petals").style.setProperty("--panels", max(read.length, 3));
    at("petals").innerHTML = read
      .map((petal, h) => panel(dots(petal, k, size(points)), `What head ${h} reads of 0 and each residue`, `head ${h}`))
      .join("");
  };

  at("which").innerHTML = networks.map(({ name }, i) => `<option value="${i}">${name}</option>`).join("");
  at("which").onchange = at("again").onclick = begin;
  at("go").onclick = () => {
    if (!wanted && step >= network.steps) begin();
    wanted = !wanted;
    if (wanted) [back, since, at("pace").textContent] = [undefined, undefined, ""];
    if (wanted || !busy) train();
  };
  at("back").oninput = () => {
    [back, wanted] = [Number(at("back").value), false];
    show();
  };
  begin();
  signal.addEventListener("abort", () => worker?.terminate());
});

export default { render };
define("grokking-here", render);
