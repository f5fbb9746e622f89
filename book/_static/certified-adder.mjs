// The certified adder: <certified-adder a="99999" b="1" weights="..." certificate="..."></certified-adder>
//
// A page that uses it loads this module and what it imports. What stands between the tags is shown where
// no script runs, and on paper. weights: a safetensors file in base64. certificate: the JSON of its certificate.
// brief: adds, shows a column when asked, and leaves out the proof.
// The network is arithlib.models.column with a window of one column, and the proof that of
// arithlib.certify.checker: the tests compare both with what is computed here, number by number.

import { decoded } from "./tensors.mjs";
import { define, given, rendering, save, tie } from "./widget.mjs";

export const ALPHABET = "0123456789-+*=$";
const [PLUS, EQUALS, END, ABSENT] = [11, 13, 14, -1];
const SLOTS = [[0, 1], [1, 1], [2, 1], [0, 0], [1, 0]]; // number and distance of the five tokens that one may see
const OWN = 2; // which of them is the token itself
const ANSWER = 2; // the number that is written
export const MOST = 1_000_000; // digits of a number

/** Five characters for five tokens, "." where a number has ended. */
export const text = (context) => context.map((token) => ALPHABET[token] ?? ".").join("");

// --- the weights ---

/** The float32 tensors of a safetensors file: an 8-byte length, a JSON header, raw little-endian numbers. */
export const read = (bytes) => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = 8 + Number(view.getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, start)));
  const tensors = {};
  for (const [name, about] of Object.entries(header)) {
    if (!name.startsWith("model/")) continue;
    demand(about.dtype === "F32", `${name} is not float32`);
    const [first, last] = about.data_offsets;
    const at = (i) => view.getFloat32(start + first + 4 * i, true);
    tensors[name.slice("model/".length)] = Float32Array.from({ length: (last - first) / 4 }, (_, i) => at(i));
  }
  return tensors;
};

/** D dimensions, H heads of K, F neurons, V tokens. */
const sizes = (w) => {
  const V = ALPHABET.length;
  const [D, H, F] = [w["embedding.weight"].length / V, w.near.length / 8, w["mlp_in.bias"].length];
  return { V, D, H, K: D / H, F };
};

/** near[h, number, distance], the bias of a score. */
const near = (w, h, slot) => w.near[8 * h + 2 * SLOTS[slot][0] + SLOTS[slot][1]];

// --- the network, in float32 ---

const { fround, exp, abs, max, min, sqrt } = Math;

/** weight x + start; each product and each sum is rounded to float32. */
const product = (weight, x, start) => {
  const out = Float32Array.from(start);
  for (let row = 0, at = 0; row < out.length; row++) {
    let sum = out[row];
    for (let i = 0; i < x.length; i++, at++) sum = fround(sum + fround(weight[at] * x[i]));
    out[row] = sum;
  }
  return out;
};

/** A function of five tokens: {logits, pattern}, where pattern[slot][head] is how much is read from each. */
export const network = (w) => {
  const { V, D, H, K, F } = sizes(w);
  const part = (name, row) => w[name].subarray(row * D, (row + 1) * D);
  const x = [0, 1, 2].map((number) =>
    Array.from({ length: V }, (_, token) =>
      part("embedding.weight", token).map((value, i) => value + part("numbers.weight", number)[i]),
    ),
  );
  const qkv = x.map((tokens) => tokens.map((one) => product(w["qkv.weight"], one, w["qkv.bias"])));
  const scale = fround(1 / sqrt(K));
  const nothing = new Float32Array(D);
  const score = (own, slot, token, h) => {
    const [q, k] = [qkv[ANSWER][own], qkv[SLOTS[slot][0]][token]];
    let sum = 0;
    for (let i = h * K; i < (h + 1) * K; i++) sum = fround(sum + fround(q[i] * k[D + i]));
    return fround(fround(sum * scale) + near(w, h, slot));
  };
  return (context) => {
    const own = context[OWN];
    const pattern = SLOTS.map(() => new Float32Array(H));
    const z = new Float32Array(D);
    for (let h = 0; h < H; h++) {
      const scores = context.map((token, slot) => (token === ABSENT ? -Infinity : score(own, slot, token, h)));
      const top = max(...scores);
      const weights = scores.map((one) => fround(exp(fround(one - top)))); // a masked key has weight 0
      const total = weights.reduce((sum, one) => fround(sum + one), 0);
      context.forEach((token, slot) => {
        if (token === ABSENT) return;
        const share = (pattern[slot][h] = weights[slot] / total);
        const v = qkv[SLOTS[slot][0]][token];
        for (let i = h * K; i < (h + 1) * K; i++) z[i] += fround(fround(share) * v[2 * D + i]);
      });
    }
    const mid = product(w["out.weight"], z, x[ANSWER][own]);
    const neurons = product(w["mlp_in.weight"], mid, w["mlp_in.bias"]).map((value) => max(value, 0));
    const added = product(w["mlp_out.weight"], neurons, w["mlp_out.bias"]);
    const post = mid.map((value, i) => value + added[i]);
    return { logits: product(w["unembedding.weight"], post, w["unembedding.bias"]), pattern };
  };
};

