// A small network that is trained in the page until it groks modular addition:
// <grokking-here weights="..." seen="..." lr="0.002" decay="1" warmup="10" steps="1500"></grokking-here>
//
// A page that uses it loads this module and what it imports. What stands between the tags is shown where
// no script runs, and on paper. weights: the network before training, a safetensors file in base64; seen: one bit for
// each pair (a, b), whether it trains, in base64. The tests hold losses and gradients to those of torch, step by step.
// lr, decay, warmup: of AdamW, as arithlib.training has it; steps: after which it pauses.

import { say } from "./fields.mjs";
import { STEP_STYLE, sayStep, stepSlider, stepTo } from "./steps.mjs";
import { tensors } from "./tensors.mjs";

const { exp, log, log10, sqrt, max, min, abs, floor, round, PI, cos, sin } = Math;
const [BETA_1, BETA_2, EPSILON] = [0.9, 0.98, 1e-8];

// --- matrices, row by row in one array ---

// Four terms at a time: a number that is read or written once for four products costs a quarter.

/** x (n, inputs) times w (inputs, outputs), added to y. */
const times = (x, w, y, n, inputs, outputs) => {
  for (let row = 0; row < n; row++) {
    const [from, to] = [row * inputs, row * outputs];
    for (let i = 0; i < inputs; i += 4) {
      const a = x[from + i], b = x[from + i + 1], c = x[from + i + 2], d = x[from + i + 3];
      if (a === 0 && b === 0 && c === 0 && d === 0) continue; // as of neurons that are silent
      const one = i * outputs, two = one + outputs, three = two + outputs, four = three + outputs;
      for (let o = 0; o < outputs; o++)
        y[to + o] += a * w[one + o] + b * w[two + o] + c * w[three + o] + d * w[four + o];
    }
  }
};

/** g (n, outputs) times w (inputs, outputs) transposed, added to x. */
const timesTransposed = (g, w, x, n, inputs, outputs) => {
  for (let row = 0; row < n; row++) {
    const [from, to] = [row * outputs, row * inputs];
    for (let i = 0; i < inputs; i += 4) {
      const one = i * outputs, two = one + outputs, three = two + outputs, four = three + outputs;
      let a = 0, b = 0, c = 0, d = 0;
      for (let o = 0; o < outputs; o++) {
        const value = g[from + o];
        a += value * w[one + o];
        b += value * w[two + o];
        c += value * w[three + o];
        d += value * w[four + o];
      }
      x[to + i] += a;
      x[to + i + 1] += b;
      x[to + i + 2] += c;
      x[to + i + 3] += d;
    }
  }
};

/** x (n, inputs) transposed times g (n, outputs), added to w. */
const transposedTimes = (x, g, w, n, inputs, outputs) => {
  const whole = n - (n % 4);
  for (let row = 0; row < whole; row += 4) {
    const one = row * outputs, two = one + outputs, three = two + outputs, four = three + outputs;
    for (let i = 0; i < inputs; i++) {
      const at = row * inputs + i, to = i * outputs;
      const a = x[at], b = x[at + inputs], c = x[at + 2 * inputs], d = x[at + 3 * inputs];
      if (a === 0 && b === 0 && c === 0 && d === 0) continue;
      for (let o = 0; o < outputs; o++)
        w[to + o] += a * g[one + o] + b * g[two + o] + c * g[three + o] + d * g[four + o];
    }
  }
  for (let row = whole; row < n; row++)
    for (let i = 0; i < inputs; i++)
      for (let o = 0; o < outputs; o++) w[i * outputs + o] += x[row * inputs + i] * g[row * outputs + o];
};

const filled = (n, length, row) => {
  const x = new Float64Array(n * length);
  for (let i = 0; i < n; i++) x.set(row, i * length);
  return x;
};

// --- the network and its gradient ---

/** P residues, R = P + 1 tokens, D d_model, H heads, K d_head, F neurons. */
const sizes = ({ W_E, W_Q, W_in }) => {
  const [R, D] = W_E.shape;
  const [H, , K] = W_Q.shape;
  return { P: R - 1, R, D, H, K, F: W_in.shape[1] };
};

