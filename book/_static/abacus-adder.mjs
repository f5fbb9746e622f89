// A small adder with Abacus addresses:
// <abacus-adder a="9876543210" b="123456789" offset="10" loops="2" shift="0" weights="..." ...></abacus-adder>
//
// A page that uses it loads this module and what it imports. What stands between the tags is shown where
// no script runs, and on paper. weights: a safetensors file in base64, as chapters.ch32_abacus_adder packs it; the
// tests compare what is computed here with that module, number by number. heads: of attention. digits: of the longest
// number that is taken. trained, last: digits of the longest number in training, and the last row of the address table
// that an operand had there. own, own_loops: offset and loops of the grid, shares in percent, row by row.

import { say, typed } from "./fields.mjs";
import { decoded, tensors } from "./tensors.mjs";
import { define, rendering, tie } from "./widget.mjs";

const { sqrt, exp, abs, max, min } = Math;
const ALPHABET = "0123456789-+*=$";
const [PLUS, EQUALS, END] = ["+", "=", "$"].map((sign) => ALPHABET.indexOf(sign));

// --- the weights ---

/** The tables by name, in float32: whole numbers times their scale, vectors as they are. */
export const read = (bytes) => {
  const tables = tensors(bytes);
  for (const name of Object.keys(tables)) {
    const scale = tables[`${name}.scale`]?.values[0];
    if (scale === undefined) continue;
    tables[name].values.forEach((value, i, all) => (all[i] = value * scale));
    delete tables[`${name}.scale`];
  }
  return tables;
};

// --- the network, one token at a time ---

const POWERS = [
  1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277,
];

/** The error function, to 1.2e-7 (the Chebyshev fit of Numerical Recipes, `erfc`). */
const erf = (x) => {
  const t = 1 / (1 + 0.5 * abs(x));
  let sum = 0;
  for (let i = POWERS.length - 1; i >= 0; i--) sum = POWERS[i] + t * sum;
  const tail = t * exp(-x * x - 1.26551223 + t * sum);
  return x < 0 ? tail - 1 : 1 - tail;
};

const gelu = (x) => 0.5 * x * (1 + erf(x / sqrt(2)));

const added = (x, y) => x.map((value, i) => value + y[i]);

/** Of the tables, by the name of a layer. Four outputs at a time, of which none waits for another. */
const linear = (w, name) => {
  const { shape, values } = w[`${name}.weight`];
  const [outputs, inputs] = shape;
  const bias = w[`${name}.bias`].values;
  return (x) => {
    const y = new Float32Array(outputs);
    for (let first = 0; first < outputs; first += 4) {
      const out = min(first, outputs - 4); // the last four may begin among those before
      const one = out * inputs;
      const two = one + inputs, three = two + inputs, four = three + inputs;
      let s = bias[out], t = bias[out + 1], u = bias[out + 2], v = bias[out + 3];
      for (let i = 0; i < inputs; i++) {
        const value = x[i];
        s += values[one + i] * value;
        t += values[two + i] * value;
        u += values[three + i] * value;
        v += values[four + i] * value;
      }
      y[out] = s;
      y[out + 1] = t;
      y[out + 2] = u;
      y[out + 3] = v;
    }
    return y;
  };
};

const norm = (w, name) => {
  const [gain, bias] = ["weight", "bias"].map((part) => w[`${name}.${part}`].values);
  return (x) => {
    const mean = x.reduce((sum, value) => sum + value, 0) / x.length;
    const variance = x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length;
    return x.map((value, i) => ((value - mean) / sqrt(variance + 1e-5)) * gain[i] + bias[i]);
  };
};

