// The petal explorer: <petal-explorer embedding="4" attention="32" amplitude="0.5" phase="0" a="70"></petal-explorer>
//
// A page that uses it loads this module and what it imports. What stands between the tags is shown where
// no script runs, and on paper. The numbers are those of chapters.ch21_petals.Petal, to which the tests compare
// them; a point of the plane is [real part, imaginary part], and the parameters are named as the fields of that class.

import { define, given, rendering, save, tie } from "./widget.mjs";

export const P = 113;
export const REACH = 1.2; // the drawing shows -REACH to REACH in both directions
const SAMPLES = 64; // for each turn of the fastest oscillation: the line then stays within half a pixel of the curve
const PHASES = 8; // curves in a family
const SECONDS = 12; // for the phase to go round once
const PRESETS = [[4, 4], [4, 32], [32, 4]]; // (embedding, attention)
const TURN = 2 * Math.PI;

// bookkit.style.residue_colours(113), six hexadecimal digits a residue.
const COLOURS = `
968f969490959390959291959091958f92958d92968b939789939886949984949b82949c7f959f7d95a17b95a47995a77593a7
7190a66c8ca66989a56585a46281a45f7da35c7aa35a75a25872a1566da1556aa053659f53619e525c9c51599b515499515098
504b96504794504191503d8f4f388b4f33884e2f844d2a804d267c4b21764a1e71471a6b45176542145e4013583c115139104b
360f45330f40300e3b2e0e372b0f332a103029102f2b0f2f2e0f30310f31350f33380f353d103741113947123b4b133d50143f
5515405b17425f1843651a43691c446e1e447221447724447b28447f2b44832f448632448a36448d3a44903e44934245964645
984a469b4f479d53499f584aa15c4ca3614fa46551a66b55a76f58a8745ca97860aa7e65ab8269ac876fad8b74a98c77a78c7a
a48d7da28e809f8e839d8f869c8f899a8f8b998f8e988f90979091969093969094`
  .replace(/\s/g, "")
  .match(/.{6}/g)
  .map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));

// --- the curve ---

/** x_t, where number t stands on the circle. */
export const point = ({ embedding, p = P }, t) => {
  const angle = (TURN * embedding * t) / p;
  return [Math.cos(angle), Math.sin(angle)];
};

/** alpha(b), the attention that a receives. */
export const weight = ({ attention, amplitude, phase, p = P }, b) =>
  0.5 + amplitude * Math.cos((TURN * attention * b) / p + phase);

/** z(b) = alpha(b) x_a + (1 - alpha(b)) x_b for any real b. */
export const petal = (curve, b) => {
  const alpha = weight(curve, b);
  const [x, y] = point(curve, curve.a);
  const [u, v] = point(curve, b);
  return [alpha * x + (1 - alpha) * u, alpha * y + (1 - alpha) * v];
};

const divisor = (m, n) => (n ? divisor(n, m % n) : m);

/** Attention to embedding frequency in lowest terms, [m, n]. */
export const ratio = ({ embedding, attention }) =>
  [attention, embedding].map((k) => k / divisor(attention, embedding));

/** How often the closed curve crosses itself away from x_a, at almost every phase. */
export const crossings = (curve) => {
  const [m, n] = ratio(curve);
  return m * (n - 1);
};

/** Lobes of the closed curve at full amplitude, at almost every phase. */
export const lobes = (curve) => {
  const [m, n] = ratio(curve);
  return m + n;
};

/**
 * Phases of a family: evenly spread over a turn / n, from the curve's own on. The whole turn would show every closed
 * curve n times, because a turn / n more of phase and some more turns of the circle come to the same.
 */
export const family = (curve) => {
  const [, n] = ratio(curve);
  return Array.from({ length: PHASES }, (_, i) => curve.phase + (TURN * i) / (PHASES * n));
};

/** Points of the closed curve, once around from b = a; every one is evaluated, none interpolated. */
export const closed = (curve) => {
  const [m, n] = ratio(curve);
  const around = SAMPLES * (m + n); // m + n turns: the fastest term of the curve's Fourier series
  const period = ((curve.p ?? P) * n) / curve.embedding;
  return Array.from({ length: around }, (_, i) => petal(curve, curve.a + (period * i) / around));
};

