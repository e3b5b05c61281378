// @ts-check
/**
 * Checking while somebody writes: `POST <data-check-url>` with `text` (and, where the textarea has
 * data-check-include="name …", those fields of its form) answers {"dialect", "label", "why", "syntax", "candidates",
 * "problems", "notes"}, the last two each with message, pointer, line, column, code and fix. They appear beside their
 * lines, in the gutter, and in the element with `data-problems-for="<textarea id>"`.
 */

import { setDiagnostics } from "../vendor/codemirror-6.43.15/codemirror.js";
import { announce } from "./announce.js";
import { fixLabel, mend, showProblems, startActions } from "./editor-problems.js";
import { spanAt } from "./editor-span.js";
import { postForm } from "./http.js";
import { countText, fill, gettext, ngettext } from "./i18n.js";

/** @import { Editor } from "./editor.js" */

/**
 * @typedef {object} Finding
 * @property {string} message
 * @property {string} code
 * @property {string} [pointer]
 * @property {number | null} [line] from 1
 * @property {number | null} [column] from 1, in code points
 * @property {{ pointer: string } | null} [fix]
 * @property {Action[]} [actions]
 *
 * @typedef {{ kind: string, value: string, label: string }} Action
 *
 * @typedef {{ name: string, label: string, why: string }} Candidate
 *
 * @typedef {object} Checked
 * @property {string | null} dialect
 * @property {string | null} [label]
 * @property {string} [why]
 * @property {string | null} [syntax]
 * @property {Candidate[]} [candidates]
 * @property {Finding[]} problems
 * @property {Finding[]} notes
 */

const QUIET_MS = 300;

export class EditorCheck {
  #timer = 0;
  /** @type {AbortController | undefined} */
  #request;
  #count = -1;

  /** @param {Editor} editor */
  constructor(editor) {
    this.editor = editor;
    editor.textarea.addEventListener("input", () => this.#soon());
    editor.textarea.addEventListener("editor:check", () => void this.#now());
    startActions(editor);
    for (const field of this.#fields()) field.addEventListener("change", () => void this.#now());
    if (editor.text.trim()) void this.#now();
    else this.#show({ dialect: null, problems: [], notes: [] });
  }

  stop() {
    clearTimeout(this.#timer);
    this.#request?.abort();
  }

  /** What somebody else has asked about the text as it is now. @param {Checked} checked */
  take(checked) {
    this.stop();
    this.#show(checked);
  }

  #soon() {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => void this.#now(), QUIET_MS);
  }

  async #now() {
    this.stop();
    const { editor } = this;
    const { text } = editor;
    if (!text.trim()) this.#show({ dialect: null, problems: [], notes: [] });
    // A form beside the text hears of it even so.
    if (!text.trim() && editor.textarea.dataset.checkEmpty === undefined) return;
    this.#request = new AbortController();
    const { signal } = this.#request;
    try {
      const checked = await postForm(editor.textarea.dataset.checkUrl ?? "", { ...this.included(), text }, signal);
      if (!signal.aborted) this.#show(text.trim() ? checked : { ...checked, problems: [] });
    } catch {
      if (!signal.aborted) this.#sayState(gettext("Validation did not respond; the file is validated again when you submit."));
    }
  }

  /** The form's fields that go along. @returns {(HTMLInputElement | HTMLSelectElement)[]} */
  #fields() {
    const { form, dataset } = this.editor.textarea;
    const names = (dataset.checkInclude ?? "").split(/\s+/).filter(Boolean);
    return names
      .map((name) => form?.elements.namedItem(name))
      .filter((field) => field instanceof HTMLInputElement || field instanceof HTMLSelectElement);
  }

  /** What goes along with the text. @returns {Record<string, string>} */
  included() {
    return Object.fromEntries(this.#fields().map((field) => [field.name, field.value]));
  }

  /** @param {Checked} checked */
  #show(checked) {
    const { editor } = this;
    const { problems = [], notes = [], dialect, label, why } = checked;
    editor.takeDialect(dialect ?? "", checked.syntax ?? null);
    const diagnostics = [
      ...problems.map((problem) => this.#diagnostic(problem, "error")),
      ...notes.map((note) => this.#diagnostic(note, "info")),
    ].filter((each) => each !== null);
    editor.view.dispatch(setDiagnostics(editor.view.state, diagnostics));
    showProblems(editor, checked);
    this.#sayCount(problems.length);
    const name = label ?? dialect ?? "";
    this.#sayState(name && why ? fill(gettext("%(dialect)s: %(why)s"), { dialect: name, why }) : name);
    editor.textarea.dispatchEvent(new CustomEvent("editor:checked", { bubbles: true, detail: checked }));
  }

  /**
   * @param {Finding} finding
   * @param {"error" | "info"} severity
   */
  #diagnostic(finding, severity) {
    const { line, column, message, fix } = finding;
    if (!line) return null;
    const { editor } = this;
    const mendable = fix && editor.textarea.dataset.fixUrl;
    const actions = mendable ? [{ name: fixLabel(finding), apply: () => void mend(editor, JSON.stringify(fix)) }] : [];
    return { ...spanAt(editor.view.state.doc, line, column ?? 1), severity, message, actions };
  }

  /** Every `[data-problem-count]` of the form says how many there are. @param {number} count */
  #sayCount(count) {
    const text = count ? fill(ngettext("%(count)s problem", "%(count)s problems", count), { count: countText(count) }) : "";
    for (const element of this.editor.textarea.form?.querySelectorAll("[data-problem-count]") ?? []) {
      element.textContent = text;
      element.toggleAttribute("hidden", !count);
    }
    if (this.#count !== count && (count || this.#count > 0)) announce(text || gettext("No problems"));
    this.#count = count;
  }

  /** What the editor's foot says of the text. @param {string} text */
  #sayState(text) {
    const state = this.editor.frame.querySelector("[data-editor-state]");
    if (state) state.textContent = text;
  }
}
