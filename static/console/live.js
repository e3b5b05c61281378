// @ts-check
/**
 * The page's one connection to what happens: an EventSource, closed while the tab is hidden.
 *
 * Server-Sent Events it understands:
 *   changed  data {"names": ["jobs", "job:4f…"], "spread_ms"?: 2000}, id: the stream's id
 *   reset    the page is too old for what the stream still has: everything is fetched anew; id as above
 *   state    (the API's own stream) something about this job changed
 *   log      data: a JSON string; id: "<attempt>.<run>.<offset after it>"
 *   merged   data: lines of all replicas (merged-log.js); id: the cursor after them
 *   end      the log is complete
 *   ping     nothing but a sign of life, at least every 2 s
 *
 * It never leaves reconnecting to the browser: a new connection asks for what came after the last id
 * (`since=`), and for the log from what comes after the last line shown (`offset=`, `after=`), so there is no gap and
 * no repeat. When it fails again and again, the same fragments are polled.
 */

import { refresh, refreshAll, refreshHidden, rest } from "./refresh.js";
import { LiveStatus } from "./livestatus.js";

/**
 * @typedef {object} LogFollower
 * @property {string} url the stream that carries its log
 * @property {() => Promise<Record<string, string> | null>} query where to go on, as the stream's query, asked before
 *   each connection; null: nothing to follow
 * @property {(data: string, id: string) => void} onData a `log` or `merged` event
 * @property {() => void} onEnd
 * @property {(connected: boolean) => void} onConnection
 */

const RETRY_FIRST_MS = 500;
const RETRY_MOST_MS = 30_000;
const SILENCE_MS = 4500;
const POLL_MS = 15_000;
const POLL_HIDDEN_MS = 30_000;
const POLL_AFTER_FAILURES = 3;
const LOG_FIRST_MS = 300;

const STREAM_ID = /^\d+-\d+$/;

class Live {
  #pageUrl = "";
  #since = "";
  /** @type {LogFollower | null} */
  #log = null;
  /** @type {EventSource | null} */
  #source = null;
  /** Whether this connection is to bring the log too. */
  #carriesLog = false;
  #generation = 0;
  #failures = 0;
  #retry = 0;
  #silence = 0;
  #poll = 0;
  #status = new LiveStatus();

