// @ts-check
/**
 * For libraries that write style elements and attributes: the content security policy forbids both, and what a
 * script sets as objects (constructable style sheets, CSSOM) is not theirs. The policy stays as strict as it is.
 */

/** An element that takes a style element's place: its text becomes an adopted style sheet. */
function standIn() {
  const element = document.createElementNS("http://www.w3.org/1999/xhtml", "span");
  const sheet = new CSSStyleSheet();
  element.setAttribute("hidden", "");
  Object.defineProperty(element, "textContent", {
    get: () => "",
    set: (/** @type {string} */ text) => sheet.replaceSync(text),
  });
  const remove = element.remove.bind(element);
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
    remove();
  };
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  return element;
}

/**
 * Do `work`; style elements it makes are adopted style sheets instead.
 * @param {() => void} work
 */
export function withSheets(work) {
  const create = document.createElement;
  document.createElement = /** @type {typeof document.createElement} */ (
    (/** @type {string} */ name, /** @type {ElementCreationOptions | undefined} */ options) =>
      name === "style" ? standIn() : create.call(document, name, options)
  );
  try {
    work();
  } finally {
    document.createElement = create;
  }
}

/** From now on `span.setAttribute("style", …)` sets the style's text, which is allowed, to the same effect. */
export function allowSpanStyles() {
  HTMLSpanElement.prototype.setAttribute = function (/** @type {string} */ name, /** @type {string} */ value) {
    if (name === "style") this.style.cssText = value;
    else Element.prototype.setAttribute.call(this, name, value);
  };
}
