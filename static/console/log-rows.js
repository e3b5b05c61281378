// @ts-check
/**
 * The lines that are on the page: one window into the log, at most so many rows, whatever the log's length.
 * Adding and removing rows keeps what the reader looks at where it is.
 */

import { paint } from "./log-paint.js";
import { LONGEST_LINE, overwritten, splitLines, wholeCharacters } from "./log-text.js";

/**
 * @import { Pen } from "./log-paint.js"
 * @import { Line } from "./log-text.js"
 */

/**
 * A line on the page. `number` counts from the beginning of the log, once that is known; `broken` is a part of a too
 * long line, and what `joins` goes on with the line before.
 * @typedef {Line & { row: HTMLElement, pen: Pen | null, number?: number, broken?: boolean, joins?: boolean }} Shown
 */

/** Rows on the page, at most. */
export const MOST_ROWS = 2000;
/** Rows that one read adds, at most: a read can hold thousands of empty lines. */
const STEP_ROWS = 1000;

export class LogRows {
  /** @type {Shown[]} */
  #lines = [];
  /** The pen as the last line leaves it. @type {Pen | null} */
  #pen = null;
  /** The byte after the last one that is on the page. */
  end = 0;
  /** Where the reader was at the last look, or was put since. */
  seen = 0;
  /** Bytes after that which are the beginning of a character, as far as they are known. */
  held = 0;
  /** The number of the first line that is added to no others. @type {number | undefined} */
  #firstNumber;

  /**
   * @param {HTMLElement} container
   * @param {HTMLElement} scroller
   */
  constructor(container, scroller) {
    this.container = container;
    this.scroller = scroller;
  }

  /** The byte of the first one. */
  get start() {
    return this.#lines[0]?.start ?? this.end;
  }

  get count() {
    return this.#lines.length;
  }

  /**
   * Show nothing, and go on from this byte.
   * @param {number} offset
   */
  reset(offset) {
    this.#lines = [];
    this.#pen = null;
    this.end = offset;
    this.held = 0;
    this.#firstNumber = offset === 0 ? 1 : undefined;
    this.container.replaceChildren();
  }

  /**
   * Add bytes at the end, from `end` on; look at `end` for how far it got. Bytes of a character that is not whole
   * yet are left for the next time.
   * @param {Uint8Array} bytes
   * @param {object} [how]
   * @param {boolean} [how.final] no more bytes will come: a part of a character is all there is of it
   * @param {number} [how.next] the byte after them, where that is not simply their number further on
   * @param {boolean} [how.newest] when they are too many lines for one window, the last are wanted, not the first
   * @param {number} [how.around] likewise: those around this byte are wanted
   */
  append(bytes, { final = false, newest = false, next, around } = {}) {
    const taken = final ? bytes.length : wholeCharacters(bytes);
    const after = this.end + bytes.length;
    const every = splitLines(bytes.subarray(0, taken), this.end);
    const wanted = around === undefined ? 0 : every.findIndex((line) => around < line.end) - STEP_ROWS / 2;
    const first = newest ? every.length - MOST_ROWS : wanted;
    const lines = every.slice(Math.max(0, first), newest ? undefined : Math.max(0, first) + STEP_ROWS);
    if (first > 0) {
      const last = this.#lines.at(-1);
      const number = last ? last.number && last.number + (last.open ? 0 : 1) : this.#firstNumber;
      this.reset(lines[0]?.start ?? this.end);
      this.#firstNumber = number && number + first;
    }
    const fresh = document.createDocumentFragment();
    for (const line of lines) {
      const last = this.#lines.at(-1);
      if (last?.open) this.#extend(last, line);
      else this.#add(line, fresh);
      this.end = line.end;
    }
    this.container.append(fresh);
    this.held = this.end + 3 >= after ? after - this.end : 0;
    if (next !== undefined && next !== after) this.#skipTo(next);
  }

