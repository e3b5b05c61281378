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
  isolateHistory,
  keymap,
  lineNumbers,
  lintGutter,
  lintKeymap,
  placeholder,
  search,
  searchKeymap,
} from "../vendor/codemirror-6.43.15/codemirror.js";
import { EditorCheck } from "./editor-check.js";
import { startCompare } from "./editor-compare.js";
import { takeFiles } from "./editor-files.js";
import { help } from "./editor-help.js";
import { languages, syntaxCalled, syntaxOf } from "./editor-languages.js";
import { look, phrases } from "./editor-look.js";
import { schemaFrom } from "./editor-schema.js";
import { changeTo, positionIn } from "./editor-span.js";
import { typingOver } from "./editor-typing.js";
import { variables } from "./editor-variables.js";
import { language as pageLanguage } from "./i18n.js";
import { submitPrimary } from "./keys.js";

/**
 * @import { Checked } from "./editor-check.js"
 * @import { Syntax } from "./editor-place.js"
 */

/** Every mounted editor, by its textarea. @type {WeakMap<HTMLTextAreaElement, JobEditor>} */
const editors = new WeakMap();

class JobEditor {
  #language = new Compartment();
  /** What the text is written in. @type {Syntax} */
  syntax = "json";
  #isColoured = false;
  /** The dialect that the text was last taken for: what is half written is none for a while. */
  dialect = "";
  /** @type {Syntax | null} */
  #dialectSyntax = null;

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
    this.takeDialect(textarea.dataset.dialect ?? "", textarea.dataset.language);
    for (const label of textarea.labels) label.addEventListener("click", () => this.view.focus());
    takeFiles(this);
    this.check = textarea.dataset.checkUrl ? new EditorCheck(this) : null;
    startCompare(this);
    const { line, column } = textarea.dataset;
    if (line) this.goTo(Number(line), Number(column ?? 1));
    this.initial = this.text;
  }

  #extensions() {
    const { textarea } = this;
    const editable = !(textarea.readOnly || textarea.disabled);
    // A field of a form is small, and its text is no file with lines to speak of.
    const isFile = textarea.dataset.editorLater === undefined;
    return [
      editable && isFile ? lintGutter() : [],
      isFile ? [lineNumbers(), foldGutter()] : [],
      highlightSpecialChars(),
      drawSelection(),
      search({ top: true }),
      highlightSelectionMatches(),
      bracketMatching(),
      look,
      EditorState.phrases.of(phrases),
      this.#language.of([]),
      textarea.dataset.schemaUrl ? help(this) : [],
      textarea.dataset.variables ? variables(textarea.dataset.variables) : [],
      EditorView.contentAttributes.of({ "aria-label": labelOf(textarea), spellcheck: "false", tabindex: "0" }),
      EditorState.readOnly.of(!editable),
      editable ? this.#editing() : [],
      keymap.of([...searchKeymap, ...foldKeymap, ...defaultKeymap]),
    ];
  }

  #editing() {
    return [
      history(),
      typingOver,
      EditorView.domEventHandlers({ paste: (/** @type {ClipboardEvent} */ event) => this.#pasted(event) }),
      dropCursor(),
      indentOnInput(),
      indentUnit.of("  "),
      closeBrackets(),
      highlightActiveLine(),
      highlightActiveLineGutter(),
      placeholder(this.textarea.placeholder),
      EditorView.lineWrapping,
      EditorView.updateListener.of((/** @type {any} */ update) => update.docChanged && this.#changed(update)),
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

  /** Whether nobody has written the text yet: a file that is pasted replaces it. */
  get isFresh() {
    return this.textarea.dataset.fresh !== undefined && this.text === this.initial;
  }

  /** Put a file that was pasted in place of the text; Ctrl-Z brings that back. @param {string} text */
  paste(text) {
    const changes = { from: 0, to: this.view.state.doc.length, insert: text };
    this.view.dispatch({ changes, selection: { anchor: text.length }, userEvent: "input.paste", scrollIntoView: true });
    this.view.focus();
  }

  /**
   * Put another text in its place; Ctrl-Z brings the old one back.
   * @param {string} text
   */
  set text(text) {
    if (text === this.text) return;
    const changes = { from: 0, to: this.view.state.doc.length, insert: text };
    // One step of its own, however soon it follows what was typed.
    this.view.dispatch({ changes, annotations: isolateHistory.of("full") });
  }

  /**
   * Change what differs to `text`, so that the cursor stays where it is, and take what is known of it already.
   * @param {string} text
   * @param {Checked} checked
   */
  patch(text, checked) {
    const change = changeTo(this.text, text);
    if (change) this.view.dispatch({ changes: change, annotations: isolateHistory.of("full") });
    this.check?.take(checked);
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
    return positionIn(this.view.state.doc, line, column);
  }

  /**
   * The dialect that the text is in, and the syntax of that; "" leaves it at what was known.
   * @param {string} dialect
   * @param {string | null} [syntax]
   */
  takeDialect(dialect, syntax) {
    if (dialect) this.dialect = dialect;
    this.#dialectSyntax = syntaxCalled(syntax);
    this.#chooseLanguage();
  }

  /** Choose in the form's field which dialect the text is in; "" lets it be worked out. @param {string} name */
  chooseDialect(name) {
    const field = this.textarea.form?.elements.namedItem("dialect");
    if (!(field instanceof HTMLSelectElement) || field.value === name) return;
    field.value = name;
    field.dispatchEvent(new Event("change", { bubbles: true }));
  }

  /** What the dialect's keys mean, in the page's language; null where nobody says. */
  async schema() {
    const url = this.textarea.dataset.schemaUrl ?? "";
    if (!url || !this.dialect) return null;
    return schemaFrom(`${url.replace("/-.json", `/${this.dialect}.json`)}?lang=${encodeURIComponent(pageLanguage)}`);
  }

  destroy() {
    this.check?.stop();
    this.view.destroy();
  }

  /** @param {any} update */
  #changed(update) {
    const { textarea, text } = this;
    textarea.value = text;
    const pasted = update.transactions.some((/** @type {any} */ each) => each.isUserEvent("input.paste"));
    // Another file may be in another dialect, whatever was chosen for the one before it.
    if (pasted && isWhole(update)) this.chooseDialect("");
    this.#chooseLanguage();
    textarea.dispatchEvent(new Event("input", { bubbles: true }));
  }

  /** A file that is pasted into a text that nobody has written. @param {ClipboardEvent} event */
  #pasted(event) {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (!this.isFresh || !text.trim().includes("\n")) return false;
    event.preventDefault();
    this.paste(normalized(text));
    return true;
  }

  #submit() {
    if (this.textarea.form) submitPrimary(this.textarea.form);
    return this.textarea.form !== null;
  }

  #chooseLanguage() {
    const syntax = this.#dialectSyntax ?? syntaxOf(this.view.state.sliceDoc(0, 400));
    if (this.#isColoured && syntax === this.syntax) return;
    this.syntax = syntax;
    this.#isColoured = true;
    this.view.dispatch({ effects: this.#language.reconfigure(languages[syntax]()) });
  }
}

/** @typedef {JobEditor} Editor */

/** Whether nothing is left of the text that was. @param {any} update */
function isWhole(update) {
  let whole = false;
  update.changes.iterChangedRanges((/** @type {number} */ from, /** @type {number} */ to) => {
    whole ||= from === 0 && to === update.startState.doc.length;
  });
  return whole;
}

/** With the line ends that the editor counts. @param {string} text */
function normalized(text) {
  return text.replace(/\r\n?/g, "\n");
}

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
// Nothing has the focus when a page opens, so that keys are the page's; what is pasted then goes to the file.
document.addEventListener("paste", (event) => {
  const editor = editorOf(document.querySelector("textarea[data-fresh]"));
  const text = event.clipboardData?.getData("text/plain") ?? "";
  if (event.target !== document.body || !text.trim() || !editor?.isFresh || !editor.frame.checkVisibility()) return;
  event.preventDefault();
  editor.paste(normalized(text));
});
document.addEventListener("editor:set", (event) => {
  const editor = editorOf(event.target);
  if (editor) editor.text = /** @type {CustomEvent} */ (event).detail.text;
});
document.addEventListener("editor:patch", (event) => {
  const { text, checked } = /** @type {CustomEvent} */ (event).detail;
  editorOf(event.target)?.patch(text, checked);
});
document.addEventListener("editor:focus", (event) => {
  const editor = editorOf(event.target);
  if (!(event.target instanceof HTMLTextAreaElement) || !editor) return;
  editor.view.dispatch({ selection: { anchor: Math.min(event.target.selectionStart, editor.view.state.doc.length) } });
  editor.view.focus();
});
document.addEventListener("htmx:beforeCleanupElement", (event) => editorOf(event.target)?.destroy());
