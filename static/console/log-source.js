// @ts-check
/**
 * The bytes of one replica's log, by offset.
 *
 * `GET <url>?role=&index=&stream=output&offset=&limit=[&attempt=&run=]` answers bytes with X-Next-Offset, X-State
 * (open, complete, truncated, gone), X-Offset, X-Size, X-Attempt and X-Run. A negative offset counts from the end, and
 * the server begins such an answer at the start of a line. Where a cap left bytes out of the middle of a log that has
 * ended (truncated), the answer is a line that says so, and X-Next-Offset lies after the gap.
 *
 * @typedef {object} Slice
 * @property {number} start the byte it begins at
 * @property {number} next the byte after it
 * @property {number} size of the whole log so far
 * @property {"open" | "complete" | "truncated" | "gone"} state
 * @property {Uint8Array} bytes
 */

/** So often the number of a line is asked for, until it is known. */
const MOST_COUNTS = 30;

/** States in which a log does not grow any more. */
export const OVER = new Set(["complete", "truncated", "gone"]);

/**
 * Whether no byte will ever come after it.
 * @param {Slice} slice
 */
export function isFinal(slice) {
  return OVER.has(slice.state) && slice.next >= slice.size;
}

/**
 * Whether it stands for bytes that are not kept, and says so.
 * @param {Slice} slice
 */
export function isTold(slice) {
  return slice.bytes.length !== slice.next - slice.start;
}

export class LogSource {
  attempt = 0;
  run = 0;

  /** @param {{ url: string, role: string, index: string, attempt?: string | undefined, run?: string | undefined }} log */
  constructor({ url, role, index, attempt, run }) {
    this.url = url;
    this.role = role;
    this.index = index;
    this.fixed = Boolean(attempt || run);
    this.attempt = Number(attempt ?? 0);
    this.run = Number(run ?? 0);
  }

  /** The log's name on the stream. */
  get name() {
    return `${this.role}/${this.index}`;
  }

  /** Where this log is, as a query. */
  query() {
    const query = new URLSearchParams({ role: this.role, index: this.index, stream: "output" });
    if (this.attempt) query.set("attempt", String(this.attempt));
    if (this.run) query.set("run", String(this.run));
    return query;
  }

  /** Go over to the newest attempt and run, whichever that is when next read. */
  forgetRun() {
    if (this.fixed) return;
    this.attempt = 0;
    this.run = 0;
  }

  /**
   * The number of the line at a byte; null when the server can't say now.
   * @param {number} offset
   */
  lineAt(offset) {
    return this.#count("line_at", offset, "line");
  }

  /**
   * The first byte of a line.
   * @param {number} line from 1
   */
  offsetOf(line) {
    return this.#count("line", line, "offset");
  }

  /**
   * Lines of a long log take the server a while to count; asked again it goes on where it was.
   * @param {"line" | "line_at"} name
   * @param {number} value
   * @param {"line" | "offset"} wanted
   * @returns {Promise<number | null>}
   */
  async #count(name, value, wanted) {
    for (let tries = 0; tries < MOST_COUNTS; tries += 1) {
      const query = this.query();
      query.set(name, String(value));
      const response = await fetch(`${this.url}?${query}`, { headers: { Accept: "application/json" } });
      if (!response.ok) return null;
      const answer = await response.json();
      if (answer[wanted] !== null) return Number(answer[wanted]);
    }
    return null;
  }

  /**
   * When bytes came: pairs of an offset, and the time (ms) at which what follows it came.
   * @param {number} offset
   * @param {number} limit
   * @returns {Promise<[number, number][]>}
   * @throws {Error} when the server can't be reached or answers an error
   */
  async times(offset, limit) {
    const query = this.query();
    query.set("times", "1");
    query.set("offset", String(offset));
    query.set("limit", String(limit));
    const response = await fetch(`${this.url}?${query}`, { headers: { Accept: "application/json" } });
    if (!response.ok) throw new Error(`the log answered ${response.status}`);
    return (await response.json()).times;
  }

  /**
   * @param {number} offset negative: from the end
   * @param {number} limit
   * @param {AbortSignal} [signal]
   * @returns {Promise<Slice | null>} null: there is no such log (yet)
   * @throws {Error} when the server can't be reached or answers an error
   */
  async read(offset, limit, signal) {
    const query = this.query();
    query.set("offset", String(offset));
    query.set("limit", String(limit));
    const response = await fetch(`${this.url}?${query}`, { signal: signal ?? null, headers: { Accept: "application/octet-stream" } });
    if (response.status === 404) return null;
    if (!response.ok) throw new Error(`the log answered ${response.status}`);
    const bytes = new Uint8Array(await response.arrayBuffer());
    const number = (/** @type {string} */ name) => Number(response.headers.get(name) ?? 0);
    const next = number("X-Next-Offset");
    this.attempt ||= number("X-Attempt");
    this.run ||= number("X-Run");
    const state = /** @type {Slice["state"]} */ (response.headers.get("X-State") ?? "open");
    const start = response.headers.has("X-Offset") ? number("X-Offset") : next - bytes.length;
    return { start, next, size: Math.max(next, number("X-Size")), state, bytes };
  }
}