/** Every pair once, a <= b, since a network without positions sees (b, a) as the same: how often it trains and tests. */
export const pairs = (P, seen) => {
  const trains = (a, b) => (seen[(a * P + b) >> 3] >> (7 - ((a * P + b) & 7))) & 1;
  const all = [];
  for (let a = 0; a < P; a++)
    for (let b = a; b < P; b++) {
      const train = trains(a, b) + (a === b ? 0 : trains(b, a));
      all.push({ a, b, answer: (a + b) % P, train, test: (a === b ? 1 : 2) - train });
    }
  return all;
};

/** What the = token finds at each token (scores of heads, and what they would write), from the weights alone. */
const tokenTables = (w) => {
  const { R, D, H, K, P } = sizes(w);
  const [E, Q, Key, V, O] = ["W_E", "W_Q", "W_K", "W_V", "W_O"].map((name) => w[name].values);
  const [q, k, v] = [new Float64Array(H * K), new Float64Array(H * R * K), new Float64Array(H * R * K)];
  const [scores, writes] = [new Float64Array(R * H), new Float64Array(R * H * D)];
  const equals = E.subarray(P * D);
  for (let h = 0; h < H; h++) {
    const of = (table, from, length) => table.subarray(h * from, h * from + length);
    const [own, keys, values] = [of(q, K, K), of(k, R * K, R * K), of(v, R * K, R * K)];
    times(equals, of(Q, D * K, D * K), own, 1, D, K);
    times(E, of(Key, D * K, D * K), keys, R, D, K);
    times(E, of(V, D * K, D * K), values, R, D, K);
    const written = new Float64Array(R * D);
    times(values, of(O, K * D, K * D), written, R, K, D);
    for (let r = 0; r < R; r++) {
      let score = 0;
      for (let i = 0; i < K; i++) score += keys[r * K + i] * own[i];
      scores[r * H + h] = score / sqrt(K);
      writes.set(written.subarray(r * D, (r + 1) * D), (r * H + h) * D);
    }
  }
  return { q, k, v, scores, writes };
};

/** How much head h of H looks at each of some tokens, by the scores of all tokens. */
const look = (scores, H, h, tokens) => {
  const score = tokens.map((t) => scores[t * H + h]);
  const top = max(...score);
  const weights = score.map((s) => exp(s - top));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
};

/** Everything from pairs to logits, (n, R) of them; what lies between is kept for the gradient. */
export const forward = (w, some) => {
  const { P, R, D, H, F } = sizes(w);
  const n = some.length;
  const tables = tokenTables(w);
  const looked = new Float64Array(n * H * 3); // at a, b and =
  const mid = filled(n, D, w.W_E.values.subarray(P * D));
  some.forEach(({ a, b }, row) => {
    for (let h = 0; h < H; h++) {
      const tokens = [a, b, P];
      const weights = look(tables.scores, H, h, tokens);
      tokens.forEach((t, i) => {
        const weight = weights[i];
        looked[(row * H + h) * 3 + i] = weight;
        for (let d = 0, from = (t * H + h) * D, to = row * D; d < D; d++) mid[to + d] += weight * tables.writes[from + d];
      });
    }
  });
  const neurons = filled(n, F, w.b_in.values);
  times(mid, w.W_in.values, neurons, n, D, F);
  for (let i = 0; i < neurons.length; i++) if (neurons[i] < 0) neurons[i] = 0;
  const out = filled(n, D, w.b_out.values);
  for (let i = 0; i < out.length; i++) out[i] += mid[i];
  times(neurons, w.W_out.values, out, n, F, D);
  const logits = new Float64Array(n * R);
  times(out, w.W_U.values, logits, n, D, R);
  return { tables, looked, mid, neurons, out, logits };
};

/** Of each row: its cross-entropy in nats, whether its largest logit is the answer's; probabilities in place of logits. */
export const judge = (logits, some, R) =>
  some.map(({ answer }, row) => {
    const own = logits.subarray(row * R, (row + 1) * R);
    let best = 0;
    for (let i = 1; i < R; i++) if (own[i] > own[best]) best = i;
    const [top, right] = [own[best], own[answer]];
    let total = 0;
    for (let i = 0; i < R; i++) total += own[i] = exp(own[i] - top);
    for (let i = 0; i < R; i++) own[i] /= total;
    return { loss: log(total) - (right - top), right: best === answer };
  });

