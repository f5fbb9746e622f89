// A slider through the steps of a training, for the elements that have one.

/** What stands in an element's style, for the slider. */
export const STEP_STYLE = `
  .back { display: flex; gap: 0.8rem; align-items: center; }
  .back input { flex: 1; min-width: 0; height: 1.8rem; margin: 0; accent-color: var(--pst-color-primary, #0a5c80); }`;

/** The slider, with the number of each step that it can stand at as its value. */
export const stepSlider = (label) =>
  `<label class="back wide">${label} <input type="range" id="back" min="0" max="0" step="1"></label>`;

/** Let it stand at number `shown` of 0 to `last`. */
export const stepTo = (slider, shown, last) => Object.assign(slider, { max: last, value: shown, disabled: last === 0 });

/** What a screen reader says of where it stands: the step, not the number. */
export const sayStep = (slider, step) =>
  slider.setAttribute("aria-valuetext", `step ${step.toLocaleString("en-US")}`);
