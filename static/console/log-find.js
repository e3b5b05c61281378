// @ts-check
/**
 * Finding text in a log: the server looks through all of it.
 * `GET <logs url>?role=&index=&attempt=&run=&stream=output&q=&offset=&limit=` answers
 * {"matches": [{"offset", "text"}], "next_offset": number | null}. Matches are listed like grep's, and each leads to
 * its place.
 */

import { announce } from "./announce.js";
import { countText, fill, gettext, ngettext } from "./i18n.js";
import { onlyColours, overwritten } from "./log-text.js";

/** @import { LogViewElement } from "./logview.js" */

/** @typedef {{ offset: number, text: string }} Match */

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
  #query = "";

  /** @param {LogViewElement} view */
  constructor(view) {
    this.view = view;
    this.list = view.find("hits");
    const form = view.find("find");
    const input = form.querySelector("input");
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#find(input?.value ?? "");
    });
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
    this.#query = "";
    this.list.hidden = true;
    this.list.replaceChildren();
    this.#highlight("");
  }

  /** @param {string} query */
  async #find(query) {
    this.#clear();
    if (!query) return;
    this.#query = query;
    this.#search = new AbortController();
    const { signal } = this.#search;
    this.list.hidden = false;
    this.#highlight(query);
    await this.#askServer(0, signal);
  }

  /** @param {number} offset @param {AbortSignal} signal */
  async #askServer(offset, signal) {
    const source = this.view.reader?.source;
    if (!source) return;
    const query = source.query();
    query.set("q", this.#query);
    query.set("offset", String(offset));
    query.set("limit", String(PAGE));
    const wait = this.#line(gettext("Searching…"));
    try {
      const response = await fetch(`${source.url}?${query}`, { signal, headers: { Accept: "application/json" } });
      if (!response.ok) throw new Error(`the search answered ${response.status}`);
      const { matches, next_offset: next } = await response.json();
      wait.remove();
      this.#showPage(matches, next);
    } catch {
      wait.remove();
      if (!signal.aborted) this.#line(gettext("The search did not respond."));
    }
  }

  /** @param {Match[]} matches @param {number | null} next */
  #showPage(matches, next) {
    for (const match of matches) this.list.append(this.#row(match));
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
      if (this.#search) void this.#askServer(next, this.#search.signal);
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
    const at = Math.max(0, clean.toLowerCase().indexOf(this.#query.toLowerCase()));
    const from = Math.max(0, at - AROUND);
    const found = document.createElement("mark");
    found.textContent = clean.slice(at, at + this.#query.length);
    button.append(from ? "…" : "", clean.slice(from, at), found, clean.slice(at + this.#query.length, from + CLIP));
    button.addEventListener("click", () => {
      this.list.querySelector("[aria-current]")?.removeAttribute("aria-current");
      button.setAttribute("aria-current", "true");
      void this.view.goTo(offset).then(() => this.#highlight(this.#query));
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