/** The loss over the pairs that train, and its gradient by the names of the weights. */
export const lossAndGradient = (w, all) => {
  const { P, R, D, H, K, F } = sizes(w);
  const some = all.filter(({ train }) => train);
  const n = some.length;
  const { tables, looked, mid, neurons, out, logits: g } = forward(w, some);
  const total = some.reduce((sum, { train }) => sum + train, 0);
  const losses = judge(g, some, R);
  let loss = 0;
  some.forEach(({ answer, train }, row) => {
    loss += (losses[row].loss * train) / total;
    g[row * R + answer] -= 1;
    for (let i = 0; i < R; i++) g[row * R + i] *= train / total;
  });

  const grad = Object.fromEntries(Object.entries(w).map(([name, { values }]) => [name, new Float64Array(values.length)]));
  const [of_out, of_neurons] = [new Float64Array(n * D), new Float64Array(n * F)];
  transposedTimes(out, g, grad.W_U, n, D, R);
  timesTransposed(g, w.W_U.values, of_out, n, D, R);
  transposedTimes(neurons, of_out, grad.W_out, n, F, D);
  timesTransposed(of_out, w.W_out.values, of_neurons, n, F, D);
  for (let i = 0; i < of_neurons.length; i++) if (neurons[i] === 0) of_neurons[i] = 0;
  transposedTimes(mid, of_neurons, grad.W_in, n, D, F);
  const of_mid = of_out.slice();
  timesTransposed(of_neurons, w.W_in.values, of_mid, n, D, F);
  const of_scores = new Float64Array(R * H);
  const of_writes = new Float64Array(R * H * D);
  const equals = grad.W_E.subarray(P * D);
  some.forEach(({ a, b }, row) => {
    for (let d = 0; d < D; d++) {
      grad.b_out[d] += of_out[row * D + d];
      equals[d] += of_mid[row * D + d];
    }
    for (let i = 0; i < F; i++) grad.b_in[i] += of_neurons[row * F + i];
    for (let h = 0; h < H; h++) {
      const tokens = [a, b, P];
      const of_weight = tokens.map((t, i) => {
        const weight = looked[(row * H + h) * 3 + i];
        let sum = 0;
        for (let d = 0, at = (t * H + h) * D, from = row * D; d < D; d++) {
          sum += of_mid[from + d] * tables.writes[at + d];
          of_writes[at + d] += weight * of_mid[from + d];
        }
        return sum;
      });
      const weights = tokens.map((_, i) => looked[(row * H + h) * 3 + i]);
      const mean = weights.reduce((sum, weight, i) => sum + weight * of_weight[i], 0);
      tokens.forEach((t, i) => (of_scores[t * H + h] += weights[i] * (of_weight[i] - mean)));
    }
  });
  for (let h = 0; h < H; h++) {
    const of = (table, size) => table.subarray(h * size, (h + 1) * size);
    const written = new Float64Array(R * D);
    for (let r = 0; r < R; r++) written.set(of_writes.subarray((r * H + h) * D, (r * H + h + 1) * D), r * D);
    const [of_v, of_k, of_q] = [new Float64Array(R * K), new Float64Array(R * K), new Float64Array(K)];
    const [q, k] = [of(tables.q, K), of(tables.k, R * K)];
    transposedTimes(of(tables.v, R * K), written, of(grad.W_O, K * D), R, K, D);
    timesTransposed(written, of(w.W_O.values, K * D), of_v, R, K, D);
    for (let r = 0; r < R; r++)
      for (let i = 0; i < K; i++) {
        const of_score = of_scores[r * H + h] / sqrt(K);
        of_k[r * K + i] = of_score * q[i];
        of_q[i] += of_score * k[r * K + i];
      }
    const E = w.W_E.values;
    for (const [name, g] of [["W_V", of_v], ["W_K", of_k]]) {
      transposedTimes(E, g, of(grad[name], D * K), R, D, K);
      timesTransposed(g, of(w[name].values, D * K), grad.W_E, R, D, K);
    }
    transposedTimes(E.subarray(P * D), of_q, of(grad.W_Q, D * K), 1, D, K);
    timesTransposed(of_q, of(w.W_Q.values, D * K), equals, 1, D, K);
  }
  return { loss, grad };
};

