// The grokked network: <grokked-network a="37" b="58" frequencies="1 15 19 21" weights="..."></grokked-network>
//
// A page that uses it loads this module and what it imports. What stands between the tags is shown where
// no script runs, and on paper. weights: a safetensors file in base64, the tables of
// arithlib.analysis.folded.Folded; the tests compare what is computed here with that class, number by number.
// frequencies: the key frequencies of the embedding, those that can be switched off. seen: one bit for each pair
// (a, b), whether it trained, in base64. history, if its training is to be
// looked back on: of each snapshot the step and what to say of it, the last being the network itself; snapshots: where
// the tables of the others are, by step, which are loaded once somebody asks for one.

import { say } from "./fields.mjs";
import { STEP_STYLE, sayStep, stepSlider, stepTo } from "./steps.mjs";
import { decoded, fetched, tensors } from "./tensors.mjs";
import { define, rendering, tie } from "./widget.mjs";

const { fround, exp, abs, max, hypot, floor } = Math;
const TURN = 2 * Math.PI;

// --- the weights ---

/** The tables by name, in float32; a table of whole numbers has a scale for each row, or none. */
export const read = (bytes) => scaled(tensors(bytes));

/** The tables of several networks: those called STEP/NAME, by step. */
export const readSnapshots = (bytes) => {
  const found = {};
  for (const [name, table] of Object.entries(tensors(bytes))) {
    const [step, own] = name.split("/");
    (found[step] ??= {})[own] = table;
  }
  Object.values(found).forEach(scaled);
  return found;
};

const scaled = (tables) => {
  for (const name of ["writes", "answers"]) {
    const { shape, values } = tables[name];
    const scale = tables[`${name}.scale`].values;
    values.forEach((value, i) => (values[i] = value * scale[floor(i / shape[1])]));
    delete tables[`${name}.scale`];
  }
  return tables;
};

/** P residues, H heads, F neurons, I and J directions of the two products, K key frequencies. */
const sizes = ({ tokens, neurons, answers, circles }) => {
  const [, H, I] = tokens.shape;
  const [F, J] = neurons.shape;
  return { P: answers.shape[1], H, I, F, J, K: circles.shape[1] };
};

/** The tables of the network whose residue embeddings lack the waves at these frequencies. */
export const without = (w, frequencies) => {
  const { P } = sizes(w);
  const [cos, sin] = [Math.cos, Math.sin].map((wave) => Array.from({ length: P }, (_, t) => wave((TURN * t) / P)));
  const less = ({ shape, values }) => {
    const columns = values.length / shape[0];
    const out = Float64Array.from(values);
    for (const k of frequencies)
      for (let column = 0; column < columns; column++) {
        let [c, s] = [0, 0];
        for (let t = 0; t < P; t++) {
          const value = values[t * columns + column];
          c += value * cos[(k * t) % P];
          s += value * sin[(k * t) % P];
        }
        for (let t = 0; t < P; t++)
          out[t * columns + column] -= (2 / P) * (c * cos[(k * t) % P] + s * sin[(k * t) % P]);
      }
    return { shape, values: Float32Array.from(out) };
  };
  return { ...w, scores: less(w.scores), tokens: less(w.tokens), circles: less(w.circles) };
};

// --- the network, in float32 ---

/** Adds x times a matrix to out; each product and each sum is rounded to float32. */
const addProduct = (out, x, matrix) => {
  const columns = out.length;
  for (let i = 0, at = 0; i < x.length; i++, at += columns) {
    const value = x[i];
    if (value === 0) continue;
    for (let j = 0; j < columns; j++) out[j] = fround(out[j] + fround(value * matrix[at + j]));
  }
  return out;
};

/** What each head gives a, b and "=" of its attention: three arrays over the heads. */
export const attention = (w, a, b) => {
  const { P, H } = sizes(w);
  const pattern = [a, b, P].map((token) => w.scores.values.slice(token * H, (token + 1) * H));
  for (let h = 0; h < H; h++) {
    const top = max(...pattern.map((scores) => scores[h]));
    const weights = pattern.map((scores) => fround(exp(fround(scores[h] - top))));
    const total = weights.reduce((sum, weight) => fround(sum + weight), 0);
    pattern.forEach((scores, slot) => (scores[h] = weights[slot] / total));
  }
  return pattern;
};

