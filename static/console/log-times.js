// @ts-check
/**
 * The time of each line of a log, on demand: exact in the person's time zone, or since the log began.
 *
 * `GET <url>?…&times=1&offset=&limit=` answers pairs of an offset and the time at which the bytes from there on came.
 */

import { gettext } from "./i18n.js";
import { recall, remember } from "./storage.js";
import { exactText, preciseText, sinceText } from "./times.js";

/** @import { LogReader } from "./log-reader.js" */

const MODES = ["off", "exact", "relative"];
const PAUSE_MS = 500;

export class LogTimes {
  #mode = "off";
  #isBusy = false;
  /** When the log began; 0 while that is not known. */
  #began = 0;
  /** @type {LogReader | null} */
  #reader = null;

  /**
   * @param {HTMLElement} button turns them on and off
   * @param {HTMLElement} lines what holds the rows
   */
  constructor(button, lines) {
    this.button = button;
    this.lines = lines;
    button.addEventListener("click", () => {
      this.#set(MODES[(MODES.indexOf(this.#mode) + 1) % MODES.length] ?? "off");
      remember("log-times", this.#mode);
      if (this.#reader) void this.show(this.#reader);
    });
    this.#set(recall("log-times") ?? "off");
  }

  /** @param {string} mode */
  #set(mode) {
    this.#mode = MODES.includes(mode) ? mode : "off";
    const titles = { off: gettext("Show times"), exact: gettext("Show time since the start"), relative: gettext("Hide times") };
    this.button.title = titles[/** @type {keyof typeof titles} */ (this.#mode)];
    this.button.setAttribute("aria-label", this.button.title);
    this.button.setAttribute("aria-pressed", String(this.#mode !== "off"));
    this.lines.classList.toggle("log-timed", this.#mode !== "off");
    for (const row of this.lines.querySelectorAll("[data-time]")) if (row instanceof HTMLElement) delete row.dataset.time;
  }

  /**
   * Put the times to the rows that have none yet.
   * @param {LogReader} reader
   */
  async show(reader) {
    if (this.#reader !== reader) this.#began = 0;
    this.#reader = reader;
    if (this.#mode === "off" || this.#isBusy) return;
    const rows = reader.rows.shown.filter((line) => line.row.dataset.time === undefined);
    const [first, last] = [rows[0], rows.at(-1)];
    if (!first || !last) return;
    this.#isBusy = true;
    try {
      this.#began ||= (await reader.source.times(0, 1))[0]?.[1] ?? 0;
      const moments = await reader.source.times(first.start, last.end - first.start);
      if (reader === this.#reader) for (const line of rows) this.#put(line.row, timeAt(moments, line.start));
    } catch {
      // They are asked for again with the next change of the rows.
    }
    setTimeout(() => {
      this.#isBusy = false;
      if (this.#reader) void this.show(this.#reader);
    }, PAUSE_MS);
  }

  /** @param {HTMLElement} row @param {number} when 0: not known */
  #put(row, when) {
    if (!when) row.dataset.time = "";
    else row.dataset.time = this.#mode === "exact" ? preciseText(when) : sinceText(when - this.#began);
    if (when) row.title = exactText(when);
  }
}

/**
 * @param {[number, number][]} moments
 * @param {number} offset
 * @returns {number} 0: not known
 */
function timeAt(moments, offset) {
  let [low, high] = [0, moments.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((moments[middle]?.[0] ?? 0) <= offset) low = middle + 1;
    else high = middle;
  }
  return moments[low - 1]?.[1] ?? 0;
}
