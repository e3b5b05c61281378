// @ts-check
/**
 * What the page says of the connection: the top bar nothing, "Live", or "as of 12:03:05" once it has been lost for a
 * while; and then a banner why.
 */

import { announce } from "./announce.js";
import { fill, gettext } from "./i18n.js";
import { clockText } from "./times.js";

const GRACE_MS = 3000;

export class LiveStatus {
  #element = document.querySelector("[data-live-status]");
  #banner = document.querySelector("[data-live-banner]");
  #isFull = false;
  #heardAt = Date.now();
  #timer = 0;

  /** The page shows no more than what it was rendered with, and need not. */
  off() {
    this.#show("off", "", "");
  }

  live() {
    this.#heardAt = Date.now();
    clearTimeout(this.#timer);
    this.#timer = 0;
    if (this.#state() === "late") announce(gettext("Reconnected"));
    this.#isFull = false;
    if (this.#banner instanceof HTMLElement) this.#banner.hidden = true;
    this.#show("live", gettext("Live"), gettext("Updates automatically"));
  }

  /** A fragment was fetched, by polling perhaps: the page is as of now. */
  heard() {
    this.#heardAt = Date.now();
    if (this.#state() === "late") this.#sayLate();
  }

  /** @param {boolean} certain it won't be back in a moment */
  late(certain) {
    if (this.#state() === "late") return;
    if (certain) this.#sayLate();
    else this.#timer ||= window.setTimeout(() => this.#sayLate(), GRACE_MS);
  }

  /** The person has as many live pages open as they may. */
  full() {
    this.#isFull = true;
    this.#sayLate();
  }

  /** Nobody looks; a loss while hidden is not news. */
  asleep() {
    clearTimeout(this.#timer);
    this.#timer = 0;
  }

  #state() {
    return this.#element?.getAttribute("data-state");
  }

  #sayLate() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    const why = this.#isFull
      ? gettext("Too many live pages are open. Close some, or wait: this page retries by itself.")
      : gettext("Not connected to the console. Retrying…");
    if (this.#state() !== "late") announce(why);
    const text = fill(gettext("as of %(time)s"), { time: clockText(this.#heardAt) });
    this.#show("late", text, why);
    const words = this.#banner?.querySelector("span");
    if (!(this.#banner instanceof HTMLElement) || !words) return;
    if (words.textContent !== why) words.textContent = why;
    this.#banner.hidden = false;
  }

  /** @param {string} state @param {string} text @param {string} title */
  #show(state, text, title) {
    const element = this.#element;
    if (!(element instanceof HTMLElement) || (element.dataset.state === state && element.textContent === text)) return;
    element.dataset.state = state;
    element.textContent = text;
    element.title = title;
  }
}
