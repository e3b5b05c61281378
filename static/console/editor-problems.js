// @ts-check
/**
 * The list of problems beside the editor, as templates/components/problem_list.html draws it. A problem that can be
 * mended has a button: `POST <data-fix-url>` with `text` and `fix` (JSON, or "all") answers {"text"}. Where two
 * dialects both fit, each is a button that chooses it in the form's field `dialect`.
 */

import { toast } from "./announce.js";
import { postForm } from "./http.js";
import { countText, fill, gettext, ngettext } from "./i18n.js";
import { icon } from "./icon.js";

/**
 * @import { Editor } from "./editor.js"
 * @import { Candidate, Checked, Finding } from "./editor-check.js"
 */

/**
 * @param {Editor} editor
 * @param {Checked} checked
 */
export function showProblems(editor, { problems = [], notes = [], candidates = [] }) {
  const list = document.querySelector(`[data-problems-for="${CSS.escape(editor.textarea.id)}"]`);
  if (!list) return;
  const rows = [
    ...problems.map((problem) => row(editor, problem, "problem", "alert-circle")),
    ...notes.map((note) => row(editor, note, "note", "info-circle")),
  ];
  const ul = document.createElement("ul");
  ul.className = "problems";
  ul.setAttribute("aria-label", gettext("Problems"));
  ul.append(...rows);
  ul.querySelector('[data-code="ambiguous_dialect"]')?.append(choices(editor, candidates));
  const fixable = [...problems, ...notes].filter(({ fix }) => fix);
  const all = fixable.length > 1 && editor.textarea.dataset.fixUrl ? [mendAll(editor, fixable.length)] : [];
  list.replaceChildren(...all, ...(rows.length ? [ul] : []));
}

/** @param {Editor} editor @param {Finding} finding @param {string} level @param {string} iconName */
function row(editor, finding, level, iconName) {
  const item = document.createElement("li");
  item.className = "problem";
  item.dataset.level = level;
  item.dataset.code = finding.code;
  const message = document.createElement("span");
  message.className = "problem-message";
  message.textContent = finding.message;
  item.append(icon(iconName), message);
  if (finding.line || finding.pointer) item.append(placeOf(editor, finding));
  if (finding.fix && editor.textarea.dataset.fixUrl) item.append(mendButton(editor, finding));
  return item;
}

/** @param {Editor} editor @param {Finding} finding */
function placeOf(editor, { line, column, pointer }) {
  const place = document.createElement("span");
  place.className = "problem-place";
  if (line) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = fill(gettext("line %(line)s, column %(column)s"), { line, column: column ?? 1 });
    button.addEventListener("click", () => editor.goTo(line, column ?? 1));
    place.append(button, " ");
  }
  const path = document.createElement("span");
  path.className = "mono";
  path.textContent = pointer ?? "";
  place.append(path);
  return place;
}

/** @param {Editor} editor @param {Finding} finding */
function mendButton(editor, { fix }) {
  return button(gettext("Mend"), "wand", () => mend(editor, JSON.stringify(fix)));
}

/** @param {Editor} editor @param {number} count */
function mendAll(editor, count) {
  const bar = document.createElement("div");
  bar.className = "problems-bar";
  const text = fill(ngettext("Mend all (%(count)s)", "Mend all (%(count)s)", count), { count: countText(count) });
  bar.append(button(text, "wand", () => mend(editor, "all")));
  return bar;
}

/** @param {Editor} editor @param {Candidate[]} candidates */
function choices(editor, candidates) {
  const group = document.createElement("div");
  group.className = "problem-choices";
  for (const { name, label, why } of candidates) {
    const words = document.createElement("span");
    words.className = "muted";
    words.textContent = why;
    const choose = () => {
      editor.chooseDialect(name);
      editor.view.focus();
    };
    group.append(button(label, "check", choose), words);
  }
  return group;
}

/** @param {string} text @param {string} iconName @param {() => unknown} act */
function button(text, iconName, act) {
  const element = document.createElement("button");
  element.type = "button";
  element.className = "btn btn-sm";
  element.append(icon(iconName, "icon-sm"), text);
  element.addEventListener("click", act);
  return element;
}

/**
 * Let the server change the text, and put that in its place; Ctrl-Z takes it back.
 * @param {Editor} editor
 * @param {string} fix JSON, or "all"
 */
export async function mend(editor, fix) {
  try {
    const sent = editor.text;
    const fields = { ...editor.check?.included(), text: sent, fix };
    const { text } = await postForm(editor.textarea.dataset.fixUrl ?? "", fields);
    if (typeof text !== "string" || editor.text !== sent) throw new TypeError("no text, or one that is out of date");
    editor.text = text;
    editor.view.focus();
  } catch {
    toast(gettext("It could not be mended by itself."), { level: "error" });
  }
}
