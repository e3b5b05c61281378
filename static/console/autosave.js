// @ts-check
/**
 * Saving while somebody types. `[data-autosave]` (templates/jobs/new.html) is saved by htmx when it hears
 * `autosave:now`; its value is the id of the textarea, `data-autosave-fields` the ids of what is saved with it, and
 * `data-person` whose text it is.
 *
 * What could not be saved is kept in this tab: the page says so, tries again, and the next page of the same draft, of
 * the same person, has it back.
 */

import { toast } from "./announce.js";
import { gettext } from "./i18n.js";
import { landedOnSignIn } from "./requests.js";

const KEY = "console.unsaved";
/** Nothing waits longer to be sent, however long somebody types without a pause. */
const LATEST_MS = 1000;
const AGAIN_MS = 5000;

/** @typedef {{ person: string, draft: string, text: string, beside: Record<string, string> }} Unsaved */

class Autosave {
  #timer = 0;
  #isUnsaved = false;

  /** @param {HTMLElement} element @param {HTMLTextAreaElement} textarea */
  constructor(element, textarea) {
    this.element = element;
    this.textarea = textarea;
    textarea.addEventListener("input", () => this.#within(LATEST_MS));
    // What was typed before this module was there counts too.
    if (textarea.value !== textarea.defaultValue) this.#within(LATEST_MS);
    for (const field of this.#beside) {
      field.addEventListener("input", () => this.#within(LATEST_MS));
      field.addEventListener("change", () => this.#within(0));
    }
    element.addEventListener("htmx:afterRequest", (event) => {
      const { successful, xhr } = /** @type {CustomEvent} */ (event).detail;
      if (successful && !landedOnSignIn(xhr)) this.#saved();
      else this.#failed(xhr);
    });
    window.addEventListener("beforeunload", (event) => {
      if (this.#isUnsaved) event.preventDefault();
    });
    textarea.form?.addEventListener("submit", (event) => this.#sent(event.submitter));
    this.#restore();
  }

  /** Save in so many milliseconds, or earlier where that was said before. @param {number} delay */
  #within(delay) {
    if (this.#timer && delay) return;
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => {
      this.#timer = 0;
      this.element.dispatchEvent(new Event("autosave:now"));
    }, delay);
  }

  #saved() {
    this.#forget();
    clear();
  }

  #forget() {
    this.#isUnsaved = false;
  }

  /** What is sent with the form is with the console, whatever it says of it. @param {HTMLElement | null} button */
  #sent(button) {
    this.#forget();
    if (button?.hasAttribute("formaction")) return;
    // A save after the submission would make its draft anew.
    clearTimeout(this.#timer);
    this.#timer = 0;
  }

  /** @param {XMLHttpRequest | undefined} xhr */
  #failed(xhr) {
    this.#isUnsaved = true;
    store({ person: this.#person, draft: this.#draft, text: this.textarea.value, beside: Object.fromEntries(this.#beside.map((field) => [field.id, field.value])) });
    this.#say(whyNot(xhr));
    this.#within(AGAIN_MS);
  }

  /** @param {string} text */
  #say(text) {
    const state = document.getElementById("draft-state");
    if (!state) return;
    for (const shown of state.querySelectorAll(":not(input)")) shown.remove();
    state.append(Object.assign(document.createElement("span"), { textContent: text, className: "draft-unsaved" }));
  }

  /** The text of this tab that was not saved, unless it is somebody else's, another draft's, or was saved after all. */
  #restore() {
    const unsaved = recall();
    if (!unsaved || unsaved.person !== this.#person || (unsaved.draft && unsaved.draft !== this.#draft)) return;
    clear();
    const lost = this.#beside.filter((field) => unsaved.beside?.[field.id] !== undefined && unsaved.beside[field.id] !== field.value);
    if (unsaved.text === this.textarea.value && !lost.length) return;
    for (const field of lost) field.value = unsaved.beside[field.id] ?? "";
    this.#within(LATEST_MS);
    if (this.textarea.dataset.editorMounted === undefined) {
      this.textarea.value = unsaved.text;
      this.textarea.dispatchEvent(new Event("input", { bubbles: true }));
    } else {
      this.textarea.dispatchEvent(new CustomEvent("editor:set", { bubbles: true, detail: { text: unsaved.text } }));
    }
    toast(gettext("Unsaved input restored."));
  }

  get #person() {
    return this.element.dataset.person ?? "";
  }

  get #draft() {
    const field = this.textarea.form?.elements.namedItem("draft");
    return field instanceof HTMLInputElement ? field.value : "";
  }

  /** What is saved with the text. */
  get #beside() {
    const ids = (this.element.dataset.autosaveFields ?? "").split(" ");
    return ids.map((id) => document.getElementById(id)).filter(isField);
  }
}

/** @param {unknown} element @returns {element is HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} */
function isField(element) {
  return element instanceof HTMLInputElement || element instanceof HTMLSelectElement || element instanceof HTMLTextAreaElement;
}

/** @param {XMLHttpRequest | undefined} xhr */
function whyNot(xhr) {
  if (landedOnSignIn(xhr)) return gettext("Not saved: you are signed out. Your input stays in this tab; sign in to save it.");
  if (xhr?.status === 403) return gettext("Not saved: you signed in again. Your input stays in this tab; reload the page to save it.");
  return gettext("Not saved: can't reach the console. Your input stays in this tab and is saved once the connection is back.");
}

/** @param {Unsaved} unsaved */
function store(unsaved) {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(unsaved));
  } catch {
    // The page itself still has it.
  }
}

/** @returns {Unsaved | null} */
function recall() {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? "null");
  } catch {
    return null;
  }
}

function clear() {
  try {
    sessionStorage.removeItem(KEY);
  } catch {
    // There was nothing, then.
  }
}

/** @param {ParentNode} root */
export function startAutosave(root) {
  for (const element of root.querySelectorAll("[data-autosave]")) {
    const textarea = element instanceof HTMLElement ? document.getElementById(element.dataset.autosave ?? "") : null;
    if (element instanceof HTMLElement && textarea instanceof HTMLTextAreaElement) new Autosave(element, textarea);
  }
}
