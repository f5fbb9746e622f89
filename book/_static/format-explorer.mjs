// Eleven ways to write a sum, token by token, and how far back each token has to look:
// <format-explorer a="128" b="367" digits="12" shown='["plain"]' draws='[...]'></format-explorer>
//
// A page that uses it loads this module and what it imports. What stands between the tags is shown where no script
// runs, and on paper. The texts, and what each token has to be read from, are defined in
// chapters.ch61_format_explorer, with which the tests compare every token of what is written here. digits: of the
// longest number that is taken. shown: the formats whose tokens are shown at first. draws: random spaces and hints.

import { say, typed } from "./fields.mjs";
import { define, rendering, tie } from "./widget.mjs";

const LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const COLUMNS = [
  "units", "tens", "hundreds", "thousands", "ten thousands", "hundred thousands", "millions", "ten millions",
  "hundred millions", "billions", "ten billions", "hundred billions", "trillions",
];
const isNumber = (token) => /^\d+$/.test(token);
const reverse = (text) => [...text].reverse().join("");
const sum = (a, b) => String(BigInt(a) + BigInt(b));
const longer = (a, b) => Math.max(a.length, b.length);

// --- the texts: tokens of the question and of the answer, for numbers without leading zeros ---

const characters = (a, b, answer) => [[...`${a}+${b}=`], [...answer]];

/** A number in pieces of so many digits, the shorter piece at the other side. */
const cut = (number, size, side) => {
  const first = side === "right" ? number.length % size : 0;
  const rest = number.slice(first).match(new RegExp(`.{1,${size}}`, "g")) ?? [];
  return first ? [number.slice(0, first), ...rest] : rest;
};
const threes = (side) => (a, b) => {
  const [first, second, total] = [a, b, sum(a, b)].map((number) => cut(number, 3, side));
  return [[...first, "+", ...second, "="], total];
};

/** Column by column: left and right without what is done, digits of the column, the carry in, and its sum. */
const columns = (a, b) => {
  let [left, right, carry, done] = [a, b, 0, ""];
  const all = [];
  while (left || right) {
    const [first, second] = [left, right].map((number) => Number(number.at(-1) ?? 0));
    const total = first + second + carry;
    all.push({ left, right, first, second, carry, done, total });
    [left, right, done, carry] = [left.slice(0, -1), right.slice(0, -1), `${total % 10}${done}`, Math.floor(total / 10)];
  }
  return { all, done, carry };
};
const simplified = (a, b) => {
  const steps = columns(a, b).all.map(({ total }) => `${total % 10}c${Math.floor(total / 10)}`);
  return characters(a, b, [...steps, sum(a, b)].join(";"));
};
const detailed = (a, b) => {
  const { all, done, carry } = columns(a, b);
  const steps = all.map((at) => {
    const added = `${at.first}+${at.second}+${at.carry}=${String(at.total).padStart(2, "0")}`;
    return `${at.left}+${at.right},${at.done}c${at.carry}:${added}`;
  });
  return characters(a, b, [...steps, `+,${done}c${carry}`, sum(a, b)].join(";"));
};

const hinted = (a, b, { hints }) => {
  const width = longer(a, b);
  const [first, second, total] = [a, b, sum(a, b)].map((number) => [...number.padStart(width + 1, "0")]);
  const named = (digits) => digits.flatMap((digit, place) => [LETTERS[hints[width - 1] + place], digit]);
  const answer = total.map((digit, place) => [LETTERS[hints[width - 1] + place], digit]).reverse().flat();
  return [[...named(first), "+", ...named(second), "="], answer];
};

/** A space in some of the gaps between two digits, one bit a gap. */
const spaced = (a, b, { spaces }) => {
  const bits = [...spaces];
  const question = `${a}+${b}=`.replace(/\d(?=\d)/g, (digit) => (bits.shift() === "1" ? `${digit}␣` : digit));
  return [[...question], [...reverse(sum(a, b))]];
};

const padded = (a, b) => {
  const width = longer(a, b);
  return characters(a.padStart(width, "0"), b.padStart(width, "0"), sum(a, b).padStart(width + 1, "0"));
};
const commas = (a, b) => {
  const [first, second] = [a, b].map((number) => number.replace(/\B(?=(\d{3})+$)/g, ","));
  return characters(first, second, sum(a, b));
};

