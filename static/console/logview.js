// @ts-check
/**
 * <log-view>: the live log of one replica (templates/components/log_view.html).
 *
 * It follows the log's end over the page's one connection (live.js) or, where there is none, by asking every few
 * seconds. Scrolling up stops following; the end brings it back. log-reader.js knows what is read when.
 */

import { announce } from "./announce.js";
import { countText, fill, gettext, ngettext, percentText, sizeText } from "./i18n.js";
import { live } from "./live.js";
import { LogFind } from "./log-find.js";
import { LogReader, NEAR_EDGE_PX } from "./log-reader.js";
import { LogRows } from "./log-rows.js";
import { LogSource } from "./log-source.js";
import { LogTimes } from "./log-times.js";
import { recall, remember } from "./storage.js";

/** @import { Found, Match } from "./log-find.js" */

const AT_END_PX = 24;
const POLL_MS = 3000;
const NUMBER_MS = 1000;
const ANCHOR = /^#L([1-9][0-9]{0,14})$/;

class LogView extends HTMLElement {
  static observedAttributes = ["data-logs-url", "data-role", "data-index", "data-attempt", "data-run"];

  /** @type {LogReader | null} */
  reader = null;
  #failed = false;
  /** What was last known of the log. @type {LogReader["state"] | ""} */
  #stateBefore = "";
  #isSetUp = false;
  #visible = false;
  /** Whether the line of the page's address was shown, which is done once. */
  #wasAnchored = false;
  #isNumbering = false;
  /** @type {LogTimes | null} */
  #times = null;
  #poll = 0;
  #watcher = new IntersectionObserver(([entry]) => (entry?.isIntersecting ? this.#show() : this.#hide()));
  #resizer = new ResizeObserver(() => this.reader?.following && this.reader.rows.toEnd());
  #jobChanged = () => void this.#lookForAnotherRun();
  #hashChanged = () => void this.#openAnchor();