/** A training: `step()` takes one and gives the loss before it; `measure()` says how train and test pairs fare now. */
export const training = (initial, seen, { lr, decay, warmup }) => {
  const weights = Object.fromEntries(
    Object.entries(initial).map(([name, { shape, values }]) => [name, { shape, values: Float64Array.from(values) }]),
  );
  const all = pairs(sizes(weights).P, seen);
  const moments = Object.fromEntries(
    Object.entries(weights).map(([name, { values }]) => [name, [0, 1].map(() => new Float64Array(values.length))]),
  );
  let taken = 0;
  const step = () => {
    const { loss, grad } = lossAndGradient(weights, all);
    const rate = lr * min((taken + 1) / max(warmup, 1), 1);
    taken++;
    const [unbias_1, unbias_2] = [1 - BETA_1 ** taken, 1 - BETA_2 ** taken];
    for (const [name, { values }] of Object.entries(weights)) {
      const [g, [m, v]] = [grad[name], moments[name]];
      for (let i = 0; i < values.length; i++) {
        m[i] = BETA_1 * m[i] + (1 - BETA_1) * g[i];
        v[i] = BETA_2 * v[i] + (1 - BETA_2) * g[i] * g[i];
        values[i] *= 1 - rate * decay;
        values[i] -= (rate * (m[i] / unbias_1)) / (sqrt(v[i] / unbias_2) + EPSILON);
      }
    }
    return loss;
  };
  const measure = () => {
    const found = judge(forward(weights, all).logits, all, sizes(weights).R);
    const mean = (kind, what) => {
      const count = all.reduce((sum, pair) => sum + pair[kind], 0);
      return found.reduce((sum, one, i) => sum + all[i][kind] * one[what], 0) / count;
    };
    return {
      step: taken, trainLoss: mean("train", "loss"), testLoss: mean("test", "loss"),
      trainRight: mean("train", "right"), testRight: mean("test", "right"),
    };
  };
  return { weights, step, measure, taken: () => taken };
};

/**
 * The circle on which the residues' embeddings lie at each frequency: its share of their variance, and where each of
 * the R tokens lies in its plane, seen from the centre of the residues.
 */
export const circles = ({ W_E }) => {
  const [R, D] = W_E.shape;
  const P = R - 1;
  const of = (k) => {
    const [c, s] = [new Float64Array(D), new Float64Array(D)];
    for (let t = 0; t < P; t++)
      for (let d = 0; d < D; d++) {
        c[d] += W_E.values[t * D + d] * cos((2 * PI * k * t) / P);
        s[d] += W_E.values[t * D + d] * sin((2 * PI * k * t) / P);
      }
    const power = [c, s].map((x) => x.reduce((sum, value) => sum + value * value, 0));
    return { k, c, s, power: power[0] + power[1] };
  };
  const found = Array.from({ length: (P - 1) / 2 }, (_, i) => of(i + 1));
  const total = found.reduce((sum, { power }) => sum + power, 0);
  return found
    .map(({ k, c, s, power }) => ({ k, share: total ? power / total : 0, points: plane(W_E.values, c, s, P, D) }))
    .sort((one, other) => other.share - one.share);
};

/** Each token in the plane of two directions, made orthogonal. */
const plane = (E, c, s, P, D) => {
  const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
  const unit = (x) => x.map((value) => value / (sqrt(dot(x, x)) || 1));
  const one = unit(c);
  const along = dot(s, one);
  const other = unit(s.map((value, i) => value - along * one[i]));
  const centre = new Float64Array(D);
  for (let t = 0; t < P; t++) for (let d = 0; d < D; d++) centre[d] += E[t * D + d] / P;
  return Array.from({ length: P + 1 }, (_, t) => {
    const own = Array.from({ length: D }, (_, d) => E[t * D + d] - centre[d]);
    return [dot(own, one), dot(own, other)];
  });
};

/** What each head reads of the pairs (a, b), for every b, in a plane where the tokens lie at these points: H petals. */
export const petals = (w, points, a) => {
  const { P, H } = sizes(w);
  const { scores } = tokenTables(w);
  const read = (h, tokens) => {
    const weights = look(scores, H, h, tokens);
    return [0, 1].map((axis) => tokens.reduce((sum, t, i) => sum + weights[i] * points[t][axis], 0));
  };
  return Array.from({ length: H }, (_, h) => Array.from({ length: P }, (_, b) => read(h, [a, b, P])));
};

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

