// @ts-check
/**
 * The form beside the job file (templates/jobs/new.html): what is filled in is said in the file, and what is written
 * in the file is shown in the form.
 *
 * `[data-form-of]` is the id of the file's textarea; `data-change-url` takes the file and the form's fields and answers
 * the file with the changes in it, what there is to say about it, and the form anew. One change is under way at a time.
 * What was typed meanwhile is kept and sent after it; an answer to a file that has changed meanwhile counts for nothing.
 */

import { announce } from "./announce.js";
import { postForm } from "./http.js";
import { countText, fill, gettext, ngettext } from "./i18n.js";
import { morph } from "./morph.js";
import { startViews } from "./form-views.js";

/** @import { Checked } from "./editor-check.js" */

/** @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Field */
/** @typedef {Checked & { text: string, pinned: string, form: string }} Answer */

const QUIET_MS = 250;
const AGAIN_MS = 5000;
const ACTS = ["form-add", "form-remove", "form-go-on"];

class JobForm {
  #timer = 0;
  #isUnderWay = false;
  #isDue = false;
  /** What was pressed and is not in the file yet. @type {Record<string, string>} */
  #act = {};
  /** Fields that show their value anew once they are left. @type {Map<Field, { seen: string, value: string }>} */
  #later = new Map();

  /** @param {HTMLElement} host @param {HTMLElement} root @param {HTMLTextAreaElement} file */
  constructor(host, root, file) {
    this.host = host;
    this.root = root;
    this.file = file;
    root.addEventListener("input", (event) => this.#typed(event, QUIET_MS));
    root.addEventListener("change", (event) => this.#typed(event, 0));
    root.addEventListener("click", (event) => this.#pressed(event));
    root.addEventListener("keydown", (event) => this.#entered(event));
    root.addEventListener("focusin", (event) => void mount(event.target));
    root.addEventListener("focusout", (event) => this.#left(event.target));
    file.addEventListener("editor:checked", (event) => this.#read(/** @type {CustomEvent} */ (event).detail));
    startViews(host, file);
    for (const link of this.#counts()) link.addEventListener("click", (event) => this.#goToProblem(event));
    if (root.contains(document.activeElement)) void mount(document.activeElement); // who was faster than this
    else if (file.dataset.begins === undefined) this.#goToProblem();
  }

  // --- What somebody does ------------------------------------------------------------------------------------------

  /** @param {Event} event @param {number} delay */
  #typed(event, delay) {
    const field = event.target;
    if (!isField(field) || !field.name) return;
    // Nobody wants half a password saved, or half a file taken apart.
    if (event.type === "input" && isSettledLater(field)) return;
    this.#within(delay);
  }

  /** @param {Event} event */
  #pressed(event) {
    const button = event.target instanceof Element ? event.target.closest("button") : null;
    if (!button) return;
    const taken = button.dataset.take ? document.getElementById(button.dataset.take) : null;
    if (isField(taken)) {
      taken.value = button.value;
      taken.focus();
      this.#within(0);
    }
    if (!ACTS.includes(button.name)) return;
    event.preventDefault();
    this.#act = { [button.name]: button.value };
    this.#within(0);
  }

  /** Enter in a field takes it, and submits nothing. @param {KeyboardEvent} event */
  #entered(event) {
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.isComposing) return;
    if (!(event.target instanceof HTMLInputElement)) return;
    event.preventDefault();
    this.#within(0);
  }

  /** To the first field that has a problem. @param {Event} [event] */
  #goToProblem(event) {
    const field = this.root.querySelector('[aria-invalid="true"]');
    field?.closest("details")?.setAttribute("open", "");
    if (!isField(field) || !field.checkVisibility()) return;
    event?.preventDefault();
    field.scrollIntoView({ block: "center" });
    field.focus({ preventScroll: true });
  }

  /** @param {EventTarget | null} target */
  #left(target) {
    if (!isField(target)) return;
    const later = this.#later.get(target);
    this.#later.delete(target);
    if (later && target.value === later.seen) put(target, later.value);
  }

  // --- Saying it in the file ---------------------------------------------------------------------------------------

  /** @param {number} delay */
  #within(delay) {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => void this.#send(), delay);
  }