  connectedCallback() {
    if (!this.#isSetUp) this.#setUp();
    this.#isSetUp = true;
    this.#watcher.observe(this);
    this.#resizer.observe(this.find("scroll"));
    document.body.addEventListener(`${this.dataset.job}:changed`, this.#jobChanged);
    if ("anchors" in this.dataset) window.addEventListener("hashchange", this.#hashChanged);
  }

  disconnectedCallback() {
    this.#watcher.disconnect();
    this.#resizer.disconnect();
    document.body.removeEventListener(`${this.dataset.job}:changed`, this.#jobChanged);
    window.removeEventListener("hashchange", this.#hashChanged);
    this.#hide();
  }

  attributeChangedCallback() {
    if (this.reader) this.#open();
  }

  /**
   * One of the element's own parts.
   * @param {string} name
   * @returns {HTMLElement}
   */
  find(name) {
    const found = this.querySelector(`[data-log="${name}"]`);
    if (found instanceof HTMLElement) return found;
    throw new Error(`<log-view> has no part "${name}": use templates/components/log_view.html`);
  }

  /**
   * Show the line at this byte, marked, in the middle.
   * @param {number} offset
   */
  async goTo(offset) {
    if (!this.reader) return;
    await this.reader.openAt(offset);
    this.querySelector(".log-line-here")?.classList.remove("log-line-here");
    const row = this.reader.rows.rowAt(offset);
    row?.classList.add("log-line-here");
    row?.scrollIntoView({ block: "center" });
    this.#say();
  }

  // Being searched (log-find.js) ----------------------------------------------------------------------------

  /** @param {string | null} from a byte */
  searchUrl(from) {
    if (!this.reader) return null;
    const url = new URL(this.reader.source.url, location.href);
    url.search = this.reader.source.query().toString();
    url.searchParams.set("offset", from ?? "0");
    return url;
  }

  /** @param {{ matches: Match[], next_offset: number | null }} answer @returns {Found} */
  readFound({ matches, next_offset: next }) {
    const size = this.reader?.size ?? 0;
    return { matches, next: next === null ? null : String(next), part: size && next !== null ? next / size : 0 };
  }

  /** @param {Match} match */
  showMatch({ offset }) {
    return this.goTo(offset);
  }

  labelOf() {
    return null;
  }

  // Being seen ------------------------------------------------------------------------------------------

  #show() {
    this.#visible = true;
    if (!this.reader) this.#open();
    else this.#stayCurrent();
  }

  #hide() {
    this.#visible = false;
    clearInterval(this.#poll);
    this.#poll = 0;
    if (this.reader) live.unfollow(this.reader.follower);
  }

  /** Begin with the newest of what the attributes name. */
  #open() {
    this.reader?.close();
    this.#stateBefore = "";
    const { logsUrl = "", streamUrl = "", role = "", index = "0", attempt, run } = this.dataset;
    const source = new LogSource({ url: logsUrl, role, index, attempt, run });
    const rows = new LogRows(this.find("lines"), this.find("scroll"));
    rows.reset(0);
    /** @type {LogReader} */
    const reader = new LogReader(source, rows, streamUrl, {
      changed: () => reader === this.reader && this.#say(),
      read: (failed) => reader === this.reader && this.#wasRead(failed),
      otherRun: () => reader === this.reader && this.#showOtherRun(),
    });
    this.reader = reader;
    if (this.#isAnchored && !this.#wasAnchored) void this.#openAnchor();
    else void reader.openEnd();
    this.#wasAnchored = true;
    if (this.#visible) this.#stayCurrent();
  }

  /** Whether the page's address names a line: by its number, or by its first byte. */
  get #isAnchored() {
    return "anchors" in this.dataset && (ANCHOR.test(location.hash) || Boolean(this.dataset.at));
  }

  /** Show the line that the page's address names. */
  async #openAnchor() {
    const { reader } = this;
    if (!reader || !this.#isAnchored) return;
    reader.following = false;
    const line = ANCHOR.exec(location.hash)?.[1];
    const offset = line ? await reader.source.offsetOf(Number(line)).catch(() => null) : Number(this.dataset.at);
    if (reader !== this.reader) return;
    if (offset === null || !Number.isFinite(offset)) void reader.openEnd();
    else await this.goTo(offset);
  }

  /** Ask for the number of the first row, where it is not known. */
  async #number() {
    const { reader } = this;
    if (!reader || this.#isNumbering || reader.rows.isNumbered) return;
    this.#isNumbering = true;
    const { start } = reader.rows;
    const number = await reader.source.lineAt(start).catch(() => null);
    if (number && reader === this.reader) reader.rows.numberFrom(start, number);
    setTimeout(() => {
      this.#isNumbering = false;
      if (number && this.#visible) void this.#number();
    }, NUMBER_MS);
  }

  /** Put the line whose number was clicked into the page's address. @param {MouseEvent} event */
  #pickLine(event) {
    const row = event.target instanceof HTMLElement ? event.target.closest(".log-line") : null;
    if (!(row instanceof HTMLElement) || !row.dataset.line || !("anchors" in this.dataset)) return;
    const gutter = parseFloat(getComputedStyle(row).paddingInlineStart);
    if (event.clientX > row.getBoundingClientRect().left + gutter) return;
    this.querySelector(".log-line-here")?.classList.remove("log-line-here");
    row.classList.add("log-line-here");
    history.replaceState(history.state, "", `#L${row.dataset.line}`);
  }

  /** Follow what is written, while there may be more. */
  #stayCurrent() {
    const { reader } = this;
    if (!reader || reader.isOver) return;
    if (reader.follower.url) live.follow(reader.follower);
    this.#poll ||= window.setInterval(() => {
      if (!document.hidden && this.reader && !this.reader.connected) void this.reader.catchUp();
    }, POLL_MS);
  }

  /** @param {boolean} failed */
  #wasRead(failed) {
    const { reader } = this;
    if (!reader) return;
    this.#failed = failed;
    const before = this.#stateBefore;
    this.#stateBefore = reader.state;
    if (before === "none" && reader.state === "open") live.followAgain(reader.follower);
    if (reader.isOver && this.#poll) {
      clearInterval(this.#poll);
      this.#poll = 0;
      live.unfollow(reader.follower);
      if (before === "open") announce(gettext("The log is complete"));
    }
    this.#say();
  }

  /** The job changed after this log was complete: perhaps it is being tried again. */
  async #lookForAnotherRun() {
    const { reader } = this;
    if (!reader?.isOver || reader.source.fixed || !this.#visible) return;
    const { logsUrl = "", role = "", index = "0" } = this.dataset;
    const newest = new LogSource({ url: logsUrl, role, index });
    const slice = await newest.read(0, 1).catch(() => null);
    const isOther = newest.attempt !== reader.source.attempt || newest.run !== reader.source.run;
    if (slice && isOther && reader === this.reader) this.#showOtherRun();
  }

  /** The job runs again, and this log is of the time before: go over, unless the reader is reading. */
  #showOtherRun() {
    if (!this.reader?.following) {
      this.#jump(gettext("Job restarted: show the new run"));
      this.find("end").dataset.otherRun = "";
      return;
    }
    this.#open();
    announce(gettext("Job restarted; this is the new log"));
  }

