// @ts-check
/**
 * The text beside another one (templates/components/compare.html): what it would be in another dialect, after every
 * fix, or as it was submitted last time. What a dialect loses is listed, and marked in both texts.
 *
 * `POST <data-convert-url>` with `text`, `dialect` and `to` answers {"text", "filled", "file", "syntax", "notes",
 * "problems"}; each note has `capability` and `side` beside what a finding has.
 */

import {
  Change,
  EditorState,
  EditorView,
  MergeView,
  defaultKeymap,
  drawSelection,
  highlightSpecialChars,
  keymap,
  lineNumbers,
  lintGutter,
  search,
  searchKeymap,
  setDiagnostics,
} from "../vendor/codemirror-6.43.15/codemirror.js";
import { announce } from "./announce.js";
import { languages, syntaxCalled } from "./editor-languages.js";
import { mergeLook, phrases } from "./editor-look.js";
import { spanAt } from "./editor-span.js";
import { postForm } from "./http.js";
import { countText, fill, gettext, ngettext } from "./i18n.js";
import { icon } from "./icon.js";

/**
 * @import { Editor } from "./editor.js"
 * @import { Finding } from "./editor-check.js"
 *
 * @typedef {Finding & { capability: string, side: "source" | "target" }} Loss
 *
 * @typedef {object} Other
 * @property {string} text to be seen and kept
 * @property {string} [filled] to go on writing with, where secrets are placeholders in `text`
 * @property {string} label
 * @property {string} file
 * @property {string} syntax
 * @property {boolean} alike whether both are of one dialect, so that lines can be compared
 * @property {Loss[]} losses
 */

/** As many losses are listed; all of them are marked. */
const MOST_LISTED = 200;

/** What stands around both editors, in the shadow root that they share: below each other where there is no room. */
const LAYOUT = `
  .label { position: sticky; inset-block-start: 0; z-index: 5; padding: 0.25rem 1rem; color: var(--text-muted); background: var(--surface-raised); font-size: 0.75rem; }
  .cm-mergeViewEditor + .cm-mergeViewEditor { border-inline-start: 1px solid var(--line); }
  @media (width < 768px) {
    .cm-mergeViewEditors.cm-mergeViewEditors { flex-direction: column; }
    .cm-mergeViewEditor.cm-mergeViewEditor { flex: none; }
    .cm-mergeViewEditor + .cm-mergeViewEditor { border-block-start: 1px solid var(--line); border-inline-start: 0; }
    .cm-mergeSpacer { display: none; }
  }
`;

class Compare {
  /** @type {AbortController | undefined} */
  #request;
  /** @type {{ destroy(): void, a: any, b: any } | undefined} */
  #view;
  /** @type {Other | undefined} */
  #other;
  #root;

