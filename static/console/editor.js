// @ts-check
/**
 * The editor that stands in for `<textarea data-editor>` (templates/components/editor.html).
 *
 * The textarea stays the field that is submitted, and works alone where there is no script. The editor lives in a
 * shadow root, because there CodeMirror's style sheets are adopted ones, which the content security policy allows;
 * its colours are custom properties and come in from the page.
 */

import {
  Compartment,
  EditorState,
  EditorView,
  StreamLanguage,
  autocompletion,
  bracketMatching,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  defaultKeymap,
  drawSelection,
  dropCursor,
  foldGutter,
  foldKeymap,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSelectionMatches,
  highlightSpecialChars,
  history,
  historyKeymap,
  indentOnInput,
  indentUnit,
  json,
  keymap,
  lineNumbers,
  lintGutter,
  lintKeymap,
  placeholder,
  search,
  searchKeymap,
  shell,
  yaml,
} from "../vendor/codemirror-6.43.15/codemirror.js";
import { EditorCheck } from "./editor-check.js";
import { takeFiles } from "./editor-files.js";
import { look, phrases } from "./editor-look.js";
import { submitPrimary } from "./keys.js";

/** Every mounted editor, by its textarea. @type {WeakMap<HTMLTextAreaElement, JobEditor>} */
const editors = new WeakMap();

/**
 * The language a text is written in, by how it begins.
 * @param {string} text
 * @returns {"json" | "shell" | "yaml"}
 */
function languageOf(text) {
  const first = text.replace(/^\ufeff/, "").trimStart();
  if (first.startsWith("#!") || first.startsWith("#SBATCH")) return "shell";
  return /^([{[]|\/\/|\/\*|$)/.test(first) ? "json" : "yaml";
}

const languages = { json: () => json(), yaml: () => yaml(), shell: () => StreamLanguage.define(shell) };

class JobEditor {
  #language = new Compartment();
  #languageName = "";

  /** @param {HTMLTextAreaElement} textarea */
  constructor(textarea) {
    this.textarea = textarea;
    this.frame = textarea.closest(".editor") ?? wrap(textarea);
    const host = document.createElement("div");
    host.className = "editor-host";
    const root = host.attachShadow({ mode: "open" });
    textarea.before(host);
    this.view = new EditorView({
      parent: root,
      root,
      state: EditorState.create({ doc: textarea.value, extensions: this.#extensions() }),
    });
    textarea.dataset.editorMounted = "";
    this.#chooseLanguage(textarea.value);
    for (const label of textarea.labels) label.addEventListener("click", () => this.view.focus());
    takeFiles(this);
    this.check = textarea.dataset.checkUrl ? new EditorCheck(this) : null;
    const { line, column } = textarea.dataset;
    if (line) this.goTo(Number(line), Number(column ?? 1));
    else if (textarea.autofocus) this.view.focus();
  }

  #extensions() {
    const { textarea } = this;
    const editable = !(textarea.readOnly || textarea.disabled);
    return [
      editable ? lintGutter() : [],
      lineNumbers(),
      foldGutter(),
      highlightSpecialChars(),
      drawSelection(),
      search({ top: true }),
      highlightSelectionMatches(),
      bracketMatching(),
      look,
      EditorState.phrases.of(phrases),
      this.#language.of([]),
      EditorView.contentAttributes.of({ "aria-label": labelOf(textarea), spellcheck: "false", tabindex: "0" }),
      EditorState.readOnly.of(!editable),
      editable ? this.#editing() : [],
      keymap.of([...searchKeymap, ...foldKeymap, ...defaultKeymap]),
    ];
  }

  #editing() {
    return [
      history(),
      dropCursor(),
      indentOnInput(),
      indentUnit.of("  "),
      closeBrackets(),
      autocompletion(),
      highlightActiveLine(),
      highlightActiveLineGutter(),
      placeholder(this.textarea.placeholder),
      EditorView.lineWrapping,
      EditorView.updateListener.of((/** @type {{ docChanged: boolean }} */ update) => update.docChanged && this.#changed()),
      // Tab moves on to the next field, as everywhere; Ctrl-] and Ctrl-[ indent.
      keymap.of([
        { key: "Mod-Enter", run: () => this.#submit() },
        ...closeBracketsKeymap,
        ...historyKeymap,
        ...lintKeymap,
        ...completionKeymap,
      ]),
    ];
  }

  get text() {
    return this.view.state.doc.toString();
  }

  /**
   * Put another text in its place; Ctrl-Z brings the old one back.
   * @param {string} text
   */
  set text(text) {
    if (text === this.text) return;
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
  }

  /**
   * Put the cursor there, and show it.
   * @param {number} line from 1
   * @param {number} column from 1, in code points
   */
  goTo(line, column) {
    const at = this.positionOf(line, column);
    this.view.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
    this.view.focus();
  }

  /**
   * A place in the text as CodeMirror counts: UTF-16 units from the beginning.
   * @param {number} line from 1
   * @param {number} column from 1, in code points
   * @returns {number}
   */
  positionOf(line, column) {
    const { doc } = this.view.state;
    const found = doc.line(Math.min(Math.max(1, line), doc.lines));
    const before = [...found.text].slice(0, Math.max(0, column - 1)).join("");
    return found.from + before.length;
  }

  destroy() {
    this.check?.stop();
    this.view.destroy();
  }

  #changed() {
    const { textarea, text } = this;
    textarea.value = text;
    this.#chooseLanguage(text.slice(0, 400));
    textarea.dispatchEvent(new Event("input", { bubbles: true }));
  }

  #submit() {
    if (this.textarea.form) submitPrimary(this.textarea.form);
    return this.textarea.form !== null;
  }

  /** @param {string} beginning */
  #chooseLanguage(beginning) {
    const asked = this.textarea.dataset.language ?? "auto";
    const name = asked in languages ? /** @type {keyof typeof languages} */ (asked) : languageOf(beginning);
    if (name === this.#languageName) return;
    this.#languageName = name;
    this.view.dispatch({ effects: this.#language.reconfigure(languages[name]()) });
  }
}

/** @typedef {JobEditor} Editor */

/** @param {HTMLTextAreaElement} textarea */
function labelOf(textarea) {
  return textarea.getAttribute("aria-label") ?? textarea.labels[0]?.textContent?.trim() ?? textarea.name;
}

/** @param {HTMLTextAreaElement} textarea @returns {HTMLElement} */
function wrap(textarea) {
  const frame = document.createElement("div");
  frame.className = "editor";
  textarea.replaceWith(frame);
  frame.append(textarea);
  return frame;
}

/** Mount an editor on every textarea that asks for one and has none yet. */
export function mountEditors() {
  for (const textarea of document.querySelectorAll("textarea[data-editor]:not([data-editor-mounted])")) {
    if (textarea instanceof HTMLTextAreaElement) editors.set(textarea, new JobEditor(textarea));
  }
}

/** @param {EventTarget | Element | null} target */
function editorOf(target) {
  return target instanceof HTMLTextAreaElement ? editors.get(target) : undefined;
}

document.addEventListener("click", (event) => {
  const place = event.target instanceof Element ? event.target.closest("[data-editor-go]") : null;
  if (!(place instanceof HTMLElement)) return;
  const { editorGo = "", line, column } = place.dataset;
  editorOf(document.getElementById(editorGo))?.goTo(Number(line), Number(column));
});
document.addEventListener("editor:set", (event) => {
  const editor = editorOf(event.target);
  if (editor) editor.text = /** @type {CustomEvent} */ (event).detail.text;
});
document.addEventListener("htmx:beforeCleanupElement", (event) => editorOf(event.target)?.destroy());