  // What the reader does ------------------------------------------------------------------------------------

  #setUp() {
    const scroller = this.find("scroll");
    scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    scroller.addEventListener("keydown", (event) => {
      if (event.key !== "End" && event.key !== "Home") return;
      event.preventDefault();
      void (event.key === "End" ? this.reader?.openEnd() : this.reader?.openStart());
    });
    this.find("start").addEventListener("click", () => void this.reader?.openStart());
    this.find("end").addEventListener("click", (event) => {
      scroller.focus();
      if (event.currentTarget instanceof HTMLElement && "otherRun" in event.currentTarget.dataset) this.#open();
      else void this.reader?.openEnd();
    });
    this.find("lines").addEventListener("click", (event) => this.#pickLine(event));
    this.#setUpWrap();
    this.#times = new LogTimes(this.find("times"), this.find("lines"));
    new LogFind(this);
  }

  #scrolled() {
    const { reader } = this;
    if (!reader) return;
    const { rows } = reader;
    // Only going up ends following: rows that are added or let go move the end away without anybody scrolling.
    const wentUp = rows.above < rows.seen;
    rows.seen = rows.above;
    const atEnd = rows.below < AT_END_PX && reader.isAtEnd;
    const following = atEnd || (reader.following && !wentUp);
    if (following !== reader.following) {
      reader.following = following;
      this.#say();
    }
    if (rows.above < NEAR_EDGE_PX && rows.start > 0) void reader.readBack();
    else if (rows.below < NEAR_EDGE_PX && !reader.isAtEnd) void reader.readOn();
  }

  #setUpWrap() {
    const button = this.find("wrap");
    const show = (/** @type {boolean} */ on) => {
      button.setAttribute("aria-pressed", String(on));
      this.find("lines").classList.toggle("log-nowrap", !on);
      if (this.reader?.following) this.reader.rows.toEnd();
    };
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      remember("log-wrap", on ? "on" : "off");
      show(on);
    });
    show(recall("log-wrap") !== "off");
  }

  // What it says -----------------------------------------------------------------------------------------------

  /** Bring what stands around the lines up to date. */
  #say() {
    const { reader } = this;
    if (!reader) return;
    this.find("status").textContent = reader.size ? placeText(reader) : "";
    this.#edge("top", topText(reader));
    this.#edge("bottom", this.#failed ? gettext("The log can't be read right now.") : bottomText(reader));
    this.toggleAttribute("data-following", reader.following);
    void this.#number();
    void this.#times?.show(reader);
    if (reader.following) {
      this.find("end").hidden = true;
      delete this.find("end").dataset.otherRun;
    } else if (!("otherRun" in this.find("end").dataset)) {
      this.#jump(reader.isAtEnd || reader.isOver ? gettext("Jump to the end") : gettext("More below: jump to the end"));
    }
  }

  /** @param {"top" | "bottom"} which @param {string} text */
  #edge(which, text) {
    const edge = this.find(which);
    if (edge.textContent === text) return;
    edge.textContent = text;
    if (this.reader?.following) this.reader.rows.toEnd();
  }

  /** @param {string} text */
  #jump(text) {
    const button = this.find("end");
    const words = button.querySelector("span");
    if (words && words.textContent !== text) words.textContent = text;
    button.hidden = false;
  }
}

/** Which part of how large a log is shown. @param {LogReader} reader */
function placeText({ rows, size, isAtEnd }) {
  const values = { lines: countText(rows.count), size: sizeText(size), percent: percentText(rows.end / size) };
  if (rows.start === 0 && isAtEnd) {
    return fill(ngettext("%(lines)s line, %(size)s", "%(lines)s lines, %(size)s", rows.count), values);
  }
  if (rows.start === 0) {
    return fill(ngettext("first line of %(size)s", "first %(lines)s lines of %(size)s", rows.count), values);
  }
  if (isAtEnd) return fill(ngettext("last line of %(size)s", "last %(lines)s lines of %(size)s", rows.count), values);
  return fill(gettext("at %(percent)s of %(size)s"), values);
}

/** @param {LogReader} reader */
function topText(reader) {
  return reader.rows.start > 0 ? gettext("Earlier output loads as you scroll up.") : "";
}

/** @param {LogReader} reader */
function bottomText(reader) {
  if (reader.state === "gone") return gettext("No output, or the log is no longer stored.");
  if (!reader.isAtEnd) return "";
  if (reader.isOver) return reader.size ? gettext("End of the log.") : gettext("Ended without output.");
  return reader.size ? "" : gettext("No output yet.");
}

customElements.define("log-view", LogView);