  async #send() {
    clearTimeout(this.#timer);
    this.#isDue = true;
    if (this.#isUnderWay || this.root.dataset.readOnly !== undefined) return;
    this.#isDue = false;
    this.#isUnderWay = true;
    const [text, act, sent] = [this.file.value, this.#act, this.#values()];
    try {
      const answer = await postForm(this.host.dataset.changeUrl ?? "", { ...this.#beside(), ...Object.fromEntries(sent), ...act, text });
      if (this.file.value !== text) this.#isDue = true;
      else this.#take(answer, act, sent);
    } catch {
      announce(gettext("Your input could not be written to the job file. It is still in the form."));
      this.#within(AGAIN_MS);
    }
    this.#isUnderWay = false;
    if (this.#isDue) void this.#send();
  }

  /** @param {Answer} answer @param {Record<string, string>} act @param {Map<string, string>} sent */
  #take(answer, act, sent) {
    const { form, text, pinned, ...checked } = answer;
    if (this.#act === act) this.#act = {};
    this.#pin(pinned);
    this.file.dispatchEvent(new CustomEvent("editor:patch", { bubbles: true, detail: { text, checked } }));
    this.#show(form, (field) => valueOf(field) !== sent.get(field.name));
    if (this.#isLate(sent)) this.#isDue = true;
  }

  /** Whether something was filled in since. @param {Map<string, string>} sent */
  #isLate(sent) {
    return this.#fields().some((field) => sent.has(field.name) && !isSettledLater(field) && this.#isTyped(field) && valueOf(field) !== sent.get(field.name));
  }

  /** The dialect that was chosen is no longer that of the text. @param {string} name */
  #pin(name) {
    const field = this.file.form?.elements.namedItem("dialect");
    if (field instanceof HTMLSelectElement) field.value = name;
  }

  // --- Showing the file --------------------------------------------------------------------------------------------

  /** The file was written in and read. @param {Partial<Answer>} answer */
  #read(answer) {
    if (answer.form === undefined || answer.text !== this.file.value) return;
    this.#show(answer.form, (field) => this.#isTyped(field));
    if (this.#fields().some((field) => !isSettledLater(field) && this.#isTyped(field))) this.#within(0);
  }

  /** @param {string} html @param {(field: Field) => boolean} isKept */
  #show(html, isKept) {
    const wanted = new DOMParser().parseFromString(html, "text/html").querySelector("[data-form]");
    if (!wanted) return;
    const isReadOnly = wanted.hasAttribute("data-read-only");
    const kept = new Map(this.#fields().map((field) => [field, isKept(field)]));
    if (isReadOnly) {
      // What the file said last stays to be seen, and nothing is lost of what was typed.
      this.root.dataset.readOnly = "";
      this.root.querySelector("fieldset.form-all")?.setAttribute("disabled", "");
      replace(this.root, wanted, "[data-form-notices]");
    } else {
      morph(this.root, wanted, (field, other) => this.#keep(field, other, kept.get(field) ?? false));
    }
    this.#count();
  }

  /** @param {Field} field @param {Field} wanted @param {boolean} isKept */
  #keep(field, wanted, isKept) {
    if (field instanceof HTMLInputElement && wanted instanceof HTMLInputElement && field.type === "checkbox") {
      if (!isKept) field.checked = wanted.checked;
      return;
    }
    if (isKept || field.value === wanted.value) return;
    if (hasFocus(field) && !isSettledLater(field)) this.#later.set(field, { seen: field.value, value: wanted.value });
    else put(field, wanted.value);
  }

  #count() {
    const count = this.root.querySelectorAll(".field-error").length;
    for (const element of this.#counts()) {
      const text = fill(ngettext("%(count)s field to fix", "%(count)s fields to fix", count), { count: countText(count) });
      if (count && element.textContent !== text) announce(text);
      element.textContent = text;
      element.toggleAttribute("hidden", !count);
    }
  }

  /** What says how many fields have a problem. */
  #counts() {
    return this.file.form?.querySelectorAll("[data-form-count]") ?? [];
  }

  // --- The fields --------------------------------------------------------------------------------------------------

  #fields() {
    return [...this.root.querySelectorAll("input, select, textarea")].filter(isField).filter((field) => field.name && !field.disabled);
  }

  /** What the fields say, by their names. */
  #values() {
    const values = new Map();
    for (const field of this.#fields()) {
      if (field instanceof HTMLInputElement && field.type === "hidden" && values.has(field.name)) continue;
      if (!(isSettledLater(field) && hasFocus(field))) values.set(field.name, valueOf(field));
    }
    return values;
  }