/** A function of two numbers: {logits, pattern, neurons}, the neurons after their ReLU. */
export const network = (w) => {
  const { P, H, I, F, J } = sizes(w);
  return (a, b) => {
    const pattern = attention(w, a, b);
    const moved = new Float32Array(I);
    [a, b, P].forEach((token, slot) =>
      addProduct(moved, pattern[slot], w.tokens.values.subarray(token * H * I, (token + 1) * H * I)),
    );
    const out = addProduct(Float32Array.from(w.constant.values), moved, w.writes.values);
    const neurons = out.subarray(0, F).map((value) => max(value, 0));
    const mixed = addProduct(new Float32Array(J), neurons, w.neurons.values);
    const added = addProduct(new Float32Array(P), mixed, w.answers.values);
    return { logits: out.slice(F).map((value, c) => value + added[c]), pattern, neurons };
  };
};

/** The best answer, the next best, and by how much the first leads. */
export const decide = (logits) => {
  let [best, second] = logits[0] >= logits[1] ? [0, 1] : [1, 0];
  for (let c = 2; c < logits.length; c++) {
    if (logits[c] > logits[best]) [best, second] = [c, best];
    else if (logits[c] > logits[second]) second = c;
  }
  return { best, second, lead: logits[best] - logits[second] };
};

/** How many of all pairs come out right, in turns: {done, right}. a and b are alike to it, so each two count twice. */
export function* count(w, turn = 50) {
  const { P } = sizes(w);
  const run = network(w);
  let [right, met] = [0, 0];
  for (let a = 0; a < P; a++)
    for (let b = a; b < P; b++) {
      if (decide(run(a, b).logits).best === (a + b) % P) right += a === b ? 1 : 2;
      if (++met % turn === 0) yield { done: met / ((P * (P + 1)) / 2), right };
    }
  yield { done: 1, right };
}

/** W_L[neuron * P + answer], what each neuron adds to the logit of each answer. */
export const readout = (w) => {
  const { P, F, J } = sizes(w);
  const all = new Float32Array(F * P);
  for (let n = 0; n < F; n++)
    addProduct(all.subarray(n * P, (n + 1) * P), w.neurons.values.subarray(n * J, (n + 1) * J), w.answers.values);
  return all;
};

/** The frequency at which the answers read a neuron most: the wave with the greatest power in its row of W_L. */
export const heard = (row) => {
  const P = row.length;
  let [found, most] = [0, -1];
  for (let k = 1; k <= (P - 1) / 2; k++) {
    let [c, s] = [0, 0];
    row.forEach((value, t) => {
      const angle = (TURN * ((k * t) % P)) / P;
      c += value * Math.cos(angle);
      s += value * Math.sin(angle);
    });
    if (c * c + s * s > most) [found, most] = [k, c * c + s * s];
  }
  return found;
};

// --- what is told ---

const grouped = (number) => number.toLocaleString("en-US");

/** A lead or a share to one place, never more than it is. */
const atLeast = (value) => (floor(10 * value) / 10).toFixed(1);

/** Whether the pair (a, b) trained; the highest bit of a byte comes first. */
export const trained = (seen, P, a, b) => {
  const i = a * P + b;
  return ((seen[i >> 3] >> (7 - (i & 7))) & 1) === 1;
};

/** What becomes of a + b, in words; the same as chapters.ch11_grokked_network.describe. */
export const describe = (a, b, logits, seen) => {
  const P = logits.length;
  const pair = seen ? (trained(seen, P, a, b) ? ", a training pair" : ", an unseen pair") : "";
  const { best, second, lead } = decide(logits);
  const right = (a + b) % P;
  const verdict = best === right ? "That is right" : `That is wrong: it is ${right}`;
  return (
    `${a} + ${b}${pair}: the highest logit is that of ${best}, ahead of ${second} by ${atLeast(lead)}. ` +
    `${verdict}, modulo ${P}.`
  );
};

/** A list in words. */
const listed = (words) => [words.slice(0, -1).join(", "), ...words.slice(-1)].filter(Boolean).join(" and ");

const signed = (value) => `${value < 0 ? "−" : "+"}${abs(value).toFixed(1)}`;

// --- the drawing ---

const COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7"]; // of the heads
const RIGHT = "#D55E00";
const SIZE = 400; // of the circle's drawing
const [WIDTH, HEIGHT] = [113 * 6, 230]; // of the logits' drawing
const STRONGEST = 6; // neurons that are listed

