// @ts-check
/** Telling people what happened: to a screen reader, or in a note in the corner. */

import { gettext } from "./i18n.js";
import { icon } from "./icon.js";

/**
 * Say something to people who listen to the page. Use it sparingly.
 * @param {string} text
 */
export function announce(text) {
  const region = document.getElementById("announcer");
  if (!region) return;
  // The same words twice are news twice, so the region changes in between.
  region.textContent = "";
  requestAnimationFrame(() => {
    region.textContent = text;
  });
}

const icons = { error: "alert-circle", info: "info-circle" };
const LASTS_MS = 8000;

/**
 * A note in the corner. Errors stay until they are closed; the same note is not shown twice at once.
 * @param {string} text
 * @param {{ level?: "error" | "info", link?: { url: string, label: string } }} [options]
 */
export function toast(text, { level = "info", link } = {}) {
  const region = document.getElementById("toasts");
  if (!region) return;
  for (const each of region.children) {
    if (each.querySelector("p")?.firstChild?.textContent === text) return;
  }
  const note = document.createElement("div");
  note.className = "toast-note";
  note.dataset.level = level;
  note.setAttribute("role", level === "error" ? "alert" : "status");
  const words = document.createElement("p");
  words.className = "mb-0";
  words.append(text);
  if (link) {
    const anchor = document.createElement("a");
    anchor.href = link.url;
    anchor.textContent = link.label;
    words.append(" ", anchor);
  }
  const close = document.createElement("button");
  close.type = "button";
  close.className = "btn btn-plain btn-icon btn-sm";
  close.setAttribute("aria-label", gettext("Close"));
  close.append(icon("x"));
  close.addEventListener("click", () => note.remove());
  note.append(icon(icons[level]), words, close);
  region.append(note);
  if (level !== "error") setTimeout(() => note.remove(), LASTS_MS);
}
