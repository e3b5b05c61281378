// @ts-check
/**
 * Checking while somebody writes: `POST <data-check-url>` with `text` (and, where the textarea has
 * data-check-include="name …", those fields of its form) answers {"dialect", "problems", "notes"}, each with
 * message, pointer, line, column, code and fix. They appear beside their lines, in the gutter, and in the element
 * with `data-problems-for="<textarea id>"`.
 */

import { setDiagnostics } from "../vendor/codemirror-6.43.15/codemirror.js";
import { announce } from "./announce.js";
import { showProblems } from "./editor-problems.js";
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
 * @property {unknown} [fix]
 *
 * @typedef {{ dialect: string | null, problems: Finding[], notes: Finding[] }} Checked
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
    if (editor.text.trim()) void this.#now();
    else this.#show({ dialect: null, problems: [], notes: [] });
  }

  stop() {
    clearTimeout(this.#timer);
    this.#request?.abort();
  }

  #soon() {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => void this.#now(), QUIET_MS);
  }

  async #now() {
    this.stop();
    const { editor } = this;
    const { text } = editor;
    if (!text.trim()) {
      this.#show({ dialect: null, problems: [], notes: [] });
      return;
    }
    this.#request = new AbortController();
    const { signal } = this.#request;
    try {
      const checked = await postForm(editor.textarea.dataset.checkUrl ?? "", { ...this.#included(), text }, signal);
      if (!signal.aborted) this.#show(checked);
    } catch {
      if (!signal.aborted) this.#sayState(gettext("The check did not answer; submitting checks again."));
    }
  }

  #included() {
    const { form, dataset } = this.editor.textarea;
    const data = form ? new FormData(form) : new FormData();
    /** @type {Record<string, string>} */
    const fields = {};
    for (const name of (dataset.checkInclude ?? "").split(/\s+/).filter(Boolean)) {
      const value = data.get(name);
      if (typeof value === "string") fields[name] = value;
    }
    return fields;
  }

  /** @param {Checked} checked */
  #show(checked) {
    const { editor } = this;
    const { problems = [], notes = [], dialect } = checked;
    const diagnostics = [
      ...problems.map((problem) => this.#diagnostic(problem, "error")),
      ...notes.map((note) => this.#diagnostic(note, "info")),
    ].filter((each) => each !== null);
    editor.view.dispatch(setDiagnostics(editor.view.state, diagnostics));
    showProblems(editor, problems, notes);
    this.#sayCount(problems.length);
    this.#sayState(dialect ?? "");
    editor.textarea.dispatchEvent(new CustomEvent("editor:checked", { bubbles: true, detail: checked }));
  }

  /**
   * From its place to the end of what stands there: the word, the string, or the line.
   * @param {Finding} finding
   * @param {"error" | "info"} severity
   */
  #diagnostic({ line, column, message }, severity) {
    if (!line) return null;
    const { doc } = this.editor.view.state;
    const from = this.editor.positionOf(line, column ?? 1);
    const rest = doc.lineAt(from).text.slice(from - doc.lineAt(from).from);
    const length = /^(?:"(?:[^"\\]|\\.)*"|[\w.+-]+|\S)/.exec(rest)?.[0].length ?? rest.length;
    return { from, to: from + length, severity, message };
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