const times = (count) => (count === 1 ? "once" : `${count} times`);

/** What is to be seen, in words; the same as chapters.ch21_petal_explorer.describe. */
export const describe = (curve, asFamily = false) => {
  if (curve.amplitude === 0)
    return "Amplitude 0: the weight is always 1/2, and the points stand on a circle of half the size.";
  const [m, n] = ratio(curve);
  const crossing = n === 1 ? "does not cross itself elsewhere" : `crosses itself ${times(crossings(curve))} elsewhere`;
  const shape =
    curve.amplitude === 0.5
      ? `has ${lobes(curve)} lobes that meet at the marked point, and ${crossing}.`
      : `passes the marked point ${times(n)} and ${crossing}; at amplitude 0.5 it has ${lobes(curve)} lobes.`;
  const span = n === 1 ? "a turn" : `1/${n} of a turn, after which the curve repeats`;
  const note = asFamily ? ` Eight phases over ${span}; the bold curve has the phase chosen.` : "";
  return `Attention to embedding frequency m/n = ${m}/${n} in lowest terms. At almost every phase the curve ${shape}${note}`;
};

// --- the drawing ---

// In dark mode the dark colours keep their hue and become bright: each is told from its ground by 3 : 1 at least.
const cyclic = (share, dark) => {
  const colour = COLOURS[Math.floor(share * P + 1e-9) % P];
  const gain = dark ? Math.max(1.15, 190 / Math.max(...colour)) : 1;
  return `rgb(${colour.map((value) => Math.round(gain * value + (dark ? 25 : 0))).join(" ")})`;
};

/** Draw on a square canvas. ink: the colour of text; dark: whether the ground is. */
const draw = (canvas, curve, asFamily, ink, dark) => {
  const size = canvas.width;
  const unit = size / (2 * REACH);
  const context = canvas.getContext("2d");
  const place = ([x, y]) => [size / 2 + unit * x, size / 2 - unit * y];
  const disc = (at, radius) => {
    context.beginPath();
    context.arc(...place(at), radius, 0, TURN);
  };
  const stroke = (colour, width, opacity = 1) => {
    context.strokeStyle = colour;
    context.lineWidth = (width * size) / 420;
    context.globalAlpha = opacity;
    context.stroke();
    context.globalAlpha = 1;
  };
  const trace = (phase) => {
    context.beginPath();
    for (const at of closed({ ...curve, phase })) context.lineTo(...place(at));
    context.closePath();
  };
  context.clearRect(0, 0, size, size);
  context.lineJoin = "round";
  disc([0, 0], unit);
  stroke(ink, 1, 0.35);
  if (asFamily) {
    const [, n] = ratio(curve);
    for (const phase of family(curve).reverse()) {
      const chosen = phase === curve.phase;
      trace(phase);
      if (chosen) stroke(ink, 4.4, 0.9);
      stroke(cyclic((n * phase) / TURN, dark), chosen ? 2.8 : 1.4);
    }
  } else {
    trace(curve.phase);
    stroke(ink, 1.2, 0.45);
    for (let b = 0; b < P; b++) {
      disc(petal(curve, b), size / 95);
      context.fillStyle = cyclic(b / P, dark);
      context.fill();
      stroke(ink, 0.7, 0.6); // the palest colours would vanish on white
    }
  }
  const mark = point(curve, curve.a);
  disc(mark, size / 44);
  stroke(ink, 1.8);
  const [x, y] = place(mark.map((value) => 1.12 * value));
  const letter = size / 24;
  context.fillStyle = ink;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.font = `italic ${letter}px Georgia, serif`;
  context.fillText("x", x - letter / 4, y);
  context.font = `italic ${0.7 * letter}px Georgia, serif`;
  context.fillText("a", x + letter / 4, y + letter / 4);
};

// --- the element ---

const slider = (name, label, symbol, max, step, min = 0) => `
  <div class="slider">
    <label for="${name}">${label} <var>${symbol}</var></label><span id="${name}-value" aria-hidden="true"></span>
    <input type="range" id="${name}" min="${min}" max="${max}" step="${step}">
  </div>`;