/** How sums are written; up: whether operands, and sum, begin with the units. */
export const WAYS = {
  plain: { write: (a, b) => characters(a, b, sum(a, b)), about: "As people write it." },
  "zero-padded": { write: padded, about: "Leading zeros: both numbers have one length, and the sum one digit more." },
  "answer reversed": {
    write: (a, b) => characters(a, b, reverse(sum(a, b))), up: [false, true], about: "The sum begins with its units.",
  },
  "all reversed": {
    write: (a, b) => characters(reverse(a), reverse(b), reverse(sum(a, b))), up: [true, true],
    about: "All three numbers begin with their units.",
  },
  "simplified scratchpad": { write: simplified, about: "Digit, c and carry of each column, then the sum." },
  "detailed scratchpad": { write: detailed, about: "Each step repeats what is left, what is done, and the carry." },
  "index hints": {
    write: hinted, up: [false, true], about: "A letter before each digit names its column; letters begin anywhere.",
  },
  commas: { write: commas, about: "Commas in the numbers, none in the sum." },
  "threes from the left": { write: threes("left"), about: "Tokens of three digits, the short one last." },
  "threes from the right": { write: threes("right"), about: "Tokens of three digits, the short one first." },
  "random spaces": { write: spaced, up: [false, true], about: "Spaces in some gaps of the numbers; the sum is reversed." },
};

// --- what each token holds: names such as sum2, a digit of the sum; carry1, the carry into the tens; hint0 ---

const digitsOf = (tokens, kind, up = false, lowest = 0) => {
  const width = tokens.filter(isNumber).join("").length;
  let done = 0;
  return tokens.map((token) => {
    const number = isNumber(token);
    if (!number && !/^[a-z]$/i.test(token)) return [];
    const count = number ? token.length : 1;
    const names = Array.from({ length: count }, (_, i) => {
      return `${number ? kind : "hint"}${lowest + (up ? done + i : width - 1 - done - i)}`;
    });
    if (number) done += count;
    return names;
  });
};

const STEP = /^(\d*)\+(\d*),(\d*)c\d(:.*)?$/;

const heldByStep = (text, column) => {
  if (!text.includes("+")) return [[`sum${column}`], [], [`carry${column + 1}`]];
  const [, left, right, done, computed] = text.match(STEP);
  const holds = [
    ...digitsOf([...left], "a", false, column), [], ...digitsOf([...right], "b", false, column), [],
    ...digitsOf([...done], "sum"), [], [`carry${column}`],
  ];
  if (!computed) return holds;
  const added = [[], [`a${column}`], [], [`b${column}`], [], [`carry${column}`], [], [`carry${column + 1}`], [`sum${column}`]];
  return [...holds, ...added];
};

const heldBy = (question, answer, [numbersUp, answerUp]) => {
  const plus = question.indexOf("+");
  const holds = [
    ...digitsOf(question.slice(0, plus), "a", numbersUp), [], ...digitsOf(question.slice(plus + 1, -1), "b", numbersUp), [],
  ];
  const steps = answer.join("").split(";").slice(0, -1);
  steps.forEach((step, column) => holds.push(...heldByStep(step, column), []));
  return [...holds, ...digitsOf(answer.slice(holds.length - question.length), "sum", answerUp)];
};

// --- what each token has to be read from ---

const read = (name, held, nines) => {
  const [, kind, digits] = name.match(/^([a-z]+)(\d+)$/);
  const column = Number(digits);
  const found = (...names) => names.filter((one) => held.has(one)).map((one) => held.get(one));
  if (kind === "hint") {
    const beside = found(`hint${column - 1}`, name, `hint${column + 1}`);
    return beside.length ? [Math.max(...beside)] : [];
  }
  if (held.has(name) || kind === "a" || kind === "b") return found(name);
  if (kind === "sum") return [...found(`a${column}`, `b${column}`), ...read(`carry${column}`, held, nines)];
  const below = column - 1;
  if (below < 0) return [];
  const carried = held.has(`sum${below}`) ? `sum${below}` : `carry${below}`;
  return [...found(`a${below}`, `b${below}`), ...(nines.has(below) ? read(carried, held, nines) : [])];
};

