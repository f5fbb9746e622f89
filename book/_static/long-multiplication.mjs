// A network that multiplies on a page, step by step:
// <long-multiplication a="512" b="439" step="13" weights="..." ...></long-multiplication>
//
// A page that uses it loads this module and what it imports. What stands between the tags is shown where
// no script runs, and on paper. weights: a safetensors file in base64, as chapters.ch78_page_multiplier packs it; the
// tests compare what is computed here with the library, context by context. heads: of attention. digits: of the
// longest factor that is taken. step: how many tokens are written at first.

import { say, typed } from "./fields.mjs";
import { decoded, tensors } from "./tensors.mjs";
import { define, rendering, save, tie } from "./widget.mjs";

const { sqrt, exp, max, min, floor } = Math;
const ALPHABET = "0123456789-+*=$";
const [EQUALS, END] = ["=", "$"].map((sign) => ALPHABET.indexOf(sign));
const ABSENT = -1;
// What a token sees, in the order of arithlib.models.column.PAGE_SLOTS; the last two are the token itself.
const SEEN = ["first factor", "second factor", "above", "before", "itself", "itself"];
const [OWN_DIGIT, OWN_SIGN] = [4, 5];

// --- the network, one context at a time ---

/** The network of these tables: the logits after a context, in double precision. */
export const network = (w, heads) => {
  const { shape: [V, D], values: embedding } = w["embedding.weight"];
  const K = D / heads;
  const near = w.near.values;
  const nearValue = w.near_value.values;

  const linear = (name) => {
    const { shape: [rows, columns], values } = w[`${name}.weight`];
    const bias = w[`${name}.bias`]?.values;
    return (x) =>
      Float64Array.from({ length: rows }, (_, out) => {
        let sum = bias ? bias[out] : 0;
        for (let i = 0, at = out * columns; i < columns; i++) sum += values[at + i] * x[i];
        return sum;
      });
  };
  const [qkv, out, mlpIn, mlpOut, unembed] = ["qkv", "out", "mlp_in", "mlp_out", "unembedding"].map(linear);
  const added = (x, y) => x.map((value, i) => value + y[i]);

  // All that a token contributes follows from the token alone.
  const tokens = Array.from({ length: V }, (_, token) => {
    const x = Float64Array.from(embedding.subarray(token * D, (token + 1) * D));
    const mixed = qkv(x);
    return { x, q: mixed.subarray(0, D), k: mixed.subarray(D, 2 * D), v: mixed.subarray(2 * D) };
  });

  return (context) => {
    const own = tokens[max(context[OWN_DIGIT], context[OWN_SIGN])];
    const there = context.flatMap((token, slot) => (token === ABSENT ? [] : [{ slot, ...tokens[token] }]));
    const read = new Float64Array(D);
    for (let head = 0; head < heads; head++) {
      const scores = there.map(({ slot, k }) => {
        let sum = 0;
        for (let i = head * K; i < (head + 1) * K; i++) sum += own.q[i] * k[i];
        return sum / sqrt(K) + near[slot * heads + head];
      });
      const top = max(...scores);
      const weights = scores.map((score) => exp(score - top));
      const total = weights.reduce((sum, weight) => sum + weight, 0);
      there.forEach(({ slot, v }, s) => {
        for (let i = head * K; i < (head + 1) * K; i++) read[i] += (weights[s] / total) * (v[i] + nearValue[slot * D + i]);
      });
    }
    const mid = added(own.x, out(read));
    return unembed(added(mid, mlpOut(mlpIn(mid).map((value) => max(value, 0)))));
  };
};

// --- a page ---

/** What the network writes of a times b: steps {row, step, context, token, lead}, until it ends or loses its way. */
export const write = (logitsOf, a, b) => {
  const [first, second] = [a, b].map((number) => Array.from(number).reverse().map(Number));
  const at = (digits, place) => digits?.[place] ?? ABSENT;
  const limit = b.length * (2 * (a.length + b.length) + 2) + 1;
  const steps = [];
  let [row, step, token, before, above, digits] = [0, 0, EQUALS, ABSENT, undefined, []];
  while (steps.length < limit && token !== END && (token < 10 || token === EQUALS)) {
    const place = floor(step / 2);
    const asksCarry = step % 2 === 1;
    const context = [
      at(first, place - row), at(second, row), at(above, place), asksCarry ? before : ABSENT,
      asksCarry ? token : ABSENT, asksCarry ? ABSENT : token,
    ];
    const logits = Array.from(logitsOf(context));
    const best = logits.indexOf(max(...logits));
    const lead = logits[best] - max(...logits.filter((_, i) => i !== best));
    steps.push({ row, step, context, token: best, lead });
    [before, token] = [token, best];
    if (best === EQUALS) [row, step, above, digits] = [row + 1, 0, digits, []];
    else {
      if (!asksCarry) digits.push(best);
      step++;
    }
  }
  return steps;
};