// --- the drawing ---

const [TRAIN, TEST] = ["#0072B2", "#D55E00"];
const EVERY = 10; // steps between measurements
const SHOWN = 3; // circles
const [WIDE, HIGH] = [320, 150];

const [TOP, BOTTOM] = [1, -5]; // powers of ten

const height = (power) => (HIGH * (TOP - max(min(power, TOP), BOTTOM))) / (TOP - BOTTOM);

const hue = (t, P) => `hsl(${round((360 * t) / P)} 70% 45%)`;

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

/** What is drawn of the weights: the strongest circles, and the petals of the heads in the plane of the first. */
const picture = (weights) => {
  const strongest = circles(weights).slice(0, SHOWN);
  return { strongest, read: petals(weights, strongest[0].points, 0) };
};

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

const CONTENT = `
<style>
  :host { display: block; container-type: inline-size; margin: 1.5rem 0; --ink: var(--pst-color-text-base, CanvasText); }
  .training {
    display: grid; gap: 1rem 2rem; padding: 1rem; color: var(--ink); font-size: 0.92rem; line-height: 1.4;
    border: 1px solid var(--pst-color-border, GrayText); border-radius: 0.6rem;
  }
  .training > * { min-width: 0; }
  .buttons { display: flex; flex-wrap: wrap; gap: 0.6rem; }
  button {
    min-height: 2.4rem; padding: 0.2rem 1.1rem; font: inherit; font-weight: 600; color: inherit; cursor: pointer;
    background: var(--pst-color-surface, ButtonFace); border: 1px solid var(--pst-color-border, GrayText); border-radius: 0.4rem;
  }
  p, figure { margin: 0; }
  #shown { min-height: 4.2em; font-weight: 600; }
  #told { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  figcaption { font-weight: 600; }
  svg { display: block; width: 100%; overflow: visible; }
  #losses line { stroke: currentColor; opacity: 0.25; }
  #losses text { fill: currentColor; font: 10px system-ui, sans-serif; }
  .key { display: flex; flex-wrap: wrap; gap: 0.2rem 1.2rem; font-size: 0.9em; }
  .key span::before { content: ""; display: inline-block; width: 1.6em; margin-right: 0.4em; vertical-align: middle; border-top: 3px solid ${TRAIN}; }
  .key .test::before { border-top: 3px dashed ${TEST}; }
${STEP_STYLE}
  .panels { display: grid; grid-template-columns: repeat(${SHOWN}, minmax(0, 1fr)); gap: 0.5rem; text-align: center; }
  .panels p { font-size: 0.9em; font-variant-numeric: tabular-nums; }
  :focus-visible { outline: 3px solid var(--focus, Highlight); outline-offset: 2px; border-radius: 3px; }
  @container (min-width: 40rem) {
    .training { grid-template-columns: repeat(2, minmax(0, 1fr)); padding: 1.25rem 1.5rem; }
    .wide { grid-column: 1 / -1; }
    .tall { grid-row: span 2; }
    #shown { min-height: 2.8em; }
  }
  slot { display: none; }
  @media print { .training { display: none; } slot { display: block; } }
</style>
<section class="training" aria-label="A network that is trained here">
  <div class="buttons wide"><button id="go" type="button">Train</button><button id="again" type="button">Start again</button></div>
  <p id="shown" class="wide" aria-hidden="true"></p>
  <p id="told" role="status"></p>
  ${stepSlider("Look back")}
  <figure class="tall">
    <figcaption>Loss (nats) by training step, 0 to <span id="end"></span>; below 1e-5 it lies on the lower edge</figcaption>
    <svg id="losses" viewBox="0 0 ${WIDE} ${HIGH}" role="img" aria-label="Loss on training pairs and on unseen pairs by training step, logarithmic" aria-describedby="told"></svg>
    <div class="key"><span>training pairs</span><span class="test">unseen pairs</span></div>
  </figure>
  <figure>
    <figcaption>Residues at the ${SHOWN} strongest frequencies, coloured by their place on a perfect circle</figcaption>
    <div id="circles" class="panels"></div>
  </figure>
  <figure>
    <figcaption>Petals: what each head reads of 0 and every other residue, in the plane of the strongest frequency</figcaption>
    <div id="petals" class="panels"></div>
  </figure>
</section>
<slot></slot>`;