/** What a head reads in the plane of one circle: the mean of a, b and "=", each by its attention. */
const mean = (place, pattern, h, a, b, P) =>
  [0, 1].map((axis) =>
    [a, b, P].reduce((sum, token, slot) => sum + pattern[slot][h] * place(token)[axis], 0),
  );

/** The residues on circle number i, a and b on it, what each head reads, and the petal of one head. */
const circle = (w, whole, i, a, b, pattern, head) => {
  const { P, H, K } = sizes(w);
  const point = (from, t) => from.circles.values.subarray((t * K + i) * 2, (t * K + i) * 2 + 2);
  const reach = max(...Array.from({ length: P }, (_, t) => hypot(...point(whole, t))));
  const unit = SIZE / (2.45 * reach);
  const at = ([x, y]) => [SIZE / 2 + unit * x, SIZE / 2 - unit * y];
  const place = (t) => point(w, t);
  const dot = (where, radius, more) => {
    const [x, y] = at(where).map((value) => value.toFixed(1));
    return `<circle cx="${x}" cy="${y}" r="${radius}" ${more}/>`;
  };
  const parts = Array.from({ length: P }, (_, t) => dot(place(t), 2.4, 'class="residue"'));
  const [[x1, y1], [x2, y2]] = [at(place(a)), at(place(b))];
  parts.push(`<path class="chord" d="M ${x1} ${y1} L ${x2} ${y2}"/>`);
  for (let other = 0; other < P; other++) {
    const where = mean(place, attention(w, a, other), head, a, other, P);
    parts.push(dot(where, 2.8, `class="petal" fill="${COLOURS[head % COLOURS.length]}"`));
  }
  parts.push(dot(place((a + b) % P), 9, `class="answer" stroke="${RIGHT}"`));
  for (const t of new Set([a, b])) parts.push(dot(place(t), 6, 'class="number"'));
  for (let h = 0; h < H; h++) {
    const where = mean(place, pattern, h, a, b, P);
    parts.push(dot(where, h === head ? 8 : 6, `class="head" fill="${COLOURS[h % COLOURS.length]}" data-head="${h}"`));
  }
  const label = (t, side) => {
    const [x, y] = place(t);
    const length = hypot(x, y) || 1;
    const [left, top] = at([x, y].map((value) => value + (side * 26 * value) / (unit * length)));
    return `<text x="${left.toFixed(1)}" y="${(top + 6).toFixed(1)}">${t}</text>`;
  };
  const close = hypot(x1 - x2, y1 - y2) < 34; // two labels on the same side would cover each other
  parts.push(label(a, 1));
  if (a !== b) parts.push(label(b, close ? -1 : 1));
  return parts.join("");
};

/** 113 bars from zero, the right answer's in colour, within -reach to reach. */
const bars = (logits, right, reach) => {
  const P = logits.length;
  const [width, half] = [WIDTH / P, HEIGHT / 2];
  const bar = (value, c) => {
    const height = (half * abs(value)) / reach;
    const more = c === right ? `fill="${RIGHT}"` : 'class="bar"';
    const place = `x="${(c * width + 0.6).toFixed(1)}" y="${(value > 0 ? half - height : half).toFixed(1)}"`;
    return `<rect ${place} width="${(width - 1.2).toFixed(1)}" height="${height.toFixed(1)}" ${more} data-logit="${value}"/>`;
  };
  return `${Array.from(logits, bar).join("")}<path class="zero" d="M 0 ${half} H ${WIDTH}"/>`;
};

// --- the element ---

const number = (name, label) => `
  <div class="number-field">
    <label for="${name}">${label} <var>${name}</var></label>
    <input type="number" id="${name}" min="0" step="1" inputmode="numeric" aria-describedby="seen">
    <input type="range" id="${name}-slider" min="0" step="1" aria-label="Slider of ${name}">
  </div>`;