/** The best token, the next best, and by how much the first leads. */
export const decide = (logits) => {
  let [best, second] = logits[0] >= logits[1] ? [0, 1] : [1, 0];
  for (let token = 2; token < logits.length; token++) {
    if (logits[token] > logits[best]) [best, second] = [token, best];
    else if (logits[token] > logits[second]) second = token;
  }
  return { best, second, lead: logits[best] - logits[second] };
};

// --- sums ---

/** Digits of a number that is written as people do, least significant first; undefined for what is no number. */
export const digits = (written) => {
  const bare = written.replace(/[\s,_']/g, "").replace(/^0+(?=\d)/, "");
  return /^\d+$/.test(bare) ? Uint8Array.from(bare, Number).reverse() : undefined;
};

/** The five tokens that decide what is written in column i, from 0, under a + b. */
export const contextAt = (a, b, written, i) => {
  const token = (number, index, sign) => (index < 0 ? sign : (number[index] ?? ABSENT));
  const above = [token(a, i, ABSENT), token(b, i, ABSENT)];
  return [token(a, i - 1, ABSENT), token(b, i - 1, PLUS), token(written, i - 1, EQUALS), ...above];
};

/**
 * Writes a + b column by column, in turns: {written, met, lead, stopped} after each so many. A context that has been
 * met before is not computed again. It stops as arithlib.streaming.Stream does: at the end token, after any other
 * token that is no digit, or two tokens after the longer number.
 */
export function* addition(run, a, b, turn = 1024) {
  const longest = max(a.length, b.length);
  const written = new Uint8Array(longest + 2);
  const known = new Int8Array(1 << 20).fill(ABSENT);
  let [length, met, lead, stopped] = [0, 0, Infinity, false];
  const state = () => ({ written: written.subarray(0, length), met, lead, stopped });
  for (let i = 0; i < longest + 2; i++) {
    const context = contextAt(a, b, written, i);
    const code = context.reduce((sum, token) => 16 * sum + token + 1, 0);
    if (known[code] === ABSENT) {
      const found = decide(run(context).logits);
      known[code] = found.best;
      lead = min(lead, found.lead);
      met++;
    }
    if (known[code] === END) {
      stopped = true;
      break;
    }
    written[length++] = known[code];
    if (known[code] >= 10) break;
    if (length % turn === 0) yield state();
  }
  yield state();
}

/** The sum as it should be, digits least significant first. */
export const sum = (a, b) => {
  const out = [];
  let carry = 0;
  for (let i = 0; i < a.length || i < b.length || carry; i++) {
    const total = (a[i] ?? 0) + (b[i] ?? 0) + carry;
    out.push(total % 10);
    carry = total > 9 ? 1 : 0;
  }
  return Uint8Array.from(out);
};

// --- every situation there is ---

const TEN = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

/** What may follow in a number: it has a first digit, and ends after any but a zero, or after its first. */
const following = (digit, place) => {
  if (place === 0) return TEN;
  if (digit === ABSENT) return [ABSENT];
  return digit !== 0 || place === 1 ? [...TEN, ABSENT] : TEN;
};

/**
 * Every context that a correct prefix of some sum can show: [{context, right, column}], in lexical order of tokens.
 * What comes next depends on a column's digits, what was written, the carry, and whether it is the first; columns
 * are followed until no new one turns up.
 */
export const situations = () => {
  const start = { a: ABSENT, b: PLUS, written: EQUALS, carry: 0, place: 0, before: null };
  const found = new Map();
  const seen = new Set();
  for (const queue = [start]; queue.length; ) {
    const column = queue.shift();
    const { a, b, written, carry, place } = column;
    for (const c of following(a, place))
      for (const d of following(b, place)) {
        const total = max(c, 0) + max(d, 0) + carry;
        const right = c === ABSENT && d === ABSENT && total === 0 ? END : total % 10;
        const context = [a, b, written, c, d];
        const known = found.get(text(context));
        if (known && known.right !== right) throw new Rejected(`${text(context)} asks for two tokens`);
        if (!known) found.set(text(context), { context, right, column });
        if (right === END) continue;
        const next = { a: c, b: d, written: right, carry: total > 9 ? 1 : 0, place: min(place + 1, 2), before: column };
        const name = [c, d, right, next.carry, next.place].join();
        if (!seen.has(name)) queue.push(next);
        seen.add(name);
      }
  }
  const order = (one, other) => one.findIndex((token, i) => token !== other[i]);
  return [...found.values()].sort(({ context: one }, { context: other }) => {
    const i = order(one, other);
    return one[i] - other[i];
  });
};

/** A sum that comes to this situation by a shortest way: two numbers, as people write them, and the column, from 0. */
export const witness = ({ context, column }) => {
  const pairs = [[context[3], context[4]]];
  for (let at = column; at.place > 0; at = at.before) pairs.push([at.a, at.b]);
  const [a, b] = [0, 1].map((number) => {
    const all = pairs.map((pair) => pair[number]);
    const known = all.filter((digit) => digit !== ABSENT).join("");
    return all[0] === 0 && all.length > 1 ? `1${known}` : known; // no number of several digits begins with a zero
  });
  return { a, b, i: pairs.length - 1 };
};

// --- the proof ---

export class Rejected extends Error {}

const demand = (condition, problem) => {
  if (!condition) throw new Rejected(problem);
};

const [EXP_ERROR, TINY] = [2 ** -16, 1e-30];
// roundoff and error of exp: of the float64 here, so that exact results are enclosed, and of any float32 program.
export const EXACT = [2 ** -50, 2 ** -49];
export const FLOAT32 = [2 ** -24 * 1.001, EXP_ERROR];

const largest = (low, high) => max(abs(low), abs(high));

/** weight x and whatever is added to it, in any order; intervals are pairs [low, high] of arrays. */
const linear = (weight, x, unit, ...added) => {
  const n = x[0].length;
  const reach = x[0].map((low, i) => largest(low, x[1][i]));
  const low = new Float64Array(added[0][0].length);
  const high = new Float64Array(low.length);
  const off = 1.001 * (n + added.length + 1) * unit;
  for (let row = 0, at = 0; row < low.length; row++) {
    let [least, most, size] = [0, 0, 0];
    for (const part of added) {
      least += part[0][row];
      most += part[1][row];
      size += largest(part[0][row], part[1][row]);
    }
    for (let i = 0; i < n; i++, at++) {
      const value = weight[at];
      const [one, other] = [value * x[0][i], value * x[1][i]];
      least += one < other ? one : other;
      most += one < other ? other : one;
      size += abs(value) * reach[i];
    }
    low[row] = least - (off * size + TINY);
    high[row] = most + (off * size + TINY);
  }
  return [low, high];
};

/** The least and the largest product of two intervals. */
const times = (a, b, c, d) => {
  const [p, q, r, s] = [a * c, a * d, b * c, b * d];
  return [min(p, q, r, s), max(p, q, r, s)];
};

/** A function of a context and its right token: the least lead over every other that a program can come to. */
export const bounds = (w, [unit, expError]) => {
  const { V, D, H, K } = sizes(w);
  const exactly = (name) => [w[name], w[name]];
  const x = [0, 1, 2].map((number) =>
    Array.from({ length: V }, (_, token) => {
      const [embedding, of] = [w["embedding.weight"].subarray(token * D), w["numbers.weight"].subarray(number * D)];
      const value = Float64Array.from({ length: D }, (_, i) => embedding[i] + of[i]);
      const off = value.map((one) => 1.001 * unit * abs(one) + TINY);
      return [value.map((one, i) => one - off[i]), value.map((one, i) => one + off[i])];
    }),
  );
  const qkv = x.map((tokens) => tokens.map((one) => linear(w["qkv.weight"], one, unit, exactly("qkv.bias"))));
  const scale = K ** -0.5;

  const score = (own, slot, token, h) => {
    const [q, k] = [qkv[ANSWER][own], qkv[SLOTS[slot][0]][token]];
    let [low, high, size] = [0, 0, 0];
    for (let i = h * K; i < (h + 1) * K; i++) {
      const [least, most] = times(q[0][i], q[1][i], k[0][D + i], k[1][D + i]);
      low += least;
      high += most;
      size += largest(least, most);
    }
    const bias = near(w, h, slot);
    const off = 1.001 * (K + 6) * unit * (size * scale + abs(bias)) + TINY;
    return [low * scale + bias - off, high * scale + bias + off];
  };

  // A score depends on four small numbers; each is computed once.
  const scores = new Map();
  const scoreOf = (own, slot, token, h) => {
    const key = ((own * 5 + slot) * V + token) * H + h;
    if (!scores.has(key)) scores.set(key, score(own, slot, token, h));
    return scores.get(key);
  };

  const read = (context, h, z) => {
    const there = SLOTS.map((_, slot) => slot).filter((slot) => context[slot] !== ABSENT);
    const at = there.map((slot) => scoreOf(context[OWN], slot, context[slot], h));
    const top = max(...at.map(([, high]) => high));
    const slack = 1 + expError + unit * (16 + 2 * max(...at.map(([low]) => top - low)));
    const low = at.map((one) => exp(one[0] - top) / slack);
    const high = at.map((one) => exp(one[1] - top) * slack);
    const others = (values, j) => values.reduce((sum, value, i) => (i === j ? sum : sum + value), 0);
    // A key's share is least where it is least and all others are largest.
    const least = low.map((value, j) => value / (value + others(high, j)) / slack);
    const most = high.map((value, j) => (value / (value + others(low, j))) * slack);
    for (let i = h * K; i < (h + 1) * K; i++) {
      let size = 0;
      there.forEach((slot, j) => {
        const v = qkv[SLOTS[slot][0]][context[slot]];
        const [down, up] = times(least[j], most[j], v[0][2 * D + i], v[1][2 * D + i]);
        z[0][i] += down;
        z[1][i] += up;
        size += largest(down, up);
      });
      const off = 1.001 * (K + 5 * H + 5) * unit * size + TINY;
      z[0][i] -= off;
      z[1][i] += off;
    }
  };

  return (context, right) => {
    const z = [new Float64Array(D), new Float64Array(D)];
    for (let h = 0; h < H; h++) read(context, h, z);
    const mid = linear(w["out.weight"], z, unit, x[ANSWER][context[OWN]]);
    const pre = linear(w["mlp_in.weight"], mid, unit, exactly("mlp_in.bias"));
    const neurons = pre.map((part) => part.map((value) => max(value, 0)));
    const post = linear(w["mlp_out.weight"], neurons, unit, exactly("mlp_out.bias"), mid);
    const [low, high] = linear(w["unembedding.weight"], post, unit, exactly("unembedding.bias"));
    let rival = -Infinity;
    high.forEach((value, token) => {
      if (token !== right) rival = max(rival, value);
    });
    return low[right] - rival;
  };
};

const LAYOUT = ({ V, D, H, F }) => ({
  "embedding.weight": V * D, "numbers.weight": 4 * D, near: 8 * H, "out.weight": D * D,
  "qkv.weight": 3 * D * D, "qkv.bias": 3 * D, "mlp_in.weight": F * D, "mlp_in.bias": F,
  "mlp_out.weight": D * F, "mlp_out.bias": D, "unembedding.weight": V * D, "unembedding.bias": V,
});

const sha256 = async (bytes) => {
  demand(globalThis.crypto?.subtle, "a browser computes checksums only for pages that came over https");
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
};

/** What the proof takes from the weights, beside the bounds: sizes, and numbers so small that nothing overflows. */
const admissible = (w) => {
  demand(w["embedding.weight"] && w["mlp_in.bias"] && w.near, "these are no weights of this model");
  const layout = Object.entries(LAYOUT(sizes(w)));
  const fits = layout.length === Object.keys(w).length && layout.every(([name, size]) => w[name]?.length === size);
  demand(fits, "these are no weights of this model");
  const small = Object.values(w).every((values) => values.every((value) => abs(value) <= 2 ** 7));
  demand(small, "numbers are so large that float32 could overflow");
};

/** The smallest lead of the right token over all situations, and where: {looked, least, at}, in turns. */
export function* smallest(all, lead, turn = 64) {
  let [least, at] = [Infinity, all[0]];
  for (const [i, one] of all.entries()) {
    const found = lead(one.context, one.right);
    if (!(found >= least)) [least, at] = [found, one]; // so that what is no number is the smallest
    if (i % turn === turn - 1) yield { looked: i + 1, least, at };
  }
  yield { looked: all.length, least, at };
}

/**
 * Whether a certificate holds, as arithlib.certify.checker decides: yields how many situations it has looked at, of
 * how many, in which round (exact, then float32), and last the leads that it found. Throws Rejected, which says why,
 * where it does not.
 */
export async function* check(bytes, certificate) {
  const w = read(bytes);
  admissible(w);
  demand(certificate.sha256 === (await sha256(bytes)), "the certificate is about other weights");
  demand(certificate.exp_error === EXP_ERROR, "the certificate grants another error to exp");
  const all = situations();
  const lines = all.map(({ context, right }) => text(context) + ALPHABET[right]).sort();
  const digest = await sha256(new TextEncoder().encode(lines.join("\n")));
  const { count, sha256: stated } = certificate.contexts;
  demand(count === all.length && stated === digest, "these are not the contexts that occur");
  const found = {};
  for (const [name, arithmetic] of [["margin", EXACT], ["margin_float32", FLOAT32]]) {
    let last;
    const where = { contexts: all.length, round: Object.keys(found).length + 1, rounds: 2 };
    for (last of smallest(all, bounds(w, arithmetic))) yield { looked: last.looked, ...where };
    const { least, at } = last;
    demand(0 < certificate[name] && certificate[name] <= least, `${name} is ${least.toPrecision(6)}, not as stated`);
    const there = name !== "margin" || certificate.margin_at === text(at.context);
    demand(there, `the smallest margin is at ${text(at.context)}, not where the certificate says`);
    found[name] = least;
  }
  yield { looked: all.length, contexts: all.length, round: 2, rounds: 2, ...found };
}

// --- what is told ---

/** A lead to so many places, never more than it is. */
const atLeast = (lead, places) => (Math.floor(lead * 10 ** places) / 10 ** places).toFixed(places);

const grouped = (count) => count.toLocaleString("en-US");

/** Digits, least significant first, as people write them; of long numbers both ends. */
export const shown = (tokens, ends = 30) => {
  const write = (some) => Array.from(some, (token) => ALPHABET[token]).reverse().join("");
  if (tokens.length <= 2 * ends) return write(tokens);
  return `${write(tokens.slice(-ends))} … ${write(tokens.slice(0, ends))} (${grouped(tokens.length)} digits)`;
};

/** What became of a + b, in words; the same as chapters.ch72_certified_adder.describe. */
export const describe = (a, b, { written, met, lead, stopped }) => {
  const right = sum(a, b);
  const same = stopped && right.length === written.length && right.every((digit, i) => digit === written[i]);
  const verdict = same ? "That is right." : `That is wrong: the sum is ${shown(right)}.`;
  return (
    `The network writes ${shown(a)} + ${shown(b)} = ${shown(written)}. ${verdict} ` +
    `It met ${grouped(met)} different situations (what it sees of the digits at once); what it wrote was ahead of all else by at least ${atLeast(lead, 1)} logits.`
  );
};

// --- the drawing ---

const COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7"]; // of the heads
const [CELL, ROW, AROUND] = [46, 62, 3]; // width and height of a digit's place; columns on either side

/** Columns around column i as people write them, bars for what each head reads, and a box around what is written. */
const drawing = (a, b, written, i, pattern, best) => {
  const parts = [];
  const lines = [a, b, written];
  const x = (index) => (AROUND + i - index) * CELL;
  for (let index = i - AROUND; index <= i + AROUND; index++)
    lines.forEach((line, number) => {
      const sign = index === -1 ? ["", "+", "="][number] : "";
      const here = number === ANSWER && index === i;
      const letter = here ? (best === END ? "end" : ALPHABET[best]) : (ALPHABET[line[index]] ?? sign);
      const y = number * ROW;
      const slot = SLOTS.findIndex(([of, distance]) => of === number && distance === i - index);
      const read = slot >= 0 && letter !== "" && !here;
      const later = number === ANSWER && index > i;
      const kind = read || here ? (letter.length > 1 ? "word" : "") : "unseen";
      if (letter !== "" && !later)
        parts.push(`<text class="${kind}" x="${x(index) + CELL / 2}" y="${y + 26}">${letter}</text>`);
      if (here) parts.push(`<rect class="box" x="${x(index) + 3}" y="${y + 3}" width="${CELL - 6}" height="32" rx="5"/>`);
      if (!read) return;
      const width = (CELL - 14) / pattern[slot].length;
      const bar = (h, height, more) =>
        `<rect x="${x(index) + 7 + h * width}" y="${y + 56 - height}" width="${width - 2}" height="${height}" ${more}/>`;
      pattern[slot].forEach((share, h) => {
        const fill = COLOURS[h % COLOURS.length];
        parts.push(bar(h, 22, 'class="ground"'), bar(h, 22 * share, `fill="${fill}" data-share="${share}"`));
      });
    });
  const rule = ANSWER * ROW - 2;
  return `${parts.join("")}<path d="M 0 ${rule} H ${(2 * AROUND + 1) * CELL}"/>`;
};

// --- the element ---

const TENSORS = [
  "embedding.weight", "numbers.weight", "near", "qkv.weight", "qkv.bias", "out.weight", "mlp_in.weight", "mlp_in.bias",
  "mlp_out.weight", "mlp_out.bias", "unembedding.weight", "unembedding.bias",
];

const CONTENT = `
<style>
  :host { display: block; margin: 1.5rem 0; --ink: var(--pst-color-text-base, CanvasText); }
  .adder {
    display: grid; gap: 0.8rem; padding: 1rem; color: var(--ink); font-size: 0.92rem; line-height: 1.4;
    border: 1px solid var(--pst-color-border, GrayText); border-radius: 0.6rem;
  }
  .adder > *, .fields > * { min-width: 0; }
  .fields {
    display: grid; gap: 0.6rem 1.5rem; align-items: end;
    grid-template-columns: repeat(auto-fit, minmax(min(13rem, 100%), 1fr));
  }
  label { display: grid; gap: 0.2rem; }
  textarea, select, input {
    width: 100%; min-width: 0; box-sizing: border-box; margin: 0; accent-color: var(--pst-color-primary, #0a5c80);
  }
  input[type="range"] { height: 1.5rem; }
  textarea, select, input[type="number"], button {
    min-height: 2.2rem; padding: 0.2rem 0.5rem; font: inherit; color: inherit; border-radius: 0.4rem;
    background: var(--pst-color-surface, ButtonFace); border: 1px solid var(--pst-color-border, GrayText);
  }
  textarea { height: 3.6rem; resize: vertical; font-family: ui-monospace, monospace; word-break: break-all; }
  button { cursor: pointer; }
  button:hover { border-color: var(--pst-color-primary, #0a5c80); }
  :focus-visible { outline: 3px solid var(--focus, Highlight); outline-offset: 2px; border-radius: 3px; }
  svg { display: block; width: 100%; max-width: 30rem; margin: 0.8rem auto; }
  summary { min-height: 1.5rem; cursor: pointer; }
  details > * + * { margin-top: 0.8rem; }
  text { fill: currentColor; font: 600 22px ui-monospace, monospace; text-anchor: middle; }
  text.unseen { opacity: 0.6; }
  text.word { font-size: 16px; }
  path { stroke: currentColor; opacity: 0.5; }
  .box { fill: none; stroke: currentColor; stroke-width: 2.5; }
  .ground { fill: currentColor; opacity: 0.12; }
  .heads {
    display: flex; flex-wrap: wrap; gap: 0.2rem 1rem; justify-content: center; margin: 0; padding: 0; list-style: none;
  }
  .heads span { display: inline-block; width: 0.8em; height: 0.8em; margin-right: 0.35em; }
  fieldset {
    display: grid; gap: 0.7rem; min-width: 0; margin: 0; padding: 0.9rem 0 0; border: 0;
    border-top: 1px solid var(--pst-color-border, GrayText);
  }
  legend { padding: 0 0.5rem 0 0; font-weight: 600; }
  progress { width: 100%; accent-color: var(--pst-color-primary, #0a5c80); }
  .row { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; }
  .row progress { flex: 1 1 8rem; width: auto; }
  p { margin: 0; overflow-wrap: anywhere; }
  #seen { min-height: 4.2em; }
  .brief #seen { min-height: 2.8em; }
  .order { font-size: 0.85em; opacity: 0.85; }
  .brief textarea { height: 2.2rem; }
  [hidden], .brief fieldset { display: none; }
  .idle :is(svg, .heads, .order, #at, label:has(#column)) { visibility: hidden; }
  slot { display: none; }
  @media print { .adder { display: none; } slot { display: block; } }
</style>
<section class="adder" aria-label="Certified adder">
  <div class="fields">
    <label>First number <textarea id="a" inputmode="numeric" spellcheck="false" autocomplete="off"></textarea></label>
    <label>Second number <textarea id="b" inputmode="numeric" spellcheck="false" autocomplete="off"></textarea></label>
  </div>
  <div class="row">
    <button type="button" id="million">Two random numbers of ${grouped(MOST)} digits</button>
    <progress id="added" aria-label="Share of the sum that is written" max="1" value="0" hidden></progress>
    <p id="columns" hidden></p>
    <button type="button" id="stop" hidden>Stop</button>
  </div>
  <p id="seen" role="status"></p>
  <details open>
  <summary id="inside">What each head reads in a column</summary>
  <svg role="img" aria-label="Columns of the sum: what each head reads, and what is written" aria-describedby="at"></svg>
  <ul class="heads" aria-hidden="true"></ul>
  <label><span>Column <span id="place"></span></span> <input type="range" id="column" dir="rtl" min="0" step="1" value="0"></label>
  <p id="at" role="status"></p>
  <p class="order">In this order: two digits and the answer of the column before (before the first stand the signs + and =), two digits of this one; a dot for none.</p>
  </details>
  <fieldset>
    <legend>The proof</legend>
    <p>What is written depends on at most five tokens, those with bars. The proof goes through all that can occur.</p>
    <div class="row"><button type="button" id="prove">Check the proof here</button></div>
    <progress id="progress" aria-label="Share of the proof that is checked" max="1" value="0" hidden></progress>
    <p id="looked" hidden></p>
    <p id="proof" role="status"></p>
  </fieldset>
  <fieldset>
    <legend>Change one weight</legend>
    <div class="fields">
      <label>Tensor <select id="tensor">${TENSORS.map((name) => `<option>${name}</option>`).join("")}</select></label>
      <label>
        <span>Entry, 0 to <span id="last"></span></span>
        <input type="number" id="entry" min="0" step="1" value="0">
      </label>
      <label>
        <span>Change by <span id="by"></span></span>
        <input type="range" id="change" min="-3" max="3" step="0.05" value="0">
      </label>
    </div>
    <p id="changed" role="status"></p>
    <div class="row"><button type="button" id="show" hidden>Show that sum</button></div>
  </fieldset>
</section>
<slot></slot>`;

const WATCHED = { add: ["added", "columns", "stop"], prove: ["progress", "looked"] }; // a job's bar, count, what ends it

const signed = (value) => (value < 0 ? `−${-value}` : value > 0 ? `+${value}` : "0");

class CertifiedAdder {
  #model;
  #root;
  #at = (id) => this.#root.getElementById(id);
  #jobs = {}; // of each kind the latest: an earlier one gives up
  #bytes;
  #weights; // as they are now, one of them changed or none
  #run; // the network with these weights
  #all; // every situation
  #sum; // {a, b, written}: what is drawn
  #changed = false; // whether a weight is
  #counterexample;

  constructor(place) {
    const { model, root, signal } = place;
    [this.#model, this.#root] = [model, root];
    root.innerHTML = CONTENT;
    root.querySelector("section").classList.toggle("brief", given(model, "brief"));
    root.querySelector("details").open = !given(model, "brief");
    this.#bytes = decoded(model.get("weights"));
    for (const name of ["a", "b"]) {
      this.#at(name).value = model.get(name);
      this.#at(name).oninput = () => this.#add();
    }
    tie(place, ["a", "b"]);
    signal.addEventListener("abort", () => (this.#jobs = {}));
    this.#at("tensor").value = "out.weight";
    this.#at("million").onclick = () => {
      const digit = (_, i) => Math.floor(i ? 10 * Math.random() : 1 + 9 * Math.random()); // no zero leads
      const [a, b] = Array.from({ length: 2 }, () => Array.from({ length: MOST }, digit).join(""));
      this.#put({ a, b });
      this.#add();
    };
    this.#at("stop").onclick = () => {
      this.#jobs.add = undefined;
      this.#reached("add");
      this.#say("seen", "Stopped.");
      this.#at("million").focus();
    };
    this.#at("column").oninput = () => this.#draw();
    this.#at("prove").onclick = () => this.#prove();
    this.#at("show").onclick = () => {
      this.#put(this.#counterexample);
      this.#add(true);
      this.#at("seen").scrollIntoView({ block: "center" });
    };
    for (const name of ["tensor", "entry", "change"]) this.#at(name).oninput = () => this.#change();
    this.#change();
  }

  /** Two other numbers. */
  #put({ a, b }) {
    [this.#at("a").value, this.#at("b").value] = [a, b];
    save(this.#model, { a, b });
  }

  /** All steps of a job, with time between them for the page; undefined if a later one of its kind has begun. */
  async #steps(kind, steps, show) {
    const mine = (this.#jobs[kind] = Symbol(kind));
    let [last, since] = [undefined, performance.now()];
    for await (last of steps) {
      if (this.#jobs[kind] !== mine) return undefined;
      if (performance.now() - since < 30) continue;
      show(last);
      await new Promise((resolve) => setTimeout(resolve));
      since = performance.now();
      if (this.#jobs[kind] !== mine) return undefined;
    }
    return last;
  }

  #say(id, words) {
    if (this.#at(id).textContent !== words) this.#at(id).textContent = words; // else it would be said again
  }

  /** A bar and a count of how far a job is, gone without a share; not a status, which would be said at every step. */
  #reached(kind, share, words = "") {
    const [bar, count] = WATCHED[kind];
    for (const id of WATCHED[kind]) this.#at(id).hidden = share === undefined;
    this.#at(bar).value = share ?? 0;
    this.#say(count, words);
  }

  /** Add the two numbers, and show the column chosen, or the first in which the sum is wrong. */
  async #add(whereWrong = false) {
    const [a, b] = ["a", "b"].map((name) => digits(this.#at(name).value));
    this.#jobs.add = undefined;
    this.#reached("add");
    const none = [["first", a], ["second", b]].filter(([, number]) => !number).map(([name]) => name);
    const longest = none.length ? 0 : max(a.length, b.length);
    const long = longest > MOST;
    const section = this.#root.querySelector("section");
    section.classList.toggle("idle", long || none.length > 0);
    if (none.length) return this.#say("seen", `Type a whole number of 0 or more as ${none.join(" and ")} number.`);
    if (long) return this.#say("seen", `More than ${grouped(MOST)} digits: the network could, but not this page.`);
    const show = ({ written }) => {
      const done = min(written.length, longest);
      this.#say("seen", "Adding.");
      section.classList.add("idle"); // what is drawn is another sum
      this.#reached("add", done / longest, `${grouped(done)} of ${grouped(longest)} columns`);
    };
    const last = await this.#steps("add", addition(this.#run, a, b), show);
    if (!last) return;
    this.#reached("add");
    section.classList.remove("idle");
    this.#say("seen", describe(a, b, last));
    this.#sum = { a, b, written: last.written };
    this.#at("column").max = last.written.length; // which also holds back a column beyond it
    const right = [...sum(a, b), END];
    if (whereWrong) this.#at("column").value = right.findIndex((token, i) => token !== (last.written[i] ?? END));
    this.#draw();
  }

  #draw() {
    const { a, b, written } = this.#sum;
    const i = this.#at("column").valueAsNumber;
    const context = contextAt(a, b, written, i);
    const { logits, pattern } = this.#run(context);
    const { best, second, lead } = decide(logits);
    const name = (token) => (token === END ? "the end" : ALPHABET[token]);
    const svg = this.#root.querySelector("svg");
    svg.setAttribute("viewBox", `0 0 ${(2 * AROUND + 1) * CELL} ${3 * ROW - 4}`);
    svg.innerHTML = drawing(a, b, written, i, pattern, best);
    this.#at("column").setAttribute("aria-valuetext", `${i + 1} of ${written.length + 1}`);
    this.#say("place", `${grouped(i + 1)} of ${grouped(written.length + 1)} from the right; the last is the end sign`);
    this.#say("at", `It sees ${text(context)} and writes ${name(best)}, ahead of ${name(second)} by ${atLeast(lead, 1)} logits.`);
    const key = (h) => `<li><span style="background: ${COLOURS[h % COLOURS.length]}"></span>head ${h}</li>`;
    const keys = [...pattern[OWN].keys()].map(key).join("");
    this.#root.querySelector(".heads").innerHTML = `${keys}<li>a bar: share of attention, 0 to 1</li>`;
  }

  get #by() {
    return this.#at("change").valueAsNumber;
  }

  /** Put the chosen change into the weights, and look at every situation. */
  async #change() {
    this.#weights = read(this.#bytes);
    const tensor = this.#at("tensor").value;
    const values = this.#weights[tensor];
    const entry = this.#at("entry").valueAsNumber;
    this.#at("entry").max = values.length - 1;
    this.#say("last", values.length - 1);
    this.#at("change").setAttribute("aria-valuetext", signed(this.#by));
    this.#jobs.prove = undefined; // it was about other weights
    this.#reached("prove");
    this.#say("proof", "");
    this.#at("show").hidden = true;
    const there = Number.isInteger(entry) && 0 <= entry && entry < values.length;
    const before = values[entry];
    if (there) values[entry] += this.#by;
    this.#changed = there && values[entry] !== before;
    this.#say("by", this.#changed ? `${signed(this.#by)}: ${before.toFixed(2)} → ${values[entry].toFixed(2)}` : "0");
    this.#run = network(this.#weights);
    this.#add();
    this.#jobs.look = undefined;
    if (!there) return this.#say("changed", `There is no such entry: ${tensor} has ${grouped(values.length)}.`);
    if (!this.#changed) return this.#say("changed", "Nothing is changed: these are the weights of the certificate.");
    this.#say("changed", "Looking through all situations.");
    this.#all ??= situations();
    let wrong = 0;
    const run = this.#run;
    const lead = (context, right) => {
      const { logits } = run(context);
      let rival = -Infinity;
      logits.forEach((value, token) => {
        if (token !== right) rival = max(rival, value);
      });
      if (!(logits[right] > rival)) wrong++;
      return logits[right] - rival;
    };
    const last = await this.#steps("look", smallest(this.#all, lead), () => {});
    if (!last) return;
    const [count, place] = [`${grouped(this.#all.length)} situations`, text(last.at.context)];
    if (!wrong) {
      const closest = `the closest lead is ${atLeast(last.least, 1)}, at ${place}`;
      return this.#say("changed", `Right in all ${count}; ${closest}. Whether rounding could change that, the proof says.`);
    }
    this.#counterexample = witness(last.at);
    this.#at("show").hidden = false;
    const goesWrong = `so ${this.#counterexample.a} + ${this.#counterexample.b} goes wrong`;
    this.#say("changed", `Wrong in ${grouped(wrong)} of ${count}, most of all at ${place}; ${goesWrong}.`);
  }

  async #prove() {
    this.#reached("prove", 0);
    this.#say("proof", "Checking.");
    const show = ({ looked, contexts = this.#all.length, round = 1, rounds = 1 }) => {
      const arithmetic = rounds > 1 && round === 1 ? "exact arithmetic" : "float32";
      const words = `${grouped(looked)} of ${grouped(contexts)} situations, in ${arithmetic}`;
      this.#reached("prove", (round - 1 + looked / contexts) / rounds, words);
    };
    try {
      const words = this.#changed ? await this.#proven(show) : await this.#certified(show);
      if (!words) return; // a later one has begun
      this.#say("proof", words);
    } catch (problem) {
      if (!(problem instanceof Rejected)) throw problem;
      this.#say("proof", `Rejected: ${problem.message}.`);
    }
    this.#reached("prove");
  }

  async #certified(show) {
    const last = await this.#steps("prove", check(this.#bytes, JSON.parse(this.#model.get("certificate"))), show);
    if (!last) return undefined;
    const ahead = `by ${atLeast(last.margin, 2)} or more, and by at least ${atLeast(last.margin_float32, 2)} however float32 rounds`;
    const where = `In each of ${grouped(last.contexts)} situations the right token is ahead`;
    return `Accepted: it adds every two numbers, of any length. ${where}, ${ahead}.`;
  }

  /** Of changed weights there is no certificate; the proof itself can be made. */
  async #proven(show) {
    this.#all ??= situations();
    admissible(this.#weights);
    const last = await this.#steps("prove", smallest(this.#all, bounds(this.#weights, FLOAT32)), show);
    if (!last) return undefined;
    if (last.least > 0)
      return `Proven for the changed weights, too: the right token leads by ${atLeast(last.least, 2)} or more.`;
    return `Not proven: at ${text(last.at.context)} the right token may be ${(-last.least).toFixed(2)} behind.`;
  }
}

const render = rendering((place) => new CertifiedAdder(place));

export default { render };

define("certified-adder", render);
