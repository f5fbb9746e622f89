// Figures at the size of the window: by a click, or by the button under each; Escape or another click closes it.
// Where a figure is wider than the screen, it also says that it scrolls. Not loaded as a module, so that it also works on
// pages that are opened as files. bookkit.sphinx.enlarge loads it.

{
  const shown = Object.assign(document.createElement("dialog"), { className: "enlarged" });
  const close = Object.assign(document.createElement("button"), { type: "button", textContent: "Close" });
  shown.onclick = () => shown.close();
  document.body.append(shown);

  const enlarge = ({ src, alt }, number) => {
    shown.setAttribute("aria-label", `${number}, enlarged`);
    shown.replaceChildren(close, Object.assign(new Image(), { src, alt }));
    shown.showModal();
  };

  for (const figure of document.querySelectorAll("article figure:has(figcaption .legend)")) {
    const parts = ["img", ".legend p:last-child", ".caption-number"];
    const [image, links, caption] = parts.map((part) => figure.querySelector(part));
    const number = caption.textContent.trim();
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "enlarge" });
    const added = Object.assign(document.createElement("span"), { className: "enlarge" });
    const scrolls = Object.assign(document.createElement("span"), { textContent: "scrolls sideways · " });
    button.setAttribute("aria-label", `enlarge ${number}`);
    added.append(scrolls, button, " · ");
    links.prepend(added);
    new ResizeObserver(() => (scrolls.hidden = figure.scrollWidth <= figure.clientWidth)).observe(figure);
    button.onclick = image.onclick = () => enlarge(image, number);
  }
}