/** The network of these tables: a function that begins a text, for so many loops; that takes its tokens in turn. */
export const network = (w, heads) => {
  const D = w["embedding.weight"].shape[1];
  const K = D / heads;
  const row = (name, i) => w[name].values.subarray(i * D, (i + 1) * D);
  const count = Object.keys(w).filter((name) => /^layers\.\d+\.qkv\.weight$/.test(name)).length;
  const layers = Array.from({ length: count }, (_, l) => ({
    normAttn: norm(w, `layers.${l}.norm_attn`), normMlp: norm(w, `layers.${l}.norm_mlp`),
    ...Object.fromEntries(["qkv", "out", "mlp_in", "mlp_out"].map((name) => [name, linear(w, `layers.${l}.${name}`)])),
  }));
  const [finalNorm, unembed] = [norm(w, "final_norm"), linear(w, "unembedding")];

  /** What one head reads: the values of the tokens so far, each by its attention. */
  const attend = (q, keys, values, head) => {
    const [first, last] = [head * K, (head + 1) * K];
    const scores = keys.map((k) => {
      let sum = 0;
      for (let i = first; i < last; i++) sum += k[i] * q[i];
      return sum / sqrt(K);
    });
    const top = max(...scores);
    const weights = scores.map((score) => exp(score - top));
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    const read = new Float32Array(K);
    values.forEach((v, s) => {
      const weight = weights[s] / total;
      for (let i = 0; i < K; i++) read[i] += v[first + i] * weight;
    });
    return read;
  };

  return (loops) => {
    const seen = Array.from({ length: loops * count }, () => ({ keys: [], values: [] })); // by loop and layer
    /** The logits of what follows this token, which stands on this row of the address table. */
    return (token, address) => {
      const e = added(row("embedding.weight", token), row("positions.rows.weight", address));
      let x = e;
      for (let loop = 0; loop < loops; loop++) {
        if (loop) x = added(x, e);
        layers.forEach((layer, l) => {
          const { keys, values } = seen[loop * count + l];
          const mixed = layer.qkv(layer.normAttn(x));
          const [q, k, v] = [0, 1, 2].map((i) => mixed.subarray(i * D, (i + 1) * D));
          keys.push(k);
          values.push(v);
          const z = new Float32Array(D);
          for (let head = 0; head < heads; head++) z.set(attend(q, keys, values, head), head * K);
          x = added(x, layer.out(z));
          x = added(x, layer.mlp_out(layer.mlp_in(layer.normMlp(x)).map(gelu)));
        });
      }
      return unembed(finalNorm(x));
    };
  };
};

// --- a sum ---

/** The row of each token: its place in its number plus the offset, and the shift in the second number; 0 for signs. */
export const addresses = (tokens, offset, shift = 0) => {
  let [place, signs] = [0, 0];
  return tokens.map((token) => {
    place = token < 10 ? place + 1 : 0;
    if (token === PLUS || token === EQUALS) signs++;
    return place && max(place + offset + (signs === 1 ? shift : 0), 1);
  });
};

/** A text as tokens: both numbers with the last digit first. */
export const asked = (a, b) =>
  Array.from(`${[...a].reverse().join("")}+${[...b].reverse().join("")}=`, (sign) => ALPHABET.indexOf(sign));

const chances = (logits) => {
  const top = max(...logits);
  const weights = Array.from(logits, (logit) => exp(logit - top));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
};

/** What the network writes: {text, last digit first, chance of each token, the end among them}. */
export const write = (run, a, b, offset, loops, shift = 0) => {
  const next = run(loops);
  const tokens = asked(a, b);
  const start = tokens.length;
  let logits;
  addresses(tokens, offset, shift).forEach((row, i) => (logits = next(tokens[i], row)));
  const chance = [];
  while (chance.length < max(a.length, b.length) + 2) {
    const all = chances(logits);
    const best = all.indexOf(max(...all));
    chance.push(all[best]);
    tokens.push(best);
    if (best === END) break;
    logits = next(best, addresses(tokens, offset, shift).at(-1));
  }
  const text = tokens.slice(start).filter((token) => token !== END);
  return { text: text.map((token) => ALPHABET[token]).join(""), chance };
};

/** What becomes of a + b, in words; the same as chapters.ch32_abacus_adder.describe. */
export const describe = (a, b, text) => {
  const [written, right] = [[...text].reverse().join(""), String(BigInt(a) + BigInt(b))];
  const verdict = written === right ? "That is right." : `That is wrong: it is ${right}.`;
  return `${a} + ${b}: the network writes ${written || "nothing"}. ${verdict}`;
};

// --- the drawing ---

// Viridis in six steps, dark for none right; as in the maps of the book.
const SHADES = ["#440154", "#414487", "#2a788e", "#22a884", "#7ad151", "#fde725"];

const cell = (words, more = "") => `<td${more}>${words}</td>`;