class GrokkingHere extends HTMLElement {
  #at = (id) => this.shadowRoot.getElementById(id);
  #run;
  #history = [];
  #frame;
  #heard; // for how many hundreds of steps a screen reader has been told

  connectedCallback() {
    if (this.shadowRoot) return;
    this.attachShadow({ mode: "open" }).innerHTML = CONTENT;
    this.#at("go").onclick = () => {
      if (!this.#frame) return this.#go();
      this.#pause();
      this.#show();
    };
    this.#at("again").onclick = () => this.#begin();
    this.#at("back").oninput = () => {
      this.#pause();
      this.#show(Number(this.#at("back").value));
    };
    this.#begin();
  }

  disconnectedCallback() {
    this.#pause();
  }

  #number = (name) => Number(this.getAttribute(name));

  #begin() {
    this.#pause();
    const bytes = (name) => Uint8Array.from(atob(this.getAttribute(name)), (letter) => letter.charCodeAt(0));
    const settings = { lr: this.#number("lr"), decay: this.#number("decay"), warmup: this.#number("warmup") };
    this.#run = training(tensors(bytes("weights")), bytes("seen"), settings);
    this.#history = [];
    this.#remember();
    this.#show();
  }

  #remember() {
    this.#history.push({ ...this.#run.measure(), ...picture(this.#run.weights) });
  }

  #go() {
    if (this.#run.taken() >= this.#number("steps")) this.#begin();
    this.#at("go").textContent = "Pause";
    const work = () => {
      const until = performance.now() + 40;
      do {
        this.#run.step();
        if (this.#run.taken() % EVERY === 0) this.#remember();
      } while (performance.now() < until && this.#run.taken() < this.#number("steps"));
      this.#show();
      if (this.#run.taken() >= this.#number("steps")) this.#pause();
      else this.#frame = requestAnimationFrame(work);
    };
    this.#frame = requestAnimationFrame(work);
  }

  #pause() {
    cancelAnimationFrame(this.#frame);
    this.#frame = undefined;
    if (this.#run) this.#at("go").textContent = "Train";
  }

  /** What there was at one of the measurements; without a number, at the last. */
  #show(shown = this.#history.length - 1) {
    const [steps, history] = [this.#number("steps"), this.#history.slice(0, shown + 1)];
    const { step, strongest, read } = history.at(-1);
    const last = this.#history.length - 1;
    stepTo(this.#at("back"), shown, last);
    this.#at("shown").textContent = describe(history, steps);
    this.#at("end").textContent = steps;
    // A screen reader says every change: so many are enough, and of a slider that is moved it says the step already.
    const hundreds = floor(step / (10 * EVERY));
    if (hundreds !== this.#heard || !this.#frame || step >= steps) {
      this.#heard = hundreds;
      sayStep(this.#at("back"), step);
      this.#at("told").setAttribute("aria-live", shown < last ? "off" : "polite");
      say(this.#at("told"), this.#at("shown").textContent);
    }
    this.#at("losses").innerHTML =
      LINES + curve(history, "trainLoss", steps, TRAIN, "") + curve(history, "testLoss", steps, TEST, 'stroke-dasharray="6 4"');
    const size = (points) => max(...points.flat().map(abs)) || 1;
    this.#at("circles").innerHTML = strongest
      .map(({ k, share, points }) => {
        const [words, residues] = [`frequency ${k}: ${(100 * share).toFixed(0)}\u00a0%`, points.slice(0, -1)];
        return panel(dots(residues, k, size(residues)), `The residues at ${words} of the variance`, words);
      })
      .join("");
    const [{ k, points }] = strongest;
    this.#at("petals").innerHTML = read
      .map((petal, h) => panel(dots(petal, k, size(points)), `What head ${h} reads of 0 and each residue`, `head ${h}`))
      .join("");
  }
}

customElements.define("grokking-here", GrokkingHere);
