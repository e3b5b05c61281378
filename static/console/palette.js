// @ts-check
/**
 * Ctrl-K: everything the page offers and everything the console finds, by keyboard.
 *
 * The page's own entries are its links and buttons with data-command or data-key. The server's come from
 * `GET <data-search-url>?q=…` as {"items": [{"label", "url", "hint"?, "icon"?}]}; it also understands a pasted
 * job, Slurm or pod id.
 */

import { announce } from "./announce.js";
import { dialogById } from "./dialogs.js";
import { countText, fill, gettext, ngettext } from "./i18n.js";
import { icon } from "./icon.js";
import { nameOf } from "./keys.js";

/** @typedef {{ label: string, hint: string, icon: string, run: () => void }} Entry */

const TYPING_MS = 150;
const MOST = 50;

/** @returns {Entry[]} */
function pageEntries() {
  const entries = [];
  const seen = new Set();
  for (const element of document.querySelectorAll("[data-command], [data-key]")) {
    if (!(element instanceof HTMLElement) || element.closest("dialog") || element.matches(":disabled")) continue;
    const label = nameOf(element);
    if (!label || seen.has(label)) continue;
    seen.add(label);
    const href = element.querySelector("use")?.getAttribute("href");
    entries.push({
      label,
      hint: element.dataset.key ?? "",
      icon: href?.split("#")[1] ?? "chevron-right",
      run: () => (element.matches("input, textarea, select") ? element.focus() : element.click()),
    });
  }
  return entries;
}

/**
 * Every word typed occurs in the label; beginnings first.
 * @param {Entry[]} entries
 * @param {string} query
 */
function matching(entries, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = entries.filter((entry) => words.every((word) => entry.label.toLowerCase().includes(word)));
  const first = words[0] ?? "";
  return fits.sort((a, b) => Number(b.label.toLowerCase().startsWith(first)) - Number(a.label.toLowerCase().startsWith(first)));
}

class Palette {
  /** @type {Entry[]} */
  #page = [];
  /** @type {Entry[]} */
  #shown = [];
  #active = 0;
  #timer = 0;
  /** @type {AbortController | undefined} */
  #search;

  /**
   * @param {HTMLDialogElement} dialog
   * @param {HTMLInputElement} input
   * @param {HTMLElement} list
   */
  constructor(dialog, input, list) {
    this.dialog = dialog;
    this.input = input;
    this.list = list;
    dialog.addEventListener("dialog:open", () => this.#open());
    dialog.addEventListener("close", () => this.#search?.abort());
    input.addEventListener("input", () => this.#typed());
    input.addEventListener("keydown", (event) => this.#key(event));
    list.addEventListener("click", (event) => {
      const item = event.target instanceof Element ? event.target.closest("[role=option]") : null;
      if (item instanceof HTMLElement) this.#run(Number(item.dataset.at));
    });
    list.addEventListener("pointermove", (event) => {
      const item = event.target instanceof Element ? event.target.closest("[role=option]") : null;
      if (item instanceof HTMLElement && Number(item.dataset.at) !== this.#active) this.#activate(Number(item.dataset.at));
    });
  }

  #open() {
    this.#page = pageEntries();
    this.input.value = "";
    this.#show(this.#page);
  }

  #typed() {
    const query = this.input.value.trim();
    const here = matching(this.#page, query);
    this.#show(here);
    this.#search?.abort();
    clearTimeout(this.#timer);
    const url = this.dialog.dataset.searchUrl;
    if (!url || !query) return;
    this.#timer = window.setTimeout(() => this.#find(url, query, here), TYPING_MS);
  }

  /**
   * @param {string} url
   * @param {string} query
   * @param {Entry[]} here
   */
  async #find(url, query, here) {
    this.#search = new AbortController();
    const { signal } = this.#search;
    try {
      const response = await fetch(`${url}?${new URLSearchParams({ q: query })}`, { headers: { Accept: "application/json" }, signal });
      if (!response.ok) throw new Error(`search answered ${response.status}`);
      const { items } = await response.json();
      const found = items.map((/** @type {any} */ item) => ({
        label: item.label,
        hint: item.hint ?? "",
        icon: item.icon ?? "chevron-right",
        run: () => location.assign(item.url),
      }));
      // What was found is what was meant; commands that happen to match come after it.
      this.#show([...found, ...here]);
      announce(fill(ngettext("%(count)s result", "%(count)s results", found.length + here.length), { count: countText(found.length + here.length) }));
    } catch (error) {
      if (!signal.aborted) this.#show(here, gettext("The search did not respond."));
    }
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 };
    if (event.key in steps) {
      event.preventDefault();
      const step = steps[/** @type {keyof typeof steps} */ (event.key)];
      const count = this.#shown.length;
      if (count) this.#activate(Math.abs(step) === 1 ? (this.#active + step + count) % count : Math.min(count - 1, Math.max(0, this.#active + step)));
    } else if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      this.#run(this.#active);
    }
  }

  /** @param {number} at */
  #run(at) {
    const entry = this.#shown[at];
    if (!entry) return;
    this.dialog.close();
    entry.run();
  }

  /** @param {number} at */
  #activate(at) {
    this.#active = at;
    for (const item of this.list.querySelectorAll("[role=option]")) {
      const here = item.id === `palette-${at}`;
      item.setAttribute("aria-selected", String(here));
      if (here) item.scrollIntoView({ block: "nearest" });
    }
    if (this.#shown.length) this.input.setAttribute("aria-activedescendant", `palette-${at}`);
    else this.input.removeAttribute("aria-activedescendant");
  }

  /**
   * @param {Entry[]} entries
   * @param {string} [instead] said when there are none
   */
  #show(entries, instead = gettext("No results")) {
    this.#shown = entries.slice(0, MOST);
    this.list.replaceChildren(...this.#shown.map((entry, at) => this.#row(entry, at)));
    if (!this.#shown.length) {
      const none = document.createElement("li");
      none.className = "palette-empty";
      none.setAttribute("role", "option");
      none.setAttribute("aria-disabled", "true");
      none.textContent = instead;
      this.list.append(none);
    }
    this.#activate(0);
  }

  /** @param {Entry} entry @param {number} at */
  #row(entry, at) {
    const row = document.createElement("li");
    row.className = "palette-item";
    row.id = `palette-${at}`;
    row.dataset.at = String(at);
    row.setAttribute("role", "option");
    const label = document.createElement("span");
    label.className = "clip";
    label.textContent = entry.label;
    const hint = document.createElement("span");
    hint.className = "hint";
    hint.textContent = entry.hint;
    row.append(icon(entry.icon), label, hint);
    return row;
  }
}

export function startPalette() {
  const dialog = dialogById("palette");
  const input = document.getElementById("palette-input");
  const list = document.getElementById("palette-list");
  if (dialog && input instanceof HTMLInputElement && list) new Palette(dialog, input, list);
}
