// @ts-check
/**
 * The list of problems beside the editor, as templates/components/problem_list.html draws it. A problem that can be
 * mended has a button: `POST <data-fix-url>` with `text` and `fix` (JSON, or "all") answers {"text"}; so does one that
 * something can be done about, a button for each `action`. Where two
 * dialects both fit, each is a button that chooses it in the form's field `dialect`.
 */

import { toast } from "./announce.js";
import { postForm } from "./http.js";
import { countText, fill, gettext, ngettext } from "./i18n.js";
import { icon } from "./icon.js";

/**
 * @import { Editor } from "./editor.js"
 * @import { Action, Candidate, Checked, Finding } from "./editor-check.js"
 */

/** The action that changes no file, but where the job goes. */
const PLACE = "quota";

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
  if (finding.actions?.length && editor.textarea.dataset.fixUrl) item.append(actionsOf(editor, finding.actions));
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
function mendButton(editor, finding) {
  return button(fixLabel(finding), "wand", () => mend(editor, JSON.stringify(finding.fix)));
}

/** What the fix of a finding does, in the words of its button. @param {Finding} finding */
export function fixLabel({ code, fix }) {
  if (fix?.pointer !== "") return gettext("Fix");
  return code === "is_a_command" ? gettext("Use as start command") : gettext("Replace with the job file");
}

/** @param {Editor} editor @param {Action[]} actions */
function actionsOf(editor, actions) {
  const group = document.createElement("span");
  group.className = "problem-actions";
  for (const { kind, value, label } of actions) {
    const way = button(label, kind === PLACE ? "server" : "wand", () => {});
    way.dataset.action = kind;
    way.dataset.value = value;
    group.append(way);
  }
  return group;
}

/**
 * Buttons that do something about a problem (`data-action`, its kind, and `data-value`), wherever they are in the form.
 * @param {Editor} editor
 */
export function startActions(editor) {
  const { form } = editor.textarea;
  form?.addEventListener("click", (event) => {
    const way = event.target instanceof Element ? event.target.closest("[data-action]") : null;
    if (!(way instanceof HTMLElement) || !editor.textarea.dataset.fixUrl) return;
    event.preventDefault();
    const { action: kind = "", value = "" } = way.dataset;
    const place = form.elements.namedItem("place");
    if (kind !== PLACE) void mend(editor, JSON.stringify({ kind, value }), "action");
    else if (place instanceof HTMLSelectElement || place instanceof HTMLInputElement) {
      place.value = value;
      place.dispatchEvent(new Event("change", { bubbles: true }));
      place.focus();
    }
  });
}

/** @param {Editor} editor @param {number} count */
function mendAll(editor, count) {
  const bar = document.createElement("div");
  bar.className = "problems-bar";
  const text = fill(ngettext("Fix all (%(count)s)", "Fix all (%(count)s)", count), { count: countText(count) });
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
 * @param {"fix" | "action"} what
 */
export async function mend(editor, fix, what = "fix") {
  try {
    const sent = editor.text;
    const fields = { ...editor.check?.included(), text: sent, [what]: fix };
    const { text } = await postForm(editor.textarea.dataset.fixUrl ?? "", fields);
    if (typeof text !== "string" || editor.text !== sent) throw new TypeError("no text, or one that is out of date");
    editor.text = text;
    editor.view.focus();
  } catch {
    toast(gettext("Could not be fixed automatically."), { level: "error" });
  }
}