const CONTENT = `
<style>
  :host { display: block; container-type: inline-size; margin: 1.5rem 0; --ink: var(--pst-color-text-base, CanvasText); }
  .network {
    display: grid; gap: 1rem 2rem; padding: 1rem; color: var(--ink); font-size: 0.92rem; line-height: 1.4;
    border: 1px solid var(--pst-color-border, GrayText); border-radius: 0.6rem;
  }
  .network > * { min-width: 0; }
  .numbers { display: grid; gap: 0.7rem 2rem; }
  .number-field { display: grid; grid-template-columns: 1fr auto; gap: 0.3rem 0.6rem; align-items: center; }
  .number-field input[type="range"] { grid-column: 1 / -1; width: 100%; min-width: 0; height: 1.5rem; margin: 0; }
  input[type="number"] {
    width: 5.5rem; min-height: 2.2rem; box-sizing: border-box; padding: 0.2rem 0.5rem; font: inherit; color: inherit;
    background: var(--pst-color-surface, Field); border: 1px solid var(--pst-color-border, GrayText); border-radius: 0.4rem;
  }
  input[aria-invalid="true"] { border: 2px solid ${RIGHT}; }
  input { accent-color: var(--pst-color-primary, #0a5c80); }
  .training { display: grid; gap: 0.3rem; }${STEP_STYLE}
  #epoch { min-height: 2.8em; font-variant-numeric: tabular-nums; }
  var { font-family: Georgia, serif; }
  p, figure, fieldset, table { margin: 0; }
  #seen { min-height: 4.2em; font-weight: 600; }
  figcaption, legend, caption { padding: 0; text-align: left; font-weight: 600; }
  fieldset { min-width: 0; padding: 0; border: 0; }
  svg { display: block; width: 100%; overflow: visible; }
  #circle { max-width: 25rem; margin: 0 auto; }
  .residue { fill: currentColor; opacity: 0.5; }
  .chord, .zero { stroke: currentColor; stroke-width: 1.2; opacity: 0.5; fill: none; }
  .answer { fill: none; stroke-width: 3.5; }
  .number { fill: currentColor; }
  .head { stroke: currentColor; stroke-width: 1.6; }
  .petal { opacity: 0.75; }
  .bar { fill: currentColor; opacity: 0.5; }
  text { fill: currentColor; font: 600 17px system-ui, sans-serif; text-anchor: middle; }
  .plot { position: relative; margin: 1.6rem 0 1.4rem; }
  .plot span { position: absolute; transform: translateX(-50%); white-space: nowrap; font-variant-numeric: tabular-nums; }
  .plot .best { bottom: 100%; }
  .plot .right { top: 100%; font-weight: 600; }
  .plot .high, .plot .low { transform: none; left: 0; opacity: 0.75; font-size: 0.85em; }
  .plot .high { bottom: 100%; }
  .plot .low { top: 100%; }
  .choices { display: flex; flex-wrap: wrap; gap: 0.2rem 1.1rem; }
  .choices label, .heads label { display: flex; gap: 0.4rem; align-items: center; min-height: 2rem; cursor: pointer; }
  input[type="radio"], input[type="checkbox"] { width: 1.15rem; height: 1.15rem; margin: 0; flex: none; cursor: pointer; }
  .swatch { width: 0.9em; height: 0.9em; border: 1px solid currentColor; border-radius: 50%; flex: none; }
  .share { display: flex; height: 0.8rem; border: 1px solid currentColor; border-radius: 0.2rem; overflow: hidden; }
  .share .other { opacity: 0.4; }
  .shares { margin: 0.1rem 0 0.5rem; font-size: 0.9em; font-variant-numeric: tabular-nums; }
  table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
  th, td { padding: 0.2rem 0 0.2rem 0.5rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--pst-color-border, GrayText); }
  th { font-weight: 400; opacity: 0.85; }
  progress, .right-share { width: 100%; height: 0.8rem; margin: 0.3rem 0; box-sizing: border-box; }
  progress { display: block; accent-color: var(--pst-color-primary, #0a5c80); }
  .right-share { border: 1px solid currentColor; border-radius: 0.2rem; }
  .right-share div { height: 100%; background: ${RIGHT}; }
  [hidden] { display: none; }
  .note { font-size: 0.88em; opacity: 0.85; }
  #right { min-height: 2.8em; }
  :focus-visible { outline: 3px solid var(--focus, Highlight); outline-offset: 2px; border-radius: 3px; }
  [inert] { opacity: 0.35; }
  @container (min-width: 40rem) {
    .network { grid-template-columns: repeat(2, minmax(0, 1fr)); padding: 1.25rem 1.5rem; }
    .numbers { grid-template-columns: repeat(2, minmax(0, 1fr)); }
    .wide { grid-column: 1 / -1; }
    #seen { min-height: 2.8em; }
    #right { min-height: 1.4em; }
  }
  slot { display: none; }
  @media print { .network { display: none; } slot { display: block; } }
</style>
<section class="network" aria-label="Grokked network">
  <div class="training wide" hidden>${stepSlider("Step of training")}<p id="epoch" role="status"></p></div>
  <div class="numbers wide">${number("a", "First number")}${number("b", "Second number")}</div>
  <p id="seen" class="wide" role="status"></p>
  <figure class="wide drawn">
    <figcaption>Logits of the answers 0 to 112; the right one in colour</figcaption>
    <div class="plot">
      <svg id="logits" role="img" aria-label="A bar for the logit of each answer" aria-describedby="seen"></svg>
      <span class="high"></span><span class="low"></span><span class="best"></span><span class="right"></span>
    </div>
  </figure>
  <fieldset class="wide">
    <legend>Frequencies in the embedding: take one out</legend>
    <div class="choices" id="switches"></div>
    <progress id="progress" max="1" value="0" aria-label="Share of the pairs that are tried"></progress>
    <div class="right-share" aria-hidden="true"><div></div></div>
    <p id="right" role="status"></p>
  </fieldset>
  <div class="drawn">
    <fieldset><legend>On the circle of frequency</legend><div class="choices" id="circles"></div></fieldset>
    <svg id="circle" viewBox="0 0 ${SIZE} ${SIZE}" role="img" aria-label="The residues in the plane of this frequency"
      aria-describedby="about"></svg>
    <p id="about" class="note"></p>
  </div>
  <div class="drawn">
    <fieldset class="heads"><legend>Attention from “=”, and whose petal to draw</legend><div id="heads"></div></fieldset>
    <table>
      <caption></caption>
      <thead><tr>${["neuron", "frequency", "activation", "adds"].map((name) => `<th scope="col">${name}</th>`).join("")}</tr></thead>
      <tbody></tbody>
    </table>
  </div>
</section>
<slot></slot>`;