/** a + b in one of WAYS: tokens, how many of them are asked, what each holds, and the places it has to be read from. */
export const written = (way, a, b, draw) => {
  const { write, up = [false, false] } = WAYS[way];
  const [question, answer] = write(a, b, draw);
  const holds = heldBy(question, answer, up);
  const column = (number, c) => Number(number.at(-1 - c) ?? 0);
  const nines = new Set(Array.from(a.length > b.length ? a : b, (_, c) => c).filter((c) => column(a, c) + column(b, c) === 9));
  const held = new Map();
  const sources = holds.map((names, place) => {
    const needed = place < question.length ? [] : names.flatMap((name) => read(name, held, nines));
    names.forEach((name) => held.set(name, place));
    return [...new Set(needed)].sort((x, y) => x - y);
  });
  return { tokens: [...question, ...answer], asked: question.length, holds, sources };
};

/** How far back the farthest source of a token stands, from the token before it; undefined if it has none. */
export const distance = ({ sources }, place) => (sources[place].length ? place - 1 - sources[place][0] : undefined);

/** Tokens in all; of the distances the longest, the sum and the number; the most sources of one token. */
export const summary = (text) => {
  const far = text.tokens.map((_, place) => distance(text, place)).filter((away) => away !== undefined);
  return {
    tokens: text.tokens.length, longest: Math.max(...far), sum: far.reduce((all, one) => all + one, 0),
    number: far.length, most: Math.max(...text.sources.map((places) => places.length)),
  };
};

/** The mean distance, one decimal, halves up. */
export const mean = ({ sum: all, number }) => {
  const tenths = Math.floor((20 * all + number) / (2 * number));
  return `${Math.floor(tenths / 10)}.${tenths % 10}`;
};

/** One token of the answer in words; the same as chapters.ch61_format_explorer.Text.describe. */
export const describe = (text, place) => {
  const names = text.holds[place];
  if (!names.length) return `${text.tokens[place]}, a sign.`;
  const [, kind] = names[0].match(/^([a-z]+)/);
  const [highest, lowest] = [names[0], names.at(-1)].map((name) => COLUMNS[name.slice(kind.length)]);
  const column = highest === lowest ? highest : `${highest} to ${lowest}`;
  const said = {
    a: `the ${column} of the first number, again`, b: `the ${column} of the second number, again`,
    sum: `the ${column} of the sum`, carry: `the carry into the ${column}`, hint: `the name of the ${column}`,
  };
  const [count, away] = [text.sources[place].length, distance(text, place)];
  const needed =
    count === 0 ? "no token is needed."
    : count === 1 ? `1 token is needed, ${away} back.`
    : `${count} tokens are needed, the farthest ${away} back.`;
  return `${text.tokens[place]}, ${said[kind]}: ${needed}`;
};

// --- the drawing ---

const idOf = (way) => way.replaceAll(" ", "-");

const cells = (text) => {
  const of = summary(text);
  return [of.most, of.tokens, of.longest, mean(of)].map((cell) => `<td>${cell}</td>`).join("");
};

const boxes = (text) =>
  text.tokens
    .map((token, place) => {
      const away = distance(text, place);
      if (place >= text.asked && text.holds[place].length) {
        return `<button type="button" tabindex="-1" data-place="${place}" aria-label="${describe(text, place)}"
          ><b>${token}</b><small data-back="${away ?? "–"}"></small></button>`;
      }
      const kind = text.holds[place].length ? "asked" : "sign";
      return `<span class="${kind}" data-place="${place}"><b>${token}</b><small></small></span>`;
    })
    .join("");