/** The number that the last row says, or undefined where the page has no end. */
export const stated = (steps) => {
  if (steps.at(-1)?.token !== END) return undefined;
  const last = steps.at(-1).row - 1;
  const digits = steps.filter(({ row, step, token }) => row === last && step % 2 === 0 && token < 10);
  return digits.map(({ token }) => token).reverse().join("").replace(/^0+(?=\d)/, "");
};

/** What becomes of a times b, in words; the same as chapters.ch78_page_multiplier.describe. */
export const describe = (a, b, steps) => {
  const [says, right] = [stated(steps), String(BigInt(a) * BigInt(b))];
  const verdict = says === right ? "That is right." : `That is wrong: it is ${right}.`;
  return `${a} × ${b}: the network writes ${says ?? "no end"}, in ${steps.length} tokens. ${verdict}`;
};

// --- the drawing ---

const text = (token) => (token === ABSENT ? "" : ALPHABET[token]);

/** The page as far as it is written, highest place first: digits large, the carry out of a place small before it. */
const table = (a, b, steps, count) => {
  const width = a.length + b.length;
  const now = steps[count - 1];
  const place = now && floor(now.step / 2);
  const line = (name, cells, shift = 0) => {
    const columns = Array.from({ length: width }, (_, i) => cells(width - 1 - i - shift) ?? "<td></td>");
    return `<tr><th scope="row">${name}</th>${columns.join("")}</tr>`;
  };
  const factor = (digits, seen) => (index) => {
    const digit = index >= 0 ? digits.at(-1 - index) : undefined;
    return digit && `<td${index === seen ? ' class="seen"' : ""}>${digit}</td>`;
  };
  const rows = [
    line("first", factor(a, now && place - now.row), now?.row ?? 0),
    line("second", factor(b, now?.row)),
  ];
  for (let row = 0; row <= (now?.row ?? -1); row++) {
    const of = steps.slice(0, count).filter((step) => step.row === row && step.token < 10);
    if (!of.length) continue;
    rows.push(
      line(`row ${row}`, (index) => {
        const [digit, carry] = [2 * index, 2 * index + 1].map((at) => of.find(({ step }) => step === at));
        if (!digit) return undefined;
        const classes = [];
        if (digit === now || carry === now) classes.push("now");
        if (row === now.row - 1 && index === place) classes.push("seen");
        const small = carry ? `<sup>${text(carry.token)}</sup>` : "";
        return `<td class="${classes.join(" ")}">${small}${text(digit.token)}</td>`;
      }),
    );
  }
  return rows.join("");
};

/** What the last token written was written from. */
const reason = ({ context, token, step, lead }) => {
  const seen = context.flatMap((key, slot) => (key === ABSENT ? [] : [`${SEEN[slot]} ${text(key)}`]));
  const what = token === END ? "the end" : token === EQUALS ? "the end of the row" : step % 2 ? "a carry" : "a digit";
  return `It sees ${seen.join(", ")}, and writes ${text(token)} (${what}) with a lead of ${lead.toFixed(1)} logits.`;
};

// --- the element ---