/** The sum in columns of equal place, highest first: digits, rows of the table, what is written, how sure. */
const columns = (a, b, offset, shift, last, { text, chance }) => {
  const right = String(BigInt(a) + BigInt(b));
  const width = max(a.length, b.length, right.length, text.length);
  const places = Array.from({ length: width }, (_, i) => width - i); // of the columns, counted from the last digit
  const digit = (number, place) => number.at(-place) ?? "";
  const of = (number) => places.map((place) => (place <= number.length ? digit(number, place) : ""));
  const rowOf = (place, moved) => max(place + offset + moved, 1);
  const rows = (number, moved) =>
    places.map((place) => {
      if (place > number.length) return cell("");
      return cell(rowOf(place, moved), rowOf(place, moved) > last ? ' class="beyond"' : "");
    });
  const wrote = [...text].reverse().join("");
  const answer = places.map((place) => {
    const [said, truth] = [place <= wrote.length ? digit(wrote, place) : "", place <= right.length ? digit(right, place) : ""];
    return cell(said || "·", ` class="${said === truth ? "good" : "bad"}"`);
  });
  const sure = places.map((place) => {
    const share = chance[place - 1];
    const bar = share === undefined || place > text.length ? "" : `<span style="height: ${(100 * share).toFixed(1)}%"></span>`;
    return cell(bar, ' class="sure"');
  });
  const line = (name, cells) => `<tr><th scope="row">${name}</th>${cells.join("")}</tr>`;
  return [
    line("first", of(a).map((value) => cell(value))), line("row", rows(a, 0)).replace("<tr", '<tr class="rows"'),
    line("second", of(b).map((value) => cell(value))), line("row", rows(b, shift)).replace("<tr", '<tr class="rows"'),
    line("written", answer), line("probability", sure),
  ].join("");
};

/** The map of right sums by both lengths; where these two numbers stand on it, if it is of the setting they are in. */
const map = (shares, digits, trained, a, b, ours) => {
  const step = 300 / digits;
  const at = (length) => 300 - length * step;
  const cells = shares.map((share, i) => {
    const [first, second] = [Math.floor(i / digits) + 1, (i % digits) + 1];
    const shade = SHADES[min(Math.floor((share / 100) * 5 + 0.5), 5)];
    return `<rect x="${((second - 1) * step).toFixed(2)}" y="${at(first).toFixed(2)}" width="${step + 0.3}" height="${step + 0.3}" fill="${shade}"/>`;
  });
  const [x, y] = [(b.length - 0.5) * step, at(a.length) + step / 2];
  const ring = (name) => `<circle cx="${x}" cy="${y}" r="9" class="${name}"/>`;
  return `${cells.join("")}
    <rect x="0" y="${at(trained)}" width="${trained * step}" height="${trained * step}" class="trained"/>
    ${ours ? ring("here-edge") + ring("here") : ""}`;
};

// --- the element ---

const slider = (name, words, least, most) => `
  <label for="${name}">${words} <output id="${name}-value"></output></label>
  <input type="range" id="${name}" min="${least}" max="${most}" step="1">`;

const CONTENT = ({ digits, most }) => `
<style>
  :host { display: block; container-type: inline-size; margin: 1.5rem 0; --ink: var(--pst-color-text-base, CanvasText); }
  .adder {
    display: grid; gap: 1rem 2rem; padding: 1rem; color: var(--ink); font-size: 0.92rem; line-height: 1.4;
    border: 1px solid var(--pst-color-border, GrayText); border-radius: 0.6rem;
  }
  .adder > * { min-width: 0; }
  .field { display: grid; gap: 0.2rem; }
  .controls { display: grid; gap: 0.2rem; align-content: start; }
  .controls label { font-weight: 600; }
  input[type="text"] {
    width: 100%; min-height: 2.2rem; box-sizing: border-box; padding: 0.2rem 0.5rem; font: inherit; color: inherit;
    font-variant-numeric: tabular-nums;
    background: var(--pst-color-surface, Field); border: 1px solid var(--pst-color-border, GrayText); border-radius: 0.4rem;
  }
  input[type="range"] { width: 100%; min-width: 0; height: 1.6rem; margin: 0; accent-color: var(--pst-color-primary, #0a5c80); }
  input[aria-invalid="true"] { border: 2px solid #D55E00; }
  p, figure { margin: 0; }
  #told { min-height: 2.8em; font-weight: 600; overflow-wrap: anywhere; }
  table { width: 100%; border-collapse: collapse; table-layout: fixed; font-variant-numeric: tabular-nums; }
  caption { text-align: left; font-weight: 600; }
  th { width: 5.2em; text-align: left; font-weight: 400; opacity: 0.85; }
  td { padding: 0.1rem 0; text-align: center; overflow: hidden; }
  .rows { font-size: 0.82em; opacity: 0.8; }
  figcaption { margin-top: 0.4rem; }
  .beyond { text-decoration: underline wavy #D55E00; }
  .good, .bad { font-weight: 700; border-top: 1px solid currentColor; }
  .bad { background: #D55E00; color: #000; }
  .sure { height: 1.6rem; vertical-align: bottom; }
  .sure span { display: block; width: 60%; margin: 0 auto; background: currentColor; opacity: 0.55; }
  svg { display: block; width: 100%; max-width: 19rem; overflow: visible; }
  .trained { fill: none; stroke: #000; stroke-width: 2.5; }
  .here-edge { fill: none; stroke: #fff; stroke-width: 5; }
  .here { fill: none; stroke: #D55E00; stroke-width: 3; }
  .elsewhere { filter: grayscale(1); opacity: 0.5; }
  .note { font-size: 0.88em; opacity: 0.85; }
  :focus-visible { outline: 3px solid var(--focus, Highlight); outline-offset: 2px; border-radius: 3px; }
  .idle .drawn { visibility: hidden; }
  @container (min-width: 40rem) {
    .adder { grid-template-columns: repeat(2, minmax(0, 1fr)); padding: 1.25rem 1.5rem; }
    .wide { grid-column: 1 / -1; }
    #told { min-height: 1.4em; }
  }
  @container (max-width: 40rem) { td { font-size: 0.8em; } th { width: 5.2em; font-size: 0.8em; } }
  slot { display: none; }
  @media print { .adder { display: none; } slot { display: block; } }
</style>
<section class="adder" aria-label="Adder with Abacus addresses">
  ${["a", "b"]
    .map(
      (name, i) => `<div class="field"><label for="${name}">${["First", "Second"][i]} number, up to ${digits} digits</label>
        <input type="text" id="${name}" inputmode="numeric" autocomplete="off" aria-describedby="told"></div>`,
    )
    .join("")}
  <p id="told" class="wide" role="status"></p>
  <table class="wide drawn"><caption></caption><tbody></tbody></table>
  <div class="controls">
    ${slider("offset", "Offset of all addresses:", 0, most)}
    ${slider("shift", "Addresses of the second number moved by:", -3, 3)}
    ${slider("loops", "Loops:", 1, 6)}
    <p id="about" class="note"></p>
  </div>
  <figure class="drawn">
    <svg viewBox="0 0 300 300" role="img" aria-label="Map of right sums" aria-describedby="where"></svg>
    <figcaption id="where" class="note"></figcaption>
  </figure>
</section>
<slot></slot>`;