  /** Begin, for a page whose body says where its stream is. */
  start() {
    this.#pageUrl = document.body.dataset.liveUrl ?? "";
    this.#since = document.body.dataset.liveSince ?? "";
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#sleep() : this.#wake()));
    // What is deleted is asked for no more, though the page that comes next is still on its way.
    document.addEventListener("submit", (event) => {
      if (event.defaultPrevented || !(event.target instanceof HTMLElement) || event.target.dataset.leaves === undefined) return;
      this.#sleep();
      rest(true);
    });
    window.addEventListener("pagehide", () => this.#sleep());
    window.addEventListener("pageshow", (event) => event.persisted && this.#wake());
    window.addEventListener("online", () => this.#wake());
    window.addEventListener("offline", () => this.#source && this.#failed(true));
    document.querySelector("[data-live-retry]")?.addEventListener("click", () => this.#retryNow());
    document.body.addEventListener("htmx:afterOnLoad", (event) => {
      const { elt } = /** @type {CustomEvent} */ (event).detail;
      if (elt instanceof Element && elt.hasAttribute("data-live")) this.#status.heard();
    });
    setInterval(() => document.hidden && refreshHidden(), POLL_HIDDEN_MS);
    if (document.hidden) return;
    // A log that is about to be followed connects by itself, and this connection would be closed at once.
    if (document.querySelector("log-view, merged-log")) this.#retry = window.setTimeout(() => this.#connect(), LOG_FIRST_MS);
    else void this.#connect();
  }

  /**
   * Follow a log over the same connection; one at a time, the last one asked for.
   * @param {LogFollower} log
   */
  follow(log) {
    if (this.#log === log) return;
    this.#log?.onConnection(false);
    this.#log = log;
    this.#reconnect();
  }

  /**
   * Ask the follower again where its log is, because it has one by now.
   * @param {LogFollower} log
   */
  followAgain(log) {
    if (this.#log === log) this.#reconnect();
  }

  /** @param {LogFollower} log */
  unfollow(log) {
    if (this.#log !== log) return;
    log.onConnection(false);
    this.#log = null;
    this.#reconnect();
  }

  #sleep() {
    this.#close();
    clearTimeout(this.#retry);
    clearInterval(this.#poll);
    this.#poll = 0;
    this.#status.asleep();
  }

  #wake() {
    rest(false);
    if (document.hidden || this.#source) return;
    this.#failures = 0;
    clearTimeout(this.#retry);
    this.#connect();
  }

  #retryNow() {
    this.#close();
    this.#wake();
  }

  #reconnect() {
    this.#close();
    clearTimeout(this.#retry);
    // Several followers may come and go in one turn (a panel swapped for another).
    this.#retry = window.setTimeout(() => this.#connect());
  }

  #close() {
    this.#generation += 1;
    clearTimeout(this.#silence);
    if (!this.#source) return;
    this.#source.close();
    this.#source = null;
    this.#log?.onConnection(false);
  }

  /** @returns {Promise<string>} */
  async #url() {
    const position = (await this.#log?.query()) ?? null;
    this.#carriesLog = position !== null;
    const base = position && this.#log ? this.#log.url : this.#pageUrl;
    if (!base) return "";
    const url = new URL(base, location.href);
    if (this.#since) url.searchParams.set("since", this.#since);
    for (const [name, value] of Object.entries(position ?? {})) url.searchParams.set(name, value);
    return url.href;
  }

  async #connect() {
    this.#close();
    if (document.hidden) return;
    const generation = this.#generation;
    let url = "";
    try {
      url = await this.#url();
    } catch {
      if (generation === this.#generation) this.#failed();
      return;
    }
    if (generation !== this.#generation) return;
    if (!url) {
      this.#status.off();
      return;
    }
    this.#listen(new EventSource(url));
  }

  /** @param {EventSource} source */
  #listen(source) {
    this.#source = source;
    this.#expect();
    source.addEventListener("open", () => this.#opened());
    source.addEventListener("error", () => {
      // Closed at once: an answer that is no stream. Only another request can tell which.
      if (source.readyState === EventSource.CLOSED && source === this.#source) void this.#explain(source.url);
      this.#failed();
    });
    source.addEventListener("ping", () => this.#heard());
    source.addEventListener("changed", (event) => {
      this.#heard(event);
      const { names, spread_ms: spreadMs } = JSON.parse(event.data);
      refresh(names, spreadMs);
    });
    for (const name of ["reset", "state"]) {
      source.addEventListener(name, (event) => {
        this.#heard(event);
        refreshAll();
      });
    }
    for (const name of ["log", "merged"]) {
      source.addEventListener(name, (event) => {
        this.#heard();
        this.#log?.onData(event.data, event.lastEventId);
      });
    }
    source.addEventListener("end", () => {
      this.#heard();
      this.#log?.onEnd();
    });
  }

  #opened() {
    this.#failures = 0;
    clearInterval(this.#poll);
    this.#poll = 0;
    this.#heard();
    if (this.#carriesLog) this.#log?.onConnection(true);
  }

  /** @param {MessageEvent} [event] one whose id says where in the stream we are */
  #heard(event) {
    if (event && STREAM_ID.test(event.lastEventId)) this.#since = event.lastEventId;
    this.#status.live();
    this.#expect();
  }

  /** A connection can die without a word; the server speaks at least every 2 s. */
  #expect() {
    clearTimeout(this.#silence);
    this.#silence = window.setTimeout(() => this.#failed(true), SILENCE_MS);
  }

  /**
   * Say so where the person has as many live pages open as they may.
   * @param {string} url
   */
  async #explain(url) {
    const asked = new AbortController();
    const response = await fetch(url, { signal: asked.signal }).catch(() => null);
    if (response?.status === 429) this.#status.full();
    asked.abort();
  }

  /** @param {boolean} [certain] nothing is coming: this is no restart that is over in a moment */
  #failed(certain = false) {
    this.#close();
    this.#failures += 1;
    this.#status.late(certain);
    const most = Math.min(RETRY_MOST_MS, RETRY_FIRST_MS * 2 ** (this.#failures - 1));
    clearTimeout(this.#retry);
    // Half of it by chance, so that a restarted server is not met by everybody at once.
    this.#retry = window.setTimeout(() => this.#connect(), most * (0.5 + Math.random() / 2));
    if (this.#failures >= POLL_AFTER_FAILURES && !this.#poll) {
      refreshAll();
      this.#poll = window.setInterval(refreshAll, POLL_MS);
    }
  }
}

export const live = new Live();
