// The hop stepper: <hop-stepper text="abcabdab" hops="3"></hop-stepper>
//
// A page that uses it loads this module and what it imports. What stands between the tags is shown where
// no script runs, and on paper. It steps through the loops of chapters.ch43_constructions.Hopper, to whose states
// the tests compare it: places count from 1, and place 0 is nowhere.

import { define, rendering, tie } from "./widget.mjs";

export const LETTERS = "abcd";
export const LONGEST = 40;
export const MOST = 31;

/** Loops that p hops take: floor(log2 p) + 2. */
export const loops = (p) => Math.floor(Math.log2(p)) + 2;

/** Where the hop of each place leads: behind the latest earlier place with the same letter. */
export const find = (text) =>
  [...text].map((letter, i) => {
    const before = i ? text.lastIndexOf(letter, i - 1) : -1;
    return before < 0 ? 0 : before + 2;
  });

/** Before and after each loop: {pointers, carried}, a place and a letter (or "") for every place. */
export const states = (text, p) => {
  const start = { pointers: [...text].map(() => 0), carried: [...text] };
  const all = [start, { ...start, pointers: find(text) }];
  for (let s = 0; all.length <= loops(p); s++) {
    const { pointers, carried } = all.at(-1);
    const there = (values, nothing) => pointers.map((place) => (place ? values[place - 1] : nothing));
    all.push({ pointers: there(pointers, 0), carried: (p >> s) & 1 ? there(carried, "") : carried });
  }
  return all;
};

/** What is to be seen, in words; the same as chapters.ch43_hop_stepper.describe. */
export const describe = (text, p, loop) => {
  if (loop === 0) return "Before the first loop no place points anywhere, and each carries its own letter.";
  const letter = states(text, p)[loop].carried.at(-1);
  const count = (n) => `${n} ${n === 1 ? "hop" : "hops"}`;
  const reach = `After loop ${loop} of ${loops(p)} every pointer leads ${count(2 ** (loop - 1))} away.`;
  const done = count(p % 2 ** (loop - 1));
  if (!letter) return `${reach} The last place carries nothing, because ${done} ${done === "1 hop" ? "leads" : "lead"} nowhere.`;
  return `${reach} The last place carries ${letter}, from ${done} away${loop === loops(p) ? ": the answer." : "."}`;
};

// --- the drawing ---

const COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7"];
const STEP = 24; // from a place to the next
const GROUND = 124; // where the letters' tops are

const drawing = (text, { pointers, carried }) => {
  const x = (place) => (place - 0.5) * STEP;
  const chain = new Set();
  for (let at = text.length; at && !chain.has(at); at = pointers[at - 1]) chain.add(at);
  const arc = (target, i) => {
    const place = i + 1;
    if (!target || target === place) return "";
    const height = 18 * Math.sqrt(place - target);
    const middle = `${(x(place) + x(target)) / 2} ${GROUND - 2 * height}`;
    const path = `M ${x(place)} ${GROUND} Q ${middle} ${x(target)} ${GROUND}`;
    return `<path data-from="${place}" data-to="${target}" class="${chain.has(place) ? "chain" : ""}" d="${path}"/>`;
  };
  const mark = (letter, i, y, kind) =>
    letter &&
    `<text class="${kind}" x="${x(i + 1)}" y="${y}">${letter}</text>
     <rect x="${x(i + 1) - 8}" y="${y + 5}" width="16" height="4" fill="${COLOURS[LETTERS.indexOf(letter)]}"/>`;
  return [
    ...pointers.map(arc),
    ...[...text].map((letter, i) => mark(letter, i, GROUND + 20, "letter")),
    ...carried.map((letter, i) => mark(letter, i, GROUND + 62, "carried")),
  ].join("");
};

// --- the element ---

const CONTENT = `
<style>
  :host { display: block; margin: 1.5rem 0; --ink: var(--pst-color-text-base, CanvasText); }
  .stepper {
    display: grid; gap: 0.8rem; padding: 1rem; color: var(--ink); font-size: 0.92rem; line-height: 1.4;
    border: 1px solid var(--pst-color-border, GrayText); border-radius: 0.6rem;
  }
  svg { display: block; width: 100%; }
  path { fill: none; stroke: currentColor; stroke-width: 1; opacity: 0.4; }
  path.chain { stroke-width: 3; opacity: 1; }
  text { fill: currentColor; font: 600 17px ui-monospace, monospace; text-anchor: middle; }
  .controls { display: grid; gap: 0.6rem 1.5rem; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); align-items: end; }
  label { display: grid; gap: 0.2rem; }
  input { width: 100%; min-width: 0; box-sizing: border-box; margin: 0; accent-color: var(--pst-color-primary, #0a5c80); }
  input[type="range"] { height: 1.5rem; }
  input[type="text"], button {
    min-height: 2.2rem; padding: 0.2rem 0.5rem; font: inherit; color: inherit; border-radius: 0.4rem;
    background: var(--pst-color-surface, ButtonFace); border: 1px solid var(--pst-color-border, GrayText);
  }
  button { cursor: pointer; }
  :focus-visible { outline: 3px solid var(--focus, Highlight); outline-offset: 2px; border-radius: 3px; }
  p { margin: 0; min-height: 2.8em; }
  slot { display: none; }
  @media print { .stepper { display: none; } slot { display: block; } }
</style>
<section class="stepper" aria-label="Hop stepper">
  <svg role="img" aria-label="The text, an arc from each place to where its pointer leads, and beneath each place the letter it carries" aria-describedby="seen"></svg>
  <div class="controls">
    <label>Loop <input type="range" id="loop" min="0" step="1"></label>
    <button type="button" id="next">Next loop</button>
    <label><span>Hops p = <span id="count"></span></span> <input type="range" id="hops" min="1" max="${MOST}" step="1"></label>
    <label>Text of ${[...LETTERS].join(", ")} <input type="text" id="text" maxlength="${LONGEST}" spellcheck="false" autocomplete="off"></label>
  </div>
  <p id="seen" role="status"></p>
</section>
<slot></slot>`;

const render = rendering((place) => {
  const { model, root, signal } = place;
  root.innerHTML = CONTENT;
  const at = (id) => root.getElementById(id);

  const update = () => {
    const text = [...at("text").value.toLowerCase()].filter((letter) => LETTERS.includes(letter)).join("");
    const p = at("hops").valueAsNumber;
    at("loop").max = loops(p);
    const loop = at("loop").valueAsNumber;
    at("count").textContent = p;
    at("loop").setAttribute("aria-valuetext", `${loop} of ${loops(p)}`);
    const svg = root.querySelector("svg");
    svg.setAttribute("viewBox", `0 0 ${Math.max(text.length, 1) * STEP} ${GROUND + 76}`);
    svg.innerHTML = text && drawing(text, states(text, p)[loop]);
    at("seen").textContent = text ? describe(text, p, loop) : "Type a text.";
  };

  for (const name of ["text", "hops"]) at(name).value = model.get(name);
  at("loop").max = loops(at("hops").valueAsNumber);
  at("loop").value = 1;
  tie(place, ["text", "hops"]);
  root.addEventListener("input", update, { signal });
  at("next").onclick = () => {
    at("loop").value = (at("loop").valueAsNumber + 1) % (Number(at("loop").max) + 1);
    update();
  };
  update();
});

export default { render };

define("hop-stepper", render);
