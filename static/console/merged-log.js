// @ts-check
/**
 * <merged-log>: the logs of all replicas as one, line by line by time (templates/components/merged_log.html).
 *
 * `GET <url>?[attempt=][before=|after=|replica=&offset=]` answers a window of lines with the cursors before and after
 * it; the job's stream sends such windows while it runs. What is on the page is a row of windows without a gap; those
 * far from where the person reads are let go. A window of the stream is taken only if it begins where the page ends.
 */

import { announce } from "./announce.js";
import { countText, fill, gettext, ngettext } from "./i18n.js";
import { live } from "./live.js";
import { LogFind } from "./log-find.js";
import { paint } from "./log-paint.js";
import { exactText, preciseText } from "./times.js";

/**
 * @import { Found, Match } from "./log-find.js"
 * @import { LogFollower } from "./live.js"
 *
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
  #isConnected = false;
  #isSetUp = false;
  #poll = 0;
  /** @type {Promise<void>} */
  #opening = Promise.resolve();
  #jobChanged = () => void this.#lookForAnotherRun();
  /** @type {LogFollower} */
  #follower = {
    url: "",
    query: () => this.#query(),
    onData: (data) => this.#take(JSON.parse(data)),
    onEnd: () => undefined,
    onConnection: (isConnected) => {
      this.#isConnected = isConnected;
    },
  };

  connectedCallback() {
    if (!this.#isSetUp) this.#setUp();
    this.#isSetUp = true;
    this.#follower.url = this.dataset.streamUrl ?? "";
    document.body.addEventListener(`${this.dataset.job}:changed`, this.#jobChanged);
    this.#opening = this.#open();
    this.#stayCurrent();
  }

  disconnectedCallback() {
    document.body.removeEventListener(`${this.dataset.job}:changed`, this.#jobChanged);
    this.#stop();
  }

  #setUp() {
    this.find("scroll").addEventListener("scroll", () => this.#scrolled(), { passive: true });
    this.find("end").addEventListener("click", () => void this.#open());
    new LogFind(this);
  }

  #stayCurrent() {
    if (this.#follower.url) live.follow(this.#follower);
    this.#poll ||= window.setInterval(() => {
      if (!document.hidden && this.#following && !this.#isConnected) void this.#readOn();
    }, POLL_MS);
  }

  #stop() {
    clearInterval(this.#poll);
    this.#poll = 0;
    live.unfollow(this.#follower);
  }

  /** One of the element's own parts. @param {string} name @returns {HTMLElement} */
  find(name) {
    const found = this.querySelector(`[data-log="${name}"]`);
    if (found instanceof HTMLElement) return found;
    throw new Error(`<merged-log> has no part "${name}": use templates/components/merged_log.html`);
  }

  // Being searched (log-find.js) ----------------------------------------------------------------------------

  /** @param {string | null} from a cursor */
  searchUrl(from) {
    return this.#url(from ? { after: from } : {});
  }

  /** @param {{ matches: Match[], next: string | null, searched: number, size: number }} answer @returns {Found} */
  readFound({ matches, next, searched, size }) {
    return { matches, next, part: size ? searched / size : 1 };
  }

  /** Show the line, marked, in the middle. @param {Match} match */
  async showMatch({ replica = "", offset }) {
    this.#following = false;
    if (!this.#rowOf(replica, offset)) {
      const answer = await this.#read({ replica, offset: String(offset) });
      if (!answer) return;
      this.#reset();
      this.#add(answer, true);
      this.find("scroll").scrollTop = 0;
      await this.#readBack();
    }
    this.querySelector(".log-line-here")?.classList.remove("log-line-here");
    const row = this.#rowOf(replica, offset);
    row?.classList.add("log-line-here");
    row?.scrollIntoView({ block: "center" });
    this.find("end").hidden = false;
  }

  /** @param {Match} match */
  labelOf({ replica = "", rank = 0 }) {
    return rankOf(replica, rank);
  }

  /** @param {string} replica @param {number} offset */
  #rowOf(replica, offset) {
    return this.querySelector(`.log-merged[data-replica="${CSS.escape(replica)}"][data-offset="${offset}"]`);
  }

  // Reading ----------------------------------------------------------------------------------------------------

  async #open() {
    this.#following = true;
    const answer = await this.#read({});
    if (!answer) return;
    this.#reset();
    this.#add(answer, true);
    await this.#readBack();
  }

  #reset() {
    this.#windows = [];
    this.find("lines").replaceChildren();
  }

  async #readOn() {
    const last = this.#windows.at(-1);
    const answer = await this.#read(last ? { after: last.after } : {});
    if (answer?.lines.length) this.#add(answer, true);
  }

  async #readBack() {
    const before = this.#windows[0]?.before;
    if (!before || this.find("scroll").scrollTop > NEAR_EDGE_PX) return;
    const answer = await this.#read({ before });
    if (answer) this.#add(answer, false);
  }

  /** @param {Record<string, string>} where */
  #url(where) {
    const { url = "", attempt } = this.dataset;
    const place = new URL(url, location.href);
    const query = { limit: String(LIMIT), ...(attempt ? { attempt } : {}), ...where };
    for (const [name, value] of Object.entries(query)) place.searchParams.set(name, value);
    return place;
  }

  /**
   * @param {Record<string, string>} where
   * @returns {Promise<Answer | null>} null: not now
   */
  async #read(where) {
    if (this.#isBusy) return null;
    this.#isBusy = true;
    try {
      const response = await fetch(this.#url(where), { headers: { Accept: "application/json" } });
      if (!response.ok) throw new Error(`the log answered ${response.status}`);
      const answer = /** @type {Answer} */ (await response.json());
      this.#note(answer);
      return answer;
    } catch {
      this.find("bottom").textContent = gettext("The log can't be read right now.");
      return null;
    } finally {
      this.#isBusy = false;
    }
  }

  /** Take note of what an answer says of the logs. @param {Answer} answer */
  #note(answer) {
    this.#isOver = answer.state === "complete" && !answer.lines.length;
    this.find("bottom").textContent = answer.state === "complete" ? gettext("End of the log.") : "";
    this.#sayCount(answer);
    if (this.#isOver && this.#poll) this.#stop();
  }

  // Following --------------------------------------------------------------------------------------------------

  /** Where the stream is to go on. @returns {Promise<Record<string, string> | null>} */
  async #query() {
    await this.#opening;
    if (this.#isOver) return null;
    const last = this.#windows.at(-1);
    if (!last) throw new Error("the log can't be read");
    const { attempt } = this.dataset;
    return { merged: "1", after: last.after, ...(attempt ? { attempt } : {}) };
  }

  /** @param {Answer} answer a window of the stream */
  #take(answer) {
    const last = this.#windows.at(-1);
    if (last && last.after !== "start" && placeOf(last.after) !== placeOf(answer.after)) {
      this.#showOtherRun(answer);
      return;
    }
    // Whoever reads further up has the rows left as they are; the lines are there when they are wanted.
    if (!this.#following) return;
    if (last && !isSame(last.after, answer.before ?? "start")) {
      live.followAgain(this.#follower);
      return;
    }
    this.#note(answer);
    if (answer.lines.length) this.#add(answer, true);
  }

  /** The job runs again: go over, unless the person is reading. @param {Answer} answer */
  #showOtherRun(answer) {
    if (!this.#following) {
      this.find("end").hidden = false;
      return;
    }
    this.#reset();
    this.#note(answer);
    this.#add(answer, true);
    announce(gettext("Job restarted; this is the new log"));
  }

  /** The job changed after the logs were complete: perhaps it is being tried again. */
  async #lookForAnotherRun() {
    const last = this.#windows.at(-1);
    if (!this.#isOver || !last || this.dataset.attempt || !this.#following) return;
    const answer = await this.#read({ limit: "1" });
    if (!answer || placeOf(answer.after) === placeOf(last.after)) return;
    this.#isOver = false;
    this.#opening = this.#open();
    this.#stayCurrent();
  }

  // Rows -------------------------------------------------------------------------------------------------------

  /** @param {Answer} answer */
  #sayCount({ replicas, total }) {
    const values = { count: countText(replicas), total: countText(total) };
    this.find("status").textContent =
      replicas < total
        ? fill(gettext("first %(count)s of %(total)s replicas"), values)
        : fill(ngettext("%(count)s replica", "%(count)s replicas", replicas), values);
  }

  /** @param {Answer} answer @param {boolean} atEnd */
  #add(answer, atEnd) {
    const rows = answer.lines.map(rowFor);
    const shown = { before: answer.before, after: answer.after, rows };
    const scroller = this.find("scroll");
    const fromBottom = scroller.scrollHeight - scroller.scrollTop;
    if (atEnd) {
      this.#windows.push(shown);
      this.find("lines").append(...rows);
    } else {
      this.#windows.unshift(shown);
      this.find("lines").prepend(...rows);
      scroller.scrollTop = scroller.scrollHeight - fromBottom;
    }
    this.#letGo(atEnd);
    this.find("top").textContent = this.#windows[0]?.before ? gettext("Earlier output loads as you scroll up.") : "";
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
    const scroller = this.find("scroll");
    const below = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
    const wasFollowing = this.#following;
    this.#following = below < AT_END_PX;
    this.find("end").hidden = this.#following;
    if (scroller.scrollTop < NEAR_EDGE_PX) void this.#readBack();
    // What is followed comes by itself; whoever comes back to the end may have missed lines.
    else if (below < NEAR_EDGE_PX && !this.#isOver && !(wasFollowing && this.#following)) void this.#readOn();
  }
}

/** The attempt and run of a cursor. @param {string} cursor */
function placeOf(cursor) {
  return cursor.split(".", 2).join(".");
}

/** Whether two cursors of one run are the same place: a replica that began later adds a 0. @param {string} one @param {string} other */
function isSame(one, other) {
  const offsets = (/** @type {string} */ cursor) => cursor.split(".").slice(2).join(".").replace(/(^|\.)0(\.0)*$/, "");
  return offsets(one) === offsets(other);
}

/** @param {MergedLine} line @returns {HTMLElement} */
function rowFor(line) {
  const row = document.createElement("div");
  row.className = "log-line log-merged";
  row.dataset.replica = line.replica;
  row.dataset.offset = String(line.offset);
  const text = document.createElement("span");
  paint(text, line.text, null);
  row.append(timeOf(line), rankOf(line.replica, line.rank), text);
  return row;
}

/** @param {string} replica @param {number} rank */
function rankOf(replica, rank) {
  const element = document.createElement("span");
  element.className = "log-rank";
  element.textContent = replica;
  element.style.setProperty("--rank-hue", String((rank * HUE_STEP) % 360));
  return element;
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