const CONTENT = (digits) => `
<style>
  :host { display: block; container-type: inline-size; margin: 1.5rem 0; --ink: var(--pst-color-text-base, CanvasText); }
  .page {
    display: grid; gap: 1rem 2rem; padding: 1rem; color: var(--ink); font-size: 0.92rem; line-height: 1.4;
    border: 1px solid var(--pst-color-border, GrayText); border-radius: 0.6rem;
  }
  .page > * { min-width: 0; }
  .field { display: grid; gap: 0.2rem; }
  label { font-weight: 600; }
  input[type="text"] {
    width: 100%; min-height: 2.2rem; box-sizing: border-box; padding: 0.2rem 0.5rem; font: inherit; color: inherit;
    font-variant-numeric: tabular-nums;
    background: var(--pst-color-surface, Field); border: 1px solid var(--pst-color-border, GrayText); border-radius: 0.4rem;
  }
  input[type="range"] { width: 100%; min-width: 0; height: 1.6rem; margin: 0; accent-color: var(--pst-color-primary, #0a5c80); }
  input[aria-invalid="true"] { border: 2px solid #D55E00; }
  p { margin: 0; }
  #told { min-height: 2.8em; font-weight: 600; overflow-wrap: anywhere; }
  #why { min-height: 4.2em; }
  table { border-collapse: collapse; font-size: 1.15rem; font-variant-numeric: tabular-nums; }
  th { padding-right: 0.8em; text-align: left; font-weight: 400; font-size: 0.85rem; opacity: 0.85; }
  td { position: relative; min-width: 1.9em; padding: 0.1rem 0; text-align: center; }
  tr:nth-child(3) > * { border-top: 1px solid currentColor; }
  sup { position: absolute; left: -0.25em; top: 0.2em; font-size: 0.62em; opacity: 0.8; }
  .seen { outline: 2px solid #D55E00; outline-offset: -3px; border-radius: 50%; }
  .now { outline: 2px solid #009E73; outline-offset: -3px; font-weight: 700; }
  .drawn { overflow-x: auto; }
  :focus-visible { outline: 3px solid var(--focus, Highlight); outline-offset: 2px; border-radius: 3px; }
  .idle .drawn, .idle .steps { visibility: hidden; }
  @container (min-width: 40rem) {
    .page { grid-template-columns: repeat(2, minmax(0, 1fr)); padding: 1.25rem 1.5rem; }
    .wide { grid-column: 1 / -1; }
    #told { min-height: 1.4em; }
    #why { min-height: 2.8em; }
  }
  @container (max-width: 40rem) { table { font-size: 0.95rem; } td { min-width: 1.35em; } th { padding-right: 0.3em; } }
  slot { display: none; }
  @media print { .page { display: none; } slot { display: block; } }
</style>
<section class="page" aria-label="Long multiplication by a network">
  ${["a", "b"]
    .map(
      (name, i) => `<div class="field"><label for="${name}">${["First", "Second"][i]} factor, up to ${digits} digits</label>
        <input type="text" id="${name}" inputmode="numeric" autocomplete="off" aria-describedby="told"></div>`,
    )
    .join("")}
  <p id="told" class="wide" role="status"></p>
  <div class="field wide steps">
    <label for="step">Tokens written: <output id="step-value"></output></label>
    <input type="range" id="step" min="0" step="1" aria-describedby="why">
    <p id="why" aria-live="polite"></p>
  </div>
  <p class="wide steps">The page, lowest places on the right; small digits are carries.</p>
  <div class="wide drawn" role="region" tabindex="0" aria-label="The page as far as it is written">
    <table><tbody></tbody></table>
  </div>
</section>
<slot></slot>`;

const render = rendering((place) => {
  const { model, root } = place;
  const digits = Number(model.get("digits"));
  const run = network(tensors(decoded(model.get("weights"))), Number(model.get("heads")));
  root.innerHTML = CONTENT(digits);
  const at = (id) => root.getElementById(id);
  let factors, steps;

  /** Write the page of the numbers that stand there, and show it up to a step: all of it unless told otherwise. */
  const multiply = (step = Infinity) => {
    const [a, b] = ["a", "b"].map((name) => typed(at(name), digits));
    const idle = a === undefined || b === undefined;
    root.querySelector("section").classList.toggle("idle", idle);
    if (idle) {
      say(at("told"), `Two whole numbers of at most ${digits} digits are taken.`);
      return;
    }
    factors = [a, b];
    steps = write(run, a, b);
    at("step").max = steps.length;
    at("step").value = min(step, steps.length);
    save(model, { step: at("step").value });
    say(at("told"), describe(a, b, steps));
    show();
  };

  const show = () => {
    const count = Number(at("step").value);
    at("step-value").textContent = `${count} of ${steps.length}`;
    say(at("why"), count ? reason(steps[count - 1]) : "Nothing yet.");
    root.querySelector("tbody").innerHTML = table(...factors, steps, count);
  };

  for (const name of ["a", "b"]) {
    at(name).value = model.get(name);
    at(name).oninput = () => multiply();
  }
  at("step").oninput = show;
  multiply(Number(model.get("step")));
  tie(place, ["a", "b", "step"]);
});

export default { render };

define("long-multiplication", render);
