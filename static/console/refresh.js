// @ts-check
/**
 * From names of what changed to fragments fetched anew.
 *
 * An element that shows something live says so: `data-live="jobs job:4f…"` with `hx-get` and
 * `hx-trigger="live:changed"` (or, without data-live, `hx-trigger="jobs:changed from:body"`). Names are
 * gathered, so that a page refetches at most twice a second however fast things change.
 */

const LEAST_MS = 500;
const HELD_MS = 1000;

const FROM_BODY = /(\S+):changed\s+from:body/g;

/** Every name that something on the page shows. */
export function watchedNames() {
  const names = new Set();
  for (const element of document.querySelectorAll("[data-live]")) {
    for (const name of (element.getAttribute("data-live") ?? "").split(/\s+/).filter(Boolean)) names.add(name);
  }
  for (const element of document.querySelectorAll('[hx-trigger*=":changed"]')) {
    for (const [, name] of (element.getAttribute("hx-trigger") ?? "").matchAll(FROM_BODY)) names.add(name);
  }
  return names;
}

/**
 * Somebody is in the middle of something there: typing, a menu open, text selected. It would be lost.
 * @param {Element} element
 */
function isHeld(element) {
  if (element.querySelector('.dropdown-menu.show, dialog[open], [data-hold="true"]')) return true;
  const focused = document.activeElement;
  if (focused && element.contains(focused) && focused.matches("input:not([type=checkbox]), textarea, select")) return true;
  const selection = getSelection();
  return Boolean(selection && !selection.isCollapsed && selection.anchorNode && element.contains(selection.anchorNode));
}

class Refresher {
  /** @type {Set<string>} */
  #names = new Set();
  #last = -Infinity;
  #timer = 0;
  isResting = false;

  /**
   * @param {Iterable<string>} names
   * @param {number} spreadMs when many people watch the same thing, their pages fetch within this time, not at once
   */
  add(names, spreadMs = 0) {
    for (const name of names) this.#names.add(name);
    if (this.#timer || this.#names.size === 0) return;
    const soonest = Math.max(0, this.#last + LEAST_MS - performance.now());
    this.#timer = window.setTimeout(() => this.#flush(), soonest + Math.random() * spreadMs);
  }

  #flush() {
    const names = this.#names;
    this.#names = new Set();
    this.#timer = 0;
    if (this.isResting) return;
    this.#last = performance.now();
    const held = new Set();
    const due = [...document.querySelectorAll("[data-live]")].filter((element) => {
      const shown = (element.getAttribute("data-live") ?? "").split(/\s+/).filter((name) => names.has(name));
      if (shown.length && isHeld(element)) shown.forEach((name) => held.add(name));
      else return shown.length > 0;
      return false;
    });
    for (const element of due) {
      // What stands inside something that is fetched anew comes with it.
      if (!due.some((other) => other !== element && other.contains(element))) {
        element.dispatchEvent(new CustomEvent("live:changed"));
      }
    }
    for (const name of names) document.body.dispatchEvent(new CustomEvent(`${name}:changed`));
    if (held.size) window.setTimeout(() => this.add(held), HELD_MS);
  }
}

const refresher = new Refresher();

/**
 * These changed.
 * @param {Iterable<string>} names
 * @param {number} [spreadMs]
 */
export function refresh(names, spreadMs) {
  refresher.add(names, spreadMs);
}

/**
 * What was fetched before somebody began something there comes too late, and is fetched again after it.
 * @param {Event} event
 */
function holdBack(event) {
  const { detail } = /** @type {CustomEvent} */ (event);
  if (detail.requestConfig?.triggeringEvent?.type !== "live:changed" || !isHeld(detail.target)) return;
  detail.shouldSwap = false;
  const names = (detail.target.getAttribute("data-live") ?? "").split(/\s+/).filter(Boolean);
  window.setTimeout(() => refresher.add(names), HELD_MS);
}

document.body.addEventListener("htmx:beforeSwap", holdBack);

/** Nothing is fetched while the page is being left. @param {boolean} isResting */
export function rest(isResting) {
  refresher.isResting = isResting;
}

/** Anything may have changed. */
export function refreshAll() {
  refresher.add(watchedNames());
}

/** What keeps itself fresh even while the tab is hidden: the state in the tab's title and icon. */
export function refreshHidden() {
  for (const element of document.querySelectorAll("[data-live-hidden]")) element.dispatchEvent(new CustomEvent("live:changed"));
}
