// The filter of a page of claims: <claim-filter></claim-filter>
//
// Where this module is loaded, it shows of all elements with data-verdict those that fit what is chosen and typed,
// in the order that is chosen. What is there to choose stands in their data attributes; where all have the same, there
// is nothing to choose. What is chosen stands in the page's address, so that a view can be sent. Without scripts, and on
// paper, there is no filter and every claim is shown.

const CHOICES = {
  source: "Source",
  verdict: "Verdict",
  scale: "Setting",
  chapter: "Chapter",
};
const ORDERS = {
  ledger: "as in the sources",
  far: "furthest from the published value",
  near: "nearest to the published value",
};
const DISTANCE =
  "Distance from the published value: the largest factor between a published number and ours; " +
  "claims without such numbers come last.";
const STYLE = `
claim-filter form { display: flex; flex-wrap: wrap; gap: 0.6rem 1rem; align-items: end; margin: 0 0 1rem;
  padding: 0.8rem 0.9rem; border: 1px solid var(--pst-color-border, #888); border-radius: 0.5rem; }
claim-filter label { display: grid; gap: 0.2rem; font-size: 0.85em; flex: 1 1 10rem; min-width: 0; }
claim-filter select, claim-filter input, claim-filter button { font: inherit; color: inherit; min-width: 0; width: 100%;
  padding: 0.3rem 0.4rem; border: 1px solid var(--pst-color-border, #888); border-radius: 0.25rem;
  background: var(--pst-color-background, Canvas); }
claim-filter button { width: auto; cursor: pointer; }
claim-filter :is(output, small) { flex: 1 1 100%; }
@media print { claim-filter { display: none; } }
`;

/** Whether a claim, {text, ...its data}, fits: every chosen value is its own, and every typed word is in its text. */
export const fits = (claim, chosen) =>
  Object.keys(CHOICES).every((name) => !chosen[name] || claim[name] === chosen[name]) &&
  chosen.words.toLowerCase().split(/\s+/).every((word) => claim.text.includes(word));

/** Claims in an order of ORDERS: those that cannot be compared come last, and else in the order given. */
export const sorted = (claims, order) => {
  if (order === "ledger") return claims;
  const compared = claims.filter(({ distance }) => distance !== undefined);
  const rest = claims.filter(({ distance }) => distance === undefined);
  compared.sort((one, other) => one.distance - other.distance || 0);
  return [...(order === "far" ? compared.reverse() : compared), ...rest];
};

class ClaimFilter extends HTMLElement {
  connectedCallback() {
    if (this.claims) return;
    this.claims = [...document.querySelectorAll("[data-verdict]")].map((element) => {
      const place = document.createComment("");
      element.before(place);
      return { element, place, text: element.textContent.toLowerCase(), ...element.dataset };
    });
    const choice = ([name, label]) => {
      const counts = new Map();
      for (const claim of this.claims) if (claim[name]) counts.set(claim[name], (counts.get(claim[name]) ?? 0) + 1);
      const [first] = counts.values();
      if (!first || first === this.claims.length) return [];
      const inOrder = name === "chapter" ? [...counts].sort(([one], [other]) => (one < other ? -1 : 1)) : [...counts];
      const said = (value) => (name === "chapter" ? value.replaceAll("_", " ") : value);
      const options = inOrder.map(([value, count]) => new Option(`${said(value)} (${count})`, value));
      return [select(name, label, [new Option("all", ""), ...options])];
    };
    const select = (name, label, entries) => {
      const box = Object.assign(document.createElement("select"), { name });
      box.append(...entries);
      return this.labelled(label, box);
    };
    const form = document.createElement("form");
    form.setAttribute("role", "search");
    form.setAttribute("aria-label", "claims");
    const words = Object.assign(document.createElement("input"), { name: "words", type: "search" });
    const order = select("order", "Order", Object.entries(ORDERS).map(([value, label]) => new Option(label, value)));
    order.control.setAttribute("aria-describedby", "how-far");
    form.append(
      this.labelled("Words", words),
      ...Object.entries(CHOICES).flatMap(choice),
      order,
      Object.assign(document.createElement("button"), { type: "reset", textContent: "Show all" }),
      Object.assign(document.createElement("small"), { id: "how-far", textContent: DISTANCE }),
      document.createElement("output"),
    );
    const asked = new URLSearchParams(location.search);
    for (const control of form.elements) {
      const value = asked.get(control.name);
      const known = control.options === undefined || [...control.options].some((option) => option.value === value);
      if (control.name && value !== null && known) control.value = value;
    }
    form.addEventListener("input", () => this.show());
    form.addEventListener("change", () => this.address()); // a browser takes few new addresses in a second
    form.addEventListener("reset", () =>
      setTimeout(() => {
        this.show();
        this.address();
      }),
    );
    form.addEventListener("submit", (event) => event.preventDefault());
    // A link to what is not shown, from above or from the page's contents, shows everything before it is followed.
    document.addEventListener("click", (event) => {
      const link = event.target.closest('a[href^="#"]');
      const elsewhere = event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
      // Of a drawing's links `hash` is unknown.
      const target = link && document.getElementById(link.getAttribute("href").slice(1));
      if (elsewhere || !target?.closest("[hidden]")) return;
      form.reset();
      this.show();
    });
    const style = Object.assign(document.createElement("style"), { textContent: STYLE });
    this.list = document.createElement("div");
    this.replaceChildren(style, form, this.list);
    this.show();
    if (location.hash && document.getElementById(location.hash.slice(1))?.closest("[hidden]")) {
      form.reset();
      this.show();
      document.getElementById(location.hash.slice(1)).scrollIntoView();
    }
  }

  /** Put what is chosen into the page's address. */
  address() {
    const address = new URL(location);
    for (const [name, value] of new FormData(this.querySelector("form"))) {
      if (value && value !== "ledger") address.searchParams.set(name, value);
      else address.searchParams.delete(name);
    }
    history.replaceState(history.state, "", address);
  }

  labelled(text, control) {
    const label = document.createElement("label");
    label.append(text, control);
    return label;
  }

  show() {
    const chosen = Object.fromEntries(new FormData(this.querySelector("form")));
    for (const claim of this.claims) {
      claim.element.hidden = !fits(claim, chosen);
      claim.place.after(claim.element);
    }
    const shown = this.claims.filter(({ element }) => !element.hidden);
    if (chosen.order !== "ledger") this.list.append(...sorted(shown, chosen.order).map(({ element }) => element));
    const all = shown.length === this.claims.length;
    // A fold or a part of the page, of those below, that is left without a claim goes as well.
    for (const part of document.querySelectorAll("details:has(> ul), section")) {
      if (this.compareDocumentPosition(part) !== Node.DOCUMENT_POSITION_FOLLOWING) continue;
      part.hidden = !(all && chosen.order === "ledger") && !shown.some(({ element }) => part.contains(element));
      if (part.matches("details")) part.open = !all && !part.hidden;
    }
    const count = `${shown.length} of ${this.claims.length} claims`;
    this.querySelector("output").textContent = shown.length ? count : "No claim matches.";
  }
}

customElements.define("claim-filter", ClaimFilter);
