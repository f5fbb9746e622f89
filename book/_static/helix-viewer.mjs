// The helix viewer: <helix-viewer turn="20" tilt="15" data="{...}"></helix-viewer>, made by chapters.ch50_helix_viewer
//
// A page that uses it loads this module and what it imports. What stands between the tags is shown where
// no script runs, and on paper. Places are [cosine, sine, height]; the tests compare views and words to Python's.

import { define, rendering, save, tie } from "./widget.mjs";

/** [right, up, away] of a place, seen from `turn` degrees around and `tilt` above. */
export const project = ([x, y, z], turn, tilt) => {
  const [around, above] = [turn, tilt].map((degrees) => (degrees * Math.PI) / 180);
  const right = x * Math.cos(around) - y * Math.sin(around);
  const back = x * Math.sin(around) + y * Math.cos(around);
  return [right, z * Math.cos(above) + back * Math.sin(above), back * Math.cos(above) - z * Math.sin(above)];
};

/** Standard deviation of the distance from the axis over its mean. */
export const spread = (places) => {
  const radius = places.map(([x, y]) => Math.hypot(x, y));
  const mean = radius.reduce((sum, r) => sum + r, 0) / radius.length;
  return Math.sqrt(radius.reduce((sum, r) => sum + (r - mean) ** 2, 0) / (radius.length - 1)) / mean;
};

/** One view in words; the same as chapters.ch50_helix_viewer.describe. */
export const describe = (places, period, name, turn, tilt) =>
  `The line and the circle of period ${period}, ${name}, from ${turn} degrees around and ${Math.abs(tilt)} ` +
  `${tilt >= 0 ? "above" : "below"}. The distance from the axis varies by ${spread(places).toFixed(2)} of its mean: ` +
  "0 on a circle, about 0.52 in a cloud.";

// --- the drawing ---

const UNIT = 100; // of the drawing, for a radius
const REACH = 2.1; // the drawing shows -REACH to REACH in both directions, or more where a number is farther off

/** How many times larger than REACH the drawing must be for all places to be seen from every side. */
const zoomOut = (places) => Math.max(1, (0.3 + Math.max(...places.map((place) => Math.hypot(...place)))) / REACH);

const svgOf = ({ numbers, places }, period, { height, colours }, turn, tilt) => {
  const zoom = zoomOut(places[period]); // dots and labels keep their size on the screen
  const last = colours.length - 1;
  const at = (place) => {
    const [right, up, away] = project(place, turn, tilt);
    return { x: (UNIT * right).toFixed(1), y: (-UNIT * up).toFixed(1), away };
  };
  const steps = Array.from({ length: 20 * Math.max(20, Math.ceil(last / period)) + 1 }, (_, i) => i);
  const helix = steps.map((i) => {
    const n = (last * i) / (steps.length - 1);
    const angle = (2 * Math.PI * n) / period;
    const { x, y } = at([Math.cos(angle), Math.sin(angle), height * ((2 * n) / last - 1)]);
    return `${x},${y}`;
  });
  const axis = [-height, height].map((z) => at([0, 0, z]));
  const dots = places[period]
    .map((place, i) => ({ n: numbers[i], ...at(place) }))
    .sort((one, other) => other.away - one.away); // those in front are drawn last
  const disc = ({ n, x, y, away }) =>
    `<circle data-number="${n}" cx="${x}" cy="${y}" r="${(5.5 * zoom - away).toFixed(1)}" fill="${colours[n]}"/>`;
  const label = ({ n, x, y }) => (n % 10 ? "" : `<text x="${x}" y="${(y - 9 * zoom).toFixed(1)}">${n}</text>`);
  return (
    `<line x1="${axis[0].x}" y1="${axis[0].y}" x2="${axis[1].x}" y2="${axis[1].y}"/>` +
    `<polyline points="${helix.join(" ")}"/>${dots.map(disc).join("")}${dots.map(label).join("")}`
  );
};

// --- the element ---