  /** What goes along with the file. @returns {Record<string, string>} */
  #beside() {
    const names = ["dialect", "origin", "place", "template"];
    const fields = names.map((name) => this.file.form?.elements.namedItem(name)).filter(isField);
    return Object.fromEntries(fields.map((field) => [field.name, field.value]));
  }

  /** Whether a field says something else than the file did when the form was drawn. @param {Field} field */
  #isTyped(field) {
    const shown = this.root.querySelector('[name="form-shown"]');
    if (!(shown instanceof HTMLInputElement) || field === shown || field.type === "hidden") return false;
    const blank = field instanceof HTMLSelectElement ? (field.options[0]?.value ?? "") : "";
    return valueOf(field) !== (JSON.parse(shown.value)[field.name] ?? blank);
  }
}

/** @param {unknown} element @returns {element is Field} */
function isField(element) {
  return element instanceof HTMLInputElement || element instanceof HTMLSelectElement || element instanceof HTMLTextAreaElement;
}

/** Passwords and what is pasted count once they are left. @param {Field} field */
function isSettledLater(field) {
  return field.type === "password" || field.dataset.settled !== undefined;
}

/** @param {Field} field */
function valueOf(field) {
  if (field instanceof HTMLInputElement && field.type === "checkbox") return field.checked ? field.value : "";
  return field.value;
}

/** @param {Field} field */
function hasFocus(field) {
  return document.activeElement === field || (field.closest(".editor")?.contains(document.activeElement) ?? false);
}

/** @param {Field} field @param {string} value */
function put(field, value) {
  if (field.dataset.editorMounted === undefined) field.value = value;
  else field.dispatchEvent(new CustomEvent("editor:set", { bubbles: true, detail: { text: value } }));
}

/** @param {Element} element @param {Element} wanted @param {string} selector */
function replace(element, wanted, selector) {
  const [here, there] = [element.querySelector(selector), wanted.querySelector(selector)];
  if (here && there) here.replaceWith(document.importNode(there, true));
}

/** A command is written in an editor, as soon as somebody comes to it. @param {EventTarget | null} target */
async function mount(target) {
  if (!(target instanceof HTMLTextAreaElement) || target.dataset.editorLater === undefined) return;
  if (target.dataset.editorMounted !== undefined) return;
  target.dataset.editor = "";
  const { mountEditors } = await import("./editor.js");
  mountEditors();
  target.dispatchEvent(new Event("editor:focus", { bubbles: true }));
}

/** @param {ParentNode} root */
export function startForms(root) {
  for (const host of root.querySelectorAll("[data-form-of]")) {
    const form = host.querySelector("[data-form]");
    const file = host instanceof HTMLElement ? document.getElementById(host.dataset.formOf ?? "") : null;
    if (host instanceof HTMLElement && form instanceof HTMLElement && file instanceof HTMLTextAreaElement) new JobForm(host, form, file);
  }
}