const CONTENT = (digits) => `
<style>
  :host { display: block; container-type: inline-size; margin: 1.5rem 0; --ink: var(--pst-color-text-base, CanvasText);
    --edge: var(--pst-color-border, GrayText); --ground: var(--pst-color-surface, Field); }
  .page {
    display: grid; gap: 0.9rem 2rem; padding: 1rem; color: var(--ink); font-size: 0.92rem; line-height: 1.4;
    border: 1px solid var(--edge); border-radius: 0.6rem;
  }
  .page > * { min-width: 0; }
  .field { display: grid; gap: 0.2rem; }
  .field label { font-weight: 600; }
  input[type="text"], #again {
    width: 100%; min-height: 2.2rem; box-sizing: border-box; padding: 0.2rem 0.5rem; font: inherit; color: inherit;
    font-variant-numeric: tabular-nums; background: var(--ground); border: 1px solid var(--edge); border-radius: 0.4rem;
  }
  #again { width: auto; justify-self: start; cursor: pointer; }
  input[aria-invalid="true"] { border: 2px solid #D55E00; }
  input[type="checkbox"] { width: 1.1rem; height: 1.1rem; flex: none; margin: 0; accent-color: var(--pst-color-primary, #0a5c80); }
  p { margin: 0; }
  #told { min-height: 2.8em; font-weight: 600; overflow-wrap: anywhere; }
  table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
  caption { padding-bottom: 0.3rem; text-align: left; }
  th, td { padding: 0.15rem 0 0.15rem 0.5rem; text-align: right; font-weight: 400; vertical-align: middle; }
  thead > tr > * { vertical-align: bottom; }
  th:first-child { padding-left: 0; text-align: left; }
  thead th { font-weight: 600; border-bottom: 1px solid currentColor; }
  tbody tr + tr > * { border-top: 1px solid var(--edge); }
  th label { display: flex; gap: 0.5rem; align-items: center; min-height: 1.6rem; cursor: pointer; }
  .name { font-weight: 600; }
  .why { min-height: 2.8em; }
  #formats { display: grid; gap: 0.6rem; }
  .format { display: grid; gap: 0.25rem; padding-top: 0.6rem; border-top: 1px solid var(--edge); }
  .tokens { display: flex; flex-wrap: wrap; gap: 0.35rem 3px; padding: 3px; }
  .tokens > * {
    display: grid; justify-items: center; min-width: 1.5rem; box-sizing: border-box; padding: 0 0.15rem; margin: 0;
    color: inherit; font: inherit; line-height: 1.25; background: none; border: 1px solid transparent; border-radius: 0.3rem;
  }
  .tokens b { font: 600 1rem/1.4 ui-monospace, monospace; }
  .tokens small { min-height: 1.25em; font-size: 0.75rem; font-variant-numeric: tabular-nums; }
  .tokens small::after { content: attr(data-back); } /* no text: the label of the button says it in words */
  .tokens .asked { border-color: var(--edge); }
  .tokens .sign { min-width: 0.8rem; }
  .tokens button { border-color: currentColor; background: var(--ground); cursor: pointer; }
  .tokens .seen { border-color: #D55E00; box-shadow: 0 0 0 2px #D55E00; }
  .tokens .now { border-color: #009E73; box-shadow: 0 0 0 2px #009E73; }
  :focus-visible { outline: 3px solid var(--focus, Highlight); outline-offset: 2px; border-radius: 3px; }
  .idle .drawn { visibility: hidden; }
  @container (min-width: 40rem) {
    .page { grid-template-columns: repeat(2, minmax(0, 1fr)); padding: 1.25rem 1.5rem; }
    .wide { grid-column: 1 / -1; }
    #told, .why { min-height: 1.4em; }
  }
  @container (max-width: 25rem) { table { font-size: 0.8rem; } th, td { padding-left: 0.4rem; } }
  slot { display: none; }
  @media print { .page { display: none; } slot { display: block; } }
</style>
<section class="page" aria-label="Formats of a sum, token by token">
  ${["a", "b"]
    .map(
      (name, i) => `<div class="field"><label for="${name}">${["First", "Second"][i]} number, up to ${digits} digits</label>
        <input type="text" id="${name}" inputmode="numeric" autocomplete="off" aria-describedby="told"></div>`,
    )
    .join("")}
  <p id="told" class="wide" role="status"></p>
  <table class="wide drawn">
    <caption>Ticked formats are shown below, token by token.</caption>
    <thead><tr><th scope="col">Format</th><th scope="col">Most tokens needed</th><th scope="col">Tokens</th><th scope="col">Farthest back</th>
      <th scope="col">Mean distance</th></tr></thead>
    <tbody>${Object.keys(WAYS)
      .map((way) => `<tr data-way="${way}"><th scope="row"><label><input type="checkbox" id="${idOf(way)}">${way}</label></th></tr>`)
      .join("")}</tbody>
  </table>
  <button type="button" id="again" class="wide drawn">Other spaces and hints</button>
  <p class="wide drawn">Under each token of the answer: how far back the farthest token stands that it must be read from, counted
    from the token before it. Point at one, or use the arrow keys, to see them all.</p>
  <div id="formats" class="wide drawn"></div>
</section>
<slot></slot>`;

