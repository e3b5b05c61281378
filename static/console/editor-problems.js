// @ts-check
/**
 * The list of problems beside the editor, as templates/components/problem_list.html draws it. A problem that can be
 * mended has a button: `POST <data-fix-url>` with `text` and `fix` (JSON) answers {"text"}.
 */

import { toast } from "./announce.js";
import { postForm } from "./http.js";
import { fill, gettext } from "./i18n.js";
import { icon } from "./icon.js";

/**
 * @import { Editor } from "./editor.js"
 * @import { Finding } from "./editor-check.js"
 */

/**
 * @param {Editor} editor
 * @param {Finding[]} problems
 * @param {Finding[]} notes
 */
export function showProblems(editor, problems, notes) {
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
  list.replaceChildren(...(rows.length ? [ul] : []));
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
  const button = document.createElement("button");
  button.type = "button";
  button.className = "btn btn-sm";
  button.append(icon("wand", "icon-sm"), gettext("Mend"));
  button.addEventListener("click", async () => {
    try {
      const { text } = await postForm(editor.textarea.dataset.fixUrl ?? "", { text: editor.text, fix: JSON.stringify(fix) });
      if (typeof text !== "string") throw new TypeError("no text came back");
      editor.text = text;
      editor.view.focus();
    } catch {
      toast(gettext("It could not be mended by itself."), { level: "error" });
    }
  });
  return button;
}
