// @ts-check
/**
 * Which part of a log is on the page, and how more of it gets there: opening a place, reading on and back by byte
 * offset, and following the end as it grows.
 *
 * Three offsets matter: where the rows end, what has arrived but is not painted yet (`#tail` is after both), and how
 * large the log is known to be (`size`). At the end they are the same; live text is taken only then and only if it
 * begins exactly there. In every other case the bytes are read, so that nothing is missing and nothing comes twice.
 */

import { live } from "./live.js";
import { MOST_ROWS } from "./log-rows.js";
import { OVER, isFinal, isTold } from "./log-source.js";
import { characterStart, firstLineStart, splitLines } from "./log-text.js";

/**
 * @import { LogFollower } from "./live.js"
 * @import { LogRows } from "./log-rows.js"
 * @import { LogSource, Slice } from "./log-source.js"
 */

const BLOCK = 64 * 1024;
/** Further behind than this, following skips to the end. */
const BEHIND = 512 * 1024;
/** A line longer than this is entered in its middle. */
const LONGEST_BACK = 1024 * 1024;
/** Near enough to an edge of the window to want what lies beyond. */
export const NEAR_EDGE_PX = 400;
const FRESH_MS = 1000;
const LOG_ID = /^(\d+)\.(\d+)\.(\d+)$/;

const encoder = new TextEncoder();

/**
 * @typedef {object} ReaderEvents
 * @property {() => void} changed the window, the size or the state is another
 * @property {(failed: boolean) => void} read a read worked, or did not
 * @property {() => void} otherRun the log shown is not of the newest run any more
 */

export class LogReader {
  /** Whether the reader's eyes are on the end. */
  following = true;
  /** @type {Slice["state"] | "none"} none: there is no log yet */
  state = "open";
  /** Bytes the log has, as far as is known. */
  size = 0;
  /** Whether the page's connection brings what is new. */
  connected = false;

  /** Each opening of a place is another epoch; answers to an earlier one come too late. */
  #epoch = 0;
  #readAt = -Infinity;
  /** While bytes are being read at the end, live text only tells the size. */
  #busy = 0;
  /** @type {Promise<void>} */
  #opening = Promise.resolve();
  /** Reading on and reading back take turns: each must find the rows as it left them. */
  #turn = Promise.resolve();
  /** @type {{ on: Promise<void> | null, back: Promise<void> | null }} */
  #reading = { on: null, back: null };
  /** @type {Uint8Array[]} */
  #pending = [];
  #pendingBytes = 0;
  #frame = 0;

  /**
   * @param {LogSource} source
   * @param {LogRows} rows
   * @param {string} streamUrl empty: there is no stream
   * @param {ReaderEvents} events
   */
  constructor(source, rows, streamUrl, events) {
    this.source = source;
    this.rows = rows;
    this.events = events;
    /** @type {LogFollower} */
    this.follower = {
      url: streamUrl,
      query: () => this.#query(),
      onData: (data, id) => this.#take(data, id),
      onEnd: () => void this.catchUp(),
      onConnection: (connected) => {
        this.connected = connected;
        this.events.changed();
      },
    };
  }

  /** No more will come, whatever is asked. */
  get isOver() {
    return OVER.has(this.state);
  }

  /** Whether the window ends where the log does, as far as is known. */
  get isAtEnd() {
    return this.#tail + this.rows.held >= this.size;
  }

