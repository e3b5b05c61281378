// @ts-check
/** Icons made in the browser, from the sprite that the page's own icons use. */

const SVG = "http://www.w3.org/2000/svg";
const sprite = new URL("../vendor/tabler-icons-3.51.0/sprite.svg", import.meta.url);

/**
 * The sprite's address as the page knows it (with the hash that static files may carry).
 * @returns {string}
 */
function spriteUrl() {
  const used = document.querySelector("svg.icon > use")?.getAttribute("href");
  return used?.split("#")[0] ?? sprite.pathname;
}

/**
 * @param {string} name
 * @param {string} [extra]
 * @returns {SVGSVGElement}
 */
export function icon(name, extra = "") {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", `icon ${extra}`.trim());
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `${spriteUrl()}#${name}`);
  svg.append(use);
  return svg;
}
