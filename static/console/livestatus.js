// @ts-check
/** What the top bar says of the connection: nothing, "Live", or "as of 12:03:05" once it has been lost for a while. */

import { announce } from "./announce.js";
import { fill, gettext } from "./i18n.js";
import { clockText } from "./times.js";

const GRACE_MS = 3000;

export class LiveStatus {
  #element = document.querySelector("[data-live-status]");
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
    this.#show("live", gettext("Live"), gettext("Updates automatically"));
  }

  /** A fragment was fetched, by polling perhaps: the page is as of now. */
  heard() {
    this.#heardAt = Date.now();
    if (this.#state() === "late") this.#sayLate();
  }

  late() {
    if (this.#timer || this.#state() === "late") return;
    this.#timer = window.setTimeout(() => this.#sayLate(), GRACE_MS);
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
    this.#timer = 0;
    if (this.#state() !== "late") announce(gettext("Connection lost; reconnecting"));
    const text = fill(gettext("as of %(time)s"), { time: clockText(this.#heardAt) });
    this.#show("late", text, gettext("Connection lost; reconnecting"));
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