// --- the explorer ---

const render = rendering((place) => {
  const { model, root } = place;
  const [digits, draws] = [Number(model.get("digits")), JSON.parse(model.get("draws"))];
  root.innerHTML = CONTENT(digits);
  const at = (id) => root.getElementById(id);
  const texts = new Map();
  let drawn = 0;

  /** Show what one token of the answer is read from; the others of its format are as before. */
  const choose = (format, place) => {
    for (const other of root.querySelectorAll(".format")) if (other !== format) clear(other);
    clear(format);
    const text = texts.get(format.dataset.way);
    for (const box of format.querySelectorAll("[data-place]")) {
      const here = Number(box.dataset.place);
      if (here === place) box.classList.add("now");
      if (text.sources[place].includes(here)) {
        box.classList.add("seen");
        box.querySelector("small").dataset.back = place - 1 - here;
      }
      if (box.tagName === "BUTTON") box.tabIndex = here === place ? 0 : -1;
    }
    format.querySelector(".why").textContent = describe(text, place);
  };

  const clear = (format) => {
    const text = texts.get(format.dataset.way);
    for (const box of format.querySelectorAll(".now, .seen")) {
      box.classList.remove("now", "seen");
      const answers = box.tagName === "BUTTON";
      box.querySelector("small").dataset.back = answers ? (distance(text, Number(box.dataset.place)) ?? "–") : "";
    }
    format.querySelector(".why").textContent = WAYS[format.dataset.way].about;
  };

  const show = () => {
    const ways = Object.keys(WAYS).filter((way) => at(idOf(way)).checked);
    at("formats").innerHTML = ways
      .map(
        (way) => `<div class="format" role="group" aria-labelledby="of-${idOf(way)}" data-way="${way}">
          <p class="name" id="of-${idOf(way)}">${way}</p>
          <div class="tokens">${boxes(texts.get(way))}</div><p class="why">${WAYS[way].about}</p></div>`,
      )
      .join("");
    for (const format of root.querySelectorAll(".format")) format.querySelector("button").tabIndex = 0;
    const first = root.querySelector(".format");
    if (first) choose(first, Number(first.querySelector("button").dataset.place));
  };

  const write = () => {
    const [a, b] = ["a", "b"].map((name) => typed(at(name), digits));
    const idle = a === undefined || b === undefined;
    root.querySelector("section").classList.toggle("idle", idle);
    if (idle) {
      say(at("told"), `Two whole numbers of at most ${digits} digits are taken.`);
      return;
    }
    for (const line of root.querySelectorAll("tbody tr")) {
      const text = written(line.dataset.way, a, b, draws[drawn]);
      texts.set(line.dataset.way, text);
      line.querySelectorAll("td").forEach((cell) => cell.remove());
      line.insertAdjacentHTML("beforeend", cells(text));
    }
    say(at("told"), `${a} + ${b} = ${sum(a, b)}`);
    show();
  };

  for (const name of ["a", "b"]) {
    at(name).value = model.get(name);
    at(name).oninput = write;
  }
  tie(place, ["a", "b"]);
  for (const way of JSON.parse(model.get("shown"))) at(idOf(way)).checked = true;
  root.querySelector("tbody").onchange = show;
  at("again").onclick = () => {
    drawn = (drawn + 1) % draws.length;
    write();
  };
  const chosen = (event) => {
    const box = event.target.closest?.("button");
    if (box) choose(box.closest(".format"), Number(box.dataset.place));
  };
  for (const kind of ["pointerover", "focusin", "click"]) at("formats").addEventListener(kind, chosen);
  at("formats").addEventListener("keydown", (event) => {
    const row = [...event.target.closest(".tokens").querySelectorAll("button")];
    const here = row.indexOf(event.target);
    const to = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: row.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    row[Math.min(Math.max(to, 0), row.length - 1)].focus();
  });
  write();
});

export default { render };

define("format-explorer", render);
