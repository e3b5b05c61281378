// @ts-check
/** Files into the editor: dropped on it, or chosen with a `<input type="file" data-editor-file>` in its frame. */

import { announce, toast } from "./announce.js";
import { fill, gettext, sizeText } from "./i18n.js";

/** @import { Editor } from "./editor.js" */

/** The server refuses a longer job file before it reads it. */
const MOST_BYTES = 1024 * 1024;

/**
 * @param {Editor} editor
 * @param {File} file
 */
async function load(editor, file) {
  if (file.size > MOST_BYTES) {
    toast(fill(gettext("%(name)s is larger than %(size)s."), { name: file.name, size: sizeText(MOST_BYTES) }), { level: "error" });
    return;
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    editor.chooseDialect("");
    editor.text = text;
  } catch {
    toast(fill(gettext("%(name)s is not UTF-8 text."), { name: file.name }), { level: "error" });
    return;
  }
  editor.view.focus();
  announce(fill(gettext("%(name)s loaded into the editor"), { name: file.name }));
}

/** @param {DragEvent} event */
function hasFiles(event) {
  return event.dataTransfer?.types.includes("Files") ?? false;
}

/** @param {Editor} editor */
export function takeFiles(editor) {
  const { frame, textarea } = editor;
  if (textarea.readOnly || textarea.disabled) return;
  const sign = document.createElement("div");
  sign.className = "editor-drop";
  sign.textContent = gettext("Drop the job file here");
  // Captured, because the editor would insert a dropped file's text where the pointer is.
  frame.addEventListener(
    "dragover",
    (event) => {
      if (!(event instanceof DragEvent) || !hasFiles(event)) return;
      event.preventDefault();
      event.stopPropagation();
      frame.append(sign);
    },
    { capture: true },
  );
  frame.addEventListener("dragleave", (event) => {
    if (event instanceof DragEvent && !(event.relatedTarget instanceof Node && frame.contains(event.relatedTarget))) sign.remove();
  });
  frame.addEventListener(
    "drop",
    (event) => {
      sign.remove();
      const file = event instanceof DragEvent ? event.dataTransfer?.files[0] : undefined;
      if (!file) return;
      event.preventDefault();
      event.stopPropagation();
      void load(editor, file);
    },
    { capture: true },
  );
  const chooser = frame.querySelector("[data-editor-file]");
  chooser?.addEventListener("change", () => {
    if (!(chooser instanceof HTMLInputElement) || !chooser.files?.[0]) return;
    void load(editor, chooser.files[0]);
    chooser.value = "";
  });
}
