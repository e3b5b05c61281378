// @ts-check
/**
 * <merged-log>: the logs of all replicas as one, line by line by time (templates/components/merged_log.html).
 *
 * `GET <url>?[attempt=][before=|after=]` answers a window of lines with the cursors before and after it. What is on
 * the page is a row of such windows without a gap; those far from where the person reads are let go.
 */

import { countText, fill, gettext } from "./i18n.js";
import { paint } from "./log-paint.js";
import { exactText, preciseText } from "./times.js";

/**
 * @typedef {{ replica: string, rank: number, offset: number, time: string | null, text: string }} MergedLine
 * @typedef {{ lines: MergedLine[], before: string | null, after: string, replicas: number, total: number, state: string }} Answer
 * @typedef {{ before: string | null, after: string, rows: HTMLElement[] }} Window
 */

const LIMIT = 64 * 1024;
const MOST_ROWS = 4000;
const POLL_MS = 2000;
const NEAR_EDGE_PX = 400;
const AT_END_PX = 24;
/** Neighbouring ranks get hues that are far apart. */
const HUE_STEP = 137.5;

class MergedLog extends HTMLElement {
  /** @type {Window[]} */
  #windows = [];
  #isOver = false;
  #isBusy = false;
  #following = true;
  #poll = 0;

  connectedCallback() {
    const scroller = this.#find("scroll");
    scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    this.#find("end").addEventListener("click", () => void this.#open());
    this.#poll = window.setInterval(() => {
      if (!document.hidden && this.#following && !this.#isOver) void this.#readOn();
    }, POLL_MS);
    void this.#open();
  }

  disconnectedCallback() {
    clearInterval(this.#poll);
  }

  /** @param {string} name @returns {HTMLElement} */
  #find(name) {
    const found = this.querySelector(`[data-log="${name}"]`);
    if (found instanceof HTMLElement) return found;
    throw new Error(`<merged-log> has no part "${name}": use templates/components/merged_log.html`);
  }

  async #open() {
    this.#following = true;
    const answer = await this.#read({});
    if (!answer) return;
    this.#windows = [];
    this.#find("lines").replaceChildren();
    this.#add(answer, true);
    await this.#readBack();
  }

  async #readOn() {
    const last = this.#windows.at(-1);
    const answer = await this.#read(last ? { after: last.after } : {});
    if (answer?.lines.length) this.#add(answer, true);
  }

  async #readBack() {
    const before = this.#windows[0]?.before;
    if (!before || this.#find("scroll").scrollTop > NEAR_EDGE_PX) return;
    const answer = await this.#read({ before });
    if (answer) this.#add(answer, false);
  }

  /**
   * @param {Record<string, string>} where
   * @returns {Promise<Answer | null>} null: not now
   */
  async #read(where) {
    if (this.#isBusy) return null;
    this.#isBusy = true;
    const { url = "", attempt } = this.dataset;
    const query = new URLSearchParams({ limit: String(LIMIT), ...(attempt ? { attempt } : {}), ...where });
    try {
      const response = await fetch(`${url}?${query}`, { headers: { Accept: "application/json" } });
      if (!response.ok) throw new Error(`the log answered ${response.status}`);
      const answer = /** @type {Answer} */ (await response.json());
      this.#isOver = answer.state === "complete" && !answer.lines.length;
      this.#find("bottom").textContent = answer.state === "complete" ? gettext("End of the log.") : "";
      this.#sayCount(answer);
      return answer;
    } catch {
      this.#find("bottom").textContent = gettext("The log can't be read right now.");
      return null;
    } finally {
      this.#isBusy = false;
    }
  }

  /** @param {Answer} answer */
  #sayCount({ replicas, total }) {
    const values = { count: countText(replicas), total: countText(total) };
    this.#find("status").textContent =
      replicas < total ? fill(gettext("first %(count)s of %(total)s replicas"), values) : fill(gettext("%(count)s replicas"), values);
  }

  /** @param {Answer} answer @param {boolean} atEnd */
  #add(answer, atEnd) {
    const rows = answer.lines.map(rowOf);
    const shown = { before: answer.before, after: answer.after, rows };
    const scroller = this.#find("scroll");
    const fromBottom = scroller.scrollHeight - scroller.scrollTop;
    if (atEnd) {
      this.#windows.push(shown);
      this.#find("lines").append(...rows);
    } else {
      this.#windows.unshift(shown);
      this.#find("lines").prepend(...rows);
      scroller.scrollTop = scroller.scrollHeight - fromBottom;
    }
    this.#letGo(atEnd);
    this.#find("top").textContent = this.#windows[0]?.before ? gettext("Earlier output loads as you scroll up.") : "";
    if (this.#following) scroller.scrollTop = scroller.scrollHeight;
  }

  /** Remove windows over the limit, from the other end. @param {boolean} first */
  #letGo(first) {
    let count = this.#windows.reduce((sum, each) => sum + each.rows.length, 0);
    while (count > MOST_ROWS && this.#windows.length > 1) {
      const gone = first ? this.#windows.shift() : this.#windows.pop();
      count -= gone?.rows.length ?? 0;
      for (const row of gone?.rows ?? []) row.remove();
    }
  }

  #scrolled() {
    const scroller = this.#find("scroll");
    const below = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
    this.#following = below < AT_END_PX;
    this.#find("end").hidden = this.#following;
    if (scroller.scrollTop < NEAR_EDGE_PX) void this.#readBack();
    else if (below < NEAR_EDGE_PX && !this.#isOver) void this.#readOn();
  }
}

/** @param {MergedLine} line @returns {HTMLElement} */
function rowOf(line) {
  const row = document.createElement("div");
  row.className = "log-line log-merged";
  const text = document.createElement("span");
  paint(text, line.text, null);
  const replica = document.createElement("span");
  replica.className = "log-rank";
  replica.textContent = line.replica;
  replica.style.setProperty("--rank-hue", String((line.rank * HUE_STEP) % 360));
  row.append(timeOf(line), replica, text);
  return row;
}

/** @param {MergedLine} line @returns {HTMLElement} */
function timeOf({ time }) {
  const element = document.createElement("time");
  if (!time) return element;
  element.dateTime = time;
  element.textContent = preciseText(Date.parse(time));
  element.title = exactText(Date.parse(time));
  return element;
}

customElements.define("merged-log", MergedLog);
