// @ts-check
/** What the editor colours: the syntaxes that job files are written in. */

import { StreamLanguage, json, properties, shell, yaml } from "../vendor/codemirror-6.43.15/codemirror.js";

/** @import { Syntax } from "./editor-place.js" */

/** @type {Record<Syntax, () => unknown>} */
export const languages = {
  json: () => json(),
  yaml: () => yaml(),
  shell: () => StreamLanguage.define(shell),
  properties: () => StreamLanguage.define(properties),
};

/**
 * The syntax that has this name.
 * @param {string | null | undefined} name
 * @returns {Syntax | null}
 */
export function syntaxCalled(name) {
  return name === "json" || name === "yaml" || name === "shell" || name === "properties" ? name : null;
}

/**
 * The syntax of a text whose dialect is not known, by how it begins.
 * @param {string} text
 * @returns {Syntax}
 */
export function syntaxOf(text) {
  const first = text.replace(/^\ufeff/, "").trimStart();
  if (first.startsWith("#!") || first.startsWith("#SBATCH")) return "shell";
  if (/^\w+=/.test(first)) return "properties";
  return /^([{[]|\/\/|\/\*|$)/.test(first) ? "json" : "yaml";
}