  /** @param {Editor} editor @param {HTMLDialogElement} dialog */
  constructor(editor, dialog) {
    this.editor = editor;
    this.dialog = dialog;
    this.#root = this.#part("[data-compare-host]").attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(LAYOUT);
    this.#root.adoptedStyleSheets = [sheet];
    this.what = /** @type {HTMLSelectElement} */ (this.#part("[data-compare-what]"));
    this.what.addEventListener("change", () => void this.#show());
    dialog.addEventListener("dialog:open", () => void this.#show());
    dialog.addEventListener("close", () => this.#forget());
    this.#part("[data-compare-download]").addEventListener("click", () => this.#download());
    dialog.querySelector("[data-compare-use]")?.addEventListener("click", () => this.#use());
  }

  /** @param {string} selector @returns {HTMLElement} */
  #part(selector) {
    const found = this.dialog.querySelector(selector);
    if (!(found instanceof HTMLElement)) throw new TypeError(`the dialog has no ${selector}`);
    return found;
  }

  #forget() {
    this.#request?.abort();
    this.#view?.destroy();
    this.#view = undefined;
    this.#other = undefined;
    this.#part("[data-compare-losses]").replaceChildren();
  }

  async #show() {
    this.#forget();
    this.#ready(false);
    this.#say(gettext("Converting …"));
    this.#request = new AbortController();
    const { signal } = this.#request;
    try {
      const other = await this.#fetch(signal);
      if (signal.aborted) return;
      if (!other) return;
      this.#other = other;
      this.#draw(other);
      this.#ready(true);
    } catch {
      if (!signal.aborted) this.#say(gettext("No response from the console. Select again to retry."));
    }
  }

  /** @param {AbortSignal} signal @returns {Promise<Other | null>} */
  async #fetch(signal) {
    const { editor } = this;
    const { dataset } = editor.textarea;
    const [kind, to = ""] = this.what.value.split(":");
    const label = this.what.selectedOptions[0]?.textContent?.trim() ?? "";
    const alike = { label, file: dataset.file ?? "job.txt", syntax: editor.syntax, alike: true, losses: [] };
    if (kind === "before") return { ...alike, text: await textOf(dataset.beforeUrl ?? "", signal) };
    const fields = { ...(editor.check ? editor.check.included() : { dialect: editor.dialect }), text: editor.text };
    if (kind === "fixed") return { ...alike, text: (await postForm(dataset.fixUrl ?? "", { ...fields, fix: "all" }, signal)).text };
    const told = await postForm(dataset.convertUrl ?? "", { ...fields, to }, signal);
    if (typeof told.text === "string") return { ...told, label, alike: told.dialect === to, losses: told.notes };
    this.#say(gettext("Fix these problems before converting to another format:"));
    this.#list(told.problems);
    return null;
  }

  /** @param {Other} other */
  #draw(other) {
    const { editor } = this;
    this.#say(summary(other, editor.text));
    this.#list(other.losses);
    this.#view = new MergeView({
      parent: this.#root,
      root: this.#root,
      a: { doc: editor.text, extensions: side(editor.syntax, gettext("Original")) },
      b: { doc: other.text, extensions: side(other.syntax, other.label) },
      highlightChanges: other.alike,
      gutter: other.alike,
      ...(other.alike && other.text !== editor.text ? { collapseUnchanged: { margin: 3, minSize: 8 } } : {}),
      // Texts of two dialects have no lines in common that would mean anything.
      diffConfig: other.alike
        ? { scanLimit: 5000, timeout: 500 }
        : { override: (/** @type {string} */ a, /** @type {string} */ b) => [new Change(0, a.length, 0, b.length)] },
    });
    this.#root.querySelector(".cm-mergeView")?.classList.toggle("cm-unlike", !other.alike);
    const sides = this.#root.querySelectorAll(".cm-mergeViewEditor");
    sides[0]?.prepend(heading(gettext("Original")));
    sides[1]?.prepend(heading(other.label));
    this.#mark(this.#view?.a, other.losses.filter((loss) => loss.side === "source"));
    this.#mark(this.#view?.b, other.losses.filter((loss) => loss.side === "target"));
    announce(this.#part("[data-compare-state]").textContent ?? "");
  }

  /** @param {any} view @param {Loss[]} losses */
  #mark(view, losses) {
    const marks = losses.flatMap(({ line, column, message, capability }) =>
      line ? [{ ...spanAt(view.state.doc, line, column ?? 1), severity: "warning", message: [message, lacking(capability)].filter(Boolean).join(" ") }] : [],
    );
    view.dispatch(setDiagnostics(view.state, marks));
  }

  /** @param {(Finding | Loss)[]} findings */
  #list(findings) {
    const list = document.createElement("ul");
    list.className = "problems";
    list.setAttribute("aria-label", gettext("Lost or changed settings"));
    list.append(...findings.slice(0, MOST_LISTED).map((finding) => this.#row(finding)));
    if (findings.length > MOST_LISTED) list.append(more(findings.length - MOST_LISTED));
    this.#part("[data-compare-losses]").replaceChildren(...(findings.length ? [list] : []));
  }

  /** @param {Finding | Loss} finding */
  #row(finding) {
    const item = document.createElement("li");
    item.className = "problem";
    item.dataset.code = finding.code;
    item.dataset.level = "side" in finding ? "loss" : "problem";
    const message = document.createElement("span");
    message.className = "problem-message";
    message.textContent = finding.message;
    const place = document.createElement("span");
    place.className = "problem-place";
    if ("side" in finding && finding.line) place.append(this.#jump(finding), " ");
    place.append("capability" in finding ? lacking(finding.capability) : "");
    const level = item.dataset.level === "loss" ? icon("alert-triangle") : icon("alert-circle");
    item.append(level, message, place);
    return item;
  }

  /** @param {Loss} loss */
  #jump({ line, column, side: where }) {
    const button = document.createElement("button");
    button.type = "button";
    const text = where === "source" ? gettext("line %(line)s of the original") : gettext("line %(line)s of the converted file");
    button.textContent = fill(text, { line: line ?? 1 });
    button.addEventListener("click", () => {
      const view = where === "source" ? this.#view?.a : this.#view?.b;
      if (!view) return;
      const { from } = spanAt(view.state.doc, line ?? 1, column ?? 1);
      view.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
      view.focus();
    });
    return button;
  }

  /** @param {boolean} ready */
  #ready(ready) {
    for (const button of this.dialog.querySelectorAll("[data-compare-download], [data-compare-use]")) button.toggleAttribute("disabled", !ready);
  }

  /** @param {string} text */
  #say(text) {
    this.#part("[data-compare-state]").textContent = text;
  }

  #download() {
    if (!this.#other) return;
    const url = URL.createObjectURL(new Blob([this.#other.text], { type: "text/plain" }));
    const link = document.createElement("a");
    link.href = url;
    link.download = this.#other.file;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  }

  #use() {
    if (!this.#other) return;
    const { editor } = this;
    const text = this.#other.filled ?? this.#other.text;
    const [kind, to = ""] = this.what.value.split(":");
    editor.chooseDialect("");
    this.dialog.close();
    editor.text = text;
    if (kind === "to") editor.takeDialect(to, null);
    editor.view.focus();
    announce(gettext("Text replaced. Press Ctrl-Z to undo."));
  }
}

/** @param {string} url @param {AbortSignal} signal */
async function textOf(url, signal) {
  const response = await fetch(url, { signal });
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return response.text();
}

/** What the extensions of either side are. @param {string} syntax @param {string} label */
function side(syntax, label) {
  return [
    lintGutter(),
    lineNumbers(),
    highlightSpecialChars(),
    drawSelection(),
    search({ top: true }),
    mergeLook,
    EditorState.phrases.of(phrases),
    EditorState.readOnly.of(true),
    EditorView.lineWrapping,
    languages[syntaxCalled(syntax) ?? "yaml"](),
    EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", tabindex: "0" }),
    keymap.of([...searchKeymap, ...defaultKeymap]),
  ];
}

/** @param {number} count */
function more(count) {
  const item = document.createElement("li");
  item.className = "problem muted";
  item.textContent = fill(ngettext("and %(count)s more", "and %(count)s more", count), { count: countText(count) });
  return item;
}

/** @param {string} text */
function heading(text) {
  const label = document.createElement("div");
  label.className = "label";
  label.textContent = text;
  return label;
}

/** @param {Other} other @param {string} text what it is compared with */
function summary({ losses, text: other, alike }, text) {
  if (losses.length) {
    return fill(ngettext("%(count)s setting is lost, changed or still to be filled in.", "%(count)s settings are lost, changed or still to be filled in.", losses.length), {
      count: countText(losses.length),
    });
  }
  if (!alike) return gettext("No information lost.");
  return other === text ? gettext("No differences.") : gettext("Differences are highlighted.");
}

/** @param {string} capability */
function lacking(capability) {
  return capability && fill(gettext("Not supported: %(capability)s."), { capability });
}

/** Bring the dialog that belongs to an editor to life. @param {Editor} editor */
export function startCompare(editor) {
  const dialog = document.querySelector(`dialog[data-compare="${CSS.escape(editor.textarea.id)}"]`);
  if (dialog instanceof HTMLDialogElement) new Compare(editor, dialog);
}
