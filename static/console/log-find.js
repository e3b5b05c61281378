// @ts-check
/**
 * Finding text, a regular expression or a level in a log: the server looks through all of it.
 * `GET <logs url>?role=&index=&attempt=&run=&stream=output&q=[&regex=1]|level=&offset=&limit=` answers
 * {"matches": [{"offset", "text"}], "next_offset": number | null}, after a few seconds at the most; the search goes on
 * from there until a page is full. Matches are listed like grep's, and each leads to its place.
 */

import { announce } from "./announce.js";
import { countText, fill, gettext, ngettext, percentText } from "./i18n.js";
import { onlyColours, overwritten } from "./log-text.js";

/** @import { LogViewElement } from "./logview.js" */

/** @typedef {{ offset: number, text: string }} Match */
/** @typedef {{ q?: string, regex?: string, level?: string }} Wanted */

const PAGE = 200;
const CLIP = 400;
const AROUND = 60;

/** @param {string} text */
function plain(text) {
  return onlyColours(overwritten(text)).replace(/\x1b\[[0-9;]*m/g, "");
}

export class LogFind {
  /** @type {AbortController | undefined} */
  #search;
  /** What is looked for. @type {Wanted} */
  #wanted = {};

  /** @param {LogViewElement} view */
  constructor(view) {
    this.view = view;
    this.list = view.find("hits");
    const form = view.find("find");
    const input = form.querySelector("input");
    const regex = view.find("regex");
    const level = /** @type {HTMLSelectElement} */ (view.find("level"));
    const findText = () => {
      const isRegex = regex.getAttribute("aria-pressed") === "true";
      level.value = "";
      void this.#find(input?.value ? { q: input.value, ...(isRegex ? { regex: "1" } : {}) } : {});
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      findText();
    });
    regex.addEventListener("click", () => {
      regex.setAttribute("aria-pressed", String(regex.getAttribute("aria-pressed") !== "true"));
      if (input?.value) findText();
    });
    level.addEventListener("change", () => {
      if (input) input.value = "";
      void this.#find(level.value ? { level: level.value } : {});
    });
    view.find("first-error").addEventListener("click", () => void this.#firstError());
    input?.addEventListener("input", () => input.value || this.#clear());
    input?.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !this.list.hidden) {
        event.preventDefault();
        input.value = "";
        this.#clear();
      }
    });
    this.list.addEventListener("keydown", (event) => this.#step(event));
  }

  #clear() {
    this.#search?.abort();
    this.#wanted = {};
    this.list.hidden = true;
    this.list.replaceChildren();
    this.#highlight("");
  }

  /** @param {Wanted} wanted */
  async #find(wanted) {
    this.#clear();
    if (!wanted.q && !wanted.level) return;
    this.#wanted = wanted;
    this.list.hidden = false;
    this.#highlight(this.#text);
    await this.#askServer(0, PAGE);
  }

  /** The text to mark; an expression is not tried again here. */
  get #text() {
    return this.#wanted.regex ? "" : (this.#wanted.q ?? "");
  }

  /** Go to the first line that is written as an error. */
  async #firstError() {
    this.#clear();
    this.#wanted = { level: "error" };
    this.list.hidden = false;
    await this.#askServer(0, 1);
    const hit = this.list.querySelector(".log-hit");
    if (hit instanceof HTMLElement) hit.click();
  }

  /**
   * Search from a byte on until there are so many matches, the log is at its end, or somebody cancels.
   * @param {number} offset
   * @param {number} most
   */
  async #askServer(offset, most) {
    const reader = this.view.reader;
    if (!reader) return;
    const search = new AbortController();
    this.#search = search;
    const wait = this.#line(gettext("Searching…"));
    const words = document.createElement("span");
    words.textContent = wait.textContent;
    wait.replaceChildren(words, this.#cancelButton(search));
    /** @type {number | null} */
    let next = offset;
    try {
      for (let count = 0; next !== null && count < most; ) {
        const query = reader.source.query();
        for (const [name, value] of Object.entries(this.#wanted)) query.set(name, value);
        query.set("offset", String(next));
        query.set("limit", String(most - count));
        const response = await fetch(`${reader.source.url}?${query}`, {
          signal: search.signal,
          headers: { Accept: "application/json" },
        });
        if (response.status === 400) {
          wait.remove();
          this.#line(await response.text());
          return;
        }
        if (!response.ok) throw new Error(`the search answered ${response.status}`);
        const answer = await response.json();
        for (const match of answer.matches) wait.before(this.#row(match));
        count += answer.matches.length;
        next = answer.next_offset;
        const part = reader.size && next !== null ? percentText(Math.min(1, next / reader.size)) : "";
        words.textContent = fill(gettext("Searching… %(percent)s"), { percent: part });
      }
      wait.remove();
      this.#showEnd(next);
    } catch {
      wait.remove();
      if (!search.signal.aborted) this.#line(gettext("The search did not respond."));
      else if (search === this.#search && !this.list.hidden && next !== null) this.#offerMore(next);
    }
  }

  /** @param {AbortController} search */
  #cancelButton(search) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "btn btn-sm";
    button.textContent = gettext("Cancel");
    button.addEventListener("click", () => search.abort());
    return button;
  }

  /** @param {number | null} next */
  #showEnd(next) {
    const count = this.list.querySelectorAll(".log-hit").length;
    if (!count && next === null) this.#line(gettext("No matches found."));
    announce(fill(ngettext("%(count)s line found", "%(count)s lines found", count), { count: countText(count) }));
    if (next !== null) this.#offerMore(next);
  }

  /** @param {number} next */
  #offerMore(next) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "btn btn-sm";
    button.textContent = gettext("Continue search");
    button.addEventListener("click", () => {
      button.remove();
      void this.#askServer(next, PAGE);
    });
    this.list.append(button);
  }

  /** @param {string} text */
  #line(text) {
    const line = document.createElement("p");
    line.className = "log-hits-note";
    line.textContent = text;
    this.list.append(line);
    return line;
  }

  /** @param {Match} match @returns {HTMLButtonElement} */
  #row({ offset, text }) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "log-hit";
    const clean = plain(text);
    const wanted = this.#text;
    const at = Math.max(0, clean.toLowerCase().indexOf(wanted.toLowerCase()));
    const from = Math.max(0, at - AROUND);
    const found = document.createElement("mark");
    found.textContent = clean.slice(at, at + wanted.length);
    button.append(from ? "…" : "", clean.slice(from, at), found, clean.slice(at + wanted.length, from + CLIP));
    button.addEventListener("click", () => {
      this.list.querySelector("[aria-current]")?.removeAttribute("aria-current");
      button.setAttribute("aria-current", "true");
      void this.view.goTo(offset).then(() => this.#highlight(this.#text));
    });
    return button;
  }

  /** Arrow keys go from match to match. @param {KeyboardEvent} event */
  #step(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const hits = [...this.list.querySelectorAll("button")];
    const next = hits[hits.findIndex((hit) => hit === document.activeElement) + step];
    event.preventDefault();
    next?.focus();
  }

  /** Mark what is found among the rows without touching them, where the browser can. @param {string} query */
  #highlight(query) {
    if (!("highlights" in CSS)) return;
    CSS.highlights.delete("log-found");
    if (!query) return;
    const ranges = [];
    const wanted = query.toLowerCase();
    const walker = document.createTreeWalker(this.view.find("lines"), NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const text = (node.nodeValue ?? "").toLowerCase();
      for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + wanted.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, at + wanted.length);
        ranges.push(range);
      }
    }
    CSS.highlights.set("log-found", new Highlight(...ranges));
  }
}
