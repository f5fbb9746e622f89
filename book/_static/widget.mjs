// One drawing for a page and for a notebook. A module that draws an element exports { render } by default, the shape that
// anywidget asks for: render({ model, el }) draws into el, and returns what ends it. On a page `define` calls it, with
// the element's attributes as the model. Values are text, as attributes are.

/** render for anywidget, of `draw({ model, root, signal })`: what that fills is emptied at the end, which the signal tells. */
export const rendering =
  (draw) =>
  ({ model, el }) => {
    const root = el.shadowRoot ?? el.attachShadow({ mode: "open" }); // a notebook may draw anew in the same place
    const end = new AbortController();
    draw({ model, root, signal: end.signal });
    return () => {
      end.abort();
      root.replaceChildren();
    };
  };

/** Let elements of this name on the page be drawn so. A notebook loads a module more than once. */
export const define = (name, render) => {
  if (customElements.get(name)) return;
  class Drawn extends HTMLElement {
    #end;

    connectedCallback() {
      const nothing = () => {}; // nobody but the element itself changes its attributes
      const model = {
        get: (key) => this.getAttribute(key),
        set: (key, value) => this.setAttribute(key, value),
        save_changes: nothing, on: nothing, off: nothing,
      };
      this.#end = render({ model, el: this });
    }

    disconnectedCallback() {
      this.#end?.();
    }
  }
  customElements.define(name, Drawn);
};

/** Whether the model has a value of this name: an attribute without a text is one, too. */
export const given = (model, name) => ![undefined, null, false].includes(model.get(name));

/** Put values into the model, and tell whoever else has it. */
export const save = (model, values) => {
  for (const [name, value] of Object.entries(values)) model.set(name, String(value));
  model.save_changes();
};

/** What a reader enters in the inputs of these names goes to the model, and what else changes there into the inputs. */
export const tie = ({ model, root, signal }, names) => {
  for (const name of names) {
    const input = root.getElementById(name);
    const differs = () => input.value !== String(model.get(name));
    const take = () => {
      if (!differs()) return;
      input.value = model.get(name);
      input.dispatchEvent(new Event("input", { bubbles: true }));
    };
    input.addEventListener("input", () => differs() && save(model, { [name]: input.value }), { signal });
    model.on(`change:${name}`, take);
    signal.addEventListener("abort", () => model.off(`change:${name}`, take));
  }
};