  /** The bytes up to this one are not there: what was shown instead of them ends here. @param {number} offset */
  #skipTo(offset) {
    const last = this.#lines.at(-1);
    if (last) last.end = offset;
    this.end = offset;
    this.held = 0;
  }

  /** @param {Line} line @param {Node} to */
  #add(line, to) {
    const row = document.createElement("div");
    row.className = "log-line";
    const last = this.#lines.at(-1);
    /** @type {Shown} */
    const shown = { ...line, row, pen: this.#pen, joins: last?.broken ?? false };
    const number = last ? last.number && last.number + (shown.joins ? 0 : 1) : this.#firstNumber;
    if (number) setNumber(shown, number);
    // Of a progress bar's thousand states only the last is kept.
    if (line.open) shown.text = overwritten(line.text);
    this.#pen = paint(row, line.text, this.#pen);
    this.#lines.push(shown);
    to.appendChild(row);
  }

  /**
   * More of the last line.
   * @param {Shown} last
   * @param {Line} line
   */
  #extend(last, line) {
    last.text = overwritten(last.text + line.text);
    last.end = line.end;
    last.open = line.open && last.text.length < LONGEST_LINE;
    last.broken = line.open && !last.open;
    this.#pen = paint(last.row, last.text, last.pen, "whole" in last.row.dataset ? Infinity : undefined);
  }

  /**
   * Add whole lines before the first.
   * @param {Line[]} lines
   */
  prepend(lines) {
    /** @type {Pen | null} */
    let pen = null;
    const shown = lines.slice(-STEP_ROWS).map((line) => {
      const row = document.createElement("div");
      row.className = "log-line";
      const before = pen;
      pen = paint(row, line.text, pen);
      return /** @type {Shown} */ ({ ...line, row, pen: before });
    });
    const [after] = this.#lines;
    if (after) after.joins = shown.at(-1)?.open ?? false;
    const fromBottom = this.scroller.scrollHeight - this.scroller.scrollTop;
    this.container.prepend(...shown.map((line) => line.row));
    this.#lines.unshift(...shown);
    if (after?.number) this.#numberBack(shown.length);
    this.scroller.scrollTop = this.scroller.scrollHeight - fromBottom;
  }

  /**
   * The first row stands for bytes from further back too.
   * @param {number} offset
   */
  startAt(offset) {
    const [first] = this.#lines;
    if (first) first.start = offset;
  }

  /**
   * Let go of the first rows over the limit.
   * @param {boolean} follow the reader is at the end, and what they look at is about to move anyway
   */
  trimStart(follow) {
    const over = this.#lines.length - MOST_ROWS;
    if (over <= 0) return;
    const kept = this.#lines[over]?.row;
    const before = follow ? 0 : (kept?.offsetTop ?? 0);
    for (const line of this.#lines.splice(0, over)) line.row.remove();
    if (!follow) this.scroller.scrollTop -= before - (kept?.offsetTop ?? 0);
  }

  /** Let go of the last rows over the limit. */
  trimEnd() {
    if (this.#lines.length <= MOST_ROWS) return;
    for (const line of this.#lines.splice(MOST_ROWS)) line.row.remove();
    const last = this.#lines.at(-1);
    this.end = last?.end ?? this.end;
    this.held = 0;
    this.#pen = null;
  }

  /** Whether every row has its number. */
  get isNumbered() {
    return this.#lines[0]?.number !== undefined || !this.#lines.length;
  }

  /**
   * The row that begins at this byte has this number.
   * @param {number} offset
   * @param {number} number
   */
  numberFrom(offset, number) {
    const at = this.#lines.findIndex((line) => line.start === offset);
    const found = this.#lines[at];
    if (!found) return;
    setNumber(found, number);
    for (const line of this.#lines.slice(at + 1)) {
      number += line.joins ? 0 : 1;
      setNumber(line, number);
    }
    this.#numberBack(at);
  }

  /** Number the rows before this one, which has its number. @param {number} at */
  #numberBack(at) {
    for (let back = at - 1; back >= 0; back -= 1) {
      const [line, next] = [this.#lines[back], this.#lines[back + 1]];
      if (line && next?.number) setNumber(line, next.number - (next.joins ? 0 : 1));
    }
  }

  /** Scroll to the last row. */
  toEnd() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.seen = this.scroller.scrollTop;
  }

  /** How far the reader is from the first and from the last row; pixels. */
  get above() {
    return this.scroller.scrollTop;
  }

  get below() {
    return this.scroller.scrollHeight - this.scroller.scrollTop - this.scroller.clientHeight;
  }

  /**
   * The row that shows a byte.
   * @param {number} offset
   * @returns {HTMLElement | null}
   */
  rowAt(offset) {
    return this.#lines.find((line) => line.start <= offset && offset < line.end)?.row ?? null;
  }

  /** Every line on the page with the row that shows it. */
  get shown() {
    return /** @type {readonly Shown[]} */ (this.#lines);
  }
}

/** @param {Shown} line @param {number} number */
function setNumber(line, number) {
  line.number = number;
  line.row.dataset.line = String(number);
}
