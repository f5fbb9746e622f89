// Figures at the width of the window: by a click, or by the button under each; Escape or another click closes it. In a
// window narrower than full size (book.css) a click on the drawing, or a button, shows it at that size, and back; one
// that is wider than the window in the page opens at that size. Where a figure or a table is wider than the screen, it
// also says that it scrolls. Not loaded as a module, so that it also works on pages that are opened as files.
// bookkit.sphinx.enlarge loads it.

{
  const shown = Object.assign(document.createElement("dialog"), { className: "enlarged" });
  const close = Object.assign(document.createElement("button"), { type: "button", textContent: "Close" });
  const size = Object.assign(document.createElement("button"), { type: "button", className: "size" });
  const buttons = Object.assign(document.createElement("div"), { className: "buttons" });
  buttons.append(close, size);
  shown.onclick = () => shown.close();
  // Sphinx's own listener would keep Escape from closing it once a tap on the drawing has taken the focus off a button.
  shown.onkeydown = (event) => event.stopPropagation();
  document.body.append(shown);

  // To full size and back, with a point, in parts of the drawing, in the middle. Returns whether the width has changed.
  const zoom = (image, x, y) => {
    const before = image.clientWidth;
    size.textContent = image.classList.toggle("full") ? "Fit to width" : "Full size";
    const { offsetLeft, offsetTop, clientWidth, clientHeight } = image;
    const [left, top] = [offsetLeft + x * clientWidth, offsetTop + y * clientHeight];
    shown.scrollTo(left - shown.clientWidth / 2, top - shown.clientHeight / 2);
    return clientWidth !== before;
  };
  size.onclick = (event) => {
    event.stopPropagation();
    zoom(shown.querySelector("img"), 0.5, 0.5);
  };

  const enlarge = ({ src, alt, clientWidth: wide }, number) => {
    shown.setAttribute("aria-label", `${number}, enlarged`);
    const large = Object.assign(new Image(), { src, alt });
    large.onclick = (event) => {
      const { offsetX, offsetY } = event;
      if (zoom(large, offsetX / large.clientWidth, offsetY / large.clientHeight)) event.stopPropagation();
    };
    size.textContent = "Full size";
    shown.replaceChildren(buttons, large);
    shown.showModal();
    if (wide > large.clientWidth) zoom(large, 0, 0); // fitted, it would be smaller than in the page
  };

  const sayWhereItScrolls = (words, box) =>
    new ResizeObserver(() => (words.hidden = box.scrollWidth <= box.clientWidth)).observe(box);

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
    sayWhereItScrolls(scrolls, figure);
    button.onclick = image.onclick = () => enlarge(image, number);
  }

  const tables = "article :is(.pst-scrollable-table-container, .cell_output .text_html):has(> table)";
  for (const box of document.querySelectorAll(tables)) {
    const [className, textContent] = ["scrolls", "scrolls sideways"];
    const scrolls = Object.assign(document.createElement("p"), { className, textContent });
    box.after(scrolls);
    sayWhereItScrolls(scrolls, box);
  }
}