const CONTENT = `
<style>
  :host { display: block; container-type: inline-size; margin: 1.5rem 0; --ink: var(--pst-color-text-base, CanvasText); }
  .explorer {
    display: grid; gap: 0.9rem 1.75rem; align-items: center; padding: 1rem; color: var(--ink); font-size: 0.92rem;
    line-height: 1.4; border: 1px solid var(--pst-color-border, GrayText); border-radius: 0.6rem;
  }
  canvas { display: block; width: 100%; max-width: 30rem; aspect-ratio: 1; margin: 0 auto; }
  .key { display: flex; gap: 0.6rem; align-items: center; max-width: 22rem; margin: 0.5rem auto 0; }
  .key div { flex: 1; height: 0.55rem; border-radius: 0.3rem; }
  .key, .slider span { font-variant-numeric: tabular-nums; }
  .controls { display: grid; gap: 0.6rem; }
  .slider { display: grid; grid-template-columns: 1fr auto; column-gap: 0.5rem; }
  .slider input { grid-column: 1 / -1; width: 100%; min-width: 0; height: 1.5rem; margin: 0.1rem 0 0; outline-offset: 0; }
  input { accent-color: var(--pst-color-primary, #0a5c80); cursor: pointer; }
  var { font-family: Georgia, serif; }
  sub { font-size: 0.7em; line-height: 0; }
  .row { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; justify-content: space-between; }
  .presets { margin: 0; padding: 0; border: 0; min-width: 0; }
  .presets legend { padding: 0; margin-bottom: 0.35rem; }
  .presets div { display: grid; grid-template-columns: repeat(3, 1fr); gap: 0.4rem; }
  .family { display: flex; gap: 0.4rem; align-items: center; min-height: 2.2rem; cursor: pointer; }
  .family input { width: 1.15rem; height: 1.15rem; margin: 0; }
  button, .family input { outline-offset: 2px; }
  button {
    min-height: 2.2rem; padding: 0.2rem 0.5rem; font: inherit; color: inherit; cursor: pointer;
    background: var(--pst-color-surface, ButtonFace); border: 1px solid var(--pst-color-border, GrayText);
    border-radius: 0.4rem;
  }
  button:hover, button[aria-pressed="true"] { border-color: var(--pst-color-primary, #0a5c80); }
  button[aria-pressed="true"] { box-shadow: inset 0 0 0 1px var(--pst-color-primary, #0a5c80); font-weight: 600; }
  #play { min-width: 7.8rem; }
  :focus-visible { outline: 3px solid var(--focus, Highlight); border-radius: 3px; }
  p { margin: 0; }
  @container (min-width: 40rem) {
    .explorer { grid-template-columns: minmax(0, 1.2fr) minmax(18rem, 1fr); padding: 1.25rem 1.5rem; }
    p { grid-column: 1 / -1; min-height: 4.2em; } /* three lines: what follows stays in place */
  }
  slot { display: none; }
  @media print {
    .explorer { display: none; }
    slot { display: block; }
  }
</style>
<section class="explorer" aria-label="Petal explorer">
  <div>
    <canvas role="img" aria-label="The points z(b) and their curve" aria-describedby="seen"></canvas>
    <div class="key"><span id="first"></span><div></div><span id="last"></span></div>
  </div>
  <div class="controls">
    ${slider("embedding", "Embedding frequency", "k<sub>e</sub>", 56, 1, 1)}
    ${slider("attention", "Attention frequency", "k<sub>a</sub>", 56, 1, 1)}
    ${slider("phase", "Phase", "φ", 2, 0.01)}
    ${slider("amplitude", "Amplitude", "A", 0.5, 0.01)}
    ${slider("a", "Fixed number", "a", P - 1, 1)}
    <fieldset class="presets">
      <legend>The source's pairs <var>k<sub>e</sub></var>, <var>k<sub>a</sub></var></legend>
      <div>${PRESETS.map((pair) => `<button type="button">${pair.join(", ")}</button>`).join("")}</div>
    </fieldset>
    <div class="row">
      <label class="family"><input type="checkbox" id="family"> Family of curves</label>
      <button type="button" id="play"></button>
    </div>
  </div>
  <p id="seen" role="status"></p>
</section>
<slot></slot>`;

const SLIDERS = ["embedding", "attention", "phase", "amplitude", "a"];

const GIVEN = { embedding: 4, attention: 32, phase: 0, amplitude: 0.5, a: 0 }; // where the model has nothing

