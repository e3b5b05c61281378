// @ts-check
/**
 * Finding text, a regular expression or a level in a log: the server looks through all of it.
 * `GET <logs url>?…&q=[&regex=1]|level=&limit=` answers {"matches": [{"offset", "text"}], …} and where to go on, after
 * a few seconds at the most; the search goes on from there until a page is full. Matches are listed like grep's, and
 * each leads to its place. What is searched, one replica's log or the merged ones, is the view's own.
 */

import { announce } from "./announce.js";
import { countText, fill, gettext, ngettext, percentText } from "./i18n.js";
import { onlyColours, overwritten } from "./log-text.js";

/**
 * @typedef {{ offset: number, text: string, replica?: string, rank?: number }} Match
 * @typedef {{ q?: string, regex?: string, level?: string }} Wanted
 * @typedef {{ matches: Match[], next: string | null, part: number }} Found `part` of the log has been searched
 *
 * @typedef {object} SearchableLog
 * @property {(name: string) => HTMLElement} find one of its parts
 * @property {(from: string | null) => URL | null} searchUrl the address of a search, from a place or the beginning on
 * @property {(answer: any) => Found} readFound what the server answered
 * @property {(match: Match) => Promise<void>} showMatch go to the line
 * @property {(match: Match) => HTMLElement | null} labelOf what stands before a match in the list
 */

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

  /** @param {SearchableLog} view */
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
    await this.#askServer(null, PAGE);
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
    await this.#askServer(null, 1);
    const hit = this.list.querySelector(".log-hit");
    if (hit instanceof HTMLElement) hit.click();
  }

  /**
   * Search from a place on until there are so many matches, the log is at its end, or somebody cancels.
   * @param {string | null} from null: the beginning
   * @param {number} most
   */
  async #askServer(from, most) {
    if (!this.view.searchUrl(from)) return;
    const search = new AbortController();
    this.#search = search;
    const wait = this.#line(gettext("Searching…"));
    const words = document.createElement("span");
    words.textContent = wait.textContent;
    wait.replaceChildren(words, this.#cancelButton(search));
    let next = from;
    let isDone = false;
    try {
      for (let count = 0; !isDone && count < most; ) {
        const url = this.view.searchUrl(next);
        if (!url) return;
        for (const [name, value] of Object.entries(this.#wanted)) url.searchParams.set(name, value);
        url.searchParams.set("limit", String(most - count));
        const response = await fetch(url, { signal: search.signal, headers: { Accept: "application/json" } });
        if (response.status === 400) {
          wait.remove();
          this.#line(await response.text());
          return;
        }
        if (!response.ok) throw new Error(`the search answered ${response.status}`);
        const found = this.view.readFound(await response.json());
        for (const match of found.matches) wait.before(this.#row(match));
        count += found.matches.length;
        next = found.next;
        isDone = next === null;
        const part = isDone ? "" : percentText(Math.min(1, found.part));
        words.textContent = fill(gettext("Searching… %(percent)s"), { percent: part });
      }
      wait.remove();
      this.#showEnd(next);
    } catch {
      wait.remove();
      if (!search.signal.aborted) this.#line(gettext("The search did not respond."));
      else if (search === this.#search && !this.list.hidden && !isDone) this.#offerMore(next);
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

  /** @param {string | null} next */
  #showEnd(next) {
    const count = this.list.querySelectorAll(".log-hit").length;
    if (!count && next === null) this.#line(gettext("No matches found."));
    announce(fill(ngettext("%(count)s line found", "%(count)s lines found", count), { count: countText(count) }));
    if (next !== null) this.#offerMore(next);
  }

  /** @param {string | null} next */
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
  #row(match) {
    const { text } = match;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "log-hit";
    const clean = plain(text);
    const wanted = this.#text;
    const at = Math.max(0, clean.toLowerCase().indexOf(wanted.toLowerCase()));
    const from = Math.max(0, at - AROUND);
    const found = document.createElement("mark");
    found.textContent = clean.slice(at, at + wanted.length);
    const label = this.view.labelOf(match);
    if (label) button.append(label, " ");
    button.append(from ? "…" : "", clean.slice(from, at), ...(wanted ? [found] : []), clean.slice(at + wanted.length, from + CLIP));
    button.addEventListener("click", () => {
      this.list.querySelector("[aria-current]")?.removeAttribute("aria-current");
      button.setAttribute("aria-current", "true");
      void this.view.showMatch(match).then(() => this.#highlight(this.#text));
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