  get #tail() {
    return this.rows.end + this.#pendingBytes;
  }

  /** Stop: whatever is under way comes to nothing. */
  close() {
    this.#epoch += 1;
    this.#drop();
    live.unfollow(this.follower);
  }

  // Opening a place ---------------------------------------------------------------------------------

  openEnd() {
    this.following = true;
    return this.#open(-BLOCK);
  }

  async openStart() {
    this.following = false;
    await this.#open(0);
    this.rows.scroller.scrollTop = 0;
  }

  /**
   * Have the line at this byte among the rows, with some before it.
   * @param {number} offset
   */
  async openAt(offset) {
    this.following = false;
    if (!this.rows.rowAt(offset)) await this.#open(Math.max(0, offset - BLOCK / 2), offset);
  }

  /** @param {number} offset @param {number} [around] */
  #open(offset, around) {
    this.#opening = this.#openNow(offset, around);
    return this.#opening;
  }

  /**
   * @param {number} offset negative: from the end
   * @param {number} [around] the byte that is wanted, when it is not the first or the last
   */
  async #openNow(offset, around) {
    const epoch = ++this.#epoch;
    this.#drop();
    this.#busy += 1;
    try {
      // An answer from the end begins with a whole line, and so it may be longer than asked for.
      const slice = await this.#read(offset, offset < 0 ? BLOCK * 2 : BLOCK);
      if (!slice || epoch !== this.#epoch) return;
      const skipped = isTold(slice) || (offset > 0 && slice.start === offset) ? firstLineStart(slice.bytes) : 0;
      this.rows.reset(slice.start + skipped);
      const how = { final: isFinal(slice), next: slice.next, newest: this.following };
      this.rows.append(slice.bytes.subarray(skipped), around === undefined ? how : { ...how, around });
    } finally {
      this.#busy -= 1;
    }
    this.#settle();
    // Short lines may not fill the window; then there is nothing to scroll, and no scrolling to load more by.
    if (this.following) await this.readBack();
    if (this.following && !this.isAtEnd) void this.readOn();
  }

  /** What follows every change of the rows. */
  #settle() {
    this.events.changed();
    if (this.following) this.rows.toEnd();
  }

  /**
   * Read, and take note of what the answer says of the log.
   * @param {number} offset
   * @param {number} limit
   */
  async #read(offset, limit) {
    const { source } = this;
    try {
      const slice = await source.read(offset, limit);
      this.#readAt = performance.now();
      this.size = Math.max(this.size, slice?.size ?? 0);
      this.state = slice?.state ?? "none";
      this.events.read(false);
      return slice;
    } catch {
      this.events.read(true);
      return null;
    }
  }

  // Reading on, and back --------------------------------------------------------------------------------

  /** What comes after the window: while following all of it, else as long as the reader is near its end. */
  readOn() {
    return this.#inTurn("on", () => this.#readOnNow());
  }

  /** What comes before the window, while the reader is near its beginning. */
  readBack() {
    return this.#inTurn("back", () => this.#readBackNow());
  }

  /** @param {"on" | "back"} name @param {() => Promise<void>} work */
  #inTurn(name, work) {
    const running = this.#reading[name];
    if (running) return running;
    this.#turn = this.#turn.then(work).finally(() => {
      this.#reading[name] = null;
    });
    this.#reading[name] = this.#turn;
    return this.#turn;
  }

  /** Learn how large the log is by now, and, while following, read it. */
  async catchUp() {
    await this.#opening;
    if (this.following) await this.readOn();
    else await this.#read(this.rows.end, 1);
    this.events.changed();
  }

  async #readOnNow() {
    this.#flush();
    const epoch = this.#epoch;
    this.#busy += 1;
    try {
      for (let more = true; more; ) {
        const from = this.rows.end;
        const slice = await this.#read(from, BLOCK);
        if (!slice || epoch !== this.#epoch) return;
        if (this.following && this.size - slice.next > BEHIND) {
          void this.#open(-BLOCK);
          return;
        }
        if (this.rows.end !== from) continue; // rows were let go meanwhile
        this.rows.append(slice.bytes, { final: isFinal(slice), next: slice.next, newest: this.following });
        this.rows.trimStart(this.following);
        this.#settle();
        const wanted = this.following || this.rows.below < NEAR_EDGE_PX;
        more = wanted && this.rows.end > from && !this.isAtEnd;
      }
    } finally {
      this.#busy -= 1;
    }
  }

  async #readBackNow() {
    const epoch = this.#epoch;
    let limit = BLOCK;
    while (this.rows.start > 0 && this.rows.above < NEAR_EDGE_PX) {
      const end = this.rows.start;
      const offset = Math.max(0, end - limit);
      const slices = await this.#readSpan(offset, end);
      if (!slices || epoch !== this.#epoch || this.rows.start !== end) return;
      const [first] = slices;
      if (!first) {
        // The first row tells of a gap, and the gap begins further back.
        this.rows.startAt(offset);
        limit *= 2;
        continue;
      }
      const cut = offset > 0 && !isTold(first);
      const whole = cut ? firstLineStart(first.bytes) : 0;
      // All of it is one line whose beginning lies further back; or nowhere near, and then it is cut.
      const inside = cut && (whole === 0 || (whole === first.bytes.length && slices.length === 1));
      if (inside && limit < LONGEST_BACK) {
        limit *= 4;
        continue;
      }
      limit = BLOCK;
      const from = inside ? characterStart(first.bytes) : whole;
      first.bytes = first.bytes.subarray(from);
      first.start += from;
      this.rows.prepend(slices.flatMap(linesOf));
      if (!this.following) this.rows.trimEnd();
      this.#settle();
    }
  }

  /**
   * These bytes, in as many reads as the server makes of it; null when one fails. What tells of a gap that goes on
   * beyond the end is left out: it has been told there.
   * @param {number} offset
   * @param {number} end
   */
  async #readSpan(offset, end) {
    const slices = [];
    for (let at = offset; at < end; ) {
      const slice = await this.#read(at, end - at);
      if (!slice || slice.next <= at) return null;
      if (slice.next <= end) slices.push(slice);
      at = slice.next;
    }
    return slices;
  }

  // Live -------------------------------------------------------------------------------------------------

  /**
   * Where the stream is to go on, asked before each connection.
   * @returns {Promise<Record<string, string> | null>}
   * @throws {Error} when that can't be known now
   */
  async #query() {
    await this.#opening;
    // After a while away, the end has moved on; what lies between may be much more than anybody wants sent.
    if (performance.now() - this.#readAt > FRESH_MS) await this.catchUp();
    if (this.#readAt === -Infinity) throw new Error("the log can't be read");
    if (this.isOver || this.state === "none") return null;
    const { name, attempt, run } = this.source;
    return {
      log: name,
      offset: String(this.isAtEnd ? this.#tail : this.size),
      ...(attempt ? { attempt: String(attempt) } : {}),
      ...(run ? { run: String(run) } : {}),
    };
  }

  /**
   * Take a `log` event: a JSON string, whose id ends with the byte after it.
   * @param {string} data
   * @param {string} id
   */
  #take(data, id) {
    const [, attempt, run, end] = (LOG_ID.exec(id) ?? []).map(Number);
    if (attempt !== undefined && run !== undefined && end !== undefined) this.#chunk(attempt, run, end, JSON.parse(data));
  }

  /** @param {number} attempt @param {number} run @param {number} end the byte after it @param {string} text */
  #chunk(attempt, run, end, text) {
    const { source } = this;
    if (source.attempt && (attempt !== source.attempt || run !== source.run)) {
      if (!source.fixed) this.events.otherRun();
      return;
    }
    source.attempt = attempt;
    source.run = run;
    const start = this.size;
    const wasAtEnd = this.isAtEnd;
    this.size = Math.max(start, end);
    if (this.#busy || end <= this.#tail) return;
    if (!this.following && (!wasAtEnd || this.rows.count >= MOST_ROWS)) {
      this.events.changed();
      return;
    }
    const bytes = encoder.encode(text);
    // What was not UTF-8 became other characters on the way, and the text no longer tells offsets; the bytes do.
    if (start !== this.#tail || bytes.length !== end - start) {
      void this.readOn();
      return;
    }
    this.#pending.push(bytes);
    this.#pendingBytes += bytes.length;
    this.#frame ||= requestAnimationFrame(() => this.#flush());
  }

  #drop() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#pending = [];
    this.#pendingBytes = 0;
  }

  /** Show what has arrived; of too much at once only the end. */
  #flush() {
    const parts = this.#pending;
    const bytes = new Uint8Array(this.#pendingBytes);
    this.#drop();
    if (!bytes.length) return;
    let at = 0;
    for (const part of parts) {
      bytes.set(part, at);
      at += part.length;
    }
    let from = 0;
    if (this.following && bytes.length > BEHIND) {
      from = bytes.length - BLOCK;
      from += firstLineStart(bytes.subarray(from));
      this.rows.reset(this.rows.end + from);
    }
    this.rows.append(bytes.subarray(from), { newest: true });
    if (this.following) this.rows.trimStart(true);
    this.#settle();
  }
}

/** @param {Slice} slice */
function linesOf(slice) {
  // What tells of a gap begins with a newline, to end the line before it.
  const lines = splitLines(isTold(slice) ? slice.bytes.subarray(firstLineStart(slice.bytes)) : slice.bytes, slice.start);
  const last = lines.at(-1);
  if (last) last.end = slice.next;
  return lines;
}
