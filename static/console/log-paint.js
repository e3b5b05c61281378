// @ts-check
/**
 * A line of a log as DOM nodes. Text goes in as text, never as markup; colours become classes, and those beyond
 * the sixteen a custom property that the style sheet turns into a readable shade.
 */

import { AnsiUp } from "../vendor/ansi_up-6.0.6/ansi_up.js";
import { countText, fill, gettext } from "./i18n.js";
import { onlyColours, overwritten } from "./log-text.js";

/** More characters than this are shown on demand. */
export const SHOWN_CHARACTERS = 4000;

/**
 * @typedef {{ rgb: number[], class_name: string }} Colour
 * @typedef {{ fg: Colour | null, bg: Colour | null, bold: boolean, faint: boolean, italic: boolean, underline: boolean }} Pen
 * @typedef {Pen & { text: string }} Piece
 */

/** The library's parser with its own way out: pieces instead of HTML. */
class SgrParser extends AnsiUp {
  /** @type {Piece[]} */
  pieces = [];

  /** @param {Piece} piece */
  transform_to_html(piece) {
    if (piece.text) this.pieces.push(piece);
    return "";
  }

  /** @returns {Pen | null} null: nothing set */
  get pen() {
    const { fg, bg, bold, faint, italic, underline } = /** @type {any} */ (this);
    return fg || bg || bold || faint || italic || underline ? { fg, bg, bold, faint, italic, underline } : null;
  }

  /** @param {Pen | null} pen */
  set pen(pen) {
    Object.assign(this, pen ?? { fg: null, bg: null, bold: false, faint: false, italic: false, underline: false });
  }
}

const parser = new SgrParser();

/**
 * @param {string} text text and colours only
 * @param {Pen | null} pen as the line before left it
 * @returns {{ pieces: Piece[], pen: Pen | null }}
 */
function piecesOf(text, pen) {
  if (!pen && !text.includes("\x1b")) return { pieces: text ? [{ ...PLAIN, text }] : [], pen };
  parser.pen = pen;
  parser.pieces = [];
  parser.ansi_to_html(text);
  return { pieces: parser.pieces, pen: parser.pen };
}

/** @type {Pen} */
const PLAIN = { fg: null, bg: null, bold: false, faint: false, italic: false, underline: false };

/** @param {HTMLElement} span @param {Colour | null} colour @param {"fg" | "bg"} place */
function colour(span, colour, place) {
  if (!colour) return;
  if (colour.class_name !== "truecolor") {
    span.classList.add(`${colour.class_name}-${place}`);
    return;
  }
  span.classList.add(`ansi-any-${place}`);
  span.style.setProperty(`--${place}`, `rgb(${colour.rgb.map(Number).join(" ")})`);
}

/** @param {Piece} piece @returns {Node} */
function nodeOf(piece) {
  const text = document.createTextNode(piece.text);
  if (!piece.fg && !piece.bg && !piece.bold && !piece.faint && !piece.italic && !piece.underline) return text;
  const span = document.createElement("span");
  for (const name of /** @type {const} */ (["bold", "faint", "italic", "underline"])) {
    if (piece[name]) span.classList.add(`ansi-${name}`);
  }
  colour(span, piece.fg, "fg");
  colour(span, piece.bg, "bg");
  span.append(text);
  return span;
}

/**
 * Fill a row with a line.
 * @param {HTMLElement} row
 * @param {string} text the line, raw
 * @param {Pen | null} pen as the line before left it
 * @param {number} [most] characters to show
 * @returns {Pen | null} the pen as this line leaves it
 */
export function paint(row, text, pen, most = SHOWN_CHARACTERS) {
  const painted = piecesOf(onlyColours(overwritten(text)), pen);
  let left = most;
  const nodes = [];
  for (const piece of painted.pieces) {
    if (left <= 0) break;
    nodes.push(nodeOf(piece.text.length > left ? { ...piece, text: piece.text.slice(0, left) } : piece));
    left -= piece.text.length;
  }
  row.replaceChildren(...nodes);
  const length = painted.pieces.reduce((sum, piece) => sum + piece.text.length, 0);
  if (length > most) row.append(moreButton(row, text, pen, length));
  return painted.pen;
}

/** @param {HTMLElement} row @param {string} text @param {Pen | null} pen @param {number} length */
function moreButton(row, text, pen, length) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "log-more";
  button.textContent = fill(gettext("show all %(count)s characters"), { count: countText(length) });
  button.addEventListener("click", () => {
    row.dataset.whole = "";
    paint(row, text, pen, Infinity);
  });
  return button;
}