const CONTENT = `
<style>
  :host { display: block; margin: 1.5rem 0; --ink: var(--pst-color-text-base, CanvasText); }
  .viewer {
    display: grid; gap: 0.8rem; padding: 1rem; color: var(--ink); font-size: 0.92rem; line-height: 1.4;
    border: 1px solid var(--pst-color-border, GrayText); border-radius: 0.6rem;
  }
  svg {
    display: block; width: 100%; max-width: 30rem; margin: 0 auto; cursor: grab; touch-action: pan-y; user-select: none;
  }
  line { stroke: currentColor; opacity: 0.35; stroke-dasharray: 4 4; }
  polyline { fill: none; stroke: currentColor; opacity: 0.45; stroke-width: 1.5; }
  line, polyline, circle { vector-effect: non-scaling-stroke; }
  circle { stroke: currentColor; stroke-width: 0.8; }
  text {
    fill: currentColor; font: 600 1em sans-serif; text-anchor: middle; paint-order: stroke; stroke-width: 0.23em;
    stroke: var(--pst-color-background, Canvas);
  }
  .controls { display: grid; gap: 0.6rem 1.5rem; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); align-items: end; }
  label { display: grid; gap: 0.2rem; }
  input { width: 100%; min-width: 0; height: 1.5rem; margin: 0; accent-color: var(--pst-color-primary, #0a5c80); }
  select {
    min-height: 2.2rem; padding: 0.2rem 0.5rem; font: inherit; color: inherit; border-radius: 0.4rem;
    background: var(--pst-color-surface, ButtonFace); border: 1px solid var(--pst-color-border, GrayText);
  }
  :focus-visible { outline: 3px solid var(--focus, Highlight); outline-offset: 2px; border-radius: 3px; }
  p { margin: 0; min-height: 4.2em; }
  slot { display: none; }
  @media print { .viewer { display: none; } slot { display: block; } }
</style>
<section class="viewer" aria-label="Helix viewer">
  <svg role="img" aria-label="The numbers as dots in space, about a helix; every tenth is labelled" aria-describedby="seen"></svg>
  <div class="controls">
    <label>Turn (or drag) <input type="range" id="turn" min="0" max="359" step="1"></label>
    <label>Tilt <input type="range" id="tilt" min="-90" max="90" step="1"></label>
    <label>Circle of period <select id="circle"></select></label>
    <label>Numbers <select id="cloud"></select></label>
  </div>
  <p id="seen" role="status"></p>
</section>
<slot></slot>`;

const render = rendering((place) => {
  const { model, root, signal } = place;
  root.innerHTML = CONTENT;
  const at = (id) => root.getElementById(id);
  const svg = root.querySelector("svg");
  const data = JSON.parse(model.get("data"));
  const angles = () => ["turn", "tilt"].map((name) => at(name).valueAsNumber);

  const update = () => {
    const [turn, tilt] = angles();
    at("turn").setAttribute("aria-valuetext", `${turn} degrees around`);
    at("tilt").setAttribute("aria-valuetext", `${Math.abs(tilt)} degrees ${tilt >= 0 ? "above" : "below"}`);
    const cloud = data.clouds[at("cloud").value];
    const period = at("circle").value;
    const reach = UNIT * REACH * zoomOut(cloud.places[period]);
    svg.setAttribute("viewBox", `${-reach} ${-reach} ${2 * reach} ${2 * reach}`);
    svg.style.fontSize = `${(13 * reach) / (UNIT * REACH)}px`;
    svg.innerHTML = svgOf(cloud, period, data, turn, tilt);
    at("seen").textContent = describe(cloud.places[period], period, cloud.name, turn, tilt);
  };

  for (const name of ["turn", "tilt"]) at(name).value = model.get(name);
  for (const period of data.circles) at("circle").add(new Option(period));
  data.clouds.forEach(({ name }, i) => at("cloud").add(new Option(name, i)));
  tie(place, ["turn", "tilt"]);
  root.addEventListener("input", update, { signal });
  // Dragging is half a degree for each pixel: sideways turns, up and down tilts.
  svg.onpointerdown = (down) => {
    const [turn, tilt] = angles();
    svg.setPointerCapture(down.pointerId);
    svg.onpointermove = (move) => {
      at("turn").value = (((turn - (move.clientX - down.clientX) / 2) % 360) + 360) % 360;
      at("tilt").value = tilt + (move.clientY - down.clientY) / 2;
      save(model, { turn: at("turn").value, tilt: at("tilt").value });
      update();
    };
  };
  svg.onpointerup = svg.onpointercancel = () => (svg.onpointermove = null);
  update();
});

export default { render };

define("helix-viewer", render);
