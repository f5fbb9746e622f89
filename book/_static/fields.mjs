// What elements with fields share: reading a whole number that is typed, and telling what becomes of it.

/** The number of at most so many digits in this input, as text without leading zeros; undefined, and marked, if none. */
export const typed = (input, digits) => {
  const text = input.value.replace(/[\s,]/g, "").replace(/^0+(?=\d)/, "");
  const valid = /^\d+$/.test(text) && text.length <= digits;
  input.setAttribute("aria-invalid", !valid);
  return valid ? text : undefined;
};

/** Put words in a place that a screen reader listens to: the same words once more would be said again. */
export const say = (place, words) => {
  if (place.textContent !== words) place.textContent = words;
};