const render = rendering((place) => {
  const { model, root } = place;
  const [heads, digits, trained, last, own, ownLoops] = ["heads", "digits", "trained", "last", "own", "own_loops"].map((name) =>
    Number(model.get(name)),
  );
  const shares = model.get("grid").split(" ").map(Number);
  const tables = read(decoded(model.get("weights")));
  const run = network(tables, heads);
  const most = tables["positions.rows.weight"].shape[0] - digits - 2; // so that every digit of a sum has a row
  root.innerHTML = CONTENT({ digits, most });
  const at = (id) => root.getElementById(id);

  const show = () => {
    const [a, b] = ["a", "b"].map((name) => typed(at(name), digits));
    const [offset, shift, loops] = ["offset", "shift", "loops"].map((name) => Number(at(name).value));
    for (const [name, value] of Object.entries({ offset, shift, loops })) at(`${name}-value`).textContent = value;
    const idle = a === undefined || b === undefined;
    root.querySelector("section").classList.toggle("idle", idle);
    if (idle) {
      say(at("told"), `Two whole numbers of at most ${digits} digits are taken.`);
      return;
    }
    const found = write(run, a, b, offset, loops, shift);
    say(at("told"), describe(a, b, found.text));
    const [caption, body] = ["caption", "tbody"].map((tag) => root.querySelector(tag));
    caption.textContent = "The sum in columns, with the row of the address table of each digit; bars: probability of the digit written";
    body.innerHTML = columns(a, b, offset, shift, last, found);
    say(
      at("about"),
      `Training had numbers of up to ${trained} digits, ${ownLoops} loops, no shift, and ` +
        `rows up to ${last}; a wavy line marks rows beyond.`,
    );
    const ours = offset === own && loops === ownLoops && shift === 0;
    const svg = root.querySelector("svg");
    svg.innerHTML = map(shares, digits, trained, a, b, ours);
    svg.classList.toggle("elsewhere", !ours);
    const share = shares[(a.length - 1) * digits + b.length - 1];
    say(
      at("where"),
      `Right sums by the digits of the first number (upwards) and of the second, at offset ${own} in ` +
        `${ownLoops} loops without a shift; ${ours ? "yellow" : "the lightest"} is all, outlined the lengths of training. ` +
        (ours ? `In the ring, ${a.length} and ${b.length} digits: ${share} %.` : "It is grey, for this sum is read in another setting."),
    );
  };

  for (const name of ["a", "b", "offset", "shift", "loops"]) {
    at(name).value = model.get(name);
    at(name).oninput = show;
  }
  tie(place, ["a", "b", "offset", "shift", "loops"]);
  show();
});

export default { render };

define("abacus-adder", render);