const render = rendering((place) => {
  const { model, root, signal } = place;
  root.innerHTML = CONTENT;
  const at = (id) => root.getElementById(id);
  const presets = [...root.querySelectorAll(".presets button")];
  let phase = Number(model.get("phase") ?? GIVEN.phase); // radians; the slider rounds it to hundredths of pi
  let running = 0; // the animation frame asked for, 0 when paused

  const curveNow = () => ({ ...Object.fromEntries(SLIDERS.map((name) => [name, at(name).valueAsNumber])), phase });

  /** Never called but by the reader: nothing on the page moves by itself. */
  const play = () => {
    let before;
    const step = (now) => {
      phase = (phase + (TURN * (now - (before ?? now))) / 1000 / SECONDS) % TURN;
      before = now;
      running = requestAnimationFrame(step);
      at("phase").value = phase / Math.PI;
      update();
    };
    running = requestAnimationFrame(step);
  };

  const pause = () => {
    cancelAnimationFrame(running);
    running = 0;
  };

  const update = () => {
    const curve = curveNow();
    const asFamily = at("family").checked;
    const show = (element, text) => {
      if (element.textContent !== text) element.textContent = text; // else a screen reader would say it again
    };
    for (const name of SLIDERS) {
      const value = at(name).valueAsNumber;
      const text = { phase: `${value.toFixed(2)} π`, amplitude: value.toFixed(2) }[name] ?? String(value);
      show(at(`${name}-value`), text);
      at(name).setAttribute("aria-valuetext", text);
    }
    presets.forEach((button, i) => {
      const [embedding, attention] = PRESETS[i];
      button.setAttribute("aria-pressed", embedding === curve.embedding && attention === curve.attention);
    });
    show(at("play"), running ? "Pause" : "Play the phase");
    const [, n] = ratio(curve);
    show(at("first"), asFamily ? "φ = 0" : "b = 0");
    show(at("last"), asFamily ? (n === 1 ? "2π" : `2π/${n}`) : String(P - 1));
    show(at("seen"), describe(curve, asFamily)); // the phase is not in it, so an animation says nothing
    redraw();
  };

  const canvas = root.querySelector("canvas");
  const redraw = () => {
    const size = Math.round(canvas.clientWidth * devicePixelRatio);
    if (!size) return; // not shown, in a folded cell for example
    if (canvas.width !== size) canvas.width = canvas.height = size;
    const ink = getComputedStyle(canvas).color;
    const dark = ink.match(/\d+/g).slice(0, 3).every((part) => part > 127); // the ground is if the text is bright
    const strip = Array.from({ length: 29 }, (_, i) => cyclic(i / 28, dark));
    root.querySelector(".key div").style.background = `linear-gradient(to right, ${strip})`;
    draw(canvas, curveNow(), at("family").checked, ink, dark);
  };

  for (const name of SLIDERS) at(name).value = name === "phase" ? phase / Math.PI : (model.get(name) ?? GIVEN[name]);
  at("family").checked = given(model, "family");
  tie(place, SLIDERS.filter((name) => name !== "phase")); // which would tell of every frame
  const entered = ({ target }) => {
    if (target.id === "phase") {
      pause();
      phase = target.valueAsNumber * Math.PI;
    }
    update();
  };
  root.addEventListener("input", entered, { signal });
  presets.forEach((button, i) => {
    button.onclick = () => {
      const [embedding, attention] = PRESETS[i];
      [at("embedding").value, at("attention").value] = [embedding, attention];
      save(model, { embedding, attention });
      update();
    };
  });
  at("play").onclick = () => {
    if (running) pause();
    else play();
    update();
  };
  // The drawing follows its own size and the theme's switch between light and dark, of a page or of JupyterLab.
  const watched = [new ResizeObserver(redraw), new MutationObserver(redraw)];
  watched[0].observe(canvas);
  watched[1].observe(document.documentElement, { attributeFilter: ["data-theme"] });
  watched[1].observe(document.body, { attributeFilter: ["data-jp-theme-light"] });
  signal.addEventListener("abort", () => {
    pause();
    for (const observer of watched) observer.disconnect();
  });
  update();
});

export default { render };

define("petal-explorer", render);
