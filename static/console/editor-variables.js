// @ts-check
/** Completion of environment variables in a shell command: `$` and what the list with that id names. */

import { autocompletion } from "../vendor/codemirror-6.43.15/codemirror.js";

/** @param {string} id of a `<dl>` with names and meanings */
export function variables(id) {
  /** @param {{ matchBefore: (pattern: RegExp) => { from: number, text: string } | null }} context */
  const complete = (context) => {
    const typed = context.matchBefore(/\$\{?\w*$/);
    if (!typed) return null;
    const braced = typed.text.startsWith("${");
    const from = typed.from + (braced ? 2 : 1);
    const options = known(id).map(([label, info]) => ({ label, info, type: "variable", apply: braced ? `${label}}` : label }));
    return { from, options, validFor: /^\w*$/ };
  };
  return autocompletion({ override: [complete], icons: false });
}

/** @param {string} id @returns {[string, string][]} */
function known(id) {
  const terms = [...(document.getElementById(id)?.querySelectorAll("dt") ?? [])];
  return terms.map((term) => [textOf(term).replace("$", ""), textOf(term.nextElementSibling)]);
}

/** @param {Element | null} element */
function textOf(element) {
  return element?.textContent?.trim() ?? "";
}