class GrokkedNetwork {
  #model;
  #root;
  #signal;
  #at = (id) => this.#root.getElementById(id);
  #history; // of each snapshot the step and what to say of it
  #snapshots = new Map(); // step -> what is known of the network then
  #loading;
  #seen; // of each pair a bit, whether it trained, if the page says so
  #whole; // the tables as they came
  #tables; // and as they are, without what is switched off
  #run; // the network with these
  #readout;
  #heard; // of each neuron the frequency
  #counted; // what is switched off -> how many pairs are right
  #job; // the latest count: an earlier one gives up

  constructor(place) {
    const { model, root, signal } = place;
    [this.#model, this.#root, this.#signal] = [model, root, signal];
    root.innerHTML = CONTENT;
    this.#history = JSON.parse(model.get("history") ?? '[["end", ""]]');
    this.#seen = model.get("seen") && decoded(model.get("seen"));
    this.#take(this.#history.at(-1)[0], read(decoded(model.get("weights"))));
    const { P, H } = sizes(this.#whole);
    this.#root.querySelector(".training").hidden = this.#history.length === 1;
    this.#tell(this.#history.length - 1);
    this.#at("back").oninput = () => this.#lookBack();
    for (const name of ["a", "b"]) {
      const [typed, slid] = [this.#at(name), this.#at(`${name}-slider`)];
      for (const input of [typed, slid]) [input.max, input.value] = [P - 1, model.get(name)];
      typed.oninput = () => {
        if (this.#valid(name)) slid.value = typed.value;
        this.#show();
      };
      slid.oninput = () => {
        typed.value = slid.value;
        typed.dispatchEvent(new Event("input"));
      };
    }
    tie(place, ["a", "b"]);
    signal.addEventListener("abort", () => (this.#job = undefined));
    const choice = (type, name, value, words, chosen) =>
      `<label><input type="${type}" name="${name}" value="${value}"${chosen ? " checked" : ""}> ${words}</label>`;
    const keys = this.#keys;
    this.#at("circles").innerHTML = keys.map((k, i) => choice("radio", "circle", i, k, i === 0)).join("");
    const rest = `the other ${(P - 1) / 2 - keys.length}`;
    this.#at("switches").innerHTML = [...keys, rest].map((k) => choice("checkbox", "in", k, k, true)).join("");
    this.#at("heads").innerHTML = Array.from({ length: H }, (_, h) => {
      const colour = COLOURS[h % COLOURS.length];
      const part = (kind) => `<span class="${kind}" style="background: ${colour}"></span>`;
      const swatch = `<span class="swatch" style="background: ${colour}"></span>head ${h}`;
      const share = `<div class="share" aria-hidden="true">${part("one")}<span></span>${part("other")}</div>`;
      return `${choice("radio", "head", h, swatch, h === 0)}${share}<p class="shares"></p>`;
    }).join("");
    for (const id of ["circles", "heads"]) this.#at(id).onchange = () => this.#show();
    this.#at("switches").onchange = () => this.#switch();
    this.#switch();
  }

  get #keys() {
    return this.#model.get("frequencies").split(" ").map(Number);
  }

  #chosen(name) {
    return Number(this.#root.querySelector(`[name=${name}]:checked`).value);
  }

  /** Whether a whole number stands there that the network knows; an empty field does not count as 0. */
  #valid(name) {
    const { valueAsNumber: value } = this.#at(name);
    const valid = Number.isInteger(value) && 0 <= value && value < sizes(this.#whole).P;
    this.#at(name).setAttribute("aria-invalid", !valid);
    return valid;
  }

  /** Be the network of this step. */
  #take(step, whole) {
    if (!this.#snapshots.has(step)) {
      const { P, F } = sizes(whole);
      const all = readout(whole);
      const frequencies = Array.from({ length: F }, (_, n) => heard(all.subarray(n * P, (n + 1) * P)));
      this.#snapshots.set(step, { whole, readout: all, heard: frequencies, counted: new Map() });
    }
    const { whole: tables, readout: rows, heard: read, counted } = this.#snapshots.get(step);
    [this.#whole, this.#readout, this.#heard, this.#counted] = [tables, rows, read, counted];
  }

  /** Say of which snapshot everything is. */
  #tell(shown) {
    const [step, words] = this.#history[shown];
    stepTo(this.#at("back"), shown, this.#history.length - 1);
    sayStep(this.#at("back"), step);
    say(this.#at("epoch"), words);
  }

  /** Show the network as it was at the step where the slider stands. */
  async #lookBack() {
    if (!this.#loading) say(this.#at("epoch"), "Loading the snapshots.");
    this.#loading ??= fetched(this.#model.get("snapshots")).then(readSnapshots);
    const found = await this.#loading.catch(() => undefined);
    if (this.#signal.aborted) return;
    if (!found) {
      this.#loading = undefined; // for another try
      this.#tell(this.#history.length - 1);
      return say(this.#at("epoch"), "The snapshots could not be loaded.");
    }
    const shown = Number(this.#at("back").value); // it may have been moved on
    const [step] = this.#history[shown];
    this.#take(step, found[step]);
    this.#tell(shown);
    this.#switch();
  }

  /** Put in and take out what the switches say, and count again. */
  async #switch() {
    const { P } = sizes(this.#whole);
    const keys = this.#keys;
    const boxes = [...this.#at("switches").querySelectorAll("input")].filter((box) => !box.checked);
    const rest = Array.from({ length: (P - 1) / 2 }, (_, i) => i + 1).filter((k) => !keys.includes(k));
    const removed = boxes.flatMap((box) => (keys.includes(Number(box.value)) ? [Number(box.value)] : rest));
    this.#tables = without(this.#whole, removed);
    this.#run = network(this.#tables);
    this.#show();
    const mine = (this.#job = Symbol("count"));
    const [name, counted] = [removed.join(), this.#counted];
    if (!counted.has(name)) {
      say(this.#at("right"), "Trying all pairs.");
      this.#counting(true);
      let [last, since] = [undefined, performance.now()];
      for (last of count(this.#tables)) {
        if (performance.now() - since < 30) continue;
        this.#at("progress").value = last.done;
        await new Promise((resolve) => setTimeout(resolve)); // time for the page
        since = performance.now();
        if (this.#job !== mine) return;
      }
      counted.set(name, last.right);
    }
    this.#counting(false);
    const right = counted.get(name);
    this.#root.querySelector(".right-share div").style.width = `${(100 * right) / P ** 2}%`;
    const share = `${grouped(right)} of ${grouped(P * P)} pairs, ${atLeast((100 * right) / P ** 2)} %`;
    const out = listed(boxes.map((box) => box.value));
    say(this.#at("right"), `${out ? `Without ${out}` : "With all frequencies"} it is right for ${share}.`);
  }

  /** While pairs are tried, the share tried stands where the share of the right ones will. */
  #counting(now) {
    this.#at("progress").value = 0;
    this.#at("progress").hidden = !now;
    this.#root.querySelector(".right-share").hidden = now;
  }

  #show() {
    const good = ["a", "b"].map((name) => this.#valid(name));
    const wrong = ["a", "b"].filter((_, i) => !good[i]);
    // What is drawn is of other numbers: it stays, so that nothing below moves, but is neither used nor read aloud.
    for (const part of this.#root.querySelectorAll(".drawn")) part.inert = wrong.length > 0;
    const { P } = sizes(this.#whole);
    if (wrong.length)
      return say(this.#at("seen"), `Type a whole number from 0 to ${P - 1} as ${wrong.join(" and as ")}.`);
    const [a, b] = ["a", "b"].map((name) => this.#at(name).valueAsNumber);
    const found = this.#run(a, b);
    say(this.#at("seen"), describe(a, b, found.logits, this.#seen));
    this.#drawLogits(a, b, found.logits);
    this.#drawHeads(a, b, found.pattern);
    this.#listNeurons(found);
  }

  #drawLogits(a, b, logits) {
    const P = logits.length;
    const [{ best }, right] = [decide(logits), (a + b) % P];
    // On the scale of the whole network, and of the trained one, so that one sees the logits sink and rise.
    const others = [this.#whole, this.#snapshots.values().next().value.whole].map((w) => network(w)(a, b).logits);
    const reach = max(...[logits, ...others].flatMap((some) => Array.from(some, abs)));
    const svg = this.#at("logits");
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    svg.innerHTML = bars(logits, right, reach);
    const label = (kind, words, c) => {
      const span = this.#root.querySelector(`.plot .${kind}`);
      span.textContent = words;
      const half = `${0.3 * words.length}em`; // or a label of the first or the last bars would leave the page
      if (c !== undefined) span.style.left = `clamp(${half}, ${(100 * (c + 0.5)) / P}%, 100% - ${half})`;
    };
    const crowded = (c) => c < 0.25 * P; // the scale stands there, too
    label("high", crowded(best) ? "" : signed(reach));
    label("low", crowded(right) ? "" : signed(-reach));
    label("best", `${best}: ${signed(logits[best])}`, best);
    label("right", best === right ? String(right) : `${right} is right`, right);
  }

  #drawHeads(a, b, pattern) {
    const { P } = sizes(this.#whole);
    const [i, head] = [this.#chosen("circle"), this.#chosen("head")];
    const percent = (slot, h) => Math.round(100 * pattern[slot][h]);
    this.#at("circle").innerHTML = circle(this.#tables, this.#whole, i, a, b, pattern, head);
    const colours = `large dots: what each head reads of ${a} and ${b}; small dots: what head ${head} reads of ${a} and every other number`;
    say(this.#at("about"), `Grey: the residues. Ring: the answer ${(a + b) % P}. In colour, ${colours}.`);
    this.#at("heads").querySelectorAll(".share").forEach((share, h) => {
      [0, 2, 1].forEach((slot, part) => (share.children[part].style.width = `${100 * pattern[slot][h]}%`));
    });
    this.#at("heads").querySelectorAll(".shares").forEach((words, h) => {
      say(words, `${percent(0, h)} % on ${a}, ${percent(2, h)} % on “=”, ${percent(1, h)} % on ${b}`);
    });
  }

  #listNeurons({ logits, neurons }) {
    const P = logits.length;
    const { best } = decide(logits);
    const row = (n) => this.#readout.subarray(n * P, (n + 1) * P);
    const adds = (n) => neurons[n] * (row(n)[best] - row(n).reduce((sum, value) => sum + value, 0) / P);
    const effect = Array.from(neurons, (value, n) => [n, value, value > 0 ? adds(n) : 0]);
    const strongest = effect.sort(([, , one], [, , other]) => abs(other) - abs(one)).slice(0, STRONGEST);
    const on = neurons.reduce((sum, value) => sum + (value > 0), 0);
    const table = this.#root.querySelector("table");
    say(table.caption, `${on} of ${neurons.length} neurons are on; those that add most to ${best} or take most away, with the frequency at which they are read`);
    table.tBodies[0].innerHTML = strongest
      .map(([n, value, added]) => [n, this.#heard[n], value.toFixed(2), signed(added)])
      .map((cells) => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`)
      .join("");
  }
}

const render = rendering((place) => new GrokkedNetwork(place));

export default { render };

define("grokked-network", render);
