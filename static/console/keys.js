// @ts-check
/**
 * Keys: `data-key="c"` on a link, button or field makes c click (or focus) it; `data-key="g j"` is g, then j.
 * Ignored while typing, and where the person turned single keys off (WCAG 2.1.4). Ctrl-Enter submits the form
 * one is in, Ctrl-K opens the palette, ? shows them all.
 */

import { announce } from "./announce.js";
import { dialogById, openDialog } from "./dialogs.js";
import { gettext } from "./i18n.js";
import { recall, remember } from "./storage.js";

const SEQUENCE_MS = 1200;

/** @param {EventTarget | null} target */
function isTyping(target) {
  if (!(target instanceof HTMLElement)) return false;
  // An editor lives in a shadow root: the event seems to come from its host.
  const inner = target.shadowRoot?.activeElement ?? target;
  if (inner instanceof HTMLElement && inner.isContentEditable) return true;
  return target.matches("input:not([type=checkbox], [type=radio], [type=button], [type=submit]), textarea, select");
}

/** @param {HTMLElement} element */
function isUsable(element) {
  return element.checkVisibility() && !element.closest("[inert]") && !element.matches(":disabled, [aria-disabled=true]");
}

/**
 * The page's shortcuts that work right now; where several have the same keys, the first.
 * @returns {Map<string, HTMLElement>}
 */
function shortcuts() {
  const found = new Map();
  const scope = document.querySelector("dialog[open]") ?? document;
  for (const element of scope.querySelectorAll("[data-key]")) {
    if (!(element instanceof HTMLElement) || !isUsable(element)) continue;
    const keys = element.dataset.key ?? "";
    if (!found.has(keys)) found.set(keys, element);
  }
  return found;
}

/**
 * What an element is called: for the list of keys and for the palette.
 * @param {HTMLElement} element
 * @returns {string}
 */
export function nameOf(element) {
  const label = element.dataset.keyLabel ?? element.getAttribute("aria-label") ?? element.textContent ?? "";
  return label.replace(/\s+/g, " ").trim() || element.title;
}

/** @param {HTMLElement} element */
function use(element) {
  if (element.matches("input:not([type=checkbox], [type=radio]), textarea, select")) element.focus();
  else element.click();
}

/** The form that the page is for, where nothing has the focus. */
function mainForm() {
  const button = document.querySelector("dialog[open]") ? null : document.querySelector("button[data-primary]");
  return button instanceof HTMLButtonElement && isUsable(button) ? button.form : null;
}

/** @param {KeyboardEvent} event */
function submitForm(event) {
  const form = event.target === document.body ? mainForm() : event.target instanceof Element && event.target.closest("form");
  if (!form) return;
  event.preventDefault();
  submitPrimary(form);
}

/**
 * Submit a form with its main button: the one marked data-primary, else its first.
 * @param {HTMLFormElement} form
 */
export function submitPrimary(form) {
  const buttons = [...form.elements].filter((each) => each instanceof HTMLButtonElement && each.type === "submit");
  const main = buttons.find((each) => each.hasAttribute("data-primary")) ?? buttons[0];
  if (!(main instanceof HTMLButtonElement)) form.requestSubmit();
  else if (main.disabled) announce(main.title || gettext("This can't be submitted yet"));
  else form.requestSubmit(main);
}

function fillKeysDialog() {
  const list = document.getElementById("keys-page");
  if (!list) return;
  list.replaceChildren();
  for (const [keys, element] of shortcuts()) {
    const term = document.createElement("dt");
    term.textContent = nameOf(element);
    const description = document.createElement("dd");
    for (const key of keys.split(" ")) {
      const kbd = document.createElement("kbd");
      kbd.textContent = key;
      description.append(kbd, " ");
    }
    list.append(term, description);
  }
}

function watchSwitch() {
  const box = document.getElementById("keys-on");
  if (!(box instanceof HTMLInputElement)) return;
  box.checked = recall("keys") !== "off";
  box.addEventListener("change", () => remember("keys", box.checked ? "on" : "off"));
}

export function startKeys() {
  let before = "";
  let timer = 0;
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    const command = event.ctrlKey || event.metaKey;
    if (command && event.key === "Enter") submitForm(event);
    if (command && event.key.toLowerCase() === "k" && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      openDialog("palette");
    }
    if (command || event.altKey || event.key.length !== 1 || isTyping(event.target) || recall("keys") === "off") return;
    const known = shortcuts();
    const pressed = before && known.has(`${before} ${event.key}`) ? `${before} ${event.key}` : event.key;
    const element = known.get(pressed);
    clearTimeout(timer);
    before = "";
    if (element) {
      event.preventDefault();
      use(element);
    } else if ([...known.keys()].some((keys) => keys.startsWith(`${event.key} `))) {
      before = event.key;
      timer = window.setTimeout(() => (before = ""), SEQUENCE_MS);
    }
  });
  dialogById("keys")?.addEventListener("dialog:open", fillKeysDialog);
  watchSwitch();
}
