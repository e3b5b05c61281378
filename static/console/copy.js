// @ts-check
/** Buttons that copy: `data-copy="text"`, or `data-copy-from="id"` for what an element or a field holds. */

import { announce } from "./announce.js";
import { gettext } from "./i18n.js";

const SHOWN_MS = 1500;

/** @param {HTMLElement} button */
function textOf(button) {
  if (button.dataset.copy !== undefined) return button.dataset.copy;
  const source = document.getElementById(button.dataset.copyFrom ?? "");
  if (source instanceof HTMLInputElement || source instanceof HTMLTextAreaElement) return source.value;
  return source?.textContent?.trim() ?? "";
}

/**
 * The clipboard API exists only in secure contexts; a console on a plain http host needs the old way.
 * @param {string} text
 * @returns {Promise<boolean>}
 */
async function copyText(text) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Not permitted: the old way may be.
    }
  }
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  document.body.append(area);
  const focused = document.activeElement;
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return done;
}

/** A tick in place of the icon, for a moment. @param {HTMLElement} button */
function showCopied(button) {
  const use = button.querySelector("use");
  const href = use?.getAttribute("href");
  if (!use || !href || button.dataset.copied !== undefined) return;
  button.dataset.copied = "";
  use.setAttribute("href", href.replace(/#.*$/, "#check"));
  setTimeout(() => {
    delete button.dataset.copied;
    use.setAttribute("href", href);
  }, SHOWN_MS);
}

export function startCopy() {
  document.addEventListener("click", async (event) => {
    const button = event.target instanceof Element ? event.target.closest("[data-copy], [data-copy-from]") : null;
    if (!(button instanceof HTMLElement)) return;
    event.preventDefault();
    const done = await copyText(textOf(button));
    announce(done ? gettext("Copied") : gettext("The browser did not allow copying"));
    if (done) showCopied(button);
  });
}
